"""Buffers: host arrays in, host arrays out, sharing, deleting. Expected values are NumPy's."""

import ctypes

import numpy as np
import pytest
from pypjrt import errors

from tests.capi.harness import (
    MUTABLE_ZERO_COPY,
    ONLY_DURING_CALL,
    PLUGIN,
    UNTIL_TRANSFER_COMPLETES,
    ZERO_COPY,
    Buffer,
    Event,
    call,
    int64s,
    raises,
)


def aligned(shape, dtype=np.float32, offset=0):
    """An array at an address that is `offset` bytes beyond a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    block = np.zeros(size + 128, np.uint8)
    start = -block.ctypes.data % 64 + offset
    return block[start : start + size].view(dtype).reshape(shape)


ARRAYS = {
    "dense": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "scalar": np.float32(3.5),
    "transposed": np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1),
    "fortran": np.asfortranarray(np.arange(300 * 70, dtype=np.float64).reshape(300, 70)),
    "reversed": np.arange(24, dtype=np.int32).reshape(4, 6)[::-1, ::-2],
    "broadcast": np.broadcast_to(np.arange(3, dtype=np.float32), (4, 3)),
    "empty": np.zeros((3, 0, 2), np.float32),
    "bool": np.array([True, False, True]),
    "complex": np.arange(6).reshape(2, 3).T.astype(np.complex128) * 1j,
    "bytes": np.arange(200, dtype=np.uint8).reshape(10, 20)[1::3, ::7],
    "ones in shape": np.arange(6, dtype=np.float32).reshape(1, 6, 1)[:, ::2],
}


@pytest.mark.parametrize("semantics", [ONLY_DURING_CALL, UNTIL_TRANSFER_COMPLETES, ZERO_COPY, MUTABLE_ZERO_COPY])
@pytest.mark.parametrize("name", ARRAYS)
def test_round_trip(client, name, semantics):
    array = np.asarray(ARRAYS[name])
    buffer = client.put(array, semantics=semantics)
    assert buffer.dims() == array.shape
    assert call("PJRT_Buffer_OnDeviceSizeInBytes", buffer=buffer.handle).on_device_size_in_bytes == array.nbytes
    np.testing.assert_array_equal(buffer.numpy(array.dtype), array)
    buffer.close()


def test_zero_copy_where_the_semantics_allow_it(client):
    array = aligned((16,))
    array[:] = np.arange(16)
    done: list[Event] = []
    buffer = client.put(array, semantics=ZERO_COPY, done=done)
    assert buffer.pointer() == array.ctypes.data
    assert not done[0].is_ready()
    buffer.close()
    assert done[0].is_ready()
    done[0].close()


@pytest.mark.parametrize(
    "array, semantics",
    [(aligned((16,), offset=16), ZERO_COPY), (aligned((16,)), ONLY_DURING_CALL), (aligned((4, 4)).T, ZERO_COPY)],
)
def test_copied_where_they_do_not(client, array, semantics):
    done: list[Event] = []
    buffer = client.put(array, semantics=semantics, done=done)
    assert buffer.pointer() != array.ctypes.data
    assert buffer.pointer() % 64 == 0
    assert done[0].is_ready()
    done[0].close()
    buffer.close()


def test_two_buffers_of_one_host_array_release_it_last(client):
    array = aligned((16,))
    done: list[Event] = []
    first = client.put(array, semantics=ZERO_COPY, done=done)
    second = Buffer(call("PJRT_Buffer_CopyToMemory", buffer=first.handle, dst_memory=client.memories[3]).dst_buffer)
    first.close()
    assert not done[0].is_ready()
    np.testing.assert_array_equal(second.numpy(), array)
    second.close()
    assert done[0].is_ready()
    done[0].close()


def tiled(minor_to_major):
    order = int64s(minor_to_major)
    layout = PLUGIN.args("PJRT_Buffer_MemoryLayout")
    layout.type = 0
    layout.tiled.struct_size = PLUGIN.abi.PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE
    layout.tiled.minor_to_major = ctypes.addressof(order)
    layout.tiled.minor_to_major_size = len(minor_to_major)
    return layout, order


def test_host_layout(client):
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    buffer = client.put(array)
    layout, _order = tiled([0, 2, 1])  # dimension 0 varies fastest, then 2, then 1
    out = np.empty(24, np.float32)
    args = call(
        "PJRT_Buffer_ToHostBuffer",
        src=buffer.handle,
        dst=out.ctypes.data,
        dst_size=out.nbytes,
        host_layout=ctypes.addressof(layout),
    )
    Event(args.event).wait()
    np.testing.assert_array_equal(out, array.transpose(1, 2, 0).ravel())
    Event(args.event).close()
    layout, _order = tiled([0, 0, 1])
    with raises(errors.InvalidArgument, "not a permutation"):
        buffer.numpy(host_layout=ctypes.addressof(layout))
    buffer.close()


def test_size_query_and_a_destination_that_is_too_small(client):
    buffer = client.put(np.zeros(10, np.float32))
    assert call("PJRT_Buffer_ToHostBuffer", src=buffer.handle).dst_size == 40
    out = np.zeros(5, np.float32)
    with raises(errors.InvalidArgument, "dst_size is 20", "40 bytes"):
        call("PJRT_Buffer_ToHostBuffer", src=buffer.handle, dst=out.ctypes.data, dst_size=20)
    buffer.close()


@pytest.mark.parametrize("element_type", [21, 22, 24, 25, 29, 30, 31])
def test_types_of_less_than_a_byte_take_one_byte_each(client, element_type):
    array = np.array([1, 0, 1, 1, 0], np.int8)
    buffer = client.put(array, element_type=element_type)
    assert buffer.type() == element_type
    assert call("PJRT_Buffer_OnDeviceSizeInBytes", buffer=buffer.handle).on_device_size_in_bytes == 5
    np.testing.assert_array_equal(buffer.numpy(np.int8), array)
    buffer.close()


@pytest.mark.parametrize("element_type", [0, 34, 1000])
def test_unknown_element_type(client, element_type):
    with raises(errors.InvalidArgument, f"element type {element_type}"):
        client.put(np.zeros(3, np.float32), element_type=element_type)


def test_raw_copy_and_its_bounds(client):
    buffer = client.put(np.arange(10, dtype=np.float32))
    out = np.zeros(3, np.float32)
    args = call("PJRT_Buffer_CopyRawToHost", buffer=buffer.handle, dst=out.ctypes.data, offset=8, transfer_size=12)
    Event(args.event).wait()
    Event(args.event).close()
    np.testing.assert_array_equal(out, [2, 3, 4])
    for offset, size in [(-4, 4), (0, -4), (36, 8), (2**62, 2**62)]:
        with raises(errors.InvalidArgument):
            call(
                "PJRT_Buffer_CopyRawToHost",
                buffer=buffer.handle,
                dst=out.ctypes.data,
                offset=offset,
                transfer_size=size,
            )
    buffer.close()


def test_raw_copy_to_a_place_that_is_named_later(client):
    buffer = client.put(np.arange(10, dtype=np.float32))
    args = call("PJRT_Buffer_CopyRawToHostFuture", buffer=buffer.handle, offset=4, transfer_size=8)
    event = Event(args.event)
    assert not event.is_ready()
    out = np.zeros(2, np.float32)
    answer = PLUGIN.args(
        "PJRT_Buffer_CopyRawToHostFuture_Callback_Args", callback_data=args.callback_data, dst=out.ctypes.data
    )
    buffer.close()  # the copy holds what it needs
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.future_ready_callback)(ctypes.addressof(answer))
    assert event.is_ready()
    np.testing.assert_array_equal(out, [1, 2])
    event.close()


def test_deleted(client):
    buffer = client.put(np.zeros(3, np.float32))
    early = buffer.ready()
    buffer.delete()
    buffer.delete()
    assert buffer.is_deleted()
    early.wait()  # was ready before
    late = buffer.ready()
    with raises(errors.InvalidArgument, "deleted or donated"):
        late.wait()
    with raises(errors.InvalidArgument, "deleted or donated", "f32[3]"):
        buffer.numpy()
    with raises(errors.InvalidArgument, "deleted or donated"):
        call("PJRT_Buffer_IncreaseExternalReferenceCount", buffer=buffer.handle)
    # Shape and place remain.
    assert buffer.dims() == (3,)
    assert call("PJRT_Buffer_Device", buffer=buffer.handle).device == client.devices[0]
    for event in (early, late):
        event.close()
    buffer.close()


def test_external_references_keep_the_memory(client):
    buffer = client.put(np.arange(4, dtype=np.float32))
    call("PJRT_Buffer_IncreaseExternalReferenceCount", buffer=buffer.handle)
    pointer = call("PJRT_Buffer_OpaqueDeviceMemoryDataPointer", buffer=buffer.handle).device_memory_ptr
    buffer.delete()
    assert list((ctypes.c_float * 4).from_address(pointer)) == [0, 1, 2, 3]
    assert call("PJRT_Buffer_OpaqueDeviceMemoryDataPointer", buffer=buffer.handle).device_memory_ptr == pointer
    call("PJRT_Buffer_DecreaseExternalReferenceCount", buffer=buffer.handle)
    with raises(errors.InvalidArgument, "no external references"):
        call("PJRT_Buffer_DecreaseExternalReferenceCount", buffer=buffer.handle)
    buffer.close()


def test_copies_between_memories_and_devices(client):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = client.put(array)
    same = Buffer(call("PJRT_Buffer_CopyToMemory", buffer=buffer.handle, dst_memory=client.memories[0]).dst_buffer)
    pinned = Buffer(call("PJRT_Buffer_CopyToMemory", buffer=buffer.handle, dst_memory=client.memories[1]).dst_buffer)
    other = Buffer(call("PJRT_Buffer_CopyToDevice", buffer=buffer.handle, dst_device=client.devices[1]).dst_buffer)
    assert same.pointer() != buffer.pointer()
    assert call("PJRT_Buffer_Memory", buffer=pinned.handle).memory == client.memories[1]
    assert call("PJRT_Buffer_Device", buffer=other.handle).device == client.devices[1]
    buffer.close()
    for copy in (same, pinned, other):
        np.testing.assert_array_equal(copy.numpy(), array)
        copy.close()


def test_bitcast(client):
    buffer = client.put(np.arange(4, dtype=np.int32))
    dims = int64s([2, 8])
    args = call("PJRT_Buffer_Bitcast", buffer=buffer.handle, element_type=6, dims=ctypes.addressof(dims), num_dims=2)
    cast = Buffer(args.out_buffer)
    np.testing.assert_array_equal(cast.numpy(np.uint8), np.arange(4, dtype=np.int32).view(np.uint8).reshape(2, 8))
    with raises(errors.InvalidArgument, "bitcast of s32[4] (16 bytes) to u8[2] (2 bytes)"):
        call("PJRT_Buffer_Bitcast", buffer=buffer.handle, element_type=6, dims=ctypes.addressof(dims), num_dims=1)
    cast.close()
    buffer.close()


def view_of(client, address, dims, callback=None):
    sizes = int64s(dims)
    return Buffer(
        call(
            "PJRT_Client_CreateViewOfDeviceBuffer",
            client=client.handle,
            device_buffer_ptr=address,
            dims=ctypes.addressof(sizes),
            num_dims=len(dims),
            element_type=11,
            device=client.devices[0],
            on_delete_callback=ctypes.cast(callback, ctypes.c_void_p).value if callback else None,
            on_delete_callback_arg=1234,
        ).buffer
    )


def test_view_of_foreign_memory(client):
    array = aligned((4,))
    array[:] = [5, 6, 7, 8]
    released = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda p, a: released.append((p, a)))
    buffer = view_of(client, array.ctypes.data, [4], callback)
    np.testing.assert_array_equal(buffer.numpy(), array)
    assert not released
    buffer.close()
    assert released == [(array.ctypes.data, 1234)]
    with raises(errors.InvalidArgument, "not aligned to 64 bytes"):
        view_of(client, array.ctypes.data + 4, [4])


def test_memory_that_cannot_be_allocated(client):
    survivor = client.put(np.arange(3, dtype=np.float32))
    for dims in ([2**40], [2**62, 4], [2**31, 2**31, 2**31]):
        sizes = int64s(dims)
        with raises(errors.ResourceExhausted, "PJRT_Client_CreateUninitializedBuffer"):
            call(
                "PJRT_Client_CreateUninitializedBuffer",
                client=client.handle,
                shape_dims=ctypes.addressof(sizes),
                shape_num_dims=len(dims),
                shape_element_type=11,
                memory=client.memories[0],
            )
    sizes = int64s([4, -1])
    with raises(errors.InvalidArgument, "f32[4,-1]", "negative dimension"):
        call(
            "PJRT_Client_CreateUninitializedBuffer",
            client=client.handle,
            shape_dims=ctypes.addressof(sizes),
            shape_num_dims=2,
            shape_element_type=11,
            memory=client.memories[0],
        )
    np.testing.assert_array_equal(survivor.numpy(), [0, 1, 2])
    survivor.close()


def test_statistics(client):
    def stats():
        return call("PJRT_Device_MemoryStats", device=client.devices[0])

    before = stats().bytes_in_use
    buffer = client.put(np.zeros(1 << 20, np.uint8))
    now = stats()
    assert now.bytes_in_use - before == 1 << 20
    assert now.peak_bytes_in_use >= now.bytes_in_use and now.peak_bytes_in_use_is_set
    buffer.close()
    assert stats().bytes_in_use == before
    call("PJRT_Device_ClearMemoryStats", device=client.devices[0])
    assert stats().peak_bytes_in_use == before


def test_donation_with_a_control_dependency(client):
    buffer = client.put(np.arange(3, dtype=np.float32))
    for code, message in [(0, b""), (10, b"the dependency failed")]:
        source = Buffer(
            call("PJRT_Buffer_CopyToMemory", buffer=buffer.handle, dst_memory=client.memories[0]).dst_buffer
        )
        args = call("PJRT_Buffer_DonateWithControlDependency", buffer=source.handle)
        result = Buffer(args.out_buffer)
        assert source.is_deleted()
        ready = result.ready()
        assert not ready.is_ready()
        text = ctypes.create_string_buffer(message)
        answer = PLUGIN.args(
            "PJRT_Buffer_DonateWithControlDependency_Callback_Args",
            callback_data=args.callback_data,
            error_code=code,
            error_message=ctypes.addressof(text),
            error_message_size=len(message),
        )
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.dependency_ready_callback)(ctypes.addressof(answer))
        assert ready.is_ready()
        if code == 0:
            np.testing.assert_array_equal(result.numpy(), [0, 1, 2])
        else:
            with raises(errors.Aborted, "the dependency failed"):
                result.numpy()
        for thing in (ready, source, result):
            thing.close()
    buffer.close()


def test_layout_of_a_buffer(client):
    buffer = client.put(np.zeros((2, 3, 4), np.float32))
    layout = call("PJRT_Buffer_GetMemoryLayout", buffer=buffer.handle).layout
    order = ctypes.cast(layout.tiled.minor_to_major, ctypes.POINTER(ctypes.c_int64))
    assert order[: layout.tiled.minor_to_major_size] == [2, 1, 0]
    buffer.close()
