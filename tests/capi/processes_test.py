"""Clients of a program of several processes: whose the devices are, and what runs where."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from pypjrt import errors

from tests.capi.artifacts import Buffer, Program, elementwise
from tests.capi.harness import Client, call, raises
from tests.capi.members import Deleter, Member, Store, meet
from tests.capi.wire import compile_options, wire

ADD_ONE = Program((Buffer((4,)),), (Buffer((4,)),), elementwise("x[i] + 1", 4))
NO_ARGUMENTS = Program((), (Buffer((1,)),), elementwise("1", 1, 0))


@pytest.fixture
def pair() -> Iterator[list[Member]]:
    """Two processes, with two devices and one."""
    values: dict[bytes, bytes] = {}
    members = meet([Store(values), Store(values)], [2, 1])
    yield members
    for member in members:
        member.close()


def test_the_devices_of_all(pair):
    for index, member in enumerate(pair):
        assert call("PJRT_Client_ProcessIndex", client=member.handle).process_index == index
        assert (
            len(member.all_devices) == 3 and member.devices == [member.all_devices[:2], member.all_devices[2:]][index]
        )
        assert len(member.memories) == 3 * len(member.devices)
        for id_, device in enumerate(member.all_devices):
            here = device in member.devices
            description = call("PJRT_Device_GetDescription", device=device).device_description
            assert call("PJRT_DeviceDescription_Id", device_description=description).id == id_
            process = call("PJRT_DeviceDescription_ProcessIndex", device_description=description).process_index
            assert process == [0, 0, 1][id_]
            assert bool(call("PJRT_Device_IsAddressable", device=device).is_addressable) == here
            local = member.devices.index(device) if here else -1
            assert call("PJRT_Device_LocalHardwareId", device=device).local_hardware_id == local
            assert call("PJRT_Client_LookupDevice", client=member.handle, id=id_).device == device
            memories = call("PJRT_Device_AddressableMemories", device=device).num_memories
            assert memories == (3 if here else 0)
        for local, device in enumerate(member.devices):
            found = call("PJRT_Client_LookupAddressableDevice", client=member.handle, local_hardware_id=local)
            assert found.addressable_device == device
        with raises(errors.InvalidArgument, f"local hardware id {len(member.devices)}"):
            call("PJRT_Client_LookupAddressableDevice", client=member.handle, local_hardware_id=len(member.devices))


def test_what_other_processes_devices_cannot_do(pair):
    member = pair[0]
    far = member.all_devices[2]
    text = ["TreadleCpuDevice(id=2) belongs to process 1 and this is process 0", "jax.local_devices()"]
    with raises(errors.InvalidArgument, *text):
        call("PJRT_Device_DefaultMemory", device=far)
    with raises(errors.InvalidArgument, *text):
        call("PJRT_Device_MemoryStats", device=far)
    with raises(errors.InvalidArgument, *text):
        call("PJRT_Device_ClearMemoryStats", device=far)
    local = list(member.devices)
    buffer = member.put(np.ones(3, np.float32))
    with raises(errors.InvalidArgument, *text):
        call("PJRT_Buffer_CopyToDevice", buffer=buffer.handle, dst_device=far)
    member.devices = [far]
    with raises(errors.InvalidArgument, *text):
        member.put(np.ones(3, np.float32))
    member.devices = local
    buffer.close()


def default_assignment(member: Member, replicas: int) -> list[int]:
    ids = (ctypes.c_int * replicas)()
    call(
        "PJRT_Client_DefaultDeviceAssignment",
        client=member.handle,
        num_replicas=replicas,
        num_partitions=1,
        default_assignment_size=replicas,
        default_assignment=ctypes.addressof(ids),
    )
    return list(ids)


def test_default_assignments_prefer_the_process_itself(pair):
    assert [default_assignment(pair[0], n) for n in (1, 2, 3)] == [[0], [0, 1], [0, 1, 2]]
    assert [default_assignment(pair[1], n) for n in (1, 2, 3)] == [[2], [0, 1], [0, 1, 2]]
    with raises(errors.InvalidArgument, "more devices than the 3"):
        default_assignment(pair[0], 4)


def serialized_topology(member: Client) -> tuple[bytes, int]:
    handle = call("PJRT_Client_TopologyDescription", client=member.handle).topology
    args = call("PJRT_TopologyDescription_Serialize", topology=handle)
    data = ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size)
    Deleter(args.serialized_topology_deleter)(args.serialized_topology)
    return data, call("PJRT_TopologyDescription_Fingerprint", topology=handle).fingerprint


def test_the_topology_is_the_same_everywhere(pair):
    (data, fingerprint), other = (serialized_topology(member) for member in pair)
    assert (data, fingerprint) == other
    assert data.startswith(b"treadle-topology-2\n2,1\n")
    block = ctypes.create_string_buffer(data, len(data))
    again = call(
        "PJRT_TopologyDescription_Deserialize",
        serialized_topology=ctypes.addressof(block),
        serialized_topology_size=len(data),
    ).topology
    args = call("PJRT_TopologyDescription_GetDeviceDescriptions", topology=again)
    described = ctypes.cast(args.descriptions, ctypes.POINTER(ctypes.c_void_p))[: args.num_descriptions]
    processes = [call("PJRT_DeviceDescription_ProcessIndex", device_description=d).process_index for d in described]
    assert processes == [0, 0, 1]
    assert call("PJRT_TopologyDescription_Fingerprint", topology=again).fingerprint == fingerprint
    call("PJRT_TopologyDescription_Destroy", topology=again)
    alone = Client(num_devices=3)
    assert serialized_topology(alone)[1] != fingerprint  # as many devices, but one process
    alone.close()
    for bad in (b"2,0", b"0,2", b"2,", b",1", b"2,x", b"60000,60000", b"-1,2"):
        broken = data.replace(b"2,1", bad)
        block = ctypes.create_string_buffer(broken, len(broken))
        with raises(errors.InvalidArgument, "not a serialized topology"):
            call(
                "PJRT_TopologyDescription_Deserialize",
                serialized_topology=ctypes.addressof(block),
                serialized_topology_size=len(broken),
            )


def run_on(member: Member, executable, device: int, **kwargs):
    """Adds one to an array on the member's device of this local id."""
    x = member.put(np.arange(4, dtype=np.float32), device=device)
    ((y,),) = executable.run([x], **kwargs)
    assert call("PJRT_Buffer_Device", buffer=y.handle).device == member.devices[device]
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    x.close()
    y.close()


