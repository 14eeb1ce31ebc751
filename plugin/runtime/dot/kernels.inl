// The bodies of GemmKernels, in vector extensions. Included by one file per instruction set, inside
// namespace treadle and a
// `#pragma GCC target`, after definition of
//   TREADLE_KERNEL_NAMESPACE, kVectorBytes (in that namespace), kTileRows<T> (in that namespace).
// Nothing here may be inline or a template outside of that namespace: the linker would keep one
// instruction set's copy for all.

namespace TREADLE_KERNEL_NAMESPACE {
namespace {

template <typename T>
struct Vectors {
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  typedef T Type __attribute__((vector_size(kVectorBytes)));

  // Unaligned.
  static Type Load(const T* from) {
    Type value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
  static void Store(T* to, Type value) { __builtin_memcpy(to, &value, sizeof value); }
};

template <typename T, int kRows, int kVectors, bool kPanel>
void Tile(int64_t k, const T* a, int64_t a_row, int64_t a_term, const T* b, int64_t b_term, T* c,
          int64_t c_row, bool accumulate) {
  using V = Vectors<T>;
  typename V::Type sum[kRows][kVectors] = {};
  for (int64_t p = 0; p < k; ++p) {
    typename V::Type row[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) row[j] = V::Load(b + j * V::kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const T factor = kPanel ? a[i] : a[i * a_row];
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sum[i][j] += factor * row[j];
    }
    a += kPanel ? kTileRows<T> : a_term;
    b += b_term;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    T* to = c + i * c_row;
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      if (accumulate) sum[i][j] += V::Load(to + j * V::kLanes);
      V::Store(to + j * V::kLanes, sum[i][j]);
    }
  }
}

// Transposes a square of lanes x lanes elements: `lanes` dense runs at src + i * stride become
// `lanes` rows at dst + i * width. Each round interleaves the rows of the upper half with those of
// the lower; log2(lanes) rounds make the transpose.
template <typename T>
void TransposeSquare(const T* src, int64_t stride, T* dst, int64_t width) {
  using V = Vectors<T>;
  constexpr int kLanes = V::kLanes;
  typename V::Type rows[kLanes], next[kLanes];
  // Shuffle indices are integers as wide as the elements.
  using Index = std::conditional_t<sizeof(T) == 8, int64_t,
                                   std::conditional_t<sizeof(T) == 4, int32_t, int16_t>>;
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));
  Indices low, high;
  for (int i = 0; i < kLanes; ++i) {
    const int source = i / 2 + (i % 2) * kLanes;
    low[i] = static_cast<Index>(source);
    high[i] = static_cast<Index>(source + kLanes / 2);
  }
#pragma GCC unroll 32
  for (int i = 0; i < kLanes; ++i) rows[i] = V::Load(src + i * stride);
#pragma GCC unroll 8
  for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 32
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], high);
    }
#pragma GCC unroll 32
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 32
  for (int i = 0; i < kLanes; ++i) V::Store(dst + i * width, rows[i]);
}

template <typename T>
void Pack(const T* src, int64_t term, int64_t column, int64_t terms, int64_t columns, int64_t width,
          T* dst) {
  using V = Vectors<T>;
  constexpr int64_t kLanes = V::kLanes;
  int64_t done = 0;  // columns that are packed already
  if (column == 1 && columns == kTileRows<T> && width == columns) {
    // A panel of A: shorter than a vector perhaps, but of a size that is known here.
    for (int64_t p = 0; p < terms; ++p) {
      __builtin_memcpy(dst + p * kTileRows<T>, src + p * term, kTileRows<T> * sizeof(T));
    }
    return;
  }
  if (column == 1) {
    for (; done + kLanes <= columns; done += kLanes) {
      for (int64_t p = 0; p < terms; ++p) {
        V::Store(dst + p * width + done, V::Load(src + p * term + done));
      }
    }
  } else if (term == 1 && sizeof(T) >= 4) {
    for (; done + kLanes <= columns; done += kLanes) {
      const T* from = src + done * column;
      int64_t p = 0;
      for (; p + kLanes <= terms; p += kLanes) {
        TransposeSquare<T>(from + p, column, dst + p * width + done, width);
      }
      for (; p < terms; ++p) {
        for (int64_t j = 0; j < kLanes; ++j) dst[p * width + done + j] = from[p + j * column];
      }
    }
  }
  for (int64_t p = 0; p < terms && done < width; ++p) {
    int64_t j = done;
    for (; j < columns; ++j) dst[p * width + j] = src[p * term + j * column];
    for (; j < width; ++j) dst[p * width + j] = 0;
  }
}

