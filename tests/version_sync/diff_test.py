"""The program `diff`: exit codes, text, JSON, and headers that it takes out of a wheel."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.version_sync.sources import SMALL
from tools.version_sync import checkout, cli
from tools.version_sync.registry import Archive, RegistryError

GROWN = (
    SMALL.replace("MINOR 50", "MINOR 51")
    .replace("bool ready;  // out", "bool ready;\n  int64_t more;")
    .replace("PJRT_One_Args, ready", "PJRT_One_Args, more")
)
BROKEN = SMALL.replace("COLOUR_RED = 1", "COLOUR_RED = 7")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"old": SMALL, "grown": GROWN, "broken": BROKEN}.items():
        file = tmp_path / name / "xla/pjrt/c/pjrt_c_api.h"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    extension = tmp_path / "grown/xla/pjrt/c/pjrt_c_api_new_extension.h"
    extension.write_text("#define PJRT_API_NEW_EXTENSION_VERSION 1\n")
    return tmp_path


@pytest.mark.parametrize(("new", "code"), [("old", 0), ("grown", 3), ("broken", 4), ("absent", 5)])
def test_exit_codes(folder: Path, new: str, code: int):
    assert cli.main(["diff", str(folder / "old"), str(folder / new)]) == code


def test_text(folder: Path, capsys: pytest.CaptureFixture[str]):
    cli.main(["diff", str(folder / "old"), str(folder / "grown")])
    text = capsys.readouterr().out
    assert text.startswith("PJRT  0.50 -> 0.51\nslots 2 -> 2, PJRT_Api 56 -> 56 bytes\n")
    assert "Structs grown (1)\n  PJRT_One_Args  41 bytes -> 56 bytes: more\n" in text
    assert "only NEW has these files" in text
    assert "  pjrt/c/pjrt_c_api_new_extension.h" in text
    assert text.endswith("PJRT: compatible: things were only added at the end\n")
    cli.main(["diff", str(folder / "old"), str(folder / "broken")])
    assert "INCOMPATIBLE: the same name is another number" in capsys.readouterr().out


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]):
    cli.main(["diff", "--json", str(folder / "old"), str(folder / "broken")])
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "treadle-diff-1"
    assert answer["old"]["pjrt_api"] == "0.50"
    assert answer["compatible"] is False
    assert answer["verdicts"] == {"PJRT": "incompatible"}
    (change,) = answer["changes"]
    assert (change["kind"], change["name"]) == ("enum_value_changed", "Colour")
    assert answer["reasons"] == ["Colour: COLOUR_RED: 1 -> 7: the same name is another number"]


def test_two_files_are_compared_whatever_they_are_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old, new = tmp_path / "before.h", tmp_path / "after.h"
    old.write_text(SMALL)
    new.write_text(SMALL + "\nstruct PJRT_New_Args { size_t struct_size; };\n")
    assert cli.main(["diff", str(old), str(new)]) == 3
    assert cli.main(["diff", "--json", str(new), str(old)]) == 4
    assert "Not compared" not in capsys.readouterr().out


def test_headers_that_do_not_say_their_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old, new = tmp_path / "pjrt_c_api.h", tmp_path / "new" / "pjrt_c_api.h"
    new.parent.mkdir()
    old.write_text(SMALL)
    new.write_text(SMALL.replace("#define PJRT_API_MINOR 50\n", ""))
    assert cli.main(["diff", str(old), str(new)]) == 4
    text = capsys.readouterr().out
    assert text.startswith("PJRT  0.50 -> (not in NEW)\n  PJRT: INCOMPATIBLE: NEW does not say its version\n")


def test_an_error_is_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["diff", "--json", str(tmp_path), "0.114"]) == 5
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert (answer["schema"], answer["exit_code"]) == ("treadle-diff-1", 5)
    assert answer["error"] in printed.err
    assert f"{tmp_path} holds no xla/" in answer["error"]


def test_an_unknown_name_lists_the_known_ones(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["diff", "0.1", "0.2"]) == 5
    error = capsys.readouterr().err
    assert "0.1 is no directory or file here" in error
    assert "0.81, 0.90, 0.114" in error


def test_of_a_wheel_only_the_headers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def download(archive: Archive, into: Path) -> Path:
        asked.append(archive)
        with zipfile.ZipFile(into / "big.whl", "w") as wheel:
            wheel.writestr("package/include/xla/pjrt/c/pjrt_c_api.h", SMALL)
            wheel.writestr("package/include/xla/pjrt/c/big.so", b"\0" * 1000)
            wheel.writestr("package/include/xla/service/other.h", "int x;")
        return into / "big.whl"

    monkeypatch.setenv("TREADLE_WHEELHOUSE", str(tmp_path / "cache"))
    monkeypatch.setattr(checkout, "download", download)
    monkeypatch.setattr(
        checkout,
        "pins",
        lambda _: {
            "xla_headers": {
                "pjrt_api": "0.60",
                "older": [
                    {
                        "pjrt_api": "0.50",
                        "package": "big",
                        "version": "1",
                        "python": "3.11",
                        "sha256": "ab" * 32,
                        "folder": "package/include/xla",
                    }
                ],
            }
        },
    )
    found = checkout.named_headers("0.50", tmp_path)
    assert [str(file.relative_to(found)) for file in found.rglob("*") if file.is_file()] == ["xla/pjrt/c/pjrt_c_api.h"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [found.name]
    assert checkout.named_headers("0.50", tmp_path) == found
    assert asked == [Archive("big", "1", "ab" * 32, "3.11")]


def test_headers_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def fail(*_: object) -> Path:
        raise RegistryError("The registry did not answer")

    monkeypatch.setattr(checkout, "named_headers", fail)
    assert cli.main(["diff", "0.81", "0.90"]) == 5
    assert "The registry did not answer" in capsys.readouterr().err
