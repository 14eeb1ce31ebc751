"""Where JAX looks for plugins: it imports every module of `jax_plugins` and calls its `initialize`."""

from __future__ import annotations


def initialize() -> None:
    """Registers the backend "treadle"; see treadle/plugin.py for who gets it."""
    from treadle import plugin

    plugin.initialize()
