// The closed table of functions that compiled code may call (TREADLE_RUNTIME_SYMBOLS).
#ifndef TREADLE_PLUGIN_RUNTIME_SYMBOLS_H_
#define TREADLE_PLUGIN_RUNTIME_SYMBOLS_H_

#include <string_view>

namespace treadle {

// The address of `name`, or nullptr if it is not in the table. Never looks elsewhere.
void* FindRuntimeSymbol(std::string_view name);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_SYMBOLS_H_
