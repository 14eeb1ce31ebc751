"""What is derived from versions.toml and checked in: whether it is in step, and how it is brought in step.

One list for the test that fails when something is out of date and for the tool that mends it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from third_party.python import lock
from tools.version_sync import header, support_matrix, tables

BAZEL_VERSION = ".bazelversion"


def _pins(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "versions.toml").read_text(encoding="utf-8"))


def _texts(root: Path, headers: Path | None) -> dict[str, str]:
    """The derived files that need no registry: what each should say, by its name."""
    pins = _pins(root)
    texts = {BAZEL_VERSION: pins["bazel"]["version"] + "\n", tables.SUPPORTED: tables.supported(pins)}
    if (measured := support_matrix.load(root)) is not None:
        texts[support_matrix.PAGE] = support_matrix.page(measured)
    if headers is not None:
        texts[tables.SLOTS] = tables.slots(header.read(headers))
    return texts


def derived_files(root: Path) -> list[str]:
    """The files of the checkout `root` that are derived, by name."""
    return [*_texts(root, None), tables.SLOTS, *(entry.path for entry in lock.locks(_pins(root)))]


def _out_of_date(root: Path, headers: Path | None) -> dict[str, str]:
    """What should be in the files that say something else, or nothing."""
    return {
        name: text
        for name, text in _texts(root, headers).items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    }


def stale(root: Path, headers: Path | None = None) -> list[str]:
    """What in the checkout `root` is out of step with what it is derived from, and what to run; needs no network.

    `headers` is the folder of the pinned headers; without it, what is derived from those is not looked at.
    """
    problems = [
        f"{name} is {'out of date' if (root / name).is_file() else 'missing'}; {lock.REMEDY}"
        for name in _out_of_date(root, headers)
    ]
    pins = _pins(root)
    for entry in lock.locks(pins):
        problems += entry.problems(root)
    measured = support_matrix.load(root)
    if measured is None:
        return [*problems, f"{support_matrix.SOURCE} is missing; run {support_matrix.COMMAND}"]
    return problems + support_matrix.gaps(measured, pins)


def regenerate(
    root: Path,
    headers: Path | None = None,
    interpreters: Mapping[str, str] | None = None,
    upgrade: bool = False,
) -> tuple[list[str], list[str]]:
    """Writes what is out of step; gives the files that changed, and what could not be made and why.

    Raises:
        RuntimeError: pip cannot resolve the requirements of a lock file, or cannot be reached.
        HeaderError: `headers` holds no headers.
    """
    changed = _out_of_date(root, headers)
    for name, text in changed.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    locked, skipped = lock.update(root, interpreters, upgrade)
    return [*changed, *locked], skipped
