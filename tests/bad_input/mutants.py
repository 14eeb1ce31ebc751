"""Damaged programs: what a broken cache, a cut connection or an enemy may hand to the compiler."""

from __future__ import annotations

import random
import re

_NUMBERS = [b"0", b"-1", b"1", b"2", b"7", b"64", b"2147483648", b"-9223372036854775808", b"18446744073709551616"]
_TYPES = [b"f32", b"i1", b"i32", b"ui8", b"bf16", b"f8E4M3FN", b"complex<f32>", b"index", b"none", b"i7"]
_OPS = [b"add", b"dot_general", b"gather", b"reduce", b"while", b"pad", b"slice", b"constant", b"compare", b"case"]
_INTERESTING = bytes([0x00, 0x01, 0x7F, 0x80, 0xC0, 0xFE, 0xFF])


def mutate(program: bytes, seed: int) -> bytes:
    """`program` with one to four random changes; the same for the same seed."""
    rng = random.Random(seed)
    changes = _BYTE_CHANGES if program.startswith(b"ML\xefR") else _TEXT_CHANGES + _BYTE_CHANGES
    for _ in range(rng.randint(1, 4)):
        if program:
            program = rng.choice(changes)(program, rng)
    return program


def _position(program: bytes, rng: random.Random) -> int:
    return rng.randrange(len(program))


def _flip(program: bytes, rng: random.Random) -> bytes:
    i = _position(program, rng)
    return program[:i] + bytes([program[i] ^ 1 << rng.randrange(8)]) + program[i + 1 :]


def _overwrite(program: bytes, rng: random.Random) -> bytes:
    i = _position(program, rng)
    new = bytes(rng.choice(_INTERESTING) for _ in range(rng.randint(1, 4)))
    return program[:i] + new + program[i + len(new) :]


def _randomise(program: bytes, rng: random.Random) -> bytes:
    i = _position(program, rng)
    return program[:i] + rng.randbytes(rng.randint(1, 16)) + program[i + 16 :]


def _truncate(program: bytes, rng: random.Random) -> bytes:
    return program[: _position(program, rng)]


def _delete(program: bytes, rng: random.Random) -> bytes:
    i = _position(program, rng)
    return program[:i] + program[i + rng.randint(1, 32) :]


def _insert(program: bytes, rng: random.Random) -> bytes:
    i = _position(program, rng)
    return program[:i] + rng.randbytes(rng.randint(1, 8)) + program[i:]


def _repeat(program: bytes, rng: random.Random) -> bytes:
    i = _position(program, rng)
    j = min(len(program), i + rng.randint(1, 64))
    return program[:j] + program[i:j] * rng.randint(1, 4) + program[j:]


def _move(program: bytes, rng: random.Random) -> bytes:
    i, j = sorted((_position(program, rng), _position(program, rng)))
    k = min(len(program), j + rng.randint(1, 32))
    return program[:i] + program[j:k] + program[i:j] + program[k:]


_BYTE_CHANGES = [_flip, _overwrite, _randomise, _truncate, _delete, _insert, _repeat, _move]


def _replace(pattern: bytes, choices: list[bytes]):
    compiled = re.compile(pattern)

    def change(program: bytes, rng: random.Random) -> bytes:
        found = list(compiled.finditer(program))
        if not found:
            return program
        match = rng.choice(found)
        return program[: match.start()] + rng.choice(choices) + program[match.end() :]

    return change


def _line(program: bytes, rng: random.Random) -> bytes:
    """Deletes, doubles or moves a line."""
    lines = program.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[i])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


_TEXT_CHANGES = [
    _line,
    _replace(rb"-?\b[0-9]+\b", _NUMBERS),
    _replace(rb"\b(f32|i1|i32|i64|ui32|f64)\b", _TYPES),
    _replace(rb"(?<=stablehlo\.)[a-z_]+", _OPS),
    _replace(rb"%[a-z0-9_]+", [b"%0", b"%arg0", b"%1", b"%cst", b"%c"]),
    _replace(rb"\"[^\"]*\"", [b'"\xff\xfe"', b'"\\FF"', b'""', b'"' + b"x" * 5000 + b'"']),
    _replace(rb"dims = \[[0-9, ]*\]", [b"dims = []", b"dims = [9]", b"dims = [0, 0]", b"dims = [-1]"]),
]
