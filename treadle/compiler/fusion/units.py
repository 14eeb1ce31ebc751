"""Units: the ops of one region grouped into what will be one kernel, one library call, one loop ... each.

Grouping keeps the units' dependence graph free of cycles: an op joins a unit only when nothing between the two lies
outside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

from treadle.compiler.fusion.classify import Class, classify
from treadle.compiler.fusion.relation import Access, Read, resolve
from treadle.compiler.ir.core import Op, Region, Value, captured_values
from treadle.compiler.lowering.attributes import ints
from treadle.compiler.lowering.reduction import split_operands

# The longest chain of virtual ops that readers go through.
MAX_CHAIN = 24

# Splats up to this many bytes are stored as data where memory is needed; larger ones are filled in at run time.
SMALL_CONSTANT = 4096

# A kernel's code grows with its ops; beyond this a new kernel starts.
MAX_OPS = 96


class Unit:
    """A group of ops. `kind` is the fusion kind it will have, or "" for what stays a single op."""

    __slots__ = ("align", "hard", "kind", "last", "ops", "order", "outer_rank", "preds", "root", "shape", "succs")

    def __init__(self, op: Op, position: int, kind: str, order: float):
        self.ops: list[tuple[int, Op]] = [(position, op)]
        self.kind = kind
        self.shape: tuple[int, ...] = op.results[0].type.shape if op.results else ()
        self.outer_rank = 0
        self.order = order
        self.preds: set[Unit] = set()
        self.succs: set[Unit] = set()
        self.hard: set[Unit] = set()  # predecessors read at other positions than their own
        self.last = position
        self.root = op
        self.align: set[Op] = {op}  # ops whose elements are computed at the unit's own iteration

    @property
    def is_kernel(self) -> bool:
        return self.kind != ""


_KINDS = {
    Class.POINTWISE: "loop",
    Class.LEAF: "loop",
    Class.REDUCE: "reduce",
    Class.CONCATENATE: "concatenate",
    Class.UPDATE: "update",
    Class.SCATTER: "scatter",
    Class.SELECT_AND_SCATTER: "select_and_scatter",
}


def count_uses(region: Region) -> dict[Value, int]:
    """Uses of every value in a region, nested regions and its results included."""
    uses: dict[Value, int] = {}
    for op in region.ops:
        for v in itertools.chain(op.operands, captured_values(op) if op.regions else ()):
            uses[v] = uses.get(v, 0) + 1
    for v in region.results:
        uses[v] = uses.get(v, 0) + 1
    return uses


def changed_in_place(op: Op) -> list[Value]:
    """Operands that `op` changes in place: they must be in memory."""
    if op.name == "dynamic_update_slice" and op.result.type.rank:
        return op.operands[:1]
    if op.name == "scatter":
        return op.operands[: len(op.results)]
    return []


class Grouping:
    """Groups the ops of one region into units.

    Attributes:
      classes: the class of each op of the region.
      unit_of: the unit of each op that is not virtual.
      cuts: ops that end a chain of virtual ones: their results are always stored.
    """

    def __init__(self, region: Region):
        self.region = region
        uses = count_uses(region)
        self.cuts: set[Op] = set()
        self.classes: dict[Op, Class] = self._classify(region, uses)
        self.unit_of: dict[Op, Unit] = {}
        self._count = 0.0
        self._reads: dict[Op, list[Read]] = {}
        self._stored = self._values_needed_in_memory()
        for position, op in enumerate(region.ops):
            self._place(position, op)

    def _classify(self, region: Region, uses: Mapping[Value, int]) -> dict[Op, Class]:
        """The class of every op.

        A chain of virtual ops is cut when it grows long, for each link costs its readers a level of recursion.
        """
        classes: dict[Op, Class] = {}
        depth: dict[Value, int] = {}
        for op in region.ops:
            cls = classify(op, uses)
            if cls is Class.VIRTUAL and op.operands:
                links = depth.get(op.operands[0], 0) + 1
                if links > MAX_CHAIN and op.name != "reshape":
                    cls = Class.LEAF
                    self.cuts.add(op)
                else:
                    depth[op.result] = links
            classes[op] = cls
        return classes

    def _values_needed_in_memory(self) -> set[Value]:
        """Values that something other than a kernel reads: a kernel of its own stores a virtual one among them."""
        needed = set(self.region.results)
        for op in self.region.ops:
            if self.classes[op] in (Class.LIBRARY, Class.CONTROL):
                needed.update(op.operands)
            if op.regions and self.classes[op] is Class.CONTROL:
                needed.update(captured_values(op))
            needed.update(changed_in_place(op))
        for op in reversed(self.region.ops):
            if op.name == "reshape" and op.result in needed:
                needed.add(op.operands[0])
        return needed

    def is_virtual(self, value: Value) -> bool:
        """Whether `value` is copied into its users: not when a kernel stores it.

        Values of enclosing regions count by their op alone.
        """
        op = value.op
        if op is None or op in self.unit_of:
            return False
        known = self.classes.get(op)
        if known is None:
            return classify(op, {}) is Class.VIRTUAL
        return known is Class.VIRTUAL

    def reads(self, op: Op) -> list[Read]:
        """What the operands of `op` come down to. Which of them are virtual is settled before `op` is placed."""
        known = self._reads.get(op)
        if known is None:
            found = [resolve(v, self.is_virtual) for v in op.operands]
            known = self._reads[op] = [r for r in found if r is not None]
        return known

    def producer(self, value: Value) -> Unit | None:
        """The unit that computes `value`, or None for arguments and values of enclosing regions."""
        return self.unit_of.get(value.op) if value.op is not None else None

    # ---- placing -----------------------------------------------------------------------------------------------------

    def _place(self, position: int, op: Op) -> None:
        cls = self.classes[op]
        if cls is Class.VIRTUAL:
            if self._is_stored(op):
                self._new(position, op, "loop")
            return
        if cls is Class.POINTWISE:
            self._place_pointwise(position, op)
        elif cls is Class.ROW_REDUCE:
            self._place_row_reduce(position, op)
        else:
            self._new(position, op, _KINDS.get(cls, ""))

    def _is_stored(self, op: Op) -> bool:
        """Whether a virtual op gets a kernel.

        A reshape shares its operand's memory; a small splat is data of the program.
        """
        if op.results[0] not in self._stored or op.name == "reshape" or op.result.type.rank == 0:
            return False
        return op.name != "constant" or op.result.type.byte_size > SMALL_CONSTANT

    def _new(self, position: int, op: Op, kind: str) -> Unit:
        self._count += 1.0
        unit = Unit(op, position, kind, self._count)
        self.unit_of[op] = unit
        self._link(unit, op)
        return unit

    def _link(self, unit: Unit, op: Op, soft: Iterable[Value] = ()) -> None:
        """Adds the units that `op` depends on to the predecessors of `unit`."""
        gentle = set(soft)
        values = [r.value for r in self.reads(op)]
        if op.regions:
            for v in captured_values(op):
                read = resolve(v, self.is_virtual)
                if read is not None:
                    values.append(read.value)
        for v in values:
            pred = self.producer(v)
            if pred is not None and pred is not unit:
                unit.preds.add(pred)
                pred.succs.add(unit)
                if v not in gentle:
                    unit.hard.add(pred)

    def _join(self, unit: Unit, position: int, op: Op) -> None:
        unit.ops.append((position, op))
        unit.last = max(unit.last, position)
        unit.align.add(op)
        self.unit_of[op] = unit
        self._link(unit, op, [r.value for r in self.reads(op) if r.access is not Access.OTHER])

    def _place_pointwise(self, position: int, op: Op) -> None:
        reads = self.reads(op)
        fitting = self._fitting(op, reads)
        home: Unit | None = None
        for unit in fitting:
            if home is None:
                if len(unit.ops) < MAX_OPS and self._may_join(unit, op, reads):
                    home = unit
                    self._join(unit, position, op)
            elif unit is not home:
                self._try_merge(home, unit)
        if home is None:
            self._new(position, op, "loop")

    def _fitting(self, op: Op, reads: list[Read]) -> list[Unit]:
        """Units of the operands whose iteration `op` can share, the latest first."""
        shape = op.result.type.shape
        units: dict[Unit, None] = {}
        for read in reads:
            unit = self.producer(read.value)
            if unit is not None and unit.is_kernel and _fits(unit, read, shape):
                units.setdefault(unit)
        return sorted(units, key=lambda u: -u.last)

    def _may_join(self, unit: Unit, op: Op, reads: list[Read]) -> bool:
        """Whether no value reaches `op` from `unit` through another unit, and every direct read fits."""
        others: set[Unit] = set()
        for read in reads:
            producer = self.producer(read.value)
            if producer is unit:
                if not _fits(unit, read, op.result.type.shape):
                    return False
            elif producer is not None:
                others.add(producer)
        return self._place_between(unit, unit.preds | others, unit.succs)

    def _try_merge(self, a: Unit, b: Unit) -> None:
        """Makes one unit of two that share an iteration space, if that closes no cycle."""
        if len(a.ops) + len(b.ops) > MAX_OPS or not _mergeable(a, b) or b in a.hard or a in b.hard:
            return
        preds, succs = (a.preds | b.preds) - {a, b}, (a.succs | b.succs) - {a, b}
        if not self._place_between(a, preds, succs):
            return
        if b.kind == "row":
            a.kind, a.shape, a.outer_rank = b.kind, b.shape, b.outer_rank
        a.ops = sorted(a.ops + b.ops, key=lambda item: item[0])
        a.align |= b.align
        a.preds, a.succs = preds, succs
        a.hard = (a.hard | b.hard) - {a, b}
        for _, op in b.ops:
            self.unit_of[op] = a
        for pred in b.preds - {a}:
            pred.succs.discard(b)
            pred.succs.add(a)
        for succ in b.succs - {a}:
            succ.preds.discard(b)
            succ.preds.add(a)
            if b in succ.hard:
                succ.hard.discard(b)
                succ.hard.add(a)

    # ---- order: a number per unit, larger than those of its predecessors, so that no cycle is ever looked for --------

    def _place_between(self, unit: Unit, preds: Iterable[Unit], succs: Iterable[Unit]) -> bool:
        """Gives `unit` an order after all `preds` and before all `succs`; False when there is no such place."""
        low = max((p.order for p in preds), default=0.0)
        high = min((s.order for s in succs), default=math.inf)
        if low < unit.order < high:
            return True
        if high == math.inf:
            self._count += 1.0  # after everything
            unit.order = self._count
            return True
        middle = (low + high) / 2
        if not low < middle < high:
            return False
        unit.order = middle
        return True

    def _place_row_reduce(self, position: int, op: Op) -> None:
        inputs, _ = split_operands(op)
        shape = inputs[0].type.shape
        outer_rank = len(shape) - len(ints(op, "dimensions"))
        reads = self.reads(op)
        candidates: dict[Unit, None] = {}
        for read in reads:
            unit = self.producer(read.value)
            if unit is None or read.access is not Access.SAME or read.value.type.shape != shape or unit.shape != shape:
                continue
            becomes_row = unit.kind == "loop" and _all_shaped(unit, shape)
            if becomes_row or (unit.kind == "row" and unit.outer_rank == outer_rank):
                candidates.setdefault(unit)
        for unit in sorted(candidates, key=lambda u: -u.last):
            if len(unit.ops) < MAX_OPS and self._row_may_join(unit, reads, shape):
                unit.kind, unit.outer_rank = "row", outer_rank
                self._join(unit, position, op)
                return
        unit = self._new(position, op, "row")
        unit.shape, unit.outer_rank = shape, outer_rank

    def _row_may_join(self, unit: Unit, reads: list[Read], shape: tuple[int, ...]) -> bool:
        others: set[Unit] = set()
        for read in reads:
            producer = self.producer(read.value)
            if producer is unit:
                if read.access is not Access.SAME or read.value.type.shape != shape:
                    return False
            elif producer is not None:
                others.add(producer)
        return self._place_between(unit, unit.preds | others, unit.succs)


def _all_shaped(unit: Unit, shape: tuple[int, ...]) -> bool:
    """A loop unit can become a row unit only when all its values have exactly the full shape."""
    return all(r.type.shape == shape for _, op in unit.ops for r in op.results)


def _is_row_level(unit: Unit, shape: tuple[int, ...]) -> bool:
    """Whether `shape` is the outer part of a row unit's shape, extents of 1 aside."""
    outer = [e for e in unit.shape[: unit.outer_rank] if e != 1]
    return [e for e in shape if e != 1] == outer


