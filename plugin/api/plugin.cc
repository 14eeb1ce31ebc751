// The table of the C API and the one symbol that the plugin exports.
#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"
#include "plugin/api/named_values.h"
#include "plugin/api/stablehlo_version.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

namespace {

// JAX's memories tests want at least 2; there is no XLA behind this plugin that the number could
// describe.
constexpr int64_t kXlaVersion = 2;

constexpr size_t kNumSlots =
    (PJRT_Api_STRUCT_SIZE - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void*);

#define SLOT(slot) +1
static_assert(kNumSlots == 2  // PJRT_Error_Destroy and PJRT_Error_Message return nothing
#include "plugin/api/slots.inc"
              ,
              "slots.inc was made from another header; run generate_slots.py again");
#undef SLOT

void Initialize(PJRT_Plugin_Initialize_Args&) {}

void Attributes(PJRT_Plugin_Attributes_Args& args) {
  static const auto* const attributes = new std::array<PJRT_NamedValue, 3>{
      Int64Value("xla_version", kXlaVersion),
      Int64ListValue("stablehlo_current_version", CurrentStablehloVersion(), 3),
      Int64ListValue("stablehlo_minimum_version", kMinimumStablehlo.data(), 3),
  };
  args.attributes = attributes->data();
  args.num_attributes = attributes->size();
}

PJRT_Api MakeTable() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.extension_start = Extensions();
  api.pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
  // Every slot has a function, so that a caller who does not ask first gets an error and not a jump
  // to null.
#define SLOT(slot) TREADLE_BIND(api, slot, NotImplemented<slot##_Args>, struct_size);
#include "plugin/api/slots.inc"
#undef SLOT
  BindPlugin(api);
  BindError(api);
  BindEvent(api);
  BindClient(api);
  BindTopology(api);
  BindDevice(api);
  BindMemory(api);
  BindCompile(api);
  BindExecutable(api);
  BindExecute(api);
  BindBuffer(api);
  BindBufferCreation(api);
  BindTransfer(api);
  return api;
}

}  // namespace

void BindPlugin(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Plugin_Initialize, Initialize, extension_start);
  TREADLE_BIND(api, PJRT_Plugin_Attributes, Attributes, num_attributes);
}

}  // namespace treadle::api

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  // Has no destructor, so it outlives every call, also those of threads that run while the process
  // exits.
  static const PJRT_Api table = treadle::api::MakeTable();
  return &table;
}
