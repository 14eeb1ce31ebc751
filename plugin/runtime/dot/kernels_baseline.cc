// Matrix products with what every x86-64 has, 16 registers of 16 bytes: a tile takes 8 of them for
// its sums.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/float16.h"

namespace treadle {
namespace baseline {
inline constexpr int kVectorBytes = 16;
template <typename T>
inline constexpr int kTileRows = 4;
}  // namespace baseline
#define TREADLE_KERNEL_NAMESPACE baseline
#include "plugin/runtime/dot/kernels.inl"
#undef TREADLE_KERNEL_NAMESPACE
}  // namespace treadle
