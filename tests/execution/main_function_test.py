"""Programs whose work is in the main function: scalars in registers, loops, branches, copies, library calls."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.lib import xla_client

F32 = np.float32


@functools.cache
def device() -> jax.Device:
    return jax.local_devices(backend="treadle")[0]


def run(function, *arguments, **options):
    """The function's results, compiled and executed by the plugin."""
    with jax.enable_x64(True), jax.default_device(device()):
        results = jax.jit(function, **options)(*jax.device_put(arguments, device()))
        return jax.tree.map(np.asarray, results)


# ---- scalars


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.float64])
def test_scalars_stay_scalars(dtype):
    def f(a, b):
        return a * b + a, a < b, lax.max(a, b) - lax.convert_element_type(3, dtype)

    a, b = dtype(7), dtype(9)
    total, less, rest = run(f, a, b)
    assert (total, less, rest) == (70, True, 6)
    assert (total.dtype, less.dtype, rest.dtype) == (a.dtype, bool, a.dtype)


def test_bf16_scalars_round_after_every_op():
    one, small = jnp.bfloat16(1), jnp.bfloat16(2.0**-8)
    # 1 + 2^-8 lies between two bf16 numbers and goes to the even one.
    assert run(lambda a, b: (a + b) + b, np.asarray(one), np.asarray(small)) == 1


def test_one_scalar_is_several_results_and_an_argument_is_one():
    assert run(lambda x: (x, x + 1, x + 1, x), np.int32(4)) == (4, 5, 5, 4)


def test_scalars_read_arrays_at_computed_places():
    x = np.arange(12, dtype=np.int32).reshape(3, 4)

    def f(x, i):
        inside = x[i % 3, 1] * 10 + x[2, i % 4]
        beyond = x.at[i, 0].get(mode="fill", fill_value=-7)
        return inside, beyond, x[x[0, 2], x[0, i % 4]]

    assert run(f, x, np.int32(1)) == (5 * 10 + 9, 4, 9)
    assert run(f, x, np.int32(5)) == (9 * 10 + 9, -7, 9)


def test_a_scalar_goes_to_memory_for_a_kernel_and_comes_back():
    x = np.arange(8, dtype=F32)

    def f(x, s):
        scaled = x * (s * 2)
        return scaled, scaled[3] + s, jnp.sum(scaled) * s

    scaled, one, total = run(f, x, F32(3))
    np.testing.assert_array_equal(scaled, x * 6)
    assert (one, total) == (21, 28 * 6 * 3)


# ---- loops


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_scalar_carries_change_together(n):
    """(a, b) -> (b, a + b): every carry gets its new value from the old ones."""
    a, b, c = run(lambda n: lax.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1], s[0]), (0, 1, -5)), n)
    old, now, before = 0, 1, -5
    for _ in range(n):
        old, now, before = now, old + now, old
    assert (a, b, c) == (old, now, before)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_arrays_that_change_places(n):
    x, y = np.arange(6, dtype=F32), np.ones(6, F32)

    def f(x, y, n):
        return lax.fori_loop(0, n, lambda i, s: (s[1], s[0][::-1] + s[1]), (x, y))

    expected = x, y
    for _ in range(n):
        expected = expected[1], expected[0][::-1] + expected[1]
    for actual, want in zip(run(f, x, y, n), expected, strict=True):
        np.testing.assert_array_equal(actual, want)


@pytest.mark.parametrize("outer", [0, 1, 3])
@pytest.mark.parametrize("inner", [0, 1, 2])
def test_loops_in_loops_with_two_buffers_each(outer, inner):
    x = np.arange(4, dtype=np.int64)

    def turn(n, x):
        return lax.fori_loop(0, n, lambda j, y: jnp.roll(y, 1) * 2 + j, x)

    def f(x, outer, inner):
        return lax.fori_loop(0, outer, lambda i, y: turn(inner, y[::-1]) + i, x)

    expected = x
    for i in range(outer):
        expected = expected[::-1]
        for j in range(inner):
            expected = np.roll(expected, 1) * 2 + j
        expected = expected + i
    np.testing.assert_array_equal(run(f, x, outer, inner), expected)


