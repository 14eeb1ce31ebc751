// Tells Linux `perf` the names of compiled functions.
#ifndef TREADLE_PLUGIN_RUNTIME_PERF_MAP_H_
#define TREADLE_PLUGIN_RUNTIME_PERF_MAP_H_

#include <vector>

#include "plugin/runtime/elf_loader.h"

namespace treadle {

// Appends to /tmp/perf-PID.map, the file that perf reads, if TREADLE_PERF_MAP is set to something
// but "" and "0". A file that cannot be written is no error: a profile without names is what there
// would be anyway.
void WritePerfMap(const std::vector<CodeImage::Function>& functions);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_PERF_MAP_H_
