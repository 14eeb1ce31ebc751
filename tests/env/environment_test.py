"""third_party/python/environment.py: which lock file, and what it takes from the wheelhouse."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from pathlib import Path

import pytest

from third_party.python import environment
from tools.wheel.build_wheel import Wheel

ROOT = Path(__file__).resolve().parents[2]
PINS = {
    "python": {"versions": ["3.11", "3.13"]},
    "jax": {
        "tested": [
            {"jaxlib": "2.0", "python": ["3.13"]},
            {"jaxlib": "1.0", "python": ["3.11", "3.13"]},
        ]
    },
}


def test_the_newest_fitting_jaxlib_is_the_default():
    assert environment.select(PINS, (3, 11), "")["lock"] == "py311-jaxlib1.0.txt"
    assert environment.select(PINS, (3, 13), "")["lock"] == "py313-jaxlib2.0.txt"
    assert environment.select(PINS, (3, 13), "1.0")["lock"] == "py313-jaxlib1.0.txt"


def test_every_supported_python_has_a_tested_jaxlib():
    pins = tomllib.loads((ROOT / "versions.toml").read_text())
    for version in pins["python"]["versions"]:
        major, minor = version.split(".")
        assert environment.select(pins, (int(major), int(minor)), "")["python"] == version


def test_an_unsupported_python_is_refused():
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or 3\.13, but .* is Python 3\.14"):
        environment.select(PINS, (3, 14), "")


def test_a_jaxlib_that_is_not_tested_on_this_python_is_refused():
    with pytest.raises(SystemExit, match=r"jaxlib 2\.0, but for Python 3\.11 versions.toml lists 1\.0"):
        environment.select(PINS, (3, 11), "2.0")


@pytest.fixture
def locked_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A lock file of one small package, and its complete wheelhouse."""
    wheel = Wheel("1.0", "py3-none-any", {"treadle/__init__.py": b"VALUE = 42\n"})
    wheel.add_metadata("Metadata-Version: 2.4\nName: treadle\nVersion: 1.0\n")
    file = tmp_path / "treadle-1.0-py3-none-any.whl"
    wheel.write(file)
    lock = tmp_path / "lock.txt"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    lock.write_text(f"# generated\ntreadle==1.0 --hash=sha256:{digest}\n")
    monkeypatch.setenv("TREADLE_WHEELHOUSE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / hashlib.sha256(lock.read_bytes()).hexdigest()[:24]
    folder.mkdir(parents=True)
    file.rename(folder / file.name)
    return lock, folder


def test_a_complete_wheelhouse_needs_no_network(
    locked_wheel: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lock, folder = locked_wheel
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/none")
    assert environment.wheelhouse(lock) == folder
    python = environment.make_venv(tmp_path / "venv")
    environment.install(python, folder, lock)
    code = "import treadle; print(treadle.VALUE)"
    child = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "42\n"


def test_a_changed_file_in_the_wheelhouse_is_refused(locked_wheel: tuple[Path, Path], tmp_path: Path):
    lock, folder = locked_wheel
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes() + b"\0")
    python = environment.make_venv(tmp_path / "venv")
    with pytest.raises(SystemExit, match=r"(?s)Installing lock\.txt .*delete the folder.* failed.*HASH"):
        environment.install(python, folder, lock)
