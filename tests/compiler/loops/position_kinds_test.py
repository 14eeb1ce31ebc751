"""Reductions that keep a value and its position: which combiners are known, and what generated code makes of them."""

import numpy as np
import pytest

from tests.compiler.codegen.cases import check, check_all, expected
from tests.compiler.codegen.harness import AVX2, HOST, SSE
from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import Builder, index_of, linear_index
from treadle.compiler.loops.ir import Acc, Buffer, Kernel, Nest, Reduction, Store, Var
from treadle.compiler.lowering.combiners import with_position_kind

TARGETS = [pytest.param(HOST, id="host"), pytest.param(AVX2, id="avx2"), pytest.param(SSE, id="sse")]


def jax_style(b, dtype, position, direction):
    """The combiner as JAX writes it."""
    old, old_at, new, new_at = (b.param(d, i) for i, d in enumerate((dtype, position, dtype, position)))
    pick = b.apply(t.PRED, "compare", [old, new], direction)
    if dtype.is_float:
        pick = b.apply(t.PRED, "or", [pick, b.apply(t.PRED, "compare", [old, old], "NE")])
    tie = b.apply(t.PRED, "compare", [old, new], "EQ")
    below = b.apply(t.PRED, "compare", [old_at, new_at], "LT")
    pick_at = b.apply(t.PRED, "or", [pick, b.apply(t.PRED, "and", [tie, below])])
    return b.apply(dtype, "select", [pick, old, new]), b.apply(position, "select", [pick_at, old_at, new_at])


def short(b, dtype, position, direction):
    """Moves on for what compares so with what there is; ties and NaN as they fall."""
    old, old_at, new, new_at = (b.param(d, i) for i, d in enumerate((dtype, position, dtype, position)))
    pick = b.apply(t.PRED, "compare", [new, old], direction)
    return b.apply(dtype, "select", [pick, new, old]), b.apply(position, "select", [pick, new_at, old_at])


def positions(dtype, position, rows, columns, combine, direction, worst):
    """Where the best element of each row is."""
    b, i, j = Builder(), Var(rows), Var(columns)
    place = linear_index([index_of(i), index_of(j)], [columns, 1])
    inputs = (b.load(dtype, 0, place), b.index_value(index_of(j), position))
    inits = (b.const(dtype, worst), b.const(position, 0))
    combiner = combine(b, dtype, position, direction)
    r = with_position_kind(Reduction((j,), inits, inputs, combiner, None, (dtype, position)))
    params = (Buffer(dtype, rows * columns), Buffer(position, rows, True))
    return Kernel(params, (Nest((i,), (Store(1, index_of(i), Acc(position, 1)),), r),))


def kind_of(*arguments):
    return positions(*arguments).nests[0].reduction.kind


def test_combiners_are_known_by_what_they_do():
    real, whole = (t.F32, t.S32, 4, 9), (t.S16, t.S32, 4, 9)
    assert kind_of(*real, jax_style, "GT", -np.inf) == "argmax"
    assert kind_of(*real, jax_style, "LT", np.inf) == "argmin"
    assert kind_of(*whole, jax_style, "GT", -1) == "argmax"
    assert kind_of(*whole, short, "GT", -1) == "argmax"
    assert kind_of(*whole, short, "LT", -1) == "argmin"
    assert kind_of(*real, jax_style, "GE", -np.inf) == "argmax"
    # The last of equal ones; no care for NaN; nonsense.
    assert kind_of(*whole, short, "GE", -1) is None
    assert kind_of(*real, short, "GT", -np.inf) is None
    assert kind_of(*real, jax_style, "EQ", -np.inf) is None
    assert kind_of(t.PRED, t.S32, 4, 9, jax_style, "GT", False) is None


