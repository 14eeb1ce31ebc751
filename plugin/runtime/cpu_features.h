// Which of TREADLE_CPU_FEATURES the CPU that runs this process has.
#ifndef TREADLE_PLUGIN_RUNTIME_CPU_FEATURES_H_
#define TREADLE_PLUGIN_RUNTIME_CPU_FEATURES_H_

#include <cstdint>
#include <string>

namespace treadle {

// Bits of TREADLE_CPU_FEATURES; a feature counts only when the operating system saves its registers
// too. Computed once.
uint64_t HostCpuFeatures();

// "avx512f, avx512bw": LLVM's names of the bits that are set; unknown bits as "bit 40".
std::string CpuFeatureNames(uint64_t features);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CPU_FEATURES_H_
