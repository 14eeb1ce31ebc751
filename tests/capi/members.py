"""Clients of several processes, all in this one, and the key-value store in which they meet."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

from tests.capi.harness import PLUGIN, Client, compile_function, named_values

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
        self.answer = (13, "the test has not said what to answer")
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
