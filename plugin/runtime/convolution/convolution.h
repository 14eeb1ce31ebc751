// Convolutions (program_abi.h's TreadleConvolution).
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_CONVOLUTION_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_CONVOLUTION_H_

#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

// Throws INVALID_ARGUMENT, UNIMPLEMENTED (types) or RESOURCE_EXHAUSTED.
void Convolve(ThreadPool& pool, const TreadleConvolution& convolution, const void* lhs,
              const void* rhs, void* out);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_CONVOLUTION_H_
