// Convolutions and their gradients by oneDNN.
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_ONEDNN_CONVOLUTION_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_ONEDNN_CONVOLUTION_H_

#include "plugin/runtime/convolution/form.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

// Whether oneDNN is there and computes in this type on this CPU with instructions made for it.
bool OneDnnConvolves(ElementType type);

// False if oneDNN has no fast code for this convolution; `out` is unspecified then. Throws
// RESOURCE_EXHAUSTED.
bool OneDnnConvolution(ThreadPool& pool, const ConvolutionForm& form, ElementType in,
                       ElementType out_type, const void* lhs, const void* rhs, void* out);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_ONEDNN_CONVOLUTION_H_
