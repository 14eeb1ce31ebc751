"""The table of functions and the text of one of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Protocol

from treadle.compiler.codegen.math import atan, erf, exp, log, power, remainder, roots, trig
from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, Emitter, Value
from treadle.compiler.ir.types import F32, F64, DType


class HasFeatures(Protocol):
    """What is asked of a target here: whether the CPU has a feature, by LLVM's name for it."""

    def has(self, feature: str, /) -> bool:
        """Whether generated code may use `feature`."""


@dataclasses.dataclass(frozen=True, slots=True)
class MathFunction:
    """One function, ready to be put into a module.

    Attributes:
      symbol: its name, unique for (function, type, lanes, use of FMA).
      text: `define internal <L x T> @symbol(<L x T> %x0, ...)`, and before it what it alone calls.
      needs: `declare` lines, without duplicates, for what the text calls: LLVM intrinsics and
        names of the C maths library that the runtime's closed symbol table has.
      body: the lines that compute `result`, to be put where the function would be called; None when it has branches.
      result: the register that holds what the function returns.
    """

    symbol: str
    text: str
    needs: tuple[str, ...]
    body: str | None
    result: str


Builder = Callable[..., Value]

# StableHLO's name -> (number of operands, its body).
_TABLE: dict[str, tuple[int, Builder]] = {
    "exponential": (1, exp.exponential),
    "exponential_minus_one": (1, exp.exponential_minus_one),
    "log": (1, log.log),
    "log_plus_one": (1, log.log_plus_one),
    "logistic": (1, exp.logistic),
    "tanh": (1, exp.tanh),
    "sine": (1, trig.sine),
    "cosine": (1, trig.cosine),
    "tan": (1, trig.tan),
    "sqrt": (1, roots.sqrt),
    "rsqrt": (1, roots.rsqrt),
    "cbrt": (1, roots.cbrt),
    "power": (2, power.power),
    "atan2": (2, atan.atan2),
    "erf": (1, erf.erf),
    "remainder": (2, remainder.remainder),
}

NAMES: frozenset[str] = frozenset(_TABLE)

_ELEMENTS = {F32: FLOAT, F64: DOUBLE}


def math_function(name: str, dtype: DType, lanes: int, target: HasFeatures) -> MathFunction:
    """The function `name` on `lanes` lanes of f32 or f64; raises KeyError for any other."""
    return _make(name, dtype, lanes, target.has("fma"))


@functools.lru_cache(maxsize=1024)
def _make(name: str, dtype: DType, lanes: int, has_fma: bool) -> MathFunction:
    arity, body = _TABLE[name]
    element = _ELEMENTS[dtype]
    symbol = f"treadle.{name}.{dtype.name}x{lanes}" + ("" if has_fma else ".nofma")
    emitter = Emitter(symbol, lanes, has_fma)
    result = body(emitter, *(Value(emitter, element, f"%x{i}") for i in range(arity)))
    straight = None if emitter.helpers or emitter.has_branches else "\n".join(emitter.lines)
    return MathFunction(symbol, emitter.function(element, arity, result), emitter.needs(), straight, result.name)
