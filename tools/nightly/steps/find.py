"""Which Python, and which jax and jaxlib: the newest that can be had."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from third_party.python import lock
from tools.nightly.engine import Findings, Run, StepError
from tools.nightly.kinds import Kind
from tools.nightly.options import Options
from tools.nightly.process import Words

ASKING = 300  # seconds


class Find:
    """Asks the nightly index, if one was given, and else the registry that pip is set up for."""

    name = "find"
    title = "looking for the newest jax and jaxlib"
    needs: tuple[str, ...] = ()

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        found = Findings()
        python = fitting_python(self.options.root, self.options.python)
        pip = self._pip(run, python)
        versions = self._versions(run, pip, found)
        found.facts |= {"python": _version(python), **versions, "is_nightly": is_nightly(versions["jaxlib"])}
        found.products["python"] = python
        if self.options.jaxlib:
            found.notes.append(f"jaxlib {versions['jaxlib']} was asked for; it need not be the newest")
        elif not found.facts["is_nightly"]:
            found.notes.append(f"this is {_stage(versions['jaxlib'])}, not a nightly build")
        return found

    def _pip(self, run: Run, python: str) -> Path:
        folder = self.options.out / "tools" / f"pip-{_version(python)}"
        pip = folder / "bin" / "python"
        if not pip.exists():
            run.must("making an environment for pip", python, "-m", "venv", folder, timeout=120, kind=Kind.ENVIRONMENT)
        return pip

    def _versions(self, run: Run, pip: Path, found: Findings) -> dict[str, str]:
        if self.options.jaxlib:
            exactly = [f"{name}=={self.options.jaxlib}" for name in ("jax", "jaxlib")]
            return {**self._ask(run, pip, *exactly), "source": "registry"}
        if self.options.index:
            try:
                index = ["--index-url", self.options.index, "--no-deps"]
                return {**self._ask(run, pip, "--pre", *index, "jax", "jaxlib"), "source": "nightly index"}
            except StepError as failure:
                where = host(self.options.index)
                found.notes.append(f"no nightly build could be had from the index at {where}: {failure}")
        else:
            found.notes.append("no nightly index was given (--index)")
        return {**self._ask(run, pip, "--pre", "jax", "jaxlib"), "source": "registry"}

    def _ask(self, run: Run, pip: Path, *what: str) -> dict[str, str]:
        report = run.folder / "newest.json"
        command: Words = [
            pip,
            *PIP,
            "--dry-run",
            "--ignore-installed",
            "--only-binary",
            ":all:",
            "--report",
            report,
            *what,
        ]
        run.must("asking for jax and jaxlib", *command, timeout=ASKING, kind=Kind.ENVIRONMENT)
        return chosen(json.loads(report.read_text()))


PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2", "install", "--quiet")


def chosen(report: dict[str, Any]) -> dict[str, str]:
    """The versions of jax and jaxlib in pip's installation report."""
    versions = {item["metadata"]["name"].lower(): item["metadata"]["version"] for item in report["install"]}
    return {"jax": versions["jax"], "jaxlib": versions["jaxlib"]}


def is_nightly(version: str) -> bool:
    """Whether the version is of a development build, as nightly ones are."""
    return ".dev" in version


def _stage(version: str) -> str:
    return "a pre-release" if re.search(r"\d(a|b|rc)\d+", version) else "a release"


def host(url: str) -> str:
    """The address's host: the rest may hold a password."""
    return urlsplit(url).hostname or "(not an address)"


def fitting_python(root: Path, asked: str | None) -> str:
    """The Python that was asked for, or the newest supported one that can make environments.

    Raises:
      StepError: there is none.
    """
    supported = tomllib.loads((root / "versions.toml").read_text())["python"]["versions"]
    if asked:
        found = shutil.which(asked) or asked
        if _makes_environments(found, supported):
            return found
    else:
        for version in sorted(supported, key=_numbers, reverse=True):
            if on_this_machine := lock.find_python(version):
                return on_this_machine
    raise StepError(
        Kind.ENVIRONMENT,
        f"no Python {' or '.join(supported)} with the modules venv and ensurepip is "
        f"{asked or 'here'}; name one with --python",
    )


def _makes_environments(python: str, supported: list[str]) -> bool:
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() in supported


def _version(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
