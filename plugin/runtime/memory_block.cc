#include "plugin/runtime/memory_block.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "plugin/runtime/error.h"

namespace treadle {
namespace {

// What a block of size 0 points to: aligned, never read, never freed.
alignas(kAlignment) char empty_block[kAlignment];

// A huge page: blocks that are mapped ask for them, which halves the time of first touch.
constexpr size_t kHugePage = size_t{2} << 20;

size_t MappedSize(size_t size) { return (size + kHugePage - 1) & ~(kHugePage - 1); }

}  // namespace

HostBlock::HostBlock(size_t size) : size_(size) {
  if (size == 0) {
    data_ = empty_block;
    return;
  }
  // Beyond this no address space has room, and rounding up would overflow.
  if (size <= SIZE_MAX / 4) {
    if (size >= kMapThreshold) {
      void* mapped = mmap(nullptr, MappedSize(size), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mapped != MAP_FAILED) {
        data_ = mapped;
        madvise(mapped, MappedSize(size), MADV_HUGEPAGE);  // advice: failing is fine
      }
    } else {
      data_ = std::aligned_alloc(kAlignment, (size + kAlignment - 1) & ~(kAlignment - 1));
    }
  }
  if (data_ == nullptr) {
    throw ResourceExhausted("Cannot allocate ", size, " bytes of host memory.");
  }
}

void HostBlock::Free() noexcept {
  if (data_ == nullptr || data_ == empty_block) return;
  if (size_ >= kMapThreshold) {
    munmap(data_, MappedSize(size_));
  } else {
    std::free(data_);
  }
  data_ = nullptr;
}

}  // namespace treadle
