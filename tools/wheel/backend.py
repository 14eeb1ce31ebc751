"""The build backend (PEP 517) by which `pip install` builds Treadle from its sources: it runs Bazel.

pyproject.toml names it. It needs what `./bazelw` needs (Linux on x86-64, GCC 12, Bazel; on Debian
bazelw installs what is missing) and, the first time, the package index: XLA's headers, oneDNN and
the locked environment are fetched. Only the standard library is imported, so nothing is required
to be installed before it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from tools.wheel import build_sdist as sdist

ROOT = Path(__file__).resolve().parents[2]

Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Nothing has to be installed first. (A hook of PEP 517, like the others here.)"""
    del config_settings
    return []


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Nothing has to be installed first."""
    del config_settings
    return []


def _writable_folders(folder: str) -> None:
    # Bazel takes the right to write away from what it made, folders included.
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


def _bazel(options: list[str]) -> None:
    # The interpreter that runs pip has to do: pip's own environment is gone when the build is over.
    environment = dict(os.environ)
    environment.setdefault("TREADLE_PYTHON", getattr(sys, "_base_executable", sys.executable))
    command = [str(ROOT / "bazelw"), *options, "build", "--color=no", "--curses=no", "--noshow_progress", "//:wheel"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(
            f"Treadle's wheel could not be built: {' '.join(command)} exited with {done.returncode} (its messages are"
            " above; with pip, give -v to see them). The README says what a build needs. The wheel on the"
            " package index needs no build."
        )


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Builds the wheel with Bazel, copies it to `wheel_directory` and gives its name.

    RuntimeError: this is no Linux on x86-64, or Bazel failed.
    """
    del config_settings, metadata_directory
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise RuntimeError(f"Treadle runs on Linux on x86-64 only; this is {sys.platform} on {platform.machine()}")
    version = tomllib.loads((ROOT / "versions.toml").read_text(encoding="utf-8"))["treadle"]["version"]
    if sdist.is_checkout(ROOT):
        _bazel([])
        return _take(ROOT / "bazel-bin", version, wheel_directory)
    # The sources of an archive lie in a folder that pip deletes: what Bazel makes of them must not stay either.
    with tempfile.TemporaryDirectory(prefix="treadle-build-") as base:
        try:
            _bazel(["--batch", f"--output_base={base}/bazel"])
            return _take(ROOT / "bazel-bin", version, wheel_directory)
        finally:
            _writable_folders(base)


def _take(folder: Path, version: str, wheel_directory: str) -> str:
    (wheel,) = folder.glob(f"treadle-{version}-*.whl")
    target = Path(wheel_directory) / wheel.name
    shutil.copyfile(wheel, target)
    return target.name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Writes the source archive to `sdist_directory` and gives its name. Raises what build_sdist.build does."""
    del config_settings
    return sdist.build(ROOT, Path(sdist_directory)).name
