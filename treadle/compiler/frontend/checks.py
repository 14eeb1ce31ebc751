"""What is checked of a program's bytes before MLIR sees them."""

from __future__ import annotations

import re

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend import bytecode, bytecode_ir, encodings

# MLIR's text parser calls itself at every opening bracket.
_MAX_NESTED_BRACKETS = 500

# MLIR makes room for every dimension up to the highest that a convolution names.
_MAX_CONVOLUTION_DIMENSION = 64


def check_program(program: bytes) -> None:
    """Raises CompileError (INVALID_ARGUMENT) for bytes that must not reach MLIR."""
    try:
        if program.startswith(bytecode.MAGIC):
            _check_bytecode(program)
        else:
            _check_whole_text(program)
    except bytecode.BytecodeError as e:
        raise CompileError(
            StatusCode.INVALID_ARGUMENT,
            f"The program ({len(program)} bytes) is damaged: {e}. It must be StableHLO: a portable artifact, MLIR "
            "bytecode or text.",
        ) from None


def _check_bytecode(program: bytes) -> None:
    read = bytecode.read_tables(program)
    if read is None:
        return  # of a newer version, which is MLIR's to judge
    tables, ir = read
    encodings.check_encodings(tables, bytecode_ir.check_ir(tables, *ir))
    for entry in (*tables.attributes, *tables.types):
        if not entry.custom:
            _check_text(program[entry.start : entry.end].rstrip(b"\0"))


def _check_whole_text(program: bytes) -> None:
    if not program.strip():
        raise bytecode.BytecodeError("it is empty")
    _check_text(program)


def _check_text(text: bytes) -> None:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as e:
        raise bytecode.BytecodeError(f"its text is not valid UTF-8 at byte {e.start}") from None
    if b"\0" in text:
        raise bytecode.BytecodeError("its text has a zero byte")
    if _HIGH_ESCAPE.search(text):
        _check_strings(text)
    for dimensions in _CONVOLUTION.findall(text):
        if any(len(n) > 9 or int(n) > _MAX_CONVOLUTION_DIMENSION for n in re.findall(rb"[0-9]+", dimensions)):
            raise bytecode.BytecodeError(
                f"a convolution has a dimension above {_MAX_CONVOLUTION_DIMENSION}: {dimensions.decode()}"
            )
    if sum(map(text.count, (b"(", b"<", b"{", b"["))) > _MAX_NESTED_BRACKETS:
        _check_nesting(text)


# A byte above 127 written in hex. The bindings end the process when a name with such bytes is no UTF-8.
_HIGH_ESCAPE = re.compile(rb"\\[89A-Fa-f][0-9A-Fa-f]")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2})")
_STRING = re.compile(rb'"((?:[^"\\\n]|\\.)*)"')
_CONVOLUTION = re.compile(rb"\[[\w?,\s]*\]\s*x\s*\[[\w?,\s]*\]\s*->\s*\[[\w?,\s]*\]")


def _check_strings(text: bytes) -> None:
    for match in _STRING.finditer(text):
        raw = _ESCAPE.sub(lambda escape: bytes.fromhex(escape.group(1).decode()), match.group(1))
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            raise bytecode.BytecodeError(f"one of its strings, {raw[:40]!r}, is not valid UTF-8") from None


_BRACKETS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<({\[]|[>)}\]]')


def _check_nesting(text: bytes) -> None:
    depth = 0
    for token in _BRACKETS.finditer(text):
        bracket = token.group()
        if bracket in b"<({[":
            depth += 1
            if depth > _MAX_NESTED_BRACKETS:
                raise bytecode.BytecodeError(f"it nests brackets more than {_MAX_NESTED_BRACKETS} deep")
        elif bracket in b">)}]":
            depth = max(0, depth - 1)
