// PJRT_LoadedExecutable and running it.
#include <span>
#include <string>

#include "plugin/api/bind.h"
#include "plugin/api/executable.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"

namespace treadle::api {

namespace {

void Destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  if (args.executable != nullptr) delete &Unwrap(args.executable);
}

void GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable(Unwrap(args.loaded_executable).executable());
}

void AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  const std::vector<Device*>& devices = Unwrap(args.executable).devices();
  args.addressable_devices = Wrap(devices.data());
  args.num_addressable_devices = devices.size();
}

void LogicalIds(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  static_assert(sizeof(LogicalId) == sizeof(PJRT_LogicalDeviceIds) &&
                offsetof(LogicalId, partition) == offsetof(PJRT_LogicalDeviceIds, partition));
  const std::vector<LogicalId>& ids = Unwrap(args.executable).logical_ids();
  // The field lacks a const; callers read it.
  args.addressable_device_logical_ids =
      reinterpret_cast<PJRT_LogicalDeviceIds*>(const_cast<LogicalId*>(ids.data()));
  args.num_addressable_device_logical_ids = ids.size();
}

// No bytes mean that the executable runs on any device.
void GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  const LoadedExecutable& executable = Unwrap(args.executable);
  auto* const bytes =
      new std::string(executable.portable() ? "" : executable.assignment().Serialize());
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_device_assignment = reinterpret_cast<PJRT_DeviceAssignmentSerialized*>(bytes);
  args.serialized_device_assignment_deleter = [](PJRT_DeviceAssignmentSerialized* serialized) {
    delete reinterpret_cast<std::string*>(serialized);
  };
}

void Delete(PJRT_LoadedExecutable_Delete_Args& args) { Unwrap(args.executable).Delete(); }

void IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = Unwrap(args.executable).IsDeleted();
}

void Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  const std::string_view fingerprint = Unwrap(args.executable).fingerprint();
  args.executable_fingerprint = fingerprint.data();
  args.executable_fingerprint_size = fingerprint.size();
}

std::span<const int64_t> NonDonatable(const PJRT_ExecuteOptions* options) {
  if (options == nullptr ||
      !TREADLE_HAS(*options, PJRT_ExecuteOptions, num_non_donatable_input_indices)) {
    return {};
  }
  if (options->num_send_ops != 0 || options->num_recv_ops != 0) {
    throw Unimplemented("executions with send or receive callbacks");
  }
  return DimsOf(options->non_donatable_input_indices, options->num_non_donatable_input_indices);
}

void Execute(PJRT_LoadedExecutable_Execute_Args& args) {
  const bool has_device = TREADLE_HAS(args, PJRT_LoadedExecutable_Execute_Args, execute_device);
  ExecuteRequest request{
      .argument_lists =
          std::span(reinterpret_cast<Buffer* const* const*>(args.argument_lists), args.num_devices),
      .num_args = args.num_args,
      .output_lists = reinterpret_cast<Buffer** const*>(args.output_lists),
      .complete_events = reinterpret_cast<Event**>(args.device_complete_events),
      .non_donatable = NonDonatable(args.options),
      .device =
          has_device && args.execute_device != nullptr ? &Unwrap(args.execute_device) : nullptr,
  };
  Unwrap(args.executable).Execute(request);
}

// An execution's context carries what extensions attach to it; without an extension that does, it
// is only an address.
void CreateContext(PJRT_ExecuteContext_Create_Args& args) {
  args.context = reinterpret_cast<PJRT_ExecuteContext*>(new char);
}

void DestroyContext(PJRT_ExecuteContext_Destroy_Args& args) {
  delete reinterpret_cast<char*>(args.context);
}

// PJRT_CopyToDeviceStream_* stay unimplemented: such streams only come from receive callbacks.

}  // namespace

void BindExecute(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_LoadedExecutable_Destroy, Destroy, executable);
  TREADLE_BIND(api, PJRT_LoadedExecutable_GetExecutable, GetExecutable, executable);
  TREADLE_BIND(api, PJRT_LoadedExecutable_AddressableDevices, AddressableDevices,
               num_addressable_devices);
  TREADLE_BIND(api, PJRT_LoadedExecutable_AddressableDeviceLogicalIds, LogicalIds,
               num_addressable_device_logical_ids);
  TREADLE_BIND(api, PJRT_LoadedExecutable_GetDeviceAssignment, GetDeviceAssignment,
               serialized_device_assignment_deleter);
  TREADLE_BIND(api, PJRT_LoadedExecutable_Delete, Delete, executable);
  TREADLE_BIND(api, PJRT_LoadedExecutable_IsDeleted, IsDeleted, is_deleted);
  TREADLE_BIND(api, PJRT_LoadedExecutable_Fingerprint, Fingerprint, executable_fingerprint_size);
  TREADLE_BIND(api, PJRT_LoadedExecutable_Execute, Execute, device_complete_events);
  TREADLE_BIND(api, PJRT_ExecuteContext_Create, CreateContext, context);
  TREADLE_BIND(api, PJRT_ExecuteContext_Destroy, DestroyContext, context);
}

}  // namespace treadle::api
