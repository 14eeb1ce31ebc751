"""Chooses the platform under test before JAX opens its backends.

TREADLE_TEST_PLATFORM names it. With `cpu` the table compares jaxlib with itself, which checks the table alone.
"""

import os

import jax

PLATFORM = os.environ.setdefault("TREADLE_TEST_PLATFORM", "treadle")

jax.config.update("jax_platforms", PLATFORM if PLATFORM == "cpu" else f"{PLATFORM},cpu")
# The tests count and compare compilations: an entry from an earlier run must not take one's place.
jax.config.update("jax_enable_compilation_cache", False)
