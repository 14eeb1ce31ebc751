"""Donated arguments: the result is right, the input is gone, and using it again is an error that says so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ops import harness


@pytest.fixture
def device():
    return harness.device_under_test()


def place(array, device):
    return jax.device_put(np.array(array), device)


def test_donated_input_is_deleted_and_the_result_is_right(device):
    x = place(np.arange(1000, dtype=np.float32), device)
    y = jax.jit(lambda a: a * 2 + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, np.arange(1000, dtype=np.float32) * 2 + 1)


def test_result_takes_the_donated_memory(device):
    # Computed there: an array put there may share NumPy's memory, which cannot be given away.
    x = jax.jit(lambda a: a * 0)(place(np.ones((256, 256), np.float32), device))
    address = x.unsafe_buffer_pointer()
    y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert y.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(y, np.ones((256, 256), np.float32))


def test_a_donated_value_is_still_read_where_it_is_needed(device):
    # The result overwrites the argument while the reversed argument is read: one of them must be copied.
    x = place(np.arange(4096, dtype=np.float32), device)
    y, z = jax.jit(lambda a: (a + a[::-1], a[::-1] * 2), donate_argnums=0)(x)
    values = np.arange(4096, dtype=np.float32)
    np.testing.assert_array_equal(y, values + values[::-1])
    np.testing.assert_array_equal(z, values[::-1] * 2)


def test_two_donated_arguments_swapped(device):
    x, y = place(np.arange(500, dtype=np.float32), device), place(-np.arange(500, dtype=np.float32), device)
    a, b = jax.jit(lambda p, q: (q + 1, p + 1), donate_argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(a, 1 - np.arange(500, dtype=np.float32))
    np.testing.assert_array_equal(b, 1 + np.arange(500, dtype=np.float32))
    assert x.is_deleted()
    assert y.is_deleted()


def test_update_in_place_of_a_donated_argument_in_a_loop(device):
    x = place(np.zeros((50, 100), np.float32), device)
    step = jax.jit(lambda a, i: a.at[i].add(i.astype(jnp.float32)), donate_argnums=0)
    for i in range(50):
        x = step(x, place(np.int32(i), device))
    np.testing.assert_array_equal(x, np.broadcast_to(np.arange(50, dtype=np.float32)[:, None], (50, 100)))


def test_a_donated_argument_cannot_be_used_again(device):
    x = place(np.ones(10, np.float32), device)
    double = jax.jit(lambda a: a * 2, donate_argnums=0)
    double(x)
    with pytest.raises((RuntimeError, ValueError), match=r"deleted|donated"):
        double(x)
    with pytest.raises((RuntimeError, ValueError), match=r"deleted|donated"):
        np.asarray(x)


def test_one_array_donated_and_passed_again_is_refused(device):
    x = place(np.ones(10, np.float32), device)
    with pytest.raises((RuntimeError, ValueError), match="donat"):
        jax.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(x, x)


def test_an_array_that_is_not_donated_stays(device):
    x = place(np.arange(10, dtype=np.float32), device)
    jax.jit(lambda a: a * 2)(x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(x, np.arange(10, dtype=np.float32))


def test_host_memory_of_numpy_is_never_written_to(device):
    # A host array may be used in place of a copy; donating the device's array must not write into it.
    host = np.arange(4096, dtype=np.float32)
    x = jax.device_put(host, device)
    y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(host, np.arange(4096, dtype=np.float32))
    np.testing.assert_array_equal(y, np.arange(4096, dtype=np.float32) + 1)
