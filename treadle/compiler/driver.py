"""One compile: from a request to an artifact, or to one clear error.

`compile_request` is the seam to the plugin. It runs the stages in order, times them, dumps them
where asked, and turns whatever goes wrong into a CompileError.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from treadle.compiler import collector, knobs
from treadle.compiler.context import CompileContext
from treadle.compiler.dump import DumpFolder
from treadle.compiler.errors import CompileError, IrError, StatusCode
from treadle.compiler.frontend.options import parse_options
from treadle.compiler.ir.core import Op
from treadle.compiler.object import programs
from treadle.compiler.stages import STAGES, Stage

FORMAT = "mlir"

# A program of this size holds constants that must not wait for the collector's next visit: ops and values refer to
# each other, and through MLIR's memory to the constants.
_COLLECT_ABOVE = 4 << 20

# Called after each stage with its time in seconds and its product.
Observer = Callable[[Stage, float, Any], None]


def compile_request(
    program: bytes, fmt: str, options: bytes, num_devices: int, cpu_features: int, num_threads: int
) -> bytes:
    """Compiles a program.

    Args:
      program: StableHLO: a portable artifact, MLIR bytecode or text.
      fmt: its format; "mlir" is the only one.
      options: a serialized `xla.CompileOptionsProto`.
      num_devices: addressable devices of the client.
      cpu_features: what the code may use: bits of the ABI's table.
      num_threads: the runtime's thread budget.

    Returns:
      The artifact.

    Raises:
      CompileError: and nothing else.
    """
    try:
        context = make_context(program, fmt, options, num_devices, cpu_features, num_threads)
        name = programs.name_of(program, context.options, num_devices, cpu_features, num_threads)
        kept = programs.find(name) if name is not None else None
        if kept is not None:
            return kept
        artifact = run(context, STAGES[-1].name)
        if name is not None:
            programs.keep(name, artifact)
    except CompileError:
        raise
    except BaseException as e:
        raise _as_compile_error(e, None) from e
    if len(program) > _COLLECT_ABOVE:
        context.products.clear()
        gc.collect()
    if not isinstance(artifact, bytes):
        raise CompileError(StatusCode.INTERNAL, f"The last stage made a {type(artifact).__name__}, not bytes.")
    return artifact


def make_context(
    program: bytes, fmt: str, options: bytes, num_devices: int, cpu_features: int, num_threads: int
) -> CompileContext:
    """Checks what can be checked of a request without reading the program.

    Raises:
      CompileError: INVALID_ARGUMENT.
    """
    if fmt != FORMAT:
        raise CompileError(
            StatusCode.INVALID_ARGUMENT,
            f"The program's format is {fmt!r}; Treadle compiles {FORMAT!r} only (StableHLO as a portable artifact, "
            "MLIR bytecode or text).",
        )
    return CompileContext(program, options, parse_options(options), num_devices, cpu_features, num_threads)


def run(context: CompileContext, last: str, observe: Observer | None = None) -> Any:
    """Runs the stages up to the one named `last`, and returns its product.

    The product of a frontend stage belongs to MLIR and is only valid if `observe` looks at it.

    Raises:
      CompileError: and nothing else, but for what `observe` raises.
    """
    debug = knobs.DEBUG.get()
    folder = DumpFolder.open(context)
    start = time.perf_counter()
    product: Any = context.program
    with context.resources, collector.paused():
        for stage in STAGES:
            begin = time.perf_counter()
            try:
                product = stage.run(product, context)
            except BaseException as e:
                error = _as_compile_error(e, stage)
                if folder is not None:
                    folder.write("error.txt", _error_report(error, e, stage).encode("utf-8", "backslashreplace"))
                if debug >= 1:
                    _log(f"{stage.name} failed: {error.code.name}: {error.message}")
                raise error from (None if error is e else e)
            seconds = time.perf_counter() - begin
            if debug >= 2:
                size = f", {_size(product)}" if debug >= 3 else ""
                _log(f"{stage.name}: {seconds * 1e3:.2f} ms{size}")
            if folder is not None:
                if stage is STAGES[0]:
                    folder.name_after(product.name)
                folder.stage(stage, product)
            if observe is not None:
                observe(stage, seconds, product)
            if stage.name == last:
                break
    if debug >= 1:
        _log(f"compiled {len(context.program)} bytes to {last} in {(time.perf_counter() - start) * 1e3:.2f} ms")
    return product


def _log(line: str) -> None:
    sys.stderr.write(f"treadle: {line}\n")


def _size(product: Any) -> str:
    """How big a stage's product is, as far as that can be said."""
    if isinstance(product, (bytes, str, list, tuple)):
        return f"{len(product)} {'bytes' if isinstance(product, bytes) else 'parts'}"
    entry = getattr(product, "entry", None)
    walk = getattr(entry, "walk", None)
    return f"{sum(1 for _ in walk())} ops" if callable(walk) else type(product).__name__


# ---- errors


def _as_compile_error(error: BaseException, stage: Stage | None) -> CompileError:
    """What a user is told. Only an error that is Treadle's own fault names the stage and asks for a report."""
    if isinstance(error, CompileError):
        return error
    where = f"stage {stage.name!r}, which {stage.sentence}" if stage is not None else "the driver"
    if isinstance(error, IrError) and stage is not None and stage.name == "convert":
        return CompileError(StatusCode.INVALID_ARGUMENT, f"The program is not valid: {error}.")
    if isinstance(error, MemoryError):
        return CompileError(StatusCode.RESOURCE_EXHAUSTED, f"Not enough memory to compile the program (in {where}).")
    if isinstance(error, RecursionError):
        return CompileError(
            StatusCode.RESOURCE_EXHAUSTED,
            f"The program nests too deeply to be compiled (in {where}). Nest fewer loops, conditionals and calls.",
        )
    if isinstance(error, KeyboardInterrupt):
        return CompileError(StatusCode.CANCELLED, f"The compile was interrupted (in {where}).")
    op = _op_at_fault(error.__traceback__)
    at = f" At {op.name} ({op.loc})." if op is not None else ""
    return CompileError(
        StatusCode.INTERNAL,
        f"Treadle failed in {where}: {type(error).__name__}: {error}.{at} This is a bug of Treadle. Run again with "
        f"{knobs.DUMP.name}=<folder> to get all that is needed to reproduce it, and report it.",
    )


def _op_at_fault(trace: TracebackType | None) -> Op | None:
    """The op that the innermost frame with a local variable `op` was working on."""
    found = None
    while trace is not None:
        op = trace.tb_frame.f_locals.get("op")
        if isinstance(op, Op):
            found = op
        trace = trace.tb_next
    return found


def _error_report(error: CompileError, cause: BaseException, stage: Stage) -> str:
    trace = "".join(traceback.format_exception(cause))
    return f"stage: {stage.name}\ncode: {error.code.name}\n\n{error.message}\n\n{trace}"
