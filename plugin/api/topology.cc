// PJRT_TopologyDescription.
#include "plugin/runtime/topology.h"

#include <string>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/named_values.h"

namespace treadle::api {

namespace {

constexpr int kMemoryKindIds[] = {
    static_cast<int>(MemoryKind::kDevice),
    static_cast<int>(MemoryKind::kPinnedHost),
    static_cast<int>(MemoryKind::kUnpinnedHost),
};
static_assert(std::size(kMemoryKindIds) == kNumMemoryKinds);

void Create(PJRT_TopologyDescription_Create_Args& args) {
  // The options say nothing about a topology, but a wrong one should not pass unnoticed.
  ClientOptions::Parse(ReadNamedValues(args.create_options, args.num_options));
  args.topology =
      Wrap(Topology::Named(View(args.topology_name, args.topology_name_size)).release());
}

void Destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  if (args.topology != nullptr) delete &Unwrap(args.topology);
}

void Name(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = kPlatformName.data();
  args.platform_name_size = kPlatformName.size();
}

void Version(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  const std::string& version = Unwrap(args.topology).platform_version();
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void DeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  const Topology& topology = Unwrap(args.topology);
  args.descriptions = Wrap(topology.devices());
  args.num_descriptions = static_cast<size_t>(topology.num_devices());
}

void Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  auto* const bytes = new std::string(Unwrap(args.topology).Serialize());
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_topology = reinterpret_cast<PJRT_SerializedTopology*>(bytes);
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* topology) {
    delete reinterpret_cast<std::string*>(topology);
  };
}

void Deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  args.topology =
      Wrap(Topology::Deserialize(View(args.serialized_topology, args.serialized_topology_size))
               .release());
}

void Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  args.fingerprint = Unwrap(args.topology).Fingerprint();
}

void MemorySpaceKindIds(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args& args) {
  args.memory_space_kind_ids = kMemoryKindIds;
  args.num_memory_space_kind_ids = std::size(kMemoryKindIds);
}

// PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace stays unimplemented: it answers with an
// xla.ShapeProto, which only makes sense for devices that have layouts of their own.

}  // namespace

void BindTopology(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_TopologyDescription_Create, Create, topology);
  TREADLE_BIND(api, PJRT_TopologyDescription_Destroy, Destroy, topology);
  TREADLE_BIND(api, PJRT_TopologyDescription_PlatformName, Name, platform_name_size);
  TREADLE_BIND(api, PJRT_TopologyDescription_PlatformVersion, Version, platform_version_size);
  TREADLE_BIND(api, PJRT_TopologyDescription_GetDeviceDescriptions, DeviceDescriptions,
               num_descriptions);
  TREADLE_BIND(api, PJRT_TopologyDescription_Serialize, Serialize, serialized_topology_deleter);
  TREADLE_BIND(api, PJRT_TopologyDescription_Deserialize, Deserialize, topology);
  TREADLE_BIND(api, PJRT_TopologyDescription_Attributes, Attributes, num_attributes);
  TREADLE_BIND(api, PJRT_TopologyDescription_Fingerprint, Fingerprint, fingerprint);
  TREADLE_BIND(api, PJRT_TopologyDescription_GetMemorySpaceKindIds, MemorySpaceKindIds,
               num_memory_space_kind_ids);
}

}  // namespace treadle::api
