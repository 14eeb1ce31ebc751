"""Clients, their options, devices, memories and topologies."""

import ctypes
import os
import subprocess
import sys

import pytest
from pypjrt import errors

from tests.capi.harness import PLUGIN, Client, call, named_values, raises


def text(args, field):
    return ctypes.string_at(getattr(args, field), getattr(args, f"{field}_size")).decode()


def test_names(client):
    assert text(call("PJRT_Client_PlatformName", client=client.handle), "platform_name") == "cpu"
    version = text(call("PJRT_Client_PlatformVersion", client=client.handle), "platform_version")
    assert version.startswith("treadle ") and "(build id unknown)" in version
    named = Client(compiler_build_id="0123456789abcdef")
    version = text(call("PJRT_Client_PlatformVersion", client=named.handle), "platform_version")
    assert version.endswith("(build id 0123456789abcdef)")
    named.close()
    assert call("PJRT_Client_ProcessIndex", client=client.handle).process_index == 0


def test_devices():
    client = Client(num_devices=3)
    assert len(client.devices) == 3
    assert call("PJRT_Client_Devices", client=client.handle).num_devices == 3
    for index, device in enumerate(client.devices):
        assert call("PJRT_Client_LookupDevice", client=client.handle, id=index).device == device
        lookup = call("PJRT_Client_LookupAddressableDevice", client=client.handle, local_hardware_id=index)
        assert lookup.addressable_device == device
        assert call("PJRT_Device_IsAddressable", device=device).is_addressable
        assert call("PJRT_Device_LocalHardwareId", device=device).local_hardware_id == index
        description = call("PJRT_Device_GetDescription", device=device).device_description
        assert call("PJRT_DeviceDescription_Id", device_description=description).id == index
        kind = call("PJRT_DeviceDescription_Kind", device_description=description)
        assert text(kind, "device_kind") == "Treadle CPU"
        to_string = call("PJRT_DeviceDescription_ToString", device_description=description)
        assert text(to_string, "to_string") == f"TreadleCpuDevice(id={index})"
    for bad in (-1, 3, 2**31 - 1):
        with raises(errors.InvalidArgument, f"no device has id {bad}", "0 to 2"):
            call("PJRT_Client_LookupDevice", client=client.handle, id=bad)
    client.close()


