// PJRT_AsyncHostToDeviceTransferManager.
#include "plugin/runtime/transfer_manager.h"

#include <vector>

#include "plugin/api/bind.h"
#include "plugin/api/error.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/layout.h"

namespace treadle::api {

namespace {

void Create(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args& args) {
  std::vector<TransferManager::Shape> shapes;
  for (size_t i = 0; i < args.num_shape_specs; ++i) {
    const PJRT_ShapeSpec& spec = args.shape_specs[i];
    shapes.push_back({TypeOf(spec.element_type), DimsOf(spec.dims, spec.num_dims)});
    if (i < args.num_device_layouts && args.device_layouts != nullptr) {
      CheckDeviceLayout(args.device_layouts[i], shapes.back().dims,
                        ElementBytes(shapes.back().type));
    }
  }
  args.transfer_manager = Wrap(new TransferManager(Unwrap(args.memory), shapes));
}

void Destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args& args) {
  if (args.transfer_manager != nullptr) delete &Unwrap(args.transfer_manager);
}

void TransferData(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args& args) {
  Unwrap(args.transfer_manager)
      .Transfer(args.buffer_index, args.data, args.offset, args.transfer_size,
                args.is_last_transfer);
  args.done_with_h2d_transfer = WrapEvent(Event::Ready());
}

void TransferLiteral(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args& args) {
  const ElementType type = TypeOf(args.shape_element_type);
  const std::span<const int64_t> dims = DimsOf(args.shape_dims, args.shape_num_dims);
  const std::vector<int64_t> strides = HostStrides(args.shape_layout, dims, ElementBytes(type));
  Unwrap(args.transfer_manager).TransferArray(args.buffer_index, type, dims, {args.data, strides});
  args.done_with_h2d_transfer = WrapEvent(Event::Ready());
}

void RetrieveBuffer(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args& args) {
  args.buffer_out = WrapBuffer(Unwrap(args.transfer_manager).Retrieve(args.buffer_index));
}

void DeviceOf(PJRT_AsyncHostToDeviceTransferManager_Device_Args& args) {
  args.device_out = Wrap(&Unwrap(args.transfer_manager).memory().device());
}

void BufferCount(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args& args) {
  args.buffer_count = Unwrap(args.transfer_manager).size();
}

void BufferSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args& args) {
  args.buffer_size = Unwrap(args.transfer_manager).BufferSize(args.buffer_index);
}

void SetBufferError(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args& args) {
  Unwrap(args.transfer_manager)
      .SetError(args.buffer_index,
                ErrorOf(args.error_code, args.error_message, args.error_message_size));
}

// Metadata is for profilers of the transfer, of which there are none here.
void AddMetadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args&) {}

}  // namespace

void BindTransfer(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Client_CreateBuffersForAsyncHostToDevice, Create, transfer_manager);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_Destroy, Destroy, transfer_manager);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_TransferData, TransferData,
               done_with_h2d_transfer);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_TransferLiteral, TransferLiteral,
               done_with_h2d_transfer);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, RetrieveBuffer,
               buffer_out);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_Device, DeviceOf, device_out);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_BufferCount, BufferCount, buffer_count);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_BufferSize, BufferSize, buffer_size);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_SetBufferError, SetBufferError,
               error_message_size);
  TREADLE_BIND(api, PJRT_AsyncHostToDeviceTransferManager_AddMetadata, AddMetadata, num_metadata);
}

}  // namespace treadle::api