def _fits(unit: Unit, read: Read, shape: tuple[int, ...]) -> bool:
    """Whether an op of `shape` that does `read` (of a value of `unit`) can run in the unit's iterations."""
    if unit.kind == "loop":
        return read.access is Access.SAME
    if unit.kind == "reduce":
        return read.access is Access.SAME and math.prod(shape) == unit.root.results[0].type.size
    if unit.kind != "row":
        return False
    value_is_full = read.value.type.shape == unit.shape
    if value_is_full:
        return read.access is Access.SAME and shape == unit.shape
    if read.access is Access.SAME:
        return _is_row_level(unit, shape) and _is_row_level(unit, read.value.type.shape)
    covers = [e for e in shape[: read.rank] if e != 1] == [e for e in unit.shape[: unit.outer_rank] if e != 1]
    return read.access is Access.ROW and shape == unit.shape and read.rank <= unit.outer_rank and covers


def _mergeable(a: Unit, b: Unit) -> bool:
    if a.kind == b.kind == "loop":
        return math.prod(a.shape) == math.prod(b.shape)
    if {a.kind, b.kind} == {"row"}:
        return a.shape == b.shape and a.outer_rank == b.outer_rank
    if {a.kind, b.kind} == {"row", "loop"}:
        row, loop = (a, b) if a.kind == "row" else (b, a)
        return loop.shape == row.shape and _all_shaped(loop, row.shape)
    return False
