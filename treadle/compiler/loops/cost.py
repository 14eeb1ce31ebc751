"""What a way to vectorise a nest costs: the scheduler's judgement.

The unit is one vector instruction. Only ratios matter: contiguous access against access lane by lane, and how full the
vectors are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from treadle.compiler.codegen.target import Target
from treadle.compiler.loops.build import index_bounds
from treadle.compiler.loops.ir import POSITIONED, Apply, Const, Expr, Index, IndexValue, InRange, Load, Nest, Var
from treadle.compiler.loops.walk import children, nest_roots, postorder
from treadle.compiler.ops.cost import COSTLY

# Ops that move bits or compare them: on 16-bit floats they need no widening.
_MOVES = frozenset({"select", "bitcast_convert", "negate", "abs"})
_MAX_STRIDED_LANES = 16
_INT32 = 1 << 31
_REDUCTION_TAIL = 14.0
_REGISTER_TILE = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """A way to vectorise a nest, and its cost per iteration of all loops."""

    vector: Var
    lanes: int
    unroll: int
    tile: tuple[tuple[Var, int], ...]
    cost: float


class _Nodes:
    """The nodes of a nest, with the loop variables that each depends on."""

    def __init__(self, nest: Nest):
        r = nest.reduction
        self.nest = nest
        self.order = [node for node in postorder(nest_roots(nest)) if not isinstance(node, Const)]
        self.deps: dict[Expr, frozenset[Var]] = {}
        nothing: frozenset[Var] = frozenset()
        for node in self.order:
            deps = nothing
            for child in children(node):
                below = self.deps.get(child, nothing)
                deps = deps | below if below else deps
            if isinstance(node, Load | IndexValue | InRange) and node.index.terms:
                deps = deps | frozenset([var for var, _ in node.index.terms])
            self.deps[node] = deps
        self.inside = frozenset(nest.loops) | frozenset(r.vars if r is not None else ())

    def dynamic(self, index: Index, var: Var) -> bool:
        """Whether the lanes of `var` differ in a dynamic part of `index`."""
        return any(var in self.deps.get(expr, frozenset()) for expr, _ in index.dynamic)


def best_plan(nest: Nest, target: Target) -> Plan | None:
    """The cheapest way to vectorise, or None when scalar code is no worse."""
    nodes = _Nodes(nest)
    r = nest.reduction
    candidates = [var for var in nest.loops if not nest.sequential or var in nest.independent]
    if r is not None and r.kind is not None:
        # A lane has to meet positions as they rise: then the innermost loop is the only one.
        candidates += r.vars[-1:] if r.kind in POSITIONED else r.vars
    plans = [plan for var in reversed(candidates) if (plan := _plan(nodes, var, target)) is not None]
    if not plans:
        return None
    best = min(plans, key=lambda plan: plan.cost)
    return best if best.cost < _scalar_cost(nodes) else None


def _weight(node: Expr) -> float:
    if isinstance(node, Apply):
        return 12.0 if node.name in COSTLY else 1.0
    return 1.0


def _scalar_cost(nodes: _Nodes) -> float:
    return sum(_weight(node) for node in nodes.order) + len(nodes.nest.stores)


def _element_bytes(nodes: _Nodes, var: Var) -> int:
    """The widest element that a lane of `var` holds."""
    widest = 1
    for node in nodes.order:
        if var not in nodes.deps[node]:
            continue
        width = node.dtype.bytes
        if isinstance(node, Apply):
            sources = [x.dtype for x in node.operands]
            if node.name not in _MOVES and any(d.is_float and d.bits == 16 for d in (node.dtype, *sources)):
                width = 4
        elif isinstance(node, InRange) or (isinstance(node, IndexValue) and node.dtype.is_float):
            bounds = index_bounds(node.index)
            width = max(width, 4 if bounds is not None and bounds[0] >= -_INT32 and bounds[1] < _INT32 else 8)
        widest = max(widest, width)
    r = nodes.nest.reduction
    if r is not None:
        widest = max(widest, *[dtype.bytes for dtype in r.acc_dtypes])
    for store in nodes.nest.stores:
        if store.index.coeff(var) or nodes.dynamic(store.index, var):
            widest = max(widest, store.value.dtype.bytes)
    return widest


def _plan(nodes: _Nodes, var: Var, target: Target) -> Plan | None:
    nest, r = nodes.nest, nodes.nest.reduction
    across = r is not None and var in r.vars
    if var.extent < 2:
        return None
    moving = [node for node in nodes.order if var in nodes.deps[node]]
    strided = [
        n for n in moving if isinstance(n, Load) and (abs(n.index.coeff(var)) > 1 or nodes.dynamic(n.index, var))
    ]
    lanes = target.vector_bytes // _element_bytes(nodes, var)
    stores = 0.0
    if not across:
        for store in nest.stores:
            stride = store.index.coeff(var)
            if nodes.dynamic(store.index, var):
                if nest.sequential or stride == 0:
                    return None
                stores += 2.0 * lanes
            elif stride == 0:
                return None
            else:
                stores += 1.0 if abs(stride) == 1 else 2.0 * lanes
    if strided or stores > len(nest.stores):
        lanes = min(lanes, _MAX_STRIDED_LANES)
    while lanes > 1 and lanes // 2 >= var.extent:
        lanes //= 2
    if not target.masked_memory:
        while lanes > var.extent:
            lanes //= 2
    if lanes < 2:
        return None
    across_tile = None if across else _transposed(nodes, strided, var, lanes)
    loads = 0.0
    for node in moving:
        if not isinstance(node, Load):
            loads += _weight(node)
        elif node not in strided:
            loads += 1.0
        elif across_tile is not None and node.index.coeff(across_tile) == 1 and node.mask is None:
            loads += 1.0 + math.log2(lanes) / 2
        else:
            loads += 1.2 * lanes
    full = var.extent / (math.ceil(var.extent / lanes) * lanes)
    total = (loads + stores / _reduced(nest)) / (lanes * full)
    if across:
        assert r is not None
        total += _REDUCTION_TAIL * (3 if r.kind in POSITIONED else 1) / _reduced(nest)
    tile, unroll = _in_flight(nodes, var, lanes, across, target)
    if across_tile is not None:
        tile, unroll = ((across_tile, lanes),), 1
    return Plan(var, lanes, unroll, tile, total)


def _reduced(nest: Nest) -> float:
    r = nest.reduction
    return float(max(math.prod(var.extent for var in r.vars), 1)) if r is not None else 1.0


def _transposed(nodes: _Nodes, strided: Sequence[Expr], var: Var, lanes: int) -> Var | None:
    """Another loop along which the strided loads are contiguous: then squares of both are exchanged in registers."""
    if nodes.nest.sequential or nodes.nest.reduction is not None or var.extent < lanes:
        return None
    for other in nodes.nest.loops:
        if other is var or other.extent < lanes:
            continue
        if any(isinstance(n, Load) and n.index.coeff(other) == 1 and n.mask is None for n in strided):
            return other
    return None


def _in_flight(
    nodes: _Nodes, var: Var, lanes: int, across: bool, target: Target
) -> tuple[tuple[tuple[Var, int], ...], int]:
    """Which further iterations run at once: several sums hide the latency of addition and share what they load."""
    nest, r = nodes.nest, nodes.nest.reduction
    if r is None or nest.sequential:
        return (), 1
    heavy = sum(_weight(node) for node in nodes.order)
    vectors = max(var.extent // lanes, 1)
    shared = [
        other
        for other in nest.loops
        if other is not var
        and other.extent > 1
        and r.kind is not None
        and _reduced(nest) >= 8
        and any(isinstance(n, Load) and var in nodes.deps[n] and other not in nodes.deps[n] for n in nodes.order)
    ]
    registers = 4 if not target.masked_memory else 8
    if shared and heavy <= 24:
        rows = min(_REGISTER_TILE, shared[-1].extent)
        return ((shared[-1], rows),), _power_of_two(min(registers // rows or 1, vectors))
    wish = 4 if across else registers
    unroll = _power_of_two(min(wish if heavy <= 6 else 2 if heavy <= 24 else 1, vectors))
    if across:
        return (), unroll
    return _unrolled_window(r.vars, heavy * unroll), unroll


def _unrolled_window(variables: Sequence[Var], heavy: float) -> tuple[tuple[Var, int], ...]:
    """Short innermost reduction loops (windows), written out."""
    found: list[tuple[Var, int]] = []
    size = 1
    for var in reversed(variables):
        if var.extent < 1 or size * var.extent * heavy > 64:
            break
        size *= var.extent
        if var.extent > 1:
            found.append((var, var.extent))
    return tuple(reversed(found))


def _power_of_two(n: int) -> int:
    return 1 << (n.bit_length() - 1) if n > 0 else 1
