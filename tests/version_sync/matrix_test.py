"""The program `matrix`: what counts as working, with programs that stand in for an environment's interpreter."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.version_sync.sources import SMALL
from third_party.python import lock
from tools.version_sync import checkout, cli, environments, matrix, registry
from tools.version_sync.environments import MatrixError, Target
from tools.version_sync.header import PJRT
from tools.version_sync.preprocess import HeaderError
from tools.version_sync.registry import RegistryError

ROOT = Path.cwd()
HEADERS = Path(os.environ["RUNFILES_DIR"]) / "xla_headers"
PINS = tomllib.loads((ROOT / "versions.toml").read_text())

GOOD: dict[str, Any] = {
    "versions": {
        "verdict": "skew",
        "findings": [],
        "jaxlib": {"pjrt": "0.116", "pjrt_source": "measured"},
        "plugin": {"pjrt": "0.114", "num_slots": 138},
    },
    "private": {"checked": 70, "broken": []},
    "programs": [{"name": "matmul", "ok": True, "problem": ""}],
    "first": {"hits": 0, "misses": 3},
    "second": {"hits": 3, "misses": 0},
}

INTERPRETER = """#!{python}
import json, pathlib, sys
answers = json.loads({answers!r})
given = sys.argv[1:]
if "--private" in given:
    answer = answers["private"]
elif "versions" in given:
    answer = answers["versions"]
elif "--cache" in given:
    folder = pathlib.Path(given[given.index("--cache") + 1])
    answer = {{"programs": answers["programs"], "cache": answers["second" if folder.exists() else "first"]}}
    folder.mkdir(exist_ok=True)
else:
    answer = {{"programs": answers["programs"], "cache": {{}}}}
if answer == "crash":
    sys.exit("it crashed")