def test_a_condition_runs_kernels():
    """How often x can be halved until its sum is below a limit."""

    def f(x, limit):
        return lax.while_loop(lambda s: jnp.sum(s[0]) > limit, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    halved, count = run(f, np.full(16, 4, F32), F32(9))
    assert count == 3
    np.testing.assert_array_equal(halved, np.full(16, 0.5, F32))


def test_a_loop_keeps_what_it_does_not_change():
    x, y = np.arange(9, dtype=F32).reshape(3, 3), np.eye(3, dtype=F32)

    def f(x, y):
        total, same, _ = lax.fori_loop(0, 3, lambda i, s: (s[0] + s[1][i], s[1], s[2]), (y, x, x))
        return total, same, x, y

    total, same, again, unchanged = run(f, x, y)
    np.testing.assert_array_equal(total, y + x.sum(0))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(again, x)
    np.testing.assert_array_equal(unchanged, y)


def test_two_carries_start_as_one_array():
    x = np.arange(5, dtype=np.int32)
    up, down = run(lambda x: lax.fori_loop(0, 4, lambda i, s: (s[0] + i, s[1] - s[0]), (x, x)), x)
    a, b = x, x
    for i in range(4):
        a, b = a + i, b - a
    np.testing.assert_array_equal(up, a)
    np.testing.assert_array_equal(down, b)


def test_a_scan_reads_and_stacks():
    x = np.arange(12, dtype=F32).reshape(4, 3)
    last, rows = run(lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.ones(3, F32), x), x)
    np.testing.assert_array_equal(last, 1 + x.sum(0))
    np.testing.assert_array_equal(rows, np.cumsum(np.vstack([np.ones((1, 3), F32), x]), 0)[:-1] * x)


def test_products_in_a_loop():
    x = np.eye(24, k=1, dtype=F32) + np.eye(24, dtype=F32)
    actual = run(lambda x: lax.fori_loop(0, 3, lambda i, c: c @ x, x), x)
    np.testing.assert_array_equal(actual, np.linalg.matrix_power(x.astype(np.float64), 4).astype(F32))


# ---- branches


@pytest.mark.parametrize("flag", [False, True])
def test_branches_give_scalars_and_arrays(flag):
    x = np.arange(6, dtype=F32)

    def f(flag, x):
        return lax.cond(flag, lambda x: (x * 2, x[1], x, 3), lambda x: (x[::-1], x[4] - 1, x + 1, 5), x)

    doubled, one, other, number = run(f, flag, x)
    np.testing.assert_array_equal(doubled, x * 2 if flag else x[::-1])
    np.testing.assert_array_equal(other, x if flag else x + 1)
    assert (one, number) == ((1, 3) if flag else (3, 5))


CASE = """
func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0:2 = "stablehlo.case"(%i) ({
    stablehlo.return %x, %two : tensor<4xf32>, tensor<f32>
  }, {
    %1 = stablehlo.add %x, %x : tensor<4xf32>
    %2 = stablehlo.negate %two : tensor<f32>
    stablehlo.return %1, %2 : tensor<4xf32>, tensor<f32>
  }, {
    %1 = stablehlo.negate %x : tensor<4xf32>
    %2 = stablehlo.multiply %two, %two : tensor<f32>
    stablehlo.return %1, %2 : tensor<4xf32>, tensor<f32>
  }) : (tensor<i32>) -> (tensor<4xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
}
"""


