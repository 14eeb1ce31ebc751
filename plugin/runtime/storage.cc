#include "plugin/runtime/storage.h"

#include <utility>

namespace treadle {

Ref<Storage> Storage::Allocate(Ref<Arena> arena, size_t size) {
  Ref<Storage> storage = Deferred(std::move(arena), size);
  storage->Materialize();
  return storage;
}

Ref<Storage> Storage::View(void* data, size_t size, bool writable,
                           std::function<void()> on_release) {
  Ref<Storage> storage = Deferred(nullptr, size);
  storage->data_ = data;
  storage->writable_ = writable;
  storage->on_release_ = std::move(on_release);
  return storage;
}

Storage::~Storage() {
  if (block_) arena_->Free(std::move(block_));
  if (on_release_) on_release_();
}

void Storage::Materialize() {
  block_ = arena_->Allocate(size_);
  data_ = block_.data();
}

bool Storage::TakeOver(Storage& donor) {
  if (!donor.writable_ || donor.size_ < size_ || !donor.IsUnique()) return false;
  data_ = std::exchange(donor.data_, nullptr);
  block_ = std::move(donor.block_);
  arena_ = std::move(donor.arena_);
  on_release_ = std::exchange(donor.on_release_, nullptr);
  return true;
}

}  // namespace treadle
