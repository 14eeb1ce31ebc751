#include "plugin/api/layout.h"

#include <memory>

#include "plugin/api/guard.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/strided_copy.h"

namespace treadle::api {

std::vector<int64_t> HostStrides(const PJRT_Buffer_MemoryLayout* layout,
                                 std::span<const int64_t> dims, size_t element_bytes) {
  if (layout == nullptr) return {};
  if (EnumValue(layout->type) == PJRT_Buffer_MemoryLayout_Type_Strides) {
    const auto& strides = layout->strides;
    if (strides.num_byte_strides != dims.size()) {
      throw InvalidArgument("a layout of ", strides.num_byte_strides,
                            " byte strides for an array of ", dims.size(), " dimensions");
    }
    return {strides.byte_strides, strides.byte_strides + strides.num_byte_strides};
  }
  const auto& tiled = layout->tiled;
  if (tiled.num_tiles != 0) throw Unimplemented("tiled layouts; arrays here are plain strided");
  return StridesOfLayout(dims, element_bytes,
                         std::span(tiled.minor_to_major, tiled.minor_to_major_size));
}

void CheckDeviceLayout(const PJRT_Buffer_MemoryLayout* layout, std::span<const int64_t> dims,
                       size_t element_bytes) {
  if (layout == nullptr) return;
  if (!IsDense(dims, element_bytes, HostStrides(layout, dims, element_bytes))) {
    throw Unimplemented("buffers with a layout other than dense row-major");
  }
}

PJRT_Buffer_MemoryLayout RowMajorLayout(size_t num_dims) {
  // Every rank's list is the tail of one: n-1, ..., 1, 0.
  static const auto* const descending = [] {
    auto* list = new int64_t[kMaxRank];
    for (size_t i = 0; i < kMaxRank; ++i) list[i] = static_cast<int64_t>(kMaxRank - 1 - i);
    return list;
  }();
  if (num_dims > kMaxRank)
    throw Unimplemented("the layout of an array of ", num_dims, " dimensions");
  PJRT_Buffer_MemoryLayout layout{};
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = descending + (kMaxRank - num_dims);
  layout.tiled.minor_to_major_size = num_dims;
  return layout;
}

}  // namespace treadle::api
