"""What a user sees who does something wrong: an error that says what and where, and a process that lives on."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ops import harness

pytestmark = pytest.mark.skipif(harness.PLATFORM == "cpu", reason="the messages are Treadle's")


@pytest.fixture
def device():
    return harness.device_under_test()


def still_works(device):
    x = jax.device_put(np.arange(5, dtype=np.float32), device)
    np.testing.assert_array_equal(jax.jit(lambda a: a + 1)(x), np.arange(5, dtype=np.float32) + 1)


def test_everything_unsupported_is_listed_at_once_with_its_place(device):
    def program(x):
        ordered = jnp.sort(x)
        spectrum = jnp.fft.rfft(x)
        return ordered + jnp.abs(spectrum)[0]

    lines, first = inspect.getsourcelines(program)
    x = jax.device_put(np.arange(8, dtype=np.float32), device)
    with pytest.raises(Exception, match="UNIMPLEMENTED") as caught:
        jax.jit(program)(x)
    text = str(caught.value)
    assert "sort" in text
    assert "fft" in text
    for word in ("jnp.sort", "jnp.fft"):
        number = first + next(k for k, line in enumerate(lines) if word in line)
        assert f"errors_test.py:{number}" in text, text
    still_works(device)


def test_a_deleted_array_as_argument(device):
    x = jax.device_put(np.arange(5, dtype=np.float32), device)
    x.delete()
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        jax.jit(lambda a: a + 1)(x)
    still_works(device)


def test_a_deleted_array_read_back(device):
    x = jax.jit(lambda a: a + 1)(jax.device_put(np.arange(5, dtype=np.float32), device))
    x.delete()
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        np.asarray(x)
    still_works(device)


def test_arrays_of_two_backends_do_not_mix(device):
    here = jax.device_put(np.arange(5, dtype=np.float32), device)
    there = jax.device_put(np.arange(5, dtype=np.float32), harness.reference_device())
    with pytest.raises(ValueError, match=r"[Dd]evice"):
        jax.jit(lambda a, b: a + b)(here, there)
    moved = jax.device_put(there, device)
    np.testing.assert_array_equal(jax.jit(lambda a, b: a + b)(here, moved), 2 * np.arange(5, dtype=np.float32))


def test_memory_that_cannot_be_had(device):
    x = jax.device_put(np.float32(1), device)
    with pytest.raises(Exception, match="RESOURCE_EXHAUSTED"):
        jax.block_until_ready(
            jax.jit(lambda a: jnp.broadcast_to(a, (1 << 24, 1 << 24)) + jnp.arange(1 << 24, dtype=jnp.float32))(x)
        )
    still_works(device)


def test_an_error_in_one_program_does_not_touch_others(device):
    good = jax.jit(lambda a: a * 3)
    x = jax.device_put(np.arange(6, dtype=np.float32), device)
    first = good(x)
    with pytest.raises(Exception, match="UNIMPLEMENTED"):
        jax.jit(jnp.sort)(x)
    np.testing.assert_array_equal(first, good(x))
