"""Kernels of every shape of loops, compiled and run, against the interpreter of the loop IR."""

import math

import numpy as np
import pytest

from tests.compiler.codegen.cases import check, check_all, expected, random_array, reduce_kernel, reduction
from tests.compiler.codegen.harness import AVX2, HOST, SSE
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import row_major_strides
from treadle.compiler.loops.build import Builder, add_index, index_of, linear_index
from treadle.compiler.loops.ir import Acc, Buffer, Index, Kernel, Nest, Reduction, Store, Var

TARGETS = [pytest.param(HOST, id="host"), pytest.param(AVX2, id="avx2"), pytest.param(SSE, id="sse")]
every_target = pytest.mark.parametrize("target", TARGETS)
DTYPES = (t.F32, t.S32, t.U8, t.F64, t.BF16, t.PRED, t.S16)


def buffers_for(kernel, seed=0):
    return [random_array(p.dtype, p.size, seed + i) for i, p in enumerate(kernel.params)]


def at(variables, shape, offset=0):
    return linear_index([index_of(v) for v in variables], row_major_strides(tuple(shape)), offset)


def copy_kernel(dtype, loops, source: Index, source_size, target: Index, target_size, mask=None, load_mask=None):
    b = Builder()
    value = b.load(dtype, 0, source, load_mask)
    nest = Nest(tuple(loops), (Store(1, target, value, mask),))
    return Kernel((Buffer(dtype, source_size), Buffer(dtype, target_size, True)), (nest,))


@every_target
def test_transpose(target):
    cases = []
    for dtype in DTYPES:
        for shape in ((40, 50), (16, 16), (3, 100), (100, 3), (17, 33), (1, 5), (64, 128)):
            i, j = Var(shape[0]), Var(shape[1])
            size = math.prod(shape)
            kernel = copy_kernel(dtype, (i, j), at((j, i), shape[::-1]), size, at((i, j), shape), size)
            cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
def test_transpose_4d(target):
    cases = []
    for order in ((0, 2, 1, 3), (3, 2, 1, 0), (0, 3, 1, 2), (1, 0, 3, 2)):
        shape = (2, 17, 5, 18)
        variables = [Var(shape[axis]) for axis in order]
        source = [variables[order.index(axis)] for axis in range(4)]
        size = math.prod(shape)
        out = at(variables, [v.extent for v in variables])
        kernel = copy_kernel(t.F32, variables, at(source, shape), size, out, size)
        cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
def test_reversed_strided_and_broadcast_access(target):
    cases = []
    for dtype in DTYPES:
        for extent in (5, 16, 50, 130):
            i = Var(extent)
            for source, size in (
                (index_of(i, -1, extent - 1), extent),
                (index_of(i, 3, 1), 3 * extent + 1),
                (index_of(i, -2, 2 * extent), 2 * extent + 1),
                (Index(2), 4),
            ):
                for out in (index_of(i), index_of(i, -1, extent - 1), index_of(i, 2)):
                    kernel = copy_kernel(dtype, (i,), source, size, out, 2 * extent)
                    cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
def test_masks_never_touch_memory(target):
    """A pad: the masked-off part of the source does not exist, and most of it is far outside."""
    cases = []
    for dtype in DTYPES:
        for extent in (7, 60, 200):
            for coeff in (1, -1, 2):
                b = Builder()
                i = Var(3 * extent)
                inner = index_of(i, coeff, -extent if coeff > 0 else 2 * extent)
                mask = b.in_range(inner, 0, extent)
                value = b.load(dtype, 0, inner, mask)
                assert mask is not None
                value = b.apply(dtype, "select", [mask, value, b.const(dtype, 1)])
                nest = Nest((i,), (Store(1, index_of(i), value),))
                kernel = Kernel((Buffer(dtype, extent), Buffer(dtype, 3 * extent, True)), (nest,))
                cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
def test_uniform_and_lane_masks_on_stores(target):
    cases = []
    for dtype in (t.F32, t.U8, t.S64, t.PRED):
        b = Builder()
        i, j = Var(9), Var(37)
        row = b.in_range(index_of(i, 2), 3, 12)
        column = b.in_range(index_of(j, 1, -4), 0, 20)
        out = at((i, j), (9, 37))
        value = b.load(dtype, 0, out)
        for mask in (row, column, b.both(row, column)):
            stores = (Store(1, out, value, mask),)
            kernel = Kernel((Buffer(dtype, 333), Buffer(dtype, 333, True)), (Nest((i, j), stores),))
            cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
