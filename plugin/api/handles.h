// How the C API's opaque pointers name the runtime's objects.
//
// A handle is the address of the object, nothing more, so that the paths of every execution convert
// for free. Only two differ: a memory's handle is the small struct that carries the function table
// which the API wants, and an executable's handle owns the C arrays that its slots return
// (executable.h).
#ifndef TREADLE_PLUGIN_API_HANDLES_H_
#define TREADLE_PLUGIN_API_HANDLES_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "plugin/api/guard.h"
#include "plugin/runtime/buffer.h"
#include "plugin/runtime/client.h"
#include "plugin/runtime/device.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/event.h"
#include "plugin/runtime/executable.h"
#include "plugin/runtime/topology.h"
#include "plugin/runtime/transfer_manager.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

template <typename Object>
Object& NotNull(Object* object, const char* what) {
  if (object == nullptr) throw InvalidArgument("the ", what, " is null");
  return *object;
}

#define TREADLE_HANDLE(Handle, Object)                                              \
  inline Object& Unwrap(Handle* handle) {                                           \
    return NotNull(reinterpret_cast<Object*>(handle), #Handle);                     \
  }                                                                                 \
  inline const Object& Unwrap(const Handle* handle) {                               \
    return NotNull(reinterpret_cast<const Object*>(handle), #Handle);               \
  }                                                                                 \
  inline Handle* Wrap(Object* object) { return reinterpret_cast<Handle*>(object); } \
  inline Handle* const* Wrap(Object* const* list) { return reinterpret_cast<Handle* const*>(list); }

TREADLE_HANDLE(PJRT_Client, Client)
TREADLE_HANDLE(PJRT_Device, Device)
TREADLE_HANDLE(PJRT_DeviceDescription, DeviceDescription)
TREADLE_HANDLE(PJRT_TopologyDescription, Topology)
TREADLE_HANDLE(PJRT_LoadedExecutable, LoadedExecutable)
TREADLE_HANDLE(PJRT_Buffer, Buffer)
TREADLE_HANDLE(PJRT_Event, Event)
TREADLE_HANDLE(PJRT_AsyncHostToDeviceTransferManager, TransferManager)
#undef TREADLE_HANDLE

inline PJRT_Memory* Wrap(Memory* memory) {
  return reinterpret_cast<PJRT_Memory*>(memory->api_face());
}
inline Memory& Unwrap(PJRT_Memory* handle) {
  return *NotNull(reinterpret_cast<Memory::ApiFace*>(handle), "PJRT_Memory").memory;
}

inline PJRT_Memory* const* Wrap(Memory::ApiFace* const* list) {
  return reinterpret_cast<PJRT_Memory* const*>(list);
}

// Gives the caller a reference of its own, for PJRT_Event_Destroy.
inline PJRT_Event* WrapEvent(Ref<Event> event) { return Wrap(event.Detach()); }
inline PJRT_Buffer* WrapBuffer(std::unique_ptr<Buffer> buffer) { return Wrap(buffer.release()); }

// Throws INVALID_ARGUMENT for another process's device.
inline Memory& DefaultMemoryOf(const Device& device) {
  device.CheckAddressable("to keep data");
  return device.default_memory();
}

// Null pointers with size zero are as good as empty ones.
inline std::string_view View(const char* data, size_t size) {
  return size == 0 ? std::string_view() : std::string_view(data, size);
}
inline std::span<const int64_t> DimsOf(const int64_t* dims, size_t num_dims) {
  return num_dims == 0 ? std::span<const int64_t>() : std::span(dims, num_dims);
}
inline ElementType TypeOf(const PJRT_Buffer_Type& type) {
  return CheckedElementType(static_cast<uint32_t>(EnumValue(type)));
}

// An error that the caller describes by its parts. A code that is none becomes UNKNOWN.
inline Error ErrorOf(const PJRT_Error_Code& code, const char* message, size_t message_size) {
  return Error(EnumValue(code), std::string(View(message, message_size)));
}
inline bool IsOk(const PJRT_Error_Code& code) { return EnumValue(code) == PJRT_Error_Code_OK; }

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_HANDLES_H_
