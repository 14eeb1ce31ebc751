"""Row fusions: several reductions over a row and what is between them, in one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.lowering.running import check_fused
from tests.compiler.ops.checking import region
from treadle.compiler.ir.types import BF16, F32, TensorType
from treadle.compiler.lowering import nests_row

# Shorter reductions are written out.
ROWS = st.sampled_from([9, 10, 12])
OUTER = st.lists(st.integers(1, 3), max_size=2)


def t(*shape, dtype=F32):
    return TensorType(dtype, tuple(shape))


class Rows:
    """Builds ops on rows: the last `rank` dimensions of `shape`."""

    def __init__(self, b, shape, rank, dtype=F32):
        self.b, self.shape, self.dtype = b, tuple(shape), dtype
        self.outer = len(shape) - rank
        self.dims = tuple(range(self.outer, len(shape)))

    def reduce(self, x, name, init):
        value = self.b.constant(np.asarray(init, self.dtype.numpy))
        return self.b.op("reduce", x, value, dimensions=self.dims, regions=[region(self.dtype, name)])

    def spread(self, x):
        result = t(*self.shape, dtype=self.dtype)
        return self.b.op("broadcast_in_dim", x, types=[result], broadcast_dimensions=tuple(range(self.outer)))


def softmax(rows, x):
    b = rows.b
    shifted = b.op("subtract", x, rows.spread(rows.reduce(x, "maximum", -np.inf)))
    e = b.op("exponential", shifted)
    return b.op("divide", e, rows.spread(rows.reduce(e, "add", 0)))


@settings(max_examples=30, deadline=None)
@given(OUTER, ROWS, st.sampled_from([F32, BF16]))
def test_softmax(outer, n, dtype):
    def build(b, x):
        return softmax(Rows(b, [*outer, n], 1, dtype), x)

    check_fused([t(*outer, n, dtype=dtype)], build, kinds=["row"] if np.prod(outer) > 1 else None)


@settings(max_examples=30, deadline=None)
@given(OUTER, st.sampled_from([(2, 5), (3, 3), (9, 1), (1, 9)]))
def test_rows_of_two_dimensions(outer, row):
    def build(b, x, y):
        rows = Rows(b, [*outer, *row], 2)
        total = rows.reduce(b.op("multiply", x, y), "add", 0)
        return [b.op("add", x, rows.spread(total)), b.op("negate", total)]

    check_fused([t(*outer, *row)] * 2, build)


@pytest.mark.parametrize("local_bytes", [0, 1 << 15])
def test_results_between_reductions_and_per_row(monkeypatch, local_bytes):
    """Costly values are kept in a local array if there is room, and computed again if not."""
    monkeypatch.setattr(nests_row, "LOCAL_BYTES", local_bytes)

    def build(b, x, scale):
        rows = Rows(b, [3, 2, 10], 1)
        e = b.op("exponential", b.op("multiply", x, x))
        s = b.op("sine", e)
        total = rows.reduce(s, "add", 0)
        root = b.op("sqrt", b.op("abs", total))
        scaled = b.op("multiply", s, rows.spread(b.op("multiply", root, scale)))
        largest = rows.reduce(scaled, "maximum", -np.inf)
        return [scaled, b.op("add", scaled, e), root, b.op("reshape", largest, types=[t(6)]), total, s]

    check_fused([t(3, 2, 10), t(3, 2)], build)


def test_two_results_are_one_value():
    def build(b, x):
        y = softmax(Rows(b, [4, 9], 1), x)
        return [y, y, b.op("transpose", y, permutation=(1, 0))]

    check_fused([t(4, 9)], build)


def test_a_row_reads_another_arrays_columns_and_small_windows():
    """A transposed operand and a small reduction are read elsewhere than at the row's own position."""

    def build(b, x, y, z):
        rows = Rows(b, [9, 9], 1)
        turned = b.op("transpose", b.op("negate", y), permutation=(1, 0))
        small = b.op("reduce", z, b.constant(np.float32(0)), dimensions=(2,), regions=[region(F32, "add")])
        return softmax(rows, b.op("add", b.op("add", x, turned), small))

    check_fused([t(9, 9), t(9, 9), t(9, 9, 3)], build)


def test_empty_rows_and_no_rows():
    def build(b, x):
        rows = Rows(b, [0, 9], 1)
        return softmax(rows, x)

    check_fused([t(0, 9)], build)
