// Matrix products of 16-bit floats by oneDNN, which has code for the CPU's own bfloat16 and half
// instructions.
#ifndef TREADLE_PLUGIN_RUNTIME_DOT_ONEDNN_MATMUL_H_
#define TREADLE_PLUGIN_RUNTIME_DOT_ONEDNN_MATMUL_H_

#include "plugin/runtime/dot/piece.h"
#include "plugin/runtime/element_type.h"

namespace treadle {

// On the calling thread. False if oneDNN is not there, has no fast code for this product on this
// CPU, or the product is too small to be worth the call; nothing is written then.
bool OneDnnMatmul(ElementType in, ElementType out, const DotShape& shape, const void* lhs,
                  const void* rhs, void* result);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DOT_ONEDNN_MATMUL_H_