def assigned(executable) -> bytes:
    args = call("PJRT_LoadedExecutable_GetDeviceAssignment", executable=executable.handle)
    data = ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size)
    Deleter(args.serialized_device_assignment_deleter)(args.serialized_device_assignment)
    return data


def one_device(id_: int) -> bytes:
    return wire(1, 1) + wire(2, 1) + wire(3, wire(1, bytes([id_])))


def test_programs_run_on_the_devices_of_their_process(pair):
    for member, ids in zip(pair, [(0, 1), (2,)], strict=True):
        for local, id_ in enumerate(ids):
            executable = member.compile(ADD_ONE, compile_options(1, 1, [[id_]]))
            assert assigned(executable) == one_device(id_)
            run_on(member, executable, local)
            executable.close()
        # Where nobody says where, it is the first device of the process, not the first of all.
        executable = member.compile(ADD_ONE)
        assert assigned(executable) == one_device(ids[0])
        run_on(member, executable, 0)
        executable.close()
        portable = member.compile(ADD_ONE, wire(4, 1))
        run_on(member, portable, len(ids) - 1, execute_device=member.devices[-1])
        portable.close()
    assert [request["devices"] for request in pair[0].requests + pair[1].requests] == [2] * 4 + [1] * 3


def test_a_device_ordinal_counts_the_process_own_devices(pair):
    options = wire(3, wire(1, 1))
    executable = pair[0].compile(ADD_ONE, options)
    assert assigned(executable) == one_device(1)
    executable.close()
    with raises(errors.InvalidArgument, "local hardware id 1"):
        pair[1].compile(ADD_ONE, options)


def test_programs_across_processes_are_unimplemented(pair):
    two = Program(ADD_ONE.inputs, ADD_ONE.outputs, ADD_ONE.body, num_partitions=2)
    whose = ["process 0 (this one) has 1; process 1 has 2", "no collectives between processes"]
    with raises(errors.Unimplemented, "PJRT_Client_Compile: the program is for 2 devices", *whose):
        pair[0].compile(two, compile_options(1, 2, [[1, 2]]))
    with raises(errors.Unimplemented, "process 0 has 0"):
        pair[1].compile(ADD_ONE, compile_options(1, 1, [[0]]))
    assert pair[0].requests == pair[1].requests == []  # the compiler was not bothered
    with raises(errors.InvalidArgument, "no device has id 3"):
        pair[0].compile(ADD_ONE, compile_options(1, 1, [[3]]))


def test_an_executable_of_another_process(pair):
    """As JAX's compilation cache has it, when the processes share a folder."""
    theirs = pair[0].compile(ADD_ONE, compile_options(1, 1, [[1]]))
    data = theirs.serialize()
    mine = pair[1].deserialize(data, compile_options(1, 1, [[2]]))
    run_on(pair[1], mine, 0)
    for executable in (theirs, mine):
        executable.close()
    # Compiled for a device that is not here, and nobody says for which instead.
    placed = Program(ADD_ONE.inputs, ADD_ONE.outputs, ADD_ONE.body, devices=(1,)).pack()
    with raises(errors.Unimplemented, "PJRT_Executable_DeserializeAndLoad: ", "process 0 has 1"):
        pair[1].deserialize(placed)


def test_a_program_without_arguments_cannot_run_elsewhere(pair):
    portable = pair[0].compile(NO_ARGUMENTS, wire(4, 1))
    with raises(errors.InvalidArgument, "TreadleCpuDevice(id=2) belongs to process 1", "to run a program"):
        portable.run([], execute_device=pair[0].all_devices[2])
    portable.close()
