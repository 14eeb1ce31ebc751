// Linked before the runtime's own, this makes a plugin that says it is another version of Treadle.
#include "plugin/runtime/version.h"

namespace treadle {

std::string_view TreadleVersion() { return "99.1.0"; }

}  // namespace treadle
