#include "plugin/runtime/buffer.h"

#include <cstring>
#include <utility>

#include "plugin/runtime/error.h"
#include "plugin/runtime/strided_copy.h"

namespace treadle {

namespace {

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kAlignment == 0; }

// Calls `copy(storage)` when `contents` are ready, at once if they are, and tells the event that it
// returns.
template <typename Copy>
Ref<Event> CopyWhenReady(const BufferContents& contents, Copy copy) {
  if (contents.ready->IsReady() && contents.ready->error() == nullptr) {
    copy(*contents.storage);
    return Event::Ready();
  }
  Ref<Event> done = Event::Pending();
  contents.ready->OnReady([done, storage = contents.storage, copy](const Error* error) {
    if (error != nullptr) {
      done->SetError(*error);
    } else {
      copy(*storage);
      done->SetReady();
    }
  });
  return done;
}

}  // namespace

std::unique_ptr<Buffer> Buffer::FromHost(Memory& memory, ElementType type,
                                         std::span<const int64_t> dims, HostArray host,
                                         HostSemantics semantics, Ref<Event>* done) {
  const size_t size = ArrayBytes(type, dims);
  const size_t element = ElementBytes(type);
  if (!host.byte_strides.empty() && host.byte_strides.size() != dims.size()) {
    throw InvalidArgument("a host array of ", dims.size(), " dimensions with ",
                          host.byte_strides.size(), " byte strides");
  }
  if (host.data == nullptr && size != 0) throw InvalidArgument("the host array has no data");
  const bool dense = host.byte_strides.empty() || IsDense(dims, element, host.byte_strides);
  const bool may_alias = semantics == HostSemantics::kImmutableZeroCopy ||
                         semantics == HostSemantics::kMutableZeroCopy;
  if (may_alias && dense && size != 0 && IsAligned(host.data)) {
    *done = Event::Pending();
    Ref<Storage> storage = Storage::View(const_cast<void*>(host.data), size,
                                         semantics == HostSemantics::kMutableZeroCopy,
                                         [event = *done] { event->SetReady(); });
    return std::make_unique<Buffer>(memory, type, dims, size,
                                    BufferContents{std::move(storage), Event::Ready()});
  }
  Ref<Storage> storage = Storage::Allocate(memory.device().arena(), size);
  if (size == 0) {
    // Nothing to copy, and perhaps nothing to copy from.
  } else if (dense) {
    std::memcpy(storage->data(), host.data, size);
  } else {
    StridedCopy(dims, element, host.data, host.byte_strides, storage->data(),
                DenseStrides(dims, element));
  }
  *done = Event::Ready();
  return std::make_unique<Buffer>(memory, type, dims, size,
                                  BufferContents{std::move(storage), Event::Ready()});
}

std::unique_ptr<Buffer> Buffer::Uninitialized(Memory& memory, ElementType type,
                                              std::span<const int64_t> dims) {
  return Pending(memory, type, dims, Event::Ready());
}

std::unique_ptr<Buffer> Buffer::Pending(Memory& memory, ElementType type,
                                        std::span<const int64_t> dims, Ref<Event> ready) {
  const size_t size = ArrayBytes(type, dims);
  Ref<Storage> storage = Storage::Allocate(memory.device().arena(), size);
  return std::make_unique<Buffer>(memory, type, dims, size,
                                  BufferContents{std::move(storage), std::move(ready)});
}

std::unique_ptr<Buffer> Buffer::Failed(Memory& memory, ElementType type,
                                       std::span<const int64_t> dims, Error error) {
  const size_t size = ArrayBytes(type, dims);
  return std::make_unique<Buffer>(memory, type, dims, size,
                                  BufferContents{Storage::Deferred(memory.device().arena(), size),
                                                 Event::Failed(std::move(error))});
}

std::unique_ptr<Buffer> Buffer::ViewOf(Memory& memory, ElementType type,
                                       std::span<const int64_t> dims, void* data,
                                       std::function<void()> on_release) {
  const size_t size = ArrayBytes(type, dims);
  if (size != 0 && !IsAligned(data)) {
    throw InvalidArgument("the memory at ", data, " is not aligned to ", kAlignment,
                          " bytes, which compiled programs rely on; copy the array instead");
  }
  return std::make_unique<Buffer>(
      memory, type, dims, size,
      BufferContents{Storage::View(data, size, /*writable=*/true, std::move(on_release)),
                     Event::Ready()});
}

void Buffer::ThrowDeleted() const {
  throw InvalidArgument("the buffer of shape ", ShapeName(type_, dims()), " on ",
                        device().description().to_string, " has been deleted or donated");
}

void Buffer::Delete() { GiveAway(); }

