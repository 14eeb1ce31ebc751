// Matrix products with 32 registers of 64 bytes: a tile takes 16 of them for its sums.
#include <immintrin.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/float16.h"

#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,prefer-vector-width=512")

namespace treadle {
namespace avx512 {
inline constexpr int kVectorBytes = 64;
template <typename T>
inline constexpr int kTileRows = 8;
}  // namespace avx512
#define TREADLE_KERNEL_F16C
#define TREADLE_KERNEL_NAMESPACE avx512
#include "plugin/runtime/dot/kernels.inl"
#undef TREADLE_KERNEL_NAMESPACE
}  // namespace treadle
