"""Commands: their logs, their time limits, their environment."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tools.nightly import process


def test_output_and_log(tmp_path: Path):
    log = tmp_path / "logs" / "step.log"
    first = process.run(["sh", "-c", "echo out; echo err >&2"], log, timeout=10)
    second = process.run(["sh", "-c", "echo $NAME; exit 3"], log, timeout=10, variables={"NAME": "a b"})
    assert (first.ok, first.output) == (True, "out\nerr\n")
    assert (second.ok, second.output, second.ending()) == (False, "a b\n", "ended with code 3")
    assert log.read_text() == (
        "$ sh -c 'echo out; echo err >&2'\nout\nerr\n$ NAME='a b' sh -c 'echo $NAME; exit 3'\na b\n"
    )


def test_when_time_is_over_all_that_was_started_is_ended(tmp_path: Path):
    begun = time.monotonic()
    # The shell's child ignores the polite signal.
    script = "sh -c 'trap \"\" TERM; echo $$; exec sleep 60' & wait"
    done = process.run(["sh", "-c", script], tmp_path / "log", timeout=1)
    assert done.timed_out
    assert not done.ok
    assert done.ending() == f"was ended after {done.seconds:.0f} s"
    assert time.monotonic() - begun < 20
    child = Path("/proc") / done.output.strip()
    while is_running(child):
        assert time.monotonic() - begun < 20
        time.sleep(0.05)


def is_running(process_folder: Path) -> bool:
    try:
        return "\nState:\tZ" not in (process_folder / "status").read_text()
    except OSError:
        return False


def test_a_child_does_not_see_how_the_job_was_started(monkeypatch: pytest.MonkeyPatch):
    for name in ("PYTHONPATH", "RUNFILES_DIR", "JAX_PLATFORMS", "XLA_FLAGS", "TREADLE_CACHE", "TREADLE_PYTHON"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("VIRTUAL_ENV", "x")
    seen = process.environment({"JAX_ENABLE_X64": "1"})
    assert seen["JAX_ENABLE_X64"] == "1"
    assert not {"PYTHONPATH", "RUNFILES_DIR", "JAX_PLATFORMS", "XLA_FLAGS", "VIRTUAL_ENV", "TREADLE_PYTHON"} & set(seen)
    for_bazel = process.environment(bazel=True)
    assert for_bazel["TREADLE_PYTHON"] == "x"
    assert "TREADLE_CACHE" not in for_bazel


def test_a_log_holds_no_password(tmp_path: Path):
    log = tmp_path / "log"
    process.run(["true", "--index-url", "https://me:secret@example.org/simple"], log, timeout=10)
    assert log.read_text() == "$ true --index-url https://example.org/simple\n"
