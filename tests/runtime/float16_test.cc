// 16-bit conversions: every f16 and bf16 there and back, and the CPU's own instructions as the
// oracle where it has them.
#include "plugin/runtime/float16.h"

#include <cmath>
#include <random>
#include <vector>

#include "plugin/runtime/dot/kernels.h"
#include "tests/cc/check.h"

extern "C" {
_Float16 __truncsfbf2(float);
_Float16 __truncdfbf2(double);
_Float16 __truncsfhf2(float);
_Float16 __truncdfhf2(double);
float __extendhfsf2(_Float16);
}

namespace treadle {
namespace {

// f16's value by its definition.
double ValueOfF16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(EveryF16) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = F32FromF16(half);
    const double expected = ValueOfF16(half);
    if (std::isnan(expected)) {
      wrong += !std::isnan(value) || !std::isnan(F32FromF16(F16FromF32(value)));
    } else {
      wrong += value != expected || F16FromF32(value) != half || F16FromF64(expected) != half;
    }
  }
  CHECK_EQ(wrong, 0);
}

TEST(EveryBf16) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto brain = static_cast<uint16_t>(bits);
    const float value = F32FromBf16(brain);
    if (std::isnan(value)) {
      wrong += !std::isnan(F32FromBf16(Bf16FromF32(value))) ||
               !std::isnan(F32FromBf16(Bf16FromF64(value)));
    } else {
      wrong += Bf16FromF32(value) != brain || Bf16FromF64(value) != brain;
    }
  }
  CHECK_EQ(wrong, 0);
}

// The nearest of the two neighbours, ties to the even one; found by their distances in exact
// arithmetic.
template <typename ToFloat>
bool IsNearest(double value, uint16_t got, ToFloat to_float) {
  const double here = to_float(got);
  const double distance = std::abs(here - value);
  for (const int step : {-1, 1}) {
    const auto other = static_cast<uint16_t>(got + step);
    const double there = to_float(other);
    if (!std::isfinite(there)) continue;
    const double other_distance = std::abs(there - value);
    if (other_distance < distance || (other_distance == distance && here != there && got % 2 != 0))
      return false;
  }
  return true;
}

TEST(RoundsToNearestEven) {
  std::mt19937_64 random(1);
  int wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    // f16's whole range with its subnormals; every fourth near a tie.
    double value = std::ldexp(static_cast<double>(random() >> 11), -53) *
                   std::ldexp(1.0, static_cast<int>(random() % 42) - 27);
    if (i % 4 == 0) {
      const auto bits = static_cast<uint16_t>(random() % 0x7BFF);
      value = (ValueOfF16(bits) + ValueOfF16(static_cast<uint16_t>(bits + 1))) / 2;
      if (i % 8 == 0) value = std::nextafter(value, i % 16 == 0 ? 0.0 : 1e9);
    }
    if (value >= 65504) continue;
    wrong += !IsNearest(value, F16FromF64(value), F32FromF16);
    wrong +=
        !IsNearest(static_cast<float>(value), F16FromF32(static_cast<float>(value)), F32FromF16);
    wrong += !IsNearest(value, Bf16FromF64(value), F32FromBf16);
    wrong +=
        !IsNearest(static_cast<float>(value), Bf16FromF32(static_cast<float>(value)), F32FromBf16);
  }
  CHECK_EQ(wrong, 0);
}

TEST(Overflows) {
  CHECK_EQ(F16FromF32(65519.996f), 0x7BFF);
  CHECK_EQ(F16FromF32(65520.0f), 0x7C00);
  CHECK_EQ(F16FromF64(-1e300), 0xFC00);
  CHECK_EQ(Bf16FromF32(3.4e38f), 0x7F80);
  CHECK_EQ(Bf16FromF64(1e300), 0x7F80);
  CHECK_EQ(F16FromF64(std::ldexp(1.0, -25)), 0);
  CHECK_EQ(F16FromF64(std::nextafter(std::ldexp(1.0, -25), 1.0)), 1);
  CHECK_EQ(F16FromF64(-std::ldexp(1.0, -30)), 0x8000);
}

TEST(TheCompilersNames) {
  CHECK_EQ(std::bit_cast<uint16_t>(__truncsfbf2(1.5f)), 0x3FC0);
  CHECK_EQ(std::bit_cast<uint16_t>(__truncdfbf2(-2.0)), 0xC000);
  CHECK_EQ(std::bit_cast<uint16_t>(__truncsfhf2(1.5f)), 0x3E00);
  CHECK_EQ(std::bit_cast<uint16_t>(__truncdfhf2(-2.0)), 0xC000);
  CHECK_EQ(__extendhfsf2(std::bit_cast<_Float16>(uint16_t{0x3E00})), 1.5f);
}

// The vectors' conversions give what the scalar ones give, of any length.
TEST(RunsAgree) {
  std::vector<uint16_t> half(65536), back(65536);
  std::vector<float> wide(65536);
  const ConvertKernels& kernels = BestConvertKernels();
  for (const bool brain : {false, true}) {
    for (uint32_t i = 0; i < 65536; ++i) half[i] = static_cast<uint16_t>(i);
    for (const int64_t n : {65536, 1, 7, 8, 31, 65529}) {
      (brain ? kernels.bf16_to_f32 : kernels.f16_to_f32)(half.data(), n, wide.data());
      (brain ? kernels.f32_to_bf16 : kernels.f32_to_f16)(wide.data(), n, back.data());
      int wrong = 0;
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        const float expected = brain ? F32FromBf16(half[i]) : F32FromF16(half[i]);
        if (std::isnan(expected)) {
          wrong += !std::isnan(wide[i]) ||
                   !std::isnan(brain ? F32FromBf16(back[i]) : F32FromF16(back[i]));
        } else {
          wrong += wide[i] != expected || back[i] != half[i];
        }
      }
      CHECK_EQ(wrong, 0);
    }
  }
  std::mt19937 random(1);
  for (float& value : wide) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
  int wrong = 0;
  kernels.f32_to_bf16(wide.data(), 65536, half.data());
  kernels.f32_to_f16(wide.data(), 65536, back.data());
  for (size_t i = 0; i < wide.size(); ++i) {
    if (std::isnan(wide[i])) continue;
    wrong += half[i] != Bf16FromF32(wide[i]) || back[i] != F16FromF32(wide[i]);
  }
  CHECK_EQ(wrong, 0);
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