def test_memories(client):
    kinds = ["device", "pinned_host", "unpinned_host"]
    assert len(client.memories) == 6
    ids = set()
    for index, memory in enumerate(client.memories):
        assert text(call("PJRT_Memory_Kind", memory=memory), "kind") == kinds[index % 3]
        assert call("PJRT_Memory_Kind_Id", memory=memory).kind_id == index % 3
        ids.add(call("PJRT_Memory_Id", memory=memory).id)
        args = call("PJRT_Memory_AddressableByDevices", memory=memory)
        assert args.num_devices == 1
        assert ctypes.cast(args.devices, ctypes.POINTER(ctypes.c_void_p))[0] == client.devices[index // 3]
    assert len(ids) == 6
    assert call("PJRT_Device_DefaultMemory", device=client.devices[1]).memory == client.memories[3]


def test_user_data_of_a_memory():
    client = Client()
    memory = client.memories[0]
    deleted: list[int] = []
    table = ctypes.cast(ctypes.cast(memory, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(ctypes.c_void_p))
    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(table[3])
    set_ = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(table[4])
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)
    address = ctypes.cast(deleter, ctypes.c_void_p)
    assert get(memory, 1) is None
    set_(memory, 1, 11, address)
    set_(memory, 2, 22, address)
    assert (get(memory, 1), get(memory, 2)) == (11, 22)
    set_(memory, 1, 12, address)
    assert get(memory, 1) == 12 and deleted == [11]
    client.close()
    assert sorted(deleted) == [11, 12, 22]


def test_default_device_assignment(client):
    ids = (ctypes.c_int * 2)(9, 9)
    call(
        "PJRT_Client_DefaultDeviceAssignment",
        client=client.handle,
        num_replicas=2,
        num_partitions=1,
        default_assignment_size=2,
        default_assignment=ctypes.addressof(ids),
    )
    assert list(ids) == [0, 1]
    for replicas, partitions, size, error in [
        (2, 1, 1, errors.FailedPrecondition),
        (2, 2, 4, errors.InvalidArgument),
        (0, 1, 4, errors.InvalidArgument),
    ]:
        with raises(error, "PJRT_Client_DefaultDeviceAssignment"):
            call(
                "PJRT_Client_DefaultDeviceAssignment",
                client=client.handle,
                num_replicas=replicas,
                num_partitions=partitions,
                default_assignment_size=size,
                default_assignment=ctypes.addressof(ids),
            )


@pytest.mark.parametrize(
    "options, texts",
    [
        ({"colour": "blue"}, ["unknown option 'colour'", "num_devices", "num_threads", "compile_fn"]),
        ({"num_devices": 0}, ["num_devices is 0", "from 1 to"]),
        ({"num_devices": 10**6}, ["num_devices is 1000000"]),
        ({"num_devices": "two"}, ["num_devices wants an integer", "a string"]),
        ({"num_devices": True}, ["num_devices wants an integer", "a bool"]),
        ({"num_threads": -1}, ["num_threads is -1"]),
        ({"num_threads": 1.5}, ["num_threads wants an integer", "a float"]),
        ({"compile_fn": "here"}, ["compile_fn wants an address"]),
        ({"stablehlo_version": "new"}, ["stablehlo_version is 'new'", "1.17.0"]),
        ({"stablehlo_version": "1.2"}, ["stablehlo_version is '1.2'"]),
        ({"compiler_build_id": 5}, ["compiler_build_id wants a string"]),
        ({"num_nodes": 0}, ["num_nodes is 0", "from 1 to 16384"]),
        ({"num_nodes": 10**6, "node_id": 0}, ["num_nodes is 1000000"]),
        ({"num_nodes": 2}, ["num_nodes is 2", "node_id was not given"]),
        ({"num_nodes": 2, "node_id": 2}, ["node_id is 2", "below num_nodes, which is 2"]),
        ({"node_id": 1}, ["node_id is 1", "num_nodes, which was not given"]),
        ({"num_nodes": 2, "node_id": -1}, ["node_id is -1"]),
        ({"handshake_timeout_seconds": 0}, ["handshake_timeout_seconds is 0"]),
        ({"handshake_timeout_seconds": "-5"}, ["handshake_timeout_seconds is -5"]),
        ({"handshake_timeout_seconds": "soon"}, ["handshake_timeout_seconds wants an integer"]),
        ({"kv_hook": "here"}, ["kv_hook wants an address"]),
    ],
)
def test_bad_options(options, texts):
    with raises(errors.InvalidArgument, "PJRT_Client_Create: ", *texts):
        Client(**options)


def test_numbers_may_come_as_text():
    # So JAX passes what its users write in jax_pjrt_client_create_options.
    client = Client(num_devices="2", num_threads="1")
    assert len(client.devices) == 2
    client.close()


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


COUNT = "from tests.capi.harness import Client; print(len(Client({}).devices))"


def test_options_from_the_environment():
    assert run(COUNT.format(""), TREADLE_NUM_DEVICES="5").stdout.strip() == "5"
    assert run(COUNT.format("num_devices=2"), TREADLE_NUM_DEVICES="5").stdout.strip() == "2"
    for value in ("many", "0", "3x", "1.5"):
        failed = run(COUNT.format(""), TREADLE_NUM_DEVICES=value)
        assert f"environment variable TREADLE_NUM_DEVICES='{value}'" in failed.stderr


def test_versions_of_stablehlo():
    code = (
        "from tests.capi.harness import Client, PLUGIN; Client(stablehlo_version='1.22.3');"
        "print(tuple(PLUGIN.attributes['stablehlo_current_version']))"
    )
    assert run(code).stdout.strip() == "(1, 22, 3)"


# ---- topologies


def topology(name):
    data = ctypes.create_string_buffer(name.encode())
    return call(
        "PJRT_TopologyDescription_Create", topology_name=ctypes.addressof(data), topology_name_size=len(name)
    ).topology


def num_devices(handle):
    return call("PJRT_TopologyDescription_GetDeviceDescriptions", topology=handle).num_descriptions


@pytest.mark.parametrize("name, count", [("", 1), ("treadle", 1), ("cpu", 1), ("treadle:8", 8), ("cpu:3", 3)])
def test_topologies_by_name(name, count):
    handle = topology(name)
    assert num_devices(handle) == count
    call("PJRT_TopologyDescription_Destroy", topology=handle)


@pytest.mark.parametrize(
    "name", ["v5e:2x2", "treadle:", "treadle:0", "treadle:-1", "treadle:1x", "treadle:99999999999"]
)
def test_topologies_that_are_none(name):
    with raises(errors.InvalidArgument, f"'{name}'", "treadle:N"):
        topology(name)


def fingerprint(handle):
    return call("PJRT_TopologyDescription_Fingerprint", topology=handle).fingerprint


def test_a_topology_survives_serialization():
    handle, other = topology("treadle:4"), topology("treadle:5")
    args = call("PJRT_TopologyDescription_Serialize", topology=handle)
    data = ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.serialized_topology_deleter)(args.serialized_topology)

    def load(data):
        block = ctypes.create_string_buffer(data, len(data) + 1)
        return call(
            "PJRT_TopologyDescription_Deserialize",
            serialized_topology=ctypes.addressof(block),
            serialized_topology_size=len(data),
        ).topology

    again = load(data)
    assert num_devices(again) == 4
    assert fingerprint(again) == fingerprint(handle) != fingerprint(other)
    for bad in (b"", b"nothing", data[:20], data.replace(b"\n4\n", b"\n0\n"), data.replace(b"\n4\n", b"\n9999999\n")):
        with raises(errors.InvalidArgument, "not a serialized topology"):
            load(bad)
    for each in (handle, other, again):
        call("PJRT_TopologyDescription_Destroy", topology=each)


def test_the_compilers_build_id_is_in_the_fingerprint():
    # JAX keys its cache of compiled programs with it.
    clients = [Client(compiler_build_id=i) for i in ("one", "one", "two")]
    prints = [fingerprint(call("PJRT_Client_TopologyDescription", client=c.handle).topology) for c in clients]
    assert prints[0] == prints[1] != prints[2]
    for client in clients:
        client.close()


def test_callers_of_an_older_header():
    """A shorter PJRT_Client_Create_Args, as callers had before kv_try_get; nothing beyond it is read."""
    values = named_values({"num_devices": 1})
    args = PLUGIN.args("PJRT_Client_Create_Args", create_options=ctypes.addressof(values), num_options=1)
    args.struct_size = PLUGIN.abi.PJRT_Client_Create_Args.client.offset + 8
    for field in ("kv_get_callback", "kv_put_callback", "kv_try_get_callback"):
        setattr(args, field, 0xDEAD)  # JAX leaves these uninitialised
    assert not PLUGIN.fn("PJRT_Client_Create")(ctypes.byref(args))
    call("PJRT_Client_Destroy", client=args.client)
