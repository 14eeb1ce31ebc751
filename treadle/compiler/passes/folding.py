"""Constant folding: ops whose operands are all constants become constants, within bounds."""

from __future__ import annotations

import numpy as np

from treadle.compiler import interp
from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import Kind
from treadle.compiler.ops import registry
from treadle.compiler.ops.registry import Array
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet

rules = RuleSet()

# A folded result may be so big, unless all its elements are equal; its operands so big.
_RESULT_BYTES = 64 * 1024
_OPERAND_BYTES = 1024 * 1024
# Ops that do more than one step of work for an element: operands and results up to so many elements.
_HEAVY_ELEMENTS = 4096

_MOVING = ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "concatenate", "pad", "bitcast_convert")
_HEAVY = ("reduce", "dot_general", "gather", "dynamic_slice", "dynamic_update_slice", "reduce_window")
# Moving equal elements around leaves equal elements.
_KEEPS_SPLAT = ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse")


def _first(x: Array) -> Array:
    return np.asarray(x[(0,) * x.ndim])


def _fold(op: Op, rewriter: Rewriter) -> Replacement:
    values: list[Array] = []
    for operand in op.operands:
        value = rewriter.constant(operand)
        if value is None:
            return None
        values.append(value)
    if len(op.results) != 1 or not values:
        return None
    result = op.results[0].type
    if result.dtype.kind is Kind.TOKEN or not result.size:
        return None
    all_splat = all(rewriter.splat(v) is not None for v in op.operands)
    definition = registry.get(op)
    if all_splat and definition.apply is not None:
        with np.errstate(all="ignore"):
            return rewriter.constant_value(np.asarray(definition.apply(op, *map(_first, values))), result)
    if all_splat and op.name in _KEEPS_SPLAT:
        return rewriter.constant_value(_first(values[0]), result)
    if result.byte_size > _RESULT_BYTES or sum(v.type.byte_size for v in op.operands) > _OPERAND_BYTES:
        return None
    if op.name in _HEAVY and max(result.size, *(v.type.size for v in op.operands)) > _HEAVY_ELEMENTS:
        return None
    folded = interp.run_op(op, values)[0]
    # A copy: a view would keep the whole operand alive.
    return rewriter.constant_value(np.array(folded, result.dtype.numpy, order="C"), result)


def _fold_constant(op: Op, _: Rewriter) -> Replacement:
    """Small constants with equal elements are written as splats, which is what the other rules look for."""
    value = op.attrs["value"]
    assert isinstance(value, np.ndarray)
    if value.ndim and value.size and any(value.strides) and value.nbytes <= _RESULT_BYTES:
        raw = np.ascontiguousarray(value).view(np.uint8).reshape(value.size, -1)
        if (raw == raw[0]).all():
            op.attrs["value"] = np.broadcast_to(_first(value), value.shape)
    return None


def _fold_iota(op: Op, rewriter: Rewriter) -> Replacement:
    """Counting to one."""
    result = op.results[0].type
    dim = op.attrs["iota_dimension"]
    assert isinstance(dim, int)
    return rewriter.full(0, result) if result.shape[dim] == 1 and result.size else None


def _foldable(name: str) -> bool:
    definition = registry.find(name)
    return definition is not None and (definition.apply is not None or name in _MOVING or name in _HEAVY)


rules.on(*(name for name in registry.all_ops() if _foldable(name)))(_fold)
rules.on("constant")(_fold_constant)
rules.on("iota")(_fold_iota)
