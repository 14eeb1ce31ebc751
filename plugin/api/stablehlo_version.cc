#include "plugin/api/stablehlo_version.h"

namespace treadle::api {

namespace {

using Version = std::array<int64_t, 3>;

std::array<int64_t, 3>& Current() {
  static Version version = kOldestStablehlo;
  return version;
}

}  // namespace

const int64_t* CurrentStablehloVersion() { return Current().data(); }

void SetCurrentStablehloVersion(const Version& version) {
  // Callers hold pointers to these numbers; a process has one StableHLO, so the values are written
  // once and equal after that.
  Version& current = Current();
  for (size_t i = 0; i < current.size(); ++i) {
    __atomic_store_n(&current[i], version[i], __ATOMIC_RELAXED);
  }
}

}  // namespace treadle::api
