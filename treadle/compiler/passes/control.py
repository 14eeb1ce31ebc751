"""Control flow whose course is known, and loop carries that need not be carried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir.core import Op, Region, Value, clone_region
from treadle.compiler.ops import registry
from treadle.compiler.ops.control import branch_taken
from treadle.compiler.ops.cost import COSTLY
from treadle.compiler.passes.algebra import made_by
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet

rules = RuleSet()

# Loops are unrolled up to so many trips, and into so many ops.
_MAX_TRIPS = 8
_MAX_UNROLLED = 512
_FUSABLE = ("constant", "iota", "broadcast_in_dim", "reshape", "transpose", "slice", "bitcast_convert")
# A branch so short, of scalar arithmetic only, is cheaper computed than jumped over.
_CHEAP_OPS = 4


@rules.on("if")
def _if(op: Op, rewriter: Rewriter) -> Replacement:
    known = rewriter.splat(op.operands[0])
    if known is None:
        inverted = made_by(op.operands[0], "not")
        if inverted is not None:
            op.operands[0] = inverted.operands[0]
            op.regions.reverse()
        return None
    return rewriter.inline(op.regions[0 if known else 1], ())


@rules.on("case")
def _case(op: Op, rewriter: Rewriter) -> Replacement:
    known = rewriter.splat(op.operands[0])
    if len(op.regions) == 1:
        known = 0
    return None if known is None else rewriter.inline(branch_taken(op, int(known)), ())


@rules.on("if after its regions")
def _select_branches(op: Op, rewriter: Rewriter) -> Replacement:
    """Two short branches of scalar arithmetic are both computed; `select` takes the result."""
    if not all(_is_cheap(region) for region in op.regions):
        return None
    chosen = [rewriter.inline(region, ()) for region in op.regions]
    pred = op.operands[0]
    rewriter.loc = op.loc
    return [rewriter.emit("select", [pred, a, b]) for a, b in zip(*chosen, strict=True)]


def _is_cheap(region: Region) -> bool:
    if any(v.type.shape for v in region.results) or len(region.ops) > _CHEAP_OPS:
        return False
    return all(
        not op.regions
        and len(op.results) == 1
        and not op.results[0].type.shape
        and (op.name == "constant" or _is_cheap_arithmetic(op))
        for op in region.ops
    )


def _is_cheap_arithmetic(op: Op) -> bool:
    definition = registry.find(op.name)
    return definition is not None and definition.apply is not None and op.name not in COSTLY


@rules.on("while")
def _invariant_carries(op: Op, rewriter: Rewriter) -> Replacement:
    """A carry that the body hands on unchanged is used from outside instead."""
    cond, body = op.regions
    variant = [i for i, value in enumerate(body.results) if value is not body.args[i]]
    if len(variant) == len(op.operands):
        return None
    outside = list(op.operands)
    for i, value in enumerate(op.operands):
        if i not in set(variant):
            rewriter.substitute(cond.args[i], value)
            rewriter.substitute(body.args[i], value)
    smaller = keep_carries(op, variant)
    results = list(rewriter.emit_op(smaller))
    return [results[variant.index(i)] if i in set(variant) else v for i, v in enumerate(outside)]


def keep_carries(op: Op, kept: list[int]) -> Op:
    """A `while` with the carries `kept` only, which takes over the regions of `op`; nothing may need the others."""
    operands = [op.operands[i] for i in kept]
    for region in op.regions:
        region.args = [region.args[i] for i in kept]
        for position, value in enumerate(region.args):
            value.index = position
    body = op.regions[1]
    body.results = [body.results[i] for i in kept]
    attrs = dict(op.attrs)
    if "induction" in attrs:
        attrs["induction"] = kept.index(int(attrs["induction"]))  # type: ignore[call-overload]
    return Op(op.name, operands, [op.results[i].type for i in kept], attrs, op.regions, op.loc)


@rules.on("while before its body")
def _trip_count(op: Op, rewriter: Rewriter) -> Replacement:
    """How often a counting loop runs, as attributes `trip_count` and `induction` (which carry counts)."""
    loop = _counted(op, rewriter)
    if loop is None:
        op.attrs.pop("trip_count", None)
        op.attrs.pop("induction", None)
        return None
    carry, start, step, trips = loop
    op.attrs["trip_count"] = trips
    op.attrs["induction"] = carry
    if trips:
        last = start + (trips - 1) * step
        rewriter.assume(op.regions[1].args[carry], min(start, last), max(start, last))
    return None


@rules.on("while after its regions")
def _few_trips(op: Op, rewriter: Rewriter) -> Replacement:
    """A loop that never runs is its operands, one that runs once its body; a short one of cheap ops is unrolled."""
    late = _invariant_carries(op, rewriter)
    if late is not None:
        return late
    cond, body = op.regions
    entered = rewriter.splat(cond.results[0])
    if entered is not None and not entered:
        return op.operands
    trips = op.attrs.get("trip_count")
    if not isinstance(trips, int) or (trips > 1 and not _is_unrollable(body, trips)):
        return None
    carry: Sequence[Value] = op.operands
    for trip in range(trips):
        carry = rewriter.inline(body if trip == trips - 1 else clone_region(body), carry)
    return carry


def _is_unrollable(body: Region, trips: int) -> bool:
    """Whether the unrolled loop is one short run of ops that fuse: JAX's Threefry rounds, fixed Newton steps."""
    if trips > _MAX_TRIPS or len(body.ops) * trips > _MAX_UNROLLED:
        return False
    for op in body.ops:
        definition = registry.find(op.name)
        if definition is None or (definition.apply is None and op.name not in _FUSABLE):
            return False
    return True


_SWAPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


def _counted(op: Op, rewriter: Rewriter) -> tuple[int, int, int, int] | None:
    """(carry, start, step, trips) for `while i < bound: i += step` with all three known and no overflow on the way."""
    cond, body = op.regions
    compare = made_by(cond.results[0], "compare")
    if compare is None:
        return None
    left, right = compare.operands
    direction = str(compare.attrs["comparison_direction"])
    if rewriter.splat(left) is not None:
        left, right, direction = right, left, _SWAPPED[direction]
    if left not in cond.args or not left.type.dtype.is_integer:
        return None
    carry = left.index
    bound, start = rewriter.splat(right), rewriter.splat(op.operands[carry])
    step = _step(body, carry, rewriter)
    if bound is None or start is None or step is None:
        return None
    trips = _trips(int(start), int(bound), step, direction)
    if trips is None:
        return None
    info = np.iinfo(left.type.dtype.numpy)
    last = int(start) + trips * step
    return (carry, int(start), step, trips) if int(info.min) <= last <= int(info.max) else None


def _step(body: Region, carry: int, rewriter: Rewriter) -> int | None:
    """What the body adds to the carry."""
    op = body.results[carry].op
    if op is None or op.name not in ("add", "subtract"):
        return None
    x, y = op.operands
    if op.name == "add" and y is body.args[carry]:
        x, y = y, x
    number = rewriter.peek(y)
    if x is not body.args[carry] or number is None:
        return None
    return int(number) if op.name == "add" else -int(number)


def _trips(start: int, bound: int, step: int, direction: str) -> int | None:
    """How many of start, start + step, ... come before the first that the comparison with `bound` refuses."""
    if direction in ("LE", "GE"):
        bound += 1 if direction == "LE" else -1
        direction = "LT" if direction == "LE" else "GT"
    if direction == "NE":
        if start == bound:
            return 0
        trips, rest = divmod(bound - start, step) if step else (-1, 0)
        return trips if rest == 0 and trips > 0 else None
    if direction == "LT":
        return 0 if start >= bound else -(-(bound - start) // step) if step > 0 else None
    if direction == "GT":
        return 0 if start <= bound else -(-(start - bound) // -step) if step < 0 else None
    return None
