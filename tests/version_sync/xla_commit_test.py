"""Finding the pinned headers' commit in a small repository that has XLA's layout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools.version_sync import xla_commit
from tools.version_sync.xla_commit import HEADER, CloneError, Found

MAIN, FFI = HEADER, "xla/ffi/api/c_api.h"


def git(folder: Path, *arguments: str, day: int = 1) -> str:
    date = f"2026-07-{day:02}T12:00:00+0000"
    variables = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    done = subprocess.run(command, env=os.environ | variables, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, list[str]]:
    """Five commits: the main header is "two" in the second to the fourth, the FFI header changes in the third."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    steps = [
        {MAIN: "one", FFI: "old"},
        {MAIN: "two"},
        {FFI: "new"},
        {"xla/other.cc": "x"},
        {MAIN: "three"},
    ]
    commits = []
    for number, files in enumerate(steps, start=1):
        write(folder, files)
        git(folder, "add", "-A", day=number)
        git(folder, "commit", "--quiet", "-m", str(number), day=number)
        commits.append(git(folder, "rev-parse", "HEAD"))
    return folder, commits


def headers(tmp_path: Path, main: str, ffi: str) -> Path:
    write(tmp_path / "headers", {MAIN: main, FFI: ffi})
    return tmp_path / "headers"


def test_the_commit_is_the_first_at_which_all_headers_agree(clone: tuple[Path, list[str]], tmp_path: Path):
    folder, commits = clone
    found = xla_commit.find(headers(tmp_path, "two", "new"), folder)
    assert found.commit == commits[2]
    assert "1 of the 1 other headers are byte-identical there (2026-07-03)" in found.how


def test_a_bare_clone_and_the_newest_commit(clone: tuple[Path, list[str]], tmp_path: Path):
    folder, commits = clone
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), "bare")
    assert xla_commit.find(headers(tmp_path, "three", "new"), tmp_path / "bare").commit == commits[4]


def test_if_the_other_headers_never_agree_that_is_said(clone: tuple[Path, list[str]], tmp_path: Path):
    found = xla_commit.find(headers(tmp_path, "two", "patched"), clone[0])
    assert found.commit == clone[1][1]
    assert "0 of the 1 other headers" in found.how


def test_one_byte_more_is_another_header(clone: tuple[Path, list[str]], tmp_path: Path):
    folder, commits = clone
    found = xla_commit.find(headers(tmp_path, "two\n", "new"), folder)
    assert found.commit == "unknown"
    assert f"none of the 3 versions of {HEADER} from {commits[0][:12]} to {commits[4][:12]}" in found.how


def test_what_is_no_clone_is_refused(tmp_path: Path):
    with pytest.raises(CloneError, match="git cannot read"):
        xla_commit.find(headers(tmp_path, "two", "new"), tmp_path)
    git(tmp_path, "init", "--quiet", "other")
    write(tmp_path / "other", {"README": ""})
    git(tmp_path / "other", "add", "-A")
    git(tmp_path / "other", "commit", "--quiet", "-m", "1")
    with pytest.raises(CloneError, match="is it a clone of openxla/xla"):
        xla_commit.find(headers(tmp_path, "two", "new"), tmp_path / "other")


def test_it_is_recorded_once(tmp_path: Path):
    pins = tmp_path / "versions.toml"
    pins.write_text('[xla_headers]\nxla_commit = "unknown"\nxla_commit_how = "nothing was at hand"\n[tools]\n')
    found = Found("ab12", 'compared "byte" for byte')
    assert xla_commit.record(pins, found)
    expected = '[xla_headers]\nxla_commit = "ab12"\nxla_commit_how = "compared \'byte\' for byte"\n[tools]\n'
    assert pins.read_text() == expected
    assert not xla_commit.record(pins, found)
    pins.write_text("[xla_headers]\n")
    with pytest.raises(ValueError, match="has 0 lines that begin with `xla_commit =`"):
        xla_commit.record(pins, found)
