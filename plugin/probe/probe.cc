// A PJRT plugin with no device, loaded by treadle/versions to learn which PJRT C API jaxlib speaks:
// jaxlib tells nobody but its log, where it writes its own version beside that of each plugin that
// it initialises. It holds the table's first functions only; its version is far ahead, so that no
// jaxlib finds it too old. PROBE_MAJOR and PROBE_MINOR make the plugins that jaxlib must refuse.
#include <cstddef>

#include "xla/pjrt/c/pjrt_c_api.h"

#ifndef PROBE_MAJOR
#define PROBE_MAJOR PJRT_API_MAJOR
#endif
#ifndef PROBE_MINOR
#define PROBE_MINOR 999
#endif

namespace {

constexpr char kMessage[] =
    "This is Treadle's version probe, a plugin without devices: PJRT_Client_Create always fails.";

// The only error there is; nobody looks into it.
char only_error;

void DestroyError(PJRT_Error_Destroy_Args*) {}

void ErrorMessage(PJRT_Error_Message_Args* args) {
  args->message = kMessage;
  args->message_size = sizeof kMessage - 1;
}

PJRT_Error* ErrorCode(PJRT_Error_GetCode_Args* args) {
  args->code = PJRT_Error_Code_UNIMPLEMENTED;
  return nullptr;
}

PJRT_Error* ForEachPayload(PJRT_Error_ForEachPayload_Args*) { return nullptr; }

PJRT_Error* Initialize(PJRT_Plugin_Initialize_Args*) { return nullptr; }

PJRT_Error* Attributes(PJRT_Plugin_Attributes_Args* args) {
  args->attributes = nullptr;
  args->num_attributes = 0;
  return nullptr;
}

PJRT_Error* CreateClient(PJRT_Client_Create_Args*) {
  return reinterpret_cast<PJRT_Error*>(&only_error);
}

PJRT_Api MakeTable() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, nullptr, PROBE_MAJOR, PROBE_MINOR};
  api.PJRT_Error_Destroy = DestroyError;
  api.PJRT_Error_Message = ErrorMessage;
  api.PJRT_Error_GetCode = ErrorCode;
  api.PJRT_Error_ForEachPayload = ForEachPayload;
  api.PJRT_Plugin_Initialize = Initialize;
  api.PJRT_Plugin_Attributes = Attributes;
  api.PJRT_Client_Create = CreateClient;
  return api;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api table = MakeTable();
  return &table;
}
