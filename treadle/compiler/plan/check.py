"""Runs a plan on labels instead of numbers: every read must find the value that it is meant to find.

Memory is a set of ranges, each labelled with the value that was last written there. A step that reads a value finds its
label or the plan is wrong: something else was put there too early. Loops are run a fixed number of times, so that both
buffers of a swapped carry are seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import Op, Program, Value
from treadle.compiler.plan.memory import base_of
from treadle.compiler.plan.steps import (
    Base,
    BranchStep,
    Carry,
    CopyStep,
    KernelStep,
    LibraryStep,
    Location,
    LoopStep,
    Plan,
    ScalarStep,
    Step,
    Storage,
)

# (base, number) -> ranges (start, end, label), not overlapping.
_Range = tuple[int, int, Value]
_Place = tuple[Base, int]


def check_plan(program: Program, plan: Plan, iterations: int) -> None:
    """Raises IrError, naming the step, when the plan lets a value be overwritten before its last use.

    Args:
      program: the fused program.
      plan: its plan.
      iterations: how often every loop is run.
    """
    _Checker(program, plan, iterations).run()


class _Checker:
    def __init__(self, program: Program, plan: Plan, iterations: int):
        self.program = program
        self.plan = plan
        self.iterations = iterations
        self.memory: dict[_Place, list[_Range]] = {}
        self.slots: dict[int, Location] = {}
        self.same: dict[Value, Value] = {}  # a value that is another one: an invariant's argument, a loop's result
        self.where = "start"

    def run(self) -> None:
        for value in self.program.entry.args:
            self._write(self.plan.storage[value], value)
        self._steps(self.plan.steps)
        self.where = "end"
        for o, value in enumerate(self.program.entry.results):
            if value.type.byte_size:
                output = Storage(value.type.byte_size, Location(Base.OUTPUT, o))
                self._expect(self._resolve(output.location), value)

    # ---- memory ------------------------------------------------------------------------------------------------------

    def _resolve(self, location: Location) -> Location:
        """Where a location is now: slots looked up, aliased outputs turned into their inputs."""
        if location.base is Base.SLOT:
            return self._resolve(self.slots[location.number])
        if location.base is Base.OUTPUT and self.plan.aliases[location.number] >= 0:
            return Location(Base.INPUT, self.plan.aliases[location.number], location.offset)
        return location

    def _label(self, value: Value) -> Value:
        value = base_of(value)
        while value in self.same:
            value = base_of(self.same[value])
        return value

    def _write(self, storage: Storage, value: Value) -> None:
        self._put(self._resolve(storage.location), value.type.byte_size, self._label(value))

    def _put(self, place: Location, size: int, label: Value) -> None:
        if size == 0:
            return
        start, end = place.offset, place.offset + size
        kept: list[_Range] = []
        for a, b, other in self.memory.get((place.base, place.number), []):
            if b <= start or a >= end:
                kept.append((a, b, other))
        self.memory[(place.base, place.number)] = [*kept, (start, end, label)]

    def _expect(self, place: Location, value: Value) -> None:
        """The whole of `value` must be at `place`."""
        label, size = self._label(value), value.type.byte_size
        if size == 0 or (label.op is not None and label.op.name == "constant"):
            return
        for a, b, found in self.memory.get((place.base, place.number), []):
            if a == place.offset and b == place.offset + size and found is label:
                return
        end = place.offset + size
        now = [str(r) for r in self.memory.get((place.base, place.number), []) if r[0] < end and r[1] > place.offset]
        raise IrError(f"plan: at {self.where}, {label} is not at {place}, where there is {now or 'nothing'}")

    def _read(self, storage: Storage, value: Value) -> None:
        self._expect(self._resolve(storage.location), value)

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, KernelStep):
                self._kernel(step)
            elif isinstance(step, CopyStep):
                self._copy(step)
            elif isinstance(step, ScalarStep):
                self.where = f"scalar {step.value}"
                if step.value.op is not None:
                    self._scalar_reads(step.value.op)
                if step.store is not None:
                    self._write(step.store, step.value)
            elif isinstance(step, LibraryStep):
                self.where = f"{step.op.name} ({step.op.loc})"
                for storage, value in zip(step.operands, step.op.operands, strict=True):
                    self._read(storage, value)
                self._write(step.result, step.op.result)
                for storage, value in zip(step.operands, step.op.operands, strict=True):
                    self._read(storage, value)  # the result overlaps no operand
            elif isinstance(step, LoopStep):
                self._loop(step)
            else:
                assert isinstance(step, BranchStep)
                self._branch(step)

    def _scalar_reads(self, op: Op) -> None:
        for value in op.operands:
            storage = self.plan.storage.get(base_of(value))
            if storage is not None:
                self._read(storage, value)
            elif value.op is not None:
                self._scalar_reads(value.op)

    def _kernel(self, step: KernelStep) -> None:
        self.where = f"kernel {step.op.attrs['kind']} ({step.op.loc})"
        params = step.call.kernel.params
        in_place = step.op.attrs.get("in_place", 0)
        assert isinstance(in_place, int)
        for param, storage, value in zip(params, step.arguments, step.call.arguments, strict=True):
            if not param.written:
                self._read(storage, value)
            elif value in step.op.results[:in_place]:
                self._read(storage, step.op.operands[step.op.results.index(value)])
        for param, storage, value in zip(params, step.arguments, step.call.arguments, strict=True):
            if param.written:
                self._write(storage, value)

    def _copy(self, step: CopyStep) -> None:
        self.where = f"copy of {step.size} bytes"
        source, target = self._resolve(step.source.location), self._resolve(step.target.location)
        for a, b, label in self.memory.get((source.base, source.number), []):
            if a == source.offset and b == source.offset + step.size:
                self._put(target, step.size, label)
                return
        if source.base is Base.CONSTANT:
            op = next(op for offset, op in self.plan.constants if offset == source.offset)
            self._put(target, step.size, op.result)
        elif step.size:
            raise IrError(f"plan: {self.where} from {source}, where no whole value is")

    def _loop(self, step: LoopStep) -> None:
        self.where = f"while ({step.op.loc})"
        previous = [c.initial for c in step.carries]
        for carry in step.carries:
            if carry.swap is not None:
                assert carry.first is not None
                self.slots[carry.swap[0]] = self._resolve(carry.first.location)
                self.slots[carry.swap[1]] = carry.swap[2]
        for i in range(self.iterations + 1):
            self._enter(step.carries, previous)
            self._steps(step.condition)
            if i == self.iterations:
                break
            for carry in step.carries:
                if carry.argument_store is not None:
                    self._write(carry.argument_store, carry.argument)
            self._steps(step.body)
            for carry in step.carries:
                if carry.swap is not None:
                    a, b = carry.swap[:2]
                    self.slots[a], self.slots[b] = self.slots[b], self.slots[a]
            previous = [c.next for c in step.carries]
        for carry in step.carries:
            if carry.scalar:
                if carry.result_store is not None:
                    self._write(carry.result_store, carry.result)
            elif carry.storage is None:
                self.same[carry.result] = carry.initial
            else:
                self._write(carry.storage, carry.result)

    def _enter(self, carries: Sequence[Carry], previous: Sequence[Value]) -> None:
        """Gives the carried values their names in the coming iteration, after checking that they are there."""
        for carry, value in zip(carries, previous, strict=True):
            if carry.storage is None and not carry.scalar:
                self.same[carry.argument] = self.same[carry.condition_argument] = carry.initial
            elif carry.storage is not None:
                self._read(carry.storage, value)
        for carry in carries:
            if carry.storage is not None:
                self.same[carry.condition_argument] = carry.argument
                self._write(carry.storage, carry.argument)
            elif carry.condition_store is not None:
                self._write(carry.condition_store, carry.condition_argument)

    def _branch(self, step: BranchStep) -> None:
        before = {place: list(ranges) for place, ranges in self.memory.items()}
        arrays = [(i, r) for i, r in enumerate(step.op.results) if r.type.rank > 0]
        for branch, region in zip(step.branches, step.op.regions, strict=True):
            self.memory = {place: list(ranges) for place, ranges in before.items()}
            self._steps(branch)
            self.where = f"end of a branch ({step.op.loc})"
            for i, result in arrays:
                self._read(self.plan.storage[result], region.results[i])
        # What the last branch left behind stands for all: only the results may be used afterwards.
        for _, result in arrays:
            self._write(self.plan.storage[result], result)
        for value, store in step.scalar_results:
            if store is not None:
                self._write(store, value)
