#include "plugin/runtime/topology.h"

#include <charconv>
#include <numeric>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/version.h"

namespace treadle {

namespace {

constexpr int kMaxDevices = 1 << 16;

// Of one process: its number of devices. Of several: that of each, with commas between.
constexpr std::string_view kOneProcess = "treadle-topology-1\n";
constexpr std::string_view kProcesses = "treadle-topology-2\n";
static_assert(kOneProcess.size() == kProcesses.size());

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
  return StrCat("treadle ", TreadleVersion(), " (build id ",
                compiler_build_id.empty() ? "unknown" : compiler_build_id, ")");
}

Topology::Topology(const std::vector<int>& process_devices, uint64_t cpu_features,
                   std::string platform_version)
    : process_devices_(process_devices),
      cpu_features_(cpu_features),
      platform_version_(std::move(platform_version)) {
  int id = 0;
  for (int process = 0; process < num_processes(); ++process) {
    for (int i = 0; i < num_devices_of(process); ++i) {
      devices_.push_back(std::make_unique<DeviceDescription>(DeviceDescription::Of(id++, process)));
      device_list_.push_back(devices_.back().get());
    }
  }
}

int Topology::first_device(int process) const {
  return std::accumulate(process_devices_.begin(), process_devices_.begin() + process, 0);
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
  return std::make_unique<Topology>(std::vector{count}, HostCpuFeatures(), PlatformVersion(""));
}

std::string Topology::Serialize() const {
  std::string counts;
  for (const int count : process_devices_) counts += (counts.empty() ? "" : ",") + StrCat(count);
  return StrCat(num_processes() == 1 ? kOneProcess : kProcesses, counts, "\n", cpu_features_, "\n",
                platform_version_);
}

std::unique_ptr<Topology> Topology::Deserialize(std::string_view bytes) {
  std::vector<int> counts;
  int count = 0, total = 0;
  uint64_t features = 0;
  const bool several = bytes.starts_with(kProcesses);
  bool good = several || bytes.starts_with(kOneProcess);
  bytes.remove_prefix(good ? kOneProcess.size() : 0);
  while (good && several && TakeNumber(bytes, ',', &count)) {
    good = count >= 1 && count <= kMaxDevices - total;
    total += good ? count : 0;
    counts.push_back(count);
  }
  good = good && TakeNumber(bytes, '\n', &count) && count >= 1 && count <= kMaxDevices - total &&
         TakeNumber(bytes, '\n', &features);
  if (good) {
    counts.push_back(count);
    return std::make_unique<Topology>(counts, features, std::string(bytes));
  }
  throw InvalidArgument("these bytes are not a serialized topology of this plugin");
}

uint64_t Topology::Fingerprint() const { return Fnv1a(Serialize()); }

}  // namespace treadle
