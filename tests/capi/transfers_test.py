"""PJRT_AsyncHostToDeviceTransferManager: buffers filled piece by piece."""

import ctypes

import numpy as np
import pytest
from pypjrt import errors

from tests.capi.harness import PLUGIN, Buffer, Event, call, int64s, raises


class Manager:
    def __init__(self, client, *shapes):
        specs = (PLUGIN.abi.PJRT_ShapeSpec * len(shapes))()
        self.dims = [int64s(shape) for shape in shapes]
        for spec, dims, shape in zip(specs, self.dims, shapes, strict=True):
            spec.struct_size = PLUGIN.abi.PJRT_ShapeSpec_STRUCT_SIZE
            spec.dims, spec.num_dims, spec.element_type = ctypes.addressof(dims), len(shape), 11
        self.handle = call(
            "PJRT_Client_CreateBuffersForAsyncHostToDevice",
            client=client.handle,
            shape_specs=ctypes.addressof(specs),
            num_shape_specs=len(shapes),
            memory=client.memories[0],
        ).transfer_manager

    def call(self, slot, **fields):
        return call(f"PJRT_AsyncHostToDeviceTransferManager_{slot}", transfer_manager=self.handle, **fields)

    def transfer(self, index, data, offset, last):
        args = self.call(
            "TransferData",
            buffer_index=index,
            data=data.ctypes.data,
            offset=offset,
            transfer_size=data.nbytes,
            is_last_transfer=last,
        )
        event = Event(args.done_with_h2d_transfer)
        event.wait()
        event.close()

    def retrieve(self, index):
        return Buffer(self.call("RetrieveBuffer", buffer_index=index).buffer_out)

    def close(self):
        self.call("Destroy")


@pytest.fixture
def manager(client):
    made = Manager(client, (6,), (2, 3))
    yield made
    made.close()


def test_pieces(manager):
    assert manager.call("BufferCount").buffer_count == 2
    assert manager.call("BufferSize", buffer_index=1).buffer_size == 24
    buffer = manager.retrieve(0)
    ready = buffer.ready()
    manager.transfer(0, np.array([3, 4, 5], np.float32), 12, False)
    assert not ready.is_ready()
    manager.transfer(0, np.array([0, 1, 2], np.float32), 0, True)
    assert ready.is_ready()
    np.testing.assert_array_equal(buffer.numpy(), np.arange(6))
    with raises(errors.FailedPrecondition, "last transfer"):
        manager.transfer(0, np.zeros(1, np.float32), 0, True)
    with raises(errors.FailedPrecondition, "retrieved before"):
        manager.retrieve(0)
    ready.close()
    buffer.close()


def test_a_whole_array(manager):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    dims = int64s((2, 3))
    buffer = manager.retrieve(1)

    def send(num_dims):
        return manager.call(
            "TransferLiteral",
            buffer_index=1,
            data=array.ctypes.data,
            shape_dims=ctypes.addressof(dims),
            shape_num_dims=num_dims,
            shape_element_type=11,
        )

    with raises(errors.InvalidArgument, "expected f32[2,3], got f32[2]"):
        send(1)
    Event(send(2).done_with_h2d_transfer).close()
    np.testing.assert_array_equal(buffer.numpy(), array)
    buffer.close()


@pytest.mark.parametrize("offset, size", [(-4, 1), (24, 1), (2**62, 1), (0, 7)])
def test_out_of_bounds(manager, offset, size):
    with raises(errors.InvalidArgument, "to a buffer of 24"):
        manager.transfer(0, np.zeros(size, np.float32), offset, True)


def test_unknown_index(manager):
    for index in (-1, 2):
        with raises(errors.InvalidArgument, f"buffer index {index}"):
            manager.retrieve(index)


def test_an_error_instead_of_data(client, manager):
    buffer = manager.retrieve(0)
    text = ctypes.create_string_buffer(b"lost")
    manager.call(
        "SetBufferError", buffer_index=0, error_code=15, error_message=ctypes.addressof(text), error_message_size=4
    )
    with raises(errors.DataLoss, "lost"):
        buffer.numpy()
    buffer.close()


def test_a_manager_that_goes_first(client):
    manager = Manager(client, (6,))
    buffer = manager.retrieve(0)
    manager.close()
    with raises(errors.Cancelled, "before the last transfer"):
        buffer.numpy()
    buffer.close()
