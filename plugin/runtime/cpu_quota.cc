#include "plugin/runtime/cpu_quota.h"

#include <fstream>
#include <sstream>

namespace treadle {
namespace {

// Version 2: "max 100000" or "150000 100000" in cpu.max.
double QuotaOfV2(const std::string& group) {
  std::ifstream file(group + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  double value = 0;
  return std::istringstream(quota) >> value ? value / period : 0;
}

// Version 1: two files, a quota of -1 for none.
double QuotaOfV1(const std::string& group) {
  std::ifstream quota_file(group + "/cpu.cfs_quota_us"), period_file(group + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

// The least quota among `path` and its parents below `mount`. In a container the path that /proc
// names may not exist below the mount; then the mount's own root is the container's group, which
// the last step reads.
template <typename QuotaOf>
double LeastAlong(const std::string& mount, std::string path, QuotaOf quota_of) {
  double least = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const double quota = quota_of(mount + path);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (path.empty()) return least;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool NamesCpuController(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

double CpuQuota(const std::string& self_cgroup, const std::string& mount) {
  std::ifstream file(self_cgroup);
  double least = 0;
  for (std::string line; std::getline(file, line);) {
    // "id:controllers:path"; version 2's line has id 0 and no controllers.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    double quota = 0;
    if (controllers.empty()) {
      quota = LeastAlong(mount, path, QuotaOfV2);
    } else if (NamesCpuController(controllers)) {
      quota = LeastAlong(mount + "/cpu", path, QuotaOfV1);
      if (quota == 0) quota = LeastAlong(mount + "/" + controllers, path, QuotaOfV1);
    }
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return least;
}

}  // namespace treadle
