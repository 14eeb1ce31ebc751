"""Steps that do what a test says, and a checkout to run them on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.nightly.engine import Engine, Findings, Result, Run
from tools.nightly.kinds import Kind
from tools.nightly.options import Options


class Fake:
    """A step that counts how often it ran."""

    def __init__(self, name: str, needs: tuple[str, ...] = (), do: Callable[[Run], Findings | None] | None = None):
        self.name = name
        self.title = f"doing {name}"
        self.needs = needs
        self.ran = 0
        self._do = do

    def run(self, run: Run) -> Findings:
        self.ran += 1
        return (self._do(run) if self._do else None) or Findings()


def breaks(kind: Kind, summary: str = "it broke") -> Callable[[Run], Findings]:
    """What a step does that finds a break."""
    return lambda _: Findings().broke(kind, summary, "the end of its log")


def find(jaxlib: str = "1.0", nightly: bool = False) -> Fake:
    """A first step that finds these versions."""
    facts = {"jax": jaxlib, "jaxlib": jaxlib, "python": "3.13.0", "source": "registry", "is_nightly": nightly}
    return Fake("find", do=lambda _: Findings(facts=dict(facts)))


def run_steps(folder: Path, steps: Sequence[Fake], fresh: bool = False) -> list[Result]:
    """One run of the engine in that folder."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    return Engine(Run(folder, folder), fresh=fresh).run(steps)


def checkout(folder: Path) -> Options:
    """A repository with one commit, and options that name it."""
    root = folder / "checkout"
    root.mkdir()
    for command in (["init", "--quiet"], ["config", "user.name", "A"], ["config", "user.email", "a@example.org"]):
        git(root, *command)
    commit(root, "the first")
    return Options(root=root, out=folder / "out")


def commit(root: Path, message: str) -> str:
    """Makes a commit; gives its hash."""
    git(root, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")


def git(root: Path, *arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
