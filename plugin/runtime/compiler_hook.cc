#include "plugin/runtime/compiler_hook.h"

#include <atomic>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/python.h"

namespace treadle {

namespace {

// What TreadleEmitFn writes to. Nothing may be thrown through the compiler's frames, so a failed
// copy is remembered.
struct Sink {
  std::string bytes;
  int calls = 0;
  bool out_of_memory = false;
};

void Emit(void* sink, const char* bytes, uint64_t size) {
  auto* const out = static_cast<Sink*>(sink);
  ++out->calls;
  try {
    out->bytes.assign(bytes, size);
  } catch (const std::exception&) {
    out->out_of_memory = true;
  }
}

}  // namespace

CompilerHook::CompilerHook(int64_t compile_fn, int64_t enabled_flag)
    : compile_fn_(reinterpret_cast<TreadleCompileFn>(compile_fn)),
      enabled_(reinterpret_cast<const int32_t*>(enabled_flag)) {}

std::string CompilerHook::Compile(const CompileInput& input) const {
  if (input.format != "mlir") {
    throw InvalidArgument("program format '", input.format,
                          "' is not supported; send StableHLO, as format 'mlir'");
  }
  if (input.program.empty()) throw InvalidArgument("the program is empty");
  if (enabled_ != nullptr && __atomic_load_n(enabled_, __ATOMIC_ACQUIRE) == 0) {
    throw FailedPrecondition("the Python interpreter that holds the compiler is shutting down");
  }
  TreadleCompileFn compile = compile_fn_;
  if (compile == nullptr) {
    // Remembered for the process: the address does not change, and looking it up takes the GIL.
    static std::atomic<TreadleCompileFn> found{nullptr};
    compile = found.load(std::memory_order_acquire);
    if (compile == nullptr) {
      compile = reinterpret_cast<TreadleCompileFn>(CompileFunctionFromPython());
      found.store(compile, std::memory_order_release);
    }
  }

  TreadleCompileRequest request{};
  request.struct_size = sizeof(request);
  request.num_devices = static_cast<uint32_t>(input.num_devices);
  request.program = input.program.data();
  request.program_size = input.program.size();
  request.format = input.format.data();
  request.format_size = input.format.size();
  request.options = input.options.data();
  request.options_size = input.options.size();
  request.cpu_features = HostCpuFeatures();
  request.num_threads = static_cast<uint32_t>(input.num_threads);

  Sink sink;
  const int32_t code = compile(&request, &sink, Emit);
  if (sink.out_of_memory) throw ResourceExhausted("no memory for the compiled program");
  if (code != 0) {
    throw Error(code, sink.bytes.empty()
                          ? StrCat("the compiler failed with code ", code, " and no message")
                          : std::move(sink.bytes));
  }
  if (sink.calls != 1) {
    throw Internal("the compiler delivered ", sink.calls, " artifacts instead of one");
  }
  return std::move(sink.bytes);
}

}  // namespace treadle
