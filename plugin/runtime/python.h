// The Python interpreter of this process, if it has one. The plugin links no libpython: the
// functions are looked up when they are needed.
#ifndef TREADLE_PLUGIN_RUNTIME_PYTHON_H_
#define TREADLE_PLUGIN_RUNTIME_PYTHON_H_

#include <cstdint>

namespace treadle {

// Imports treadle.compile_hook and asks it for the address of its TreadleCompileFn. Throws
// FAILED_PRECONDITION, with Python's own message if there is one, when the process has no running
// interpreter or the import fails.
uintptr_t CompileFunctionFromPython();

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_PYTHON_H_
