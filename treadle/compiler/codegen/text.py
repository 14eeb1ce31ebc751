"""A small builder of LLVM IR text.

Text, not an object model: a kernel is a few hundred lines, and appending strings is what makes emitting one cheaper
than a millisecond. The text uses opaque pointers and nothing newer than LLVM 20, so it parses with llvmlite 0.45 to
0.50.

Register types: pred is `i1`, integers are themselves, f32 and f64 are `float` and `double`, and the 16-bit floats are
`i16` (their storage): arithmetic on them widens to `float` and rounds back, and moving them around changes no bit, not
even of a signalling NaN. In memory a pred is a byte that is 0 or 1.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable

from treadle.compiler.codegen import math
from treadle.compiler.codegen.target import Target
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType

# About 50 instructions: longer functions take too long to compile once per use.
_INLINE_CHARACTERS = 4000

_REGISTER: dict[DType, str] = {
    t.PRED: "i1", t.S8: "i8", t.U8: "i8", t.S16: "i16", t.U16: "i16", t.S32: "i32", t.U32: "i32", t.S64: "i64",
    t.U64: "i64", t.F16: "i16", t.BF16: "i16", t.F32: "float", t.F64: "double",
}  # fmt: skip


def register_type(dtype: DType) -> str:
    """The LLVM type of one element in a register."""
    return _REGISTER[dtype]


def memory_type(dtype: DType) -> str:
    """The LLVM type of one element in memory."""
    return "i8" if dtype is t.PRED else _REGISTER[dtype]


def vector(element: str, lanes: int) -> str:
    """The type of `lanes` elements; one lane is a scalar."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def suffix(element: str, lanes: int) -> str:
    """An intrinsic's name suffix for a type: `v16f32`."""
    scalar = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(element, element)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


@functools.lru_cache(maxsize=4096)
def scalar_literal(dtype: DType, bits: int) -> str:
    """The literal of a value given by its storage bits; floats in hex, so that no digit is rounded."""
    if dtype is t.F32:
        return f"0x{_float_bits_as_double(bits):016X}"
    if dtype is t.F64:
        return f"0x{bits:016X}"
    if dtype is t.PRED:
        return "true" if bits else "false"
    width = 16 if dtype.is_float else dtype.bits
    return str(bits - (1 << width) if bits >> (width - 1) else bits)


def _float_bits_as_double(bits: int) -> int:
    """LLVM writes a float as the double of the same value; a NaN's payload moves by hand, or it would become quiet."""
    if bits >> 23 & 0xFF == 0xFF:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    return int.from_bytes(struct.pack("<d", struct.unpack("<f", bits.to_bytes(4, "little"))[0]), "little")


@functools.lru_cache(maxsize=4096)
def splat_literal(element: str, literal: str, lanes: int) -> str:
    """A constant vector of equal elements (the literal itself for one lane)."""
    if lanes == 1:
        return literal
    return f"splat ({element} {literal})"


@functools.lru_cache(maxsize=1024)
def vector_literal(element: str, literals: tuple[str, ...]) -> str:
    """A constant vector."""
    return "<" + ", ".join([f"{element} {x}" for x in literals]) + ">"


@functools.lru_cache(maxsize=256)
def _shuffle_mask(order: tuple[int, ...]) -> str:
    return f"<{len(order)} x i32> {vector_literal('i32', tuple(map(str, order)))}"


