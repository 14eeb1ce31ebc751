// The runtime's one thread budget: every kernel, matrix product and convolution runs on this pool.
#ifndef TREADLE_PLUGIN_RUNTIME_THREAD_POOL_H_
#define TREADLE_PLUGIN_RUNTIME_THREAD_POOL_H_

#include <cstdint>
#include <memory>
#include <type_traits>

#include "plugin/runtime/program_abi.h"

namespace treadle {

// `num_threads` counts the caller: a pool of one never starts a thread. Workers start with the
// first call that can use them, so a process that forks before that carries none.
class ThreadPool {
 public:
  // CPUs that this process may use: the affinity mask, cut to the cgroup's CPU quota (v1 and v2),
  // rounded up, at least 1.
  static int DefaultThreads();

  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls `kernel(params, begin, end)` on pieces of [0, n), each of at least `grain` iterations
  // except perhaps the last, and returns when all are done. The caller takes part. A call from
  // inside a kernel, from a forked child, or with nothing to share runs inline. Any number of
  // threads may call at once. Kernels do not throw.
  void ParallelFor(int64_t n, int64_t grain, TreadleKernelFn kernel, void* const* params);

  // The same for a callable `void(int64_t begin, int64_t end)`, which must not throw.
  template <typename Body>
  void ForRange(int64_t n, int64_t grain, Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    void* params[1] = {const_cast<void*>(static_cast<const void*>(&body))};
    ParallelFor(
        n, grain,
        [](void* const* p, int64_t begin, int64_t end) {
          (*static_cast<Callable*>(p[0]))(begin, end);
        },
        params);
  }

  // True in a thread that is inside one of ParallelFor's kernels.
  static bool InsideKernel();

 private:
  class Workers;

  const int size_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_THREAD_POOL_H_
