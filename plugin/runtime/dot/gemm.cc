#include "plugin/runtime/dot/gemm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/thread_scratch.h"

namespace treadle {
namespace {

// The classic three levels of blocking. A panel of B (kTermBytes of terms by one tile's columns)
// stays in the first-level cache while the rows of A go by; a block of A in the second level; a
// block of B in the third.
constexpr int64_t kTermBytes = 1024;
constexpr int64_t kRowBlock = 192;
constexpr int64_t kColumnBlock = 2048;

// Below this many multiplications per column of B, packing B costs more than it saves.
constexpr int64_t kPackRows = 24;

// The blocking bounds both to a few megabytes.
thread_local ThreadScratch a_buffer, b_buffer;

template <typename T>
T* Get(ThreadScratch& buffer, int64_t elements) {
  return static_cast<T*>(buffer.Get(static_cast<size_t>(elements) * sizeof(T)));
}

template <typename T>
class BlockedGemm {
 public:
  BlockedGemm(int64_t m, int64_t n, int64_t k, Strided<const T> a, Strided<const T> b, Strided<T> c)
      : kernels_(BestGemmKernels<T>()), m_(m), n_(n), k_(k), a_(a), b_(b), c_(c) {}

  void Run() {
    const int64_t width = kTileVectors * kernels_.lanes;
    // Equal parts, so that no short last one makes C go by once more.
    const int64_t term_blocks =
        (k_ - 1) / (kTermBytes / static_cast<int64_t>(sizeof(T)) * 3 / 2) + 1;
    const int64_t terms_per_block = (k_ - 1) / term_blocks + 1;
    const bool direct_b = b_.column == 1 && m_ <= kPackRows;
    // Rows of A are read as they lie if their terms are dense: a panel would hold the same cache
    // lines.
    const bool direct_a = a_.column == 1 || n_ <= width;
    for (int64_t j0 = 0; j0 < n_; j0 += kColumnBlock) {
      const int64_t columns = std::min(kColumnBlock, n_ - j0);
      for (int64_t p0 = 0; p0 < k_; p0 += terms_per_block) {
        const int64_t terms = std::min(terms_per_block, k_ - p0);
        PackColumns(p0, terms, j0, columns, direct_b);
        for (int64_t i0 = 0; i0 < m_; i0 += kRowBlock) {
          const int64_t rows = std::min(kRowBlock, m_ - i0);
          if (!direct_a) PackRows(i0, rows, p0, terms);
          Block(i0, rows, p0, terms, j0, columns, direct_a);
        }
      }
    }
  }

 private:
  // Where tile columns [j, j + width) of the current block of B lie.
  struct Columns {
    const T* data;
    int64_t term;
  };

  void PackColumns(int64_t p0, int64_t terms, int64_t j0, int64_t columns, bool direct) {
    const int64_t width = kTileVectors * kernels_.lanes;
    const int64_t first_packed = direct ? columns / width * width : 0;
    direct_columns_ = first_packed;
    b_panels_ = Get<T>(b_buffer, (columns - first_packed + width - 1) / width * width * terms);
    T* to = b_panels_;
    for (int64_t j = first_packed; j < columns; j += width, to += width * terms) {
      kernels_.pack(b_.At(p0, j0 + j), b_.row, b_.column, terms, std::min(width, columns - j),
                    width, to);
    }
  }

  Columns ColumnsAt(int64_t p0, int64_t terms, int64_t j0, int64_t j) const {
    if (j < direct_columns_) return {b_.At(p0, j0 + j), b_.row};
    return {b_panels_ + (j - direct_columns_) * terms, kTileVectors * kernels_.lanes};
  }

  void PackRows(int64_t i0, int64_t rows, int64_t p0, int64_t terms) {
    const int64_t height = kernels_.tile_rows;
    a_panels_ = Get<T>(a_buffer, (rows + height - 1) / height * height * terms);
    for (int64_t i = 0; i < rows; i += height) {
      kernels_.pack(a_.At(i0 + i, p0), a_.column, a_.row, terms, std::min(height, rows - i), height,
                    a_panels_ + i * terms);
    }
  }