BufferContents Buffer::Contents() const {
  {
    const std::lock_guard lock(mutex_);
    if (contents_.storage) return contents_;
  }
  ThrowDeleted();
}

BufferContents Buffer::GiveAway() {
  const std::lock_guard lock(mutex_);
  deleted_.store(true, std::memory_order_release);
  return std::exchange(contents_, {});
}

Ref<Event> Buffer::ReadyEvent() const {
  try {
    return Contents().ready;
  } catch (const Error& error) {
    return Event::Failed(error);
  }
}

Ref<Event> Buffer::CopyToHost(void* dst, std::span<const int64_t> strides) const {
  const size_t element = ElementBytes(type_);
  if (strides.empty() || IsDense(dims(), element, strides))
    return CopyRawToHost(dst, 0, byte_size_);
  return CopyWhenReady(
      Contents(), [dst, element, to = std::vector<int64_t>(strides.begin(), strides.end()),
                   dims = std::vector<int64_t>(dims().begin(), dims().end())](const Storage& from) {
        StridedCopy(dims, element, from.data(), DenseStrides(dims, element), dst, to);
      });
}

Ref<Event> Buffer::CopyRawToHost(void* dst, size_t offset, size_t size) const {
  if (offset > byte_size_ || size > byte_size_ - offset) {
    throw InvalidArgument("bytes ", offset, " to ", offset + size, " of a buffer of ", byte_size_,
                          " bytes");
  }
  return CopyWhenReady(Contents(), [dst, offset, size](const Storage& from) {
    if (size != 0) std::memcpy(dst, static_cast<const char*>(from.data()) + offset, size);
  });
}

std::unique_ptr<Buffer> Buffer::CopyTo(Memory& memory) const {
  BufferContents contents = Contents();
  if (&memory != &memory_) {
    return std::make_unique<Buffer>(memory, type_, dims(), byte_size_, std::move(contents));
  }
  Ref<Storage> copy = Storage::Allocate(memory.device().arena(), byte_size_);
  Ref<Event> ready = CopyWhenReady(contents, [copy](const Storage& from) {
    if (from.size() != 0) std::memcpy(copy->data(), from.data(), from.size());
  });
  return std::make_unique<Buffer>(memory, type_, dims(), byte_size_,
                                  BufferContents{std::move(copy), std::move(ready)});
}

std::unique_ptr<Buffer> Buffer::Bitcast(ElementType type, std::span<const int64_t> dims) const {
  if (ArrayBytes(type, dims) != byte_size_) {
    throw InvalidArgument("bitcast of ", ShapeName(type_, this->dims()), " (", byte_size_,
                          " bytes) to ", ShapeName(type, dims), " (", ArrayBytes(type, dims),
                          " bytes)");
  }
  return std::make_unique<Buffer>(memory_, type, dims, byte_size_, Contents());
}

std::unique_ptr<Buffer> Buffer::DonateAfter(Ref<Event> dependency) {
  BufferContents contents = GiveAway();
  if (!contents.storage) ThrowDeleted();
  Ref<Event> both = Event::Pending();
  // First the contents, then the dependency: an error of either is the result's.
  contents.ready->OnReady([both, dependency](const Error* error) {
    if (error != nullptr) {
      both->SetError(*error);
      return;
    }
    dependency->OnReady([both](const Error* later) {
      if (later != nullptr) {
        both->SetError(*later);
      } else {
        both->SetReady();
      }
    });
  });
  contents.ready = std::move(both);
  return std::make_unique<Buffer>(memory_, type_, dims(), byte_size_, std::move(contents));
}

void Buffer::IncreaseExternalReferences() {
  {
    const std::lock_guard lock(mutex_);
    if (contents_.storage || external_references_ > 0) {
      if (external_references_++ == 0) pinned_ = contents_.storage;
      return;
    }
  }
  ThrowDeleted();
}

void Buffer::DecreaseExternalReferences() {
  Ref<Storage> dropped;  // after the lock: its release may call the caller back
  const std::lock_guard lock(mutex_);
  if (external_references_ == 0) {
    throw InvalidArgument("the buffer has no external references to give back");
  }
  if (--external_references_ == 0) dropped = std::move(pinned_);
}

void* Buffer::Data() const {
  BufferContents contents;
  {
    const std::lock_guard lock(mutex_);
    contents = contents_;
    // Deleted, but still lent out: it was ready then, or whoever lent it has waited.
    if (!contents.storage && pinned_) return pinned_->data();
  }
  if (!contents.storage) ThrowDeleted();
  contents.ready->Wait();
  if (const Error* error = contents.ready->error()) throw *error;
  return contents.storage->data();
}

}  // namespace treadle
