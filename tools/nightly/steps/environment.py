"""A virtual environment with the jax and jaxlib under test and, beside them, what the locks pin."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tools.nightly.engine import Findings, Run
from tools.nightly.kinds import Kind
from tools.nightly.options import Options
from tools.nightly.process import Words
from tools.nightly.steps.find import PIP, host

INSTALLING = 1200  # seconds

# What the tests import, besides what Treadle needs.
TOOLS = ("absl-py", "hypothesis", "pypjrt", "pytest", "pytest-timeout", "pytest-xdist")
NEEDED = ("llvmlite", *TOOLS)

# What jax decides by its own requirements: all else is held at the locks' versions, so that a break is jax's.
FOLLOWS_JAX = frozenset({"jax", "jaxlib", "ml-dtypes", "numpy", "opt-einsum", "scipy"})


class Environment:
    """Makes the environment in which everything is checked and tested."""

    name = "environment"
    title = "making an environment with them"
    needs = ("find",)

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        folder = run.folder / "env"
        python = make(run, folder)
        constraints = run.folder / "constraints.txt"
        constraints.write_text("\n".join(self._held(run)) + "\n")
        install_jax(run, python, self.options)
        what = [*NEEDED, *(f"{name}=={run.fact('find', name)}" for name in ("jax", "jaxlib"))]
        command: Words = [python, *PIP, "--prefer-binary", "-c", constraints, *what]
        run.must("installing", *command, timeout=INSTALLING, kind=Kind.ENVIRONMENT)
        found = Findings(products={"python": str(python)})
        found.facts["packages"] = packages(run, python)
        found.notes += fits(run, python)
        return found

    def _held(self, run: Run) -> list[str]:
        python = ".".join(run.fact("find", "python").split(".")[:2])
        locks = self.options.root / "third_party" / "python" / "lock"
        lock = max(locks.glob(f"py{python.replace('.', '')}-*.txt"), key=lambda path: _numbers(path.stem))
        return held(lock.read_text())


def make(run: Run, folder: Path) -> Path:
    """An empty environment of the Python under test; its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    command: Words = [run.product("find", "python"), "-m", "venv", folder]
    run.must("making an environment", *command, timeout=120, kind=Kind.ENVIRONMENT)
    return folder / "bin" / "python"


def install_jax(run: Run, python: Path, options: Options) -> None:
    """Installs jax and jaxlib alone where they come from an index of their own, which has nothing else."""
    if run.fact("find", "source") != "nightly index":
        return
    assert options.index is not None
    exactly = [f"{name}=={run.fact('find', name)}" for name in ("jax", "jaxlib")]
    command: Words = [python, *PIP, "--no-deps", "--index-url", options.index, *exactly]
    what = f"installing from the index at {host(options.index)}"
    run.must(what, *command, timeout=INSTALLING, kind=Kind.ENVIRONMENT)


def held(lock: str) -> list[str]:
    """The constraints that a lock file gives for all that does not follow jax."""
    pinned = re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE)
    return [f"{name}=={version}" for name, version in pinned if name not in FOLLOWS_JAX]


def packages(run: Run, python: Path) -> dict[str, str]:
    """What is installed."""
    command: Words = [python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"]
    done = run.must("listing what is installed", *command, timeout=120, kind=Kind.ENVIRONMENT)
    listed = json.loads(done.output[done.output.index("[") : done.output.rindex("]") + 1])
    return {item["name"].lower(): item["version"] for item in listed}


def fits(run: Run, python: Path) -> list[str]:
    """What pip says about requirements that are not met, a note each."""
    done = run.command(python, "-m", "pip", "--disable-pip-version-check", "check", timeout=120)
    return [] if done.ok else [f"pip check: {line}" for line in done.output.strip().splitlines()]


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]
