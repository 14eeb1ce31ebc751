// The bytes of a buffer, apart from its shape and its place: what several buffers, views and
// running programs share.
#ifndef TREADLE_PLUGIN_RUNTIME_STORAGE_H_
#define TREADLE_PLUGIN_RUNTIME_STORAGE_H_

#include <cstddef>
#include <functional>

#include "plugin/runtime/arena.h"
#include "plugin/runtime/memory_block.h"
#include "plugin/runtime/ref.h"

namespace treadle {

// The contents never change once the event that defines them is ready, unless the storage has one
// holder and that holder is a program to which it was given away (donation). Whoever reads holds a
// reference while reading; that is the whole protocol.
class Storage final : public RefCounted<Storage> {
 public:
  // Memory that does not exist yet: `Materialize` or `TakeOver` makes it, before the defining event
  // is set.
  static Ref<Storage> Deferred(Ref<Arena> arena, size_t size) {
    return Ref<Storage>::Make(std::move(arena), size);
  }
  static Ref<Storage> Allocate(Ref<Arena> arena, size_t size);
  // Someone else's memory; `on_release` runs when the last reference is gone, in the thread that
  // dropped it.
  static Ref<Storage> View(void* data, size_t size, bool writable,
                           std::function<void()> on_release);

  void* data() const { return data_; }
  size_t size() const { return size_; }

  // Throws RESOURCE_EXHAUSTED.
  void Materialize();
  // Tries to become the owner of `donor`'s memory: possible when the caller holds its only
  // reference, its bytes may be written and it is large enough.
  bool TakeOver(Storage& donor);

 private:
  friend class Ref<Storage>;
  friend class RefCounted<Storage>;
  Storage(Ref<Arena> arena, size_t size) : size_(size), arena_(std::move(arena)) {}
  ~Storage();

  void* data_ = nullptr;
  const size_t size_;
  bool writable_ = true;
  Ref<Arena> arena_;
  HostBlock block_;
  std::function<void()> on_release_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_STORAGE_H_
