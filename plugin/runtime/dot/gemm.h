// Matrix products in Treadle's own code: every type, any strides.
#ifndef TREADLE_PLUGIN_RUNTIME_DOT_GEMM_H_
#define TREADLE_PLUGIN_RUNTIME_DOT_GEMM_H_

#include <cstdint>

namespace treadle {

// A matrix by strides, in elements.
template <typename T>
struct Strided {
  T* data;
  int64_t row, column;

  T* At(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// C = A * B with A of m x k, B of k x n, on the calling thread. C overlaps neither; C's strides are
// not 0 where it has more than one row or column. The order of the additions depends on m, n, k and
// the strides only. T: float, double, uint16_t, uint32_t, uint64_t.
template <typename T>
void Gemm(int64_t m, int64_t n, int64_t k, Strided<const T> a, Strided<const T> b, Strided<T> c);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DOT_GEMM_H_
