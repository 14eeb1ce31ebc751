// The element types of buffers. Values are PJRT_Buffer_Type's, which is what artifacts carry too;
// plugin/api asserts that they agree.
#ifndef TREADLE_PLUGIN_RUNTIME_ELEMENT_TYPE_H_
#define TREADLE_PLUGIN_RUNTIME_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace treadle {

// name, value, bytes of one element in host memory. Types of less than a byte take one byte each,
// in the low bits: that is how NumPy and JAX hold them on the host, so transfers need no packing. A
// token carries no data.
// clang-format off
#define TREADLE_ELEMENT_TYPES(X)                                                                  \
  X(pred, 1, 1) X(s8, 2, 1) X(s16, 3, 2) X(s32, 4, 4) X(s64, 5, 8) X(u8, 6, 1) X(u16, 7, 2)       \
  X(u32, 8, 4) X(u64, 9, 8) X(f16, 10, 2) X(f32, 11, 4) X(f64, 12, 8) X(bf16, 13, 2)              \
  X(c64, 14, 8) X(c128, 15, 16) X(f8e5m2, 16, 1) X(f8e4m3fn, 17, 1) X(f8e4m3b11fnuz, 18, 1)       \
  X(f8e5m2fnuz, 19, 1) X(f8e4m3fnuz, 20, 1) X(s4, 21, 1) X(u4, 22, 1) X(token, 23, 0)             \
  X(s2, 24, 1) X(u2, 25, 1) X(f8e4m3, 26, 1) X(f8e3m4, 27, 1) X(f8e8m0fnu, 28, 1)                 \
  X(f4e2m1fn, 29, 1) X(s1, 30, 1) X(u1, 31, 1) X(f6e2m3fn, 32, 1) X(f6e3m2fn, 33, 1)
// clang-format on

#define TREADLE_ELEMENT_ENUM(name, value, bytes) name = value,
enum class ElementType : uint32_t { TREADLE_ELEMENT_TYPES(TREADLE_ELEMENT_ENUM) };
#undef TREADLE_ELEMENT_ENUM

// Throws INVALID_ARGUMENT for a value that is no element type.
ElementType CheckedElementType(uint32_t value);

size_t ElementBytes(ElementType type);
const char* ElementName(ElementType type);

// Bytes of a dense array. Throws INVALID_ARGUMENT for a negative dimension and RESOURCE_EXHAUSTED
// when the size does not fit in memory addresses.
size_t ArrayBytes(ElementType type, std::span<const int64_t> dims);

// "f32[2,3]", for messages.
std::string ShapeName(ElementType type, std::span<const int64_t> dims);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ELEMENT_TYPE_H_
