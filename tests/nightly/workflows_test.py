"""The workflows of GitHub Actions: actionlint finds nothing in them, and would find what is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.nightly import cli

WORKFLOWS = Path(".github/workflows").absolute()
NAMES = ("nightly", "release", "test")


def text(name: str) -> str:
    return (WORKFLOWS / f"{name}.yml").read_text()


def actionlint(folder: Path, content: str) -> subprocess.CompletedProcess[str]:
    """Runs actionlint on a workflow. What else is installed must not decide what it finds."""
    path = folder / "workflow.yml"
    path.write_text(content)
    program = str(Path(sys.executable).parent / "actionlint")
    command = [program, "-no-color", "-oneline", "-shellcheck=", "-pyflakes=", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_these_are_all():
    assert sorted(path.stem for path in WORKFLOWS.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_actionlint_finds_nothing(tmp_path: Path, name: str):
    done = actionlint(tmp_path, text(name))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "right, wrong, message",
    [
        ("timeout-minutes: 90", "timeout-minute: 90", 'unexpected key "timeout-minute" for "job" section'),
        ("${{ github.ref }}", "${{ github.reff }}", 'property "reff" is not defined'),
        ("${{ matrix.python }}", "${{ matrix.pyhton }}", 'property "pyhton" is not defined'),
        ("runs-on: ubuntu-24.04", "runs-on: ubuntu-99.04", 'label "ubuntu-99.04" is unknown'),
        ("contents: read", "contents: reed", '"reed" is invalid as permission of scope "contents"'),
        ("    steps:", "    needs: [nothing]\n    steps:", 'needs job "nothing" which does not exist'),
        ("jobs:", "jobs: [", "could not parse as YAML"),
    ],
)
def test_actionlint_finds_what_is_wrong(tmp_path: Path, right: str, wrong: str, message: str):
    assert right in text("test")
    done = actionlint(tmp_path, text("test").replace(right, wrong))
    assert done.returncode == 1
    assert message in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_what_actionlint_does_not_ask_for(name: str):
    """The least permissions, a time limit for every job, no two at once, every action pinned by its commit."""
    content = text(name)
    assert re.findall(r"permissions:\n(?: +.+\n)+", content) == ["permissions:\n  contents: read\n"]
    assert re.findall(r"^concurrency:$", content, re.MULTILINE)
    assert content.count("    timeout-minutes: ") == content.count("    runs-on: ") >= 1
    used = re.findall(r"uses: (.*)", content)
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    assert content.count("persist-credentials: false") == sum("/checkout@" in action for action in used)


def test_the_nightly_workflow_uses_options_that_there_are():
    command = text("nightly").partition("python3 -m tools.nightly ")[2].partition("\n      - ")[0]
    named = set(re.findall(r"--[a-z-]+", command))
    assert named == {"--out", "--jax-clone", "--workers", "--jaxlib", "--index"}
    assert named <= {option for action in cli.parser()._actions for option in action.option_strings}
