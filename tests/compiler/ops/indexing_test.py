"""Reads and writes at computed places against jaxlib's CPU backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.ops.attributes import gather_attributes, scatter_attributes
from tests.compiler.ops.checking import RNG, check, region, second, values
from treadle.compiler.ir.core import Value
from treadle.compiler.ir.types import BF16, F32, S8, S32, S64, U8, U32, DType, TensorType
from treadle.compiler.ops.build import Builder


@pytest.mark.parametrize("index", [S32, U8, S64, U32], ids=repr)
def test_dynamic_slices(index: DType) -> None:
    t, u, scalar = TensorType(F32, (4, 6)), TensorType(F32, (2, 3)), TensorType(index, ())
    starts = [0, 1, 3, 5, 100] + ([-1, -100] if index.is_signed else [])

    def build(b: Builder, x: Value, y: Value, i: Value, j: Value) -> list[Value]:
        return [
            b.op("dynamic_slice", x, i, j, slice_sizes=(2, 3)),
            b.op("dynamic_slice", x, j, i, slice_sizes=(4, 1)),
            b.op("dynamic_update_slice", x, y, i, j),
        ]

    for i in starts:
        inputs = [values(t), values(u), np.asarray(i, index.numpy), np.asarray(starts[-1], index.numpy)]
        check([t, u, scalar, scalar], build, inputs)


GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (8, 3),
        (5, 1),
        {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "slice_sizes": (1, 3)},
    ),
    ((8, 3), (5,), {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "slice_sizes": (1, 3)}),
    ((8, 3), (5, 1), {"offset_dims": (0, 1), "start_index_map": (0,), "slice_sizes": (2, 3)}),
    ((8, 3), (2, 4, 2), {"collapsed_slice_dims": (0, 1), "start_index_map": (1, 0), "slice_sizes": (1, 1)}),
    (
        (4, 8, 3),
        (4, 5, 1),
        {
            "offset_dims": (2,),
            "collapsed_slice_dims": (1,),
            "start_index_map": (1,),
            "slice_sizes": (1, 1, 3),
            "operand_batching_dims": (0,),
            "start_indices_batching_dims": (0,),
        },
    ),
    (
        (8, 3),
        (2, 4),
        {
            "offset_dims": (0,),
            "collapsed_slice_dims": (1,),
            "start_index_map": (0, 1),
            "slice_sizes": (2, 1),
            "index_vector_dim": 0,
        },
    ),
]


@pytest.mark.parametrize("index", [S32, U32, S8], ids=repr)
@pytest.mark.parametrize("case", range(len(GATHERS)))
def test_gather(case: int, index: DType) -> None:
    operand, indices, given = GATHERS[case]
    attrs = gather_attributes(indices, given)
    low = 0 if index is U32 else -3
    places = RNG.integers(low, 11, indices).astype(index.numpy)
    x, i = TensorType(F32, operand), TensorType(index, indices)
    check([x, i], lambda b, v, w: b.op("gather", v, w, **attrs), [values(x), places])


# operand, indices, updates, attributes
SCATTERS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (8, 3),
        (6, 1),
        (6, 3),
        {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)},
    ),
    ((8, 3), (6, 1), (2, 3, 6), {"update_window_dims": (0, 1), "scatter_dims_to_operand_dims": (0,)}),
    ((8, 3), (6, 1), (2, 6, 3), {"update_window_dims": (0, 2), "scatter_dims_to_operand_dims": (0,)}),
    ((8, 3), (2, 6, 2), (2, 6), {"inserted_window_dims": (0, 1), "scatter_dims_to_operand_dims": (1, 0)}),
    ((8,), (1,), (1,), {"update_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}),
    (
        (4, 8, 3),
        (4, 5, 1),
        (4, 5, 3),
        {
            "update_window_dims": (2,),
            "inserted_window_dims": (1,),
            "scatter_dims_to_operand_dims": (1,),
            "input_batching_dims": (0,),
            "scatter_indices_batching_dims": (0,),
        },
    ),
]


@pytest.mark.parametrize("dtype", [F32, BF16, S32], ids=repr)
@pytest.mark.parametrize("case", range(len(SCATTERS)))
def test_scatter(case: int, dtype: DType) -> None:
    operand, indices, updates, given = SCATTERS[case]
    attrs = scatter_attributes(indices, given)
    places = RNG.integers(-2, 10, indices).astype(np.int32)
    x, i, u = TensorType(dtype, operand), TensorType(S32, indices), TensorType(dtype, updates)
    combiners = [region(dtype, n) for n in ("add", "maximum", "multiply", "subtract")]

    def build(b: Builder, v: Value, w: Value, y: Value) -> list[Value]:
        return [b.op("scatter", v, w, y, regions=[r], **attrs) for r in combiners]

    check([x, i, u], build, [values(x), places, values(u)])
    if case == 0:  # without two updates to one place, whose order is nobody's business
        unique = RNG.permutation(np.arange(-2, 10))[:6].reshape(indices)

        def assign(b: Builder, v: Value, w: Value, y: Value) -> Value:
            return b.op("scatter", v, w, y, regions=[second(dtype)], **attrs)

        check([x, i, u], assign, [values(x), unique.astype(np.int32), values(u)])
