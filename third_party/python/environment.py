"""Fetches what the lock files name. Run by Bazel's repository rules, never by hand.

    environment.py select --pins versions.toml [--jaxlib X]
    environment.py venv   --lock FILE --into DIRECTORY
    environment.py files  --lock FILE --into DIRECTORY [--sdist PACKAGE]

Everything fetched is kept in the user's cache in a folder named by the lock file's
hash (the *wheelhouse*). A folder is complete or absent, so a second clone, or a
`bazel clean --expunge`, installs from it without a network.

Only the standard library is imported: this runs on the interpreter that Treadle is
told to use, before there is an environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

PIP_OPTIONS = ("--disable-pip-version-check", "--quiet", "--no-input")


def default_cache() -> Path:
    """The folder of wheelhouses: TREADLE_WHEELHOUSE, or one in the user's cache."""
    if given := os.environ.get("TREADLE_WHEELHOUSE"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "treadle" / "wheelhouse"


def select(pins: dict[str, Any], version: tuple[int, int], jaxlib: str) -> dict[str, str]:
    """The tested pair for Python `version`: its jaxlib (the newest if "") and its lock files."""
    python = f"{version[0]}.{version[1]}"
    if python not in pins["python"]["versions"]:
        raise SystemExit(
            f"Treadle needs Python {' or '.join(pins['python']['versions'])}, but"
            f" {sys.executable} is Python {python}. Set TREADLE_PYTHON to one of these."
        )
    fitting = [row["jaxlib"] for row in pins["jax"]["tested"] if python in row["python"]]
    if jaxlib and jaxlib not in fitting:
        raise SystemExit(
            f"TREADLE_JAXLIB asks for jaxlib {jaxlib}, but for Python {python} versions.toml"
            f" lists {', '.join(fitting)}."
        )
    chosen = jaxlib or fitting[0]
    return {
        "python": python,
        "jaxlib": chosen,
        "lock": f"py{python.replace('.', '')}-jaxlib{chosen}.txt",
        "release_lock": f"release-py{python.replace('.', '')}.txt",
    }


def _run(command: list[str], what: str) -> None:
    # A PYTHONPATH or PYTHONHOME of the user's shell would leak into the environment.
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{what} failed:\n  {' '.join(command)}\n{done.stdout}{done.stderr}")


def make_venv(into: Path) -> str:
    """Makes an empty environment with pip in it; gives its interpreter's path."""
    shutil.rmtree(into, ignore_errors=True)
    _run(
        [sys.executable, "-m", "venv", str(into)],
        "Making a virtual environment (on Debian it needs the package python3-venv)",
    )
    return str(into / "bin" / "python")


def install(python: str, wheels: Path, requirements: Path) -> None:
    """Installs the locked packages from a wheelhouse, with no index."""
    command = [python, "-m", "pip", "install", *PIP_OPTIONS, "--no-index", "--no-deps"]
    command += ["--require-hashes", "--find-links", str(wheels), "-r", str(requirements)]
    _run(command, f"Installing {requirements.name} from {wheels} (if it is damaged, delete the folder)")


def _download(python: str, into: Path, requirements: Path, *options: str) -> None:
    command = [python, "-m", "pip", "download", *PIP_OPTIONS, "--no-deps", "--require-hashes"]
    command += ["--dest", str(into), "-r", str(requirements), *options]
    _run(command, f"Fetching {requirements.name}")


def wheelhouse(lock: Path, sdist: str = "") -> Path:
    """The complete folder of the files that `lock` names, fetched if it is not there.

    `sdist` names one package to take as a source archive. pip asks a source
    archive's build backend for its metadata even when it only downloads, so the
    other packages of such a lock file are that backend, and are installed first.
    """
    folder = default_cache() / hashlib.sha256(lock.read_bytes()).hexdigest()[:24]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as name:
        scratch = Path(name)
        files = scratch / "files"
        python = make_venv(scratch / "venv")
        lines = lock.read_text().splitlines(keepends=True)
        wheels, archives = scratch / "wheels.txt", scratch / "archives.txt"
        archive = f"{sdist}==" if sdist else "#"
        wheels.write_text("".join(line for line in lines if not line.startswith(archive)))
        archives.write_text("".join(line for line in lines if line.startswith(archive)))
        _download(python, files, wheels, "--only-binary", ":all:")
        if sdist:
            install(python, files, wheels)
            _download(python, files, archives, "--no-binary", sdist, "--no-build-isolation")
        try:
            files.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first: the same files
                raise
    return folder


def main(arguments: list[str]) -> int:
    """Parses the command line and does one of the three jobs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("job", choices=("select", "venv", "files"))
    parser.add_argument("--pins", type=Path)
    parser.add_argument("--jaxlib", default="")
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--sdist", default="")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args(arguments)
    if options.job == "select":
        pins = tomllib.loads(options.pins.read_text())
        print(json.dumps(select(pins, sys.version_info[:2], options.jaxlib)))
        return 0
    files = wheelhouse(options.lock, options.sdist)
    if options.job == "venv":
        python = make_venv(options.into)
        install(python, files, options.lock)
        print(json.dumps({"wheelhouse": str(files), "version": sys.version}))
    else:
        options.into.mkdir(parents=True, exist_ok=True)
        for file in sorted(files.iterdir()):
            (options.into / file.name).symlink_to(file)
        print(json.dumps(sorted(file.name for file in files.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
