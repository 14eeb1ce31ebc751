// Scratch memory that a thread keeps between calls, so that work in small pieces does not fault in
// fresh pages each time.
#ifndef TREADLE_PLUGIN_RUNTIME_THREAD_SCRATCH_H_
#define TREADLE_PLUGIN_RUNTIME_THREAD_SCRATCH_H_

#include <algorithm>
#include <cstddef>

#include "plugin/runtime/memory_block.h"

namespace treadle {

// For thread_local variables, one per use: a second Get gives the same memory.
class ThreadScratch {
 public:
  // At least `bytes`, contents undefined, until the next Get or Trim.
  void* Get(size_t bytes) {
    // Doubling, so that slowly growing requests do not allocate each time.
    if (block_.size() < bytes) {
      const size_t wanted = std::max(bytes, std::min(2 * block_.size(), kKeep));
      block_ = HostBlock();
      block_ = HostBlock(wanted);
    }
    return block_.data();
  }

  // Ends a use: returns what is too much to keep.
  void Trim() {
    if (block_.size() > kKeep) block_ = HostBlock();
  }

 private:
  static constexpr size_t kKeep = size_t{8} << 20;

  HostBlock block_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_THREAD_SCRATCH_H_
