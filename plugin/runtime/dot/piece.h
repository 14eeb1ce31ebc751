// One matrix product on one thread, for the types of treadle_dot.
#ifndef TREADLE_PLUGIN_RUNTIME_DOT_PIECE_H_
#define TREADLE_PLUGIN_RUNTIME_DOT_PIECE_H_

#include <cstdint>

namespace treadle {

// Strides in elements.
struct DotShape {
  int64_t m, n, k;
  int64_t lhs_m, lhs_k, rhs_k, rhs_n, out_m, out_n;
};

// May throw RESOURCE_EXHAUSTED.
using DotPiece = void (*)(const DotShape& shape, const void* lhs, const void* rhs, void* out);

// nullptr if there is no product of these types (PJRT_Buffer_Type).
DotPiece DotPieceFor(uint32_t in_type, uint32_t out_type);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DOT_PIECE_H_
