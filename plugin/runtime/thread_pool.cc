#include "plugin/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "plugin/runtime/cpu_quota.h"

namespace treadle {
namespace {

// How often a waiting thread looks before it sleeps: some 20 us. Long enough to catch the next
// kernel of a program, short enough not to matter to whoever else wants the CPU.
constexpr int kSpins = 400;

// Pieces per thread: more than one, so that a thread that was preempted or got the slow pieces does
// not hold up the others.
constexpr int64_t kPiecesPerThread = 4;

thread_local bool inside_kernel = false;

// Counts the forks between the process that loaded the library and this one. A pool whose workers
// belong to an earlier generation has none.
std::atomic<uint32_t> fork_generation{0};

void WatchForks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr,
                   [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  });
}

void Pause() { __builtin_ia32_pause(); }

// One ParallelFor; lives on its caller's stack.
struct Job {
  const TreadleKernelFn kernel;
  void* const* const params;
  const int64_t n;
  const int64_t piece;
  std::atomic<int64_t> next{0};
  // Workers inside Work(). Written with the pool's mutex held; the caller spins on it without.
  std::atomic<int> helpers{0};
  bool caller_sleeps = false;  // guarded by the pool's mutex

  bool HasWork() const { return next.load(std::memory_order_relaxed) < n; }

  void Work() {
    inside_kernel = true;
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= n) break;
      kernel(params, begin, std::min(n, begin + piece));
    }
    inside_kernel = false;
  }
};

}  // namespace

// The threads of a pool and the jobs they can help with.
class ThreadPool::Workers {
 public:
  explicit Workers(int count) : count_(count) {}

  ~Workers() {
    if (!Alive()) {
      // A forked child: the threads do not exist here, and their handles cannot be joined.
      for (std::thread& thread : threads_) thread.detach();
      return;
    }
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      epoch_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // False in a forked child of the process that made the pool.
  bool Alive() const { return generation_ == fork_generation.load(std::memory_order_relaxed); }

  void Run(Job& job) {
    bool wake;
    {
      std::lock_guard lock(mutex_);
      if (threads_.empty()) Start();
      jobs_.push_back(&job);
      epoch_.fetch_add(1, std::memory_order_release);
      wake = sleepers_ > 0;
    }
    if (wake) {
      // Wake no more threads than there are pieces for.
      if (job.n <= 2 * job.piece) {
        wake_.notify_one();
      } else {
        wake_.notify_all();
      }
    }
    job.Work();
    {
      std::lock_guard lock(mutex_);
      jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    }
    for (int spin = 0; spin < kSpins; ++spin) {
      if (job.helpers.load(std::memory_order_acquire) == 0) return;
      Pause();
    }
    std::unique_lock lock(mutex_);
    job.caller_sleeps = true;
    done_.wait(lock, [&] { return job.helpers.load(std::memory_order_acquire) == 0; });
  }

 private:
  void Start() {
    // Signals are the application's business: Python wants Ctrl-C in its own thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      threads_.reserve(static_cast<size_t>(count_));
      for (int i = 0; i < count_; ++i) {
        threads_.emplace_back([this] { Loop(); });
        // The kernel allows 15 characters.
        const std::string name = ("treadle-" + std::to_string(i)).substr(0, 15);
        pthread_setname_np(threads_.back().native_handle(), name.c_str());
      }
    } catch (const std::exception&) {
      // The system gives no more threads: those that started, and the caller, do the work.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // With mutex_ held: a job that has pieces left, or nullptr.
  Job* Take() {
    for (Job* job : jobs_) {
      if (job->HasWork()) return job;
    }
    return nullptr;
  }

  void Loop() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (Job* job = Take()) {
        job->helpers.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        job->Work();
        lock.lock();
        // The caller may return, and the job be gone, as soon as it sees 0.
        const bool caller_sleeps = job->caller_sleeps;
        if (job->helpers.fetch_sub(1, std::memory_order_release) == 1 && caller_sleeps) {
          done_.notify_all();
        }
        continue;
      }
      const uint32_t seen = epoch_.load(std::memory_order_relaxed);
      lock.unlock();
      for (int spin = 0; spin < kSpins && epoch_.load(std::memory_order_relaxed) == seen; ++spin) {
        Pause();
      }
      lock.lock();
      if (epoch_.load(std::memory_order_relaxed) == seen) {
        ++sleepers_;
        wake_.wait(lock, [&] { return epoch_.load(std::memory_order_relaxed) != seen; });
        --sleepers_;
      }
    }
  }

  const int count_;
  const uint32_t generation_ = fork_generation.load(std::memory_order_relaxed);
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<uint32_t> epoch_{0};  // changes, under mutex_, with every new job
  std::vector<Job*> jobs_;          // guarded by mutex_, as is the rest
  std::vector<std::thread> threads_;
  int sleepers_ = 0;
  bool stopping_ = false;
};

int ThreadPool::DefaultThreads() {
  cpu_set_t cpus;
  int count = 0;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) count = CPU_COUNT(&cpus);
  if (count <= 0) count = static_cast<int>(std::thread::hardware_concurrency());
  const double quota = CpuQuota();
  if (quota > 0 && quota < count) {
    count = static_cast<int>(quota);
    if (count < quota) ++count;
  }
  return std::max(count, 1);
}

ThreadPool::ThreadPool(int num_threads) : size_(std::max(num_threads, 1)) {
  WatchForks();
  if (size_ > 1) workers_ = std::make_unique<Workers>(size_ - 1);
}

ThreadPool::~ThreadPool() = default;

bool ThreadPool::InsideKernel() { return inside_kernel; }

void ThreadPool::ParallelFor(int64_t n, int64_t grain, TreadleKernelFn kernel,
                             void* const* params) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (n <= grain || size_ == 1 || inside_kernel || !workers_->Alive()) {
    kernel(params, 0, n);
    return;
  }
  const int64_t pieces = std::min((n - 1) / grain + 1, kPiecesPerThread * size_);
  Job job{kernel, params, n, std::max(grain, (n - 1) / pieces + 1)};
  workers_->Run(job);
}

}  // namespace treadle
