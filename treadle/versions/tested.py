"""What this Treadle was tested with. Every start of JAX asks, so it reads one small file and the packages' metadata."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from treadle.versions import releases

_FILE = Path(__file__).parent / "supported.json"


class UntestedVersionWarning(RuntimeWarning):
    """A package that Treadle builds on is installed in a version that it was not tested with."""


@dataclass(frozen=True)
class Range:
    """The versions of a package that the wheel accepts; an empty bound does not bind."""

    minimum: str
    below: str = ""

    def __str__(self) -> str:
        return f">={self.minimum}" + (f",<{self.below}" if self.below else "")

    def __contains__(self, version: str) -> bool:
        return releases.is_within(version, self.minimum, self.below)


@dataclass(frozen=True)
class Supported:
    """What versions.toml says about the world around Treadle.

    Attributes:
      pythons: the supported versions of Python, "3.11" and so on.
      accepted: the ranges that pip holds each package to.
      tested: for the packages that are tested release by release, those releases.
      pairs: the tested pairs of jax and jaxlib, and the Pythons that each is tested with; the newest first.
      pjrt: PJRT's version in the headers that the plugin is built with; `ffi` is that of the FFI.
    """

    pythons: tuple[str, ...]
    accepted: dict[str, Range]
    tested: dict[str, tuple[str, ...]]
    pairs: tuple[tuple[str, str, tuple[str, ...]], ...]
    pjrt: str
    ffi: str

    def is_tested(self, package: str, version: str) -> bool:
        """Whether a version was tested: listed where releases are, within the accepted range elsewhere."""
        if package in self.tested:
            return releases.public(version) in self.tested[package]
        return version in self.accepted[package]

    def pair_for(self, python: str) -> tuple[str, str] | None:
        """The newest tested jax and jaxlib for a Python ("3.12"); None if none was tested with it."""
        return next(((jax, jaxlib) for jax, jaxlib, pythons in self.pairs if python in pythons), None)

    def tested_text(self, package: str) -> str:
        """What was tested, for a sentence: "0.10.2, 0.11.0 and 0.12.0.1" or ">=0.45,<0.51"."""
        if package not in self.tested:
            return str(self.accepted[package])
        return joined(self.tested[package])


def joined(names: Sequence[str]) -> str:
    """The names as part of a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


@functools.cache
def supported() -> Supported:
    """Reads supported.json, which is made from versions.toml."""
    content = json.loads(_FILE.read_text(encoding="utf-8"))
    return Supported(
        pythons=tuple(content["python"]),
        accepted={name: Range(**bounds) for name, bounds in content["accepted"].items()},
        tested={name: tuple(versions) for name, versions in content["tested"].items()},
        pairs=tuple((jax, jaxlib, tuple(pythons)) for jax, jaxlib, pythons in content["pairs"]),
        pjrt=content["pjrt_api"],
        ffi=content["ffi_api"],
    )


def installed(package: str) -> str | None:
    """The installed version, from the package's metadata; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def untested_sentence() -> str | None:
    """One line about what is installed here and was not tested; None if there is nothing to say."""
    known = supported()
    parts = []
    for package in ("jax", "jaxlib", "llvmlite"):
        version = installed(package)
        if version is not None and not known.is_tested(package, version):
            parts.append(f"{package} {version} (tested: {known.tested_text(package)})")
    if not parts:
        return None
    return f"Treadle was not tested with {', '.join(parts)}; `python -m treadle versions` says what differs."
