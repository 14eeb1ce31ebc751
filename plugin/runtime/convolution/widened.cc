#include "plugin/runtime/convolution/widened.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/element_type.h"

namespace treadle {
namespace {

constexpr int kRank = 2 + TREADLE_MAX_SPATIAL;

// One of the arrays: sizes and strides by the call's own order of dimensions.
struct Array {
  std::array<int64_t, kRank> sizes;
  std::array<int64_t, kRank> strides;

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t size : sizes) product *= size;
    return product;
  }
};

// Dimensions from the outermost in memory to the innermost.
std::array<int, kRank> MemoryOrder(const Array& array) {
  std::array<int, kRank> order{0, 1, 2, 3, 4};
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return array.strides[static_cast<size_t>(a)] > array.strides[static_cast<size_t>(b)];
  });
  return order;
}

// Calls `body(strided offset, dense offset, stride, n)` for runs of the array that are equally
// spaced, in memory order; the longest runs there are.
template <typename Body>
void ForRuns(const Array& array, Body&& body) {
  std::array<int64_t, kRank> sizes{}, strides{};
  int rank = 0;
  for (const int dimension : MemoryOrder(array)) {
    const auto d = static_cast<size_t>(dimension);
    if (array.sizes[d] == 1) continue;
    const auto last = static_cast<size_t>(rank - 1);
    if (rank > 0 && strides[last] == array.strides[d] * array.sizes[d]) {
      sizes[last] *= array.sizes[d];
      strides[last] = array.strides[d];
    } else {
      sizes[static_cast<size_t>(rank)] = array.sizes[d];
      strides[static_cast<size_t>(rank)] = array.strides[d];
      ++rank;
    }
  }
  const int64_t run = rank == 0 ? 1 : sizes[static_cast<size_t>(rank - 1)];
  const int64_t stride = rank == 0 ? 1 : strides[static_cast<size_t>(rank - 1)];
  for (int64_t dense = 0; dense < array.elements(); dense += run) {
    int64_t offset = 0, rest = dense / run;
    for (auto d = static_cast<size_t>(std::max(rank - 1, 0)); d-- > 0;) {
      offset += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    body(offset, dense, stride, run);
  }
}

void MakeDense(const Array& array, int64_t* strides) {
  const std::array<int, kRank> order = MemoryOrder(array);
  int64_t stride = 1;
  for (size_t i = kRank; i-- > 0;) {
    strides[order[i]] = stride;
    stride *= array.sizes[static_cast<size_t>(order[i])];
  }
}

Array MakeArray(int64_t first, int64_t second, const int64_t* spatial, const int64_t* strides) {
  Array array{{first, second, spatial[0], spatial[1], spatial[2]}, {}};
  std::copy(strides, strides + kRank, array.strides.begin());
  return array;
}

Array LhsOf(const TreadleConvolution& c) {
  return MakeArray(c.batch, c.in_features, c.lhs_spatial, c.lhs_strides);
}
Array RhsOf(const TreadleConvolution& c) {
  return MakeArray(c.out_features, c.in_features / c.feature_groups, c.rhs_spatial, c.rhs_strides);
}
Array OutOf(const TreadleConvolution& c) {
  return MakeArray(c.batch / c.batch_groups, c.out_features, c.out_spatial, c.out_strides);
}

HostBlock Widen(const Array& array, bool is_bf16, const void* data) {
  HostBlock block(static_cast<size_t>(array.elements()) * sizeof(float));
  const auto convert = is_bf16 ? BestConvertKernels().bf16_to_f32 : BestConvertKernels().f16_to_f32;
  const auto* from = static_cast<const uint16_t*>(data);
  auto* to = static_cast<float*>(block.data());
  ForRuns(array, [&](int64_t offset, int64_t dense, int64_t stride, int64_t n) {
    if (stride == 1) return convert(from + offset, n, to + dense);
    for (int64_t i = 0; i < n; ++i) convert(from + offset + i * stride, 1, to + dense + i);
  });
  return block;
}

}  // namespace

WidenedConvolution::WidenedConvolution(const TreadleConvolution& c, const void* lhs,
                                       const void* rhs)
    : original_(c),
      wide_(c),
      lhs_(Widen(LhsOf(c), static_cast<ElementType>(c.lhs_type) == ElementType::bf16, lhs)),
      rhs_(Widen(RhsOf(c), static_cast<ElementType>(c.rhs_type) == ElementType::bf16, rhs)),
      out_(static_cast<size_t>(OutOf(c).elements()) * sizeof(float)) {
  wide_.lhs_type = wide_.rhs_type = wide_.out_type = static_cast<uint32_t>(ElementType::f32);
  MakeDense(LhsOf(c), wide_.lhs_strides);
  MakeDense(RhsOf(c), wide_.rhs_strides);
  MakeDense(OutOf(c), wide_.out_strides);
}

void WidenedConvolution::Finish(void* out) const {
  const auto* from = static_cast<const float*>(out_.data());
  const auto type = static_cast<ElementType>(original_.out_type);
  const auto narrow = type == ElementType::bf16 ? BestConvertKernels().f32_to_bf16
                                                : BestConvertKernels().f32_to_f16;
  ForRuns(OutOf(original_), [&](int64_t offset, int64_t dense, int64_t stride, int64_t n) {
    if (type == ElementType::f32) {
      auto* to = static_cast<float*>(out) + offset;
      for (int64_t i = 0; i < n; ++i) to[i * stride] = from[dense + i];
      return;
    }
    auto* to = static_cast<uint16_t*>(out) + offset;
    if (stride == 1) return narrow(from + dense, n, to);
    for (int64_t i = 0; i < n; ++i) narrow(from + dense + i, 1, to + i * stride);
  });
}

}  // namespace treadle