  void Block(int64_t i0, int64_t rows, int64_t p0, int64_t terms, int64_t j0, int64_t columns,
             bool direct_a) {
    const int64_t width = kTileVectors * kernels_.lanes;
    for (int64_t j = 0; j < columns; j += width) {
      const Columns b = ColumnsAt(p0, terms, j0, j);
      const int64_t tile_columns = std::min(width, columns - j);
      for (int64_t i = 0; i < rows; i += kernels_.tile_rows) {
        const int64_t tile_rows = std::min<int64_t>(kernels_.tile_rows, rows - i);
        if (direct_a) {
          Tile(kernels_.strided[tile_rows - 1], terms, a_.At(i0 + i, p0), a_.row, a_.column, b,
               c_.At(i0 + i, j0 + j), tile_rows, tile_columns, p0 > 0);
        } else {
          Tile(kernels_.panel[tile_rows - 1], terms, a_panels_ + i * terms, 1, kernels_.tile_rows,
               b, c_.At(i0 + i, j0 + j), tile_rows, tile_columns, p0 > 0);
        }
      }
    }
  }

  void Tile(const TileKernel<T>* kernels, int64_t terms, const T* a, int64_t a_row, int64_t a_term,
            Columns b, T* c, int64_t rows, int64_t columns, bool accumulate) {
    const int64_t vectors = (columns - 1) / kernels_.lanes;  // less one
    if (c_.column == 1 && columns == (vectors + 1) * kernels_.lanes) {
      kernels[vectors](terms, a, a_row, a_term, b.data, b.term, c, c_.row, accumulate);
      return;
    }
    // A partial vector, or a C without dense rows: through a full tile of our own.
    alignas(64) T tile[kMaxTileRows * kTileVectors * (64 / sizeof(T))];
    const int64_t width = (vectors + 1) * kernels_.lanes;
    kernels[vectors](terms, a, a_row, a_term, b.data, b.term, tile, width, false);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        T& to = c[i * c_.row + j * c_.column];
        to = accumulate ? static_cast<T>(to + tile[i * width + j]) : tile[i * width + j];
      }
    }
  }

  const GemmKernels<T>& kernels_;
  const int64_t m_, n_, k_;
  const Strided<const T> a_, b_;
  const Strided<T> c_;
  T* a_panels_ = nullptr;
  T* b_panels_ = nullptr;
  int64_t direct_columns_ = 0;
};

// A few rows times a matrix, or a row times a transposed one: bound by reading the matrix, which is
// read once, as it lies.
template <typename T>
bool FewRows(int64_t m, int64_t n, int64_t k, Strided<const T> a, Strided<const T> b,
             Strided<T> c) {
  const GemmKernels<T>& kernels = BestGemmKernels<T>();
  if (m <= kMaxFewRows && b.column == 1 && c.column == 1) {
    kernels.few_rows[m - 1](n, k, a.data, a.row, a.column, b.data, b.row, c.data, c.row);
    return true;
  }
  if (m == 1 && b.row == 1 && a.column == 1) {
    kernels.rows_times_vector(n, k, b.data, b.column, a.data, c.data, c.column);
    return true;
  }
  return false;
}

}  // namespace

template <typename T>
void Gemm(int64_t m, int64_t n, int64_t k, Strided<const T> a, Strided<const T> b, Strided<T> c) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) *c.At(i, j) = 0;
    }
    return;
  }
  // Kernels want dense rows of C, or else C transposed: C' = B' A'.
  const bool transpose = n == 1 || (m != 1 && c.column != 1 && c.row == 1);
  if (transpose) {
    std::swap(m, n);
    const Strided<const T> left = a;
    a = {b.data, b.column, b.row};
    b = {left.data, left.column, left.row};
    c = {c.data, c.column, c.row};
  }
  if (FewRows(m, n, k, a, b, c)) return;
  BlockedGemm<T>(m, n, k, a, b, c).Run();
}

template void Gemm(int64_t, int64_t, int64_t, Strided<const float>, Strided<const float>,
                   Strided<float>);
template void Gemm(int64_t, int64_t, int64_t, Strided<const double>, Strided<const double>,
                   Strided<double>);
template void Gemm(int64_t, int64_t, int64_t, Strided<const uint16_t>, Strided<const uint16_t>,
                   Strided<uint16_t>);
template void Gemm(int64_t, int64_t, int64_t, Strided<const uint32_t>, Strided<const uint32_t>,
                   Strided<uint32_t>);
template void Gemm(int64_t, int64_t, int64_t, Strided<const uint64_t>, Strided<const uint64_t>,
                   Strided<uint64_t>);

}  // namespace treadle