class FunctionBuilder:
    """Lines of one function, with fresh names.

    Attributes:
      target: the machine.
      code: the list of lines that instructions are appended to; the owner may exchange it for another (hoisting).
      declares: declarations that the text needs, by symbol.
      functions: helper functions that the text calls, by symbol: their texts.
      wide: for 16-bit floats in registers, the `float` of the same value where it is known.
      splats: constant vectors that were made here, by text: the storage bits of their elements.
    """

    __slots__ = ("_next", "code", "declares", "functions", "splats", "target", "wide")

    def __init__(self, target: Target):
        self.target = target
        self.code: list[str] = []
        self.declares: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.wide: dict[str, str] = {}
        self.splats: dict[str, int] = {}
        self._next = 0

    def fresh(self, hint: str = "") -> str:
        """A new SSA name or, without its %, a label."""
        self._next += 1
        return f"%{hint}{self._next}" if hint else f"%v{self._next}"

    def op(self, text: str) -> str:
        """Appends an instruction with a result; returns the result's name."""
        self._next += 1
        name = f"%v{self._next}"
        self.code.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.code.append("  " + text)

    def label(self, name: str) -> None:
        """Starts the block `name` (given with its %)."""
        self.code.append(name[1:] + ":")

    def const(self, dtype: DType, bits: int, lanes: int = 1) -> str:
        """A literal or a constant vector of equal elements."""
        literal = scalar_literal(dtype, bits)
        if lanes == 1:
            return literal
        text = splat_literal(_REGISTER[dtype], literal, lanes)
        self.splats[text] = bits
        return text

    def literal_bits(self, dtype: DType, value: str) -> int | None:
        """The storage bits of a constant operand; None when `value` is not a constant of equal elements."""
        if value[0] == "%":
            return None
        if value[0] == "s":
            return self.splats.get(value)
        if dtype.is_integer or dtype in (t.F16, t.BF16):
            return int(value) & ((1 << dtype.bits) - 1)
        return None

    def declare(self, result: str, symbol: str, params: Iterable[str]) -> None:
        """Notes that the text calls an external function or an intrinsic."""
        if symbol not in self.declares:
            self.declares[symbol] = f"declare {result} @{symbol}({', '.join(params)})"

    def call(self, result: str, symbol: str, operands: list[tuple[str, str]]) -> str:
        """Calls a declared function: operands are (type, value)."""
        if symbol not in self.declares:
            self.declares[symbol] = f"declare {result} @{symbol}({', '.join([ty for ty, _ in operands])})"
        text = ", ".join([f"{ty} {value}" for ty, value in operands])
        return self.op(f"call {result} @{symbol}({text})")

    def intrinsic(self, name: str, element: str, lanes: int, values: list[str], extra: str = "") -> str:
        """An overloaded intrinsic whose result and operands have one type; `extra` is a last operand with its type."""
        ty = vector(element, lanes)
        symbol = f"llvm.{name}.{suffix(element, lanes)}"
        if symbol not in self.declares:
            params = [ty] * len(values) + ([extra.split(maxsplit=1)[0]] if extra else [])
            self.declares[symbol] = f"declare {ty} @{symbol}({', '.join(params)})"
        text = ", ".join([f"{ty} {value}" for value in values] + ([extra] if extra else []))
        return self.op(f"call {ty} @{symbol}({text})")

    def shuffle(self, element: str, lanes: int, a: str, b: str, order: tuple[int, ...]) -> str:
        """Lanes picked from the vectors `a` and `b` (both of `lanes` lanes, numbered on)."""
        ty = vector(element, lanes)
        return self.op(f"shufflevector {ty} {a}, {ty} {b}, {_shuffle_mask(order)}")

    def math(self, name: str, dtype: DType, lanes: int, operands: list[str]) -> str | None:
        """Applies Treadle's own function for a transcendental op; None when there is only C's.

        Straight code is put here: a call would have every live vector written to the stack and read again, and the
        function's constants loaded each time.
        """
        if name not in math.NAMES:
            return None
        function = math.math_function(name, dtype, lanes, self.target)
        for line in function.needs:
            self.declares.setdefault(line.split("@", 1)[1].split("(", 1)[0], line)
        if function.body is not None and len(function.body) <= _INLINE_CHARACTERS:
            self._next += 1
            prefix = f"%m{self._next}."
            text = function.body.replace("%v", prefix)
            for i, operand in enumerate(operands):
                text = text.replace(f"%x{i}", operand)
            self.code.append(text)
            return function.result.replace("%v", prefix)
        self.functions.setdefault(function.symbol, function.text)
        ty = vector(register_type(dtype), lanes)
        return self.op(f"call {ty} @{function.symbol}({', '.join([f'{ty} {value}' for value in operands])})")

    def splat(self, element: str, value: str, lanes: int) -> str:
        """A vector of equal elements from a scalar register or literal."""
        if lanes == 1:
            return value
        if value[0] != "%":
            return splat_literal(element, value, lanes)
        ty = vector(element, lanes)
        one = self.op(f"insertelement {ty} poison, {element} {value}, i64 0")
        zeros = "zeroinitializer"
        return self.op(f"shufflevector {ty} {one}, {ty} poison, <{lanes} x i32> {zeros}")
