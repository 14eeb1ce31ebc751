// Copies between arrays of one shape and different strides: host arrays in any layout, to and from
// the dense row-major one of buffers.
#ifndef TREADLE_PLUGIN_RUNTIME_STRIDED_COPY_H_
#define TREADLE_PLUGIN_RUNTIME_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace treadle {

// Byte strides of a dense array whose dimensions are ordered from the fastest varying to the
// slowest. Throws INVALID_ARGUMENT unless `minor_to_major` is a permutation of the dimensions.
std::vector<int64_t> StridesOfLayout(std::span<const int64_t> dims, size_t element_bytes,
                                     std::span<const int64_t> minor_to_major);

// Byte strides of the row-major layout.
std::vector<int64_t> DenseStrides(std::span<const int64_t> dims, size_t element_bytes);

// True when `strides` describe the dense row-major array; the stride of a dimension of size one
// does not matter.
bool IsDense(std::span<const int64_t> dims, size_t element_bytes, std::span<const int64_t> strides);

// Strides are in bytes and may be zero or negative; `element_bytes` is 1, 2, 4, 8 or 16. `dst` does
// not overlap `src`, and no two elements of it share memory.
void StridedCopy(std::span<const int64_t> dims, size_t element_bytes, const void* src,
                 std::span<const int64_t> src_strides, void* dst,
                 std::span<const int64_t> dst_strides);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_STRIDED_COPY_H_
