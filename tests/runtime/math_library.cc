// The runtime's matrix product and convolution as a shared library, for tests and measurements
// through ctypes.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/run.h"
#include "plugin/runtime/thread_pool.h"

namespace {

treadle::ThreadPool& PoolOf(int threads) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<treadle::ThreadPool>> pools;
  std::lock_guard lock(mutex);
  auto& pool = pools[threads];
  if (!pool) pool = std::make_unique<treadle::ThreadPool>(threads);
  return *pool;
}

int32_t Report(const TreadleRun& run, int32_t code, char* error, size_t capacity) {
  const size_t size = std::min(run.text.size(), capacity - 1);
  std::memcpy(error, run.text.data(), size);
  error[size] = '\0';
  return code;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t TestDot(int threads,
                                                                  const TreadleDot* dot,
                                                                  const void* lhs, const void* rhs,
                                                                  void* out, char* error,
                                                                  size_t capacity) {
  TreadleRun run(PoolOf(threads));
  return Report(run, treadle_dot(&run, dot, lhs, rhs, out), error, capacity);
}

extern "C" __attribute__((visibility("default"))) int32_t TestConvolution(
    int threads, const TreadleConvolution* convolution, const void* lhs, const void* rhs, void* out,
    char* error, size_t capacity) {
  TreadleRun run(PoolOf(threads));
  return Report(run, treadle_convolution(&run, convolution, lhs, rhs, out), error, capacity);
}
