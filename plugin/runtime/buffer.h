// An array on a device, as the caller of the API holds it.
#ifndef TREADLE_PLUGIN_RUNTIME_BUFFER_H_
#define TREADLE_PLUGIN_RUNTIME_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "plugin/runtime/device.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/event.h"
#include "plugin/runtime/ref.h"
#include "plugin/runtime/shape.h"
#include "plugin/runtime/storage.h"

namespace treadle {

// PJRT_HostBufferSemantics.
enum class HostSemantics {
  kImmutableOnlyDuringCall,
  kImmutableUntilTransferCompletes,
  kImmutableZeroCopy,
  kMutableZeroCopy,
};

// Where an array starts on the host and how it is laid out; no strides mean dense row-major.
struct HostArray {
  const void* data;
  std::span<const int64_t> byte_strides;
};

// What a reader needs: the bytes, and the event after which they may be read.
struct BufferContents {
  Ref<Storage> storage;
  Ref<Event> ready;
};

// Everything but the contents is fixed. The contents are the buffer's until it is deleted or given
// away; what reads them meanwhile holds references of its own, so deleting never waits and never
// pulls memory from under a reader.
class Buffer {
 public:
  Buffer(Memory& memory, ElementType type, std::span<const int64_t> dims, size_t byte_size,
         BufferContents contents)
      : memory_(memory),
        type_(type),
        byte_size_(byte_size),
        dims_(dims),
        contents_(std::move(contents)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // `*done` becomes ready when `host` may be changed or freed: at once if it was copied, with the
  // buffer's memory if it was not. It is not copied when the semantics allow that and it is dense
  // and as aligned as compiled code expects.
  static std::unique_ptr<Buffer> FromHost(Memory& memory, ElementType type,
                                          std::span<const int64_t> dims, HostArray host,
                                          HostSemantics semantics, Ref<Event>* done);
  // Memory of any contents.
  static std::unique_ptr<Buffer> Uninitialized(Memory& memory, ElementType type,
                                               std::span<const int64_t> dims);
  // Memory that whoever holds `ready` is going to fill before setting it.
  static std::unique_ptr<Buffer> Pending(Memory& memory, ElementType type,
                                         std::span<const int64_t> dims, Ref<Event> ready);
  // No memory at all: using it gives `error`.
  static std::unique_ptr<Buffer> Failed(Memory& memory, ElementType type,
                                        std::span<const int64_t> dims, Error error);
  // Memory of someone else, who wants `on_release` called when it is not needed any more. Throws
  // INVALID_ARGUMENT when it is not aligned.
  static std::unique_ptr<Buffer> ViewOf(Memory& memory, ElementType type,
                                        std::span<const int64_t> dims, void* data,
                                        std::function<void()> on_release);

  Memory& memory() const { return memory_; }
  Device& device() const { return memory_.device(); }
  ElementType type() const { return type_; }
  std::span<const int64_t> dims() const { return dims_.span(); }
  size_t byte_size() const { return byte_size_; }

  bool IsDeleted() const { return deleted_.load(std::memory_order_acquire); }
  void Delete();
  // Throws INVALID_ARGUMENT when the buffer is deleted.
  BufferContents Contents() const;
  // Contents that are the caller's alone, unless someone reads them right now; the buffer is
  // deleted.
  BufferContents GiveAway();
  // An event with an error when the buffer is deleted.
  Ref<Event> ReadyEvent() const;

  // Both return at once; the event says when `dst` is filled, and with which error it was not.
  // `strides` as in HostArray.
  Ref<Event> CopyToHost(void* dst, std::span<const int64_t> strides) const;
  Ref<Event> CopyRawToHost(void* dst, size_t offset, size_t size) const;
  // On another memory the new buffer shares the bytes, since they are immutable host memory either
  // way; on the same one the caller wants a copy.
  std::unique_ptr<Buffer> CopyTo(Memory& memory) const;
  // The same bytes with another shape. Throws INVALID_ARGUMENT when the sizes differ.
  std::unique_ptr<Buffer> Bitcast(ElementType type, std::span<const int64_t> dims) const;
  // A buffer of the same contents that is ready only when `dependency` is too; this one is deleted.
  std::unique_ptr<Buffer> DonateAfter(Ref<Event> dependency);

  // While the count is above zero the memory stays where it is, also after Delete or donation.
  // Decreasing it at zero throws INVALID_ARGUMENT.
  void IncreaseExternalReferences();
  void DecreaseExternalReferences();
  // Waits until there is something to point to.
  void* Data() const;

 private:
  [[noreturn]] void ThrowDeleted() const;

  Memory& memory_;
  const ElementType type_;
  const size_t byte_size_;
  const Dims dims_;

  std::atomic<bool> deleted_{false};
  mutable std::mutex mutex_;
  BufferContents contents_;          // guarded by mutex_
  int64_t external_references_ = 0;  // guarded by mutex_
  Ref<Storage> pinned_;              // guarded by mutex_; set while external_references_ > 0
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_BUFFER_H_
