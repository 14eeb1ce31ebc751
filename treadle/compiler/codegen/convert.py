"""`convert` and `bitcast_convert` between element types, for scalars and vectors."""

from __future__ import annotations

from treadle.compiler.codegen.narrow import is_narrow, round_to, widen
from treadle.compiler.codegen.text import FunctionBuilder, register_type, suffix, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType


def emit_convert(fb: FunctionBuilder, to: DType, value: str, dtype: DType, lanes: int) -> str:
    """StableHLO's convert.

    Floats become integers by truncation, saturating, NaN becoming 0; integers wrap; anything but zero is true. f64 and
    integers become bf16, and integers f16, by way of f32, as in XLA.
    """
    if to is dtype:
        return value
    if is_narrow(dtype):
        return emit_convert(fb, to, widen(fb, dtype, value, lanes), t.F32, lanes)
    if to is t.F16 and dtype is t.F64:
        half = fb.op(f"fptrunc {vector('double', lanes)} {value} to {vector('half', lanes)}")
        return fb.op(f"bitcast {vector('half', lanes)} {half} to {vector('i16', lanes)}")
    if is_narrow(to):
        return round_to(fb, to, emit_convert(fb, t.F32, value, dtype, lanes), lanes)
    source, result = vector(register_type(dtype), lanes), vector(register_type(to), lanes)
    if to is t.PRED:
        zero = fb.const(dtype, 0, lanes)
        return fb.op(f"fcmp une {source} {value}, {zero}" if dtype.is_float else f"icmp ne {source} {value}, {zero}")
    if dtype.is_float:
        if to.is_float:
            return fb.op(f"{'fpext' if to is t.F64 else 'fptrunc'} {source} {value} to {result}")
        name = "fptosi" if to.is_signed else "fptoui"
        symbol = f"llvm.{name}.sat.{suffix(register_type(to), lanes)}.{suffix(register_type(dtype), lanes)}"
        return fb.call(result, symbol, [(source, value)])
    if to.is_float:
        return fb.op(f"{'sitofp' if dtype.is_signed else 'uitofp'} {source} {value} to {result}")
    if to.bits == dtype.bits:
        return value
    if to.bits < dtype.bits:
        return fb.op(f"trunc {source} {value} to {result}")
    return fb.op(f"{'sext' if dtype.is_signed else 'zext'} {source} {value} to {result}")


def emit_bitcast(fb: FunctionBuilder, to: DType, value: str, dtype: DType, lanes: int) -> str:
    """bitcast_convert between types of one width: the storage bits stay."""
    source, result = register_type(dtype), register_type(to)
    if source == result:
        return value
    if dtype is t.PRED:
        return fb.op(f"zext {vector(source, lanes)} {value} to {vector(result, lanes)}")
    if to is t.PRED:
        return fb.op(f"icmp ne {vector(source, lanes)} {value}, {fb.const(dtype, 0, lanes)}")
    return fb.op(f"bitcast {vector(source, lanes)} {value} to {vector(result, lanes)}")
