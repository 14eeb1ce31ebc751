#include "plugin/runtime/client.h"

#include <chrono>
#include <map>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/handshake.h"

namespace treadle {

namespace {

std::shared_ptr<const Executable> CompileWith(const CompilerHook& compiler,
                                              const CompileInput& input,
                                              const CompileOptions& options) {
  return std::make_shared<Executable>(Program::Load(compiler.Compile(input)), options,
                                      std::string(input.options));
}

// How many devices each process has.
std::vector<int> ProcessDevices(const ClientOptions& options, const ClientContext& context) {
  if (options.num_nodes <= 1) return {options.num_devices};
  if (context.store == nullptr) {
    throw InvalidArgument("num_nodes is ", options.num_nodes,
                          ", and there is no key-value store (kv_get_callback and "
                          "kv_put_callback) in which the processes could meet");
  }
  ProcessRecord self = ProcessRecord::OfThisProcess();
  self.node_id = options.node_id;
  self.num_nodes = options.num_nodes;
  self.num_devices = options.num_devices;
  self.pjrt_major = context.pjrt_major;
  self.pjrt_minor = context.pjrt_minor;
  self.compiler_build_id = options.compiler_build_id;
  std::vector<int> counts;
  for (const ProcessRecord& record :
       Handshake(*context.store, self, std::chrono::seconds(options.handshake_timeout_seconds))) {
    counts.push_back(record.num_devices);
  }
  return counts;
}

}  // namespace

Client::Client(const ClientOptions& options, const ClientContext& context)
    : process_index_(options.node_id),
      compiler_(options.compile_fn, options.compile_enabled),
      pool_(std::make_shared<ThreadPool>(options.num_threads > 0 ? options.num_threads
                                                                 : ThreadPool::DefaultThreads())),
      topology_(ProcessDevices(options, context), HostCpuFeatures(),
                PlatformVersion(options.compiler_build_id)) {
  const int first = topology_.first_device(process_index_);
  const int end = first + topology_.num_devices_of(process_index_);
  for (int id = 0; id < topology_.num_devices(); ++id) {
    const bool here = first <= id && id < end;
    devices_.push_back(
        std::make_unique<Device>(*this, topology_.device(id), here ? id - first : Device::kRemote));
    device_list_.push_back(devices_.back().get());
    if (!here) continue;
    addressable_devices_.push_back(devices_.back().get());
    const auto& faces = devices_.back()->memory_faces();
    memory_faces_.insert(memory_faces_.end(), faces.begin(), faces.end());
  }
  if (context.store != nullptr) {
    key_value_hook_.emplace(options.kv_hook, options.node_id, options.num_nodes, context.store);
  }
}

Device& Client::LookupDevice(int id) const {
  // Ids are indices.
  if (id < 0 || static_cast<size_t>(id) >= devices_.size()) {
    throw InvalidArgument("no device has id ", id, "; this client's ids are 0 to ",
                          devices_.size() - 1);
  }
  return *devices_[static_cast<size_t>(id)];
}

Device& Client::LookupAddressableDevice(int local_hardware_id) const {
  if (local_hardware_id < 0 ||
      static_cast<size_t>(local_hardware_id) >= addressable_devices_.size()) {
    throw InvalidArgument("no device of this process has local hardware id ", local_hardware_id,
                          "; they are 0 to ", addressable_devices_.size() - 1);
  }
  return *addressable_devices_[static_cast<size_t>(local_hardware_id)];
}

DeviceAssignment Client::DefaultAssignment(int num_replicas, int num_partitions) const {
  if (num_replicas < 1 || num_partitions < 1) {
    throw InvalidArgument("a device assignment for ", num_replicas, " replicas of ", num_partitions,
                          " partitions");
  }
  const size_t wanted = static_cast<size_t>(num_replicas) * static_cast<size_t>(num_partitions);
  if (wanted > devices_.size()) {
    throw InvalidArgument(num_replicas, " replicas of ", num_partitions,
                          " partitions need more devices than the ", devices_.size(),
                          " of this client; TREADLE_NUM_DEVICES sets their number");
  }
  const auto& devices = wanted <= addressable_devices_.size() ? addressable_devices_ : device_list_;
  DeviceAssignment assignment{num_replicas, num_partitions, {}};
  for (size_t i = 0; i < wanted; ++i) assignment.device_ids.push_back(devices[i]->id());
  return assignment;
}

DeviceAssignment Client::AssignmentFor(const CompileOptions& options) const {
  if (options.device_assignment) return *options.device_assignment;
  if (options.device_ordinal <= 0) {
    return DefaultAssignment(options.num_replicas, options.num_partitions);
  }
  DeviceAssignment assignment{options.num_replicas, options.num_partitions, {}};
  for (int i = 0; i < options.num_replicas * options.num_partitions; ++i) {
    assignment.device_ids.push_back(LookupAddressableDevice(options.device_ordinal + i).id());
  }
  return assignment;
}

void Client::CheckAddressable(const DeviceAssignment& assignment) const {
  bool all_here = true;
  for (const int id : assignment.device_ids)
    all_here = all_here && LookupDevice(id).IsAddressable();
  if (all_here) return;
  std::map<int, std::string> by_process;
  for (const int id : assignment.device_ids) {
    std::string& ids = by_process[LookupDevice(id).description().process_index];
    ids += (ids.empty() ? "" : ", ") + StrCat(id);
  }
  std::string whose;
  for (const auto& [process, ids] : by_process) {
    whose += StrCat(whose.empty() ? "" : "; ", "process ", process,
                    process == process_index_ ? " (this one)" : "", " has ", ids);
  }
  throw Unimplemented("the program is for ", assignment.device_ids.size(),
                      " devices that are not all in this process (", whose,
                      "), and Treadle does not run programs across processes yet: there are no "
                      "collectives between processes. Run it on jax.local_devices()");
}

std::shared_ptr<const Executable> Client::Compile(std::string_view program, std::string_view format,
                                                  std::string_view options) const {
  // First: bad options should not cost a compilation.
  const CompileOptions parsed = CompileOptions::Parse(options);
  if (parsed.device_assignment) CheckAddressable(*parsed.device_assignment);
  return CompileWith(
      compiler_,
      {program, format, options, static_cast<int>(addressable_devices_.size()), pool_->size()},
      parsed);
}

std::unique_ptr<LoadedExecutable> Client::Load(std::shared_ptr<const Executable> executable,
                                               const CompileOptions& options) {
  return std::make_unique<LoadedExecutable>(*this, std::move(executable), options);
}

std::shared_ptr<const Executable> CompileForTopology(const Topology& topology,
                                                     std::string_view program,
                                                     std::string_view format,
                                                     std::string_view options) {
  return CompileWith(
      CompilerHook(0, 0),
      {program, format, options, topology.num_devices(), ThreadPool::DefaultThreads()},
      CompileOptions::Parse(options));
}

}  // namespace treadle
