"""Treadle beside jaxlib's CPU backend: `python -m benchmarks`."""
