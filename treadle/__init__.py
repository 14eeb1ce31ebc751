"""Treadle: a CPU backend for JAX, outside XLA and outside jaxlib.

Installing it is all there is to do: JAX finds the backend by itself and `JAX_PLATFORMS=treadle`
selects it. Importing this package loads neither JAX nor the compiler.
"""

from __future__ import annotations

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """`__version__`, read from the installed package when someone asks."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version("treadle")
    except metadata.PackageNotFoundError:
        return "0+source"
