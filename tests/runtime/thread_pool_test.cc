// The thread pool: every iteration once, whoever calls and however often; forks; the size of the
// budget.
#include "plugin/runtime/thread_pool.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plugin/runtime/cpu_quota.h"
#include "tests/cc/check.h"

namespace treadle {
namespace {

// How many of n iterations did not run exactly once.
int64_t WrongCounts(ThreadPool& pool, int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(n));
  pool.ForRange(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      counts[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
  });
  int64_t wrong = 0;
  for (const std::atomic<int>& count : counts) wrong += count.load() != 1;
  return wrong;
}

TEST(RunsEveryIterationOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 2, 7, 100, 12345}) {
      for (const int64_t grain : {-1, 0, 1, 3, 50, 100000})
        CHECK_EQ(WrongCounts(pool, n, grain), 0);
    }
  }
}

TEST(PiecesRespectTheGrain) {
  ThreadPool pool(4);
  std::atomic<int> small{0}, pieces{0};
  pool.ForRange(1000, 64, [&](int64_t begin, int64_t end) {
    ++pieces;
    if (end - begin < 64 && end != 1000) ++small;
  });
  CHECK_EQ(small.load(), 0);
  CHECK(pieces.load() > 1);
  // No larger than the grain: one plain call on the caller's own thread.
  const std::thread::id caller = std::this_thread::get_id();
  bool same = false;
  int calls = 0;
  pool.ForRange(64, 64, [&](int64_t, int64_t) {
    same = std::this_thread::get_id() == caller;
    ++calls;
  });
  CHECK(same);
  CHECK_EQ(calls, 1);
}

TEST(NestedCallsRunInline) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0}, moved{0};
  CHECK(!ThreadPool::InsideKernel());
  pool.ForRange(20, 1, [&](int64_t begin, int64_t end) {
    const std::thread::id outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      pool.ForRange(100, 1, [&](int64_t b, int64_t e) {
        total += e - b;
        if (std::this_thread::get_id() != outer || !ThreadPool::InsideKernel()) ++moved;
      });
    }
  });
  CHECK_EQ(total.load(), 2000);
  CHECK_EQ(moved.load(), 0);
  CHECK(!ThreadPool::InsideKernel());
}

TEST(ServesManyCallers) {
  ThreadPool pool(3);
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) wrong += WrongCounts(pool, 10 + 97 * t + i, 1 + i % 20);
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(StaysWithinTheBudget) {
  ThreadPool pool(3);
  std::atomic<int> running{0}, most{0};
  for (int i = 0; i < 50; ++i) {
    pool.ForRange(100, 1, [&](int64_t, int64_t) {
      const int now = ++running;
      int before = most.load();
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      for (int spin = 0; spin < 500; ++spin) __builtin_ia32_pause();
      --running;
    });
  }
  CHECK(most.load() <= 3);
}

TEST(PoolsComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(4);
    if (i % 2 == 0) CHECK_EQ(WrongCounts(pool, 1000, 10), 0);
  }
}

TEST(ForkedChildrenRunInline) {
  ThreadPool pool(3);
  CHECK_EQ(WrongCounts(pool, 1000, 1), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The workers are not here: the call must neither wait for them nor crash.
    _exit(WrongCounts(pool, 1000, 1) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_EQ(WrongCounts(pool, 1000, 1), 0);
}

TEST(DefaultFollowsTheAffinity) {
  cpu_set_t before, one;
  CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  CHECK_EQ(ThreadPool::DefaultThreads(), 1);
  sched_setaffinity(0, sizeof before, &before);
  CHECK(ThreadPool::DefaultThreads() >= 1);
  CHECK(ThreadPool::DefaultThreads() <= CPU_COUNT(&before));
}

// A folder of files for CpuQuota, deleted at the end.
class FakeCgroups {
 public:
  FakeCgroups() {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base == nullptr ? "/tmp" : base) + "/cgroup-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
  }
  ~FakeCgroups() { CHECK_EQ(std::system(("rm -r " + folder_).c_str()), 0); }

  void Write(const std::string& path, const std::string& text) const {
    const std::string full = folder_ + "/" + path;
    CHECK_EQ(std::system(("mkdir -p $(dirname " + full + ")").c_str()), 0);
    std::ofstream(full) << text;
  }
  double Quota() const { return CpuQuota(folder_ + "/self", folder_ + "/mount"); }

 private:
  std::string folder_;
};

TEST(ReadsQuotasOfVersion2) {
  const FakeCgroups files;
  CHECK_EQ(files.Quota(), 0.0);
  files.Write("self", "0::/outer/inner\n");
  CHECK_EQ(files.Quota(), 0.0);
  files.Write("mount/cpu.max", "max 100000\n");
  files.Write("mount/outer/inner/cpu.max", "max 100000\n");
  CHECK_EQ(files.Quota(), 0.0);
  files.Write("mount/outer/cpu.max", "150000 100000\n");
  CHECK_EQ(files.Quota(), 1.5);
  files.Write("mount/outer/inner/cpu.max", "50000 100000\n");
  CHECK_EQ(files.Quota(), 0.5);
  files.Write("mount/outer/inner/cpu.max", "nonsense\n");
  CHECK_EQ(files.Quota(), 1.5);
}

TEST(ReadsQuotasOfVersion1) {
  const FakeCgroups files;
  files.Write("self", "4:memory:/a\n3:cpu,cpuacct:/docker/abc\n");
  // In a container the mount's root is the group itself.
  files.Write("mount/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  files.Write("mount/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(files.Quota(), 3.0);
  files.Write("mount/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
  files.Write("mount/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(files.Quota(), 3.0);
  files.Write("mount/cpu/docker/cpu.cfs_quota_us", "200000\n");
  files.Write("mount/cpu/docker/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(files.Quota(), 2.0);
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