// Columns [j, j + kStrip vectors): their sums stay in registers while the terms go by.
template <typename T, int kRows, int kStrip>
void Strip(int64_t k, const T* a, int64_t a_row, int64_t a_term, const T* b, int64_t b_term, T* c,
           int64_t c_row) {
  using V = Vectors<T>;
  typename V::Type sum[kRows][kStrip] = {};
  for (int64_t p = 0; p < k; ++p) {
    typename V::Type row[kStrip];
#pragma GCC unroll 8
    for (int s = 0; s < kStrip; ++s) row[s] = V::Load(b + p * b_term + s * V::kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const T factor = a[i * a_row + p * a_term];
#pragma GCC unroll 8
      for (int s = 0; s < kStrip; ++s) sum[i][s] += factor * row[s];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int s = 0; s < kStrip; ++s) V::Store(c + i * c_row + s * V::kLanes, sum[i][s]);
  }
}

// Wide strips, several cache lines of each row of B, keep the hardware's prefetchers busy. Whatever
// the width, every sum is taken in the same order, so a result does not depend on where its column
// lies.
template <typename T, int kRows>
void FewRows(int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_term, const T* b,
             int64_t b_term, T* c, int64_t c_row) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  // Half of the registers are for the sums, which leaves the others for B.
  constexpr int kSums = kVectorBytes == 64 ? 16 : 8;
  constexpr int kWide = kRows == 1 ? 8 : kSums / kRows;
  int64_t j = 0;
  for (; j + kWide * kLanes <= n; j += kWide * kLanes) {
    Strip<T, kRows, kWide>(k, a, a_row, a_term, b + j, b_term, c + j, c_row);
  }
  if constexpr (kWide > 2) {
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
      Strip<T, kRows, 2>(k, a, a_row, a_term, b + j, b_term, c + j, c_row);
    }
  }
  for (; j + kLanes <= n; j += kLanes) {
    Strip<T, kRows, 1>(k, a, a_row, a_term, b + j, b_term, c + j, c_row);
  }
  if (j == n) return;
  if (n >= kLanes) {
    // The last columns once more: the same sums are stored again.
    j = n - kLanes;
    Strip<T, kRows, 1>(k, a, a_row, a_term, b + j, b_term, c + j, c_row);
    return;
  }
  for (; j < n; ++j) {
    for (int i = 0; i < kRows; ++i) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum = static_cast<T>(sum + a[i * a_row + p * a_term] * b[p * b_term + j]);
      }
      c[i * c_row + j] = sum;
    }
  }
}

template <typename T, int kRows>
void DotRows(int64_t k, const T* a, int64_t a_row, const T* x, T* y, int64_t y_stride) {
  using V = Vectors<T>;
  constexpr int64_t kLanes = V::kLanes;
  constexpr int kChains = kRows >= 4 ? 2 : 4;
  typename V::Type sum[kRows][kChains] = {};
  int64_t p = 0;
  for (; p + kChains * kLanes <= k; p += kChains * kLanes) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      const typename V::Type factor = V::Load(x + p + c * kLanes);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        sum[i][c] += factor * V::Load(a + i * a_row + p + c * kLanes);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    typename V::Type folded = sum[i][0];
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c) folded += sum[i][c];
    T total = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) total = static_cast<T>(total + folded[lane]);
    for (int64_t q = p; q < k; ++q) total = static_cast<T>(total + a[i * a_row + q] * x[q]);
    y[i * y_stride] = total;
  }
}

