"""The C API, called directly: slots by name, arrays as NumPy has them, and a compiler that the test plays."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pypjrt.errors
import pytest
from pypjrt._loader import Plugin

from tests.capi import artifacts
from treadle.compiler.artifact import abi
from treadle.plugin import library_path

TYPES = {
    np.dtype(np.bool_): 1,
    np.dtype(np.int8): 2,
    np.dtype(np.int32): 4,
    np.dtype(np.uint8): 6,
    np.dtype(np.float32): 11,
    np.dtype(np.float64): 12,
    np.dtype(np.complex128): 15,
}

# PJRT_HostBufferSemantics
ONLY_DURING_CALL, UNTIL_TRANSFER_COMPLETES, ZERO_COPY, MUTABLE_ZERO_COPY = range(4)

_KEPT: list[Any] = []  # callbacks that the plugin may still call

PLUGIN = Plugin(library_path())


def call(slot: str, **fields: Any) -> Any:
    """Calls a slot and returns its argument struct, with the out fields filled. Raises pypjrt's errors."""
    args = PLUGIN.args(f"{slot}_Args", **fields)
    # Not PLUGIN.call, which lets one thread in at a time.
    error = PLUGIN.fn(slot)(ctypes.byref(args))
    if error:
        raise PLUGIN._to_exception(error)
    return args


@contextlib.contextmanager
def raises(error: type[pypjrt.errors.PjrtError], *fragments: str) -> Iterator[None]:
    """Expects a PJRT error whose text has all the fragments."""
    with pytest.raises(error) as caught:
        yield
    for fragment in fragments:
        assert fragment in str(caught.value), str(caught.value)


def int64s(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def named_values(options: dict[str, int | str | float | bool]) -> Any:
    """PJRT_NamedValues; keeps what they point to alive with the array."""
    values = (PLUGIN.abi.PJRT_NamedValue * max(1, len(options)))()
    for value, (name, content) in zip(values, options.items(), strict=False):
        value.struct_size = PLUGIN.abi.PJRT_NamedValue_STRUCT_SIZE
        text = ctypes.create_string_buffer(name.encode())
        _KEPT.append(text)
        value.name, value.name_size = ctypes.cast(text, ctypes.c_void_p).value, len(name.encode())
        union = value  # its members are the struct's own
        if isinstance(content, bool):
            value.type, union.bool_value, value.value_size = 4, content, 1
        elif isinstance(content, int):
            value.type, union.int64_value, value.value_size = 1, content, 1
        elif isinstance(content, float):
            value.type, union.float_value, value.value_size = 3, content, 1
        else:
            data = ctypes.create_string_buffer(content.encode())
            _KEPT.append(data)
            value.type, value.value_size = 0, len(content.encode())
            union.string_value = ctypes.cast(data, ctypes.c_void_p).value
    return values


# What a compiler answers with: an artifact, or a code and a message.
Answer = bytes | tuple[int, str]


def compile_function(answer: Callable[[bytes, abi.CompileRequest], Answer]) -> int:
    """The address of a TreadleCompileFn that answers with what `answer(program, request)` returns."""

    def compile_(request: Any, sink: int, emit: Any) -> int:
        fields = request.contents
        result = answer(ctypes.string_at(fields.program, fields.program_size), fields)
        code, data = (0, result) if isinstance(result, bytes) else (result[0], result[1].encode())
        emit(sink, data, len(data))
        return code

    function = abi.CompileFn(compile_)
    _KEPT.append(function)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


class Event:
    """An event's handle."""

    def __init__(self, handle: int):
        assert handle
        self.handle = handle

    @classmethod
    def new(cls) -> Event:
        return cls(call("PJRT_Event_Create").event)

    def set(self, code: int = 0, message: bytes = b"") -> None:
        text = ctypes.create_string_buffer(message)
        call(
            "PJRT_Event_Set",
            event=self.handle,
            error_code=code,
            error_message=ctypes.addressof(text),
            error_message_size=len(message),
        )

    def on_ready(self, function: Callable[[int | None], Any]) -> None:
        """Registers `function(error_handle)`."""
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda error, _: function(error))
        _KEPT.append(callback)
        call("PJRT_Event_OnReady", event=self.handle, callback=ctypes.cast(callback, ctypes.c_void_p).value)

    def is_ready(self) -> bool:
        return bool(call("PJRT_Event_IsReady", event=self.handle).is_ready)

    def wait(self) -> None:
        call("PJRT_Event_Await", event=self.handle)

    def close(self) -> None:
        call("PJRT_Event_Destroy", event=self.handle)


