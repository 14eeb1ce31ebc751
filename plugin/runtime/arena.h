// Where the memory of a device's buffers comes from: it counts what is in use and keeps freed
// blocks for the next buffer.
#ifndef TREADLE_PLUGIN_RUNTIME_ARENA_H_
#define TREADLE_PLUGIN_RUNTIME_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "plugin/runtime/memory_block.h"
#include "plugin/runtime/ref.h"

namespace treadle {

struct ArenaStats {
  int64_t bytes_in_use, peak_bytes_in_use, num_allocs, largest_alloc, bytes_kept;
};

// Shared by the device and by every block that came from it, so that buffers may outlive their
// client.
//
// Blocks of kSmallest bytes and more are kept when they are freed, because fresh pages cost a fault
// and a zeroing each (0.1 us per KiB measured, several times what an elementwise program takes to
// fill them). What is kept is at most kKeep bytes and, in sum, never more than the peak that was in
// use.
class Arena final : public RefCounted<Arena> {
 public:
  static constexpr size_t kSmallest = size_t{64} << 10;
  static constexpr size_t kKeep = size_t{1} << 30;

  // Throws RESOURCE_EXHAUSTED. The block may be larger than `bytes`.
  HostBlock Allocate(size_t bytes);
  void Free(HostBlock block) noexcept;

  ArenaStats Stats() const;
  void ClearPeak();

 private:
  friend class Ref<Arena>;
  friend class RefCounted<Arena>;
  Arena() = default;
  ~Arena() = default;

  void Count(int64_t bytes);
  HostBlock TakeKept(size_t rounded);

  std::atomic<int64_t> in_use_{0}, peak_{0}, num_allocs_{0}, largest_{0};
  mutable std::mutex mutex_;
  std::vector<HostBlock> kept_;  // guarded by mutex_; oldest first
  size_t bytes_kept_ = 0;        // guarded by mutex_
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ARENA_H_
