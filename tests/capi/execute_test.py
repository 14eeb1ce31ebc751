"""Running programs: order, donation, errors, threads, the end of a client."""

import ctypes
import os
import threading
import time

import numpy as np
import pytest
from pypjrt import errors

from tests.capi.artifacts import F32, Buffer, Program, elementwise
from tests.capi.harness import PLUGIN, ZERO_COPY, Client, Event, call, raises
from tests.capi.harness import Buffer as DeviceBuffer
from tests.capi.programs import ADD_ONE, ADD_ONE_SLOWLY, DOUBLE_IN_PLACE, SLOW_FLOPS, SUM, x4
from tests.capi.wire import compile_options, wire


@pytest.mark.parametrize("program", [ADD_ONE, ADD_ONE_SLOWLY])
def test_run(client, program):
    executable = client.compile(program)
    x = x4(client)
    events: list[Event] = []
    ((y,),) = executable.run([x], events=events)
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    events[0].wait()
    assert y.pointer() % 64 == 0
    assert not x.is_deleted()
    assert call("PJRT_Buffer_Device", buffer=y.handle).device == client.devices[0]
    for thing in (y, x, events[0], executable):
        thing.close()


def test_returns_before_the_work_is_done(client):
    executable = client.compile(ADD_ONE_SLOWLY)
    x = x4(client)
    events: list[Event] = []
    ((y,),) = executable.run([x], events=events)
    assert not events[0].is_ready()
    # Everything may go away meanwhile.
    x.close()
    executable.close()
    called = threading.Event()
    events[0].on_ready(lambda error: called.set())
    events[0].close()
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    assert called.wait(10)
    y.close()


def test_a_chain_of_runs_that_nobody_waits_for(client):
    executable = client.compile(ADD_ONE_SLOWLY)
    buffers = [x4(client)]
    for _ in range(5):
        buffers.append(executable.run([buffers[-1]])[0][0])
    np.testing.assert_array_equal(buffers[-1].numpy(), np.arange(4) + 5)
    for buffer in buffers:
        buffer.close()
    executable.close()


def test_inputs_that_are_pending(client):
    """The program waits for its argument without a thread of the caller's."""
    executable = client.compile(ADD_ONE)
    source = x4(client)
    donation = call("PJRT_Buffer_DonateWithControlDependency", buffer=source.handle)
    x = DeviceBuffer(donation.out_buffer)
    ((y,),) = executable.run([x])
    ready = y.ready()
    time.sleep(0.02)
    assert not ready.is_ready()
    answer = PLUGIN.args("PJRT_Buffer_DonateWithControlDependency_Callback_Args", callback_data=donation.callback_data)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(donation.dependency_ready_callback)(ctypes.addressof(answer))
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    for thing in (ready, y, x, source, executable):
        thing.close()


@pytest.mark.parametrize("program", [ADD_ONE, ADD_ONE_SLOWLY])
def test_an_argument_that_is_an_error(client, program):
    executable = client.compile(program)
    dims = (ctypes.c_int64 * 1)(4)
    text = ctypes.create_string_buffer(b"no data today")
    args = call(
        "PJRT_Client_CreateErrorBuffer",
        client=client.handle,
        error_code=14,
        error_message=ctypes.addressof(text),
        error_message_size=13,
        shape_dims=ctypes.addressof(dims),
        shape_num_dims=1,
        shape_element_type=F32,
        memory=client.memories[0],
    )
    x = DeviceBuffer(args.buffer)
    events: list[Event] = []
    ((y,),) = executable.run([x], events=events)
    ((z,),) = executable.run([y])
    for buffer in (y, z):
        with raises(errors.Unavailable, "no data today"):
            buffer.numpy()
    with raises(errors.Unavailable, "no data today"):
        events[0].wait()
    for thing in (x, y, z, events[0], executable):
        thing.close()


FAILING = Program(
    (Buffer((4,)),),
    (Buffer((4,)),),
    'const char m[] = "the answer is 41"; treadle_fail(run, 11, m, sizeof m - 1); return 11',
    prelude="void treadle_fail(TreadleRun*, int32_t, const char*, uint64_t);",
)


def test_a_program_that_fails(client):
    executable = client.compile(FAILING)
    x = x4(client)
    with raises(errors.OutOfRange, "PJRT_LoadedExecutable_Execute", "the answer is 41"):
        executable.run([x])
    x.close()
    executable.close()


# ---- donation


@pytest.mark.parametrize("program_flops", [0, SLOW_FLOPS])
def test_donation_reuses_the_memory(client, program_flops):
    program = Program(DOUBLE_IN_PLACE.inputs, DOUBLE_IN_PLACE.outputs, DOUBLE_IN_PLACE.body, flops=program_flops)
    executable = client.compile(program)
    x = x4(client)
    address = x.pointer()
    ((y,),) = executable.run([x])
    assert x.is_deleted()
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    assert y.pointer() == address
    for thing in (x, y, executable):
        thing.close()


