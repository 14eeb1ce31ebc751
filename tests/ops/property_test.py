"""Random geometries: what the table states case by case, for shapes and dtypes that nobody chose."""

import math
import os

import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jax import lax

from tests.ops import harness
from tests.ops.harness import BF16, F32, PRED, S8, S32, U8, U32

EXAMPLES = int(os.environ.get("TREADLE_TEST_EXAMPLES", "25"))
# Each step of a search for the smallest failing example compiles twice: it is for a developer, not for a test run.
PHASES = [Phase.explicit, Phase.generate, *([Phase.shrink] if os.environ.get("TREADLE_TEST_SHRINK") else [])]
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=PHASES,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

extents = st.one_of(st.integers(0, 5), st.sampled_from([7, 8, 9, 15, 16, 17, 31, 33, 65]))
shapes = st.lists(extents, min_size=0, max_size=4).map(tuple).filter(lambda shape: math.prod(shape) <= 20_000)
full_shapes = st.lists(st.one_of(st.integers(1, 5), st.sampled_from([7, 9, 16, 33])), min_size=1, max_size=4).map(tuple)
number_dtypes = st.sampled_from([F32, BF16, S32, S8, U8, U32])
seeds = st.integers(0, 2**31)


def agree(function, arguments, *, accumulated=False, tolerance=None):
    """One program on both devices; the results must be equal by the table's rules."""
    expected = harness.run(function, arguments, harness.reference_device(), jit=True)
    actual = harness.run(function, arguments, harness.device_under_test(), jit=True)
    case = harness.Case("random", function, accumulated=accumulated, tolerance=tolerance)
    shown = [f"{np.asarray(argument).dtype}{list(np.shape(argument))}" for argument in arguments]
    harness.assert_equal(actual, expected, case, f"of {shown}")


def draw(seed, dtype, shape, *bounds):
    return harness.draw(np.random.default_rng(seed), dtype, shape, *bounds)


@bounded
@given(shapes, number_dtypes, seeds)
def test_elementwise(shape, dtype, seed):
    x, y = draw(seed, dtype, shape), draw(seed + 1, dtype, shape)
    agree(lambda a, b: (a + b, a - b, a * b, jnp.maximum(a, b), a < b, jnp.where(a < b, a, b)), (x, y))


@bounded
@given(st.data(), full_shapes, st.sampled_from([F32, S32, BF16, PRED]), seeds)
def test_broadcasting(data, shape, dtype, seed):
    def degenerate(label):
        keep = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)), label=label)
        start = data.draw(st.integers(0, len(shape)), label=f"first dimension of {label}")
        return tuple(extent if kept else 1 for extent, kept in zip(shape, keep, strict=True))[start:]

    x, y = draw(seed, dtype, degenerate("x")), draw(seed + 1, dtype, degenerate("y"))
    agree(lambda a, b: (a ^ b if dtype == PRED else a + b, jnp.broadcast_to(a, shape), a == b), (x, y))


@bounded
@given(st.data(), shapes, st.sampled_from([F32, S32, BF16, S8]), seeds)
def test_reductions(data, shape, dtype, seed):
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans(), label=f"over {axis}"))
    x = draw(seed, dtype, shape)
    agree(
        lambda a: (jnp.sum(a, axes), jnp.max(a, axes, initial=0), jnp.any(a > 0, axes), jnp.sum(a * 2, axes)),
        (x,),
        accumulated=True,
    )


@bounded
@given(st.data(), full_shapes, seeds)
def test_slices_and_reversals(data, shape, seed):
    start, limit, stride = [], [], []
    for extent in shape:
        first = data.draw(st.integers(0, extent))
        start.append(first)
        limit.append(data.draw(st.integers(first, extent)))
        stride.append(data.draw(st.integers(1, 4)))
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    agree(lambda a: lax.rev(lax.slice(a * 2, start, limit, stride), axes) + 1, (draw(seed, F32, shape),))


@bounded
@given(st.data(), shapes, seeds)
def test_pads(data, shape, seed):
    config = []
    for extent in shape:
        interior = data.draw(st.integers(0, 2))
        full = extent + max(extent - 1, 0) * interior
        low = data.draw(st.integers(-min(full, 3), 4))
        config.append((low, data.draw(st.integers(-min(full + low, 3) if full + low > 0 else 0, 4)), interior))
    agree(lambda a: lax.pad(a, np.float32(0.5), config) * 2, (draw(seed, F32, shape),))


@bounded
@given(st.data(), full_shapes, st.sampled_from([F32, S32, BF16, PRED]), seeds)
def test_concatenations_and_transposes(data, shape, dtype, seed):
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, 4))
    pieces = [
        draw(seed + k, dtype, (*shape[:axis], data.draw(st.integers(0, 5)), *shape[axis + 1 :])) for k in range(count)
    ]
    order = data.draw(st.permutations(range(len(shape))))
    agree(lambda *parts: lax.transpose(jnp.concatenate(parts, axis), order), pieces)


