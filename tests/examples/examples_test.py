"""The examples run to their end, in their shortest form, and judge themselves rightly."""

import json
import os
import re
import subprocess
import sys

import pytest

PLATFORM = os.environ.get("TREADLE_TEST_PLATFORM", "treadle")


def run(example, folder, *arguments):
    environment = {**os.environ, "BUILD_WORKING_DIRECTORY": str(folder), "MPLBACKEND": "Agg"}
    environment.pop("JAX_PLATFORMS", None)
    return subprocess.run(
        [sys.executable, "-m", f"examples.{example}", "--platform", PLATFORM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_digits_learns_to_read(tmp_path):
    result = run("digits", tmp_path, "--no-reference", "--json", "digits.json")
    assert result.returncode == 0, result.stdout + result.stderr[-3000:]
    report = json.loads((tmp_path / "digits.json").read_text(encoding="utf-8"))
    assert report["passed"]
    assert report["runs"][0]["accuracy"][-1] >= 0.97
    picture = (tmp_path / "digits.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(re.findall(r"^  epoch", result.stdout, re.MULTILINE)) == 15


def test_digits_says_when_it_has_not_learnt(tmp_path):
    result = run("digits", tmp_path, "--no-reference", "--epochs", "1", "--picture", "other.png")
    assert result.returncode == 1, result.stdout + result.stderr[-3000:]
    assert "FAILED" in result.stdout
    assert (tmp_path / "other.png").exists()


def test_both_platforms_of_digits_learn_alike(tmp_path):
    result = run("digits", tmp_path, "--epochs", "2", "--json", "digits.json")
    runs = json.loads((tmp_path / "digits.json").read_text(encoding="utf-8"))["runs"]
    assert len(runs) == 2, result.stdout
    # The same weights on the same batches: after 44 steps rounding has not yet grown.
    assert runs[0]["loss"] == pytest.approx(runs[1]["loss"], rel=2e-3)


def test_transformer_learns_a_little_in_few_steps(tmp_path):
    result = run("transformer", tmp_path, "--no-reference", "--steps", "12", "--json", "transformer.json")
    assert result.returncode == 1, result.stdout + result.stderr[-3000:]  # twelve steps are not enough, and it says so
    report = json.loads((tmp_path / "transformer.json").read_text(encoding="utf-8"))
    losses = report["runs"][0]["loss"]
    assert losses[-1] < losses[0] - 0.5
    (sample,) = report["samples"].values()
    assert len(sample) == 128
    assert sample.startswith("The ")


def test_a_platform_that_is_not_there_is_an_error(tmp_path):
    environment = {**os.environ, "BUILD_WORKING_DIRECTORY": str(tmp_path)}
    environment.pop("JAX_PLATFORMS", None)
    command = [sys.executable, "-m", "examples.digits", "--platform", "nosuch"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert "nosuch" in result.stderr


def test_help(tmp_path):
    for example in ("digits", "transformer"):
        result = run(example, tmp_path, "--help")
        assert result.returncode == 0
        assert "--json" in result.stdout
