"""Elementwise ops on f32 and f64, for scalars and vectors. IEEE semantics: no fast-math flag anywhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treadle.compiler.codegen.text import FunctionBuilder, register_type, scalar_literal, splat_literal, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType

Emit = Callable[[FunctionBuilder, DType, list[str], int], str]

# C's names, for what has no vector implementation.
_LIBM = {
    "atan2": "atan2", "cbrt": "cbrt", "cosine": "cos", "erf": "erf", "exponential": "exp", "log": "log", "power": "pow",
    "exponential_minus_one": "expm1", "log_plus_one": "log1p", "remainder": "fmod", "sine": "sin", "tan": "tan",
    "tanh": "tanh",
}  # fmt: skip


def _bits(dtype: DType, value: float) -> int:
    return int.from_bytes(np.asarray(value, dtype.numpy).tobytes(), "little")


def _const(dtype: DType, value: float, lanes: int) -> str:
    return splat_literal(register_type(dtype), scalar_literal(dtype, _bits(dtype, value)), lanes)


def _instruction(name: str) -> Emit:
    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        return fb.op(f"{name} {vector(register_type(dtype), lanes)} {x[0]}, {x[1]}")

    return emit


def _intrinsic(name: str) -> Emit:
    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        return fb.intrinsic(name, register_type(dtype), lanes, x)

    return emit


def _negate(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    return fb.op(f"fneg {vector(register_type(dtype), lanes)} {x[0]}")


def _sign(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    """-1, +1, or the zero or NaN itself."""
    ty = vector(register_type(dtype), lanes)
    nonzero = fb.op(f"fcmp one {ty} {x[0]}, {_const(dtype, 0.0, lanes)}")
    one = fb.intrinsic("copysign", register_type(dtype), lanes, [_const(dtype, 1.0, lanes), x[0]])
    return fb.op(f"select {vector('i1', lanes)} {nonzero}, {ty} {one}, {ty} {x[0]}")


def _is_finite(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    magnitude = fb.intrinsic("fabs", register_type(dtype), lanes, x)
    return fb.op(f"fcmp one {vector(register_type(dtype), lanes)} {magnitude}, {_const(dtype, float('inf'), lanes)}")


def _rsqrt(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    root = fb.intrinsic("sqrt", register_type(dtype), lanes, x)
    return fb.op(f"fdiv {vector(register_type(dtype), lanes)} {_const(dtype, 1.0, lanes)}, {root}")


def _logistic(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
    ty, one = vector(register_type(dtype), lanes), _const(dtype, 1.0, lanes)
    growth = _maths("exponential")(fb, dtype, [_negate(fb, dtype, x, lanes)], lanes)
    return fb.op(f"fdiv {ty} {one}, {fb.op(f'fadd {ty} {one}, {growth}')}")


def _per_lane(fb: FunctionBuilder, name: str, dtype: DType, x: list[str], lanes: int) -> str:
    """C's function on each lane."""
    element = register_type(dtype)
    symbol = _LIBM[name] + ("f" if dtype is t.F32 else "")
    if lanes == 1:
        return fb.call(element, symbol, [(element, value) for value in x])
    ty = vector(element, lanes)
    result = "poison"
    for lane in range(lanes):
        operands = [(element, fb.op(f"extractelement {ty} {value}, i64 {lane}")) for value in x]
        one = fb.call(element, symbol, operands)
        result = fb.op(f"insertelement {ty} {result}, {element} {one}, i64 {lane}")
    return result


def _maths(name: str) -> Emit:
    """A function of treadle.compiler.codegen.math, or C's on each lane where there is none."""

    def emit(fb: FunctionBuilder, dtype: DType, x: list[str], lanes: int) -> str:
        result = fb.math(name, dtype, lanes, x)
        if result is not None:
            return result
        return _logistic(fb, dtype, x, lanes) if name == "logistic" else _per_lane(fb, name, dtype, x, lanes)

    return emit


FLOAT: dict[str, Emit] = {
    "abs": _intrinsic("fabs"),
    "add": _instruction("fadd"),
    "ceil": _intrinsic("ceil"),
    "divide": _instruction("fdiv"),
    "floor": _intrinsic("floor"),
    "is_finite": _is_finite,
    "maximum": _intrinsic("maximum"),
    "minimum": _intrinsic("minimum"),
    "multiply": _instruction("fmul"),
    "negate": _negate,
    "round_nearest_afz": _intrinsic("round"),
    "round_nearest_even": _intrinsic("roundeven"),
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sqrt": _intrinsic("sqrt"),
    "subtract": _instruction("fsub"),
    **{name: _maths(name) for name in (*_LIBM, "logistic")},
}

_ORDERED = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


def compare_floats(fb: FunctionBuilder, dtype: DType, direction: str, x: list[str], lanes: int) -> str:
    """IEEE comparison: with a NaN, only NE holds."""
    return fb.op(f"fcmp {_ORDERED[direction]} {vector(register_type(dtype), lanes)} {x[0]}, {x[1]}")
