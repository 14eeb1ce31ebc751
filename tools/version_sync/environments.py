"""Environments for the matrix: one for each jaxlib, made once, with the wheel put in anew each time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from third_party.python import lock
from tools.version_sync import registry
from tools.version_sync.registry import RegistryError

_MARK = "complete.json"
# What of the caller's environment would change what a program in the matrix sees.
_HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "XLA_FLAGS")


class MatrixError(RuntimeError):
    """An environment could not be made; the message says what failed."""


@dataclass(frozen=True)
class Target:
    """What a row of the matrix runs on; `index` is where a nightly comes from, else ""."""

    jaxlib: str
    jax: str
    python: str
    interpreter: str
    index: str = ""


def clean(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without what would change a program's behaviour, and with `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _HIDDEN and not name.startswith(("TREADLE_", "JAX_", "BAZEL", "RUNFILES", "TEST_"))
    }
    return kept | dict(extra or {})


def run(command: Sequence[str | Path], what: str, timeout: float = 1800) -> str:
    """Runs a command in a clean environment and gives its output; raises MatrixError when it fails."""
    try:
        done = subprocess.run(command, env=clean(), capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise MatrixError(f"{what} was not done after {timeout:.0f} s") from error
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR" in line or "error:" in line] or lines[-3:]
        raise MatrixError(f"{what} failed: {' | '.join(errors[:3])}")
    return done.stdout


def fitting(jaxlib: str, pythons: Sequence[str], index: str = "") -> Target:
    """The last of `pythons` for which that jaxlib exists and whose interpreter is here.

    Raises:
        MatrixError: there is none; the message says which Pythons were looked at.
        RegistryError: the registry cannot be asked.
    """
    seen = []
    silent: RegistryError | None = None
    for python in reversed(pythons):
        try:
            offered = registry.versions("jaxlib", python, pre=True, index=index)
        except RegistryError as error:
            silent = error
            continue
        if jaxlib not in offered:
            seen.append(f"{python} (no such jaxlib for it)")
        elif interpreter := lock.find_python(python):
            return Target(jaxlib, jaxlib, python, interpreter, index)
        else:
            seen.append(f"{python} (no interpreter here)")
    if silent is not None and not seen:
        raise silent
    raise MatrixError(f"no Python for jaxlib {jaxlib}: {', '.join(seen)}")


def make(target: Target, llvmlite: str, folder: Path, fresh: bool) -> Path:
    """An environment with that jax and jaxlib; one that is complete is used again. Gives its interpreter.

    Raises:
        MatrixError: it cannot be made.
    """
    python = folder / "bin" / "python"
    wanted = {
        "jax": target.jax,
        "jaxlib": target.jaxlib,
        "python": target.python,
        "llvmlite": llvmlite,
        "index": target.index,
    }
    mark = folder / _MARK
    if not fresh and mark.is_file() and json.loads(mark.read_text()) == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([target.interpreter, "-m", "venv", folder], f"Making an environment of Python {target.python}")
    command: list[str | Path] = [python, *registry.PIP, "install", "--quiet"]
    if target.index:
        command += ["--pre", "--extra-index-url", target.index]
    packages = [f"jax=={target.jax}", f"jaxlib=={target.jaxlib}", f"llvmlite=={llvmlite}"]
    run([*command, *packages], f"Installing {' '.join(packages)} for Python {target.python}")
    mark.write_text(json.dumps(wanted))
    return python


def install(python: Path, wheel: Path) -> str:
    """Puts the wheel into an environment; gives what `pip check` finds wrong with the whole, or "".

    Raises:
        MatrixError: pip refuses the wheel.
    """
    command: list[str | Path] = [python, *registry.PIP, "install", "--quiet", "--force-reinstall", "--no-deps", wheel]
    run(command, f"Installing {wheel.name}")
    checked = subprocess.run([python, *registry.PIP, "check"], env=clean(), capture_output=True, text=True, check=False)
    return "" if checked.returncode == 0 else checked.stdout.strip()