def test_donation_of_what_is_not_to_be_donated(client):
    executable = client.compile(DOUBLE_IN_PLACE)
    x = x4(client)
    ((y,),) = executable.run([x], non_donatable=[0])
    assert not x.is_deleted()
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2, 3])
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    for thing in (x, y, executable):
        thing.close()


def test_donation_of_what_someone_else_reads(client):
    """The donor is deleted, and the others still see what they saw: a view, a sharer, the host's array."""
    executable = client.compile(DOUBLE_IN_PLACE)
    lent = x4(client)
    call("PJRT_Buffer_IncreaseExternalReferenceCount", buffer=lent.handle)
    shared = x4(client)
    other = DeviceBuffer(
        call("PJRT_Buffer_CopyToMemory", buffer=shared.handle, dst_memory=client.memories[1]).dst_buffer
    )
    block = np.zeros(64, np.float32)
    start = -block.ctypes.data % 64 // 4
    host = block[start : start + 4]
    host[:] = [0, 1, 2, 3]
    view = client.put(host, semantics=ZERO_COPY)
    address = lent.pointer()
    results = [executable.run([buffer])[0][0] for buffer in (lent, shared, view)]
    for result in results:
        np.testing.assert_array_equal(result.numpy(), [0, 2, 4, 6])
    assert all(buffer.is_deleted() for buffer in (lent, shared, view))
    assert list((ctypes.c_float * 4).from_address(address)) == [0, 1, 2, 3]
    np.testing.assert_array_equal(other.numpy(), [0, 1, 2, 3])
    np.testing.assert_array_equal(host, [0, 1, 2, 3])
    call("PJRT_Buffer_DecreaseExternalReferenceCount", buffer=lent.handle)
    for thing in (lent, shared, other, view, *results, executable):
        thing.close()


def test_donation_behind_readers_in_the_queue(client):
    """Runs that were started earlier read the old contents, and the memory is reused all the same."""
    reader = client.compile(ADD_ONE_SLOWLY)
    in_place = client.compile(Program(DOUBLE_IN_PLACE.inputs, DOUBLE_IN_PLACE.outputs, DOUBLE_IN_PLACE.body))
    x = x4(client)
    address = x.pointer()
    ((read,),) = reader.run([x])
    ((y,),) = in_place.run([x])
    np.testing.assert_array_equal(read.numpy(), [1, 2, 3, 4])
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    assert y.pointer() == address
    for thing in (x, read, y, reader, in_place):
        thing.close()


TWO_OF_THEM = Program(
    (Buffer((4,), donated=True), Buffer((4,))), (Buffer((4,), alias=0),), elementwise("x[i] + y[i]", 4, 2)
)
BOTH = Program(
    (Buffer((4,), donated=True), Buffer((4,), donated=True)),
    (Buffer((4,), alias=0), Buffer((4,), alias=1)),
    "(void)b",
)


def test_the_same_buffer_donated_and_used(client):
    # jaxlib's CPU client refuses these too.
    x = x4(client)
    executable = client.compile(TWO_OF_THEM)
    with raises(errors.InvalidArgument, "argument 0 and argument 1", "f(donate(a), a)"):
        executable.run([x, x])
    both = client.compile(BOTH)
    with raises(errors.InvalidArgument, "f(donate(a), donate(a))"):
        both.run([x, x])
    assert not x.is_deleted()
    ((y,),) = executable.run([x, x], non_donatable=[0])
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    for thing in (x, y, executable, both):
        thing.close()


# ---- bad arguments


def test_bad_arguments(client):
    executable = client.compile(SUM)
    good = client.put(np.ones((2, 2), np.float32))
    transposed_shape = client.put(np.ones((4, 1), np.float32))
    integers = client.put(np.ones((2, 2), np.int32))
    elsewhere = client.put(np.ones((2, 2), np.float32), device=1)
    deleted = client.put(np.ones((2, 2), np.float32))
    deleted.delete()
    for arguments, texts in [
        ([good], ["takes 2 arguments", "given 1"]),
        ([good, good, good], ["takes 2 arguments", "given 3"]),
        ([good, transposed_shape], ["argument 1", "expected f32[2,2]", "got f32[4,1]"]),
        ([integers, good], ["argument 0", "expected f32[2,2]", "got s32[2,2]"]),
        ([good, elsewhere], ["argument 1", "TreadleCpuDevice(id=1)", "TreadleCpuDevice(id=0)"]),
        ([good, deleted], ["argument 1", "buffer has been deleted or donated"]),
    ]:
        with raises(errors.InvalidArgument, "PJRT_LoadedExecutable_Execute: ", *texts):
            executable.run(arguments)
    with raises(errors.InvalidArgument, "2 argument lists for 1 devices"):
        executable.run([good, good], [good, good])
    ((y,),) = executable.run([good, good])
    np.testing.assert_array_equal(y.numpy(), np.full((2, 2), 2))
    for thing in (good, transposed_shape, integers, elsewhere, deleted, y, executable):
        thing.close()


def test_memory_for_results_that_cannot_be_allocated(client):
    huge = Program((), (Buffer((1 << 40,)),), "(void)b")
    executable = client.compile(huge)
    with raises(errors.ResourceExhausted, "PJRT_LoadedExecutable_Execute"):
        executable.run([])
    executable.close()


