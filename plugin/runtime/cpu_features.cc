#include "plugin/runtime/cpu_features.h"

#include "plugin/runtime/program_abi.h"

namespace treadle {
namespace {

uint64_t Detect() {
  __builtin_cpu_init();
  uint64_t features = 0;
// GCC's names are LLVM's here, and its check includes whether the operating system saves the
// registers (XCR0).
#define TREADLE_DETECT(name, bit, llvm) \
  if (__builtin_cpu_supports(llvm)) features |= uint64_t{1} << (bit);
  TREADLE_CPU_FEATURES(TREADLE_DETECT)
#undef TREADLE_DETECT
  return features;
}

}  // namespace

uint64_t HostCpuFeatures() {
  static const uint64_t features = Detect();
  return features;
}

std::string CpuFeatureNames(uint64_t features) {
  std::string names;
  const auto add = [&](const std::string& name) {
    if (!names.empty()) names += ", ";
    names += name;
  };
#define TREADLE_NAME(name, bit, llvm)      \
  if (features & (uint64_t{1} << (bit))) { \
    add(llvm);                             \
    features &= ~(uint64_t{1} << (bit));   \
  }
  TREADLE_CPU_FEATURES(TREADLE_NAME)
#undef TREADLE_NAME
  for (int bit = 0; features != 0; ++bit, features >>= 1) {
    if (features & 1) add("bit " + std::to_string(bit));
  }
  return names;
}

}  // namespace treadle
