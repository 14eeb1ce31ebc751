// PJRT_Buffer_MemoryLayout: read where a caller gives one. Buffers themselves are always dense and
// row-major.
#ifndef TREADLE_PLUGIN_API_LAYOUT_H_
#define TREADLE_PLUGIN_API_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

// No array has more dimensions.
inline constexpr size_t kMaxRank = 256;

// Byte strides of an array on the host; empty, which means dense row-major, for a null layout.
// Throws UNIMPLEMENTED for tiles and INVALID_ARGUMENT for a layout that does not fit the
// dimensions.
std::vector<int64_t> HostStrides(const PJRT_Buffer_MemoryLayout* layout,
                                 std::span<const int64_t> dims, size_t element_bytes);

// For layouts that a caller wants a buffer to have. Throws UNIMPLEMENTED unless it is null or means
// dense row-major.
void CheckDeviceLayout(const PJRT_Buffer_MemoryLayout* layout, std::span<const int64_t> dims,
                       size_t element_bytes);

// The layout of a buffer. Its list of dimensions lives as long as the process.
PJRT_Buffer_MemoryLayout RowMajorLayout(size_t num_dims);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_LAYOUT_H_
