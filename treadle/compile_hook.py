"""The function that the plugin calls to compile a program: C on the outside, the compiler within."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any

from treadle.compiler.artifact.abi import CompileFn

_INTERNAL = 13  # PJRT_Error_Code

# Read by the plugin before each call. The interpreter clears it when it begins to shut down.
_enabled = ctypes.c_int32(1)


def _disable() -> None:
    _enabled.value = 0


def _compile(request: Any, sink: int, emit: Any) -> int:
    """TreadleCompileFn. Everything that goes wrong becomes a code and a message: nobody below can catch."""
    try:
        code, result = _answer(request.contents)
    except BaseException as error:
        code, result = _INTERNAL, f"{type(error).__name__}: {error}".encode("utf-8", "replace")
    emit(sink, result, len(result))
    return code


def _answer(request: Any) -> tuple[int, bytes]:
    # Imported by the first compile: the frontend takes MLIR along, the backend LLVM.
    from treadle.compiler import driver
    from treadle.compiler.errors import CompileError

    try:
        return 0, driver.compile_request(
            ctypes.string_at(request.program, request.program_size),
            ctypes.string_at(request.format, request.format_size).decode("utf-8", "replace"),
            ctypes.string_at(request.options, request.options_size) if request.options_size else b"",
            request.num_devices,
            request.cpu_features,
            request.num_threads,
        )
    except CompileError as error:
        return int(error.code), error.message.encode("utf-8", "replace")


# Kept for as long as the process: the plugin holds its address.
_callback = CompileFn(_compile)


def compile_address() -> int:
    """The address of the TreadleCompileFn."""
    _register_exit()
    address = ctypes.cast(_callback, ctypes.c_void_p).value
    assert address is not None
    return address


def enabled_address() -> int:
    """The address of an int32 that is zero once the function must not be called any more."""
    return ctypes.addressof(_enabled)


def _register_exit() -> None:
    # Again for each client, so that this runs early: exit handlers run in the reverse of their order.
    atexit.unregister(_disable)
    atexit.register(_disable)