print("a line that some library prints")
print(json.dumps(answer))
"""


def interpreter(tmp_path: Path, **edits: Any) -> Path:
    file = tmp_path / "python"
    file.write_text(INTERPRETER.format(python=sys.executable, answers=json.dumps(GOOD | edits)))
    file.chmod(0o755)
    return file


def test_a_row_that_works(tmp_path: Path):
    seen = matrix.try_out(interpreter(tmp_path), quick=False)
    assert seen["problems"] == []
    assert (seen["pjrt"], seen["pjrt_source"], seen["verdict"]) == ("0.116", "measured", "skew")
    assert seen["plugin_slots"] == 138
    assert seen["cache"]["second"]["hits"] == 3


BAD_FINDING = {"verdict": "incompatible", "text": "PJRT 1.0 against 0.116"}
BROKEN = {"name": "jax._src.gone", "problem": "AttributeError"}


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        (
            {"versions": GOOD["versions"] | {"verdict": "incompatible", "findings": [BAD_FINDING]}},
            "PJRT 1.0 against 0.116 (incompatible)",
        ),
        ({"versions": "crash"}, "treadle versions: exit code 1: it crashed"),
        ({"private": {"checked": 70, "broken": [BROKEN]}}, "private: jax._src.gone: AttributeError"),
        ({"private": "crash"}, "private names: exit code 1: it crashed"),
        ({"programs": [{"name": "scan", "ok": False, "problem": "AssertionError: 1 != 2"}]}, "scan: AssertionError"),
        ({"second": {"hits": 0, "misses": 3}}, "compilation cache: the second process did not load"),
        ({"first": {"hits": 0, "misses": 0}}, "compilation cache: the second process did not load"),
    ],
)
def test_a_row_that_fails_says_why(tmp_path: Path, edits: dict[str, Any], problem: str):
    problems = matrix.try_out(interpreter(tmp_path, **edits), quick=False)["problems"]
    assert problems
    assert problems[0].startswith(problem)


def test_programs_see_nothing_of_the_callers_environment(monkeypatch: pytest.MonkeyPatch):
    for name in ("PYTHONPATH", "TREADLE_PLUGIN_PATH", "JAX_PLATFORMS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "C")
    clean = environments.clean({"JAX_PLATFORMS": "treadle"})
    assert clean["LANG"] == "C"
    assert clean["JAX_PLATFORMS"] == "treadle"
    assert not {"PYTHONPATH", "TREADLE_PLUGIN_PATH", "XLA_FLAGS"} & clean.keys()


def test_headers_become_a_repository(tmp_path: Path):
    folder = tmp_path / "given"
    (folder / "xla").mkdir(parents=True)
    headers = matrix.Headers(folder, "0.115", "0.4", "given")
    made = matrix.repository(headers, ROOT, tmp_path / "wrapper")
    assert made == tmp_path / "wrapper"
    assert (made / "xla").resolve() == folder / "xla"
    assert 'name = "headers"' in (made / "BUILD").read_text()
    (folder / "WORKSPACE").touch()
    (folder / "BUILD").touch()
    assert matrix.repository(headers, ROOT, tmp_path / "wrapper") == folder


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    matrix.add_arguments(parser)
    return parser.parse_args(given)


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "named_headers", lambda *_: HEADERS)
    monkeypatch.setattr(checkout, "root", lambda: ROOT)


@pytest.mark.usefixtures("pinned")
def test_header_sets(tmp_path: Path):
    sets = matrix.header_sets(options("--headers", str(HEADERS), "--variants"), ROOT, tmp_path)
    pin = PINS["xla_headers"]["pjrt_api"]
    assert [(entry.pjrt_api, entry.origin.partition(" ")[0]) for entry in sets] == [
        (pin, "pinned"),
        (pin, "given"),
        ("0.112", "made"),
        (f"0.{int(pin.partition('.')[2]) + 1}", "made"),
    ]
    (tmp_path / "old/xla/pjrt/c").mkdir(parents=True)
    (tmp_path / "old/xla" / PJRT).write_text(SMALL)
    with pytest.raises(HeaderError, match=r"is PJRT 0\.50; the plugin needs 0\.112 or newer"):
        matrix.header_sets(options("--headers", str(tmp_path / "old")), ROOT, tmp_path)


OFFERED = {"3.11": ["0.10.2"], "3.12": ["0.12.0", "0.10.2"], "3.13": ["0.12.0"]}


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "versions", lambda _, python, **__: OFFERED[python])
    monkeypatch.setattr(lock, "find_python", lambda version: None if version == "3.13" else f"/usr/bin/python{version}")


@pytest.mark.usefixtures("offered")
def test_the_newest_python_that_has_the_jaxlib_and_is_here():
    assert environments.fitting("0.12.0", list(OFFERED)) == Target("0.12.0", "0.12.0", "3.12", "/usr/bin/python3.12")
    with pytest.raises(MatrixError, match=r"no Python for jaxlib 0\.9: 3\.13 \(no such jaxlib for it\), 3\.12"):
        environments.fitting("0.9", list(OFFERED))


@pytest.mark.usefixtures("offered")
def test_what_cannot_be_had_is_said():
    found, nightly = matrix.targets(options("--jaxlib", "0.10.2", "--jaxlib", "0.9"), PINS)
    assert isinstance(found[0], Target)
    assert isinstance(found[1], str)
    assert found[1].startswith("jaxlib 0.9: no Python for it") or "no Python for jaxlib 0.9" in found[1]
    assert nightly == "not run: no index of nightlies was given (--index)"


def test_an_index_of_nightlies_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    def versions(package: str, python: str, **options: Any) -> list[str]:
        if options.get("index"):
            raise RegistryError("The versions of jaxlib: no answer")
        return OFFERED[python]

    monkeypatch.setattr(registry, "versions", versions)
    monkeypatch.setattr(lock, "find_python", lambda version: f"/usr/bin/python{version}")
    found, nightly = matrix.targets(options("--jaxlib", "0.12.0", "--index", "http://127.0.0.1:9"), PINS)
    assert found == [Target("0.12.0", "0.12.0", "3.13", "/usr/bin/python3.13")]
    assert nightly == "not run: The versions of jaxlib: no answer"


@pytest.mark.usefixtures("pinned", "offered")
@pytest.mark.parametrize(("edits", "code"), [({}, 0), ({"private": {"checked": 1, "broken": [BROKEN]}}, 4)])
def test_the_whole_program(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    edits: dict[str, Any],
    code: int,
):
    monkeypatch.setattr(matrix, "build", lambda *_: tmp_path / "treadle.whl")
    monkeypatch.setattr(environments, "make", lambda *_: interpreter(tmp_path, **edits))
    monkeypatch.setattr(environments, "install", lambda *_: "")
    file = tmp_path / "matrix.json"
    command = ["matrix", "--work", str(tmp_path / "work"), "--json", str(file), "--jaxlib", "0.12.0"]
    assert cli.main(command) == code
    answer = json.loads(file.read_text())
    assert answer["schema"] == "treadle-matrix-1"
    (row,) = answer["rows"]
    assert (row["header"]["origin"], row["jaxlib"], row["pjrt"]) == ("pinned", "0.12.0", "0.116")
    text = capsys.readouterr().out
    assert ("FAILS" in text) == (code == 4)
    assert "jax nightlies: not run" in text


@pytest.mark.usefixtures("pinned", "offered")
def test_a_build_that_fails_is_not_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> Path:
        raise MatrixError("building against PJRT 0.114 failed: device.cc:1: error: no member")

    monkeypatch.setattr(matrix, "build", fail)
    file = tmp_path / "matrix.json"
    command = ["matrix", "--work", str(tmp_path), "--json", str(file), "--jaxlib", "0.12.0"]
    assert cli.main(command) == 1
    answer = json.loads(file.read_text())
    assert answer["rows"] == []
    assert answer["not_run"] == ["building against PJRT 0.114 failed: device.cc:1: error: no member"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "/dev/null/matrix.json"], "--json /dev/null/matrix.json: there is no folder /dev/null"),
        (["--work", "/dev/null/work"], "--work /dev/null/work cannot be made: Not a directory"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_begun(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["matrix", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_the_help_of_each_command_says_its_exit_codes(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert "exit codes: " in " ".join(capsys.readouterr().out.lower().split())
