"""Assigns memory to values and turns regions into steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.compiler.ir.core import Op, Program, Region, Value, captured_values
from treadle.compiler.lowering.fusions import lower_fusion
from treadle.compiler.lowering.kernels import KernelCall
from treadle.compiler.plan.arena import Arena, align
from treadle.compiler.plan.liveness import last_uses
from treadle.compiler.plan.sharing import may_share
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

_READ_THROUGH = frozenset(("reshape", "broadcast_in_dim", "slice", "reverse", "iota", "transpose", "constant"))


def is_read_through(op: Op) -> bool:
    """Ops that a fused region keeps only so that others can read through them: they have no step."""
    return op.name in _READ_THROUGH and op.results[0].type.rank > 0


def plan(program: Program) -> Plan:
    """Plans a fused program."""
    return _Planner(program).run()


class _Planner:
    def __init__(self, program: Program):
        self.program = program
        self.arena = Arena()
        self.storage: dict[Value, Storage] = {}
        self.constants: list[tuple[int, Op]] = []
        self.constants_size = 0
        self.num_slots = 0
        self.outputs: list[Storage] = []
        self.output_number: dict[Storage, int] = {}
        self.aliases: list[int] = []
        self.in_memory = _scalars_in_memory(program)

    def run(self) -> Plan:
        entry = self.program.entry
        for i, arg in enumerate(entry.args):
            self.storage[arg] = Storage(arg.type.byte_size, Location(Base.INPUT, i))
        for o, value in enumerate(entry.results):
            self.outputs.append(Storage(value.type.byte_size, Location(Base.OUTPUT, o)))
            self.output_number[self.outputs[-1]] = o
            self.aliases.append(-1)
        wants: dict[Value, Storage] = {}
        for o, value in enumerate(entry.results):
            base = base_of(value)
            if base.op is not None and base.op.name != "constant" and base not in wants:
                wants[base] = self.outputs[o]
        steps = _RegionPlanner(self, entry, wants).run()
        for o, value in enumerate(entry.results):
            held = self.storage_of(value)
            if held is not self.outputs[o] and not self._pass_through(o, value, held):
                steps.append(CopyStep(held, self.outputs[o], value.type.byte_size))
        return Plan(
            steps, self.storage, self.constants, self.constants_size, self.arena.peak, self.aliases, self.num_slots
        )

    def _pass_through(self, output: int, value: Value, held: Storage) -> bool:
        """A donated argument that is returned unchanged keeps its memory."""
        if held.location.base is not Base.INPUT or value.type.byte_size == 0:
            return value.type.byte_size == 0
        i = held.location.number
        if not self.program.inputs[i].donated or i in self.aliases or self.aliases[output] != -1:
            return False
        self.aliases[output] = i
        return True

    def donor(self, output: int) -> int | None:
        """The donated argument whose memory output `output` should take over: the one that asked for it, or any of its size."""
        size = self.outputs[output].size
        for i, declared in enumerate(self.program.inputs):
            if declared.donated and declared.alias == output and self.program.entry.args[i].type.byte_size == size:
                return i if i not in self.aliases else None
        for i, declared in enumerate(self.program.inputs):
            if declared.donated and declared.alias == -1 and i not in self.aliases and size:
                if self.program.entry.args[i].type.byte_size == size:
                    return i
        return None

    def storage_of(self, value: Value) -> Storage:
        """Where `value` is; reshapes share their operand's memory, constants are placed on demand."""
        value = base_of(value)
        found = self.storage.get(value)
        if found is None:
            op = value.op
            assert op is not None and op.name == "constant", f"{value} has no storage"
            found = Storage(value.type.byte_size, Location(Base.CONSTANT, 0, self.constants_size))
            self.constants.append((self.constants_size, op))
            self.constants_size += align(value.type.byte_size)
            self.storage[value] = found
        return found

    def scratch(self, size: int) -> Storage:
        offset = self.arena.allocate(size)
        return Storage(size, Location(Base.SCRATCH, 0, offset), True, ((offset, size),))

    def slot(self) -> int:
        self.num_slots += 1
        return self.num_slots - 1


