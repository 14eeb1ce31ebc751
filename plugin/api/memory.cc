// PJRT_Memory.
#include "plugin/runtime/device.h"

#include <cstring>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"

namespace treadle::api {

namespace {

void Id(PJRT_Memory_Id_Args& args) { args.id = Unwrap(args.memory).id(); }

void Kind(PJRT_Memory_Kind_Args& args) {
  args.kind = Unwrap(args.memory).kind_name();
  args.kind_size = std::strlen(args.kind);
}

void KindId(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = static_cast<int>(Unwrap(args.memory).kind());
}

void DebugString(PJRT_Memory_DebugString_Args& args) {
  const std::string& text = Unwrap(args.memory).debug_string();
  args.debug_string = text.data();
  args.debug_string_size = text.size();
}

void ToString(PJRT_Memory_ToString_Args& args) {
  const std::string& text = Unwrap(args.memory).debug_string();
  args.to_string = text.data();
  args.to_string_size = text.size();
}

void AddressableByDevices(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = Wrap(Unwrap(args.memory).device().self());
  args.num_devices = 1;
}

}  // namespace

const PJRT_Memory_FunctionTable* MemoryFunctions() {
  static const PJRT_Memory_FunctionTable functions = {
      PJRT_Memory_FunctionTable_STRUCT_SIZE,
      nullptr,
      PJRT_Memory_STRUCT_SIZE,
      [](PJRT_Memory* memory, const void* key) { return Unwrap(memory).user_data(key); },
      [](PJRT_Memory* memory, const void* key, void* data, void (*deleter)(void*)) {
        Unwrap(memory).set_user_data(key, data, deleter);
      },
  };
  return &functions;
}

void BindMemory(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Memory_Id, Id, id);
  TREADLE_BIND(api, PJRT_Memory_Kind, Kind, kind_size);
  TREADLE_BIND(api, PJRT_Memory_Kind_Id, KindId, kind_id);
  TREADLE_BIND(api, PJRT_Memory_DebugString, DebugString, debug_string_size);
  TREADLE_BIND(api, PJRT_Memory_ToString, ToString, to_string_size);
  TREADLE_BIND(api, PJRT_Memory_AddressableByDevices, AddressableByDevices, num_devices);
}

}  // namespace treadle::api