# ---- several devices


@pytest.mark.parametrize("ids", [[[0, 1]], [[1, 0]]])
def test_one_program_on_two_devices(client, ids):
    program = Program(ADD_ONE.inputs, ADD_ONE.outputs, ADD_ONE.body, num_partitions=2)
    executable = client.compile(program, compile_options(1, 2, ids))
    xs = [client.put(np.full(4, 10 * i, np.float32), device=i) for i in ids[0]]
    results = executable.run(*[[x] for x in xs])
    for i, (y,) in zip(ids[0], results, strict=True):
        np.testing.assert_array_equal(y.numpy(), np.full(4, 10 * i + 1))
        assert call("PJRT_Buffer_Device", buffer=y.handle).device == client.devices[i]
        y.close()
    args = call("PJRT_LoadedExecutable_GetDeviceAssignment", executable=executable.handle)
    expected = wire(1, 1) + wire(2, 2) + b"".join(wire(3, wire(1, bytes([i]))) for i in ids[0])
    assert ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size) == expected
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.serialized_device_assignment_deleter)(
        args.serialized_device_assignment
    )
    args = call("PJRT_LoadedExecutable_AddressableDeviceLogicalIds", executable=executable.handle)
    logical = ctypes.cast(args.addressable_device_logical_ids, ctypes.POINTER(ctypes.c_int))
    assert logical[: 2 * args.num_addressable_device_logical_ids] == [0, 0, 0, 1]
    for thing in (*xs, executable):
        thing.close()


def test_a_portable_program_runs_where_it_is_told_to(client):
    executable = client.compile(ADD_ONE, wire(4, 1))
    assert call("PJRT_LoadedExecutable_GetDeviceAssignment", executable=executable.handle).serialized_bytes_size == 0
    x = x4(client, device=1)
    ((y,),) = executable.run([x], execute_device=client.devices[1])
    assert call("PJRT_Buffer_Device", buffer=y.handle).device == client.devices[1]
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    for thing in (x, y, executable):
        thing.close()


def test_deleted_executable(client):
    executable = client.compile(ADD_ONE)
    x = x4(client)
    call("PJRT_LoadedExecutable_Delete", executable=executable.handle)
    assert call("PJRT_LoadedExecutable_IsDeleted", executable=executable.handle).is_deleted
    with raises(errors.FailedPrecondition, "has been deleted"):
        executable.run([x])
    call("PJRT_LoadedExecutable_Fingerprint", executable=executable.handle)
    x.close()
    executable.close()


# ---- many threads


def test_many_threads_at_once(client):
    quick, slow = client.compile(ADD_ONE), client.compile(ADD_ONE_SLOWLY)
    failures = []

    def work(seed):
        try:
            for i in range(30):
                x = client.put(np.full(4, seed + i, np.float32))
                ((y,),) = (slow if i % 10 == 0 else quick).run([x])
                ((z,),) = quick.run([y])
                np.testing.assert_array_equal(z.numpy(), np.full(4, seed + i + 2))
                for buffer in (x, y, z):
                    buffer.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(100 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures, failures
    quick.close()
    slow.close()


def test_a_client_that_goes_while_programs_wait(client):
    """Destroying never waits: what has not started is cancelled."""
    gone = Client()
    executable = gone.compile(ADD_ONE_SLOWLY)
    x = x4(gone)
    results = [executable.run([x])[0][0] for _ in range(20)]
    last = results[-1].ready()
    x.close()
    executable.close()
    start = time.perf_counter()
    gone.close()
    assert time.perf_counter() - start < 1.0
    with raises(errors.Cancelled, "client was destroyed"):
        last.wait()
    last.close()
    for result in results:
        result.close()


def test_a_callback_may_use_the_api(client):
    executable = client.compile(ADD_ONE_SLOWLY)
    quick = client.compile(ADD_ONE)
    x = x4(client)
    event, values = Event.new(), []

    def run_another(_error):
        ((z,),) = quick.run([x])
        values.extend(z.numpy())
        z.close()
        event.set()

    events: list[Event] = []
    ((y,),) = executable.run([x], events=events)
    events[0].on_ready(run_another)  # in the device's own thread
    event.wait()
    assert values == [1, 2, 3, 4]
    for thing in (events[0], event, x, y, executable, quick):
        thing.close()


def test_a_forked_child_may_destroy_what_it_inherited():
    """The device's thread does not exist there, and nothing waits for it."""
    parent = Client()
    executable = parent.compile(ADD_ONE_SLOWLY)
    x = x4(parent)
    results = [executable.run([x])[0][0] for _ in range(3)]
    child = os.fork()
    if child == 0:
        for thing in (x, *results, executable, parent):
            thing.close()
        os._exit(7)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert pid and os.waitstatus_to_exitcode(status) == 7
    np.testing.assert_array_equal(results[-1].numpy(), [1, 2, 3, 4])
    for thing in (x, *results, executable, parent):
        thing.close()