def base_of(value: Value) -> Value:
    """The value whose memory `value` is a reshape of."""
    while value.op is not None and value.op.name == "reshape" and value.type.rank > 0:
        value = value.op.operands[0]
    return value


def _scalars_in_memory(program: Program) -> set[Value]:
    """Rank-0 values that kernels, library calls or the program's caller read from memory."""
    found = {v for v in program.entry.results if v.type.rank == 0}
    for op in program.entry.walk():
        if op.name in ("fusion", "dot_general", "convolution"):
            found.update(v for v in op.operands if v.type.rank == 0)
        elif op.name == "reshape" and op.operands[0].type.rank == 0:
            found.add(op.operands[0])
    return found


class _RegionPlanner:
    """Plans one region; nested regions get planners of their own that share the arena."""

    def __init__(self, planner: _Planner, region: Region, wants: dict[Value, Storage], arguments: Sequence[Value] = ()):
        self.planner = planner
        self.region = region
        self.wants = wants
        self.last = last_uses(region, is_read_through)
        self.steps: list[Step] = []
        self.dying: dict[int, list[Value]] = {}
        self.position = 0
        self._spread_wants()
        for value in arguments:
            self._born(value)

    def run(self) -> list[Step]:
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

    # ---- lives -------------------------------------------------------------------------------------------------------

    def _born(self, value: Value) -> None:
        """Starts the life of a value that has storage; it ends at its last use."""
        self.planner.storage[value].values += 1
        self.dying.setdefault(max(self.last.get(value, self.position), self.position), []).append(value)

    def _die(self, value: Value) -> None:
        storage = self.planner.storage[value]
        storage.values -= 1
        if storage.values == 0:
            for offset, size in storage.blocks:
                self.planner.arena.free(offset, size)
            storage.blocks.clear()

    def _dies_here(self, value: Value) -> bool:
        """Whether `value` belongs to this region and is not used after the current op."""
        return base_of(value) in self.dying.get(self.position, ())

    def _ends_here(self, storage: Storage) -> bool:
        """Whether every value in `storage` dies at the current op."""
        here = sum(self.planner.storage[v] is storage for v in self.dying.get(self.position, ()))
        return storage.values == here

    # ---- wishes ------------------------------------------------------------------------------------------------------

    def _spread_wants(self) -> None:
        """A value that an in-place op or a loop takes over, and that ends there, wants to be where the result wants to be."""
        for position in range(len(self.region.ops) - 1, -1, -1):
            op = self.region.ops[position]
            if op.name == "fusion":
                count = op.attrs.get("in_place", 0)
                pairs = list(zip(op.operands[:count], op.results, strict=False))  # type: ignore[misc]
            elif op.name == "while":
                pairs = list(zip(op.operands, op.results, strict=True))
            else:
                continue
            for operand, result in pairs:
                base = base_of(operand)
                if (
                    result in self.wants
                    and base not in self.wants
                    and base.op is not None
                    and base.op.name != "constant"
                ):
                    if self.last.get(base) == position and base.type.rank > 0:
                        self.wants[base] = self.wants[result]

    def _place(self, value: Value, operands: Sequence[Value], share: Callable[[Value], bool]) -> Storage:
        """Memory for a result of the current op: where it wants to be, over an operand that ends here, or new."""
        want = self.wants.get(value)
        if want is not None:
            current = want.current
            if current is not None and self._current_is_free(current, operands, share):
                return current
            if want.values == 0:
                self._claim(want, operands, share)
                return want
        for operand in operands:
            held = self.planner.storage_of(operand)
            if held.mutable and held.size == value.type.byte_size and self._dies_here(operand):
                if self._ends_here(held) and share(operand):
                    return held
        return self.planner.scratch(value.type.byte_size)

    def _current_is_free(self, current: Storage, operands: Sequence[Value], share: Callable[[Value], bool]) -> bool:
        """Whether the next value of a loop's carry may be written over the current one."""
        if current.values == 0:
            return True
        readers = [v for v in operands if self.planner.storage_of(v) is current]
        return self._ends_here(current) and all(self._dies_here(v) and share(v) for v in readers)

    def _claim(self, want: Storage, operands: Sequence[Value], share: Callable[[Value], bool]) -> None:
        """Called before the first write to a program output: decides whether it takes over a donated argument's memory."""
        planner = self.planner
        output = planner.output_number.get(want.origin())
        if output is None or planner.aliases[output] != -1 or self.region is not planner.program.entry:
            return
        donor = planner.donor(output)
        if donor is None:
            return
        argument = planner.program.entry.args[donor]
        last = self.last.get(argument, -1)
        readers = [v for v in operands if base_of(v) is argument]
        if last < self.position or (last == self.position and readers and all(map(share, readers))):
            planner.aliases[output] = donor

    def _takes_over(self, operand: Value, result: Value) -> Storage | None:
        """The operand's own memory as that of an in-place result, when it ends here and may be changed."""
        held = self.planner.storage_of(operand)
        if held.mutable and self._dies_here(operand) and self._ends_here(held) and held.size == result.type.byte_size:
            return held
        want = self.wants.get(result)
        if want is None or held.location.base is not Base.INPUT or self.region is not self.planner.program.entry:
            return None
        # A donated argument that is updated and returned: the output is the same memory.
        output = self.planner.output_number.get(want)
        if output is None or want.values or self.planner.aliases[output] != -1:
            return None
        if self.planner.donor(output) == held.location.number and self.last.get(base_of(operand)) == self.position:
            self.planner.aliases[output] = held.location.number
            return want
        return None

    # ---- ops ---------------------------------------------------------------------------------------------------------

    def _op(self, op: Op) -> None:
        if op.name == "fusion":
            self._fusion(op)
        elif op.name in ("dot_general", "convolution"):
            result = self._place(op.result, op.operands, lambda _v: False)
            operands = [self.planner.storage_of(v) for v in op.operands]
            self._define(op.result, result)
            self.steps.append(LibraryStep(op, operands, result))
        elif op.name == "while":
            self._while(op)
        elif op.name in ("if", "case"):
            self._branch(op)
        else:
            self._scalar(op.result)

    def _define(self, value: Value, storage: Storage) -> None:
        self.planner.storage[value] = storage
        self._born(value)

    def _scalar(self, value: Value) -> None:
        store = self._scalar_store(value)
        if store is not None:
            self._define(value, store)
        self.steps.append(ScalarStep(value, store))

    def _scalar_store(self, value: Value) -> Storage | None:
        if value not in self.planner.in_memory:
            return None
        want = self.wants.get(value)
        if want is not None and want.values == 0:
            self._claim(want, (), lambda _v: False)
            return want
        return self.planner.scratch(value.type.byte_size)

    def _fusion(self, op: Op) -> None:
        calls = lower_fusion(op)
        in_place = op.attrs.get("in_place", 0)
        assert isinstance(in_place, int)
        for number, result in enumerate(op.results):
            if number < in_place:
                self._define(result, self._in_place_storage(op, number, result, calls))
            else:
                self._define(result, self._place(result, op.operands, lambda v, r=result: _may_share(calls, v, r)))  # type: ignore[misc]
        temporaries: dict[Value, Storage] = {}
        for call in calls:
            arguments = []
            for value in call.arguments:
                storage = self.planner.storage.get(base_of(value)) or temporaries.get(value)
                if storage is None:
                    known = value.op is not None and value.op.name == "constant"
                    storage = self.planner.storage_of(value) if known else self.planner.scratch(value.type.byte_size)
                    if not known:
                        temporaries[value] = storage
                arguments.append(storage)
            self.steps.append(KernelStep(call, arguments, op))
        for storage in temporaries.values():
            for offset, size in storage.blocks:
                self.planner.arena.free(offset, size)

    def _in_place_storage(self, op: Op, number: int, result: Value, calls: list[KernelCall]) -> Storage:
        operand = op.operands[number]
        held = self.planner.storage_of(operand)
        readers = [v for v in op.operands if self.planner.storage_of(v) is held and v is not operand]
        others = [v for i, v in enumerate(op.operands) if i != number and v is operand]
        if not others and all(_may_share(calls, v, result) for v in readers):
            taken = self._takes_over(operand, result)
            if taken is not None:
                return taken
        want = self.wants.get(result)
        target = want if want is not None and want.values == 0 else self.planner.scratch(result.type.byte_size)
        if want is target:
            self._claim(target, (), lambda _v: False)
        self.steps.append(CopyStep(held, target, result.type.byte_size))
        return target

    # ---- control flow ------------------------------------------------------------------------------------------------

    def _while(self, op: Op) -> None:
        condition, body = op.regions
        carries: list[Carry] = []
        wants: dict[Value, Storage] = {}
        alternates: list[Storage | None] = []
        for i, initial in enumerate(op.operands):
            carry = Carry(initial, body.args[i], condition.args[i], body.results[i], op.results[i])
            carries.append(carry)
            alternates.append(None)
            if initial.type.rank == 0:
                carry.scalar = True
            elif carry.next is carry.argument:
                self._share_invariant(carry)
            else:
                carry.storage = self._carry_storage(op, carry)
                other = Storage(carry.storage.size, carry.storage, True)
                other.current = carry.storage
                alternates[i] = other
                self.planner.storage[carry.argument] = self.planner.storage[carry.condition_argument] = carry.storage
        for carry, other in zip(carries, alternates, strict=True):
            if other is not None:
                wants.setdefault(base_of(carry.next), other)
        stores: list[Storage] = []
        for carry in carries:
            if carry.scalar:
                carry.argument_store = self._argument_store(carry.argument, stores)
                carry.condition_store = self._argument_store(carry.condition_argument, stores)
        condition_planner = _RegionPlanner(self.planner, condition, {})
        condition_steps = condition_planner.run()
        condition_planner.release_results()
        arguments = [c.argument for c in carries if c.storage is not None]
        for c in carries:
            if c.storage is not None:
                c.storage.values = 0
        body_planner = _RegionPlanner(self.planner, body, wants, arguments)
        body_steps = body_planner.run()
        for carry, other in zip(carries, alternates, strict=True):
            if other is not None:
                self._close_carry(carry, other, body_steps)
        body_planner.release_results()
        step = LoopStep(op, carries, condition_steps, body_steps)
        self.steps.append(step)
        for store in stores:
            for offset, size in store.blocks:
                self.planner.arena.free(offset, size)
        for carry in carries:
            self._loop_result(carry)

    def _share_invariant(self, carry: Carry) -> None:
        storage = self.planner.storage_of(carry.initial)
        for value in (carry.argument, carry.condition_argument):
            self.planner.storage[value] = storage

    def _argument_store(self, value: Value, stores: list[Storage]) -> Storage | None:
        if value not in self.planner.in_memory:
            return None
        store = self.planner.scratch(value.type.byte_size)
        stores.append(store)
        self.planner.storage[value] = store
        return store

    def _carry_storage(self, op: Op, carry: Carry) -> Storage:
        """The buffer of the current value: the initial value's own when only the loop uses it from here on, else a copy of it."""
        initial, size = carry.initial, carry.initial.type.byte_size
        base = base_of(initial)
        held = self.planner.storage_of(initial)
        other_uses = sum(base_of(v) is base for v in op.operands) > 1 or any(
            base_of(v) is base for v in captured_values(op)
        )
        outer = None if other_uses else self._takes_over(initial, carry.result)
        if outer is None:
            want = self.wants.get(carry.result)
            if want is not None and want.values == 0 and want.current is None:
                outer = want
                self._claim(outer, (), lambda _v: False)
            else:
                outer = self.planner.scratch(size)
            self.steps.append(CopyStep(held, outer, size))
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

    def _close_carry(self, carry: Carry, other: Storage, body_steps: list[Step]) -> None:
        """Brings the body's result to where the next iteration looks for it."""
        assert carry.storage is not None and carry.first is not None
        held = self.planner.storage_of(carry.next)
        if held is carry.storage:
            return
        if held is not other:
            body_steps.append(CopyStep(held, other, carry.storage.size))
        offset = self.planner.arena.allocate_apart(carry.storage.size)
        start = Location(Base.SCRATCH, 0, offset)
        carry.swap = (self.planner.slot(), self.planner.slot(), start)
        carry.storage.location = Location(Base.SLOT, carry.swap[0])
        other.location = Location(Base.SLOT, carry.swap[1])
        carry.blocks.append((offset, carry.storage.size))

    def _loop_result(self, carry: Carry) -> None:
        value = carry.result
        if carry.scalar:
            carry.result_store = self._scalar_store(value)
            if carry.result_store is not None:
                self._define(value, carry.result_store)
        elif carry.storage is None:
            self._define(value, self.planner.storage_of(carry.initial))
        else:
            outer = carry.first
            assert outer is not None
            outer.values -= 1
            blocks = tuple(carry.blocks)
            if carry.swap is None:
                outer.blocks.extend(blocks)
                self._define(value, outer)
            elif outer.origin() in self.planner.output_number:
                # A program result has a fixed place: copied there when the last iteration left it in the other buffer.
                self.steps.append(CopyStep(carry.storage, outer, outer.size))
                self._define(value, outer)
                for offset, size in blocks:
                    self.planner.arena.free(offset, size)
            else:
                self._define(value, Storage(carry.storage.size, carry.storage, True, blocks))

    def _branch(self, op: Op) -> None:
        targets: list[Storage | None] = []
        for result in op.results:
            if result.type.rank == 0:
                targets.append(None)
                continue
            want = self.wants.get(result)
            free = want is not None and want.values == 0
            target = want if free and want is not None else self.planner.scratch(result.type.byte_size)
            if free:
                self._claim(target, (), lambda _v: False)
            target.values += 1
            targets.append(target)
        branches = []
        for region in op.regions:
            wants: dict[Value, Storage] = {}
            locals_: list[tuple[Storage, Storage]] = []
            for value, target in zip(region.results, targets, strict=True):
                if target is not None:
                    inner = Storage(target.size, target)
                    locals_.append((inner, target))
                    wants.setdefault(base_of(value), inner)
            inner_planner = _RegionPlanner(self.planner, region, wants)
            steps = inner_planner.run()
            numbers = iter(locals_)
            for value, target in zip(region.results, targets, strict=True):
                if target is None:
                    continue
                inner, _ = next(numbers)
                held = self.planner.storage_of(value)
                if held is not inner:
                    steps.append(CopyStep(held, inner, target.size))
            inner_planner.release_results()
            branches.append(steps)
        scalars: list[tuple[Value, Storage | None]] = []
        for result, target in zip(op.results, targets, strict=True):
            if target is None:
                store = self._scalar_store(result)
                if store is not None:
                    self._define(result, store)
                scalars.append((result, store))
            else:
                target.values -= 1
                self._define(result, target)
        self.steps.append(BranchStep(op, branches, scalars))


def _may_share(calls: list[KernelCall], operand: Value, result: Value) -> bool:
    """Whether `result` may be written over `operand` by these kernels."""
    if len(calls) != 1:
        return False
    call = calls[0]
    base = base_of(operand)
    reads = [i for i, v in enumerate(call.arguments) if base_of(v) is base and v is not result]
    writes = [i for i, v in enumerate(call.arguments) if v is result]
    return len(writes) == 1 and all(may_share(call.kernel, r, writes[0]) for r in reads)
