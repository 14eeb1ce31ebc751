"""A small expression builder for LLVM functions over one vector of lanes.

A maths function is written as Python expressions over `Value`s; each operator appends one line of
LLVM IR. The same Python code serves every lane count (one lane is a scalar type) and targets with
and without fused multiply-add. No fast-math flag is ever set, so what a function computes is
fixed by its text and does not depend on the lane count.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
from collections.abc import Sequence

FLOAT, DOUBLE, I32, I64, I1 = "float", "double", "i32", "i64", "i1"

_INT_OF = {FLOAT: I32, DOUBLE: I64}
_FLOAT_OF = {I32: FLOAT, I64: DOUBLE}
_SUFFIX = {FLOAT: "f32", DOUBLE: "f64"}

# Added to |x| < 2^22 (2^51), this leaves round-to-even(x) in the low bits of the sum. Unlike
# fptosi it has no poison: NaN and huge inputs give some integer, which later selects throw away.
ROUND_MAGIC = {FLOAT: 1.5 * 2.0**23, DOUBLE: 1.5 * 2.0**52}


@functools.lru_cache(maxsize=4096)
def _literal(element: str, value: float | int | bool, lanes: int) -> str:
    """`value` as an LLVM constant, repeated for every lane."""
    if element in (FLOAT, DOUBLE):
        number = float(value)
        if element == FLOAT and math.isfinite(number):
            # LLVM writes a float as the double of the same value.
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    elif element == I1:
        text = "true" if value else "false"
    else:
        text = str(int(value))
    if lanes == 1:
        return text
    return f"splat ({element} {text})"  # LLVM 19 and newer; a third of the parser's work on a list


@functools.lru_cache(maxsize=256)
def type_text(element: str, lanes: int) -> str:
    """LLVM's name of `lanes` lanes of `element`."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


Number = float | int


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: `lanes` lanes of `element`. Numbers mix in as constants of the same type."""

    emitter: Emitter
    element: str
    name: str

    def _binary(self, opcode: str, other: Value | Number) -> Value:
        return self.emitter.binary(opcode, self, other)

    def _reversed(self, opcode: str, other: Number) -> Value:
        return self.emitter.binary(opcode, self.emitter.const(self.element, other), self)

    @property
    def is_float(self) -> bool:
        return self.element in _INT_OF

    def __add__(self, other: Value | Number) -> Value:
        return self._binary("fadd" if self.is_float else "add", other)

    def __radd__(self, other: Number) -> Value:
        return self._reversed("fadd" if self.is_float else "add", other)

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary("fsub" if self.is_float else "sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self._reversed("fsub" if self.is_float else "sub", other)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary("fmul" if self.is_float else "mul", other)

    def __rmul__(self, other: Number) -> Value:
        return self._reversed("fmul" if self.is_float else "mul", other)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._reversed("fdiv", other)

    def __neg__(self) -> Value:
        return self.emitter.unary_line("fneg", self)

    def __and__(self, other: Value | Number) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary("xor", other)

    def __lshift__(self, count: int) -> Value:
        return self._binary("shl", count)

    def __rshift__(self, count: int) -> Value:
        """Logical shift: zeros come in."""
        return self._binary("lshr", count)

    def ashr(self, count: int) -> Value:
        """Arithmetic shift. Avoid on i64: AVX2 has no instruction for it."""
        return self._binary("ashr", count)

    def lt(self, other: Value | Number) -> Value:
        return self.emitter.compare("olt", "slt", self, other)

    def le(self, other: Value | Number) -> Value:
        return self.emitter.compare("ole", "sle", self, other)

    def gt(self, other: Value | Number) -> Value:
        return self.emitter.compare("ogt", "sgt", self, other)

    def ge(self, other: Value | Number) -> Value:
        return self.emitter.compare("oge", "sge", self, other)

    def eq(self, other: Value | Number) -> Value:
        return self.emitter.compare("oeq", "eq", self, other)

    def ne(self, other: Value | Number) -> Value:
        """Not equal; true when either side is NaN."""
        return self.emitter.compare("une", "ne", self, other)

    def is_nan(self) -> Value:
        return self.emitter.compare("uno", "", self, 0.0)

    def bits(self) -> Value:
        """The float's bits as the integer of its size."""
        return self.emitter.convert("bitcast", self, _INT_OF[self.element])

    def as_float(self) -> Value:
        """The integer's bits as the float of its size."""
        return self.emitter.convert("bitcast", self, _FLOAT_OF[self.element])

    def to_double(self) -> Value:
        return self.emitter.convert("fpext", self, DOUBLE)

    def to_single(self) -> Value:
        return self.emitter.convert("fptrunc", self, FLOAT)


