// Element types of C++ for the 16-bit floats, which C++20 has none for: bits, with conversions from
// and to f32.
#ifndef TREADLE_PLUGIN_RUNTIME_HALF_TYPES_H_
#define TREADLE_PLUGIN_RUNTIME_HALF_TYPES_H_

#include <cstdint>

#include "plugin/runtime/float16.h"

namespace treadle {

struct Bf16 {
  Bf16() = default;
  explicit Bf16(float value) : bits(Bf16FromF32(value)) {}
  explicit operator float() const { return F32FromBf16(bits); }

  uint16_t bits;
};

struct F16 {
  F16() = default;
  explicit F16(float value) : bits(F16FromF32(value)) {}
  explicit operator float() const { return F32FromF16(bits); }

  uint16_t bits;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_HALF_TYPES_H_
