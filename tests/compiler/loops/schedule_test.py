"""What the scheduler chooses. That its choices are right, the code generator's tests show."""

import math
import time

import pytest

from tests.compiler.codegen.cases import elementwise_kernel, reduce_kernel
from treadle.compiler.artifact import abi
from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.codegen.target import target_for
from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import Builder, index_of, linear_index
from treadle.compiler.loops.ir import Buffer, Kernel, Nest, Store, Var
from treadle.compiler.loops.schedule import schedule

WIDE = target_for((1 << len(abi.CPU_FEATURES)) - 1)
PLAIN = target_for(0)


def one_nest(kernel, target=WIDE, split_work=0):
    (nest,) = schedule(kernel, target, split_work).nests
    return nest


def copy_kernel(shape, out_order, dtype=t.F32):
    """A transpose: loops in the order of the result's dimensions."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    variables = [Var(extent) for extent in shape]
    loops = [variables[axis] for axis in out_order]
    out_strides = [math.prod(v.extent for v in loops[i + 1 :]) for i in range(len(loops))]
    b, size = Builder(), math.prod(shape)
    value = b.load(dtype, 0, linear_index([index_of(v) for v in variables], strides))
    out = linear_index([index_of(v) for v in loops], out_strides)
    return Kernel((Buffer(dtype, size), Buffer(dtype, size, True)), (Nest(tuple(loops), (Store(1, out, value),)),))


def test_contiguous_loops_become_one():
    nest = one_nest(copy_kernel((3, 5, 1, 7), (0, 1, 2, 3)))
    assert [v.extent for v in nest.loops] == [105]
    assert nest.vector is nest.loops[0]


def test_lanes_follow_the_widest_element_and_the_registers():
    for dtype, wide, plain in ((t.F32, 16, 4), (t.F64, 8, 2), (t.U8, 64, 16), (t.S16, 32, 8), (t.BF16, 16, 4)):
        kernel = elementwise_kernel("add", dtype, (dtype, dtype), 1000)
        assert one_nest(kernel).lanes == wide, dtype
        assert one_nest(kernel, PLAIN).lanes == plain, dtype
    # Moving 16-bit floats needs no f32.
    assert one_nest(copy_kernel((1000,), (0,), t.BF16)).lanes == 32


def test_short_loops_take_short_vectors():
    assert one_nest(elementwise_kernel("add", t.F32, (t.F32, t.F32), 5)).lanes == 8
    assert one_nest(elementwise_kernel("add", t.F32, (t.F32, t.F32), 5), PLAIN).lanes == 4
    assert one_nest(elementwise_kernel("add", t.F32, (t.F32, t.F32), 1)).vector is None


def test_row_sums_run_along_the_row_and_column_sums_along_the_columns():
    rows = one_nest(reduce_kernel("add", t.F32, (100, 1000), (1,)))
    assert rows.reduction is not None
    assert rows.vector in rows.reduction.vars
    assert rows.unroll == 4
    columns = one_nest(reduce_kernel("add", t.F32, (100, 1000), (0,)))
    assert columns.vector in columns.loops
    assert columns.unroll == 8


def test_an_ordered_reduction_is_never_spread_over_lanes():
    for shape, axes in (((100, 100), (1,)), ((100,), (0,))):
        nest = one_nest(reduce_kernel("add", t.F32, shape, axes, ordered=True))
        assert nest.vector is None or nest.vector in nest.loops


def test_transposes_exchange_squares():
    nest = one_nest(copy_kernel((100, 200), (1, 0)))
    assert nest.lanes == 16
    assert [n for _, n in nest.tile] == [16]


def test_a_scatter_runs_only_over_independent_loops():
    b, n, j = Builder(), Var(50), Var(64)
    row = b.dynamic_index(b.apply(t.S64, "convert", [b.load(t.S32, 1, index_of(n))]))
    place = linear_index([row, index_of(j)], [64, 1])
    store = Store(2, place, b.load(t.F32, 0, linear_index([index_of(n), index_of(j)], [64, 1])))
    params = (Buffer(t.F32, 3200), Buffer(t.S32, 50), Buffer(t.F32, 640, True))
    nest = one_nest(Kernel(params, (Nest((n, j), (store,), sequential=True, independent=(j,)),), parallel=False))
    assert nest.vector is not None
    assert nest.vector.extent == 64
    nest = one_nest(Kernel(params, (Nest((n, j), (store,), sequential=True),), parallel=False))
    assert nest.vector is None


def test_small_kernels_are_whole_and_large_ones_are_cut_in_whole_steps():
    assert not schedule(elementwise_kernel("add", t.F32, (t.F32, t.F32), 1000), WIDE).parallel
    large = schedule(elementwise_kernel("add", t.F32, (t.F32, t.F32), 1 << 20), WIDE)
    assert large.parallel
    assert large.range_extent() == (1 << 20) // 16
    odd = schedule(elementwise_kernel("add", t.F32, (t.F32, t.F32), (1 << 20) + 1), WIDE)
    assert odd.range_extent() == (1 << 20) + 1


def test_a_long_loop_comes_outermost_for_the_threads():
    b, i, j = Builder(), Var(2), Var(100_000)
    place = linear_index([index_of(i), index_of(j)], [100_000, 1])
    value = b.apply(t.F32, "add", [b.load(t.F32, 0, place), b.load(t.F32, 1, index_of(j))])
    params = (Buffer(t.F32, 200_000), Buffer(t.F32, 100_000), Buffer(t.F32, 200_000, True))
    planned = schedule(Kernel(params, (Nest((i, j), (Store(2, place, value),)),)), WIDE)
    assert planned.range_extent() == 100_000 // 16


@pytest.mark.parametrize("kernel", [elementwise_kernel("add", t.F32, (t.F32,) * 2, 999), copy_kernel((64, 64), (1, 0))])
def test_scheduling_and_emission_take_well_under_a_few_milliseconds(kernel):
    def once():
        start = time.thread_time()
        emit_kernel(schedule(kernel, WIDE), "k", WIDE)
        return time.thread_time() - start

    assert min(once() for _ in range(5)) < 0.005
