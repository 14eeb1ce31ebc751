"""What an op is: its type rule and its meaning, in one place per op.

A file of this package defines one family of ops by decorating their NumPy meaning with `define` or `elementwise`.
Everything else asks here: the verifier for type rules, the interpreter for values, the passes for properties, and the
coverage gate for the list of names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import Op, Region
from treadle.compiler.ir.types import TensorType

Array = npt.NDArray[Any]


class Context(Protocol):
    """What the interpreter gives to an op's meaning: a way to run the op's regions."""

    def run(self, region: Region, args: Sequence[Array]) -> list[Array]:
        """Runs a region that may use values of the regions around it."""

    def combine(self, region: Region, args: Sequence[Array]) -> list[Array]:
        """Applies a closed region on scalars to arrays of one shape, element by element."""


Infer = Callable[[Op], Sequence[TensorType]]
Interpret = Callable[[Op, list[Array], Context], Sequence[Array]]
Apply = Callable[..., Any]


@dataclasses.dataclass(frozen=True, slots=True)
class OpDef:
    """One op.

    Attributes:
      name: StableHLO's name without the dialect prefix.
      infer: result types from operands, attributes and regions; raises IrError when they do not fit. Where the result's
        shape or dtype is free (`reshape`, `convert`, ...) it is read from the op's results, which must then be there.
      interpret: the meaning, on arrays whose shapes and dtypes are those of the operands.
      apply: for elementwise ops, `apply(op, *arrays)`, which also works on arrays of any one shape; None for others.
      commutative: operands may be swapped without changing any result, NaN payloads aside.
      control_flow: the regions may use values of the regions around the op.
      infers_result: the result types follow from the rest of the op.
      side_effect: must run even when nothing uses its results.
    """

    name: str
    infer: Infer
    interpret: Interpret
    apply: Apply | None = None
    commutative: bool = False
    control_flow: bool = False
    infers_result: bool = True
    side_effect: bool = False


_REGISTRY: dict[str, OpDef] = {}


def _add(definition: OpDef) -> None:
    if definition.name in _REGISTRY:
        raise ValueError(f"op {definition.name!r} is defined twice")
    _REGISTRY[definition.name] = definition


def define(
    name: str,
    infer: Infer,
    *,
    control_flow: bool = False,
    infers_result: bool = True,
    side_effect: bool = False,
) -> Callable[[Interpret], Interpret]:
    """Registers the decorated function as the meaning of op `name`."""

    def decorate(interpret: Interpret) -> Interpret:
        definition = OpDef(
            name,
            infer,
            interpret,
            control_flow=control_flow,
            infers_result=infers_result,
            side_effect=side_effect,
        )
        _add(definition)
        return interpret

    return decorate


def elementwise(
    name: str, infer: Infer, *, commutative: bool = False, infers_result: bool = True
) -> Callable[[Apply], Apply]:
    """Registers the decorated `apply(op, *arrays)` as the meaning of the elementwise op `name`."""

    def decorate(apply: Apply) -> Apply:
        def interpret(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:  # noqa: ARG001
            return (np.asarray(apply(op, *inputs)),)

        definition = OpDef(name, infer, interpret, apply=apply, commutative=commutative, infers_result=infers_result)
        _add(definition)
        return apply

    return decorate


def find(name: str) -> OpDef | None:
    """The definition of op `name`, or None."""
    return _REGISTRY.get(name)


def get(op: Op) -> OpDef:
    """The definition of `op`; raises IrError when there is none."""
    definition = _REGISTRY.get(op.name)
    if definition is None:
        raise IrError(f"{op.name}: no such op in Treadle's IR; the names are StableHLO's, see ops/registry.py", op.loc)
    return definition


def all_ops() -> tuple[str, ...]:
    """The names of all ops, sorted: what the coverage gate of tests and lowering counts."""
    return tuple(sorted(_REGISTRY))


def fail(op: Op, problem: str) -> NoReturn:
    """Raises the IrError of a broken type rule: the op with its operand types, and what is wrong."""
    operands = ", ".join(str(v.type) for v in op.operands)
    raise IrError(f"{op.name}({operands}): {problem}", op.loc)


def require(condition: bool, op: Op, problem: str) -> None:
    """Fails with `problem` unless `condition` holds. For messages that cost nothing to build."""
    if not condition:
        fail(op, problem)


def attr(op: Op, name: str) -> Any:
    """The attribute `name`; IrError when it is missing."""
    try:
        return op.attrs[name]
    except KeyError:
        fail(op, f"attribute {name!r} is missing; it has {sorted(op.attrs)}")


def operand_count(op: Op, count: int) -> None:
    """Fails unless `op` has `count` operands."""
    if len(op.operands) != count:
        fail(op, f"expected {count} operands, got {len(op.operands)}")


def region_count(op: Op, count: int) -> None:
    """Fails unless `op` has `count` regions."""
    if len(op.regions) != count:
        fail(op, f"expected {count} regions, got {len(op.regions)}")


def verify(op: Op) -> None:
    """Checks the op's own types: its rule must infer what its results say. Regions' insides are not visited."""
    inferred = get(op).infer(op)
    if len(inferred) != len(op.results):
        fail(op, f"expected {len(inferred)} results, got {len(op.results)}")
    for i, (want, result) in enumerate(zip(inferred, op.results, strict=True)):
        if want != result.type:
            which = "result" if len(inferred) == 1 else f"result {i}"
            fail(op, f"expected {which} of type {want}, got {result.type}")
