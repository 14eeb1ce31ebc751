"""The smoke test of the matrix: it passes on this Treadle, and it is no test that cannot fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.version_sync import smoke

FILE = Path(smoke.__file__)


def run(*arguments: str, platforms: str = "treadle,cpu") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FILE, *arguments],
        env=os.environ | {"JAX_PLATFORMS": platforms},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_program_gives_jaxlibs_values():
    done = run()
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["programs"]) == len(smoke.PROGRAMS) + len(smoke.CHECKS)
    assert all(entry["ok"] for entry in answer["programs"])
    assert answer["devices"][0].startswith("Treadle")


def test_jaxlibs_own_backend_does_not_pass_for_treadle():
    done = run("--quick", platforms="cpu")
    assert done.returncode != 0
    assert "treadle" in done.stderr


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "message"),
    [
        (np.float32(1), np.float32(1.01), 1e-3, "Not equal to tolerance"),
        (np.int32(1), np.int32(2), 1.0, "Arrays are not equal"),
        (np.float32(1), np.float64(1), 1.0, "float32 instead of float64"),
        (np.float32(np.nan), np.float32(1), 1.0, "nan"),
        ((np.float32(1),), (np.float32(1), np.float32(2)), 1.0, "1 results instead of 2"),
        (np.float32(1), np.nextafter(np.float32(1), np.float32(2)), 0, "Arrays are not equal"),
    ],
)
def test_wrong_values_are_seen(found: object, expected: object, tolerance: float, message: str):
    with pytest.raises(AssertionError, match=message):
        smoke.compare(found, expected, tolerance)


def test_a_program_that_raises_is_a_problem_and_not_the_end(capsys: pytest.CaptureFixture[str]):
    def fail() -> None:
        raise RuntimeError("UNIMPLEMENTED: it does not")

    entry = smoke.check("name", fail)
    assert (entry["name"], entry["ok"], entry["problem"]) == ("name", False, "RuntimeError: UNIMPLEMENTED: it does not")
    assert "Traceback" in capsys.readouterr().err