def test_positions_must_rise_and_fit():
    b, j = Builder(), Var(300)
    load = b.load(t.F32, 0, index_of(j))
    combiner = jax_style(b, t.F32, t.U8, "GT")
    for index, first, known in (
        (index_of(j), 0, False),
        (index_of(j, -1, 299), 0, False),
        (index_of(Var(200), 1), 0, False),
    ):
        r = Reduction((j,), (b.const(t.F32, 0), b.const(t.U8, first)), (load, b.index_value(index, t.U8)), combiner,
                      None, (t.F32, t.U8))  # fmt: skip
        assert (with_position_kind(r).kind is not None) is known
    combiner = jax_style(b, t.F32, t.S32, "GT")
    for index, first, known in ((index_of(j), 0, True), (index_of(j, 2, 1), 1, True), (index_of(j), 1, False)):
        r = Reduction((j,), (b.const(t.F32, 0), b.const(t.S32, first)), (load, b.index_value(index, t.S32)), combiner,
                      None, (t.F32, t.S32))  # fmt: skip
        assert (with_position_kind(r).kind == "argmax") is known
    # Over two loops, in the order in which they run.
    i = Var(4)
    for terms, known in (((300, 1), True), ((1, 4), False), ((299, 1), False)):
        index = linear_index([index_of(i), index_of(j)], terms)
        r = Reduction((i, j), (b.const(t.F32, 0), b.const(t.S32, 0)), (load, b.index_value(index, t.S32)), combiner,
                      None, (t.F32, t.S32))  # fmt: skip
        assert (with_position_kind(r).kind == "argmax") is known


def rows_of(dtype, rows, columns):
    """Rows with many ties, some with NaN, zeros of both signs, and nothing but the worst value."""
    rng = np.random.default_rng(columns)
    values = rng.integers(-3 if dtype is not t.U8 else 0, 4, (rows, columns)).astype(dtype.numpy)
    if dtype.is_float:
        values[1, rng.random(columns) < 0.1] = np.nan
        values[2] = -np.inf
        values[3] = np.where(rng.random(columns) < 0.5, -0.0, 0.0).astype(dtype.numpy)
        values[4] = np.nan
        values[5] = np.inf
        values[6, -1] = np.nan
    return values


@pytest.mark.parametrize("target", TARGETS)
def test_code_finds_what_numpy_finds(target):
    cases = []
    for dtype in (t.F32, t.F64, t.BF16, t.F16, t.S32, t.U8, t.S64):
        low = np.iinfo(dtype.numpy).min if dtype.is_integer else -np.inf
        high = np.iinfo(dtype.numpy).max if dtype.is_integer else np.inf
        for position in (t.S32, t.S64):
            for columns in (1, 7, 16, 40, 301):
                values = rows_of(dtype, 8, columns)
                for direction, worst, find in (("GT", low, np.argmax), ("LT", high, np.argmin)):
                    kernel = positions(dtype, position, 8, columns, jax_style, direction, worst)
                    assert (kernel.nests[0].reduction.kind is not None) is (columns > 1)
                    buffers = [values.reshape(-1), np.zeros(8, position.numpy)]
                    plain = values.astype(np.float64) if dtype.is_float else values
                    cases.append((kernel, buffers, find(plain, axis=1)))
    check_all([(kernel, buffers) for kernel, buffers, _ in cases], target=target)
    # The interpreter that `check_all` asks is right, too.
    for kernel, buffers, want in cases:
        np.testing.assert_array_equal(expected(kernel, buffers)[0], want)


def test_long_rows_run_in_lanes():
    planned = check(
        positions(t.F32, t.S32, 8, 1000, jax_style, "GT", -np.inf),
        [rows_of(t.F32, 8, 1000).reshape(-1), np.zeros(8, np.int32)],
    )
    (nest,) = planned.nests
    assert nest.vector in nest.reduction.vars
    assert nest.unroll > 1


def test_a_quotient_and_its_remainder_make_a_number():
    """What a reshape leaves in an index: `40 * (i / 40) + i % 40` is read as one run of memory."""
    b, i = Builder(), Var(200)
    row, column = b.divmod_index(index_of(i), 40)
    value = b.load(t.F32, 0, linear_index([row, column], [40, 1], 3))
    nest = Nest((i,), (Store(1, index_of(i), value),))
    kernel = Kernel((Buffer(t.F32, 203), Buffer(t.F32, 200, True)), (nest,))
    planned = check(kernel, [np.arange(203, dtype=np.float32), np.zeros(200, np.float32)])
    (store,) = planned.nests[0].stores
    assert not store.value.index.dynamic
    assert planned.nests[0].vector is not None
