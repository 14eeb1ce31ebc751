"""Integers that order like floats, so that a maximum of floats is one integer instruction.

Among floats a maximum has to look for NaN and for zeros of both signs each time; on these keys both come out right by
themselves, and encoding stands outside the chain of dependent maxima.
"""

from __future__ import annotations

from treadle.compiler.codegen.text import FunctionBuilder, register_type, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType

SIGNED_OF_WIDTH: dict[int, DType] = {8: t.S8, 16: t.S16, 32: t.S32, 64: t.S64}
_INFINITY: dict[DType, int] = {t.F16: 0x7C00, t.BF16: 0x7F80, t.F32: 0x7F800000, t.F64: 0x7FF << 52}


def total_order_key(fb: FunctionBuilder, bits: DType, value: str, lanes: int) -> str:
    """A signed integer that orders like the float whose storage is `value`: -NaN < -inf < ... < -0 < +0 < ... < NaN.

    Applied to a key, it gives the float's storage back.
    """
    ty = vector(register_type(bits), lanes)
    sign = fb.op(f"ashr {ty} {value}, {fb.const(bits, bits.bits - 1, lanes)}")
    flip = fb.op(f"and {ty} {sign}, {fb.const(bits, (1 << (bits.bits - 1)) - 1, lanes)}")
    return fb.op(f"xor {ty} {value}, {flip}")


def encode(fb: FunctionBuilder, kind: str, dtype: DType, value: str, lanes: int) -> str:
    """The key of a float in a `kind` ("maximum" or "minimum"); that of a NaN of either sign wins over every other."""
    bits = SIGNED_OF_WIDTH[dtype.bits]
    ty = vector(register_type(bits), lanes)
    real = vector(register_type(dtype), lanes)
    top = (1 << (bits.bits - 1)) - 1
    if real == ty:
        storage = value
        magnitude = fb.op(f"and {ty} {value}, {fb.const(bits, top, lanes)}")
        nan = fb.op(f"icmp ugt {ty} {magnitude}, {fb.const(bits, _INFINITY[dtype], lanes)}")
    else:
        storage = fb.op(f"bitcast {real} {value} to {ty}")
        nan = fb.op(f"fcmp uno {real} {value}, {fb.const(dtype, 0, lanes)}")
    key = total_order_key(fb, bits, storage, lanes)
    winner = top if kind == "maximum" else top + 1
    return fb.op(f"select {vector('i1', lanes)} {nan}, {ty} {fb.const(bits, winner, lanes)}, {ty} {key}")


def decode(fb: FunctionBuilder, dtype: DType, key: str, lanes: int) -> str:
    """The float of a key."""
    bits = SIGNED_OF_WIDTH[dtype.bits]
    storage = total_order_key(fb, bits, key, lanes)
    ty, real = vector(register_type(bits), lanes), vector(register_type(dtype), lanes)
    return storage if ty == real else fb.op(f"bitcast {ty} {storage} to {real}")