@bounded
@given(st.data(), full_shapes, seeds)
def test_reshapes(data, shape, seed):
    factors = [f for extent in shape for f in ([2] * int(math.log2(extent)) if extent in (2, 4, 16) else [extent])]
    order = data.draw(st.permutations(factors))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(order)), max_size=3)))
    target = tuple(math.prod(order[a:b]) for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True))
    total = math.prod(target)
    x = draw(seed, F32, (total,))
    agree(lambda a: jnp.transpose(a.reshape(target)).reshape(-1) + a, (x,))


@bounded
@given(st.data(), seeds)
def test_gathers(data, seed):
    """Random dimension numbers of lax.gather itself, batching dimensions included."""
    rank = data.draw(st.integers(1, 4))
    operand = [data.draw(st.integers(1, 6)) for _ in range(rank)]
    roles = [data.draw(st.sampled_from(["batch", "collapsed", "window", "whole"])) for _ in range(rank)]
    batching = [axis for axis in range(rank) if roles[axis] == "batch"]
    collapsed = [axis for axis in range(rank) if roles[axis] == "collapsed"]
    indexed = data.draw(st.permutations([axis for axis in range(rank) if roles[axis] in ("collapsed", "window")]))
    sizes = [
        1
        if roles[a] in ("batch", "collapsed")
        else operand[a]
        if roles[a] == "whole"
        else data.draw(st.integers(1, operand[a]))
        for a in range(rank)
    ]
    free = [data.draw(st.integers(1, 5)) for _ in range(data.draw(st.integers(0, 2)))]
    index_batch = data.draw(
        st.permutations([("batch", axis) for axis in batching] + [("free", k) for k in range(len(free))])
    )
    index_shape = [operand[which] if kind == "batch" else free[which] for kind, which in index_batch]
    index_batching = [index_batch.index(("batch", axis)) for axis in batching]
    windows = rank - len(batching) - len(collapsed)
    result_rank = len(index_shape) + windows
    offset = sorted(data.draw(st.permutations(range(result_rank)))[:windows])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(offset),
        collapsed_slice_dims=tuple(collapsed),
        start_index_map=tuple(indexed),
        operand_batching_dims=tuple(batching),
        start_indices_batching_dims=tuple(index_batching),
    )
    mode = data.draw(st.sampled_from(["clip", "fill"]))
    x = draw(seed, F32, operand)
    indices = draw(seed + 1, S32, (*index_shape, len(indexed)), -3, 8)
    agree(lambda a, i: lax.gather(a, i, numbers, sizes, mode=mode), (x, indices))


@bounded
@given(st.data(), seeds, st.sampled_from(["add", "max", "mul"]), st.sampled_from([F32, S32, BF16]))
def test_scatters(data, seed, kind, dtype):
    rank = data.draw(st.integers(1, 3))
    operand = [data.draw(st.integers(1, 6)) for _ in range(rank)]
    inserted = [axis for axis in range(rank) if data.draw(st.booleans())]
    windowed = [axis for axis in range(rank) if axis not in inserted]
    indexed = data.draw(st.permutations(range(rank)))[: data.draw(st.integers(1, rank))]
    batch = [data.draw(st.integers(0, 6)) for _ in range(data.draw(st.integers(0, 2)))]
    sizes = [data.draw(st.integers(1, operand[axis])) for axis in windowed]
    update_rank = len(batch) + len(windowed)
    window_dims = sorted(data.draw(st.permutations(range(update_rank)))[: len(windowed)])
    remaining, window_sizes = list(batch), list(sizes)
    update_shape = [window_sizes.pop(0) if axis in window_dims else remaining.pop(0) for axis in range(update_rank)]
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(window_dims),
        inserted_window_dims=tuple(inserted),
        scatter_dims_to_operand_dims=tuple(indexed),
    )
    function = {"add": lax.scatter_add, "max": lax.scatter_max, "mul": lax.scatter_mul}[kind]
    arguments = (
        draw(seed, dtype, operand, -2, 2),
        draw(seed + 1, S32, (*batch, len(indexed)), -2, 7),
        draw(seed + 2, dtype, update_shape, -2, 2),
    )
    mode = data.draw(st.sampled_from(["clip", "drop"]))
    # In bf16 the order of duplicates decides the rounding of each sum.
    agree(
        lambda a, i, u: function(a, i, u, numbers, mode=mode),
        arguments,
        accumulated=True,
        tolerance=6e-2 if dtype == BF16 else None,
    )


