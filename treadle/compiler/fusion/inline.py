"""Computing a producer inside its only consumer although the two do not share an iteration.

Transposes, slices and inputs of reductions are read elsewhere than at the reader's own position.
"""

from __future__ import annotations

from treadle.compiler.fusion.relation import Access
from treadle.compiler.fusion.units import MAX_OPS, Grouping, Unit
from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ops.cost import COSTLY

# Producers with more ops than this are not computed several times.
CHEAP_OPS = 6


def inline_producers(grouping: Grouping, external: set[Value]) -> None:
    """Moves pointwise units into the one kernel that reads them.

    Args:
      grouping: units of one region, changed in place.
      external: values that must be in memory whatever kernels do (region results, operands of library calls and control
        flow).
    """
    readers = _readers(grouping)
    for unit in sorted({u for u in grouping.unit_of.values() if u.kind == "loop"}, key=lambda u: -u.order):
        outputs = {r for _, op in unit.ops for r in op.results if r in external or readers.get(r, {}).keys() - {unit}}
        if len(outputs) != 1:
            continue
        (value,) = outputs
        if value.op in grouping.cuts:
            continue
        users = readers.get(value, {}).keys() - {unit}
        if value in external or len(users) != 1:
            continue
        (user,) = users
        if not user.is_kernel or len(user.ops) + len(unit.ops) > MAX_OPS:
            continue
        repeated = readers[value][user]
        if repeated and not _is_cheap(unit):
            continue
        _absorb(grouping, user, unit, readers)


def _readers(grouping: Grouping) -> dict[Value, dict[Unit, bool]]:
    """The units that read each value (through virtual ops), and whether they may compute an element several times."""
    readers: dict[Value, dict[Unit, bool]] = {}
    for op, unit in grouping.unit_of.items():
        for read in grouping.reads(op):
            repeats = read.grows or _repeats(op)
            row = readers.setdefault(read.value, {})
            row[unit] = row.get(unit, False) or repeats or (read.access is Access.OTHER and unit.kind == "row")
    return readers


def _repeats(op: Op) -> bool:
    """Whether `op` may read one element of an operand for several of its results."""
    return op.name in ("dot_general", "convolution", "reduce_window", "gather", "select_and_scatter", "scatter")


def _is_cheap(unit: Unit) -> bool:
    return len(unit.ops) <= CHEAP_OPS and not any(
        op.name in COSTLY or op.regions or op.name in ("dot_general", "gather", "concatenate") for _, op in unit.ops
    )


def _absorb(grouping: Grouping, user: Unit, unit: Unit, readers: dict[Value, dict[Unit, bool]]) -> None:
    """Moves the ops of `unit` into `user`; they are not at the user's own iteration, so `align` does not grow."""
    user.ops = sorted(unit.ops + user.ops, key=lambda item: item[0])
    for _, op in unit.ops:
        grouping.unit_of[op] = user
    for pred in unit.preds:
        pred.succs.discard(unit)
        pred.succs.add(user)
    user.preds = (user.preds | unit.preds) - {unit, user}
    user.hard = (user.hard | unit.hard) - {unit, user}
    for row in readers.values():
        if unit in row:
            row[user] = row.get(user, False) or row[unit] or True
            del row[unit]