@pytest.mark.parametrize("dtype", [t.F32, t.S32, t.U8, t.F64, t.S64, t.PRED], ids=str)
def test_reductions(dtype, target):
    shapes = [
        ((7, 50), (1,)), ((50, 7), (0,)), ((5, 6, 7), (1,)), ((5, 6, 7), (0, 2)), ((300,), (0,)),
        ((4, 3, 2), (0, 1, 2)),
        ((1, 129), (1,)), ((129, 1), (1,)), ((33, 65), (0,)), ((3, 0), (1,)), ((0, 3), (1,)), ((2, 1000), (1,)),
    ]  # fmt: skip
    kinds = ["and", "or"] if dtype is t.PRED else ["add", "maximum"]
    kinds += ["xor", "minimum"] if dtype.is_integer else []
    cases = []
    for shape, axes in shapes:
        for kind in kinds:
            for ordered in (False, True):
                kernel = reduce_kernel(kind, dtype, shape, axes, 1, ordered)
                cases.append((kernel, buffers_for(kernel)))
    check_all(cases, exact=not dtype.is_float, rtol=1e-3 if dtype is t.F32 else 1e-9, target=target)


@every_target
def test_maximum_keeps_nan_and_signed_zero(target):
    for kind in ("maximum", "minimum"):
        for axes, shape in (((1,), (4, 40)), ((0,), (40, 4))):
            kernel = reduce_kernel(kind, t.F32, shape, axes, np.inf if kind == "minimum" else -np.inf)
            data = np.zeros(shape, np.float32)
            rows = data if axes == (1,) else data.T
            rows[0, 17] = np.nan
            rows[1, 3::2] = -0.0
            rows[2, :] = -0.0
            check(kernel, [data.reshape(-1), np.ones(4, np.float32)], target=target)


@every_target
def test_ordered_sum_is_sequential(target):
    """Without a kind the order is the program's: a float sum must be the same to the last bit."""
    for shape, axes in (((6, 33), (1,)), ((33, 20), (0,)), ((4, 5, 6), (0, 2)), ((3, 3, 3, 40), (1, 2))):
        kernel = reduce_kernel("add", t.F32, shape, axes, 0.1, ordered=True)
        check(kernel, buffers_for(kernel), exact=True, target=target)


def argmax_kernel(shape, axis):
    b = Builder()
    variables = [Var(extent) for extent in shape]
    loops = [v for i, v in enumerate(variables) if i != axis]
    value = b.load(t.F32, 0, at(variables, shape))
    position = b.index_value(index_of(variables[axis]), t.S32)
    p = [b.param(d, i) for i, d in enumerate((t.F32, t.S32, t.F32, t.S32))]
    better = b.apply(t.PRED, "compare", [p[2], p[0]], "GT")
    combiner = (b.apply(t.F32, "select", [better, p[2], p[0]]), b.apply(t.S32, "select", [better, p[3], p[1]]))
    inits = (b.const(t.F32, -np.inf), b.const(t.S32, 0))
    r = Reduction((variables[axis],), inits, (value, position), combiner, None, (t.F32, t.S32))
    out = at(loops, [v.extent for v in loops])
    size = math.prod(v.extent for v in loops)
    stores = (Store(1, out, Acc(t.F32, 0)), Store(2, out, Acc(t.S32, 1)))
    params = (Buffer(t.F32, math.prod(shape)), Buffer(t.F32, size, True), Buffer(t.S32, size, True))
    return Kernel(params, (Nest(tuple(loops), stores, r),))


@every_target
def test_two_accumulators(target):
    cases = [
        (k, buffers_for(k)) for k in (argmax_kernel((5, 40), 1), argmax_kernel((40, 35), 0), argmax_kernel((90,), 0))
    ]
    check_all(cases, target=target)


def product_kernel(m, n, k, transposed=False, dtype=t.F32):
    b = Builder()
    i, j, r = Var(m), Var(n), Var(k)
    lhs = b.load(dtype, 0, at((i, r), (m, k)))
    rhs = b.load(dtype, 1, at((j, r), (n, k)) if transposed else at((r, j), (k, n)))
    red = reduction(b, "add", [r], b.apply(dtype, "multiply", [lhs, rhs]), 0)
    stores = (Store(2, at((i, j), (m, n)), Acc(dtype, 0)),)
    params = (Buffer(dtype, m * k), Buffer(dtype, k * n), Buffer(dtype, m * n, True))
    return Kernel(params, (Nest((i, j), stores, red),))