template <typename T>
void RowsTimesVector(int64_t m, int64_t k, const T* a, int64_t a_row, const T* x, T* y,
                     int64_t y_stride) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) DotRows<T, 4>(k, a + i * a_row, a_row, x, y + i * y_stride, y_stride);
  for (; i < m; ++i) DotRows<T, 1>(k, a + i * a_row, a_row, x, y + i * y_stride, y_stride);
}

template <typename T, int... kRowsLess1>
constexpr GemmKernels<T> MakeKernels(std::integer_sequence<int, kRowsLess1...>) {
  return {Vectors<T>::kLanes,
          kTileRows<T>,
          {{Tile<T, kRowsLess1 + 1, 1, false>, Tile<T, kRowsLess1 + 1, 2, false>}...},
          {{Tile<T, kRowsLess1 + 1, 1, true>, Tile<T, kRowsLess1 + 1, 2, true>}...},
          Pack<T>,
          {FewRows<T, 1>, FewRows<T, 2>, FewRows<T, 3>, FewRows<T, 4>},
          RowsTimesVector<T>};
}

void Bf16ToF32(const uint16_t* from, int64_t n, float* to) {
  typedef uint16_t Narrow __attribute__((vector_size(kVectorBytes / 2)));
  typedef uint32_t Wide __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kLanes = kVectorBytes / 4;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Narrow narrow;
    __builtin_memcpy(&narrow, from + i, sizeof narrow);
    const Wide wide = __builtin_convertvector(narrow, Wide) << 16;
    __builtin_memcpy(to + i, &wide, sizeof wide);
  }
  for (; i < n; ++i) {
    const uint32_t wide = static_cast<uint32_t>(from[i]) << 16;
    __builtin_memcpy(to + i, &wide, sizeof wide);
  }
}

void F32ToBf16(const float* from, int64_t n, uint16_t* to) {
  typedef uint16_t Narrow __attribute__((vector_size(kVectorBytes / 2)));
  typedef uint32_t Wide __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kLanes = kVectorBytes / 4;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Wide wide;
    __builtin_memcpy(&wide, from + i, sizeof wide);
    const Wide rounded = (wide + 0x7FFFu + ((wide >> 16) & 1u)) >> 16;
    // A NaN stays one: rounding up must not carry its payload away.
    const Wide quiet = (wide >> 16) | 0x40u;
    const Wide chosen = (wide & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded;
    const Narrow narrow = __builtin_convertvector(chosen, Narrow);
    __builtin_memcpy(to + i, &narrow, sizeof narrow);
  }
  for (; i < n; ++i) to[i] = treadle::Bf16FromF32(from[i]);
}

void F16ToF32(const uint16_t* from, int64_t n, float* to) {
  int64_t i = 0;
#ifdef TREADLE_KERNEL_F16C
  for (; i + 8 <= n; i += 8) {
    const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(narrow));
  }
#endif
  for (; i < n; ++i) to[i] = treadle::F32FromF16(from[i]);
}

void F32ToF16(const float* from, int64_t n, uint16_t* to) {
  int64_t i = 0;
#ifdef TREADLE_KERNEL_F16C
  for (; i + 8 <= n; i += 8) {
    const __m128i narrow = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), narrow);
  }
#endif
  for (; i < n; ++i) to[i] = treadle::F16FromF32(from[i]);
}

}  // namespace

const ConvertKernels& Conversions() {
  static constexpr ConvertKernels kernels = {Bf16ToF32, F16ToF32, F32ToBf16, F32ToF16};
  return kernels;
}

template <typename T>
const GemmKernels<T>& Kernels() {
  static constexpr GemmKernels<T> kernels =
      MakeKernels<T>(std::make_integer_sequence<int, kTileRows<T>>());
  return kernels;
}

template const GemmKernels<float>& Kernels<float>();
template const GemmKernels<double>& Kernels<double>();
template const GemmKernels<uint16_t>& Kernels<uint16_t>();
template const GemmKernels<uint32_t>& Kernels<uint32_t>();
template const GemmKernels<uint64_t>& Kernels<uint64_t>();

}  // namespace TREADLE_KERNEL_NAMESPACE
