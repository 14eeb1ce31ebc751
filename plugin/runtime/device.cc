#include "plugin/runtime/device.h"

#include <algorithm>
#include <utility>

#include "plugin/runtime/client.h"
#include "plugin/runtime/device_queue.h"
#include "plugin/runtime/error.h"

namespace treadle {

const char* MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kPinnedHost:
      return "pinned_host";
    case MemoryKind::kUnpinnedHost:
      return "unpinned_host";
    case MemoryKind::kDevice:
      break;
  }
  return "device";
}

Memory::Memory(Device& device, MemoryKind kind)
    : device_(device),
      kind_(kind),
      id_(device.id() * kNumMemoryKinds + static_cast<int>(kind)),
      debug_string_(StrCat("TreadleMemory(id=", id_, ", kind=", MemoryKindName(kind),
                           ", device=", device.id(), ")")) {}

Memory::~Memory() {
  for (const UserData& entry : user_data_) {
    if (entry.deleter != nullptr) entry.deleter(entry.data);
  }
}

void* Memory::user_data(const void* key) const {
  const std::lock_guard lock(mutex_);
  for (const UserData& entry : user_data_) {
    if (entry.key == key) return entry.data;
  }
  return nullptr;
}

void Memory::set_user_data(const void* key, void* data, UserDataDeleter deleter) {
  UserData old{key, nullptr, nullptr};
  {
    const std::lock_guard lock(mutex_);
    const auto entry = std::find_if(user_data_.begin(), user_data_.end(),
                                    [&](const UserData& e) { return e.key == key; });
    if (entry == user_data_.end()) {
      user_data_.push_back({key, data, deleter});
    } else {
      old = std::exchange(*entry, {key, data, deleter});
    }
  }
  // The caller's code runs with no lock held.
  if (old.deleter != nullptr) old.deleter(old.data);
}

DeviceDescription DeviceDescription::Of(int id, int process_index) {
  return {id, process_index, "Treadle CPU",
          StrCat("TreadleCpuDevice(id=", id, ", process_index=", process_index, ")"),
          StrCat("TreadleCpuDevice(id=", id, ")")};
}

Device::Device(Client& client, DeviceDescription& description, int local_hardware_id)
    : client_(client),
      description_(description),
      local_hardware_id_(local_hardware_id),
      arena_(IsAddressable() ? Ref<Arena>::Make() : nullptr),
      queue_(IsAddressable() ? Ref<DeviceQueue>::Make() : nullptr) {
  if (!IsAddressable()) return;
  for (size_t kind = 0; kind < memories_.size(); ++kind) {
    memories_[kind] = std::make_unique<Memory>(*this, static_cast<MemoryKind>(kind));
    memory_faces_[kind] = memories_[kind]->api_face();
  }
}

Device::~Device() {
  if (queue_) queue_->Close();
}

void Device::CheckAddressable(const char* purpose) const {
  if (IsAddressable()) return;
  throw InvalidArgument(description_.to_string, " belongs to process ", description_.process_index,
                        " and this is process ", client_.process_index(), ", so it cannot be used ",
                        purpose, "; jax.local_devices() are those of this process");
}

}  // namespace treadle
