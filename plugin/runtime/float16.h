// Conversions between f32, f16 and bf16 on bit patterns, rounding to nearest even.
#ifndef TREADLE_PLUGIN_RUNTIME_FLOAT16_H_
#define TREADLE_PLUGIN_RUNTIME_FLOAT16_H_

#include <bit>
#include <cstdint>

namespace treadle {

inline float F32FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t Bf16FromF32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // Rounding up must not carry a NaN's payload into infinity or zero.
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float F32FromF16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7FFFu;
  if (rest >= 0x7C00u) {  // infinity or NaN, which becomes quiet
    const uint32_t quiet = rest > 0x7C00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | ((rest & 0x3FFu) << 13) | quiet);
  }
  if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  // Subnormal or zero: `rest` units of 2^-24, exactly.
  const float magnitude = static_cast<float>(rest) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// From f64, so that f64 to f16 rounds once; f32 to f64 is exact.
inline uint16_t F16FromF64(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 48) & 0x8000u);
  const uint64_t magnitude = bits & 0x7FFFFFFFFFFFFFFFu;
  if (magnitude > 0x7FF0000000000000u) {
    return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 42) & 0x3FFu));
  }
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent >= 16) return static_cast<uint16_t>(sign | 0x7C00u);
  if (exponent < -25) return sign;  // less than half of the least subnormal
  // The significand with its hidden bit; shifted so that one unit is f16's last place.
  const uint64_t significand = (magnitude & 0xFFFFFFFFFFFFFu) | (uint64_t{1} << 52);
  const int shift = exponent >= -14 ? 42 : 42 + (-14 - exponent);
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t odd = (significand >> shift) & 1;
  const uint64_t rounded = (significand + half - 1 + odd) >> shift;
  // A normal number's hidden bit adds 1 to the exponent field, as does a carry out of the fraction.
  const uint64_t field = exponent >= -14 ? static_cast<uint64_t>(exponent + 14) << 10 : 0;
  return static_cast<uint16_t>(sign | (field + rounded));
}

inline uint16_t F16FromF32(float value) { return F16FromF64(value); }

// From f64 to bf16, rounding once: the way through f32 rounds to odd first, which keeps what the
// second rounding needs.
inline uint16_t Bf16FromF64(double value) {
  const auto narrow = static_cast<float>(value);
  auto bits = std::bit_cast<uint32_t>(narrow);
  const double back = narrow;
  if (back != value && value == value && (bits & 1u) == 0 && (bits & 0x7FFFFFFFu) < 0x7F800000u) {
    // Inexact with an even last bit: the odd neighbour on the other side of `value`.
    const bool away = (back < value) == (value > 0);
    bits += away ? 1u : ~0u;
  }
  return Bf16FromF32(std::bit_cast<float>(bits));
}

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_FLOAT16_H_
