"""Bazel's Python is the environment that the lock file describes, and nothing else."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPECTED_PREFIX = Path(os.environ["EXPECTED_PYTHON"]).parents[1]


def locked() -> dict[str, str]:
    """The lock file's versions by package."""
    runfiles = Path(os.environ["RUNFILES_DIR"]) / "treadle"
    lines = (runfiles / "third_party/python/lock" / os.environ["EXPECTED_LOCK"]).read_text().splitlines()
    rows = [line.split()[0].split("==") for line in lines if line and not line.startswith("#")]
    return dict(rows)


def test_the_interpreter_is_the_environment():
    assert Path(sys.prefix) == EXPECTED_PREFIX
    assert sys.prefix != sys.base_prefix
    assert Path(sys.executable) == Path(os.environ["EXPECTED_PYTHON"])
    assert f"{sys.version_info.major}.{sys.version_info.minor}" == os.environ["EXPECTED_PYTHON_VERSION"]


def test_a_child_process_runs_in_the_environment_too():
    code = "import sys; print(sys.prefix)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(child.stdout.strip()) == EXPECTED_PREFIX


def test_modules_come_from_the_runfiles_the_environment_or_python_itself():
    allowed = [Path(os.environ["RUNFILES_DIR"]), EXPECTED_PREFIX, Path(sysconfig.get_path("stdlib"))]
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    for entry in filter(None, sys.path):
        path = Path(entry)
        assert path.name == zipped or any(path.is_relative_to(folder) for folder in allowed), entry


def test_what_is_installed_is_what_is_locked():
    installed = {
        distribution.name.lower().replace("_", "-"): distribution.version
        for distribution in importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    }
    for tool in ("pip", "setuptools"):  # what `python -m venv` itself puts there
        installed.pop(tool, None)
    assert installed == locked()


def test_jaxlib_is_the_selected_one():
    import jax
    import jaxlib

    assert jaxlib.__version__ == os.environ["EXPECTED_JAXLIB"]
    assert Path(jax.__file__).is_relative_to(EXPECTED_PREFIX)
