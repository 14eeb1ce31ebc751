// The innermost loops of matrix products, compiled once per instruction set and chosen when the
// process starts.
#ifndef TREADLE_PLUGIN_RUNTIME_DOT_KERNELS_H_
#define TREADLE_PLUGIN_RUNTIME_DOT_KERNELS_H_

#include <cstdint>

namespace treadle {

inline constexpr int kMaxTileRows = 12;
inline constexpr int kTileVectors = 2;
inline constexpr int kMaxFewRows = 4;

// One tile of C (rows x vectors * lanes) over `k` terms:
//   C[i][j] (+)= sum over p of a[i * a_row + p * a_term] * b[p * b_term + j]
// where C[i] starts at c + i * c_row. Without `accumulate` C is overwritten.
template <typename T>
using TileKernel = void (*)(int64_t k, const T* a, int64_t a_row, int64_t a_term, const T* b,
                            int64_t b_term, T* c, int64_t c_row, bool accumulate);

// What one instruction set offers for one element type.
template <typename T>
struct GemmKernels {
  int lanes;      // elements per vector
  int tile_rows;  // rows of a full tile; a full tile has kTileVectors vectors of columns
  // [rows - 1][vectors - 1]: A by strides, and A in a panel (a_row 1, a_term tile_rows).
  TileKernel<T> strided[kMaxTileRows][kTileVectors];
  TileKernel<T> panel[kMaxTileRows][kTileVectors];
  // dst[p * width + j] = src[p * term + j * column] for p < terms and j < columns; columns up to
  // `width` become 0. `width` is a multiple of 1 for column strides other than 1 and of `lanes`
  // else.
  void (*pack)(const T* src, int64_t term, int64_t column, int64_t terms, int64_t columns,
               int64_t width, T* dst);
  // [rows - 1]: C[i][j] = sum over p of a[i * a_row + p * a_term] * b[p * b_term + j] for j < n,
  // all terms in their order; C[i] starts at c + i * c_row.
  void (*few_rows[kMaxFewRows])(int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_term,
                                const T* b, int64_t b_term, T* c, int64_t c_row);
  // y[i * y_stride] = sum over p of a[i * a_row + p] * x[p], i < m: dot products of dense rows.
  void (*rows_times_vector)(int64_t m, int64_t k, const T* a, int64_t a_row, const T* x, T* y,
                            int64_t y_stride);
};

// Conversions of dense runs of `n` elements between 16-bit floats and f32, rounding to nearest
// even.
struct ConvertKernels {
  void (*bf16_to_f32)(const uint16_t* from, int64_t n, float* to);
  void (*f16_to_f32)(const uint16_t* from, int64_t n, float* to);
  void (*f32_to_bf16)(const float* from, int64_t n, uint16_t* to);
  void (*f32_to_f16)(const float* from, int64_t n, uint16_t* to);
};

const ConvertKernels& BestConvertKernels();

// The best that this CPU has. T: float, double, uint16_t, uint32_t, uint64_t (signed products wrap
// to the same bits).
template <typename T>
const GemmKernels<T>& BestGemmKernels();

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DOT_KERNELS_H_
