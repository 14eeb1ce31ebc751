"""The `fuse` stage.

Replaces the ops of every region by fusions, library calls, control flow and scalar code, in execution order.
"""

from __future__ import annotations

from treadle.compiler.fusion.classify import Class
from treadle.compiler.fusion.cumulative import expand_cumulative
from treadle.compiler.fusion.inline import inline_producers
from treadle.compiler.fusion.library import canonical_products
from treadle.compiler.fusion.units import Grouping, Unit, changed_in_place
from treadle.compiler.ir.core import Op, Program, Region, Value, captured_values, clone_op, replace_uses


def fuse(program: Program) -> Program:
    """Groups the program's ops (in place) and returns it.

    Afterwards a region holds, in execution order: "fusion" ops (attributes `kind`, and what the kind needs), library
    calls, control flow, constants that live in memory, reshapes that rename memory, and rank-0 ops with the virtual ops
    that they read through.
    """
    canonical_products(program.entry)
    expand_cumulative(program.entry)
    _fuse_region(program.entry)
    return program


def _fuse_region(region: Region) -> None:
    _drop_barriers(region)
    for op in region.ops:
        if op.name in ("while", "if", "case"):
            for inner in op.regions:
                _fuse_region(inner)
    grouping = Grouping(region)
    external = _needed_outside_kernels(grouping)
    inline_producers(grouping, external)
    region.ops = _Builder(grouping, external).build()


def _drop_barriers(region: Region) -> None:
    mapping: dict[Value, Value] = {}
    for op in region.ops:
        if op.name == "optimization_barrier":
            mapping.update(zip(op.results, op.operands, strict=True))
    if mapping:
        region.ops = [op for op in region.ops if op.name != "optimization_barrier"]
        replace_uses(region, mapping)


def _needed_outside_kernels(grouping: Grouping) -> set[Value]:
    """Values, virtual chains followed, that must exist in memory for something other than a kernel."""
    needed: set[Value] = set()

    def need(value: Value) -> None:
        while value not in needed:
            needed.add(value)
            if value.op is None or not value.op.operands or not grouping.is_virtual(value):
                return
            value = value.op.operands[0]

    for value in grouping.region.results:
        need(value)
    for op in grouping.region.ops:
        if grouping.classes[op] in (Class.LIBRARY, Class.CONTROL, Class.SCALAR):
            for value in op.operands:
                need(value)
            if op.regions:
                for value in captured_values(op):
                    need(value)
        for value in changed_in_place(op):
            need(value)
    return needed


class _Builder:
    """Writes the new op list of a region."""

    def __init__(self, grouping: Grouping, external: set[Value]):
        self.grouping = grouping
        self.external = external
        self.mapping: dict[Value, Value] = {}

    def build(self) -> list[Op]:
        region = self.grouping.region
        units = sorted(set(self.grouping.unit_of.values()), key=lambda u: u.order)
        used_by_others = self._cross_unit_values(units)
        position = {op: i for i, op in enumerate(region.ops)}
        kept = [self._fusion(unit, used_by_others) if unit.is_kernel else unit.root for unit in units]
        region.ops = self._with_virtual([op for op in kept if op is not None], position)
        if self.mapping:
            replace_uses(region, self.mapping)
        return region.ops

    def _with_virtual(self, ops: list[Op], position: dict[Op, int]) -> list[Op]:
        """Puts virtual ops that memory users or scalar code still name in front of their first use."""
        out: list[Op] = []
        placed: set[Op] = set()

        def place(value: Value) -> None:
            chain: list[Op] = []
            op = value.op
            while op is not None and op in position and op not in placed and op not in self.grouping.unit_of:
                placed.add(op)
                chain.append(op)
                op = op.operands[0].op if op.operands else None
            out.extend(reversed(chain))

        for op in ops:
            for value in op.operands:
                place(value)
            if op.regions and op.name != "fusion":
                for value in captured_values(op):
                    place(value)
            out.append(op)
        for value in self.grouping.region.results:
            place(value)
        return out

    def _cross_unit_values(self, units: list[Unit]) -> set[Value]:
        """Values of kernels that another unit reads, through virtual ops or directly."""
        used = set(self.external)
        for unit in units:
            for _, op in unit.ops:
                for read in self.grouping.reads(op):
                    if self.grouping.producer(read.value) is not unit:
                        used.add(read.value)
        return used

    def _fusion(self, unit: Unit, used: set[Value]) -> Op | None:
        """The fusion op of a unit: members and the virtual ops they read through, cloned into a region of their own.

        None when nothing uses what it computes.
        """
        outputs = [r for _, op in unit.ops for r in op.results if r in used]
        if not outputs:
            return None
        if unit.kind in ("update", "scatter"):
            outputs = list(unit.root.results)
        members = {op for _, op in unit.ops}
        region = Region()
        env: dict[Value, Value] = {}
        operands: list[Value] = []
        aligned: set[int] = set()
        root = 0

        def inside(value: Value) -> Value:
            """The region's value for `value`: a member's result, a clone of a virtual op, or a new argument."""
            if value in env:
                return env[value]
            chain: list[Value] = []
            while value not in env:
                op = value.op
                if op is None or op in members or not self.grouping.is_virtual(value):
                    break
                chain.append(value)
                if not op.operands:
                    break
                value = op.operands[0]
            if value not in env and (not chain or chain[-1] is not value):
                argument = Value(value.type, None, len(region.args))
                region.args.append(argument)
                operands.append(value)
                env[value] = argument
            for link in reversed(chain):
                assert link.op is not None
                clone = region.append(clone_op(link.op, env))
                env[link] = clone.result
            return env[chain[0]] if chain else env[value]

        for value in changed_in_place(unit.root):
            argument = Value(value.type, None, len(region.args))
            region.args.append(argument)
            operands.append(value)
            env[value] = argument
        for _, op in unit.ops:
            for operand in op.operands:
                inside(operand)
            clone = region.append(clone_op(op, env))
            env.update(zip(op.results, clone.results, strict=True))
            if op in unit.align:
                aligned.add(len(region.ops) - 1)
            if op is unit.root:
                root = len(region.ops) - 1
        region.results = [env[v] for v in outputs]
        attrs: dict[str, object] = {"kind": unit.kind}
        if unit.kind == "row":
            attrs.update(shape=unit.shape, outer_rank=unit.outer_rank, aligned=tuple(sorted(aligned)))
        elif unit.kind == "reduce":
            attrs["root"] = root
        if unit.kind in ("update", "scatter"):
            attrs["in_place"] = len(outputs)  # result i starts as the contents of operand i
        fusion = Op("fusion", operands, [v.type for v in outputs], attrs, [region], unit.root.loc)
        self.mapping.update(zip(outputs, fusion.results, strict=True))
        return fusion
