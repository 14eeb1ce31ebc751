// Matrix products with 16 registers of 32 bytes: a tile takes 12 of them for its sums.
#include <immintrin.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/float16.h"

#pragma GCC target("avx2,fma,f16c,bmi,bmi2")

namespace treadle {
namespace avx2 {
inline constexpr int kVectorBytes = 32;
template <typename T>
inline constexpr int kTileRows = 6;
}  // namespace avx2
#define TREADLE_KERNEL_F16C
#define TREADLE_KERNEL_NAMESPACE avx2
#include "plugin/runtime/dot/kernels.inl"
#undef TREADLE_KERNEL_NAMESPACE
}  // namespace treadle