@every_target
def test_matrix_products(target):
    cases = []
    for m, n, k in ((1, 1, 1), (4, 4, 4), (5, 17, 9), (13, 70, 33), (64, 64, 64), (7, 3, 100)):
        for transposed in (False, True):
            for dtype in (t.F32, t.S32):
                kernel = product_kernel(m, n, k, transposed, dtype)
                cases.append((kernel, buffers_for(kernel)))
    check_all(cases, exact=False, rtol=1e-2, target=target)


@every_target
def test_windows(target):
    """A 3x3 maximum with padding over channels, as reduce_window lowers."""
    b = Builder()
    h, w, c, y, x = Var(6), Var(7), Var(20), Var(3), Var(3)
    row, column = add_index(index_of(h), index_of(y, 1, -1)), add_index(index_of(w), index_of(x, 1, -1))
    mask = b.both(b.in_range(row, 0, 6), b.in_range(column, 0, 7))
    assert mask is not None
    place = linear_index([row, column, index_of(c)], [140, 20, 1])
    value = b.apply(t.F32, "select", [mask, b.load(t.F32, 0, place, mask), b.const(t.F32, -np.inf)])
    r = reduction(b, "maximum", [y, x], value, -np.inf)
    nest = Nest((h, w, c), (Store(1, at((h, w, c), (6, 7, 20)), Acc(t.F32, 0)),), r)
    kernel = Kernel((Buffer(t.F32, 840), Buffer(t.F32, 840, True)), (nest,))
    check(kernel, buffers_for(kernel), target=target)


@every_target
def test_gather(target):
    """Rows by clamped indices (contiguous within a row), and single elements by a vector of indices."""
    cases = []
    for dtype in (t.F32, t.U8, t.F64, t.BF16):
        for index_dtype in (t.S32, t.S64):
            for width in (1, 33):
                b = Builder()
                i, j = Var(45), Var(width)
                raw = b.apply(t.S64, "convert", [b.load(index_dtype, 1, index_of(i))])
                clamped = b.apply(t.S64, "clamp", [b.const(t.S64, 0), raw, b.const(t.S64, 9)])
                place = linear_index([b.dynamic_index(clamped), index_of(j)], [width, 1])
                nest = Nest((i, j), (Store(2, at((i, j), (45, width)), b.load(dtype, 0, place)),))
                params = (Buffer(dtype, 10 * width), Buffer(index_dtype, 45), Buffer(dtype, 45 * width, True))
                kernel = Kernel(params, (nest,))
                data = buffers_for(kernel)
                data[1] = (random_array(index_dtype, 45, 5) % 14 - 2).astype(index_dtype.numpy)
                cases.append((kernel, data))
    check_all(cases, target=target)


def scatter_kernel(dtype, updates, rows, width, combined):
    """`out[index[n], :] (+)= update[n, :]`, out-of-range indices skipped, equal indices in order."""
    b = Builder()
    n, j = Var(updates), Var(width)
    row = b.dynamic_index(b.apply(t.S64, "convert", [b.load(t.S32, 1, index_of(n))]))
    mask = b.in_range(row, 0, rows)
    place = linear_index([row, index_of(j)], [width, 1])
    combine = b.apply(dtype, "add", [b.param(dtype, 0), b.param(dtype, 1)]) if combined else None
    store = Store(2, place, b.load(dtype, 0, at((n, j), (updates, width))), mask, combine)
    nest = Nest((n, j), (store,), sequential=True, independent=(j,))
    params = (Buffer(dtype, updates * width), Buffer(t.S32, updates), Buffer(dtype, rows * width, True))
    return Kernel(params, (nest,), parallel=False)


@every_target
def test_scatter(target):
    cases = []
    for dtype in (t.F32, t.S8, t.F16):
        for width in (1, 3, 50):
            for combined in (False, True):
                kernel = scatter_kernel(dtype, 30, 6, width, combined)
                data = buffers_for(kernel)
                data[1] = (np.arange(30) * 7 % 9 - 1).astype(np.int32)
                cases.append((kernel, data))
    check_all(cases, target=target)


