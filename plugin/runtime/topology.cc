#include "plugin/runtime/topology.h"

#include <charconv>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"

#ifndef TREADLE_VERSION
#define TREADLE_VERSION "0.0.0"  // the build passes the one of versions.toml
#endif

namespace treadle {

namespace {

constexpr int kMaxDevices = 1 << 16;
constexpr std::string_view kSerializedPrefix = "treadle-topology-1\n";

// "<number><terminator>" off the front of `text`.
template <typename Number>
bool TakeNumber(std::string_view& text, char terminator, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc() || end == text.data() + text.size() || *end != terminator) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return true;
}

uint64_t Fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string PlatformVersion(std::string_view compiler_build_id) {
  return StrCat("treadle " TREADLE_VERSION " (build id ",
                compiler_build_id.empty() ? "unknown" : compiler_build_id, ")");
}

Topology::Topology(int num_devices, uint64_t cpu_features, std::string platform_version)
    : cpu_features_(cpu_features), platform_version_(std::move(platform_version)) {
  for (int id = 0; id < num_devices; ++id) {
    devices_.push_back(std::make_unique<DeviceDescription>(DeviceDescription::Of(id, 0)));
    device_list_.push_back(devices_.back().get());
  }
}

std::unique_ptr<Topology> Topology::Named(std::string_view name) {
  int count = 1;
  bool good = name.empty() || name == "cpu" || name == "treadle";
  for (const std::string_view prefix : {"cpu:", "treadle:"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view digits = name.substr(prefix.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    good = error == std::errc() && end == digits.data() + digits.size() && count >= 1 &&
           count <= kMaxDevices;
  }
  if (!good) {
    throw InvalidArgument("no topology is called '", name,
                          "'; write treadle for one device, or treadle:N for N of them");
  }
  return std::make_unique<Topology>(count, HostCpuFeatures(), PlatformVersion(""));
}

std::string Topology::Serialize() const {
  return StrCat(kSerializedPrefix, num_devices(), "\n", cpu_features_, "\n", platform_version_);
}

std::unique_ptr<Topology> Topology::Deserialize(std::string_view bytes) {
  int count = 0;
  uint64_t features = 0;
  if (bytes.starts_with(kSerializedPrefix)) {
    bytes.remove_prefix(kSerializedPrefix.size());
    if (TakeNumber(bytes, '\n', &count) && TakeNumber(bytes, '\n', &features) && count >= 1 &&
        count <= kMaxDevices) {
      return std::make_unique<Topology>(count, features, std::string(bytes));
    }
  }
  throw InvalidArgument("these bytes are not a serialized topology of this plugin");
}

uint64_t Topology::Fingerprint() const { return Fnv1a(Serialize()); }

}  // namespace treadle
