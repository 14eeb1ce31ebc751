#include "plugin/runtime/element_type.h"

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

struct TypeInfo {
  const char* name;
  size_t bytes;
};

constexpr TypeInfo kInfo[] = {{"invalid", 0},
#define TREADLE_ELEMENT_INFO(name, value, bytes) {#name, bytes},
                              TREADLE_ELEMENT_TYPES(TREADLE_ELEMENT_INFO)
#undef TREADLE_ELEMENT_INFO
};

constexpr size_t kNumTypes = sizeof(kInfo) / sizeof(kInfo[0]);
static_assert(kNumTypes == static_cast<size_t>(ElementType::f6e3m2fn) + 1,
              "the values of TREADLE_ELEMENT_TYPES are not consecutive");

}  // namespace

ElementType CheckedElementType(uint32_t value) {
  if (value == 0 || value >= kNumTypes) {
    throw InvalidArgument("element type ", value, " is not one of the ", kNumTypes - 1,
                          " that this plugin knows");
  }
  return static_cast<ElementType>(value);
}

size_t ElementBytes(ElementType type) { return kInfo[static_cast<size_t>(type)].bytes; }

const char* ElementName(ElementType type) { return kInfo[static_cast<size_t>(type)].name; }

size_t ArrayBytes(ElementType type, std::span<const int64_t> dims) {
  size_t bytes = ElementBytes(type);
  bool fits = true;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      throw InvalidArgument("shape ", ShapeName(type, dims), " has a negative dimension");
    }
    empty = empty || dim == 0;
  }
  if (empty) return 0;
  for (const int64_t dim : dims) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes);
  }
  if (!fits || bytes > static_cast<size_t>(INT64_MAX)) {
    throw ResourceExhausted("an array of shape ", ShapeName(type, dims),
                            " is larger than the address space");
  }
  return bytes;
}

std::string ShapeName(ElementType type, std::span<const int64_t> dims) {
  std::string text = StrCat(ElementName(type), "[");
  for (size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
  }
  return text + "]";
}

}  // namespace treadle
