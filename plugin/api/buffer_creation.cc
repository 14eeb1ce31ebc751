// The ways in which a client makes buffers, other than running programs.
#include <functional>
#include <memory>
#include <string>

#include "plugin/api/bind.h"
#include "plugin/api/error.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/layout.h"

namespace treadle::api {

namespace {

// The memory if it is given, else the device's default one.
Memory& Destination(PJRT_Memory* memory, PJRT_Device* device) {
  return memory != nullptr ? Unwrap(memory) : DefaultMemoryOf(Unwrap(device));
}

HostSemantics SemanticsOf(const PJRT_HostBufferSemantics& semantics) {
  switch (EnumValue(semantics)) {
    case PJRT_HostBufferSemantics_kImmutableOnlyDuringCall:
      return HostSemantics::kImmutableOnlyDuringCall;
    case PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes:
      return HostSemantics::kImmutableUntilTransferCompletes;
    case PJRT_HostBufferSemantics_kImmutableZeroCopy:
      return HostSemantics::kImmutableZeroCopy;
    case PJRT_HostBufferSemantics_kMutableZeroCopy:
      return HostSemantics::kMutableZeroCopy;
  }
  throw InvalidArgument("unknown host buffer semantics ", EnumValue(semantics));
}

void FromHost(PJRT_Client_BufferFromHostBuffer_Args& args) {
  const ElementType type = TypeOf(args.type);
  const std::span<const int64_t> dims = DimsOf(args.dims, args.num_dims);
  CheckDeviceLayout(args.device_layout, dims, ElementBytes(type));
  Ref<Event> done;
  std::unique_ptr<Buffer> buffer =
      Buffer::FromHost(Destination(args.memory, args.device), type, dims,
                       {args.data, DimsOf(args.byte_strides, args.num_byte_strides)},
                       SemanticsOf(args.host_buffer_semantics), &done);
  args.buffer = WrapBuffer(std::move(buffer));
  args.done_with_host_buffer = WrapEvent(std::move(done));
}

void Uninitialized(PJRT_Client_CreateUninitializedBuffer_Args& args) {
  const ElementType type = TypeOf(args.shape_element_type);
  const std::span<const int64_t> dims = DimsOf(args.shape_dims, args.shape_num_dims);
  CheckDeviceLayout(args.shape_layout, dims, ElementBytes(type));
  args.buffer =
      WrapBuffer(Buffer::Uninitialized(Destination(args.memory, args.device), type, dims));
}

void CreateError(PJRT_Client_CreateErrorBuffer_Args& args) {
  const ElementType type = TypeOf(args.shape_element_type);
  const std::span<const int64_t> dims = DimsOf(args.shape_dims, args.shape_num_dims);
  Error error = ErrorOf(args.error_code, args.error_message, args.error_message_size);
  if (TREADLE_HAS(args, PJRT_Client_CreateErrorBuffer_Args, num_payload)) {
    for (size_t i = 0; i < args.num_payload; ++i) {
      const PJRT_NamedValue& value = args.payload[i];
      if (EnumValue(value.type) != PJRT_NamedValue_kString) continue;  // payloads are strings
      error.payloads.emplace_back(std::string(value.name, value.name_size),
                                  std::string(value.string_value, value.value_size));
    }
  }
  args.buffer = WrapBuffer(Buffer::Failed(Unwrap(args.memory), type, dims, std::move(error)));
}

void ViewOfDevice(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  const ElementType type = TypeOf(args.element_type);
  const std::span<const int64_t> dims = DimsOf(args.dims, args.num_dims);
  CheckDeviceLayout(args.layout, dims, ElementBytes(type));
  PJRT_Memory* const memory =
      TREADLE_HAS(args, PJRT_Client_CreateViewOfDeviceBuffer_Args, memory) ? args.memory : nullptr;
  std::function<void()> on_release;
  if (args.on_delete_callback != nullptr) {
    on_release = [callback = args.on_delete_callback, data = args.device_buffer_ptr,
                  user_arg = args.on_delete_callback_arg] { callback(data, user_arg); };
  }
  args.buffer = WrapBuffer(Buffer::ViewOf(Destination(memory, args.device), type, dims,
                                          args.device_buffer_ptr, std::move(on_release)));
}

// PJRT_Client_CreateAliasBuffer and PJRT_Client_FulfillAliasBuffer stay unimplemented: they hand
// out buffers before it is known which buffer they are going to be, for dispatching ahead of a
// computation elsewhere; nothing in JAX's CPU path does that.

}  // namespace

void BindBufferCreation(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Client_BufferFromHostBuffer, FromHost, buffer);
  TREADLE_BIND(api, PJRT_Client_CreateUninitializedBuffer, Uninitialized, buffer);
  TREADLE_BIND(api, PJRT_Client_CreateErrorBuffer, CreateError, buffer);
  TREADLE_BIND(api, PJRT_Client_CreateViewOfDeviceBuffer, ViewOfDevice, buffer);
}

}  // namespace treadle::api
