"""Products and convolutions against jaxlib's CPU backend."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiler.ops.attributes import convolution_attributes
from tests.compiler.ops.checking import check
from treadle.compiler.ir.types import BF16, BY_NAME, F32, F64, S32, DType, TensorType

DOTS = [
    ((3, 4), (4, 5), (), (), (1,), (0,)),
    ((2, 3, 4), (2, 5, 4), (0,), (0,), (2,), (2,)),
    ((3, 2, 4), (4, 2, 3), (1,), (1,), (0, 2), (2, 0)),
    ((2, 6, 3, 4), (4, 2, 5), (0,), (1,), (3,), (0,)),
    ((4,), (4,), (), (), (0,), (0,)),
    ((3,), (4,), (), (), (), ()),
]


@pytest.mark.parametrize(
    ("operand", "result"),
    [("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("s8", "s32"), ("s64", "s64")],
)
def test_dot_general(operand: str, result: str) -> None:
    for lhs, rhs, lhs_batch, rhs_batch, lhs_sum, rhs_sum in DOTS:
        x, y = TensorType(BY_NAME[operand], lhs), TensorType(BY_NAME[operand], rhs)
        lhs_free = [n for d, n in enumerate(lhs) if d not in (*lhs_batch, *lhs_sum)]
        rhs_free = [n for d, n in enumerate(rhs) if d not in (*rhs_batch, *rhs_sum)]
        shape = (*(lhs[d] for d in lhs_batch), *lhs_free, *rhs_free)
        attrs = {
            "lhs_batching_dimensions": lhs_batch,
            "rhs_batching_dimensions": rhs_batch,
            "lhs_contracting_dimensions": lhs_sum,
            "rhs_contracting_dimensions": rhs_sum,
        }
        types = [TensorType(BY_NAME[result], shape)]
        check([x, y], lambda b, v, w, t=types, a=attrs: b.op("dot_general", v, w, types=t, **a), atol=1e-300)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 6, 7, 3), (3, 2, 3, 4), {}),
    ((2, 6, 7, 3), (3, 3, 3, 4), {"padding": ((1, 1), (0, 2)), "window_strides": (2, 1)}),
    ((2, 6, 7, 3), (2, 2, 3, 4), {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2), "padding": ((1, 0), (-1, 1))}),
    ((2, 6, 7, 4), (3, 3, 2, 6), {"feature_group_count": 2}),
    ((4, 6, 7, 3), (3, 3, 3, 6), {"batch_group_count": 2}),
    ((2, 6, 7, 3), (3, 2, 3, 4), {"window_reversal": (True, False)}),
    (
        (3, 6, 7, 2),
        (4, 3, 2, 3),
        {
            "input_batch_dimension": 3,
            "input_feature_dimension": 0,
            "kernel_input_feature_dimension": 3,
            "kernel_output_feature_dimension": 0,
            "kernel_spatial_dimensions": (1, 2),
            "output_batch_dimension": 2,
            "output_feature_dimension": 0,
            "output_spatial_dimensions": (3, 1),
        },
    ),
]


@pytest.mark.parametrize("dtype", [F32, F64, BF16, S32], ids=repr)
def test_convolution(dtype: DType) -> None:
    for lhs, rhs, changes in CONVOLUTIONS:
        attrs = convolution_attributes(**changes)
        check(
            [TensorType(dtype, lhs), TensorType(dtype, rhs)],
            lambda b, x, y, a=attrs: b.op("convolution", x, y, **a),
            atol=0.01 if dtype is F32 else 0.0,
        )
