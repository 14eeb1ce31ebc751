#include "plugin/runtime/arena.h"

#include <algorithm>

namespace treadle {

namespace {

// Sizes are rounded so that nearly equal requests find each other's blocks, at a loss of at most an
// eighth.
size_t RoundUp(size_t bytes) {
  size_t step = 4096;
  while (step * 16 <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

void RaiseTo(std::atomic<int64_t>& maximum, int64_t value) {
  int64_t seen = maximum.load(std::memory_order_relaxed);
  while (seen < value && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void Arena::Count(int64_t bytes) {
  const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > peak_.load(std::memory_order_relaxed)) RaiseTo(peak_, now);
  if (bytes > largest_.load(std::memory_order_relaxed)) RaiseTo(largest_, bytes);
  num_allocs_.fetch_add(1, std::memory_order_relaxed);
}

HostBlock Arena::TakeKept(size_t rounded) {
  const std::lock_guard lock(mutex_);
  // The newest first: its pages are the likeliest to be in a cache.
  for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
    if (it->size() != rounded) continue;
    HostBlock block = std::move(*it);
    kept_.erase(std::next(it).base());
    bytes_kept_ -= rounded;
    return block;
  }
  return HostBlock();
}

HostBlock Arena::Allocate(size_t bytes) {
  HostBlock block;
  if (bytes < kSmallest) {
    block = HostBlock(bytes);
  } else {
    const size_t rounded = RoundUp(bytes);
    block = TakeKept(rounded);
    if (!block) {
      try {
        block = HostBlock(rounded);
      } catch (...) {
        // What is kept may be what is missing.
        std::vector<HostBlock> dropped;
        {
          const std::lock_guard lock(mutex_);
          dropped.swap(kept_);
          bytes_kept_ = 0;
        }
        dropped.clear();
        block = HostBlock(rounded);
      }
    }
  }
  Count(static_cast<int64_t>(block.size()));
  return block;
}

void Arena::Free(HostBlock block) noexcept {
  if (!block) return;
  const size_t size = block.size();
  in_use_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  if (size < kSmallest) return;
  const size_t limit = std::min(kKeep, static_cast<size_t>(peak_.load(std::memory_order_relaxed)));
  if (size > limit) return;
  // Destroyed after the lock is released: giving pages back takes long.
  std::vector<HostBlock> dropped;
  const std::lock_guard lock(mutex_);
  try {
    dropped.reserve(kept_.size() + 1);
    kept_.push_back(std::move(block));
  } catch (...) {
    return;  // no memory to remember it in: it dies here
  }
  bytes_kept_ += size;
  auto keep = kept_.begin();
  for (; bytes_kept_ > limit; ++keep) {
    bytes_kept_ -= keep->size();
    dropped.push_back(std::move(*keep));
  }
  kept_.erase(kept_.begin(), keep);
}

ArenaStats Arena::Stats() const {
  const std::lock_guard lock(mutex_);
  return {in_use_.load(std::memory_order_relaxed), peak_.load(std::memory_order_relaxed),
          num_allocs_.load(std::memory_order_relaxed), largest_.load(std::memory_order_relaxed),
          static_cast<int64_t>(bytes_kept_)};
}

void Arena::ClearPeak() {
  peak_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  largest_.store(0, std::memory_order_relaxed);
  num_allocs_.store(0, std::memory_order_relaxed);
}

}  // namespace treadle