@every_target
def test_iota_and_ranges(target):
    cases = []
    for dtype in (t.S8, t.U16, t.S32, t.S64, t.F32, t.F64, t.BF16, t.F16):
        b = Builder()
        i, j = Var(11), Var(45)
        index = add_index(index_of(i, 1000), index_of(j, -3, 7))
        value = b.index_value(index, dtype)
        nest = Nest((i, j), (Store(0, at((i, j), (11, 45)), value),))
        kernel = Kernel((Buffer(dtype, 495, True),), (nest,))
        cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
def test_outer_loop_with_locals(target):
    """A softmax: three nests for each row, two of them over the row, with a row buffer on the stack."""
    rows, width = 9, 50
    b = Builder()
    i, r, s, j, k = Var(rows), Var(width), Var(width), Var(width), Var(width)

    def element(var):
        return b.load(t.F32, 0, at((i, var), (rows, width)))

    top, total = b.load(t.F32, -1, Index()), b.load(t.F32, -2, Index())
    grown = b.apply(t.F32, "exponential", [b.apply(t.F32, "subtract", [element(j), top])])
    nests = (
        Nest((), (Store(-1, Index(), Acc(t.F32, 0)),), reduction(b, "maximum", [r], element(r), -np.inf)),
        Nest((j,), (Store(-3, index_of(j), grown),)),
        Nest((), (Store(-2, Index(), Acc(t.F32, 0)),), reduction(b, "add", [s], b.load(t.F32, -3, index_of(s)), 0)),
        Nest(
            (k,),
            (Store(1, at((i, k), (rows, width)), b.apply(t.F32, "divide", [b.load(t.F32, -3, index_of(k)), total])),),
        ),
    )
    params = (Buffer(t.F32, rows * width), Buffer(t.F32, rows * width, True))
    kernel = Kernel(params, nests, (i,), ((t.F32, 1), (t.F32, 1), (t.F32, width)))
    check(kernel, buffers_for(kernel), exact=False, rtol=1e-5, target=target)


@every_target
def test_several_nests_without_outer_loop(target):
    """The second nest reads what the first one wrote to a parameter."""
    b = Builder()
    i, j = Var(70), Var(70)
    twice = b.apply(t.S32, "add", [b.load(t.S32, 0, index_of(i)), b.load(t.S32, 0, index_of(i))])
    back = b.load(t.S32, 1, index_of(j, -1, 69))
    nests = (Nest((i,), (Store(1, index_of(i), twice),)), Nest((j,), (Store(2, index_of(j), back),)))
    kernel = Kernel((Buffer(t.S32, 70), Buffer(t.S32, 70, True), Buffer(t.S32, 70, True)), nests, parallel=False)
    check(kernel, buffers_for(kernel), target=target)


@every_target
def test_two_outer_loops_merge(target):
    b = Builder()
    i, j, r = Var(3), Var(5), Var(20)
    red = reduction(b, "add", [r], b.load(t.S32, 0, at((i, j, r), (3, 5, 20))), 0)
    nest = Nest((), (Store(1, at((i, j), (3, 5)), Acc(t.S32, 0)),), red)
    kernel = Kernel((Buffer(t.S32, 300), Buffer(t.S32, 15, True)), (nest,), (i, j))
    planned = check(kernel, buffers_for(kernel), target=target)
    assert [var.extent for var in planned.outer] == [15]


def test_in_place():
    """A written parameter may be the memory of one that is read at the same index only."""
    b = Builder()
    i = Var(100)
    total = b.apply(t.F32, "add", [b.load(t.F32, 0, index_of(i)), b.load(t.F32, 1, index_of(i))])
    kernel = Kernel(
        (Buffer(t.F32, 100), Buffer(t.F32, 100), Buffer(t.F32, 100, True)),
        (Nest((i,), (Store(2, index_of(i), total),)),),
    )
    data = buffers_for(kernel)
    want = expected(kernel, data)[0]
    from tests.compiler.codegen.harness import Library
    from treadle.compiler.loops.schedule import schedule

    Library([schedule(kernel, HOST)]).run(0, [data[0], data[1], data[0]])
    np.testing.assert_array_equal(data[0], want)


def test_nothing_to_do():
    """Empty loops compile, and touch nothing."""
    i, j = Var(0), Var(4)
    kernel = copy_kernel(t.F32, (i, j), at((i, j), (0, 4)), 1, at((i, j), (0, 4)), 1)
    check(kernel, buffers_for(kernel))


def test_scalar_kernel():
    """No loop at all: one iteration."""
    kernel = copy_kernel(t.F32, (), Index(3), 5, Index(1), 2)
    check(kernel, buffers_for(kernel))
