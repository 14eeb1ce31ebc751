"""What the processes of a distributed program share besides devices: a key-value store.

JAX's coordination service keeps it. The plugin uses it to find the other processes; this module is the same store,
through the plugin, for tests and for code that extends Treadle.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

# PJRT_Error_Code
_DEADLINE_EXCEEDED, _NOT_FOUND = 4, 5

# Seconds: PJRT's callback counts milliseconds in 32 bits. Who asks for longer, or for ever, waits for 23 days.
_LONGEST = 2_000_000.0

# plugin/runtime/key_value_abi.h
_Emit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
_Put = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, _Emit),
)
_Get = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int64, ctypes.c_void_p, _Emit
)
_TryGet = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, _Emit)
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Functions(ctypes.Structure):
    """TreadleKeyValueFunctions."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("node_id", ctypes.c_int32),
        ("num_nodes", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("store", ctypes.c_void_p),
        ("put", _Put),
        ("get", _Get),
        ("try_get", _TryGet),
        ("release", _Release),
    )


class KeyValueError(RuntimeError):
    """The store refused or failed, otherwise than by having no such key.

    Attributes:
      code: the PJRT_Error_Code: 6 for a key that is there already, 9 after the client's end, 14 without a coordinator.
    """

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


class _Handle:
    """A client's TreadleKeyValueFunctions, released when nobody can call them any more."""

    def __init__(self, address: int):
        self.functions = _Functions()
        ctypes.memmove(ctypes.byref(self.functions), address, ctypes.sizeof(_Functions))
        weakref.finalize(self, self.functions.release, self.functions.store)


class KeyValueStore:
    """The store of one client. Keys are text, values bytes of any kind. Safe to use from many threads.

    Keeps its client alive: jaxlib's side of the store ends with it.

    Attributes:
      process_index: of this process.
      process_count: how many processes share the store.
    """

    def __init__(self, handle: _Handle, client: Any):
        self._handle = handle
        self._client = client
        self.process_index = int(handle.functions.node_id)
        self.process_count = int(handle.functions.num_nodes)

    def put(self, key: str, value: bytes | str) -> None:
        """Stores `value`, text as UTF-8, for all processes to see.

        Raises:
          KeyValueError: the key is there already, or the store failed.
        """
        name, data = key.encode(), value.encode() if isinstance(value, str) else bytes(memoryview(value))
        self._call("put", key, name, len(name), data, len(data))

    def get(self, key: str, timeout: float = 60.0) -> bytes:
        """The value of `key`, once some process has put it.

        Args:
          key: the key.
          timeout: how long to wait for it, in seconds.

        Raises:
          TimeoutError: nobody put it in time.
          KeyValueError: the store failed.
        """
        if not timeout > 0:
            raise ValueError(f"the timeout is {timeout} seconds and must be positive; try_get does not wait")
        name = key.encode()
        milliseconds = max(1, int(min(timeout, _LONGEST) * 1000))
        return self._call("get", key, name, len(name), milliseconds)

    def try_get(self, key: str) -> bytes:
        """The value of `key` now.

        Raises:
          KeyError: it is not there.
          KeyValueError: the store failed.
        """
        name = key.encode()
        return self._call("try_get", key, name, len(name))

    def _call(self, function: str, key: str, *arguments: Any) -> bytes:
        answer: list[bytes] = []
        emit = _Emit(lambda _, data, size: answer.append(ctypes.string_at(data, size) if size else b""))
        functions = self._handle.functions
        code = getattr(functions, function)(functions.store, *arguments, None, emit)
        result = answer[0] if answer else b""
        if code == 0:
            return result
        text = f"{function} of the key {key!r}: {result.decode('utf-8', 'replace')}"
        if code == _DEADLINE_EXCEEDED:
            raise TimeoutError(text)
        if code == _NOT_FOUND:
            raise KeyError(text)
        raise KeyValueError(code, text)


_newest: list[_Handle] = []  # of the newest client that has a store


def _remember(functions: int) -> None:
    """TreadleKeyValueHook."""
    _newest[:] = [_Handle(functions)]


# Kept for as long as the process: the plugin holds its address.
_hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_remember)


def hook_address() -> int:
    """The address of the TreadleKeyValueHook, for the client's create option `kv_hook`."""
    address = ctypes.cast(_hook, ctypes.c_void_p).value
    assert address is not None
    return address


def key_value_store() -> KeyValueStore:
    """The store that this process shares with the others. Makes JAX's Treadle client if there is none yet.

    Raises:
      RuntimeError: this program is not distributed, or Treadle is not among its backends.
    """
    import jax
    from jax.extend import backend

    if not jax.distributed.is_initialized():
        raise RuntimeError(
            "there is no key-value store: this program is not distributed. Call jax.distributed.initialize before "
            "anything that makes JAX's backends"
        )
    client = backend.get_backend("treadle")
    if not _newest:
        raise RuntimeError(
            "there is no key-value store: JAX's backends were made before jax.distributed.initialize was called"
        )
    return KeyValueStore(_newest[0], client)
