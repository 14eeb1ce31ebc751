// Which version of StableHLO programs should arrive in.
#ifndef TREADLE_PLUGIN_API_STABLEHLO_VERSION_H_
#define TREADLE_PLUGIN_API_STABLEHLO_VERSION_H_

#include <array>
#include <cstdint>

#include "plugin/runtime/options.h"

namespace treadle::api {

// Three numbers that live as long as the process: kOldestStablehlo, until a client was created with
// the option stablehlo_version. The compiler reads programs with the MLIR of the JAX that calls, so
// the newest version that it can read is the one that JAX has; JAX asks after it has created the
// client.
const int64_t* CurrentStablehloVersion();
void SetCurrentStablehloVersion(const std::array<int64_t, 3>& version);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_STABLEHLO_VERSION_H_
