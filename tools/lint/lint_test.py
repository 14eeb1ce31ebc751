"""The checks of checks.py on this checkout, and each check on a tree that breaks it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.lint import checks
from tools.lint.checks import CHECKS, Tree

# Runfiles are links into the checkout: the test reads the real tree, git's list and all.
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree.of(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checkout(tree: Tree, check: Callable[[Tree], list[str]]) -> None:
    problems = check(tree)
    assert not problems, "\n".join(problems[:50])


def write(root: Path, files: dict[str, str]) -> Tree:
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree.of(root)


def test_bad_cpp_format_is_found(tmp_path: Path) -> None:
    broken = write(tmp_path, {"a.cc": "int  main( ) {return 0 ;}\n"})
    assert "a.cc" in checks.cpp_format(broken)[0]


def test_bad_python_is_found(tmp_path: Path) -> None:
    broken = write(tmp_path, {"a.py": 'import os\nx:int = "text"\n'})
    assert checks.python_format(broken)
    assert any("F401" in problem for problem in checks.python_lint(broken))
    assert any("assignment" in problem for problem in checks.python_types(broken))


@pytest.mark.parametrize("text", ["https://" + "py" + "pi.org/simple", "see /ro" + "ot/x"])
def test_addresses_are_found(tmp_path: Path, text: str) -> None:
    broken = write(tmp_path, {"a.md": f"one\n{text}\n"})
    assert len(checks.addresses(broken)) == 1
    assert checks.addresses(broken)[0].startswith("a.md:2:")


def test_long_files_need_a_reason(tmp_path: Path) -> None:
    long = "x = 1\n" * (checks.LINE_LIMIT + 1)
    broken = write(
        tmp_path,
        {
            "allowed.py": long,
            "long.py": long,
            "short.py": "",
            checks.EXCEPTIONS: "allowed.py one table\nshort.py was long once\n",
        },
    )
    problems = checks.file_length(broken)
    assert [problem.partition(":")[0] for problem in problems] == ["long.py", "short.py"]


def test_derived_files_that_are_out_of_date_are_found(tmp_path: Path, tree: Tree) -> None:
    pins = tree.read("versions.toml").replace('version = "4.2.3"', 'version = "5"')
    files = {"versions.toml": pins, ".bazelversion": tree.read(".bazelversion")}
    problems = checks.pins(write(tmp_path, files))
    assert any(problem.startswith(".bazelversion is out of date") for problem in problems)
    assert any("lock.txt is missing" in problem for problem in problems)
