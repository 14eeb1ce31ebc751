// PJRT_Device and PJRT_DeviceDescription.
#include "plugin/runtime/device.h"

#include <string>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/header_version.h"

namespace treadle::api {

namespace {

void SetText(const std::string& text, const char** data, size_t* size) {
  *data = text.data();
  *size = text.size();
}

void DescriptionId(PJRT_DeviceDescription_Id_Args& args) {
  args.id = Unwrap(args.device_description).id;
}

void DescriptionProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = Unwrap(args.device_description).process_index;
}

// None: what JAX knows to look for describes accelerators.
void DescriptionAttributes(PJRT_DeviceDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void DescriptionKind(PJRT_DeviceDescription_Kind_Args& args) {
  SetText(Unwrap(args.device_description).kind, &args.device_kind, &args.device_kind_size);
}

void DescriptionDebugString(PJRT_DeviceDescription_DebugString_Args& args) {
  SetText(Unwrap(args.device_description).debug_string, &args.debug_string,
          &args.debug_string_size);
}

void DescriptionToString(PJRT_DeviceDescription_ToString_Args& args) {
  SetText(Unwrap(args.device_description).to_string, &args.to_string, &args.to_string_size);
}

void GetDescription(PJRT_Device_GetDescription_Args& args) {
  args.device_description = Wrap(&Unwrap(args.device).description());
}

void IsAddressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = Unwrap(args.device).IsAddressable();
}

void LocalHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  static_assert(Device::kRemote == -1);  // the API's value for "not known"
  args.local_hardware_id = Unwrap(args.device).local_hardware_id();
}

void AddressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  const Device& device = Unwrap(args.device);
  args.memories = Wrap(device.memory_faces().data());
  args.num_memories = device.IsAddressable() ? device.memory_faces().size() : 0;
}

void DefaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = Wrap(&DefaultMemoryOf(Unwrap(args.device)));
}

void GetAttributes(PJRT_Device_GetAttributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
  args.device_attributes = nullptr;
  args.attributes_deleter = [](PJRT_Device_Attributes*) {};
}

// Without a limit: the memory is the host's, shared with everything else that runs.
void MemoryStats(PJRT_Device_MemoryStats_Args& args) {
  const Device& device = Unwrap(args.device);
  device.CheckAddressable("to ask for its memory's statistics");
  const ArenaStats stats = device.arena()->Stats();
  args.bytes_in_use = stats.bytes_in_use;
  const auto set = [](int64_t value, int64_t* field, bool* is_set) {
    *field = value;
    *is_set = true;
  };
  set(stats.peak_bytes_in_use, &args.peak_bytes_in_use, &args.peak_bytes_in_use_is_set);
  set(stats.num_allocs, &args.num_allocs, &args.num_allocs_is_set);
  set(stats.largest_alloc, &args.largest_alloc_size, &args.largest_alloc_size_is_set);
  set(stats.bytes_in_use + stats.bytes_kept, &args.pool_bytes, &args.pool_bytes_is_set);
  args.bytes_limit_is_set = false;
  args.bytes_reserved_is_set = false;
  args.peak_bytes_reserved_is_set = false;
  args.bytes_reservable_limit_is_set = false;
  args.largest_free_block_bytes_is_set = false;
  args.peak_pool_bytes_is_set = false;
  TREADLE_SINCE_0_113(
      if (TREADLE_HAS(args, PJRT_Device_MemoryStats_Args, peak_allocated_bytes_is_set)) {
        args.peak_allocated_bytes_is_set = false;
      })
}

void ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args& args) {
  const Device& device = Unwrap(args.device);
  device.CheckAddressable("to clear its memory's statistics");
  device.arena()->ClearPeak();
}

// PJRT_Device_PoisonExecution and PJRT_Device_CreateAsyncTrackingEvent stay unimplemented: launches
// carry no ids that a caller could poison them by, and nothing here would read tracking events.

}  // namespace

void BindDevice(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_DeviceDescription_Id, DescriptionId, id);
  TREADLE_BIND(api, PJRT_DeviceDescription_ProcessIndex, DescriptionProcessIndex, process_index);
  TREADLE_BIND(api, PJRT_DeviceDescription_Attributes, DescriptionAttributes, attributes);
  TREADLE_BIND(api, PJRT_DeviceDescription_Kind, DescriptionKind, device_kind_size);
  TREADLE_BIND(api, PJRT_DeviceDescription_DebugString, DescriptionDebugString, debug_string_size);
  TREADLE_BIND(api, PJRT_DeviceDescription_ToString, DescriptionToString, to_string_size);
  TREADLE_BIND(api, PJRT_Device_GetDescription, GetDescription, device_description);
  TREADLE_BIND(api, PJRT_Device_IsAddressable, IsAddressable, is_addressable);
  TREADLE_BIND(api, PJRT_Device_LocalHardwareId, LocalHardwareId, local_hardware_id);
  TREADLE_BIND(api, PJRT_Device_AddressableMemories, AddressableMemories, num_memories);
  TREADLE_BIND(api, PJRT_Device_DefaultMemory, DefaultMemory, memory);
  TREADLE_BIND(api, PJRT_Device_GetAttributes, GetAttributes, attributes_deleter);
  TREADLE_BIND(api, PJRT_Device_MemoryStats, MemoryStats, peak_pool_bytes_is_set);
  TREADLE_BIND(api, PJRT_Device_ClearMemoryStats, ClearMemoryStats, device);
}

}  // namespace treadle::api
