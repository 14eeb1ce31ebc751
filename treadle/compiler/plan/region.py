"""Turns one region into steps: when values live, where they want to be, and where they are put."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.lowering.attributes import integer
from treadle.compiler.lowering.kernels import KernelCall
from treadle.compiler.plan import control_flow
from treadle.compiler.plan.liveness import last_uses
from treadle.compiler.plan.memory import Memory, base_of
from treadle.compiler.plan.sharing import may_share
from treadle.compiler.plan.steps import Base, CopyStep, KernelStep, LibraryStep, ScalarStep, Step, Storage

_READ_THROUGH = frozenset(("reshape", "broadcast_in_dim", "slice", "reverse", "iota", "transpose", "constant"))

# Whether a result may be written over an operand that ends at the same op.
Share: TypeAlias = Callable[[Value], bool]


def is_read_through(op: Op) -> bool:
    """Ops that a fused region keeps only so that others can read through them: they have no step."""
    return op.name in _READ_THROUGH and op.results[0].type.rank > 0


def never(_operand: Value) -> bool:
    """The result may be written over no operand."""
    return False


class RegionPlanner:
    """Plans one region; nested regions get planners of their own that share the memory.

    Args:
      memory: of the program.
      region: the region.
      wants: where values should be, if that is free: the storage of what they become.
      arguments: arguments of the region that have storage.
    """

    def __init__(self, memory: Memory, region: Region, wants: Mapping[Value, Storage], arguments: Sequence[Value] = ()):
        self.memory = memory
        self.region = region
        self.wants = dict(wants)
        self.last = last_uses(region, is_read_through)
        self.steps: list[Step] = []
        self.dying: dict[int, list[Value]] = {}
        self.position = 0
        self._spread_wants()
        for value in arguments:
            self._born(value)

    def nested(
        self, region: Region, wants: Mapping[Value, Storage] | None = None, arguments: Sequence[Value] = ()
    ) -> RegionPlanner:
        """The planner of a region of the current op."""
        return RegionPlanner(self.memory, region, wants or {}, arguments)

    def run(self) -> list[Step]:
        """The steps of the region, whose results stay alive until `release_results`."""
        for position, op in enumerate(self.region.ops):
            self.position = position
            if is_read_through(op):
                continue
            self._op(op)
            for value in self.dying.pop(position, ()):
                self._die(value)
        return self.steps

    def release_results(self) -> None:
        """Ends the life of everything still alive: called when the region's results have been taken."""
        for values in self.dying.values():
            for value in values:
                self._die(value)
        self.dying.clear()

    @property
    def _is_entry(self) -> bool:
        return self.region is self.memory.program.entry

    # ---- lives -------------------------------------------------------------------------------------------------------

    def define(self, value: Value, storage: Storage) -> None:
        """Says where a result of the current op is, and starts its life."""
        self.memory.storage[value] = storage
        self._born(value)

    def _born(self, value: Value) -> None:
        """Starts the life of a value that has storage; it ends at its last use."""
        self.memory.storage[value].values += 1
        self.dying.setdefault(max(self.last.get(value, self.position), self.position), []).append(value)

    def _die(self, value: Value) -> None:
        storage = self.memory.storage[value]
        storage.values -= 1
        if storage.values == 0:
            self.memory.free(storage.blocks)
            storage.blocks.clear()

    def _dies_here(self, value: Value) -> bool:
        """Whether `value` belongs to this region and is not used after the current op."""
        return base_of(value) in self.dying.get(self.position, ())

    def _ends_here(self, storage: Storage) -> bool:
        """Whether every value in `storage` dies at the current op."""
        here = sum(self.memory.storage[v] is storage for v in self.dying.get(self.position, ()))
        return storage.values == here

    # ---- wishes ------------------------------------------------------------------------------------------------------

    def _spread_wants(self) -> None:
        """Hands wishes from results to operands.

        A value that an in-place op or a loop takes over, and that ends there, wants to be where the result wants to be.
        """
        for position, op in reversed(list(enumerate(self.region.ops))):
            count = len(op.operands) if op.name == "while" else _in_place(op)
            for operand, result in zip(op.operands[:count], op.results[:count], strict=True):
                base = base_of(operand)
                if result not in self.wants or base in self.wants or base.op is None or base.op.name == "constant":
                    continue
                if self.last.get(base) == position and base.type.rank > 0:
                    self.wants[base] = self.wants[result]

    def free_want(self, value: Value) -> Storage | None:
        """Where a result of the current op wants to be, if no value is there; None otherwise."""
        want = self.wants.get(value)
        return want if want is not None and want.values == 0 else None

    def claim(self, want: Storage, operands: Sequence[Value] = (), share: Share = never) -> None:
        """Called before the first write to `want`: a program output may then take over a donated argument's memory."""
        memory = self.memory
        output = memory.output_of(want.origin())
        if output is None or memory.aliases[output] != -1 or not self._is_entry:
            return
        donor = memory.donor(output)
        if donor is None:
            return
        argument = memory.program.entry.args[donor]
        last = self.last.get(argument, -1)
        readers = [v for v in operands if base_of(v) is argument]
        if last < self.position or (last == self.position and readers and all(map(share, readers))):
            memory.aliases[output] = donor

    # ---- places ------------------------------------------------------------------------------------------------------

    def place(self, value: Value, operands: Sequence[Value] = (), share: Share = never) -> Storage:
        """Memory for a result of the current op: where it wants to be, over an operand that ends here, or new."""
        want = self.wants.get(value)
        if want is not None:
            current = want.current
            if current is not None and self._is_free(current, operands, share):
                return current
            if want.values == 0:
                self.claim(want, operands, share)
                return want
        for operand in operands:
            held = self.memory.storage_of(operand)
            fits = held.mutable and held.size == value.type.byte_size
            if fits and self._dies_here(operand) and self._ends_here(held) and share(operand):
                return held
        return self.memory.scratch(value.type.byte_size)

    def _is_free(self, current: Storage, operands: Sequence[Value], share: Share) -> bool:
        """Whether the next value of a loop's carry may be written over the current one."""
        if current.values == 0:
            return True
        readers = [v for v in operands if self.memory.storage_of(v) is current]
        return self._ends_here(current) and all(self._dies_here(v) and share(v) for v in readers)

    def take_over(self, operand: Value, result: Value) -> Storage | None:
        """The operand's own memory as that of an in-place result, when it ends here and may be changed."""
        memory = self.memory
        held = memory.storage_of(operand)
        if held.mutable and self._dies_here(operand) and self._ends_here(held) and held.size == result.type.byte_size:
            return held
        want = self.free_want(result)
        if want is None or held.location.base is not Base.INPUT or not self._is_entry:
            return None
        # A donated argument that is updated and returned: the output is the same memory.
        output = memory.output_of(want)
        if output is None or memory.aliases[output] != -1:
            return None
        if memory.donor(output) == held.location.number and self.last.get(base_of(operand)) == self.position:
            memory.aliases[output] = held.location.number
            return want
        return None

    def scalar_store(self, value: Value) -> Storage | None:
        """Where a rank-0 result of the current op is kept in memory too, or None when nobody reads it there."""
        if value not in self.memory.in_memory:
            return None
        want = self.free_want(value)
        if want is None:
            return self.memory.scratch(value.type.byte_size)
        self.claim(want)
        return want

    # ---- ops ---------------------------------------------------------------------------------------------------------

    def _op(self, op: Op) -> None:
        if op.name == "fusion":
            self._fusion(op)
        elif op.name in ("dot_general", "convolution"):
            result = self.place(op.result, op.operands)
            operands = [self.memory.storage_of(v) for v in op.operands]
            self.define(op.result, result)
            self.steps.append(LibraryStep(op, operands, result))
        elif op.name == "while":
            control_flow.plan_loop(self, op)
        elif op.name in ("if", "case"):
            control_flow.plan_branch(self, op)
        else:
            store = self.scalar_store(op.result)
            if store is not None:
                self.define(op.result, store)
            self.steps.append(ScalarStep(op.result, store))

    def _fusion(self, op: Op) -> None:
        calls = self.memory.lowering.lower(op)
        in_place = _in_place(op)
        for number, result in enumerate(op.results):
            if number < in_place:
                storage = self._in_place_storage(op, number, calls)
            else:
                storage = self.place(result, op.operands, functools.partial(_may_share, calls, result))
            self.define(result, storage)
        temporaries: dict[Value, Storage] = {}
        for call in calls:
            arguments = [self._argument(value, temporaries) for value in call.arguments]
            self.steps.append(KernelStep(call, arguments, op))
        for storage in temporaries.values():
            self.memory.free(storage.blocks)

    def _argument(self, value: Value, temporaries: dict[Value, Storage]) -> Storage:
        """Where a kernel finds an argument: temporaries between the kernels of one fusion are allocated here."""
        base = base_of(value)
        if base in self.memory.storage or (base.op is not None and base.op.name == "constant"):
            return self.memory.storage_of(base)
        found = temporaries.get(value)
        if found is None:
            found = temporaries[value] = self.memory.scratch(value.type.byte_size)
        return found

    def _in_place_storage(self, op: Op, number: int, calls: list[KernelCall]) -> Storage:
        """Memory that holds the contents of operand `number` when the kernels of `op` change it."""
        operand, result = op.operands[number], op.results[number]
        held = self.memory.storage_of(operand)
        readers = [v for v in op.operands if self.memory.storage_of(v) is held and v is not operand]
        others = [v for i, v in enumerate(op.operands) if i != number and v is operand]
        if not others and all(_may_share(calls, result, v) for v in readers):
            taken = self.take_over(operand, result)
            if taken is not None:
                return taken
        target = self.free_want(result)
        if target is None:
            target = self.memory.scratch(result.type.byte_size)
        else:
            self.claim(target)
        self.steps.append(CopyStep(held, target, result.type.byte_size))
        return target


def _in_place(op: Op) -> int:
    """How many of a fusion's results start as the contents of its operands."""
    return integer(op, "in_place") if "in_place" in op.attrs else 0


def _may_share(calls: Sequence[KernelCall], result: Value, operand: Value) -> bool:
    """Whether `result` may be written over `operand` by these kernels."""
    if len(calls) != 1:
        return False
    call = calls[0]
    base = base_of(operand)
    reads = [i for i, v in enumerate(call.arguments) if base_of(v) is base and v is not result]
    writes = [i for i, v in enumerate(call.arguments) if v is result]
    return len(writes) == 1 and all(may_share(call.kernel, r, writes[0]) for r in reads)
