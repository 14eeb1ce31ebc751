"""Every elementwise op as LLVM instructions: the one entry that kernels and straight-line scalar code share."""

from __future__ import annotations

from treadle.compiler.codegen.convert import emit_bitcast, emit_convert
from treadle.compiler.codegen.floating import FLOAT, compare_floats
from treadle.compiler.codegen.integer import INTEGER, PRED, compare_integers
from treadle.compiler.codegen.narrow import is_narrow, round_to, widen
from treadle.compiler.codegen.order import SIGNED_OF_WIDTH, total_order_key
from treadle.compiler.codegen.text import FunctionBuilder, register_type, vector
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType

_TOTAL = "_TOTAL"


def emit_apply(
    fb: FunctionBuilder, name: str, attr: str, dtype: DType, operands: list[tuple[str, DType]], lanes: int = 1
) -> str:
    """Emits one elementwise op and returns the register (or constant) of its result.

    Args:
      fb: where to.
      name: StableHLO's name of the op.
      attr: as in loops.ir.Apply: the comparison direction, otherwise "".
      dtype: element type of the result.
      operands: (register or constant, element type).
      lanes: how many elements each register holds; 1 means scalars.
    """
    values = [value for value, _ in operands]
    source = operands[0][1]
    if name == "convert":
        return emit_convert(fb, dtype, values[0], source, lanes)
    if name == "bitcast_convert":
        return emit_bitcast(fb, dtype, values[0], source, lanes)
    if name == "select":
        ty = vector(register_type(dtype), lanes)
        return fb.op(f"select {vector('i1', lanes)} {values[0]}, {ty} {values[1]}, {ty} {values[2]}")
    if name == "clamp":
        raised = emit_apply(fb, "maximum", "", dtype, [operands[0], operands[1]], lanes)
        return emit_apply(fb, "minimum", "", dtype, [(raised, dtype), operands[2]], lanes)
    if name == "compare":
        return _compare(fb, attr, source, values, lanes)
    if source is t.PRED:
        emit = PRED.get(name)
    elif source.is_integer:
        emit = INTEGER.get(name)
    elif is_narrow(source):
        return _narrow(fb, name, dtype, values, source, lanes)
    else:
        emit = FLOAT.get(name)
    if emit is None:
        raise _unknown(name, source)
    return emit(fb, source, values, lanes)


def _unknown(name: str, dtype: DType) -> CompileError:
    return CompileError(StatusCode.UNIMPLEMENTED, f"code generation: no elementwise op '{name}' on {dtype.name}")


def _narrow(fb: FunctionBuilder, name: str, dtype: DType, values: list[str], source: DType, lanes: int) -> str:
    """An op on 16-bit floats: on the bits where that is exact, otherwise in f32 and rounded."""
    ty = vector("i16", lanes)
    if name == "negate":
        return fb.op(f"xor {ty} {values[0]}, {fb.const(t.U16, 0x8000, lanes)}")
    if name == "abs":
        return fb.op(f"and {ty} {values[0]}, {fb.const(t.U16, 0x7FFF, lanes)}")
    emit = FLOAT.get(name)
    if emit is None:
        raise _unknown(name, source)
    result = emit(fb, t.F32, [widen(fb, source, value, lanes) for value in values], lanes)
    return result if dtype is t.PRED else round_to(fb, dtype, result, lanes)


def _compare(fb: FunctionBuilder, direction: str, source: DType, values: list[str], lanes: int) -> str:
    if not source.is_float:
        return compare_integers(fb, source, direction, values, lanes)
    if direction.endswith(_TOTAL):
        bits = SIGNED_OF_WIDTH[source.bits]
        keys = [total_order_key(fb, bits, emit_bitcast(fb, bits, value, source, lanes), lanes) for value in values]
        return compare_integers(fb, bits, direction[: -len(_TOTAL)], keys, lanes)
    if is_narrow(source):
        return compare_floats(fb, t.F32, direction, [widen(fb, source, value, lanes) for value in values], lanes)
    return compare_floats(fb, source, direction, values, lanes)


def load_scalar(fb: FunctionBuilder, dtype: DType, pointer: str) -> str:
    """The element at `pointer`."""
    if dtype is t.PRED:
        return fb.op(f"icmp ne i8 {fb.op(f'load i8, ptr {pointer}, align 1')}, 0")
    return fb.op(f"load {register_type(dtype)}, ptr {pointer}, align {dtype.bytes}")


def store_scalar(fb: FunctionBuilder, dtype: DType, value: str, pointer: str) -> None:
    """Writes an element."""
    if dtype is t.PRED:
        fb.do(f"store i8 {fb.op(f'zext i1 {value} to i8')}, ptr {pointer}, align 1")
    else:
        fb.do(f"store {register_type(dtype)} {value}, ptr {pointer}, align {dtype.bytes}")
