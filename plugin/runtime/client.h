// One use of the plugin: its devices, its threads and its way to the compiler.
#ifndef TREADLE_PLUGIN_RUNTIME_CLIENT_H_
#define TREADLE_PLUGIN_RUNTIME_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/runtime/compiler_hook.h"
#include "plugin/runtime/device.h"
#include "plugin/runtime/executable.h"
#include "plugin/runtime/key_value_hook.h"
#include "plugin/runtime/key_value_store.h"
#include "plugin/runtime/options.h"
#include "plugin/runtime/thread_pool.h"
#include "plugin/runtime/topology.h"

namespace treadle {

// What a client gets from the API's caller besides its options.
struct ClientContext {
  std::shared_ptr<KeyValueStore> store;  // null: none was given
  int pjrt_major = 0, pjrt_minor = 0;    // of the API's table
};

// Outlives its devices, memories and loaded executables. Buffers may outlive it, but only to be
// destroyed.
class Client {
 public:
  // Waits for the other processes, if there are any, as Handshake does; throws what it throws, and
  // INVALID_ARGUMENT when there are others and no store to meet them in.
  Client(const ClientOptions& options, const ClientContext& context);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Topology& topology() { return topology_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  int process_index() const { return process_index_; }
  // Of all processes, by id; and of this process.
  const std::vector<Device*>& devices() const { return device_list_; }
  const std::vector<Device*>& addressable_devices() const { return addressable_devices_; }
  const std::vector<Memory::ApiFace*>& memory_faces() const { return memory_faces_; }
  // Throw INVALID_ARGUMENT for a number that no device has.
  Device& LookupDevice(int id) const;
  Device& LookupAddressableDevice(int local_hardware_id) const;
  // This process's devices if they are enough, else those of all. Throws INVALID_ARGUMENT when even
  // these are too few.
  DeviceAssignment DefaultAssignment(int num_replicas, int num_partitions) const;
  // That of the options, or this process's devices from their `device_ordinal` on.
  DeviceAssignment AssignmentFor(const CompileOptions& options) const;
  // Throws INVALID_ARGUMENT for an id that no device has, and UNIMPLEMENTED, naming all devices and
  // whose they are, when one is another process's.
  void CheckAddressable(const DeviceAssignment& assignment) const;

  // `options` is a serialized CompileOptionsProto. Throws treadle::Error.
  std::shared_ptr<const Executable> Compile(std::string_view program, std::string_view format,
                                            std::string_view options) const;
  // Places an executable on this client's devices: those of `options` if it names any, else those
  // it was compiled for.
  std::unique_ptr<LoadedExecutable> Load(std::shared_ptr<const Executable> executable,
                                         const CompileOptions& options);

 private:
  const int process_index_;
  const CompilerHook compiler_;
  const std::shared_ptr<ThreadPool>
      pool_;  // shared with running programs, which may outlive the client
  Topology topology_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> device_list_, addressable_devices_;
  std::vector<Memory::ApiFace*> memory_faces_;
  std::optional<KeyValueHook> key_value_hook_;
};

// Compiles for devices that need not be here; the compiler is found through the process's Python.
std::shared_ptr<const Executable> CompileForTopology(const Topology& topology,
                                                     std::string_view program,
                                                     std::string_view format,
                                                     std::string_view options);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CLIENT_H_
