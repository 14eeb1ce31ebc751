"""A release's wheel in a clean environment: installed, run, asked for its versions, and removed again."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from third_party.python import environment
from third_party.python import lock as locks
from tools.release.artifacts import say
from tools.release.checks import Finding

# The exit codes of `treadle versions` for a pair that works: the same versions, or versions that may differ.
GOES_TOGETHER = (0, 3)
SMOKE = Path(__file__).resolve().parent / "smoke.py"


@dataclass(frozen=True)
class Pair:
    """A supported Python and the jaxlib that is tested with it."""

    python: str
    jaxlib: str

    def __str__(self) -> str:
        return f"Python {self.python}, jaxlib {self.jaxlib}"

    @property
    def lock(self) -> str:
        """The lock file of this pair's environment, by its path in the checkout."""
        return f"third_party/python/lock/{locks.lock_name(self.python, self.jaxlib)}"


def pairs(pins: dict[str, Any], everything: bool) -> list[Pair]:
    """Each supported Python with its default jaxlib, or with every tested one."""
    found = []
    for python in pins["python"]["versions"]:
        fitting = [row["jaxlib"] for row in pins["jax"]["tested"] if python in row["python"]]
        found += [Pair(python, jaxlib) for jaxlib in (fitting if everything else fitting[:1])]
    return found


def _run(folder: Path, *command: str | Path, **variables: str) -> tuple[int, str]:
    # Nothing of the caller's: neither the checkout's sources, nor its plugin, nor a cache of compiled programs.
    hidden = ("PYTHON", "TREADLE_", "JAX_", "XLA_", "VIRTUAL_ENV", "BUILD_", "RUNFILES")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    inherited |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), **variables}
    done = subprocess.run(
        command, env=inherited, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def _files(environment_folder: Path) -> set[Path]:
    """The files of an environment, less those that Python writes for itself when other packages are imported.

    Folders do not count: pip leaves the empty one of a namespace package.
    """
    found = (path for path in environment_folder.rglob("*") if path.is_file())
    return {path for path in found if "__pycache__" not in path.parts or "treadle" in path.parts}


def try_wheel(root: Path, wheel: Path, pair: Pair, interpreter: str) -> list[Finding]:
    """Installs the wheel beside the locked jax of `pair` with no network, and tries it; one finding a step.

    After a step that fails the ones that need it are left out.
    """
    with tempfile.TemporaryDirectory(prefix="treadle-clean-") as name:
        folder = Path(name)
        venv, python = folder / "venv", folder / "venv" / "bin" / "python"
        findings: list[Finding] = []

        def step(what: str, *command: str | Path, **variables: str) -> bool:
            code, text = _run(folder, *command, **variables)
            # What pip and its like say of what went well is of no interest, but for the program's last line.
            shown = text if code or command[1] == SMOKE else ""
            findings.append(Finding(f"{pair}: {what}", code == 0, shown))
            return code == 0

        say(f"trying the wheel on {pair}")
        # The packages are those of that Python: its own pip fetches them, as the caller has set it up, if the
        # caller's cache does not have them.
        fetch = ("-I", root / "third_party" / "python" / "environment.py", "files", "--lock", root / pair.lock)
        callers = {"HOME": str(Path.home()), "TREADLE_WHEELHOUSE": str(environment.default_cache())}
        files = folder / "files"
        pip = (python, "-m", "pip", "--disable-pip-version-check", "--isolated")
        offline = ("--quiet", "--no-index", "--find-links", str(files))
        # What Treadle requires comes first, so that what is there before and after it can be compared.
        required = [f"jax=={pair.jaxlib}", f"jaxlib=={pair.jaxlib}", "llvmlite"]
        if not (
            step("get what it requires", interpreter, *fetch, "--into", files, **callers)
            and step("make an environment", interpreter, "-m", "venv", venv)
            and step("install what it requires", *pip, "install", *offline, *required)
        ):
            return findings
        before = _files(venv)
        if not step("install the wheel", *pip, "install", *offline, wheel):
            return findings
        step("requirements fit", *pip, "check")
        step("a program, compared with jaxlib's CPU", python, SMOKE, JAX_PLATFORMS="treadle,cpu")
        step(
            "JAX_PLATFORMS=cpu is not disturbed",
            python,
            "-W",
            "error",
            "-c",
            "import jax; jax.numpy.ones(3).sum()",
            JAX_PLATFORMS="cpu",
        )
        code, text = _run(folder, python.with_name("treadle"), "versions")
        verdict = next((line for line in text.splitlines() if "(exit code" in line), text)
        findings.append(Finding(f"{pair}: treadle versions", code in GOES_TOGETHER, verdict))
        if step("uninstall", *pip, "uninstall", "--yes", "--quiet", "treadle"):
            left = sorted(str(path.relative_to(venv)) for path in _files(venv) - before)
            findings.append(Finding(f"{pair}: uninstalling leaves nothing", not left, "\n".join(left)))
        return findings
