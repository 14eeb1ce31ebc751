#include "plugin/api/shardings.h"

#include "plugin/api/executable.h"
#include "plugin/api/guard.h"
#include "xla/pjrt/c/pjrt_c_api_shardings_extension.h"

namespace treadle::api {

namespace {

// Null lists mean that the program has none: it was not partitioned.
template <typename Args>
void SetShardings(const PJRT_Executable::List& list, Args& args) {
  args.shardings = list.has_shardings ? list.shardings.data() : nullptr;
  args.sharding_sizes = list.has_shardings ? list.sharding_sizes.data() : nullptr;
}

void Parameters(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args& args) {
  const PJRT_Executable::List& list = Unwrap(args.executable).inputs;
  args.num_parameters = list.memory_kinds.size();
  SetShardings(list, args);
}

void Outputs(PJRT_Shardings_PJRT_Executable_OutputShardings_Args& args) {
  const PJRT_Executable::List& list = Unwrap(args.executable).outputs;
  args.num_outputs = list.memory_kinds.size();
  SetShardings(list, args);
}

}  // namespace

PJRT_Extension_Base* ShardingsExtension(PJRT_Extension_Base* next) {
  static PJRT_Shardings_Extension extension = [] {
    PJRT_Shardings_Extension e{};
    e.base = {PJRT_Shardings_Extension_STRUCT_SIZE, PJRT_Extension_Type_Shardings, nullptr};
    TREADLE_BIND(e, PJRT_Shardings_PJRT_Executable_ParameterShardings, Parameters, sharding_sizes);
    TREADLE_BIND(e, PJRT_Shardings_PJRT_Executable_OutputShardings, Outputs, sharding_sizes);
    return e;
  }();
  extension.base.next = next;
  return &extension.base;
}

}  // namespace treadle::api
