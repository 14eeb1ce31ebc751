"""16-bit floats: widening to f32, and rounding back to nearest even.

Written out in integer arithmetic for bf16, because the hardware's conversion (AVX512-BF16) flushes subnormals, and by
LLVM's `half` for f16, whose conversions (F16C) are exact.
"""

from __future__ import annotations

import numpy as np

from treadle.compiler.codegen.text import FunctionBuilder, scalar_literal, splat_literal, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType


def is_narrow(dtype: DType) -> bool:
    """Whether `dtype` is computed in f32."""
    return dtype is t.BF16 or dtype is t.F16


def widen(fb: FunctionBuilder, dtype: DType, value: str, lanes: int) -> str:
    """The f32 of a 16-bit float register (exact)."""
    known = fb.wide.get(value)
    if known is not None:
        return known
    bits = fb.literal_bits(dtype, value)
    if bits is not None:
        wide = np.frombuffer(bits.to_bytes(2, "little"), dtype.numpy).astype(np.float32)
        return fb.const(t.F32, int.from_bytes(wide.tobytes(), "little"), lanes)
    short, word, real = vector("i16", lanes), vector("i32", lanes), vector("float", lanes)
    if dtype is t.BF16:
        extended = fb.op(f"zext {short} {value} to {word}")
        shifted = fb.op(f"shl {word} {extended}, {splat_literal('i32', '16', lanes)}")
        return fb.op(f"bitcast {word} {shifted} to {real}")
    half = vector("half", lanes)
    return fb.op(f"fpext {half} {fb.op(f'bitcast {short} {value} to {half}')} to {real}")


def note_wide(fb: FunctionBuilder, dtype: DType, value: str, lanes: int) -> None:
    """Widens right where `value` is defined, so that all its uses share it; unused, it costs nothing in the end."""
    if value[0] == "%" and value not in fb.wide:
        fb.wide[value] = widen(fb, dtype, value, lanes)


def round_to(fb: FunctionBuilder, dtype: DType, value: str, lanes: int) -> str:
    """An f32 register as a 16-bit float register."""
    short, word, real = vector("i16", lanes), vector("i32", lanes), vector("float", lanes)
    if dtype is t.F16:
        half = vector("half", lanes)
        rounded = fb.op(f"fptrunc {real} {value} to {half}")
        result = fb.op(f"bitcast {half} {rounded} to {short}")
        fb.wide[result] = fb.op(f"fpext {half} {rounded} to {real}")
        return result

    def word_const(number: int) -> str:
        return splat_literal("i32", str(number), lanes)

    bits = fb.op(f"bitcast {real} {value} to {word}")
    last = fb.op(f"and {word} {fb.op(f'lshr {word} {bits}, {word_const(16)}')}, {word_const(1)}")
    biased = fb.op(f"add {word} {fb.op(f'add {word} {bits}, {word_const(0x7FFF)}')}, {last}")
    quiet = fb.op(f"or {word} {bits}, {word_const(0x400000)}")
    flag = vector("i1", lanes)
    nan = fb.op(f"fcmp uno {real} {value}, {splat_literal('float', scalar_literal(t.F32, 0), lanes)}")
    chosen = fb.op(f"select {flag} {nan}, {word} {quiet}, {word} {biased}")
    result = fb.op(f"trunc {word} {fb.op(f'lshr {word} {chosen}, {word_const(16)}')} to {short}")
    kept = fb.op(f"and {word} {chosen}, {word_const(-65536)}")
    fb.wide[result] = fb.op(f"bitcast {word} {kept} to {real}")
    return result
