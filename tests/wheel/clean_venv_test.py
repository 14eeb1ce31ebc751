"""The wheel in a clean environment, installed with no network, beside the selected jaxlib."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WHEEL = Path(os.environ["WHEEL"]).resolve()
WHEELHOUSE = Path(os.environ["WHEELHOUSE"])
PROGRAM = Path(__file__).resolve().parent / "program.py"


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command that sees nothing of this test's environment or of the checkout."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "JAX_PLATFORMS")
    environment = {
        name: value for name, value in os.environ.items() if name not in hidden and not name.startswith("TREADLE_")
    }
    return subprocess.run(
        command,
        env=environment | variables,
        cwd=os.environ["TEST_TMPDIR"],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and what it requires."""
    if not WHEELHOUSE.is_dir():
        pytest.fail(f"{WHEELHOUSE} was deleted; make it again with ./bazelw sync --only=python_env")
    folder = tmp_path_factory.mktemp("clean") / "venv"
    base = getattr(sys, "_base_executable", sys.executable)
    made = run(base, "-m", "venv", folder)
    assert made.returncode == 0, made.stderr
    interpreter = folder / "bin" / "python"
    jaxlib = os.environ["EXPECTED_JAXLIB"]
    command: list[str | Path] = [
        interpreter,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--find-links",
        WHEELHOUSE,
    ]
    installed = run(*command, WHEEL, f"jaxlib=={jaxlib}")
    assert installed.returncode == 0, installed.stderr
    return interpreter


def test_the_requirements_fit_together(python: Path):
    checked = run(python, "-m", "pip", "check")
    assert checked.returncode == 0, checked.stdout


def test_nothing_of_the_checkout_is_imported(python: Path):
    done = run(python, "-c", "import treadle; print(treadle.__file__)")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(python.parents[1])


def test_the_command_says_which_versions_go_together(python: Path):
    done = run(python.parent / "treadle", "versions", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"], done.stderr
    assert report["verdict"] in ("compatible", "skew")
    assert report["plugin"]["path"].startswith(str(python.parents[1]))
    assert report["jaxlib"]["version"] == os.environ["EXPECTED_JAXLIB"]
    assert report["jaxlib"]["pjrt_source"] == "measured"


def test_a_jax_program_runs_on_treadle(python: Path):
    done = run(python, PROGRAM, JAX_PLATFORMS="treadle")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fitted on ")


def test_a_user_of_the_cpu_backend_notices_nothing(python: Path):
    code = "import jax; print(jax.default_backend(), jax.devices(), float(jax.numpy.arange(4.0).sum()))"
    done = run(python, "-W", "error", "-c", code, JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "cpu [CpuDevice(id=0)] 6.0\n"
    assert done.stderr == ""
