"""python -m treadle.compiler."""

from __future__ import annotations

import json
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.frontend.programs import artifact
from treadle.compiler.__main__ import FAILED, REFUSED, USAGE, main
from treadle.compiler.host import host_cpu_features
from treadle.compiler.stages import STAGES

X = np.ones(4, np.float32)


@pytest.fixture
def add(tmp_path):
    path = tmp_path / "add.mlirbc"
    path.write_bytes(artifact(lambda x: x + 1, X))
    return path


def test_prints_the_product_of_a_stage(add, capfd):
    assert main([str(add), "--to", "convert"]) == 0
    assert "add %arg0" in capfd.readouterr().out


@pytest.mark.parametrize("stage", [s.name for s in STAGES])
def test_every_stage_can_be_written(add, tmp_path, stage):
    assert main([str(add), "--to", stage, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").stat().st_size > 0


def test_json(add, capfd):
    assert main([str(add), "--to", "optimise", "--json", "--repeat", "3"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["stage"] == "optimise"
    assert "add %arg0" in result["product"]
    assert [len(times) for times in result["milliseconds"].values()] == [3] * 4


def test_time(add, capfd):
    assert main([str(add), "--to", "convert", "--time"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["stage", "import", "partition", "convert", "total"]


def test_exit_codes(add, tmp_path, capfd, monkeypatch):
    refused = tmp_path / "sort.mlirbc"
    refused.write_bytes(artifact(jnp.sort, X))
    assert main([str(refused)]) == REFUSED
    assert "UNIMPLEMENTED: The program uses 1 thing" in capfd.readouterr().err
    assert main([str(refused), "--json"]) == REFUSED
    assert json.loads(capfd.readouterr().out)["error"] == "UNIMPLEMENTED"
    assert main([str(tmp_path / "missing")]) == USAGE
    with pytest.raises(SystemExit) as caught:
        main([str(add), "--to", "nowhere"])
    assert caught.value.code == USAGE
    monkeypatch.setattr("treadle.compiler.frontend.entry.convert", None)
    assert main([str(add)]) == FAILED


def test_module_is_executable_and_reads_stdin(add):
    command = [sys.executable, "-m", "treadle.compiler", "-", "--to", "convert"]
    done = subprocess.run(command, input=add.read_bytes(), capture_output=True, check=True)
    assert b"add %arg0" in done.stdout


def test_lists(capfd):
    assert main(["--stages"]) == 0
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()] == [s.name for s in STAGES]
    assert main(["--knobs"]) == 0
    assert "TREADLE_DUMP" in capfd.readouterr().out


def test_host_features(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags : fpu sse4_2 popcnt avx avx2 fma abm bmi1 avx512_bf16\n")
    assert host_cpu_features(info) == 1 | 2 | 4 | 8 | 16 | 64 | 256 | 1 << 16
    assert host_cpu_features(tmp_path / "missing") == 0
