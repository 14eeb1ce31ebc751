// Buffers that are filled piece by piece from the host.
#ifndef TREADLE_PLUGIN_RUNTIME_TRANSFER_MANAGER_H_
#define TREADLE_PLUGIN_RUNTIME_TRANSFER_MANAGER_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plugin/runtime/buffer.h"

namespace treadle {

// A buffer becomes ready with its last transfer, or with an error: the one that is set, or
// CANCELLED when the manager goes first. Transfers copy before they return, so their data may be
// freed then.
class TransferManager {
 public:
  struct Shape {
    ElementType type;
    std::span<const int64_t> dims;
  };

  TransferManager(Memory& memory, std::span<const Shape> shapes);
  ~TransferManager();
  TransferManager(const TransferManager&) = delete;
  TransferManager& operator=(const TransferManager&) = delete;

  size_t size() const { return entries_.size(); }
  Memory& memory() const { return memory_; }

  // All throw INVALID_ARGUMENT for an index that is out of range, and the transfers for bytes that
  // are.
  size_t BufferSize(int index) const;
  // Each buffer can be retrieved once; FAILED_PRECONDITION after that.
  std::unique_ptr<Buffer> Retrieve(int index);
  void Transfer(int index, const void* data, int64_t offset, int64_t size, bool last);
  // The whole of one buffer. `strides` as in HostArray.
  void TransferArray(int index, ElementType type, std::span<const int64_t> dims, HostArray host);
  void SetError(int index, Error error);

 private:
  struct Entry {
    BufferContents contents;
    std::unique_ptr<Buffer> buffer;  // null once it is retrieved
    ElementType type;
    Dims dims;
  };

  Entry& At(int index);
  const Entry& At(int index) const;

  Memory& memory_;
  std::mutex mutex_;  // guards the buffers in entries_
  std::vector<Entry> entries_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_TRANSFER_MANAGER_H_
