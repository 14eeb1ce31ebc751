// Devices and their memories. A device of Treadle is a share of the host's CPU with a queue of its
// own; all of them use one thread pool. The devices of other processes are only names here.
#ifndef TREADLE_PLUGIN_RUNTIME_DEVICE_H_
#define TREADLE_PLUGIN_RUNTIME_DEVICE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/runtime/arena.h"
#include "plugin/runtime/ref.h"

namespace treadle {

class Client;
class Device;
class DeviceQueue;

// What JAX calls memory kinds. They differ in name only, since the device's memory is the host's;
// JAX programs that ask for pinned_host work unchanged.
enum class MemoryKind : int { kDevice = 0, kPinnedHost = 1, kUnpinnedHost = 2 };
inline constexpr int kNumMemoryKinds = 3;
const char* MemoryKindName(MemoryKind kind);

class Memory {
 public:
  Memory(Device& device, MemoryKind kind);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int id() const { return id_; }
  MemoryKind kind() const { return kind_; }
  const char* kind_name() const { return MemoryKindName(kind_); }
  Device& device() const { return device_; }
  const std::string& debug_string() const { return debug_string_; }

  // Values that the C API's caller attaches, by the address that serves as key.
  using UserDataDeleter = void (*)(void*);
  void* user_data(const void* key) const;
  void set_user_data(const void* key, void* data, UserDataDeleter deleter);

  // What the C API's handle of a memory points to: the API wants a function table in the first
  // word. The API layer sets it and nobody else looks.
  struct ApiFace {
    const void* table;
    Memory* memory;
  };
  ApiFace* api_face() { return &api_face_; }

 private:
  struct UserData {
    const void* key;
    void* data;
    UserDataDeleter deleter;
  };

  ApiFace api_face_{nullptr, this};
  Device& device_;
  const MemoryKind kind_;
  const int id_;
  const std::string debug_string_;
  mutable std::mutex mutex_;
  std::vector<UserData> user_data_;  // guarded by mutex_
};

// The part of a device that exists without hardware: in a topology.
struct DeviceDescription {
  int id;
  int process_index;
  std::string kind, debug_string, to_string;

  static DeviceDescription Of(int id, int process_index);
};

class Device {
 public:
  static constexpr int kRemote = -1;

  // `local_hardware_id` counts the devices of this process; kRemote for those of others.
  Device(Client& client, DeviceDescription& description, int local_hardware_id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Client& client() const { return client_; }
  int id() const { return description_.id; }
  DeviceDescription& description() const { return description_; }
  int local_hardware_id() const { return local_hardware_id_; }
  bool IsAddressable() const { return local_hardware_id_ != kRemote; }
  // Throws INVALID_ARGUMENT, saying what the device was wanted for, unless it is this process's.
  void CheckAddressable(const char* purpose) const;

  // Only of addressable devices, from here on.
  Memory& memory(MemoryKind kind) const { return *memories_[static_cast<size_t>(kind)]; }
  Memory& default_memory() const { return memory(MemoryKind::kDevice); }
  const std::array<Memory::ApiFace*, kNumMemoryKinds>& memory_faces() const {
    return memory_faces_;
  }
  const Ref<Arena>& arena() const { return arena_; }
  DeviceQueue& queue() const { return *queue_; }
  // For lists of the devices that can address one of its memories.
  Device* const* self() const { return &self_; }

 private:
  Client& client_;
  DeviceDescription& description_;
  const int local_hardware_id_;
  Device* const self_ = this;
  const Ref<Arena> arena_;
  const Ref<DeviceQueue> queue_;
  std::array<std::unique_ptr<Memory>, kNumMemoryKinds> memories_;
  std::array<Memory::ApiFace*, kNumMemoryKinds> memory_faces_{};  // the same, for the C API
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DEVICE_H_