class Buffer:
    """A buffer's handle."""

    def __init__(self, handle: int):
        assert handle
        self.handle = handle

    def dims(self) -> tuple[int, ...]:
        args = call("PJRT_Buffer_Dimensions", buffer=self.handle)
        return tuple(ctypes.cast(args.dims, ctypes.POINTER(ctypes.c_int64))[: args.num_dims])

    def type(self) -> int:
        return int(call("PJRT_Buffer_ElementType", buffer=self.handle).type)

    def ready(self) -> Event:
        return Event(call("PJRT_Buffer_ReadyEvent", buffer=self.handle).event)

    def is_deleted(self) -> bool:
        return bool(call("PJRT_Buffer_IsDeleted", buffer=self.handle).is_deleted)

    def delete(self) -> None:
        call("PJRT_Buffer_Delete", buffer=self.handle)

    def close(self) -> None:
        call("PJRT_Buffer_Destroy", buffer=self.handle)

    def pointer(self) -> int:
        return int(call("PJRT_Buffer_UnsafePointer", buffer=self.handle).buffer_pointer)

    def numpy(self, dtype: Any = np.float32, host_layout: int | None = None) -> np.ndarray[Any, Any]:
        out = np.empty(self.dims(), dtype)
        args = call(
            "PJRT_Buffer_ToHostBuffer",
            src=self.handle,
            dst=out.ctypes.data,
            dst_size=out.nbytes,
            host_layout=host_layout,
        )
        event = Event(args.event)
        event.wait()
        event.close()
        return out


class Executable:
    """A loaded executable's handle, and that of what it was loaded from."""

    def __init__(self, handle: int):
        assert handle
        self.handle = handle
        self.executable = int(call("PJRT_LoadedExecutable_GetExecutable", loaded_executable=handle).executable)

    def run(
        self,
        *argument_lists: Sequence[Buffer],
        non_donatable: Sequence[int] = (),
        events: list[Event] | None = None,
        execute_device: int | None = None,
    ) -> list[list[Buffer]]:
        """One list of arguments per device; one list of results per device."""
        num_outputs = int(call("PJRT_Executable_NumOutputs", executable=self.executable).num_outputs)
        devices, width = len(argument_lists), len(argument_lists[0])
        lists = [(ctypes.c_void_p * max(1, width))(*(b.handle for b in arguments)) for arguments in argument_lists]
        results = [(ctypes.c_void_p * max(1, num_outputs))() for _ in argument_lists]
        complete = (ctypes.c_void_p * devices)()
        pointers = ctypes.c_void_p * devices
        argument_rows, result_rows = (pointers(*map(ctypes.addressof, rows)) for rows in (lists, results))
        indices = int64s(non_donatable)
        options = PLUGIN.args(
            "PJRT_ExecuteOptions",
            non_donatable_input_indices=ctypes.cast(indices, ctypes.c_void_p).value,
            num_non_donatable_input_indices=len(non_donatable),
        )
        call(
            "PJRT_LoadedExecutable_Execute",
            executable=self.handle,
            options=ctypes.addressof(options),
            argument_lists=ctypes.addressof(argument_rows),
            num_devices=devices,
            num_args=width,
            output_lists=ctypes.addressof(result_rows),
            device_complete_events=ctypes.addressof(complete) if events is not None else None,
            execute_device=execute_device,
        )
        if events is not None:
            events.extend(Event(handle) for handle in complete if handle is not None)
        return [[Buffer(handle) for handle in row[:num_outputs] if handle is not None] for row in results]

    def serialize(self) -> bytes:
        args = call("PJRT_Executable_Serialize", executable=self.executable)
        data = ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.serialized_executable_deleter)(args.serialized_executable)
        return data

    def close(self) -> None:
        call("PJRT_Executable_Destroy", executable=self.executable)
        call("PJRT_LoadedExecutable_Destroy", executable=self.handle)


