"""Names the compiler: what a program was compiled with, for every cache that keeps compiled programs."""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata
from pathlib import Path

# What decides about the code besides our own sources.
_PACKAGES = ("jaxlib", "llvmlite")


@functools.cache
def build_id() -> str:
    """Sixteen hexadecimal digits: a hash of the compiler's sources and of the versions of what it is built on."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        digest.update(f"{package}={_version(package)}\n".encode())
    root = Path(__file__).absolute().parent / "compiler"
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
