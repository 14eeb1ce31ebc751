"""What is derived from versions.toml: the checkout is in step, and a copy that was edited is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from third_party.python import lock
from tools.version_sync import derived, support_matrix, tables

# Bazel runs a test where its declared files lie.
ROOT = Path.cwd()
HEADERS = Path(os.environ["RUNFILES_DIR"]) / "xla_headers"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """versions.toml and everything derived from it, in a folder of its own."""
    names = ["versions.toml", support_matrix.SOURCE, *derived.derived_files(ROOT)]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def edit(root: Path, old: str, new: str, name: str = "versions.toml") -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def test_the_checkout_is_in_step():
    assert derived.stale(ROOT, HEADERS) == []


@pytest.mark.parametrize(
    ("old", "new", "files"),
    [
        ('version = "4.2.3"', 'version = "5.0.0"', {".bazelversion"}),
        ('    "pytest",\n', '    "pytest",\n    "pytest-cov",\n', {"third_party/python/lock/"}),
        ("[llvmlite]\n# Locked", "[llvmlite]\n# locked", set()),
        ('minimum = "2.0"', 'minimum = "2.1"', {"third_party/python/lock/", "treadle/versions/supported.json"}),
        (
            'package = "pypjrt"\nversion = "0.1.1"',
            'package = "pypjrt"\nversion = "0.1.2"',
            {"third_party/xla_headers/"},
        ),
        ('version = "2023.2.0"', 'version = "2024.0.0"', {"third_party/onednn/"}),
        ('pjrt_api = "0.114"', 'pjrt_api = "0.115"', {"treadle/versions/supported.json", support_matrix.SOURCE}),
        ('matrix = ["0.10.2", ', 'matrix = ["0.10.1", "0.10.2", ', {support_matrix.SOURCE}),
        (
            'python = ["3.11"]',
            'python = ["3.11", "3.12"]',
            {"third_party/python/lock/py312-jaxlib0.10.2.txt", "treadle/versions/supported.json"},
        ),
    ],
)
def test_an_edited_pin_is_noticed(copy: Path, old: str, new: str, files: set[str]):
    assert derived.stale(copy) == []
    edit(copy, old, new)
    found = derived.stale(copy)
    assert all(any(problem.startswith(file) for problem in found) for file in files)
    assert all(any(problem.startswith(file) for file in files) for problem in found)
    assert bool(found) == bool(files)


def test_an_edited_lock_file_is_noticed(copy: Path):
    name = "third_party/python/lock/py311-jaxlib0.10.2.txt"
    edit(copy, "jaxlib==0.10.2 ", "jaxlib==0.10.1 ", name)
    (problem,) = derived.stale(copy)
    assert problem.startswith(f"{name} does not lock jaxlib==0.10.2; run ")


@pytest.mark.parametrize(("package", "line"), [("numpy", ""), ("scipy", "scipy==1.17.0\n"), ("ruff", "ruff\n")])
def test_a_line_of_a_lock_file_that_locks_nothing_is_noticed(copy: Path, package: str, line: str):
    file = copy / "third_party/python/lock/py311-jaxlib0.10.2.txt"
    text, count = re.subn(rf"(?m)^{package}==.*\n", line, file.read_text())
    assert count == 1
    file.write_text(text)
    (problem,) = derived.stale(copy)
    assert f"locks nothing, {line.strip()!r}; run " in problem if line else "does not lock numpy>=2.0; run " in problem


def test_a_matrix_that_cannot_be_read_is_an_error_that_says_so(copy: Path):
    for text in ("{", "[]", "{}"):
        (copy / support_matrix.SOURCE).write_text(text)
        with pytest.raises(RuntimeError, match=r"support_matrix\.json is not what matrix writes .*; run .* matrix"):
            derived.stale(copy)


def test_tables_made_from_the_headers_are_noticed_and_mended(copy: Path, pip: Pip):
    edit(copy, '"PJRT_Client_Create"', '"PJRT_Client_Creator"', tables.SLOTS)
    (problem,) = derived.stale(copy, HEADERS)
    assert problem.startswith(f"{tables.SLOTS} is out of date; run ")
    assert derived.regenerate(copy, HEADERS) == ([tables.SLOTS], [])
    assert derived.stale(copy, HEADERS) == []
    assert pip.calls == 0


def test_a_page_that_is_not_its_source_is_noticed_and_mended(copy: Path, pip: Pip):
    edit(copy, "# Support matrix", "# Matrix", support_matrix.PAGE)
    (problem,) = derived.stale(copy)
    assert problem.startswith(f"{support_matrix.PAGE} is out of date; run ")
    assert derived.regenerate(copy) == ([support_matrix.PAGE], [])
    (copy / support_matrix.SOURCE).unlink()
    (problem,) = derived.stale(copy)
    assert problem.startswith(f"{support_matrix.SOURCE} is missing; run ")


class Pip:
    """Stands in for pip's answers: each requirement without a version is at `newest`."""

    def __init__(self, newest: str):
        self.newest = newest
        self.calls = 0

    def __call__(self, _: str, step: lock.Step, constraints: dict[str, str]) -> list[lock.Row]:
        self.calls += 1
        rows = []
        for text in step.requirements:
            name, _, version = text.lower().replace(">=", "==").partition("==")
            name = name.replace("_", "-")
            kept = constraints.get(name, self.newest)
            rows.append((name, version if "==" in text else kept, "0" * 64))
        return sorted(rows)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    stand_in = Pip("99.0")
    monkeypatch.setattr(lock, "_ask", stand_in)
    monkeypatch.setattr(lock, "find_python", lambda *_: sys.executable)
    return stand_in


