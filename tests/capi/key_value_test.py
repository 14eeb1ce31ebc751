"""The key-value callbacks of PJRT_Client_Create: a store that the test plays, in one process."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from typing import Any

import pytest
from pypjrt import errors

from tests.capi.harness import PLUGIN, Client, call, compile_function, named_values, raises
from treadle import distributed

DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = 4, 5, 6, 7

MakeError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
HEAD: list[Any] = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]
KEY: list[Any] = [("key", ctypes.c_void_p), ("key_size", ctypes.c_size_t)]
ERROR: list[Any] = [("callback_error", ctypes.POINTER(MakeError)), ("user_arg", ctypes.c_void_p)]
VALUE: list[Any] = [("value", ctypes.c_void_p), ("value_size", ctypes.c_size_t)]


class GetArgs(ctypes.Structure):
    _fields_ = [*HEAD, *KEY, ("timeout_in_ms", ctypes.c_int), *ERROR, *VALUE, ("deleter", ctypes.c_void_p)]


class TryGetArgs(ctypes.Structure):
    _fields_ = [*HEAD, *KEY, *ERROR, *VALUE, ("deleter", ctypes.c_void_p)]


class PutArgs(ctypes.Structure):
    _fields_ = [*HEAD, *KEY, *VALUE, *ERROR]


class Store:
    """The callbacks of one process over values that several share."""

    def __init__(self, values: dict[bytes, bytes]):
        self.values = values
        self.lent: dict[int, Any] = {}  # values that the plugin has to give back
        self.returned = 0
        self.timeouts: list[int] = []
        self.user_args: set[int | None] = set()
        self.refusal = 0  # the code with which every call fails
        self.callbacks = [
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(kind))(function)
            for kind, function in ((GetArgs, self._get), (PutArgs, self._put), (TryGetArgs, self._try_get))
        ]
        self.deleter = Deleter(self._take_back)

    def fields(self, try_get: bool = True) -> dict[str, int | None]:
        """Of PJRT_Client_Create_Args."""
        fields: dict[str, int | None] = {}
        for index, name in enumerate(["kv_get", "kv_put", "kv_try_get"] if try_get else ["kv_get", "kv_put"]):
            fields[f"{name}_callback"] = ctypes.cast(self.callbacks[index], ctypes.c_void_p).value
            fields[f"{name}_user_arg"] = 100 + index
        return fields

    def _take_back(self, value: int) -> None:
        del self.lent[value]  # twice would be a KeyError
        self.returned += 1

    def _fail(self, args: Any, code: int, text: bytes) -> int | None:
        error: int | None = args.callback_error.contents(code, text, len(text))
        return error

    def _lend(self, args: Any, value: bytes) -> None:
        block = ctypes.create_string_buffer(value, max(1, len(value)))
        args.value, args.value_size = ctypes.addressof(block), len(value)
        args.deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value
        self.lent[args.value] = block

    def _get(self, pointer: Any) -> int | None:
        args = pointer.contents
        key = ctypes.string_at(args.key, args.key_size)
        self.timeouts.append(args.timeout_in_ms)
        self.user_args.add(args.user_arg)
        if self.refusal:
            return self._fail(args, self.refusal, b"the store says no")
        deadline = time.monotonic() + args.timeout_in_ms / 1000
        while key not in self.values:
            if time.monotonic() > deadline:
                return self._fail(args, DEADLINE_EXCEEDED, b"no " + key)
            time.sleep(0.002)
        self._lend(args, self.values[key])
        return None

    def _try_get(self, pointer: Any) -> int | None:
        args = pointer.contents
        key = ctypes.string_at(args.key, args.key_size)
        self.user_args.add(args.user_arg)
        if self.refusal:
            return self._fail(args, self.refusal, b"the store says no")
        if key not in self.values:
            return self._fail(args, NOT_FOUND, b"no " + key)
        self._lend(args, self.values[key])
        return None

    def _put(self, pointer: Any) -> int | None:
        args = pointer.contents
        key = ctypes.string_at(args.key, args.key_size)
        self.user_args.add(args.user_arg)
        if self.refusal:
            return self._fail(args, self.refusal, b"the store says no")
        if key in self.values:
            return self._fail(args, ALREADY_EXISTS, b"there is " + key)
        self.values[key] = ctypes.string_at(args.value, args.value_size)
        return None


class Member(Client):
    """A client that is one of several processes."""

    def __init__(self, store: Store, node_id: int, num_nodes: int, *, try_get: bool = True, **options: Any):
        self.requests = []
        options = {
            "node_id": node_id,
            "num_nodes": num_nodes,
            "handshake_timeout_seconds": 20,
            "compile_fn": compile_function(self._compile),
            **options,
        }
        values = named_values(options)
        args = PLUGIN.args(
            "PJRT_Client_Create_Args",
            create_options=ctypes.addressof(values),
            num_options=len(options),
            **store.fields(try_get),
        )
        if not try_get:
            args.struct_size = PLUGIN.abi.PJRT_Client_Create_Args.client.offset + 8
            args.kv_try_get_callback = args.kv_try_get_user_arg = 0xDEAD
        error = PLUGIN.fn("PJRT_Client_Create")(ctypes.byref(args))
        if error:
            raise PLUGIN._to_exception(error)
        self.handle = args.client
        self.all_devices = self._handles("PJRT_Client_Devices", "devices")
        self.devices = self._handles("PJRT_Client_AddressableDevices", "addressable_devices")
        self.memories = self._handles("PJRT_Client_AddressableMemories", "addressable_memories")


def meet(stores: list[Store], counts: list[int], **options: Any) -> list[Member]:
    """Members with so many devices each; they have to be made at the same time."""
    members: list[Any] = [None] * len(counts)

    def join(index: int) -> None:
        members[index] = Member(stores[index], index, len(counts), num_devices=counts[index], **options)

    threads = [threading.Thread(target=join, args=(i,)) for i in range(len(counts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(members)
    return members


@pytest.fixture
def stores() -> list[Store]:
    values: dict[bytes, bytes] = {}
    return [Store(values), Store(values)]


@pytest.fixture
def pair(stores):
    """Two processes with two devices and one."""
    members = meet(stores, [2, 1])
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
    import numpy as np

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


def test_the_topology_is_the_same_everywhere(pair, stores):
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


def test_values_are_given_back_once_and_arguments_passed_on(pair, stores):
    for store in stores:
        assert store.returned == 1 and not store.lent  # the other's record
        assert store.user_args == {100, 101, 102}
        assert len(store.timeouts) == 1 and 0 < store.timeouts[0] <= 20_000


def test_a_caller_that_is_older_than_kv_try_get(stores):
    """Its struct ends before the field, which holds rubbish; kv_get with a short timeout has to do."""
    members = meet(stores, [1, 1], try_get=False)
    for member, store in zip(members, stores, strict=True):
        assert len(member.all_devices) == 2
        assert store.user_args == {100, 101}
        assert store.timeouts[0] <= 100
        member.close()


@pytest.mark.parametrize("code, kind", [(PERMISSION_DENIED, errors.PermissionDenied), (14, errors.Unavailable)])
def test_an_error_of_the_store_keeps_its_code(stores, code, kind):
    stores[0].refusal = code
    with raises(kind, "PJRT_Client_Create: handshake of process 0 of 2: ", "the store says no"):
        Member(stores[0], 0, 2)


def test_a_code_that_is_none(stores):
    stores[0].refusal = 4242
    with raises(errors.Unknown, "the store says no"):
        Member(stores[0], 0, 2)


def test_no_callbacks():
    with raises(errors.InvalidArgument, "num_nodes is 2", "no key-value store"):
        Client(num_nodes=2, node_id=0)
    Client(num_nodes=1, node_id=0).close()  # has nobody to meet


def test_callbacks_are_rubbish_without_num_nodes():
    """So JAX leaves them in a program that is not distributed, with kv_hook given all the same."""
    seen: list[Any] = []
    with hook(seen.append) as address:
        values = named_values({"kv_hook": address})
        args = PLUGIN.args(
            "PJRT_Client_Create_Args",
            create_options=ctypes.addressof(values),
            num_options=1,
            **{f"kv_{name}_{part}": 0xDEAD for name in ("get", "put", "try_get") for part in ("callback", "user_arg")},
        )
        assert not PLUGIN.fn("PJRT_Client_Create")(ctypes.byref(args))
        call("PJRT_Client_Destroy", client=args.client)
    assert seen == []


@contextlib.contextmanager
def hook(function: Any) -> Any:
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    yield ctypes.cast(callback, ctypes.c_void_p).value


def test_the_store_through_the_plugin(stores):
    taken: list[Any] = []

    def take(functions: int) -> None:
        copy = distributed._Functions()
        ctypes.memmove(ctypes.byref(copy), functions, ctypes.sizeof(copy))
        assert copy.struct_size == ctypes.sizeof(copy)
        taken.append(distributed.KeyValueStore(copy))

    with hook(take) as address:
        member = Member(stores[0], 0, 1, kv_hook=address)
    (store,) = taken
    assert (store.process_index, store.process_count) == (0, 1)
    for key, value in [("a", b"\0\1\0"), ("b", b""), ("ключ", b"x" * 100_000)]:
        store.put(key, value)
        assert store.try_get(key) == store.get(key, 5) == value
        assert stores[0].values[key.encode()] == value
    store.put("text", "grüße")
    assert store.get("text").decode() == "grüße"
    with pytest.raises(KeyError, match="nothing"):
        store.try_get("nothing")
    with pytest.raises(TimeoutError, match="no nothing"):
        store.get("nothing", 0.05)
    assert stores[0].timeouts[-1] == 50
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="must be positive"):
            store.get("nothing", timeout)
    with pytest.raises(distributed.KeyValueError, match="there is a") as caught:
        store.put("a", b"again")
    assert caught.value.code == ALREADY_EXISTS
    assert stores[0].returned == 7 and not stores[0].lent
    member.close()
    for use in (lambda: store.try_get("a"), lambda: store.get("a", 1), lambda: store.put("z", b"")):
        with pytest.raises(distributed.KeyValueError, match="has been destroyed") as caught:
            use()
        assert caught.value.code == 9
