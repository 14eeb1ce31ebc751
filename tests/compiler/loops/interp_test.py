"""The interpreter of the loop IR against plain NumPy: it is the definition, so its results are worked out here."""

import numpy as np

from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import Builder, add_index, index_of, linear_index
from treadle.compiler.loops.interp import run_kernel
from treadle.compiler.loops.ir import Acc, Buffer, Index, Kernel, Nest, Reduction, Store, Var


def test_broadcast_sum():
    b, i, j = Builder(), Var(3), Var(4)
    out = linear_index([index_of(i), index_of(j)], [4, 1])
    value = b.apply(t.F32, "add", [b.load(t.F32, 0, index_of(i)), b.load(t.F32, 1, index_of(j))])
    kernel = Kernel(
        (Buffer(t.F32, 3), Buffer(t.F32, 4), Buffer(t.F32, 12, True)), (Nest((i, j), (Store(2, out, value),)),)
    )
    x, y, z = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32) * 10, np.zeros(12, np.float32)
    run_kernel(kernel, [x, y, z])
    np.testing.assert_array_equal(z.reshape(3, 4), x[:, None] + y)
    z[:] = -1
    run_kernel(kernel, [x, y, z], 1, 2)
    np.testing.assert_array_equal(z.reshape(3, 4), [[-1] * 4, 1 + y, [-1] * 4])


def test_reduction_with_a_mask():
    b, i, r = Builder(), Var(2), Var(3)
    place = add_index(linear_index([index_of(i), index_of(r)], [3, 1]), Index(-1))
    mask = b.in_range(place, 0, 4)
    element = b.load(t.S32, 0, place, mask)
    combiner = b.apply(t.S32, "add", [b.param(t.S32, 0), b.param(t.S32, 1)])
    reduction = Reduction((r,), (b.const(t.S32, 100),), (element,), (combiner,), "add", (t.S32,))
    nest = Nest((i,), (Store(1, index_of(i), Acc(t.S32, 0)),), reduction)
    out = np.zeros(2, np.int32)
    run_kernel(Kernel((Buffer(t.S32, 4), Buffer(t.S32, 2, True)), (nest,)), [np.array([1, 2, 3, 4], np.int32), out])
    # Row 0 reads places -1, 0, 1 and row 1 places 2, 3, 4: outside is zero.
    np.testing.assert_array_equal(out, [100 + 1 + 2, 100 + 3 + 4])


def test_scatter_is_in_order():
    b, n = Builder(), Var(4)
    place = b.dynamic_index(b.apply(t.S64, "convert", [b.load(t.S32, 0, index_of(n))]))
    mask = b.in_range(place, 0, 3)

    def run(combine):
        store = Store(2, place, b.load(t.S32, 1, index_of(n)), mask, combine)
        kernel = Kernel(
            (Buffer(t.S32, 4), Buffer(t.S32, 4), Buffer(t.S32, 3, True)),
            (Nest((n,), (store,), sequential=True),),
            parallel=False,
        )
        out = np.array([10, 20, 30], np.int32)
        run_kernel(kernel, [np.array([1, 5, 1, 0], np.int32), np.array([1, 2, 3, 4], np.int32), out])
        return out.tolist()

    assert run(None) == [4, 3, 30]
    assert run(b.apply(t.S32, "add", [b.param(t.S32, 0), b.param(t.S32, 1)])) == [14, 24, 30]


def test_locals_belong_to_one_outer_iteration():
    b, i, j = Builder(), Var(3), Var(2)
    first = Nest((j,), (Store(-1, index_of(j), b.index_value(add_index(index_of(i, 10), index_of(j)), t.S32)),))
    total = b.apply(t.S32, "add", [b.load(t.S32, -1, Index(0)), b.load(t.S32, -1, Index(1))])
    second = Nest((), (Store(0, index_of(i), total),))
    out = np.zeros(3, np.int32)
    run_kernel(Kernel((Buffer(t.S32, 3, True),), (first, second), (i,), ((t.S32, 2),)), [out])
    np.testing.assert_array_equal(out, [1, 21, 41])
