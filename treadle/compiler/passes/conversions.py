"""Conversions that cancel out, merge, or convert what is counted."""

from __future__ import annotations

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import DType, Kind, TensorType
from treadle.compiler.passes.algebra import made_by
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet

rules = RuleSet()


def mantissa_bits(dtype: DType) -> int:
    """Bits of precision of a float that computation uses, the hidden one included."""
    return {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}.get(dtype.name, 0)


def is_lossless(source: DType, target: DType) -> bool:
    """Whether every value of `source` is a value of `target`."""
    if source is target:
        return True
    if source.kind is Kind.PRED:
        return target.kind is not Kind.PRED and target.kind is not Kind.TOKEN
    if source.is_integer and target.is_integer:
        if source.is_signed == target.is_signed:
            return target.bits >= source.bits
        return target.is_signed and target.bits > source.bits
    if source.is_integer and target.is_float:
        return mantissa_bits(target) >= source.bits - source.is_signed
    if source.is_float and target.is_float:
        return (source.name, target.name) in {
            ("f16", "f32"),
            ("bf16", "f32"),
            ("f16", "f64"),
            ("bf16", "f64"),
            ("f32", "f64"),
        }
    return False


@rules.on("convert")
def _convert(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    target = op.results[0].type
    if x.type == target:
        return x
    inner = made_by(x, "convert")
    if inner is not None:
        source, middle = inner.operands[0], x.type.dtype
        first, last = source.type.dtype, target.dtype
        wrapping = first.is_integer and middle.is_integer and last.is_integer and middle.bits >= last.bits
        exact = is_lossless(first, middle)
        if first.is_integer and middle.is_float and last.is_integer:
            exact = exact and is_lossless(first, last)  # else: through floats saturates, directly wraps
        if last.kind is Kind.FLOAT and last.bits < 32 and not first.is_float and middle.is_float:
            exact = exact and is_lossless(first, last)  # else: how often the value is rounded would change
        if wrapping or exact:
            return source if first is last else rewriter.emit("convert", [source], TensorType(last, target.shape))
    iota = made_by(x, "iota")
    if iota is not None and (target.dtype.is_integer or target.dtype.is_float):
        dim = iota.attrs["iota_dimension"]
        assert isinstance(dim, int)
        if _counts_exactly(x.type.dtype, x.type.shape[dim]) and _counts_exactly(target.dtype, x.type.shape[dim]):
            return rewriter.emit("iota", (), target, iota.attrs)
    return None


def _counts_exactly(dtype: DType, extent: int) -> bool:
    """Whether 0 .. extent - 1 are values of `dtype`."""
    if dtype.is_integer:
        return bool(extent <= 2 ** (dtype.bits - dtype.is_signed))
    return bool(extent <= 2 ** mantissa_bits(dtype))


@rules.on("bitcast_convert")
def _bitcast_convert(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    target = op.results[0].type
    if x.type == target:
        return x
    inner = made_by(x, "bitcast_convert")
    if inner is None or len({v.type.dtype.bits for v in (inner.operands[0], x, op.results[0])}) != 1:
        return None
    source = inner.operands[0]
    return source if source.type == target else rewriter.emit("bitcast_convert", [source], target)


@rules.on("reduce_precision")
def _reduce_precision(op: Op, _: Rewriter) -> Replacement:
    (x,) = op.operands
    own = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}.get(x.type.dtype.name)
    exponent, mantissa = op.attrs["exponent_bits"], op.attrs["mantissa_bits"]
    assert isinstance(exponent, int)
    assert isinstance(mantissa, int)
    return x if own is not None and exponent >= own[0] and mantissa >= own[1] else None
