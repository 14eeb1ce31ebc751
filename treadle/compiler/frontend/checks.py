"""What is checked of a program's bytes before MLIR sees them."""

from __future__ import annotations

import re

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend import bytecode, encodings

# MLIR's text parser calls itself at every opening bracket.
_MAX_NESTED_BRACKETS = 500


def check_program(program: bytes) -> None:
    """Raises CompileError (INVALID_ARGUMENT) for bytes that must not reach MLIR."""
    try:
        if program.startswith(bytecode.MAGIC):
            _check_bytecode(program)
        else:
            _check_text(program)
    except bytecode.BytecodeError as e:
        raise CompileError(
            StatusCode.INVALID_ARGUMENT,
            f"The program ({len(program)} bytes) is damaged: {e}. It must be StableHLO: a portable artifact, MLIR "
            "bytecode or text.",
        ) from None


def _check_bytecode(program: bytes) -> None:
    read = bytecode.read_tables(program)
    if read is None:
        return  # of a version that is MLIR's to judge
    tables, ir = read
    encodings.check_encodings(tables, bytecode.check_ir(tables, *ir))


_BRACKETS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<({\[]|[>)}\]]')


def _check_text(program: bytes) -> None:
    if not program.strip():
        raise bytecode.BytecodeError("it is empty")
    try:
        program.decode("utf-8")
    except UnicodeDecodeError as e:
        raise bytecode.BytecodeError(f"its text is not valid UTF-8 at byte {e.start}") from None
    if b"\0" in program:
        raise bytecode.BytecodeError("its text has a zero byte")
    if program.count(b"(") + program.count(b"<") + program.count(b"{") + program.count(b"[") > _MAX_NESTED_BRACKETS:
        _check_nesting(program)


def _check_nesting(program: bytes) -> None:
    depth = 0
    for token in _BRACKETS.finditer(program):
        text = token.group()
        if text in b"<({[":
            depth += 1
            if depth > _MAX_NESTED_BRACKETS:
                raise bytecode.BytecodeError(f"it nests brackets more than {_MAX_NESTED_BRACKETS} deep")
        elif text in b">)}]":
            depth = max(0, depth - 1)
