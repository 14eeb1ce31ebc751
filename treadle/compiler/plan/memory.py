"""The memory of a whole program while it is being planned: where values are, and what the caller gives and gets."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.compiler.ir.core import Op, Program, Value
from treadle.compiler.lowering.fusions import Lowering
from treadle.compiler.plan.arena import Arena, align
from treadle.compiler.plan.steps import Base, Location, Storage


class Memory:
    """What the planners of all regions share.

    Attributes:
      storage: where each value is that is in memory.
      constants: data in the constants block, by offset.
      constants_size: its size.
      outputs: the storage of each program result.
      aliases: for each output, the input whose memory it takes over, or -1.
      num_slots: pointers that loops change.
      in_memory: the rank-0 values that somebody reads from memory.
      lowering: the kernels of the program's fusions so far.
    """

    def __init__(self, program: Program):
        self.program = program
        self.arena = Arena()
        self.storage: dict[Value, Storage] = {}
        self.constants: list[tuple[int, Op]] = []
        self.constants_size = 0
        self.num_slots = 0
        self.in_memory = _scalars_in_memory(program)
        self.lowering = Lowering()
        for i, arg in enumerate(program.entry.args):
            self.storage[arg] = Storage(arg.type.byte_size, Location(Base.INPUT, i))
        self.outputs = [
            Storage(value.type.byte_size, Location(Base.OUTPUT, o)) for o, value in enumerate(program.entry.results)
        ]
        self.aliases = [-1] * len(self.outputs)
        self._donated: dict[int, list[int]] = {}  # arguments by size
        for i, declared in enumerate(program.inputs):
            if declared.donated:
                self._donated.setdefault(program.entry.args[i].type.byte_size, []).append(i)
        self._output_number = {storage: o for o, storage in enumerate(self.outputs)}

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
        """A free range of the scratch block."""
        offset = self.arena.allocate(size)
        return Storage(size, Location(Base.SCRATCH, 0, offset), True, ((offset, size),))

    def free(self, blocks: Iterable[tuple[int, int]]) -> None:
        """Gives ranges of the scratch block back."""
        for offset, size in blocks:
            self.arena.free(offset, size)

    def slot(self) -> int:
        """The number of a new pointer for a loop."""
        self.num_slots += 1
        return self.num_slots - 1

    # ---- the caller's memory -----------------------------------------------------------------------------------------

    def output_of(self, storage: Storage) -> int | None:
        """The number of the program result that `storage` is, or None."""
        return self._output_number.get(storage)

    def donor(self, output: int) -> int | None:
        """The donated argument whose memory `output` takes over: the one that asked for it, or one of its size."""
        size = self.outputs[output].size
        candidates = self._donated.get(size, [])
        for i in candidates:
            if self.program.inputs[i].alias == output:
                return None if i in self.aliases else i
        free = (i for i in candidates if self.program.inputs[i].alias == -1 and i not in self.aliases)
        return next(free, None) if size else None

    def pass_through(self, output: int, value: Value, held: Storage) -> bool:
        """Whether `value`, which is the result `output` and in `held`, needs no copy.

        A donated argument that is returned unchanged keeps its memory.
        """
        if value.type.byte_size == 0:
            return True
        if held.location.base is not Base.INPUT:
            return False
        i = held.location.number
        if not self.program.inputs[i].donated or i in self.aliases or self.aliases[output] != -1:
            return False
        self.aliases[output] = i
        return True


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
