"""Elementwise ops on integers and preds, for scalars and vectors. Results are exact and wrap."""

from __future__ import annotations

from collections.abc import Callable

from treadle.compiler.codegen.text import FunctionBuilder, register_type, vector
from treadle.compiler.ir.types import DType

Emit = Callable[[FunctionBuilder, DType, list[str], int], str]


def _instruction(signed: str, unsigned: str = "") -> Emit:
    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        name = signed if dtype.is_signed or not unsigned else unsigned
        return fb.op(f"{name} {vector(register_type(dtype), lanes)} {x[0]}, {x[1]}")

    return emit


def _intrinsic(signed: str, unsigned: str = "", extra: str = "") -> Emit:
    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        name = signed if dtype.is_signed or not unsigned else unsigned
        return fb.intrinsic(name, register_type(dtype), lanes, x, extra)

    return emit


def _choose(fb: FunctionBuilder, dtype: DType, lanes: int, flag: str, yes: str, no: str) -> str:
    ty = vector(register_type(dtype), lanes)
    return fb.op(f"select {vector('i1', lanes)} {flag}, {ty} {yes}, {ty} {no}")


def _negate(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    return fb.op(f"sub {vector(register_type(dtype), lanes)} {fb.const(dtype, 0, lanes)}, {x[0]}")


def _not(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    ones = fb.const(dtype, (1 << dtype.bits) - 1, lanes)
    return fb.op(f"xor {vector(register_type(dtype), lanes)} {x[0]}, {ones}")


def _abs(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    return fb.intrinsic("abs", register_type(dtype), lanes, x, "i1 false") if dtype.is_signed else x[0]


def _sign(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    ty, zero = vector(register_type(dtype), lanes), fb.const(dtype, 0, lanes)
    positive = fb.op(f"icmp {'sgt' if dtype.is_signed else 'ne'} {ty} {x[0]}, {zero}")
    result = fb.op(f"zext {vector('i1', lanes)} {positive} to {ty}")
    if not dtype.is_signed:
        return result
    # Arithmetic shift gives -1 for negatives; a negative is not positive, so `or` joins the two.
    return fb.op(f"or {ty} {result}, {fb.op(f'ashr {ty} {x[0]}, {fb.const(dtype, dtype.bits - 1, lanes)}')}")


def _shift(name: str) -> Emit:
    """Shifts by the width or more give 0, or copies of the sign; LLVM leaves them undefined."""

    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        ty = vector(register_type(dtype), lanes)
        amount = fb.literal_bits(dtype, x[1])
        if amount is not None and amount < dtype.bits:
            return fb.op(f"{name} {ty} {x[0]}, {x[1]}")
        if name == "ashr":
            capped = fb.intrinsic("umin", register_type(dtype), lanes, [x[1], fb.const(dtype, dtype.bits - 1, lanes)])
            return fb.op(f"ashr {ty} {x[0]}, {capped}")
        inside = fb.op(f"icmp ult {ty} {x[1]}, {fb.const(dtype, dtype.bits, lanes)}")
        return _choose(fb, dtype, lanes, inside, fb.op(f"{name} {ty} {x[0]}, {x[1]}"), fb.const(dtype, 0, lanes))

    return emit


def _quotient(fb: FunctionBuilder, dtype: DType, x: str, y: str, lanes: int) -> str:
    """x / y truncated, for y that is neither 0 nor makes the quotient overflow.

    There is no vector integer division; up to 32 bits, a division of wide enough floats truncates to the same quotient:
    the distance of x / y to the next integer is at least 1 / y, more than the rounding error of a 24-bit (for 16-bit
    operands) or 53-bit significand.
    """
    kind, ty = ("s" if dtype.is_signed else "u"), vector(register_type(dtype), lanes)
    if lanes == 1 or dtype.bits == 64 or fb.literal_bits(dtype, y) is not None:
        return fb.op(f"{kind}div {ty} {x}, {y}")
    real = vector("double" if dtype.bits == 32 else "float", lanes)
    a, b = fb.op(f"{kind}itofp {ty} {x} to {real}"), fb.op(f"{kind}itofp {ty} {y} to {real}")
    return fb.op(f"fpto{kind}i {real} {fb.op(f'fdiv {real} {a}, {b}')} to {ty}")


def _division(remainder: bool) -> Emit:
    """Division: by zero gives all ones and the dividend as remainder; the least integer by -1 gives itself and 0."""

    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        ty, flag = vector(register_type(dtype), lanes), vector("i1", lanes)
        ones = (1 << dtype.bits) - 1
        divisor = fb.literal_bits(dtype, x[1])
        if divisor is not None and divisor not in (0, ones):
            kind = "s" if dtype.is_signed else "u"
            return fb.op(f"{kind}{'rem' if remainder else 'div'} {ty} {x[0]}, {x[1]}")
        zero, one = fb.const(dtype, 0, lanes), fb.const(dtype, 1, lanes)
        by_zero = fb.op(f"icmp eq {ty} {x[1]}, {zero}")
        unsafe = by_zero
        if dtype.is_signed:
            least = fb.op(f"icmp eq {ty} {x[0]}, {fb.const(dtype, 1 << (dtype.bits - 1), lanes)}")
            minus = fb.op(f"icmp eq {ty} {x[1]}, {fb.const(dtype, ones, lanes)}")
            unsafe = fb.op(f"or {flag} {by_zero}, {fb.op(f'and {flag} {least}, {minus}')}")
        safe = _choose(fb, dtype, lanes, unsafe, one, x[1])
        quotient = _quotient(fb, dtype, x[0], safe, lanes)
        if not remainder:
            return _choose(fb, dtype, lanes, by_zero, fb.const(dtype, ones, lanes), quotient)
        rest = fb.op(f"sub {ty} {x[0]}, {fb.op(f'mul {ty} {quotient}, {safe}')}")
        return _choose(fb, dtype, lanes, by_zero, x[0], rest)

    return emit


def _power(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    """x ** y by squaring, in a helper function; for a negative exponent 1 / x ** -y, truncated (0 for x = 0)."""
    element = register_type(dtype)
    ty, flag = vector(element, lanes), vector("i1", lanes)
    symbol = f"treadle_power_{dtype.name}_{lanes}"
    if symbol not in fb.functions:
        zero, one = fb.const(dtype, 0, lanes), fb.const(dtype, 1, lanes)
        minus = fb.const(dtype, (1 << dtype.bits) - 1, lanes)
        any_left = "%some = icmp ne i1 %left, false"
        if lanes > 1:
            reduce_or = f"llvm.vector.reduce.or.v{lanes}i1"
            fb.declare("i1", reduce_or, [flag])
            any_left = f"%some = call i1 @{reduce_or}({flag} %left)"
        tail = [f"  ret {ty} %next"]
        if dtype.is_signed:
            tail = [
                f"  %negative = icmp slt {ty} %y, {zero}",
                f"  %is_one = icmp eq {ty} %x, {one}",
                f"  %is_minus = icmp eq {ty} %x, {minus}",
                f"  %odd_y = and {ty} %y, {one}",
                f"  %even = icmp eq {ty} %odd_y, {zero}",
                f"  %sign = select {flag} %even, {ty} {one}, {ty} {minus}",
                f"  %of_minus = select {flag} %is_minus, {ty} %sign, {ty} {zero}",
                f"  %inverse = select {flag} %is_one, {ty} {one}, {ty} %of_minus",
                f"  %result = select {flag} %negative, {ty} %inverse, {ty} %next",
                f"  ret {ty} %result",
            ]
        fb.functions[symbol] = "\n".join(
            [
                f"define internal {ty} @{symbol}({ty} %x, {ty} %y) nounwind {{",
                "entry:",
                "  br label %loop",
                "loop:",
                f"  %base = phi {ty} [ %x, %entry ], [ %squared, %loop ]",
                f"  %rest = phi {ty} [ %y, %entry ], [ %halved, %loop ]",
                f"  %acc = phi {ty} [ {one}, %entry ], [ %next, %loop ]",
                f"  %bit = and {ty} %rest, {one}",
                f"  %odd = icmp ne {ty} %bit, {zero}",
                f"  %factor = select {flag} %odd, {ty} %base, {ty} {one}",
                f"  %next = mul {ty} %acc, %factor",
                f"  %squared = mul {ty} %base, %base",
                f"  %halved = lshr {ty} %rest, {one}",
                f"  %left = icmp ne {ty} %halved, {zero}",
                f"  {any_left}",
                "  br i1 %some, label %loop, label %done",
                "done:",
                *tail,
                "}",
            ]
        )
    return fb.op(f"call {ty} @{symbol}({ty} {x[0]}, {ty} {x[1]})")


INTEGER: dict[str, Emit] = {
    "abs": _abs,
    "add": _instruction("add"),
    "and": _instruction("and"),
    "count_leading_zeros": _intrinsic("ctlz", extra="i1 false"),
    "divide": _division(remainder=False),
    "maximum": _intrinsic("smax", "umax"),
    "minimum": _intrinsic("smin", "umin"),
    "multiply": _instruction("mul"),
    "negate": _negate,
    "not": _not,
    "or": _instruction("or"),
    "popcnt": _intrinsic("ctpop"),
    "power": _power,
    "remainder": _division(remainder=True),
    "shift_left": _shift("shl"),
    "shift_right_arithmetic": _shift("ashr"),
    "shift_right_logical": _shift("lshr"),
    "sign": _sign,
    "subtract": _instruction("sub"),
    "xor": _instruction("xor"),
}

# On preds, sum and maximum are `or`, product and minimum are `and`.
PRED: dict[str, Emit] = {
    "add": _instruction("or"),
    "and": _instruction("and"),
    "maximum": _instruction("or"),
    "minimum": _instruction("and"),
    "multiply": _instruction("and"),
    "not": _not,
    "or": _instruction("or"),
    "xor": _instruction("xor"),
}

_SIGNED = {"EQ": "eq", "NE": "ne", "LT": "slt", "LE": "sle", "GT": "sgt", "GE": "sge"}
_UNSIGNED = {"EQ": "eq", "NE": "ne", "LT": "ult", "LE": "ule", "GT": "ugt", "GE": "uge"}


def compare_integers(fb: FunctionBuilder, dtype: DType, direction: str, x: list[str], lanes: int) -> str:
    """Compares integers or preds (false < true)."""
    predicate = (_SIGNED if dtype.is_signed else _UNSIGNED)[direction]
    return fb.op(f"icmp {predicate} {vector(register_type(dtype), lanes)} {x[0]}, {x[1]}")
