// The way from PJRT_Client_Compile to the compiler, which is Python.
#ifndef TREADLE_PLUGIN_RUNTIME_COMPILER_HOOK_H_
#define TREADLE_PLUGIN_RUNTIME_COMPILER_HOOK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "plugin/runtime/program_abi.h"

namespace treadle {

struct CompileInput {
  std::string_view program, format, options;
  int num_devices;
  int num_threads;
};

class CompilerHook {
 public:
  // Both are addresses from the client's create options, zero when absent.
  CompilerHook(int64_t compile_fn, int64_t enabled_flag);

  // The artifact. Calls the compiler in this thread, holding no lock: it takes the GIL itself,
  // which is safe whether or not the caller has it. Throws what the compiler reports,
  // INVALID_ARGUMENT for a format other than "mlir", and FAILED_PRECONDITION when there is no
  // compiler: no create option named it, and this process has no Python that can import it.
  std::string Compile(const CompileInput& input) const;

 private:
  TreadleCompileFn compile_fn_;
  const int32_t* enabled_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_COMPILER_HOOK_H_
