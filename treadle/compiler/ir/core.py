"""Treadle's tensor IR: a small SSA form of plain Python objects.

A `Program` has one entry `Region`. A `Region` is a straight line of ops with arguments and results; there are no basic
blocks. Structured control flow (`while`, `case`) and combiners (`reduce`, `scatter`, ...) hold nested regions. An op's
name is StableHLO's without the dialect prefix; its attributes are plain Python values. A nested region may use values
of the regions around it only in control-flow ops; combiner regions are closed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from treadle.compiler.ir.types import TensorType

# What an attribute may be: int, float, bool, str, None, tuples of these, numpy.ndarray (constants).
Attr = object


@dataclasses.dataclass(frozen=True, slots=True)
class Location:
    """Where in the user's program an op came from.

    Attributes:
      name: JAX's name stack ("jit(f)/add"), or "".
      file: source file of the innermost user frame, or "".
      line: its line, or 0.
    """

    name: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        if self.name and place:
            return f"{self.name} at {place}"
        return self.name or place or "unknown location"


UNKNOWN_LOCATION = Location()


class Value:
    """One SSA value: an op's result or a region's argument. Compared by identity."""

    __slots__ = ("index", "op", "type")

    def __init__(self, type: TensorType, op: Op | None = None, index: int = 0):
        self.type = type
        self.op = op  # None for a region argument
        self.index = index  # position among the op's results or the region's arguments

    def __repr__(self) -> str:
        return f"<{'arg' if self.op is None else self.op.name}#{self.index} {self.type}>"


class Op:
    """One operation. `attrs` is owned by the op; `operands` may be edited by passes."""

    __slots__ = ("attrs", "loc", "name", "operands", "regions", "results")

    def __init__(
        self,
        name: str,
        operands: Sequence[Value],
        result_types: Sequence[TensorType],
        attrs: Mapping[str, Attr] | None = None,
        regions: Sequence[Region] = (),
        loc: Location = UNKNOWN_LOCATION,
    ):
        self.name = name
        self.operands: list[Value] = list(operands)
        self.attrs: dict[str, Attr] = dict(attrs) if attrs else {}
        self.regions: list[Region] = list(regions)
        self.results: list[Value] = [Value(t, self, i) for i, t in enumerate(result_types)]
        self.loc = loc

    @property
    def result(self) -> Value:
        """The only result; raises ValueError when there are several."""
        (only,) = self.results
        return only

    def __repr__(self) -> str:
        return f"<op {self.name} {[str(r.type) for r in self.results]}>"


class Region:
    """Arguments, ops in execution order, and the values it yields."""

    __slots__ = ("args", "ops", "results")

    def __init__(self, arg_types: Sequence[TensorType] = ()):
        self.args: list[Value] = [Value(t, None, i) for i, t in enumerate(arg_types)]
        self.ops: list[Op] = []
        self.results: list[Value] = []

    def append(self, op: Op) -> Op:
        self.ops.append(op)
        return op

    def walk(self) -> Iterator[Op]:
        """Every op, nested ones after the op that holds them."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


@dataclasses.dataclass(slots=True)
class Input:
    """What the caller says of one program argument.

    Attributes:
      donated: the caller gives the buffer away.
      alias: the output that must take over its memory (`tf.aliasing_output`), or -1.
      sharding: serialized OpSharding or b"".
      memory_kind: "" for the default.
    """

    donated: bool = False
    alias: int = -1
    sharding: bytes = b""
    memory_kind: str = ""


@dataclasses.dataclass(slots=True)
class Output:
    """What the caller says of one program result: see `Input`."""

    sharding: bytes = b""
    memory_kind: str = ""


@dataclasses.dataclass(slots=True)
class Program:
    """A whole module after import: everything is inlined into one entry region."""

    name: str
    entry: Region
    inputs: list[Input]
    outputs: list[Output]
    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: tuple[int, ...] = (0,)


def replace_uses(region: Region, mapping: Mapping[Value, Value]) -> None:
    """Rewrites uses of keys of `mapping`, in `region` and all regions inside it, to their values; follows chains."""

    def final(value: Value) -> Value:
        while value in mapping:
            value = mapping[value]
        return value

    def visit(r: Region) -> None:
        for op in r.ops:
            op.operands = [final(v) for v in op.operands]
            for inner in op.regions:
                visit(inner)
        r.results = [final(v) for v in r.results]

    visit(region)


def clone_region(region: Region, outer: Mapping[Value, Value] | None = None) -> Region:
    """A deep copy. Values of enclosing regions are mapped through `outer` where present and kept otherwise."""
    env: dict[Value, Value] = dict(outer or {})
    copy = Region([a.type for a in region.args])
    env.update(zip(region.args, copy.args, strict=True))
    for op in region.ops:
        new = copy.append(clone_op(op, env))
        env.update(zip(op.results, new.results, strict=True))
    copy.results = [env.get(v, v) for v in region.results]
    return copy


def clone_op(op: Op, env: Mapping[Value, Value]) -> Op:
    """A copy of `op` with operands (and values captured by its regions) mapped through `env`."""
    return Op(
        op.name,
        [env.get(v, v) for v in op.operands],
        [r.type for r in op.results],
        op.attrs,
        [clone_region(r, env) for r in op.regions],
        op.loc,
    )


def captured_values(op: Op) -> list[Value]:
    """Values of enclosing regions that the op's regions use, in order of first use, without its operands."""
    seen: dict[Value, None] = {}

    def visit(region: Region, bound: set[Value]) -> None:
        bound = bound | set(region.args)
        for inner in region.ops:
            for v in inner.operands:
                if v not in bound:
                    seen.setdefault(v)
            for r in inner.regions:
                visit(r, bound)
            bound.update(inner.results)
        for v in region.results:
            if v not in bound:
                seen.setdefault(v)

    for region in op.regions:
        visit(region, set())
    return list(seen)
