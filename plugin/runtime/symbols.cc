#include "plugin/runtime/symbols.h"

#include <string_view>
#include <unordered_map>

#include "plugin/runtime/program_abi.h"

// A second, typeless name for every function of the table: taking the address of, say, `exp` by its
// C++ name would need its type, and the conversions that LLVM invents are declared nowhere.
#define TREADLE_DECLARE(name) extern "C" void treadle_symbol_##name() __asm__(#name);
TREADLE_RUNTIME_SYMBOLS(TREADLE_DECLARE)
#undef TREADLE_DECLARE

namespace treadle {

void* FindRuntimeSymbol(std::string_view name) {
  static const std::unordered_map<std::string_view, void*> table = {
#define TREADLE_ENTRY(symbol) {#symbol, reinterpret_cast<void*>(&treadle_symbol_##symbol)},
      TREADLE_RUNTIME_SYMBOLS(TREADLE_ENTRY)
#undef TREADLE_ENTRY
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace treadle
