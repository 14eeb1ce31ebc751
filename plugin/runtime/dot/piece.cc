#include "plugin/runtime/dot/piece.h"

#include <cstring>
#include <type_traits>

#include "plugin/runtime/dot/gemm.h"
#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/dot/onednn_matmul.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/half_types.h"
#include "plugin/runtime/thread_scratch.h"

namespace treadle {
namespace {

// Integers, sixteen at a time: the compiler alone would take them one by one.
template <typename From, typename To>
void ConvertRun(const From* from, int64_t n, To* to) {
  constexpr int64_t kLanes = 16;
  typedef From FromVector __attribute__((vector_size(kLanes * sizeof(From))));
  typedef To ToVector __attribute__((vector_size(kLanes * sizeof(To))));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    FromVector in;
    std::memcpy(&in, from + i, sizeof in);
    const ToVector out = __builtin_convertvector(in, ToVector);
    std::memcpy(to + i, &out, sizeof out);
  }
  for (; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// Conversions into the type that a product is computed in, and back. Signed integers extend their
// sign, then wrap.
template <typename T, typename From>
void WidenRun(const From* from, int64_t n, T* to) {
  if constexpr (std::is_same_v<From, Bf16>) {
    BestConvertKernels().bf16_to_f32(&from->bits, n, to);
  } else if constexpr (std::is_same_v<From, F16>) {
    BestConvertKernels().f16_to_f32(&from->bits, n, to);
  } else {
    ConvertRun(from, n, to);
  }
}

template <typename T, typename To>
void NarrowRun(const T* from, int64_t n, To* to) {
  if constexpr (std::is_same_v<To, Bf16>) {
    BestConvertKernels().f32_to_bf16(from, n, &to->bits);
  } else if constexpr (std::is_same_v<To, F16>) {
    BestConvertKernels().f32_to_f16(from, n, &to->bits);
  } else {
    ConvertRun(from, n, to);
  }
}

// A dense copy of a matrix in the type T, in the order in which it lies.
template <typename T, typename From>
Strided<const T> WidenMatrix(int64_t rows, int64_t columns, Strided<const From> from, T* to) {
  if (from.column == 1 || (columns == 1 && from.row != 1)) {
    for (int64_t i = 0; i < rows; ++i) WidenRun<T>(from.At(i, 0), columns, to + i * columns);
    return {to, columns, 1};
  }
  if (from.row == 1) {
    for (int64_t j = 0; j < columns; ++j) WidenRun<T>(from.At(0, j), rows, to + j * rows);
    return {to, 1, rows};
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = static_cast<T>(*from.At(i, j));
  }
  return {to, columns, 1};
}

thread_local ThreadScratch converted;

// Products in the type T of matrices of other types: through copies.
template <typename T, typename In, typename Out>
void ConvertedPiece(const DotShape& s, const void* lhs, const void* rhs, void* out) {
  const auto elements = static_cast<size_t>(s.m * s.k + s.k * s.n + s.m * s.n);
  T* a = static_cast<T*>(converted.Get(elements * sizeof(T)));
  T* b = a + s.m * s.k;
  T* c = b + s.k * s.n;
  const Strided<const T> wide_a =
      WidenMatrix<T>(s.m, s.k, Strided<const In>{static_cast<const In*>(lhs), s.lhs_m, s.lhs_k}, a);
  const Strided<const T> wide_b =
      WidenMatrix<T>(s.k, s.n, Strided<const In>{static_cast<const In*>(rhs), s.rhs_k, s.rhs_n}, b);
  const Strided<Out> to{static_cast<Out*>(out), s.out_m, s.out_n};
  const bool column_major = s.out_m == 1 && s.out_n != 1;
  const Strided<T> wide_c = column_major ? Strided<T>{c, 1, s.m} : Strided<T>{c, s.n, 1};
  Gemm<T>(s.m, s.n, s.k, wide_a, wide_b, wide_c);
  if (column_major) {
    for (int64_t j = 0; j < s.n; ++j) NarrowRun<T>(c + j * s.m, s.m, to.At(0, j));
  } else if (s.out_n == 1) {
    for (int64_t i = 0; i < s.m; ++i) NarrowRun<T>(c + i * s.n, s.n, to.At(i, 0));
  } else {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) NarrowRun<T>(c + i * s.n + j, 1, to.At(i, j));
    }
  }
  converted.Trim();
}

template <typename T>
void PlainPiece(const DotShape& s, const void* lhs, const void* rhs, void* out) {
  Gemm<T>(s.m, s.n, s.k, {static_cast<const T*>(lhs), s.lhs_m, s.lhs_k},
          {static_cast<const T*>(rhs), s.rhs_k, s.rhs_n}, {static_cast<T*>(out), s.out_m, s.out_n});
}

// 16-bit floats: oneDNN where it uses instructions that we do not, else through f32.
template <ElementType kIn, typename In, ElementType kOut, typename Out>
void HalfPiece(const DotShape& s, const void* lhs, const void* rhs, void* out) {
  if (!OneDnnMatmul(kIn, kOut, s, lhs, rhs, out)) ConvertedPiece<float, In, Out>(s, lhs, rhs, out);
}

}  // namespace

DotPiece DotPieceFor(uint32_t in_type, uint32_t out_type) {
  const auto in = static_cast<ElementType>(in_type), out = static_cast<ElementType>(out_type);
  if (in == ElementType::bf16 && out == ElementType::f32) {
    return HalfPiece<ElementType::bf16, Bf16, ElementType::f32, float>;
  }
  if (in == ElementType::f16 && out == ElementType::f32) {
    return HalfPiece<ElementType::f16, F16, ElementType::f32, float>;
  }
  if (in == ElementType::s8 && out == ElementType::s32) {
    return ConvertedPiece<uint32_t, int8_t, uint32_t>;
  }
  if (in != out) return nullptr;
  switch (in) {
    case ElementType::f32:
      return PlainPiece<float>;
    case ElementType::f64:
      return PlainPiece<double>;
    case ElementType::bf16:
      return HalfPiece<ElementType::bf16, Bf16, ElementType::bf16, Bf16>;
    case ElementType::f16:
      return HalfPiece<ElementType::f16, F16, ElementType::f16, F16>;
    case ElementType::s8:
    case ElementType::u8:
      // Vectors have no products of bytes; 16 bits wrap to the same 8.
      return ConvertedPiece<uint16_t, uint8_t, uint8_t>;
    case ElementType::s16:
    case ElementType::u16:
      return PlainPiece<uint16_t>;
    case ElementType::s32:
    case ElementType::u32:
      return PlainPiece<uint32_t>;
    case ElementType::s64:
    case ElementType::u64:
      return PlainPiece<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace treadle
