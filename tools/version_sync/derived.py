"""What is derived from versions.toml and checked in: whether it is in step, and how it is brought in step.

One list for the test that fails when something is out of date and for the tool that mends it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from third_party.python import lock
from tools.version_sync import tables

BAZEL_VERSION = ".bazelversion"


def _pins(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "versions.toml").read_text(encoding="utf-8"))


def _texts(root: Path) -> dict[str, str]:
    """The derived files that need no registry: what each should say, by its name."""
    pins = _pins(root)
    return {BAZEL_VERSION: pins["bazel"]["version"] + "\n", tables.SUPPORTED: tables.supported(pins)}


def derived_files(root: Path) -> list[str]:
    """The files of the checkout `root` that are derived, by name."""
    return [*_texts(root), *(entry.path for entry in lock.locks(_pins(root)))]


def sources(root: Path) -> list[str]:
    """The files beside versions.toml that something is derived from, by name."""
    del root
    return []


def stale(root: Path) -> list[str]:
    """What in the checkout `root` is out of step with what it is derived from, and what to run; needs no network."""
    problems = []
    for name, text in _texts(root).items():
        file = root / name
        if not file.is_file():
            problems.append(f"{name} is missing; run ./bazelw run //tools/version_sync -- pins --fix")
        elif file.read_text(encoding="utf-8") != text:
            problems.append(f"{name} is out of date; run ./bazelw run //tools/version_sync -- pins --fix")
    for entry in lock.locks(_pins(root)):
        problems += entry.problems(root)
    return problems


def regenerate(
    root: Path, interpreters: Mapping[str, str] | None = None, upgrade: bool = False
) -> tuple[list[str], list[str]]:
    """Writes what is out of step; gives the files that changed, and what could not be made and why.

    Raises:
        RuntimeError: pip cannot resolve the requirements of a lock file, or cannot be reached.
    """
    changed = []
    for name, text in _texts(root).items():
        file = root / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            changed.append(name)
    locked, skipped = lock.update(root, interpreters, upgrade)
    return changed + locked, skipped
