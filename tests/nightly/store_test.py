"""What is kept on disk, and the lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.nightly import store
from tools.nightly.store import BusyError, Store


def test_two_runs_at_once(tmp_path: Path):
    busy = pytest.raises(BusyError, match=rf"in use by process {os.getpid()}; .*another --out")
    with Store(tmp_path).locked(), busy, Store(tmp_path).locked():
        pass
    with Store(tmp_path).locked():
        pass


def test_a_killed_run_leaves_no_lock(tmp_path: Path):
    code = (
        "import sys, time; from pathlib import Path; from tools.nightly.store import Store\n"
        "with Store(Path(sys.argv[1])).locked(): print('locked', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "locked\n"
        with pytest.raises(BusyError, match=f"process {child.pid};"), Store(tmp_path).locked():
            pass
        child.kill()
        child.wait()
    with Store(tmp_path).locked():
        pass


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "report.md"
    store.write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        store.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.md"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "another-1"}'])
def test_what_is_no_last_good_result_is_none(tmp_path: Path, text: str):
    (tmp_path / "last_good.json").write_text(text)
    assert Store(tmp_path).last_good() is None


def test_the_last_good_result(tmp_path: Path):
    kept = Store(tmp_path)
    assert kept.last_good() is None
    kept.set_last_good({"key": "k"})
    assert Store(tmp_path).last_good() == {"schema": "treadle-nightly-last-good-1", "key": "k"}


def test_old_runs_are_deleted(tmp_path: Path):
    kept = Store(tmp_path)
    for age, name in enumerate(("newest", "second", "third", "current")):
        folder = kept.run_folder(name)
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    assert kept.prune(keep=2, current="current") == ["third"]
    assert sorted(os.listdir(kept.runs)) == ["current", "newest", "second"]
