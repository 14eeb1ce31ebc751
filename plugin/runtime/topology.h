// Devices without the hardware: what a program can be compiled for.
#ifndef TREADLE_PLUGIN_RUNTIME_TOPOLOGY_H_
#define TREADLE_PLUGIN_RUNTIME_TOPOLOGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/runtime/device.h"

namespace treadle {

// "cpu", because JAX switches on by this name what a CPU can do: donation, its persistent
// compilation cache, DLPack, LAPACK and callbacks. The backend is registered, and selected, as
// "treadle".
inline constexpr std::string_view kPlatformName = "cpu";

// "treadle 0.1.0 (build id ...)". JAX hashes it into the keys of its compilation cache, so it
// carries the compiler's build id.
std::string PlatformVersion(std::string_view compiler_build_id);

class Topology {
 public:
  // `process_devices`: how many devices each process has. Ids count through the processes.
  Topology(const std::vector<int>& process_devices, uint64_t cpu_features,
           std::string platform_version);
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // "", "cpu" or "treadle" for one device, "treadle:8" for eight. Throws INVALID_ARGUMENT.
  static std::unique_ptr<Topology> Named(std::string_view name);
  // Throws INVALID_ARGUMENT for bytes that Serialize did not make.
  static std::unique_ptr<Topology> Deserialize(std::string_view bytes);

  int num_devices() const { return static_cast<int>(devices_.size()); }
  uint64_t cpu_features() const { return cpu_features_; }
  const std::string& platform_version() const { return platform_version_; }
  int num_processes() const { return static_cast<int>(process_devices_.size()); }
  // The devices of the process are first_device(process), and those that follow.
  int first_device(int process) const;
  int num_devices_of(int process) const { return process_devices_[static_cast<size_t>(process)]; }
  DeviceDescription& device(int index) const { return *devices_[static_cast<size_t>(index)]; }
  DeviceDescription* const* devices() const { return device_list_.data(); }

  std::string Serialize() const;
  // Of everything that decides whether an executable for one topology runs on another.
  uint64_t Fingerprint() const;

 private:
  const std::vector<int> process_devices_;
  const uint64_t cpu_features_;
  const std::string platform_version_;
  std::vector<std::unique_ptr<DeviceDescription>> devices_;
  std::vector<DeviceDescription*> device_list_;  // the same, for the C API
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_TOPOLOGY_H_
