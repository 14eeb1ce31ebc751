#include "plugin/runtime/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

struct Loop {
  int64_t size, src, dst;
};

// Bytes of one tile's side, chosen so that a tile of both arrays stays in the first-level cache.
constexpr int64_t kTileBytes = 256;

template <size_t N>
void CopyElement(char* dst, const char* src) {
  std::memcpy(dst, src, N);
}

// The two innermost loops. `inner` is the one that walks dst with the smallest stride.
template <size_t N>
void CopyPlane(const Loop& outer, const Loop& inner, const char* src, char* dst) {
  if (inner.src == static_cast<int64_t>(N) && inner.dst == static_cast<int64_t>(N)) {
    for (int64_t i = 0; i < outer.size; ++i) {
      std::memcpy(dst + i * outer.dst, src + i * outer.src, static_cast<size_t>(inner.size) * N);
    }
    return;
  }
  // Tiles, because one of the arrays is walked across its rows.
  const int64_t tile = std::max<int64_t>(1, kTileBytes / static_cast<int64_t>(N));
  for (int64_t i0 = 0; i0 < outer.size; i0 += tile) {
    const int64_t i1 = std::min(outer.size, i0 + tile);
    for (int64_t j0 = 0; j0 < inner.size; j0 += tile) {
      const int64_t j1 = std::min(inner.size, j0 + tile);
      for (int64_t i = i0; i < i1; ++i) {
        const char* s = src + i * outer.src + j0 * inner.src;
        char* d = dst + i * outer.dst + j0 * inner.dst;
        for (int64_t j = j0; j < j1; ++j, s += inner.src, d += inner.dst) CopyElement<N>(d, s);
      }
    }
  }
}

template <size_t N>
void CopyLoops(std::span<const Loop> loops, const char* src, char* dst) {
  if (loops.size() == 2) {
    CopyPlane<N>(loops[0], loops[1], src, dst);
    return;
  }
  for (int64_t i = 0; i < loops[0].size; ++i) {
    CopyLoops<N>(loops.subspan(1), src + i * loops[0].src, dst + i * loops[0].dst);
  }
}

// Loops from the outermost to the innermost of dst, at least two, adjacent ones merged where both
// arrays allow it.
std::vector<Loop> PlanLoops(std::span<const int64_t> dims, std::span<const int64_t> src_strides,
                            std::span<const int64_t> dst_strides) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) loops.push_back({dims[i], src_strides[i], dst_strides[i]});
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return std::abs(a.dst) > std::abs(b.dst); });
  std::vector<Loop> merged;
  for (const Loop& loop : loops) {
    if (!merged.empty() && merged.back().src == loop.src * loop.size &&
        merged.back().dst == loop.dst * loop.size) {
      merged.back() = {merged.back().size * loop.size, loop.src, loop.dst};
    } else {
      merged.push_back(loop);
    }
  }
  while (merged.size() < 2) merged.insert(merged.begin(), {1, 0, 0});
  // Of the loops that are not dst's innermost, the one with the smallest src stride belongs next to
  // it: that plane is what gets tiled.
  auto best = merged.end() - 2;
  for (auto it = merged.begin(); it != merged.end() - 1; ++it) {
    if (it->size > 1 && std::abs(it->src) < std::abs(best->src)) best = it;
  }
  std::rotate(best, best + 1, merged.end() - 1);
  return merged;
}

}  // namespace

std::vector<int64_t> StridesOfLayout(std::span<const int64_t> dims, size_t element_bytes,
                                     std::span<const int64_t> minor_to_major) {
  if (minor_to_major.size() != dims.size()) {
    throw InvalidArgument("a layout of ", minor_to_major.size(), " dimensions for an array of ",
                          dims.size());
  }
  std::vector<int64_t> strides(dims.size(), -1);
  auto stride = static_cast<int64_t>(element_bytes);
  for (const int64_t dim : minor_to_major) {
    if (dim < 0 || static_cast<size_t>(dim) >= dims.size() ||
        strides[static_cast<size_t>(dim)] != -1) {
      throw InvalidArgument("minor_to_major is not a permutation of the ", dims.size(),
                            " dimensions");
    }
    strides[static_cast<size_t>(dim)] = stride;
    stride *= std::max<int64_t>(1, dims[static_cast<size_t>(dim)]);
  }
  return strides;
}

std::vector<int64_t> DenseStrides(std::span<const int64_t> dims, size_t element_bytes) {
  std::vector<int64_t> strides(dims.size());
  auto stride = static_cast<int64_t>(element_bytes);
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(1, dims[i]);
  }
  return strides;
}

bool IsDense(std::span<const int64_t> dims, size_t element_bytes,
             std::span<const int64_t> strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return true;
  auto stride = static_cast<int64_t>(element_bytes);
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

void StridedCopy(std::span<const int64_t> dims, size_t element_bytes, const void* src,
                 std::span<const int64_t> src_strides, void* dst,
                 std::span<const int64_t> dst_strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const std::vector<Loop> loops = PlanLoops(dims, src_strides, dst_strides);
  const auto* from = static_cast<const char*>(src);
  auto* to = static_cast<char*>(dst);
  switch (element_bytes) {
    case 0:
      return;  // tokens
    case 1:
      return CopyLoops<1>(loops, from, to);
    case 2:
      return CopyLoops<2>(loops, from, to);
    case 4:
      return CopyLoops<4>(loops, from, to);
    case 8:
      return CopyLoops<8>(loops, from, to);
    case 16:
      return CopyLoops<16>(loops, from, to);
    default:
      throw Internal("no copy for elements of ", element_bytes, " bytes");
  }
}

}  // namespace treadle
