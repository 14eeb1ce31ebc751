// The state of one run of a program: what compiled code passes back to the treadle_* functions,
// unseen.
#ifndef TREADLE_PLUGIN_RUNTIME_RUN_H_
#define TREADLE_PLUGIN_RUNTIME_RUN_H_

#include <cstdint>
#include <string>

#include "plugin/runtime/error.h"
#include "plugin/runtime/thread_pool.h"

// Named by program_abi.h, therefore not in the namespace.
struct TreadleRun {
  explicit TreadleRun(treadle::ThreadPool& thread_pool) : pool(thread_pool) {}

  // The first error wins: later ones are usually its consequences. Called by the entry's thread
  // only.
  int32_t Fail(int32_t status, std::string message) {
    if (code == 0) {
      code = status;
      text = std::move(message);
    }
    return status;
  }

  treadle::ThreadPool& pool;
  int32_t code = 0;
  std::string text;
};

namespace treadle {

// Calls `body()` for a treadle_* function: what it throws becomes the run's error and the
// function's return value, because no exception may cross compiled frames, which have no unwind
// tables.
template <typename Body>
int32_t Guarded(TreadleRun* run, const char* what, Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    return run->Fail(error.code, StrCat(what, ": ", error.text));
  } catch (const std::exception& error) {
    return run->Fail(static_cast<int32_t>(StatusCode::kInternal), StrCat(what, ": ", error.what()));
  }
}

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_RUN_H_
