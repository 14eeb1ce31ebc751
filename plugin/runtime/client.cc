#include "plugin/runtime/client.h"

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"

namespace treadle {

namespace {

std::shared_ptr<const Executable> CompileWith(const CompilerHook& compiler,
                                              const CompileInput& input) {
  // Parsed first: bad options should not cost a compilation.
  const CompileOptions options = CompileOptions::Parse(input.options);
  return std::make_shared<Executable>(Program::Load(compiler.Compile(input)), options,
                                      std::string(input.options));
}

}  // namespace

Client::Client(const ClientOptions& options)
    : compiler_(options.compile_fn, options.compile_enabled),
      pool_(std::make_shared<ThreadPool>(options.num_threads > 0 ? options.num_threads
                                                                 : ThreadPool::DefaultThreads())),
      topology_(options.num_devices, HostCpuFeatures(),
                PlatformVersion(options.compiler_build_id)) {
  for (int i = 0; i < options.num_devices; ++i) {
    devices_.push_back(std::make_unique<Device>(*this, topology_.device(i)));
    device_list_.push_back(devices_.back().get());
    const auto& faces = devices_.back()->memory_faces();
    memory_faces_.insert(memory_faces_.end(), faces.begin(), faces.end());
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

DeviceAssignment Client::DefaultAssignment(int num_replicas, int num_partitions) const {
  if (num_replicas < 1 || num_partitions < 1) {
    throw InvalidArgument("a device assignment for ", num_replicas, " replicas of ", num_partitions,
                          " partitions");
  }
  if (static_cast<size_t>(num_replicas) * static_cast<size_t>(num_partitions) > devices_.size()) {
    throw InvalidArgument(num_replicas, " replicas of ", num_partitions,
                          " partitions need more devices than the ", devices_.size(),
                          " of this client; TREADLE_NUM_DEVICES sets their number");
  }
  CompileOptions options;
  options.num_replicas = num_replicas;
  options.num_partitions = num_partitions;
  return options.AssignmentOrDefault();
}

std::shared_ptr<const Executable> Client::Compile(std::string_view program, std::string_view format,
                                                  std::string_view options) const {
  return CompileWith(compiler_,
                     {program, format, options, static_cast<int>(devices_.size()), pool_->size()});
}

std::unique_ptr<LoadedExecutable> Client::Load(std::shared_ptr<const Executable> executable,
                                               const CompileOptions& options) {
  return std::make_unique<LoadedExecutable>(*this, std::move(executable), options);
}

std::shared_ptr<const Executable> CompileForTopology(const Topology& topology,
                                                     std::string_view program,
                                                     std::string_view format,
                                                     std::string_view options) {
  return CompileWith(CompilerHook(0, 0), {program, format, options, topology.num_devices(),
                                          ThreadPool::DefaultThreads()});
}

}  // namespace treadle
