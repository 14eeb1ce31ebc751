"""Which StableHLO ops the frontend takes, and which of their attributes the IR keeps.

One row per op. An op that is not here is reported as unsupported. A row is a tuple of attributes;
each is read by its StableHLO name and always present in the IR, with StableHLO's default written
out. Attributes that are not named here (precision, accuracy, layouts, shardings on one device)
do not change what Treadle computes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.compiler.ir.types import TensorType

# From an op's operand types to the value of an attribute that the op leaves out.
Default = Callable[[Sequence[TensorType]], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of an op.

    Attributes:
      name: StableHLO's and the IR's name.
      default: the value when it is absent, from the operand types; None if it cannot be.
      binding: jaxlib's class for it, where it is StableHLO's own enum or struct. A struct's fields
        become attributes themselves.
    """

    name: str
    default: Default | None = None
    binding: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class OpRule:
    """How one op is converted.

    Attributes:
      attributes: what the IR keeps.
      regions: how many regions the op has; they are converted in order.
    """

    attributes: tuple[Attribute, ...] = ()
    regions: int = 0


def _ones(operands: Sequence[TensorType]) -> tuple[int, ...]:
    return (1,) * operands[0].rank


def _no_padding(operands: Sequence[TensorType]) -> tuple[tuple[int, int], ...]:
    return ((0, 0),) * operands[0].rank


def _spatial_ones(operands: Sequence[TensorType]) -> tuple[int, ...]:
    return (1,) * (operands[0].rank - 2)


def _spatial_no_padding(operands: Sequence[TensorType]) -> tuple[tuple[int, int], ...]:
    return ((0, 0),) * (operands[0].rank - 2)


def _spatial_false(operands: Sequence[TensorType]) -> tuple[bool, ...]:
    return (False,) * (operands[0].rank - 2)


def _compare_type(operands: Sequence[TensorType]) -> str:
    """What StableHLO compares by when the op does not say."""
    dtype = operands[0].dtype
    if dtype.is_float or dtype.is_complex:
        return "FLOAT"
    return "SIGNED" if dtype.is_signed else "UNSIGNED"


def _false(_: Sequence[TensorType]) -> bool:
    return False


def _rule(*attributes: str | Attribute, regions: int = 0) -> OpRule:
    return OpRule(tuple(Attribute(a) if isinstance(a, str) else a for a in attributes), regions)


# Ops without attributes whose result has the operands' shape, element by element.
ELEMENTWISE = (
    "abs",
    "add",
    "and",
    "atan2",
    "cbrt",
    "ceil",
    "clamp",
    "convert",
    "cosine",
    "count_leading_zeros",
    "divide",
    "exponential",
    "exponential_minus_one",
    "floor",
    "is_finite",
    "log",
    "log_plus_one",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "power",
    "remainder",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sine",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "xor",
    "split",
)

RULES: Mapping[str, OpRule] = {
    **{name: _rule() for name in ELEMENTWISE},
    "bitcast_convert": _rule(),
    "broadcast_in_dim": _rule("broadcast_dimensions"),
    "case": _rule(regions=-1),
    "compare": _rule(
        Attribute("comparison_direction", binding="ComparisonDirectionAttr"),
        Attribute("compare_type", _compare_type, "ComparisonTypeAttr"),
    ),
    "concatenate": _rule("dimension"),
    "convolution": _rule(
        Attribute("dimension_numbers", binding="ConvDimensionNumbers"),
        Attribute("window_strides", _spatial_ones),
        Attribute("padding", _spatial_no_padding),
        Attribute("lhs_dilation", _spatial_ones),
        Attribute("rhs_dilation", _spatial_ones),
        Attribute("window_reversal", _spatial_false),
        "feature_group_count",
        "batch_group_count",
    ),
    "dot_general": _rule(Attribute("dot_dimension_numbers", binding="DotDimensionNumbers")),
    "dynamic_slice": _rule("slice_sizes"),
    "dynamic_update_slice": _rule(),
    "gather": _rule(
        Attribute("dimension_numbers", binding="GatherDimensionNumbers"),
        "slice_sizes",
        Attribute("indices_are_sorted", _false),
    ),
    "if": _rule(regions=2),
    "iota": _rule("iota_dimension"),
    "optimization_barrier": _rule(),
    "pad": _rule("edge_padding_low", "edge_padding_high", "interior_padding"),
    "reduce": _rule("dimensions", regions=1),
    "reduce_precision": _rule("exponent_bits", "mantissa_bits"),
    "reduce_window": _rule(
        "window_dimensions",
        Attribute("window_strides", _ones),
        Attribute("base_dilations", _ones),
        Attribute("window_dilations", _ones),
        Attribute("padding", _no_padding),
        regions=1,
    ),
    "reshape": _rule(),
    "reverse": _rule("dimensions"),
    "scatter": _rule(
        Attribute("scatter_dimension_numbers", binding="ScatterDimensionNumbers"),
        Attribute("indices_are_sorted", _false),
        Attribute("unique_indices", _false),
        regions=1,
    ),
    "select_and_scatter": _rule(
        Attribute("window_dimensions", _ones),
        Attribute("window_strides", _ones),
        Attribute("padding", _no_padding),
        regions=2,
    ),
    "slice": _rule("start_indices", "limit_indices", "strides"),
    "transpose": _rule("permutation"),
    "while": _rule(regions=2),
}
