// The version of Treadle that this plugin is.
#ifndef TREADLE_PLUGIN_RUNTIME_VERSION_H_
#define TREADLE_PLUGIN_RUNTIME_VERSION_H_

#include <string_view>

namespace treadle {

// As in versions.toml. The function is alone in its file, so that a test can link a plugin of
// another version.
std::string_view TreadleVersion();

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_VERSION_H_