class Emitter:
    """Collects the lines of one function body and the declarations it needs."""

    def __init__(self, symbol: str, lanes: int, has_fma: bool) -> None:
        self.symbol = symbol
        self.lanes = lanes
        self.has_fma = has_fma
        self.lines: list[str] = []
        self.declarations: dict[str, None] = {}
        self.helpers: list[str] = []

    def function(self, element: str, arity: int, result: Value) -> str:
        """The whole function (behind its helpers), returning `result`."""
        kind = self.type(element)
        parameters = ", ".join(f"{kind} %x{i}" for i in range(arity))
        head = f"define internal {kind} @{self.symbol}({parameters}) nounwind {{"
        lines = [head, "entry:", *self.lines, f"  ret {kind} {result.name}", "}", ""]
        return "".join(self.helpers) + "\n".join(lines)

    def declare(self, line: str) -> None:
        """Notes a declaration that the function needs."""
        self.declarations[line] = None

    @property
    def has_branches(self) -> bool:
        """Whether the body is more than one basic block."""
        return any(line.endswith(":") for line in self.lines)

    def needs(self) -> tuple[str, ...]:
        """The declarations of what the function calls."""
        return tuple(self.declarations)

    def type(self, element: str) -> str:
        return type_text(element, self.lanes)

    def emit(self, element: str, text: str) -> Value:
        """One more line, whose result has lanes of `element`."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return Value(self, element, name)

    def const(self, element: str, value: Number) -> Value:
        return Value(self, element, _literal(element, value, self.lanes))

    def _operand(self, element: str, value: Value | Number) -> str:
        if isinstance(value, Value):
            assert value.element == element, f"{value.element} where {element} is meant"
            return value.name
        return _literal(element, value, self.lanes)

    # ---- instructions

    def binary(self, opcode: str, a: Value, b: Value | Number) -> Value:
        right = self._operand(a.element, b)
        return self.emit(a.element, f"{opcode} {self.type(a.element)} {a.name}, {right}")

    def unary_line(self, opcode: str, a: Value) -> Value:
        return self.emit(a.element, f"{opcode} {self.type(a.element)} {a.name}")

    def compare(self, float_test: str, int_test: str, a: Value, b: Value | Number) -> Value:
        opcode = f"fcmp {float_test}" if a.is_float else f"icmp {int_test}"
        right = self._operand(a.element, b)
        return self.emit(I1, f"{opcode} {self.type(a.element)} {a.name}, {right}")

    def convert(self, opcode: str, a: Value, element: str) -> Value:
        text = f"{opcode} {self.type(a.element)} {a.name} to {self.type(element)}"
        return self.emit(element, text)

    def select(self, mask: Value, a: Value | Number, b: Value | Number) -> Value:
        """Per lane, `a` where `mask` is true, else `b`."""
        element = a.element if isinstance(a, Value) else b.element if isinstance(b, Value) else ""
        kind = self.type(element)
        left, right = self._operand(element, a), self._operand(element, b)
        return self.emit(element, f"select {self.type(I1)} {mask.name}, {kind} {left}, {kind} {right}")

    def intrinsic(self, name: str, *args: Value) -> Value:
        """llvm.<name>, overloaded on the type of the arguments."""
        element = args[0].element
        shape = _SUFFIX[element] if self.lanes == 1 else f"v{self.lanes}{_SUFFIX[element]}"
        kind = self.type(element)
        function = f"@llvm.{name}.{shape}"
        self.declare(f"declare {kind} {function}({', '.join([kind] * len(args))})")
        operands = ", ".join(f"{kind} {arg.name}" for arg in args)
        return self.emit(element, f"call {kind} {function}({operands})")

    # ---- arithmetic on top of them

    def _value(self, element: str, value: Value | Number) -> Value:
        return value if isinstance(value, Value) else self.const(element, value)

    def fma(self, a: Value, b: Value | Number, c: Value | Number) -> Value:
        """a * b + c: fused if the target can, else rounded twice."""
        if not self.has_fma:
            return a * b + c
        return self.intrinsic("fma", a, self._value(a.element, b), self._value(a.element, c))

    def abs(self, x: Value) -> Value:
        return self.intrinsic("fabs", x)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        return self.intrinsic("copysign", magnitude, sign)

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x)

    def rint(self, x: Value) -> Value:
        return self.intrinsic("rint", x)

    def trunc(self, x: Value) -> Value:
        return self.intrinsic("trunc", x)

    def at_most(self, x: Value, bound: Value | Number) -> Value:
        """The smaller of `x` and `bound`; NaN in `x` stays."""
        return self.select(x.gt(bound), self._value(x.element, bound), x)

    def at_least(self, x: Value, bound: Value | Number) -> Value:
        """The larger of `x` and `bound`; NaN in `x` stays."""
        return self.select(x.lt(bound), self._value(x.element, bound), x)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """c[0] + c[1] x + ... : two interleaved Horner chains, which halves the latency."""
        if len(coefficients) <= 3:
            return self._horner(x, coefficients)
        square = x * x
        even = self._horner(square, coefficients[0::2])
        odd = self._horner(square, coefficients[1::2])
        return self.fma(odd, x, even)

    def _horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        result: Value | Number = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            result = self.fma(x, result, coefficient)
        return self._value(x.element, result)

    def round_to_int(self, x: Value) -> tuple[Value, Value]:
        """Round-to-even(x) as an integer and as a float, for |x| well below 2^22 (2^51)."""
        magic = ROUND_MAGIC[x.element]
        shifted = x + magic
        whole = shifted - magic
        as_int = shifted.bits() - int.from_bytes(_float_bytes(x.element, magic), "little")
        return as_int, whole

    def int_to_float(self, x: Value) -> Value:
        """An integer of at most 20 bits as the float of its size (i64: without AVX-512DQ, too)."""
        if x.element == I32:
            return self.convert("sitofp", x, FLOAT)
        magic = ROUND_MAGIC[DOUBLE]
        return (x + int.from_bytes(_float_bytes(DOUBLE, magic), "little")).as_float() - magic

    def two_sum(self, a: Value, b: Value) -> tuple[Value, Value]:
        """a + b as a rounded sum and its exact error (Knuth)."""
        total = a + b
        b_part = total - a
        return total, (a - (total - b_part)) + (b - b_part)

    def fast_two_sum(self, a: Value, b: Value) -> tuple[Value, Value]:
        """The same for |a| >= |b| or a == 0 (Dekker)."""
        total = a + b
        return total, b - (total - a)

    def two_product(self, a: Value, b: Value) -> tuple[Value, Value]:
        """a * b as a rounded product and its exact error (barring underflow and overflow)."""
        product = a * b
        if self.has_fma:
            return product, self.intrinsic("fma", a, b, -product)
        a_high, a_low = self._split(a)
        b_high, b_low = self._split(b)
        error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        return product, error

    def divide_to_pair(self, top: Value, top_low: Value, bottom: Value, bottom_low: Value) -> tuple[Value, Value]:
        """(top + top_low) / (bottom + bottom_low) in f64 as a quotient and a small rest.

        `bottom` is within f32's range: the rest needs no better inverse than f32's.
        """
        quotient = top / bottom
        product, error = self.two_product(quotient, bottom)
        residual = ((top - product) - error) + self.fma(-quotient, bottom_low, top_low)
        return quotient, residual * (1.0 / bottom.to_single()).to_double()

    def _split(self, a: Value) -> tuple[Value, Value]:
        """Veltkamp's split into halves whose products are exact."""
        scaled = a * (4097.0 if a.element == FLOAT else 134217729.0)
        high = scaled - (scaled - a)
        return high, a - high

    def exponent_scale(self, exponent: Value) -> Value:
        """2^exponent for an integer in the range of normal numbers."""
        bias, shift = (127, 23) if exponent.element == I32 else (1023, 52)
        return ((exponent + bias) << shift).as_float()


def _float_bytes(element: str, value: float) -> bytes:
    return struct.pack("<f" if element == FLOAT else "<d", value)