@bounded
@given(st.data(), seeds, st.sampled_from([F32, F32, BF16, S32]))
def test_dot_general(data, seed, dtype):
    small = st.one_of(st.integers(0, 4), st.sampled_from([5, 8, 17]))
    batch = [data.draw(st.integers(1, 4)) for _ in range(data.draw(st.integers(0, 2)))]
    contract = [data.draw(small) for _ in range(data.draw(st.integers(0, 2)))]

    def side(label):
        free = [data.draw(small) for _ in range(data.draw(st.integers(0, 2)))]
        axes = (
            [("b", k) for k in range(len(batch))]
            + [("c", k) for k in range(len(contract))]
            + [("f", k) for k in range(len(free))]
        )
        order = data.draw(st.permutations(axes), label=label)
        shape = [{"b": batch, "c": contract, "f": free}[kind][k] for kind, k in order]
        return (
            shape,
            [order.index(("c", k)) for k in range(len(contract))],
            [order.index(("b", k)) for k in range(len(batch))],
        )

    (lhs, lhs_contract, lhs_batch), (rhs, rhs_contract, rhs_batch) = side("lhs"), side("rhs")
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    arguments = draw(seed, dtype, lhs), draw(seed + 1, dtype, rhs)
    agree(lambda a, b: lax.dot_general(a, b, numbers), arguments, accumulated=True)


@bounded
@given(st.data(), seeds, st.integers(1, 3))
def test_convolutions(data, seed, spatial):
    groups = data.draw(st.sampled_from([1, 1, 1, 2, 3]))
    batch_groups = data.draw(st.sampled_from([1, 2])) if groups == 1 else 1
    inputs, outputs = groups * data.draw(st.integers(1, 3)), groups * batch_groups * data.draw(st.integers(1, 3))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(spatial)]
    extent = [data.draw(st.integers(3, 8)) for _ in range(spatial)]
    options = {
        "window_strides": [data.draw(st.integers(1, 3)) for _ in range(spatial)],
        "padding": [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(spatial)],
        "lhs_dilation": [data.draw(st.sampled_from([1, 1, 2])) for _ in range(spatial)],
        "rhs_dilation": [data.draw(st.sampled_from([1, 1, 2])) for _ in range(spatial)],
        "feature_group_count": groups,
        "batch_group_count": batch_groups,
    }
    letters = "DHW"[-spatial:]
    layouts = tuple("".join(data.draw(st.permutations(names + letters))) for names in ("NC", "IO", "NC"))
    sizes = dict(zip(letters, extent, strict=True)) | {"N": 2 * batch_groups, "C": inputs}
    kernel_sizes = dict(zip(letters, kernel, strict=True)) | {"I": inputs // groups, "O": outputs}
    x = draw(seed, F32, [sizes[letter] for letter in layouts[0]])
    k = draw(seed + 1, F32, [kernel_sizes[letter] for letter in layouts[1]])
    agree(lambda a, b: lax.conv_general_dilated(a, b, dimension_numbers=layouts, **options), (x, k), accumulated=True)


@bounded
@given(st.data(), seeds, st.integers(1, 3), st.sampled_from([F32, S32]))
def test_reduce_windows(data, seed, rank, dtype):
    shape = [data.draw(st.integers(1, 9)) for _ in range(rank)]

    def each(strategy):
        return tuple(data.draw(strategy) for _ in range(rank))

    window, strides = each(st.integers(1, 3)), each(st.integers(1, 3))
    base, dilation = each(st.sampled_from([1, 1, 2])), each(st.sampled_from([1, 1, 2]))
    padding = tuple((data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(rank))
    low = np.asarray(-np.inf if dtype == F32 else np.iinfo(np.int32).min, dtype)

    def function(a):
        return tuple(
            lax.reduce_window(a, initial, combine, window, strides, padding, base, dilation)
            for initial, combine in ((np.zeros((), dtype), lax.add), (low, lax.max))
        )

    agree(function, (draw(seed, dtype, shape),), accumulated=True)


@bounded
@given(st.data(), seeds, st.sampled_from([F32, S32, BF16, S8]))
def test_dynamic_slices_and_updates(data, seed, dtype):
    rank = data.draw(st.integers(1, 3))
    shape = [data.draw(st.integers(1, 9)) for _ in range(rank)]
    sizes = [data.draw(st.integers(0, extent)) for extent in shape]
    starts = [np.int32(data.draw(st.integers(-4, 12))) for _ in range(rank)]
    x, u = draw(seed, dtype, shape), draw(seed + 1, dtype, sizes)
    agree(
        lambda a, b, *at: (lax.dynamic_slice(a + a, at, sizes), lax.dynamic_update_slice(a, b, at) * 2), (x, u, *starts)
    )
