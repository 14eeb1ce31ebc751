"""jaxlib's MLIR: contexts, parsing, and the passes that make a module plain StableHLO.

The only file of the compiler that imports `jaxlib.mlir`; the rest of the frontend takes the names
it needs from here.

A context is used by one compile at a time and returns to a pool: a new one costs about a
millisecond, and twice that for the first program it reads. MLIR interns attributes, constants
included, for as long as the context lives, so a context leaves the pool after a number of programs
or bytes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend import bytecode

__all__ = ["Module", "ir", "parse", "stablehlo"]

_MAX_PROGRAMS_PER_CONTEXT = 256
_MAX_BYTES_PER_CONTEXT = 32 << 20
_MAX_IDLE_CONTEXTS = 4

# Characters of one MLIR diagnostic that are shown: some print a whole op with its constants.
_MAX_DIAGNOSTIC = 400

# Dialect that must be gone -> the pass that removes it.
_LEGALISATIONS = (
    (b"vhlo", "builtin.module(vhlo-legalize-to-stablehlo)"),
    (b"chlo", "builtin.module(func.func(chlo-legalize-to-stablehlo))"),
)


class _Context:
    """An MLIR context, its pass pipelines, and the diagnostics of the program it is reading."""

    def __init__(self) -> None:
        self.context = ir.Context()
        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        self.context.append_dialect_registry(registry)
        self.context.enable_multithreading(False)
        sdy.register_dialect(self.context)
        mhlo.register_mhlo_dialect(self.context)
        chlo.register_dialect(self.context)
        stablehlo.register_dialect(self.context)
        # jaxlib collects diagnostics in a destructor-like place where text that is not UTF-8 ends
        # the process. With this flag it leaves them to the handler, whose exceptions are harmless.
        self.context.emit_error_diagnostics = True
        self.context.attach_diagnostic_handler(self._on_diagnostic)
        self.diagnostics: list[str] = []
        self.programs = 0
        self.bytes = 0
        self._pipelines: dict[str, passmanager.PassManager] = {}

    def _on_diagnostic(self, diagnostic: ir.Diagnostic) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            self.diagnostics.append(_diagnostic_text(diagnostic))
        return True  # handled: nothing is printed

    def run(self, pipeline: str, module: ir.Module) -> None:
        """Runs a pass pipeline; raises ir.MLIRError."""
        manager = self._pipelines.get(pipeline)
        if manager is None:
            manager = passmanager.PassManager.parse(pipeline, self.context)
            self._pipelines[pipeline] = manager
        manager.run(module.operation)

    @property
    def is_spent(self) -> bool:
        return self.programs >= _MAX_PROGRAMS_PER_CONTEXT or self.bytes >= _MAX_BYTES_PER_CONTEXT


def _diagnostic_text(diagnostic: ir.Diagnostic) -> str:
    """Message and place of a diagnostic; survives text that is not UTF-8."""
    try:
        message = str(diagnostic.message)
    except Exception:  # whatever the binding makes of bytes that are not UTF-8
        message = "(a diagnostic that is not valid UTF-8)"
    if len(message) > _MAX_DIAGNOSTIC:
        message = message[:_MAX_DIAGNOSTIC] + "..."
    try:
        place = str(diagnostic.location)
    except Exception:
        return message
    return message if place == "loc(unknown)" else f"{message} at {place}"


class _ContextPool:
    """Idle contexts of this process. A forked child starts with the parent's; they are inert."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Context] = []
        self._passes_registered = False

    def take(self) -> _Context:
        with self._lock:
            if not self._passes_registered:
                stablehlo.register_stablehlo_passes()
                self._passes_registered = True
            if self._idle:
                return self._idle.pop()
        return _Context()

    def give_back(self, context: _Context) -> None:
        context.diagnostics.clear()
        if context.is_spent:
            return
        with self._lock:
            if len(self._idle) < _MAX_IDLE_CONTEXTS:
                self._idle.append(context)


_pool = _ContextPool()


class Module:
    """A parsed module of StableHLO (with func, and sdy where there are shardings).

    Attributes:
      op: the module.
      name: its symbol name, or "main".
    """

    def __init__(self, op: ir.Module):
        self.op = op
        attributes = op.operation.attributes
        named = "sym_name" in attributes
        self.name: str = ir.StringAttr(attributes["sym_name"]).value if named else "main"

    def text(self) -> str:
        """The module as MLIR text with locations."""
        return str(self.op.operation.get_asm(enable_debug_info=True))

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        import io  # noqa: PLC0415 - only for dumps

        out = io.BytesIO()
        self.op.operation.write_bytecode(out)
        return out.getvalue()


@contextlib.contextmanager
def parse(program: bytes) -> Iterator[Module]:
    """Parses bytecode or text into StableHLO; the module is valid inside the `with` only.

    Raises:
      CompileError: INVALID_ARGUMENT with MLIR's diagnostics.
    """
    context = _pool.take()
    context.programs += 1
    context.bytes += len(program)
    try:
        yield Module(_parse(context, program))
    finally:
        _pool.give_back(context)


def try_passes() -> None:
    """Runs every pass that `parse` may need on an empty module; raises what MLIR raises for one that is not there."""
    context = _pool.take()
    try:
        module = ir.Module.parse("module {}", context.context)
        for _, pipeline in _LEGALISATIONS:
            context.run(pipeline, module)
    finally:
        _pool.give_back(context)


def _parse(context: _Context, program: bytes) -> ir.Module:
    try:
        step = "parsed"
        module = ir.Module.parse(program, context.context)
        step = "converted to StableHLO"
        # In bytecode a dialect's name is a string of its own, in text it stands before a dot: a search of the bytes
        # tells cheaply whether a pass can have anything to do.
        after = b"\0" if program.startswith(bytecode.MAGIC) else b"."
        for dialect, pipeline in _LEGALISATIONS:
            if dialect + after in program:
                context.run(pipeline, module)
    except (ir.MLIRError, ValueError) as e:
        shown = context.diagnostics[:8] or [str(e)]
        more = len(context.diagnostics) - len(shown)
        raise CompileError(
            StatusCode.INVALID_ARGUMENT,
            f"The program cannot be {step}; MLIR says: "
            + "; ".join(shown)
            + (f"; and {more} more" if more > 0 else "")
            + ". It must be StableHLO (portable artifact, MLIR bytecode or text).",
        ) from None
    return module
