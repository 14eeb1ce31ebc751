#include "plugin/runtime/dot/kernels.h"

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/program_abi.h"

namespace treadle {

namespace avx512 {
template <typename T>
const GemmKernels<T>& Kernels();
const ConvertKernels& Conversions();
}  // namespace avx512
namespace avx2 {
template <typename T>
const GemmKernels<T>& Kernels();
const ConvertKernels& Conversions();
}  // namespace avx2
namespace baseline {
template <typename T>
const GemmKernels<T>& Kernels();
const ConvertKernels& Conversions();
}  // namespace baseline

namespace {

constexpr uint64_t Bit(TreadleCpuFeature feature) { return uint64_t{1} << feature; }

// What the `#pragma GCC target` of kernels_avx2.cc and kernels_avx512.cc let the compiler use.
constexpr uint64_t kAvx2 = Bit(TREADLE_CPU_AVX2) | Bit(TREADLE_CPU_FMA) | Bit(TREADLE_CPU_F16C) |
                           Bit(TREADLE_CPU_BMI) | Bit(TREADLE_CPU_BMI2);
constexpr uint64_t kAvx512 = kAvx2 | Bit(TREADLE_CPU_AVX512F) | Bit(TREADLE_CPU_AVX512BW) |
                             Bit(TREADLE_CPU_AVX512DQ) | Bit(TREADLE_CPU_AVX512VL);

bool Has(uint64_t features) { return (HostCpuFeatures() & features) == features; }

template <typename T>
const GemmKernels<T>& Choose() {
  if (Has(kAvx512)) return avx512::Kernels<T>();
  if (Has(kAvx2)) return avx2::Kernels<T>();
  return baseline::Kernels<T>();
}

}  // namespace

template <typename T>
const GemmKernels<T>& BestGemmKernels() {
  static const GemmKernels<T>& best = Choose<T>();
  return best;
}

const ConvertKernels& BestConvertKernels() {
  static const ConvertKernels& best = Has(kAvx512) ? avx512::Conversions()
                                      : Has(kAvx2) ? avx2::Conversions()
                                                   : baseline::Conversions();
  return best;
}

template const GemmKernels<float>& BestGemmKernels<float>();
template const GemmKernels<double>& BestGemmKernels<double>();
template const GemmKernels<uint16_t>& BestGemmKernels<uint16_t>();
template const GemmKernels<uint32_t>& BestGemmKernels<uint32_t>();
template const GemmKernels<uint64_t>& BestGemmKernels<uint64_t>();

}  // namespace treadle
