"""What the plan is made of: storage, and the steps of a region in execution order."""

from __future__ import annotations

import dataclasses
import enum

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.lowering.kernels import KernelCall


class Base(enum.Enum):
    """What a location is relative to."""

    INPUT = "a program argument"
    OUTPUT = "a program result"
    CONSTANT = "the constants block"
    SCRATCH = "the scratch block"
    SLOT = "a pointer that a loop changes from iteration to iteration"


@dataclasses.dataclass(frozen=True, slots=True)
class Location:
    """`number` of the argument, result or slot; `offset` in bytes."""

    base: Base
    number: int = 0
    offset: int = 0


class Storage:
    """A piece of memory that holds one value at a time.

    `location` may still change while the plan is made (a loop's buffer becomes a slot when its pointer turns out to be
    swapped), so steps hold the Storage itself.
    """

    __slots__ = ("_location", "blocks", "current", "mutable", "parent", "size", "values")

    def __init__(
        self,
        size: int,
        location: Location | Storage,
        mutable: bool = False,
        blocks: tuple[tuple[int, int], ...] = (),
    ):
        self.size = size
        # Another storage as location means: wherever that one turns out to be.
        self._location = location if isinstance(location, Location) else None
        self.parent = location if isinstance(location, Storage) else None
        self.mutable = mutable  # may be overwritten when its value is dead
        self.blocks = list(blocks)  # (offset, size) ranges of the arena given back when its value is dead
        self.values = 0  # live values that are here
        self.current: Storage | None = None  # for the alternate buffer of a loop's carry: the current one

    @property
    def location(self) -> Location:
        if self._location is not None:
            return self._location
        assert self.parent is not None
        return self.parent.location

    @location.setter
    def location(self, location: Location) -> None:
        self._location = location

    def origin(self) -> Storage:
        """The storage at the end of the parents."""
        return self if self.parent is None else self.parent.origin()


class Step:
    """Base of the steps."""

    __slots__ = ()


@dataclasses.dataclass(slots=True)
class KernelStep(Step):
    """Runs a kernel; one storage per parameter."""

    call: KernelCall
    arguments: list[Storage]
    op: Op


@dataclasses.dataclass(slots=True)
class CopyStep(Step):
    """Copies `size` bytes; does nothing when the two turn out to be the same memory."""

    source: Storage
    target: Storage
    size: int


@dataclasses.dataclass(slots=True)
class ScalarStep(Step):
    """Computes a rank-0 value in registers; `store` is where kernels find it, or None."""

    value: Value
    store: Storage | None


@dataclasses.dataclass(slots=True)
class LibraryStep(Step):
    """A runtime call: dot_general or convolution."""

    op: Op
    operands: list[Storage]
    result: Storage


@dataclasses.dataclass(slots=True)
class Carry:
    """One value carried by a loop.

    Attributes:
      initial: the operand.
      argument, condition_argument, next, result: the body's and condition's argument, the body's result, the op's
        result.
      scalar: kept in a register (rank 0); the `*_store`s are the copies in memory that kernels read, where needed.
      storage: its memory otherwise; None for an invariant, which stays where it is.
      first: where the current value is when the loop starts.
      blocks: ranges of the arena that the loop holds for it: they outlive every value of the body.
      swap: (slot of the current pointer, slot of the other pointer, where the other one starts), when the body writes
        the next value beside the current one.
    """

    initial: Value
    argument: Value
    condition_argument: Value
    next: Value
    result: Value
    scalar: bool = False
    argument_store: Storage | None = None
    condition_store: Storage | None = None
    result_store: Storage | None = None
    storage: Storage | None = None
    first: Storage | None = None
    blocks: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    swap: tuple[int, int, Location] | None = None


@dataclasses.dataclass(slots=True)
class LoopStep(Step):
    """while: `condition` steps and value, then `body` steps, until the condition is false."""

    op: Op
    carries: list[Carry]
    condition: list[Step]
    body: list[Step]


@dataclasses.dataclass(slots=True)
class BranchStep(Step):
    """if and case: each branch's steps end with its array results in place; rank-0 results are merged in registers."""

    op: Op
    branches: list[list[Step]]
    scalar_results: list[tuple[Value, Storage | None]]


@dataclasses.dataclass(slots=True)
class Plan:
    """The whole program, ready for code generation.

    Attributes:
      steps: in order.
      storage: where each value is that is in memory.
      constants: data to lay out in the constants block, by offset.
      constants_size: its size.
      scratch_size: bytes of temporaries.
      aliases: for each output, the input whose memory it takes over, or -1.
      num_slots: how many loop pointers there are.
    """

    steps: list[Step]
    storage: dict[Value, Storage]
    constants: list[tuple[int, Op]]
    constants_size: int
    scratch_size: int
    aliases: list[int]
    num_slots: int
