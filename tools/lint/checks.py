"""The checks of the source tree that need no build. `./check` and lint_test.py run them.

A check takes the tree and gives the problems that it found, each as one printable
text; an empty list is success.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.version_sync import derived

LINE_LIMIT = 400
SOURCE_SUFFIXES = (".py", ".cc", ".h", ".bzl", ".sh")
EXCEPTIONS = "tools/lint/long_files.txt"

# Where packages come from is the business of the package managers' settings, and a
# path under a home folder is true on one machine only (test data name /home/me instead).
# The brackets keep this file from matching itself.
ADDRESSES = re.compile(
    r"p[y]pi\.org|p[y]thonhosted\.org|deb\.[d]ebian\.org|ftp\.[^ ]*[d]ebian\.org"
    r"|registry\.[n]pmjs|(?<![\w.~{}-])/(?:ro[o]t|ho[m]e(?!/me))/"
)


@dataclass(frozen=True)
class Tree:
    """The files under version control, and the new ones that are not ignored."""

    root: Path
    names: tuple[str, ...]

    @staticmethod
    def of(root: Path) -> Tree:
        """Asks git for the files of the checkout at `root`."""
        command = ["git", "-c", f"safe.directory={root}", "ls-files", "-z"]
        command += ["--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
        names = sorted({name for name in listing.decode().split("\0") if name})
        return Tree(root, tuple(name for name in names if (root / name).is_file()))

    def ending(self, *suffixes: str) -> list[str]:
        """The files whose names end in one of `suffixes`."""
        return [name for name in self.names if name.endswith(suffixes)]

    def read(self, name: str) -> str:
        """A file's text; what is not UTF-8 is replaced."""
        return (self.root / name).read_text(encoding="utf-8", errors="replace")


def _tool(tree: Tree, command: list[str], files: list[str]) -> list[str]:
    if not files:
        return []
    done = subprocess.run([*command, *files], cwd=tree.root, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines or [f"{command[0]} exited with {done.returncode}"]


def cpp_format(tree: Tree) -> list[str]:
    """C++ is formatted as .clang-format says."""
    files = tree.ending(".cc", ".h", ".c")
    return _tool(tree, ["clang-format", "--dry-run", "-Werror"], files)


def python_format(tree: Tree) -> list[str]:
    """Python is formatted as ruff formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--no-cache", "--diff"]
    return _tool(tree, command, tree.ending(".py"))


def python_lint(tree: Tree) -> list[str]:
    """Python passes ruff's rules of pyproject.toml."""
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "--no-cache"]
    return _tool(tree, [*command, "--output-format=concise"], tree.ending(".py"))


def python_types(tree: Tree) -> list[str]:
    """Python passes mypy, as pyproject.toml configures it."""
    cache = os.environ.get("TEST_TMPDIR") or str(tree.root)
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    command += ["--cache-dir", os.path.join(cache, ".mypy_cache")]
    return _tool(tree, command, tree.ending(".py"))


def addresses(tree: Tree) -> list[str]:
    """No file names a package registry's address or a home folder."""
    problems = []
    for name in tree.names:
        text = tree.read(name)
        if "\0" in text:
            continue  # no text: a binary file may hold any bytes
        for number, line in enumerate(text.splitlines(), start=1):
            if found := ADDRESSES.search(line):
                problems.append(f"{name}:{number}: {found.group()}")
    return problems


def line_counts(tree: Tree) -> list[tuple[int, str]]:
    """The source files over the limit, the longest first."""
    counts = [(tree.read(name).count("\n"), name) for name in tree.ending(*SOURCE_SUFFIXES)]
    return sorted((entry for entry in counts if entry[0] > LINE_LIMIT), reverse=True)


def file_length(tree: Tree) -> list[str]:
    """A file over 400 lines is listed in long_files.txt with its reason, and no other is."""
    rows = [line.split(maxsplit=1) for line in tree.read(EXCEPTIONS).splitlines() if line and not line.startswith("#")]
    allowed = {row[0]: row[1] if len(row) > 1 else "" for row in rows}
    counts = {name: lines for lines, name in line_counts(tree)}
    problems = [
        f"{name}: {lines} lines; split it, or give the reason in {EXCEPTIONS}"
        for name, lines in counts.items()
        if not allowed.get(name)
    ]
    problems += [
        f"{name}: listed in {EXCEPTIONS}, but it is not over {LINE_LIMIT} lines"
        for name in allowed
        if name not in counts
    ]
    return problems


def pins(tree: Tree) -> list[str]:
    """What is derived from versions.toml (lock files, .bazelversion, tables) agrees with it."""
    return derived.stale(tree.root)


CHECKS: tuple[Callable[[Tree], list[str]], ...] = (
    cpp_format,
    python_format,
    python_lint,
    python_types,
    addresses,
    file_length,
    pins,
)
