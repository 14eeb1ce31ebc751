// One use of the plugin: its devices, its threads and its way to the compiler.
#ifndef TREADLE_PLUGIN_RUNTIME_CLIENT_H_
#define TREADLE_PLUGIN_RUNTIME_CLIENT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/runtime/compiler_hook.h"
#include "plugin/runtime/device.h"
#include "plugin/runtime/executable.h"
#include "plugin/runtime/options.h"
#include "plugin/runtime/thread_pool.h"
#include "plugin/runtime/topology.h"

namespace treadle {

// Outlives its devices, memories and loaded executables. Buffers may outlive it, but only to be
// destroyed.
class Client {
 public:
  explicit Client(const ClientOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Topology& topology() { return topology_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  const std::vector<Device*>& devices() const { return device_list_; }
  const std::vector<Memory::ApiFace*>& memory_faces() const { return memory_faces_; }
  // Throws INVALID_ARGUMENT for an id that no device has.
  Device& LookupDevice(int id) const;
  // Throws INVALID_ARGUMENT when there are not enough devices.
  DeviceAssignment DefaultAssignment(int num_replicas, int num_partitions) const;

  // `options` is a serialized CompileOptionsProto. Throws treadle::Error.
  std::shared_ptr<const Executable> Compile(std::string_view program, std::string_view format,
                                            std::string_view options) const;
  // Places an executable on this client's devices: those of `options` if it names any, else those
  // it was compiled for.
  std::unique_ptr<LoadedExecutable> Load(std::shared_ptr<const Executable> executable,
                                         const CompileOptions& options);

 private:
  const CompilerHook compiler_;
  const std::shared_ptr<ThreadPool>
      pool_;  // shared with running programs, which may outlive the client
  Topology topology_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> device_list_;
  std::vector<Memory::ApiFace*> memory_faces_;
};

// Compiles for devices that need not be here; the compiler is found through the process's Python.
std::shared_ptr<const Executable> CompileForTopology(const Topology& topology,
                                                     std::string_view program,
                                                     std::string_view format,
                                                     std::string_view options);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CLIENT_H_
