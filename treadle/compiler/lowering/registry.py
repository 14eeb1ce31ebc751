"""The table of element rules: op name -> how one element of its result is computed.

To lower a new op, write one function and decorate it with `element_rule`. An op that cannot be given element by element
(a reduction, a scatter, a library call) has a rule of its own kind: see `fusion/classify.py` for the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from treadle.compiler.ir.core import Op
from treadle.compiler.loops.ir import Expr, Index

if TYPE_CHECKING:
    from treadle.compiler.lowering.context import Context

Coordinates = tuple[Index, ...]

# (context, op, result number, coordinates in that result, mask under which the element is needed) -> its value.
ElementRule = Callable[["Context", Op, int, Coordinates, "Expr | None"], Expr]
_R = TypeVar("_R", bound=ElementRule)

_ELEMENT_RULES: dict[str, ElementRule] = {}

# Ops with code of their own outside the element rules: nests (lowering/), library calls and control flow
# (codegen/main.py).
NEST_OPS = frozenset({"reduce", "reduce_window", "select_and_scatter", "scatter", "dynamic_update_slice"})
LIBRARY_OPS = frozenset({"dot_general", "convolution"})
CONTROL_OPS = frozenset({"while", "if", "case"})


def element_rule(*names: str) -> Callable[[_R], _R]:
    """Registers a rule for ops called `names`."""

    def register(rule: _R) -> _R:
        for name in names:
            assert name not in _ELEMENT_RULES, f"two element rules for {name}"
            _ELEMENT_RULES[name] = rule
        return rule

    return register


def find(name: str) -> ElementRule | None:
    """The element rule of op `name`, or None."""
    return _ELEMENT_RULES.get(name)


def all_ops() -> frozenset[str]:
    """Names of every tensor op that Treadle compiles."""
    return frozenset(_ELEMENT_RULES) | NEST_OPS | LIBRARY_OPS | CONTROL_OPS
