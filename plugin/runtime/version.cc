#include "plugin/runtime/version.h"

#ifndef TREADLE_VERSION
#define TREADLE_VERSION "0.0.0"  // the build passes the one of versions.toml
#endif

namespace treadle {

std::string_view TreadleVersion() { return TREADLE_VERSION; }

}  // namespace treadle
