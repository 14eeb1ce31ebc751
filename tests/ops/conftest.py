"""Chooses the platform under test before JAX opens its backends.

TREADLE_TEST_PLATFORM names it. With `cpu` the table compares jaxlib with itself, which checks the table alone.
"""

import os

import jax
import pytest

PLATFORM = os.environ.setdefault("TREADLE_TEST_PLATFORM", "treadle")

jax.config.update("jax_platforms", PLATFORM if PLATFORM == "cpu" else f"{PLATFORM},cpu")
# The tests count and compare compilations: an entry from an earlier run must not take one's place.
jax.config.update("jax_enable_compilation_cache", False)

# JAX keeps every program and all that led to it: some 1.5 MB each, on either backend.
TESTS_BETWEEN_CLEARINGS = 100
_tests_done = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def _bounded_memory(request):
    yield
    done = request.config.stash.setdefault(_tests_done, 0) + 1
    request.config.stash[_tests_done] = done
    if done % TESTS_BETWEEN_CLEARINGS == 0:
        jax.clear_caches()