class Client:
    """A client whose compiler answers every program with what `self.answer` says."""

    def __init__(self, **options: int | str | float | bool):
        self.answer: Answer = (13, "the test has not said what to answer")
        self.requests: list[dict[str, Any]] = []
        options.setdefault("compile_fn", compile_function(self._compile))
        values = named_values(options)
        self.handle = call(
            "PJRT_Client_Create", create_options=ctypes.addressof(values), num_options=len(options)
        ).client
        self.devices = self._handles("PJRT_Client_AddressableDevices", "addressable_devices")
        self.memories = self._handles("PJRT_Client_AddressableMemories", "addressable_memories")

    def _compile(self, program: bytes, request: abi.CompileRequest) -> Answer:
        self.requests.append({"program": program, "devices": request.num_devices, "threads": request.num_threads})
        return self.answer

    def _handles(self, slot: str, field: str) -> list[int]:
        args = call(slot, client=self.handle)
        count = getattr(args, f"num_{field}")
        return [int(p) for p in ctypes.cast(getattr(args, field), ctypes.POINTER(ctypes.c_void_p))[:count]]

    def put(
        self,
        array: Any,
        device: int = 0,
        semantics: int = ONLY_DURING_CALL,
        memory: int | None = None,
        element_type: int | None = None,
        done: list[Event] | None = None,
    ) -> Buffer:
        """A buffer from a NumPy array of any strides."""
        array = np.asarray(array)
        dims, strides = int64s(array.shape), int64s(array.strides)
        args = call(
            "PJRT_Client_BufferFromHostBuffer",
            client=self.handle,
            data=array.ctypes.data,
            type=TYPES[array.dtype] if element_type is None else element_type,
            dims=ctypes.addressof(dims),
            num_dims=array.ndim,
            byte_strides=ctypes.addressof(strides),
            num_byte_strides=array.ndim,
            host_buffer_semantics=semantics,
            device=self.devices[device] if memory is None else None,
            memory=memory,
        )
        event = Event(args.done_with_host_buffer)
        if done is None:
            event.close()
        else:
            done.append(event)
        return Buffer(args.buffer)

    def compile(self, answer: Answer | artifacts.Program, options: bytes = b"", fmt: str = "mlir") -> Executable:
        """Compiles a program that means nothing; the compiler's answer is `answer`."""
        self.answer = answer.pack() if isinstance(answer, artifacts.Program) else answer
        code, format_ = ctypes.create_string_buffer(b"a program"), ctypes.create_string_buffer(fmt.encode())
        option_bytes = ctypes.create_string_buffer(options, max(1, len(options)))
        program = PLUGIN.args(
            "PJRT_Program",
            code=ctypes.addressof(code),
            code_size=len(b"a program"),
            format=ctypes.addressof(format_),
            format_size=len(fmt),
        )
        args = call(
            "PJRT_Client_Compile",
            client=self.handle,
            program=ctypes.addressof(program),
            compile_options=ctypes.addressof(option_bytes),
            compile_options_size=len(options),
        )
        return Executable(args.executable)

    def deserialize(self, data: bytes, options: bytes = b"") -> Executable:
        block = ctypes.create_string_buffer(data, max(1, len(data)))
        option_bytes = ctypes.create_string_buffer(options, max(1, len(options)))
        args = call(
            "PJRT_Executable_DeserializeAndLoad",
            client=self.handle,
            serialized_executable=ctypes.addressof(block),
            serialized_executable_size=len(data),
            overridden_serialized_compile_options=ctypes.addressof(option_bytes) if options else None,
            overridden_serialized_compile_options_size=len(options),
        )
        return Executable(args.loaded_executable)

    def close(self) -> None:
        call("PJRT_Client_Destroy", client=self.handle)


@pytest.fixture
def client() -> Iterator[Client]:
    """A client of two devices."""
    made = Client(num_devices=2)
    yield made
    made.close()
