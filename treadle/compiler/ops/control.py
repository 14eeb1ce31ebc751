"""Control flow and ops that only pass values on."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ir.types import PRED, S32, TensorType
from treadle.compiler.ops.registry import Array, Context, attr, define, fail, operand_count, region_count

_SCALAR_PRED = TensorType(PRED, ())


def _types(values: Sequence[Value]) -> tuple[TensorType, ...]:
    return tuple(v.type for v in values)


def _listed(types: Sequence[TensorType]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def check_region(op: Op, which: str, region: Region, args: Sequence[TensorType], results: Sequence[TensorType]) -> None:
    """Fails unless `region` takes `args` and yields `results`."""
    if _types(region.args) != tuple(args):
        fail(op, f"the {which} region must take {_listed(args)}, it takes {_listed(_types(region.args))}")
    if _types(region.results) != tuple(results):
        fail(op, f"the {which} region must yield {_listed(results)}, it yields {_listed(_types(region.results))}")


def _infer_while(op: Op) -> Sequence[TensorType]:
    region_count(op, 2)
    carry = _types(op.operands)
    check_region(op, "cond", op.regions[0], carry, (_SCALAR_PRED,))
    check_region(op, "body", op.regions[1], carry, carry)
    return carry


@define("while", _infer_while, control_flow=True)
def _while(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    cond, body = op.regions
    carry = list(inputs)
    while bool(context.run(cond, carry)[0]):
        carry = context.run(body, carry)
    return carry


def _infer_branches(op: Op) -> Sequence[TensorType]:
    results = _types(op.regions[0].results)
    for i, branch in enumerate(op.regions):
        check_region(op, f"branch {i}", branch, (), results)
    return results


def _infer_if(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    region_count(op, 2)
    if op.operands[0].type != _SCALAR_PRED:
        fail(op, f"expected a predicate {_SCALAR_PRED}, got {op.operands[0].type}")
    return _infer_branches(op)


@define("if", _infer_if, control_flow=True)
def _if(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    return context.run(op.regions[0 if bool(inputs[0]) else 1], ())


def _infer_case(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    if not op.regions:
        fail(op, "expected at least one branch")
    if op.operands[0].type != TensorType(S32, ()):
        fail(op, f"expected an index {TensorType(S32, ())}, got {op.operands[0].type}")
    return _infer_branches(op)


def branch_taken(op: Op, index: int) -> Region:
    """The branch of a `case` for `index`: the last one also serves every index out of range."""
    return op.regions[index if 0 <= index < len(op.regions) else -1]


@define("case", _infer_case, control_flow=True)
def _case(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    return context.run(branch_taken(op, int(inputs[0])), ())


def _infer_optimization_barrier(op: Op) -> Sequence[TensorType]:
    return _types(op.operands)


@define("optimization_barrier", _infer_optimization_barrier)
def _optimization_barrier(_: Op, inputs: list[Array], __: Context) -> Sequence[Array]:
    return inputs


def _infer_map(op: Op) -> Sequence[TensorType]:
    region_count(op, 1)
    if not op.operands:
        fail(op, "expected at least one operand")
    shape = op.operands[0].type.shape
    for value in op.operands:
        if value.type.shape != shape:
            fail(op, f"operands must have one shape, got {op.operands[0].type} and {value.type}")
    if tuple(attr(op, "dimensions")) != tuple(range(len(shape))):
        fail(op, f"dimensions must be all dimensions in order, got {attr(op, 'dimensions')}")
    results = _types(op.regions[0].results)
    scalars = [TensorType(v.type.dtype, ()) for v in op.operands]
    if len(results) != 1 or results[0].shape:
        fail(op, f"the region must yield one scalar, it yields {_listed(results)}")
    check_region(op, "map", op.regions[0], scalars, results)
    return (TensorType(results[0].dtype, shape),)


@define("map", _infer_map)
def _map(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    return context.combine(op.regions[0], inputs)
