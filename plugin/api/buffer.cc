// PJRT_Buffer: asking, copying out, deleting.
#include "plugin/runtime/buffer.h"

#include <memory>
#include <vector>

#include "plugin/api/bind.h"
#include "plugin/api/error.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/layout.h"

namespace treadle::api {

namespace {

void Destroy(PJRT_Buffer_Destroy_Args& args) {
  if (args.buffer != nullptr) delete &Unwrap(args.buffer);
}

void GetElementType(PJRT_Buffer_ElementType_Args& args) {
  args.type = static_cast<PJRT_Buffer_Type>(Unwrap(args.buffer).type());
}

void Dimensions(PJRT_Buffer_Dimensions_Args& args) {
  const std::span<const int64_t> dims = Unwrap(args.buffer).dims();
  args.dims = dims.data();
  args.num_dims = dims.size();
}

void UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  const std::span<const int64_t> dims = Unwrap(args.buffer).dims();
  args.unpadded_dims = dims.data();
  args.num_dims = dims.size();
}

void DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  args.layout = RowMajorLayout(Unwrap(args.buffer).dims().size());
}

void OnDeviceSize(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = Unwrap(args.buffer).byte_size();
}

void GetDevice(PJRT_Buffer_Device_Args& args) { args.device = Wrap(&Unwrap(args.buffer).device()); }

void GetMemory(PJRT_Buffer_Memory_Args& args) { args.memory = Wrap(&Unwrap(args.buffer).memory()); }

void Delete(PJRT_Buffer_Delete_Args& args) { Unwrap(args.buffer).Delete(); }

void IsDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = Unwrap(args.buffer).IsDeleted();
}

void IsOnCpu(PJRT_Buffer_IsOnCpu_Args& args) { args.is_on_cpu = true; }

void ReadyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  args.event = WrapEvent(Unwrap(args.buffer).ReadyEvent());
}

// With no `dst` a question for the size.
void ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  const Buffer& buffer = Unwrap(args.src);
  if (args.dst == nullptr) {
    args.dst_size = buffer.byte_size();
    return;
  }
  if (args.dst_size < buffer.byte_size()) {
    throw InvalidArgument("dst_size is ", args.dst_size, " and the array has ", buffer.byte_size(),
                          " bytes");
  }
  args.event = WrapEvent(buffer.CopyToHost(
      args.dst, HostStrides(args.host_layout, buffer.dims(), ElementBytes(buffer.type()))));
}

void CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args& args) {
  if (args.offset < 0 || args.transfer_size < 0) {
    throw InvalidArgument("offset ", args.offset, ", transfer_size ", args.transfer_size);
  }
  args.event = WrapEvent(Unwrap(args.buffer)
                             .CopyRawToHost(args.dst, static_cast<size_t>(args.offset),
                                            static_cast<size_t>(args.transfer_size)));
}

// The caller names the destination later, through the callback.
struct RawCopy {
  BufferContents contents;
  size_t offset, size;
  Ref<Event> done;
};

void FinishRawCopy(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) noexcept {
  const std::unique_ptr<RawCopy> copy(static_cast<RawCopy*>(args->callback_data));
  if (!IsOk(args->error_code)) {
    copy->done->SetError(ErrorOf(args->error_code, args->error_message, args->error_message_size));
    return;
  }
  copy->contents.ready->OnReady([dst = args->dst, storage = copy->contents.storage,
                                 done = copy->done, offset = copy->offset,
                                 size = copy->size](const Error* error) {
    if (error != nullptr) {
      done->SetError(*error);
      return;
    }
    std::copy_n(static_cast<const char*>(storage->data()) + offset, size, static_cast<char*>(dst));
    done->SetReady();
  });
}

void CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args& args) {
  const Buffer& buffer = Unwrap(args.buffer);
  const auto whole = static_cast<int64_t>(buffer.byte_size());
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > whole ||
      args.transfer_size > whole - args.offset) {
    throw InvalidArgument("offset ", args.offset, ", transfer_size ", args.transfer_size,
                          " of a buffer of ", whole, " bytes");
  }
  Ref<Event> done = Event::Pending();
  args.callback_data = new RawCopy{buffer.Contents(), static_cast<size_t>(args.offset),
                                   static_cast<size_t>(args.transfer_size), done};
  args.future_ready_callback = FinishRawCopy;
  args.event = WrapEvent(std::move(done));
}

void CopyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  args.dst_buffer =
      WrapBuffer(Unwrap(args.buffer).CopyTo(DefaultMemoryOf(Unwrap(args.dst_device))));
}

void CopyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  args.dst_buffer = WrapBuffer(Unwrap(args.buffer).CopyTo(Unwrap(args.dst_memory)));
}

void Bitcast(PJRT_Buffer_Bitcast_Args& args) {
  const ElementType type = TypeOf(args.element_type);
  const std::span<const int64_t> dims = DimsOf(args.dims, args.num_dims);
  CheckDeviceLayout(args.device_layout, dims, ElementBytes(type));
  args.out_buffer = WrapBuffer(Unwrap(args.buffer).Bitcast(type, dims));
}

void IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  Unwrap(args.buffer).IncreaseExternalReferences();
}

void DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  Unwrap(args.buffer).DecreaseExternalReferences();
}

void DataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  args.device_memory_ptr = Unwrap(args.buffer).Data();
}

void UnsafePointer(PJRT_Buffer_UnsafePointer_Args& args) {
  args.buffer_pointer = reinterpret_cast<uintptr_t>(Unwrap(args.buffer).Data());
}

void FinishDependency(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args) noexcept {
  const Ref<Event> dependency = Ref<Event>::Adopt(static_cast<Event*>(args->callback_data));
  if (IsOk(args->error_code)) {
    dependency->SetReady();
  } else {
    dependency->SetError(ErrorOf(args->error_code, args->error_message, args->error_message_size));
  }
}

void DonateWithControlDependency(PJRT_Buffer_DonateWithControlDependency_Args& args) {
  Ref<Event> dependency = Event::Pending();
  args.out_buffer = WrapBuffer(Unwrap(args.buffer).DonateAfter(dependency));
  args.callback_data = dependency.Detach();
  args.dependency_ready_callback = FinishDependency;
}

}  // namespace

void BindBuffer(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Buffer_Destroy, Destroy, buffer);
  TREADLE_BIND(api, PJRT_Buffer_ElementType, GetElementType, type);
  TREADLE_BIND(api, PJRT_Buffer_Dimensions, Dimensions, num_dims);
  TREADLE_BIND(api, PJRT_Buffer_UnpaddedDimensions, UnpaddedDimensions, num_dims);
  TREADLE_BIND(api, PJRT_Buffer_DynamicDimensionIndices, DynamicDimensionIndices, num_dynamic_dims);
  TREADLE_BIND(api, PJRT_Buffer_GetMemoryLayout, GetMemoryLayout, layout);
  TREADLE_BIND(api, PJRT_Buffer_OnDeviceSizeInBytes, OnDeviceSize, on_device_size_in_bytes);
  TREADLE_BIND(api, PJRT_Buffer_Device, GetDevice, device);
  TREADLE_BIND(api, PJRT_Buffer_Memory, GetMemory, memory);
  TREADLE_BIND(api, PJRT_Buffer_Delete, Delete, buffer);
  TREADLE_BIND(api, PJRT_Buffer_IsDeleted, IsDeleted, is_deleted);
  TREADLE_BIND(api, PJRT_Buffer_IsOnCpu, IsOnCpu, is_on_cpu);
  TREADLE_BIND(api, PJRT_Buffer_ReadyEvent, ReadyEvent, event);
  TREADLE_BIND(api, PJRT_Buffer_ToHostBuffer, ToHostBuffer, event);
  TREADLE_BIND(api, PJRT_Buffer_CopyRawToHost, CopyRawToHost, event);
  TREADLE_BIND(api, PJRT_Buffer_CopyRawToHostFuture, CopyRawToHostFuture, future_ready_callback);
  TREADLE_BIND(api, PJRT_Buffer_CopyToDevice, CopyToDevice, dst_buffer);
  TREADLE_BIND(api, PJRT_Buffer_CopyToMemory, CopyToMemory, dst_buffer);
  TREADLE_BIND(api, PJRT_Buffer_Bitcast, Bitcast, out_buffer);
  TREADLE_BIND(api, PJRT_Buffer_IncreaseExternalReferenceCount, IncreaseExternalReferenceCount,
               buffer);
  TREADLE_BIND(api, PJRT_Buffer_DecreaseExternalReferenceCount, DecreaseExternalReferenceCount,
               buffer);
  TREADLE_BIND(api, PJRT_Buffer_OpaqueDeviceMemoryDataPointer, DataPointer, device_memory_ptr);
  TREADLE_BIND(api, PJRT_Buffer_UnsafePointer, UnsafePointer, buffer_pointer);
  TREADLE_BIND(api, PJRT_Buffer_DonateWithControlDependency, DonateWithControlDependency,
               out_buffer);
}

}  // namespace treadle::api
