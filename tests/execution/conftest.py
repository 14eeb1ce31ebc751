"""Chooses Treadle before JAX opens its backends."""

import jax

jax.config.update("jax_platforms", "treadle,cpu")
jax.config.update("jax_enable_compilation_cache", False)
