// Host memory as the runtime hands it out: 64-byte aligned, owned, movable.
#ifndef TREADLE_PLUGIN_RUNTIME_MEMORY_BLOCK_H_
#define TREADLE_PLUGIN_RUNTIME_MEMORY_BLOCK_H_

#include <cstddef>
#include <utility>

namespace treadle {

// Compiled code uses aligned vector loads on every buffer: this is its promise.
inline constexpr size_t kAlignment = 64;

// A block of uninitialised memory. Blocks of `kMapThreshold` bytes and more come straight from the
// kernel, so that their pages go back to it when the block dies; smaller ones from the C heap. A
// block of size 0 still has a valid, aligned, non-null address.
class HostBlock {
 public:
  static constexpr size_t kMapThreshold = size_t{32} << 20;

  HostBlock() = default;
  // Throws RESOURCE_EXHAUSTED naming `size`.
  explicit HostBlock(size_t size);
  ~HostBlock() { Free(); }
  HostBlock(HostBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HostBlock& operator=(HostBlock&& other) noexcept {
    if (this != &other) {
      Free();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void Free() noexcept;

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_MEMORY_BLOCK_H_