@pytest.mark.parametrize("index", [-1, -(2**31), 0, 1, 2, 3, 2**31 - 1])
def test_a_case_takes_the_last_branch_for_any_other_index(index):
    devices = xla_client.DeviceList((device(),))
    compiled = device().client.compile_and_load(CASE, devices, xla_client.CompileOptions())
    x = np.arange(4, dtype=F32)
    placed = [jax.device_put(value, device()) for value in (np.int32(index), x)]
    values, number = compiled.execute_sharded(placed).disassemble_into_single_device_arrays()
    want = {0: (x, 2), 1: (x * 2, -2)}.get(index, (-x, 4))
    np.testing.assert_array_equal(np.asarray(values[0]), want[0])
    assert np.asarray(number[0]) == want[1]


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_a_switch(index):
    x = np.arange(4, dtype=F32)

    def f(i, x):
        branches = [lambda x: (x, 10), lambda x: (x * 3, 11), lambda x: (jnp.sin(x), 12)]
        return lax.switch(i, branches, x)

    values, number = run(f, np.int32(index), x)
    taken = min(max(index, 0), 2)
    assert number == 10 + taken
    np.testing.assert_allclose(values, [x, x * 3, np.sin(x)][taken], rtol=1e-6)


def test_branches_in_a_loop_change_a_carry_in_place_or_not():
    x = np.zeros(8, np.int32)

    def f(x):
        def body(i, s):
            x, count = s
            x = lax.cond(i % 3 == 0, lambda x: x.at[i].set(i), lambda x: x + 1, x)
            return x, lax.cond(x[i] > i, lambda c: c + 1, lambda c: c * 2, count)

        return lax.fori_loop(0, 8, body, (x, 1))

    count = 1
    expected = x.copy()
    for i in range(8):
        if i % 3 == 0:
            expected[i] = i
        else:
            expected = expected + 1
        count = count + 1 if expected[i] > i else count * 2
    actual, counted = run(f, x)
    np.testing.assert_array_equal(actual, expected)
    assert counted == count


def test_a_loop_in_a_branch():
    def f(flag, n):
        return lax.cond(flag, lambda n: lax.fori_loop(0, n, lambda i, c: c * 2, 1), lambda n: -n, n)

    assert (run(f, True, 10), run(f, False, 10)) == (1024, -10)


# ---- memory


def test_results_that_are_arguments_constants_and_empty():
    table = np.arange(300, dtype=F32).reshape(3, 100)

    def f(x):
        return x, x.reshape(6), jnp.asarray(table), table[1] + x[0, 0], jnp.zeros((0, 3)), x[:, :0]

    x = np.arange(6, dtype=F32).reshape(2, 3)
    same, flat, constant, row, none, slim = run(f, x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(flat, x.reshape(6))
    np.testing.assert_array_equal(constant, table)
    np.testing.assert_array_equal(row, table[1])
    assert (none.shape, slim.shape) == ((0, 3), (2, 0))


@pytest.mark.parametrize("donate", [(), (0,)])
def test_an_argument_is_changed_only_if_given_away(donate):
    x = np.arange(10, dtype=F32)
    with jax.default_device(device()):
        placed = jax.device_put(x, device())
        result = jax.jit(lambda x: x.at[3].set(-1.0), donate_argnums=donate)(placed)
        assert placed.is_deleted() == bool(donate)
        np.testing.assert_array_equal(np.asarray(result), np.where(np.arange(10) == 3, F32(-1), x))
        if not donate:
            np.testing.assert_array_equal(np.asarray(placed), x)


def test_large_kernels_are_run_in_pieces():
    x = np.linspace(-4, 4, 1 << 20, dtype=F32)
    actual, total = run(lambda x: (jnp.tanh(x) * x, jnp.sum(jnp.abs(x))), x)
    np.testing.assert_allclose(actual, np.tanh(x) * x, rtol=2e-6)
    assert total == pytest.approx(np.abs(x).astype(np.float64).sum(), rel=1e-6)


def test_a_program_may_run_in_several_threads_at_once():
    """Runs share nothing: scratch memory and loop buffers are each one's own."""
    function = jax.jit(lambda x: lax.fori_loop(0, 20, lambda i, c: jnp.roll(c, 1) + i, x))
    inputs = [jax.device_put(np.full(5000, i, np.int32), device()) for i in range(8)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(function, inputs))
    for i, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), i + sum(range(20)))
