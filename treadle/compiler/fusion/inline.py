"""Computing a producer inside its only consumer although the two do not share an iteration.

Transposes, slices and inputs of reductions are read elsewhere than at the reader's own position. Such a read costs
the computation of the element, so it is counted how often each op would be computed per element of its kernel:
without that, a value that is read at two positions by an op that is itself read at two positions, and so on, takes
exponential time (associative_scan is like that).
"""

from __future__ import annotations

from treadle.compiler.fusion.relation import Access, Read
from treadle.compiler.fusion.units import MAX_OPS, Grouping, Unit
from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ops.cost import COSTLY

# Producers with more ops than this are not computed several times.
CHEAP_OPS = 6

# How many times the elements of a cheap producer may be computed at most.
MAX_TIMES = 3


def inline_producers(grouping: Grouping, external: set[Value]) -> None:
    """Moves pointwise units into the one kernel that reads them.

    Args:
      grouping: units of one region, changed in place.
      external: values that must be in memory whatever kernels do (region results, operands of library calls and control
        flow).
    """
    inliner = _Inliner(grouping, external)
    for unit in sorted({u for u in grouping.unit_of.values() if u.kind == "loop"}, key=lambda u: -u.order):
        inliner.consider(unit)


class _Inliner:
    def __init__(self, grouping: Grouping, external: set[Value]):
        self.grouping = grouping
        self.external = external
        self.readers: dict[Value, list[tuple[Op, Read]]] = {}
        for op in grouping.unit_of:
            for read in grouping.reads(op):
                self.readers.setdefault(read.value, []).append((op, read))
        # How often an op that was moved into another unit is computed per iteration there; 1 for every other op.
        self.times: dict[Op, int] = {}

    def consider(self, unit: Unit) -> None:
        """Moves `unit` into its consumer if it has one only and that is not too much work."""
        outputs = {r for _, op in unit.ops for r in op.results if r in self.external or self._users(r) - {unit}}
        if len(outputs) != 1:
            return
        (value,) = outputs
        users = self._users(value) - {unit}
        if value in self.external or value.op in self.grouping.cuts or len(users) != 1:
            return
        (user,) = users
        if not user.is_kernel or len(user.ops) + len(unit.ops) > MAX_OPS:
            return
        times, grows = self._times(value, user)
        if (times > 1 or grows) and (times > MAX_TIMES or not _is_cheap(unit)):
            return
        for _, op in unit.ops:
            self.times[op] = times
        _absorb(self.grouping, user, unit)

    def _users(self, value: Value) -> set[Unit]:
        return {self.grouping.unit_of[op] for op, _ in self.readers.get(value, ())}

    def _times(self, value: Value, user: Unit) -> tuple[int, bool]:
        """How often `user` computes an element of `value` per iteration, and whether neighbours compute it again."""
        times, grows, aligned = 0, False, False
        for op, read in self.readers[value]:
            if self.grouping.unit_of[op] is not user:
                continue  # the producer's own reads
            grows |= read.grows or _repeats(op) or (read.access is Access.OTHER and user.kind == "row")
            if read.access is Access.SAME and op in user.align:
                aligned = True  # all of these are one element
            else:
                times += self.times.get(op, 1)
        return times + aligned, grows


def _repeats(op: Op) -> bool:
    """Whether `op` may read one element of an operand for several of its results."""
    return op.name in ("dot_general", "convolution", "reduce_window", "gather", "select_and_scatter", "scatter")


def _is_cheap(unit: Unit) -> bool:
    return len(unit.ops) <= CHEAP_OPS and not any(
        op.name in COSTLY or op.regions or op.name in ("dot_general", "gather", "concatenate") for _, op in unit.ops
    )


def _absorb(grouping: Grouping, user: Unit, unit: Unit) -> None:
    """Moves the ops of `unit` into `user`; they are not at the user's own iteration, so `align` does not grow."""
    user.ops = sorted(unit.ops + user.ops, key=lambda item: item[0])
    for _, op in unit.ops:
        grouping.unit_of[op] = user
    for pred in unit.preds:
        pred.succs.discard(unit)
        pred.succs.add(user)
    user.preds = (user.preds | unit.preds) - {unit, user}
    user.hard = (user.hard | unit.hard) - {unit, user}
