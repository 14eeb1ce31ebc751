// The few fields of xla.CompileOptionsProto that the runtime needs, and the DeviceAssignmentProto
// that it answers with.
#ifndef TREADLE_PLUGIN_RUNTIME_COMPILE_OPTIONS_H_
#define TREADLE_PLUGIN_RUNTIME_COMPILE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

struct DeviceAssignment {
  int num_replicas = 1;
  int num_partitions = 1;
  std::vector<int> device_ids;  // replica-major

  int at(int replica, int partition) const {
    return device_ids[static_cast<size_t>(replica * num_partitions + partition)];
  }
  // A serialized xla.DeviceAssignmentProto.
  std::string Serialize() const;
};

struct CompileOptions {
  int num_replicas = 1;
  int num_partitions = 1;
  int device_ordinal = -1;  // among the devices of this process; -1: not set
  bool portable =
      false;  // compile_portable_executable: runs on whichever device an execution names
  std::optional<DeviceAssignment> device_assignment;

  // Throws INVALID_ARGUMENT for bytes that are no CompileOptionsProto or whose numbers contradict
  // each other.
  static CompileOptions Parse(std::string_view bytes);
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_COMPILE_OPTIONS_H_
