"""Dead code elimination: ops, loop carries and branch results that no output depends on."""

from __future__ import annotations

from treadle.compiler.ir.core import Op, Program, Region, Value
from treadle.compiler.ops import registry
from treadle.compiler.passes.control import keep_carries


def eliminate_dead_code(program: Program) -> Program:
    """Removes what is not needed, in place: one walk to mark, one to sweep."""
    marker = _Marker()
    marker.enter(program.entry)
    marker.need_all(program.entry.results)
    marker.run()
    _sweep(program.entry, marker)
    return program


class _Marker:
    """Marks values from the outputs backwards. A carry of a loop is needed only if something needs it."""

    def __init__(self) -> None:
        self.live: set[Value] = set()
        self.work: list[Value] = []
        self.loop_of_arg: dict[Value, Op] = {}
        self.entered: set[Op] = set()
        self.forced: set[Op] = set()

    def need(self, value: Value) -> None:
        if value not in self.live:
            self.live.add(value)
            self.work.append(value)

    def need_all(self, values: list[Value]) -> None:
        live, work = self.live, self.work
        for value in values:
            if value not in live:
                live.add(value)
                work.append(value)

    def enter(self, region: Region) -> bool:
        """Marks what must run for its own sake, and tells whether there is any."""
        found = False
        for op in region.ops:
            definition = registry.find(op.name)
            forced = definition is not None and definition.side_effect
            for inner in op.regions:
                forced = self.enter(inner) or forced
            if forced:
                self.force(op)
                found = True
        return found

    def force(self, op: Op) -> None:
        self.forced.add(op)
        if op.name == "while":
            self.loop(op)
        else:
            self.need_all(op.operands)

    def run(self) -> None:
        while self.work:
            value = self.work.pop()
            op = value.op
            if op is None:
                loop = self.loop_of_arg.get(value)
                if loop is not None:
                    self.carry(loop, value.index)
            elif op.name == "while":
                self.loop(op)
                self.carry(op, value.index)
            elif op.name in ("if", "case"):
                self.need(op.operands[0])
                for region in op.regions:
                    self.need(region.results[value.index])
            else:
                self.need_all(op.operands)
                for region in op.regions:
                    self.need_all(region.results)

    def loop(self, op: Op) -> None:
        """The condition of a loop that runs is needed."""
        if op in self.entered:
            return
        self.entered.add(op)
        for region in op.regions:
            for arg in region.args:
                self.loop_of_arg[arg] = op
                if arg in self.live:
                    self.carry(op, arg.index)
        self.need(op.regions[0].results[0])

    def carry(self, op: Op, index: int) -> None:
        """One carry: where it comes from, how it goes on."""
        self.need(op.operands[index])
        self.need(op.regions[1].results[index])
        self.need(op.regions[1].args[index])


def _sweep(region: Region, marker: _Marker) -> None:
    live, forced = marker.live, marker.forced
    kept: list[Op] = []
    for op in region.ops:
        if op not in forced and not any(v in live for v in op.results):
            continue
        if op.name == "while":
            wanted = [i for i, arg in enumerate(op.regions[1].args) if arg in live]
            if len(wanted) < len(op.operands):
                op = _with_results(op, keep_carries(op, wanted), wanted)  # noqa: PLW2901
        elif op.name in ("if", "case"):
            wanted = [i for i, value in enumerate(op.results) if value in live]
            if len(wanted) < len(op.results):
                for inner in op.regions:
                    inner.results = [inner.results[i] for i in wanted]
                types = [op.results[i].type for i in wanted]
                new = Op(op.name, op.operands, types, op.attrs, op.regions, op.loc)
                op = _with_results(op, new, wanted)  # noqa: PLW2901
        for inner in op.regions:
            _sweep(inner, marker)
        kept.append(op)
    region.ops = kept


def _with_results(old: Op, new: Op, kept: list[int]) -> Op:
    """Makes the kept results of `old` those of `new`, so that their uses need not be rewritten."""
    new.results = [old.results[i] for i in kept]
    for position, value in enumerate(new.results):
        value.op, value.index = new, position
    return new
