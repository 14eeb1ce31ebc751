#include "plugin/runtime/run.h"

#include "plugin/runtime/program_abi.h"

extern "C" {

void treadle_parallel_for(TreadleRun* run, TreadleKernelFn kernel, void* const* params, int64_t n,
                          int64_t grain) {
  run->pool.ParallelFor(n, grain, kernel, params);
}

void treadle_fail(TreadleRun* run, int32_t code, const char* message, uint64_t size) {
  run->Fail(code, std::string(message, size));
}

}  // extern "C"
