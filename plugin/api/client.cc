// PJRT_Client, without compiling and without making buffers.
#include "plugin/runtime/client.h"

#include <algorithm>
#include <memory>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/key_value_store.h"
#include "plugin/api/named_values.h"
#include "plugin/api/stablehlo_version.h"

namespace treadle::api {

namespace {

void Create(PJRT_Client_Create_Args& args) {
  const ClientOptions options =
      ClientOptions::Parse(ReadNamedValues(args.create_options, args.num_options));
  ClientContext context{nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
  // Only with num_nodes: without it the caller leaves the callbacks uninitialised.
  if (options.num_nodes > 0) context.store = KeyValueStoreOf(args);
  auto client = std::make_unique<Client>(options, context);
  for (Memory::ApiFace* face : client->memory_faces()) face->table = MemoryFunctions();
  if (options.stablehlo_version[0] != 0) SetCurrentStablehloVersion(options.stablehlo_version);
  args.client = Wrap(client.release());
}

void Destroy(PJRT_Client_Destroy_Args& args) {
  if (args.client != nullptr) delete &Unwrap(args.client);
}

void PlatformName(PJRT_Client_PlatformName_Args& args) {
  args.platform_name = kPlatformName.data();
  args.platform_name_size = kPlatformName.size();
}

void ProcessIndex(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = Unwrap(args.client).process_index();
}

void PlatformVersionOf(PJRT_Client_PlatformVersion_Args& args) {
  const std::string& version = Unwrap(args.client).topology().platform_version();
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void TopologyOf(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = Wrap(&Unwrap(args.client).topology());
}

void Devices(PJRT_Client_Devices_Args& args) {
  const std::vector<Device*>& devices = Unwrap(args.client).devices();
  args.devices = Wrap(devices.data());
  args.num_devices = devices.size();
}

void AddressableDevices(PJRT_Client_AddressableDevices_Args& args) {
  const std::vector<Device*>& devices = Unwrap(args.client).addressable_devices();
  args.addressable_devices = Wrap(devices.data());
  args.num_addressable_devices = devices.size();
}

void LookupDevice(PJRT_Client_LookupDevice_Args& args) {
  args.device = Wrap(&Unwrap(args.client).LookupDevice(args.id));
}

void LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  args.addressable_device =
      Wrap(&Unwrap(args.client).LookupAddressableDevice(args.local_hardware_id));
}

void AddressableMemories(PJRT_Client_AddressableMemories_Args& args) {
  const Client& client = Unwrap(args.client);
  args.addressable_memories = Wrap(client.memory_faces().data());
  args.num_addressable_memories = client.memory_faces().size();
}

void DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const DeviceAssignment assignment =
      Unwrap(args.client).DefaultAssignment(args.num_replicas, args.num_partitions);
  if (args.default_assignment_size < assignment.device_ids.size()) {
    throw FailedPrecondition("default_assignment has room for ", args.default_assignment_size,
                             " devices; ", assignment.device_ids.size(), " are needed");
  }
  std::copy(assignment.device_ids.begin(), assignment.device_ids.end(), args.default_assignment);
}

// JAX's client aborts the process when this fails. There is nothing to learn from it while programs
// run in one process.
void UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args&) {}

// All host memory can be copied from and to at full speed, so there is nothing to map.
void DmaMap(PJRT_Client_DmaMap_Args&) {}
void DmaUnmap(PJRT_Client_DmaUnmap_Args&) {}

}  // namespace

void BindClient(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Client_Create, Create, client);
  TREADLE_BIND(api, PJRT_Client_Destroy, Destroy, client);
  TREADLE_BIND(api, PJRT_Client_PlatformName, PlatformName, platform_name_size);
  TREADLE_BIND(api, PJRT_Client_ProcessIndex, ProcessIndex, process_index);
  TREADLE_BIND(api, PJRT_Client_PlatformVersion, PlatformVersionOf, platform_version_size);
  TREADLE_BIND(api, PJRT_Client_TopologyDescription, TopologyOf, topology);
  TREADLE_BIND(api, PJRT_Client_Devices, Devices, num_devices);
  TREADLE_BIND(api, PJRT_Client_AddressableDevices, AddressableDevices, num_addressable_devices);
  TREADLE_BIND(api, PJRT_Client_LookupDevice, LookupDevice, device);
  TREADLE_BIND(api, PJRT_Client_LookupAddressableDevice, LookupAddressableDevice,
               addressable_device);
  TREADLE_BIND(api, PJRT_Client_AddressableMemories, AddressableMemories, num_addressable_memories);
  TREADLE_BIND(api, PJRT_Client_DefaultDeviceAssignment, DefaultDeviceAssignment,
               default_assignment);
  TREADLE_BIND(api, PJRT_Client_UpdateGlobalProcessInfo, UpdateGlobalProcessInfo, client);
  TREADLE_BIND(api, PJRT_Client_DmaMap, DmaMap, size);
  TREADLE_BIND(api, PJRT_Client_DmaUnmap, DmaUnmap, data);
}

}  // namespace treadle::api
