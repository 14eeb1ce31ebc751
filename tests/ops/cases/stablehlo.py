"""Operations of StableHLO that JAX has no function for: primitives made here put them into a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax.extend import core
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from tests.ops.harness import F32, FLOATS, PRED, Case, Inputs, draw, values

SHAPE = (3, 43)


def primitive(name: str, like: int, lower: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays that becomes what `lower` builds; its result has the type of argument number `like`."""
    made = core.Primitive(name)
    made.def_abstract_eval(lambda *arguments: arguments[like])
    mlir.register_lowering(made, lower)
    bind: Callable[..., Any] = made.bind
    return bind


logistic = primitive("stablehlo_logistic", 0, lambda _, x: [stablehlo.logistic(x)])


def _lower_if(_: Any, predicate: Any, x: Any, y: Any) -> Any:
    branch = stablehlo.IfOp([x.type], predicate)
    for region, build in zip(branch.regions, (stablehlo.add, stablehlo.multiply), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            stablehlo.return_([build(x, y)])
    return branch.results


add_if = primitive("stablehlo_if", 1, _lower_if)


def then_arrays(flag: bool) -> Inputs:
    """The predicate, then two random arrays."""
    return lambda generator: [np.bool_(flag), draw(generator, F32, SHAPE), draw(generator, F32, SHAPE)]


def _cases() -> Iterator[Case]:
    for dtype in FLOATS:
        yield Case(f"stablehlo-logistic-{dtype}", logistic, values((dtype, SHAPE, -12, 12)), eager=False)
    for flag in (True, False):
        yield Case(
            f"stablehlo-if-{flag}",
            add_if,
            then_arrays(flag),
            eager=False,
            quick=True,
        )
    yield Case("stablehlo-if", add_if, values((PRED, ()), *[(F32, SHAPE)] * 2), eager=False)


CASES = [*_cases()]
