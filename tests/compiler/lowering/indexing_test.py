"""Coordinates that come from data: clamped where they are read, dropped where they are written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.lowering.running import check_element, check_fused
from tests.compiler.ops.checking import region, second, values
from treadle.compiler.ir.core import Region
from treadle.compiler.ir.types import F32, S8, S32, S64, U32, U64, TensorType
from treadle.compiler.ops.build import Builder

EXAMPLES = settings(max_examples=80, deadline=None)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)
INDEX_TYPES = st.sampled_from([S32, S64, U32, S8, U64])


def t(*shape):
    return TensorType(F32, tuple(shape))


def integers(data, dtype, shape, low=-3, high=6):
    """Indices of which some lie outside, some very far."""
    size = int(np.prod(shape))
    info = np.iinfo(dtype.numpy)
    one = st.one_of(st.integers(max(low, int(info.min)), high), st.sampled_from([int(info.min), int(info.max)]))
    return np.array(data.draw(st.lists(one, min_size=size, max_size=size)), dtype.numpy).reshape(shape)


@EXAMPLES
@given(st.data(), SHAPES, INDEX_TYPES)
def test_dynamic_slice(data, shape, dtype):
    sizes = tuple(data.draw(st.integers(0, n)) for n in shape)
    starts = [integers(data, dtype, ()) for _ in shape]
    types = [t(*shape), *[TensorType(dtype, ())] * len(shape)]

    def build(b, x, *at):
        return b.op("dynamic_slice", x, *at, slice_sizes=sizes)

    inputs = [values(types[0]), *starts]
    check_element(types, build, inputs)
    check_fused(types, build, inputs)


@EXAMPLES
@given(st.data(), SHAPES, INDEX_TYPES)
def test_dynamic_update_slice(data, shape, dtype):
    sizes = [data.draw(st.integers(0, n)) for n in shape]
    starts = [integers(data, dtype, ()) for _ in shape]
    types = [t(*shape), t(*sizes), *[TensorType(dtype, ())] * len(shape)]

    def build(b, x, update, *at):
        return b.op("dynamic_update_slice", x, update, *at)

    def worked(b, x, update, *at):
        changed = b.op("dynamic_update_slice", b.op("sine", x), b.op("negate", update), *at)
        return [changed, b.op("add", changed, x)]

    inputs = [values(types[0]), values(types[1]), *starts]
    check_element(types, build, inputs)
    check_fused(types, build, inputs, ["update"])
    check_fused(types, worked, inputs)


class Numbers:
    """Random dimension numbers of a gather or scatter.

    Attributes:
      operand: its shape.
      indices: theirs.
      result: the shape of the gather's result, or of the scatter's updates.
      window: dimensions of `result` along the window.
      left_out: operand dimensions without one in `result`.
      batching: (of the operand, of the indices).
      index_map: operand dimension of each component of an index vector.
      vector_dim: the dimension of `indices` along index vectors.
      sizes: the window's extent in each operand dimension.
    """

    def __init__(self, data):
        draw = data.draw
        rank = draw(st.integers(1, 4))
        self.operand = [draw(st.integers(1, 4)) for _ in range(rank)]
        batch_rank = draw(st.integers(0, 2))
        batch = [draw(st.integers(0 if rank > 1 else 1, 3)) for _ in range(batch_rank)]
        order = list(draw(st.permutations(range(rank))))
        pairs = min(draw(st.integers(0, 2)), batch_rank, rank - 1)
        self.batching = (sorted(order[:pairs]), list(draw(st.permutations(range(batch_rank)))[:pairs]))
        for d, i in zip(*self.batching, strict=True):
            batch[i] = self.operand[d]
        rest = order[pairs:]
        self.index_map = tuple(rest[: draw(st.integers(0 if batch_rank else 1, len(rest)))])
        self.vector_dim = draw(st.integers(0, batch_rank))
        scalars = len(self.index_map) == 1 and draw(st.booleans())
        self.indices = list(batch)
        if scalars:
            self.vector_dim = batch_rank
        else:
            self.indices.insert(self.vector_dim, len(self.index_map))
            self.batching = (self.batching[0], [i + (i >= self.vector_dim) for i in self.batching[1]])
        collapsed = [d for d in rest if draw(st.booleans())]
        self.sizes = []
        for d, n in enumerate(self.operand):
            if d in collapsed or d in self.batching[0]:
                self.sizes.append(1)
            else:
                self.sizes.append(draw(st.integers(0, n)) if d in self.index_map else draw(st.integers(1, n)))
        self.collapsed = tuple(sorted(collapsed))
        kept = [n for d, n in enumerate(self.sizes) if d not in collapsed and d not in self.batching[0]]
        total = len(batch) + len(kept)
        self.window = tuple(sorted(draw(st.permutations(range(total)))[: len(kept)]))
        places, batch_left, kept_left = [], iter(batch), iter(kept)
        for d in range(total):
            places.append(next(kept_left) if d in self.window else next(batch_left))
        self.result = places


@settings(max_examples=200, deadline=None)
@given(st.data(), INDEX_TYPES)
def test_gather(data, dtype):
    n = Numbers(data)
    types = [t(*n.operand), TensorType(dtype, tuple(n.indices))]
    attrs = {
        "offset_dims": n.window,
        "collapsed_slice_dims": n.collapsed,
        "operand_batching_dims": tuple(n.batching[0]),
        "start_indices_batching_dims": tuple(n.batching[1]),
        "start_index_map": n.index_map,
        "index_vector_dim": n.vector_dim,
        "slice_sizes": tuple(n.sizes),
        "indices_are_sorted": False,
    }

    def build(b, x, indices):
        return b.op("gather", x, indices, **attrs)

    inputs = [values(types[0]), integers(data, dtype, n.indices)]
    check_element(types, build, inputs)
    check_fused(types, build, inputs)


@settings(max_examples=200, deadline=None)
@given(st.data(), INDEX_TYPES, st.sampled_from(["add", "replace", "multiply", "maximum"]))
def test_scatter(data, dtype, how):
    n = Numbers(data)
    types = [t(*n.operand), TensorType(dtype, tuple(n.indices)), t(*n.result)]
    attrs = {
        "update_window_dims": n.window,
        "inserted_window_dims": n.collapsed,
        "input_batching_dims": tuple(n.batching[0]),
        "scatter_indices_batching_dims": tuple(n.batching[1]),
        "scatter_dims_to_operand_dims": n.index_map,
        "index_vector_dim": n.vector_dim,
        "indices_are_sorted": False,
        "unique_indices": False,
    }

    def build(b, x, indices, updates):
        combiner = second(F32) if how == "replace" else region(F32, how)
        return b.op("scatter", x, indices, updates, regions=[combiner], **attrs)

    inputs = [values(types[0]), integers(data, dtype, n.indices), values(types[2])]
    check_fused(types, build, inputs, ["scatter"])


ROWS = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "input_batching_dims": (),
    "scatter_indices_batching_dims": (),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
    "indices_are_sorted": False,
}


@pytest.mark.parametrize("unique", [False, True])
def test_a_scatter_computes_its_updates_and_indices(unique):
    def build(b, x, indices, updates):
        one = b.constant(np.int32(1), (3, 1))
        return b.op(
            "scatter",
            b.op("negate", x),
            b.op("add", indices, one),
            b.op("multiply", updates, updates),
            regions=[region(F32, "add")],
            unique_indices=unique,
            **ROWS,
        )

    types = [t(5, 4), TensorType(S32, (3, 1)), t(3, 4)]
    inputs = [values(types[0]), np.array([[3], [-1], [9]], np.int32), values(types[2])]
    check_fused(types, build, inputs)


def test_a_scatter_of_two_arrays_that_replaces_in_one_and_adds_in_the_other():
    def build(b, x, y, indices, first, second_update):
        both = Region([t()] * 4)
        old_x, old_y, new_x, new_y = both.args
        inner = Builder(both)
        both.results = [new_x, inner.op("add", old_y, inner.op("multiply", new_y, old_x))]
        return b.ops("scatter", x, y, indices, first, second_update, regions=[both], unique_indices=False, **ROWS)

    types = [t(5, 3), t(5, 3), TensorType(S32, (4, 1)), t(4, 3), t(4, 3)]
    inputs = [values(x) for x in types]
    inputs[2] = np.array([[1], [3], [1], [5]], np.int32)
    check_fused(types, build, inputs, ["scatter"])
