// PJRT_Executable: a compiled program and the C arrays that describe it.
#ifndef TREADLE_PLUGIN_API_EXECUTABLE_H_
#define TREADLE_PLUGIN_API_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/runtime/executable.h"
#include "xla/pjrt/c/pjrt_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_layouts_extension.h"

// The C API leaves the struct to the plugin. Everything that its slots return lives as long as it
// does.
struct PJRT_Executable {
  explicit PJRT_Executable(std::shared_ptr<const treadle::Executable> executable);

  // Of the arguments, or of the results.
  struct List {
    explicit List(const std::vector<treadle::Parameter>& parameters);
    std::vector<const char*> memory_kinds;
    std::vector<size_t> memory_kind_sizes;
    std::vector<PJRT_Layouts_MemoryLayout*> layouts;
    std::vector<const char*> shardings;
    std::vector<size_t> sharding_sizes;
    bool has_shardings = false;
  };

  const std::shared_ptr<const treadle::Executable> executable;
  const List inputs, outputs;
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<PJRT_NamedValue> cost_analysis;
};

namespace treadle::api {

inline PJRT_Executable& Unwrap(PJRT_Executable* handle) {
  if (handle == nullptr) throw InvalidArgument("the PJRT_Executable is null");
  return *handle;
}
inline const PJRT_Executable& Unwrap(const PJRT_Executable* handle) {
  return Unwrap(const_cast<PJRT_Executable*>(handle));
}

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_EXECUTABLE_H_
