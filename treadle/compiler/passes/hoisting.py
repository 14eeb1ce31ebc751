"""Work that every trip of a loop repeats moves out of the loop."""

from __future__ import annotations

from treadle.compiler.ir.core import Op, Value, replace_uses
from treadle.compiler.ops import registry
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet

rules = RuleSet()

# Cheap to repeat where they are used, and often bigger than what they are made of: they move only with what needs them.
_CHEAP = (
    "constant", "iota", "broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "bitcast_convert", "pad",
    "optimization_barrier",
)  # fmt: skip


@rules.on("while after its regions")
def _hoist(op: Op, rewriter: Rewriter) -> Replacement:
    """Moves invariant ops, but none whose result is bigger than its operands: written once, it is read every trip."""
    body = op.regions[1]
    inside: set[Value] = set(body.args)
    invariant: dict[Value, Op] = {}
    wanted: set[Op] = set()
    for inner in body.ops:
        if _is_fixed(inner) or any(v in inside for v in inner.operands):
            inside.update(inner.results)
            continue
        invariant.update(dict.fromkeys(inner.results, inner))
        if inner.name not in _CHEAP and _shrinks(inner):
            wanted.add(inner)
    if not wanted:
        return None
    work = list(wanted)
    while work:
        for value in work.pop().operands:
            needed = invariant.get(value)
            if needed is not None and needed not in wanted:
                wanted.add(needed)
                work.append(needed)
    merged: dict[Value, Value] = {}
    for inner in body.ops:
        if inner in wanted:
            inner.operands = [merged.get(v, v) for v in inner.operands]
            results = rewriter.move(inner)
            if results is not inner.results:
                merged.update(zip(inner.results, results, strict=True))
    body.ops = [inner for inner in body.ops if inner not in wanted]
    if merged:
        replace_uses(body, merged)
    return None


def _is_fixed(op: Op) -> bool:
    """Stays because of what it does, or because its regions may use values of the loop."""
    definition = registry.find(op.name)
    return definition is None or definition.side_effect or (definition.control_flow and bool(op.regions))


def _shrinks(op: Op) -> bool:
    made = sum(v.type.byte_size for v in op.results)
    return made <= max((v.type.byte_size for v in op.operands), default=0)
