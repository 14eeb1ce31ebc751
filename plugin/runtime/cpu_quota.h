// The CPU time that this process's control group grants.
#ifndef TREADLE_PLUGIN_RUNTIME_CPU_QUOTA_H_
#define TREADLE_PLUGIN_RUNTIME_CPU_QUOTA_H_

#include <string>

namespace treadle {

// CPUs' worth of time per period, the least along the path from this process's group to the root; 0
// if unlimited or unknown. Reads control groups of version 2 and 1. The roots are parameters for
// the tests.
double CpuQuota(const std::string& self_cgroup = "/proc/self/cgroup",
                const std::string& mount = "/sys/fs/cgroup");

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CPU_QUOTA_H_
