"""Loops and branches: which memory carries values from iteration to iteration and out of branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.compiler.ir.core import Op, Region, Value, captured_values
from treadle.compiler.plan.memory import base_of
from treadle.compiler.plan.steps import (
    Base,
    BranchStep,
    Carry,
    CopyStep,
    Location,
    LoopStep,
    Step,
    Storage,
)

if TYPE_CHECKING:
    from treadle.compiler.plan.region import RegionPlanner


def plan_loop(planner: RegionPlanner, op: Op) -> None:
    """The step of a while.

    A carried array is updated in place where the kernels allow that and alternates between two buffers otherwise.
    """
    _Loop(planner, op).plan()


class _Loop:
    def __init__(self, planner: RegionPlanner, op: Op):
        self.planner = planner
        self.memory = planner.memory
        self.op = op
        condition, body = op.regions
        rows = zip(op.operands, body.args, condition.args, body.results, op.results, strict=True)
        self.carries = [Carry(*row) for row in rows]

    def plan(self) -> None:
        condition, body = self.op.regions
        alternates: dict[Value, Storage] = {}  # by the carry's argument: where the next value goes if not in place
        for carry in self.carries:
            if carry.initial.type.rank == 0:
                carry.scalar = True
            elif carry.next is carry.argument:
                self._is_at(carry, self.memory.storage_of(carry.initial))
            else:
                storage = carry.storage = self._first_storage(carry)
                other = alternates[carry.argument] = Storage(storage.size, storage, True)
                other.current = storage
                self._is_at(carry, storage)
        arrays = [carry for carry in self.carries if carry.argument in alternates]
        stores: list[Storage] = []
        for carry in self.carries:
            if carry.scalar:
                carry.argument_store = self._argument_store(carry.argument, stores)
                carry.condition_store = self._argument_store(carry.condition_argument, stores)
        inner = self.planner.nested(condition)
        condition_steps = inner.run()
        inner.release_results()
        wants: dict[Value, Storage] = {}
        for carry in arrays:
            assert carry.storage is not None
            carry.storage.values = 0
            wants.setdefault(base_of(carry.next), alternates[carry.argument])
        inner = self.planner.nested(body, wants, [carry.argument for carry in arrays])
        body_steps = inner.run()
        for carry in arrays:
            self._close(carry, alternates[carry.argument], body_steps)
        inner.release_results()
        self.planner.steps.append(LoopStep(self.op, self.carries, condition_steps, body_steps))
        for store in stores:
            self.memory.free(store.blocks)
        for carry in self.carries:
            self._result(carry)

    def _is_at(self, carry: Carry, storage: Storage) -> None:
        for value in (carry.argument, carry.condition_argument):
            self.memory.storage[value] = storage

    def _argument_store(self, value: Value, stores: list[Storage]) -> Storage | None:
        """Where kernels of the loop find a carried scalar, or None when none reads it."""
        if value not in self.memory.in_memory:
            return None
        store = self.memory.scratch(value.type.byte_size)
        stores.append(store)
        self.memory.storage[value] = store
        return store

    def _first_storage(self, carry: Carry) -> Storage:
        """The buffer of the current value.

        It is the initial value's own when only the loop uses that from here on, else it begins as a copy of it.
        """
        planner, op = self.planner, self.op
        initial, size = carry.initial, carry.initial.type.byte_size
        base = base_of(initial)
        held = self.memory.storage_of(initial)
        uses = sum(base_of(v) is base for v in (*op.operands, *captured_values(op)))
        outer = planner.take_over(initial, carry.result) if uses == 1 else None
        if outer is None:
            outer = planner.free_want(carry.result)
            if outer is not None and outer.current is None:
                planner.claim(outer)
            else:
                outer = self.memory.scratch(size)
            planner.steps.append(CopyStep(held, outer, size))
        elif outer is held:
            # The loop owns the memory from here on: it is not given back when the initial value dies, nor taken a
            # second time.
            outer = Storage(size, held, True, tuple(held.blocks))
            held.blocks.clear()
            held.mutable = False
        outer.values += 1
        carry.first = outer
        carry.blocks = list(outer.blocks)
        outer.blocks.clear()
        return Storage(size, outer, True)

    def _close(self, carry: Carry, other: Storage, body_steps: list[Step]) -> None:
        """Brings the body's result to where the next iteration looks for it."""
        assert carry.storage is not None
        held = self.memory.storage_of(carry.next)
        if held is carry.storage:
            return
        if held is not other:
            body_steps.append(CopyStep(held, other, carry.storage.size))
        offset = self.memory.arena.allocate_apart(carry.storage.size)
        start = Location(Base.SCRATCH, 0, offset)
        carry.swap = (self.memory.slot(), self.memory.slot(), start)
        carry.storage.location = Location(Base.SLOT, carry.swap[0])
        other.location = Location(Base.SLOT, carry.swap[1])
        carry.blocks.append((offset, carry.storage.size))

    def _result(self, carry: Carry) -> None:
        """Says where the loop's result is."""
        planner, value = self.planner, carry.result
        if carry.scalar:
            carry.result_store = planner.scalar_store(value)
            if carry.result_store is not None:
                planner.define(value, carry.result_store)
            return
        if carry.storage is None:
            planner.define(value, self.memory.storage_of(carry.initial))
            return
        outer = carry.first
        assert outer is not None
        outer.values -= 1
        if carry.swap is None:
            outer.blocks.extend(carry.blocks)
            planner.define(value, outer)
        elif self.memory.output_of(outer.origin()) is not None:
            # A program result has a fixed place: copied there when the last iteration left it in the other buffer.
            planner.steps.append(CopyStep(carry.storage, outer, outer.size))
            planner.define(value, outer)
            self.memory.free(carry.blocks)
        else:
            planner.define(value, Storage(carry.storage.size, carry.storage, True, tuple(carry.blocks)))


def plan_branch(planner: RegionPlanner, op: Op) -> None:
    """The step of an if or case: every branch leaves its array results in the same place."""
    targets: dict[int, Storage] = {}  # by result number
    for i, result in enumerate(op.results):
        if result.type.rank > 0:
            target = planner.free_want(result)
            if target is None:
                target = planner.memory.scratch(result.type.byte_size)
            else:
                planner.claim(target)
            target.values += 1
            targets[i] = target
    branches = [_branch(planner, region, targets) for region in op.regions]
    scalars: list[tuple[Value, Storage | None]] = []
    for i, result in enumerate(op.results):
        if i in targets:
            targets[i].values -= 1
            planner.define(result, targets[i])
            continue
        store = planner.scalar_store(result)
        if store is not None:
            planner.define(result, store)
        scalars.append((result, store))
    planner.steps.append(BranchStep(op, branches, scalars))


def _branch(planner: RegionPlanner, region: Region, targets: dict[int, Storage]) -> list[Step]:
    """The steps of one branch, which end with its array results in their targets."""
    # Values of the branch are counted in storages of their own, which become free again for the next branch.
    places = {i: Storage(target.size, target) for i, target in targets.items()}
    wants: dict[Value, Storage] = {}
    for i, place in places.items():
        wants.setdefault(base_of(region.results[i]), place)
    inner = planner.nested(region, wants)
    steps = inner.run()
    for i, place in places.items():
        held = planner.memory.storage_of(region.results[i])
        if held is not place:
            steps.append(CopyStep(held, place, place.size))
    inner.release_results()
    return steps
