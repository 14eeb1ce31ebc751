"""The metadata of a release (METADATA in a wheel, PKG-INFO in an sdist), made from versions.toml and the README.

Only the standard library is imported: a build backend runs before anything is installed.
"""

from __future__ import annotations

import re
from typing import Any

SUMMARY = "A CPU backend for JAX, outside XLA and jaxlib: a PJRT plugin and a StableHLO compiler"

# What each archive is under: the wheel brings libgomp, the source archive brings our own files alone.
WHEEL_LICENSE = "Apache-2.0 AND GPL-3.0-or-later WITH GCC-exception-3.1"
SDIST_LICENSE = "Apache-2.0"

KEYWORDS = ("jax", "pjrt", "stablehlo", "compiler", "cpu", "llvm", "machine-learning")

CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: C++",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3 :: Only",
    "Programming Language :: Python :: Implementation :: CPython",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Topic :: Software Development :: Compilers",
    "Typing :: Typed",
)

# A link to a file of the repository leads nowhere on an index's page, which has no such file beside it.
_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|mailto:|#)[^)\s]+\)")


def requires_python(pins: dict[str, Any]) -> str:
    """The range of Pythons: from the oldest supported one to the newest."""
    versions = pins["python"]["versions"]
    major, minor = versions[-1].split(".")
    return f">={versions[0]},<{major}.{int(minor) + 1}"


def requirements(pins: dict[str, Any]) -> dict[str, str]:
    """The distributions that Treadle runs with, each with its range of versions."""

    def bounds(pin: dict[str, str]) -> str:
        return f">={pin['minimum']}" + (f",<{pin['below']}" if "below" in pin else "")

    ranges = {name: bounds(pins[name]) for name in ("jax", "llvmlite", "numpy", "ml_dtypes")}
    return ranges | {"jaxlib": bounds(pins["jax"])}


def description(readme: str) -> str:
    """The README as an index shows it: a link to a file of the repository becomes its text."""
    return _RELATIVE_LINK.sub(r"\1", readme)


def metadata(pins: dict[str, Any], readme: str, license_expression: str, license_files: list[str]) -> str:
    """The text of METADATA or PKG-INFO (version 2.4 of the core metadata)."""
    pythons = [f"Programming Language :: Python :: {version}" for version in pins["python"]["versions"]]
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", "treadle"),
        ("Version", pins["treadle"]["version"]),
        ("Summary", SUMMARY),
        ("Author", "The Treadle authors"),
        ("License-Expression", license_expression),
        *(("License-File", name) for name in sorted(license_files)),
        ("Keywords", ",".join(KEYWORDS)),
        *(("Classifier", name) for name in sorted([*CLASSIFIERS, *pythons])),
        ("Requires-Python", requires_python(pins)),
        *(("Requires-Dist", name + bounds) for name, bounds in requirements(pins).items()),
        ("Description-Content-Type", "text/markdown"),
    ]
    return "".join(f"{name}: {value}\n" for name, value in fields) + "\n" + description(readme)
