"""Random programs: chains of operations with shared subexpressions, loops and branches, on both backends.

Integers are exact, so they may decide anything. Floats take only smooth operations: a difference in the last bit
must not flip a comparison and look like an error.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.ops import harness

PROGRAMS = int(os.environ.get("TREADLE_TEST_PROGRAMS", "40"))
FIRST = int(os.environ.get("TREADLE_TEST_FIRST_PROGRAM", "0"))
LENGTH = 25
SHAPES = [(), (1,), (7,), (33,), (5, 8), (8, 5), (1, 17), (3, 4, 6), (2, 1, 9), (64, 3)]


class Builder:
    """Writes a program as a list of steps; each takes values by number and appends one."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self.arguments: list[Any] = []
        for _ in range(4):
            for dtype in (np.float32, np.int32):
                shape = self.pick(SHAPES)
                bounds = (-1, 1) if dtype == np.float32 else (-50, 50)
                self.arguments.append(harness.draw(self.generator, dtype, shape, *bounds))
        # What is known of each value before the program runs.
        self.values = [jax.ShapeDtypeStruct(argument.shape, argument.dtype) for argument in self.arguments]
        while len(self.steps) < LENGTH:
            self.add_step()

    def pick(self, options):
        return options[self.generator.integers(len(options))]

    def integer(self, low, high):
        return int(self.generator.integers(low, high + 1))

    def value(self, dtype=None, rank=None, shape=None):
        """The number of some value of the kind, the later the likelier; None if there is none."""
        fitting = [
            number
            for number, value in enumerate(self.values)
            if (dtype is None or value.dtype == dtype)
            and (rank is None or len(value.shape) >= rank)
            and (shape is None or value.shape == shape)
        ]
        if not fitting:
            return None
        return fitting[min(self.integer(0, len(fitting) - 1) + self.integer(0, 3), len(fitting) - 1)]

    def add_step(self):
        maker = self.pick([getattr(self, name) for name in dir(self) if name.startswith("make_")])
        made = maker()
        if made is None:
            return
        function, operands = made
        try:
            result = jax.eval_shape(function, *(self.values[operand] for operand in operands))
        except (TypeError, ValueError):
            return
        if result.size > 20_000:
            return
        self.steps.append((function, operands))
        self.values.append(result)

    def program(self, *arguments):
        values = list(arguments)
        for function, operands in self.steps:
            values.append(function(*(values[operand] for operand in operands)))
        # The last values, and some in the middle, so that not everything can be fused away.
        return tuple(values[len(self.arguments) :: 5]) + tuple(values[-3:])

    # The steps. Float results stay within a few units, so that long chains neither overflow nor cancel.

    def make_float_unary(self):
        x = self.value(np.float32)
        function = self.pick(
            [
                jnp.sin,
                jnp.tanh,
                jax.nn.sigmoid,
                lambda v: jnp.exp(-v * v),
                lambda v: lax.rsqrt(v * v + 1),
                lambda v: -v,
                lambda v: jnp.log1p(v * v),
            ]
        )
        return function, (x,)

    def make_float_binary(self):
        x, y = self.value(np.float32), self.value(np.float32)
        return self.pick([jnp.add, jnp.subtract, lambda a, b: a * jnp.tanh(b), lambda a, b: a / (1 + b * b)]), (x, y)

    def make_integer_unary(self):
        x = self.value(np.int32)
        return self.pick(
            [
                lambda v: ~v,
                lambda v: v * 3 + 1,
                jnp.abs,
                lambda v: v >> 2,
                lambda v: v // 3,
                lambda v: v % 7,
                lax.population_count,
                jnp.sign,
            ]
        ), (x,)

    def make_integer_binary(self):
        x, y = self.value(np.int32), self.value(np.int32)
        return self.pick(
            [jnp.add, jnp.subtract, jnp.multiply, jnp.bitwise_and, jnp.bitwise_xor, jnp.maximum, jnp.minimum]
        ), (x, y)

    def make_select(self):
        p, x, y = self.value(np.int32), self.value(np.float32), self.value(np.float32)
        return lambda a, b, c: jnp.where(a % 2 == 0, b, c), (p, x, y)

    def make_convert(self):
        x = self.value(np.int32)
        return lambda v: (v % 64).astype(jnp.float32) / 64, (x,)

    def make_narrow(self):
        x = self.value(np.int32)
        dtype = self.pick([np.int8, np.uint8, np.int16, np.uint32])
        return lambda v: (v.astype(dtype) + 1).astype(np.int32), (x,)

    def make_reduce(self):
        x = self.value(rank=1)
        if x is None:
            return None
        axis = self.integer(0, len(self.values[x].shape) - 1)
        keep = bool(self.integer(0, 1))
        if self.values[x].dtype == np.float32:
            return lambda v: jnp.mean(v, axis, keepdims=keep), (x,)
        return self.pick(
            [
                lambda v: jnp.sum(v, axis, keepdims=keep),
                lambda v: jnp.max(v, axis, keepdims=keep),
                lambda v: jnp.argmax(v, axis).astype(np.int32),
            ]
        ), (x,)

    def make_softmax(self):
        x = self.value(np.float32, rank=1)
        return None if x is None else (jax.nn.softmax, (x,))

    def make_transpose(self):
        x = self.value(rank=2)
        if x is None:
            return None
        order = tuple(int(k) for k in self.generator.permutation(len(self.values[x].shape)))
        return lambda v: jnp.transpose(v, order), (x,)

    def make_reshape(self):
        x = self.value()
        shape = self.values[x].shape
        target = self.pick([(-1,), (1, *shape), (*shape, 1), tuple(reversed(shape))])
        return lambda v: v.reshape(target), (x,)

    def make_broadcast(self):
        x = self.value()
        extra = self.integer(1, 4)
        return lambda v: jnp.broadcast_to(v, (extra, *v.shape)), (x,)

    def make_slice(self):
        x = self.value(rank=1)
        if x is None:
            return None
        slices = []
        for extent in self.values[x].shape:
            start = self.integer(0, max(extent - 1, 0))
            slices.append(slice(start, self.integer(start, extent), self.integer(1, 3)))
        return lambda v: v[tuple(slices)], (x,)

    def make_pad(self):
        x = self.value(rank=1)
        if x is None:
            return None
        config = [(self.integer(0, 2), self.integer(-1, 2), self.integer(0, 1)) for _ in self.values[x].shape]
        return lambda v: lax.pad(v, np.zeros((), v.dtype), config), (x,)

    def make_concatenate(self):
        x = self.value(rank=1)
        if x is None:
            return None
        y = self.value(self.values[x].dtype, shape=self.values[x].shape)
        axis = self.integer(0, len(self.values[x].shape) - 1)
        return lambda a, b: jnp.concatenate([a, b], axis), (x, y)

    def make_reverse(self):
        x = self.value(rank=1)
        return None if x is None else (lambda v: lax.rev(v, (0,)), (x,))

    def make_roll(self):
        x = self.value(rank=1)
        shift = self.integer(-5, 5)
        return None if x is None else (lambda v: jnp.roll(v, shift, -1), (x,))

    def make_gather(self):
        x, i = self.value(rank=1), self.value(np.int32)
        return None if x is None else (lambda v, k: v[k % max(v.shape[0], 1)] if v.shape[0] else v, (x, i))

    def make_scatter(self):
        x, i = self.value(np.int32, rank=1), self.value(np.int32, rank=1)
        if x is None or i is None:
            return None
        return lambda v, k: v.at[k.ravel() % (v.shape[0] + 2)].add(7, mode="drop"), (x, i)

    def make_dynamic_slice(self):
        x, i = self.value(rank=1), self.value(np.int32)

        def function(v, k):
            return lax.dynamic_slice_in_dim(v, k.ravel()[0] % 9 - 2, max(v.shape[0] - 1, 0), 0)

        return None if x is None or self.values[i].size == 0 else (function, (x, i))

    def make_dynamic_update_slice(self):
        x, i = self.value(rank=1), self.value(np.int32)
        if x is None or self.values[i].size == 0 or 0 in self.values[x].shape:
            return None
        return lambda v, k: lax.dynamic_update_slice_in_dim(v, v[:1] * 2 - v[-1:], k.ravel()[0] % 9 - 2, 0), (x, i)

    def make_product(self):
        x, y = self.value(np.float32, rank=2), self.value(np.float32, rank=1)
        if x is None or y is None:
            return None

        def function(a, b):
            b = b.reshape(-1)
            size = min(a.shape[-1], b.shape[0])
            return a[..., :size] @ b[:size] / max(size, 1)

        return function, (x, y)

    def make_window(self):
        x = self.value(np.float32, rank=1)
        if x is None:
            return None
        rank = len(self.values[x].shape)
        window = tuple(self.integer(1, 3) for _ in range(rank))
        return lambda v: lax.reduce_window(v, 0.0, lax.add, window, (1,) * rank, "SAME") / np.prod(window), (x,)

    def make_loop(self):
        x = self.value(np.float32)
        trips = self.integer(0, 4)
        return lambda v: lax.fori_loop(0, trips, lambda i, c: jnp.sin(c) + 0.1 * i, v), (x,)

    def make_integer_loop(self):
        x = self.value(np.int32)
        return lambda v: lax.while_loop(
            lambda c: c[1] < 6, lambda c: (c[0] * 3 + c[1], c[1] + 1 + jnp.abs(c[0].sum()) % 2), (v, 0)
        )[0], (x,)

    def make_branch(self):
        p, x = self.value(np.int32), self.value(np.float32)
        return lambda a, v: lax.switch(a.sum() % 3, [jnp.sin, lambda w: w * 0.5, lambda w: -w], v), (p, x)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_random_program(seed):
    builder = Builder(seed)
    expected = harness.run(builder.program, builder.arguments, harness.reference_device(), jit=True)
    actual = harness.run(builder.program, builder.arguments, harness.device_under_test(), jit=True)
    case = harness.Case(f"program {seed}", builder.program, accumulated=True, tolerance=2e-4)
    try:
        harness.assert_equal(actual, expected, case, "jit")
    except AssertionError:
        # XLA's simplifications change roundings, and a program may blow that up; op by op, jaxlib does what is written.
        plain = harness.run(builder.program, builder.arguments, harness.reference_device(), jit=False)
        harness.assert_equal(actual, plain, case, "jit, against jaxlib op by op")
