"""The wheel as auditwheel, twine and check-wheel-contents see it, and a wheel that each of them refuses."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from tools.release import checks
from tools.wheel.build_wheel import Wheel

PYTHON = Path(os.environ["RELEASE_PYTHON"])
WHEEL = Path(os.environ["WHEEL"]).resolve()
VERSION = WHEEL.name.split("-")[1]


def changed(folder: Path, name: str, edits: dict[str, bytes | None]) -> Path:
    """A copy of the wheel called `name`, in which some files are others or absent, and RECORD says so."""
    with zipfile.ZipFile(WHEEL) as source:
        files = {file: source.read(file) for file in source.namelist() if not file.endswith("/RECORD")}
    files = {file: content for file, content in {**files, **edits}.items() if content is not None}
    wheel = Wheel(VERSION, "py3-none-any", files)
    copy = folder / name
    with zipfile.ZipFile(copy, "w") as target:
        for file, content in files.items():
            target.writestr(file, content)
        target.writestr(f"{wheel.info}/RECORD", wheel.record())
    return copy


@pytest.mark.parametrize(
    "check", [checks.platform, checks.index_page, checks.wheel_contents], ids=lambda check: check.__name__
)
def test_the_wheel_passes(check):
    finding = check(PYTHON, WHEEL)
    assert finding.passed, finding.text


def test_auditwheel_finds_the_tag_of_the_name_and_no_library_from_outside():
    report = checks.platform_report(PYTHON, WHEEL)
    assert report["overall_tag"] == "manylinux_2_34_x86_64"
    assert report["external_libs"] == {}
    assert not report["unsupported_isa"]


def test_a_library_that_is_missing_or_a_tag_that_promises_too_much_is_found(tmp_path: Path):
    lacking = changed(tmp_path, WHEEL.name, {"treadle/lib/libgomp.so.1": None})
    finding = checks.platform(PYTHON, lacking)
    assert not finding.passed
    assert "libgomp.so.1" in finding.text
    older = changed(tmp_path, WHEEL.name.replace("2_34", "2_28"), {})
    finding = checks.platform(PYTHON, older)
    assert not finding.passed
    assert finding.text == "named manylinux_2_28_x86_64, consistent with manylinux_2_34_x86_64"


def test_a_stray_folder_and_bad_metadata_are_found(tmp_path: Path):
    stray = changed(tmp_path, WHEEL.name, {"tests/__init__.py": b""})
    assert not checks.wheel_contents(PYTHON, stray).passed
    metadata = f"Metadata-Version: 2.4\nName: treadle\nVersion: {VERSION}\n"
    bare = changed(tmp_path, WHEEL.name, {f"treadle-{VERSION}.dist-info/METADATA": metadata.encode()})
    finding = checks.index_page(PYTHON, bare)
    assert not finding.passed
    assert "long_description" in finding.text