def test_fix_mends_what_is_out_of_step_and_twice_changes_nothing(copy: Path, pip: Pip):
    edit(copy, 'version = "4.2.3"', 'version = "5.0.0"')
    edit(copy, '    "pytest",\n', '    "pytest",\n    "pytest-cov",\n')
    changed, skipped = derived.regenerate(copy)
    assert ".bazelversion" in changed
    assert len(changed) == 1 + sum(
        len(row["python"]) for row in tomllib.loads((copy / "versions.toml").read_text())["jax"]["tested"]
    )
    assert skipped == []
    assert derived.stale(copy) == []
    calls = pip.calls
    assert derived.regenerate(copy) == ([], [])
    assert pip.calls == calls


def test_what_was_locked_keeps_its_version_unless_asked(copy: Path, pip: Pip):
    name = "third_party/python/lock/py311-jaxlib0.10.2.txt"
    before = lock.rows(copy / name)
    edit(copy, '    "pytest",\n', '    "pytest",\n    "pytest-cov",\n')
    derived.regenerate(copy)
    after = lock.rows(copy / name)
    assert after["ruff"] == before["ruff"]
    assert after["pytest-cov"] == "99.0"
    derived.regenerate(copy, upgrade=True)
    assert lock.rows(copy / name)["ruff"] == "99.0"


def test_without_the_interpreter_the_lock_file_stays_and_is_named(copy: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "_ask", Pip("99.0"))
    monkeypatch.setattr(lock, "find_python", lambda version, _: None if version == "3.13" else sys.executable)
    edit(copy, 'minimum = "2.0"', 'minimum = "2.1"')
    _, skipped = derived.regenerate(copy)
    assert all("there is no Python 3.13 here" in text for text in skipped)
    assert {problem.partition(" ")[0] for problem in derived.stale(copy)} == {
        text.partition(" ")[0] for text in skipped
    }


def test_interpreters_are_those_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    this = "{}.{}".format(*sys.version_info)
    assert lock.find_python(this) == sys.executable
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'not installed' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert subprocess.run([shim], capture_output=True, check=False).returncode == 127
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert lock.find_python("3.99") is None
    real = tmp_path / "pyenv/versions/3.99.1/bin/python"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho 3.99\n")
    real.chmod(0o755)
    assert lock.find_python("3.99") == str(real)
    assert lock.find_python("3.99", {"3.99": "/given"}) == "/given"
