"""What a release consists of: source archive, bill of materials, sizes; and what `build` and `verify` refuse."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.release.repositories import commit, repository
from tools.release import artifacts, checks, clean, cli, sizes, verify
from tools.release.repository import RefusedError
from tools.wheel import build_sbom, build_sdist

PYTHON = Path(os.environ["RELEASE_PYTHON"])
WHEEL, SBOM = Path(os.environ["WHEEL"]).resolve(), Path(os.environ["SBOM"]).resolve()
Json = dict[str, Any]
PINS = tomllib.loads(Path("versions.toml").read_text())


# --- the source archive --------------------------------------------------------------------


def test_the_source_archive_is_what_git_tracks(tmp_path: Path):
    made = repository(tmp_path / "one")
    script = made.root / "tool"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    commit(made, "A script", {"deep/er/file.txt": "text\n"})
    (made.root / "stray.txt").write_text("not tracked")
    path = build_sdist.build(made.root, tmp_path / "out")
    assert path.name == "treadle-0.1.0.tar.gz"
    with tarfile.open(path) as archive:
        entries = {entry.name.removeprefix("treadle-0.1.0/"): entry for entry in archive}
        member = archive.extractfile("treadle-0.1.0/PKG-INFO")
        assert member is not None
        info = member.read().decode()
    tracked = {"versions.toml", "README.md", "LICENSE", "tool", "deep/er/file.txt"}
    assert set(entries) == tracked | {"PKG-INFO", "MANIFEST"}
    assert {name for name, entry in entries.items() if entry.mode == 0o755} == {"tool"}
    assert all(entry.mode in (0o644, 0o755) and entry.uid == entry.gid == 0 for entry in entries.values())
    assert {(entry.uname, entry.gname, entry.mtime) for entry in entries.values()} == {("", "", build_sdist.TIME)}
    assert "License-Expression: Apache-2.0\n" in info
    assert "Requires-Dist: jaxlib>=1.0,<2.0\n" in info
    assert info.endswith("# Treadle\n\nSee the pins.\n")


def test_the_same_sources_give_the_same_archive_also_from_an_archive(tmp_path: Path):
    made = repository(tmp_path / "one")
    first = build_sdist.build(made.root, tmp_path / "first")
    made.git("clone", "--quiet", str(made.root), str(tmp_path / "another" / "name"))
    before = os.umask(0o077)
    try:
        second = build_sdist.build(tmp_path / "another" / "name", tmp_path / "second")
    finally:
        os.umask(before)
    assert second.read_bytes() == first.read_bytes()
    with tarfile.open(first) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    third = build_sdist.build(tmp_path / "unpacked" / "treadle-0.1.0", tmp_path / "third")
    assert third.read_bytes() == first.read_bytes()


def test_a_folder_that_is_no_source_tree_or_lacks_a_file_is_refused(tmp_path: Path):
    made = repository(tmp_path / "one")
    (made.root / "LICENSE").unlink()
    with pytest.raises(RuntimeError, match="lacks 1 of its source files: LICENSE"):
        build_sdist.build(made.root, tmp_path)
    shutil.rmtree(made.root / ".git")
    with pytest.raises(RuntimeError, match="neither a git checkout nor an unpacked source archive"):
        build_sdist.build(made.root, tmp_path)


# --- the bill of materials -----------------------------------------------------------------


@pytest.fixture(scope="module")
def document() -> Json:
    found: Json = json.loads(SBOM.read_text())
    return found


def test_the_bill_is_valid_and_a_broken_one_is_not(tmp_path: Path, document: Json):
    assert checks.bill_of_materials(PYTHON, SBOM).passed
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({**document, "serialNumber": "one", "time": "now"}))
    finding = checks.bill_of_materials(PYTHON, broken)
    assert not finding.passed
    assert "serialNumber" in finding.text or "'one'" in finding.text


def test_the_bill_names_every_library_of_others_in_the_wheel(document: Json):
    with zipfile.ZipFile(WHEEL) as archive:
        binaries = {name for name in archive.namelist() if archive.read(name)[:4] == b"\x7fELF"}
        files = {name: build_sbom._sha256(archive.read(name)) for name in binaries}
    own = {name for name in binaries if name.rpartition("/")[2].startswith("treadle_")}
    listed = {}
    for component in document["components"]:
        for entry in component.get("properties", []):
            if entry["name"] == "treadle:file":
                listed[entry["value"]] = component["hashes"]
    assert listed == {name: digest for name, digest in files.items() if name not in own}


def test_the_bill_names_what_is_required_and_what_was_compiled_in(document: Json):
    components = {component["bom-ref"]: component for component in document["components"]}
    ranges = {
        component["name"]: component["properties"][0]["value"]
        for name, component in components.items()
        if name.startswith("requires-")
    }
    assert set(ranges) == {"jax", "jaxlib", "llvmlite", "ml_dtypes", "numpy"}
    assert ranges["jaxlib"] == f">={PINS['jax']['minimum']},<{PINS['jax']['below']}"
    assert components["xla-headers"]["scope"] == "excluded"
    assert components["onednn"]["version"] == PINS["onednn"]["onednn_version"]
    assert document["metadata"]["component"]["version"] == PINS["treadle"]["version"]
    assert document["metadata"]["component"]["hashes"] == build_sbom._sha256(WHEEL.read_bytes())
    references = {"treadle", *components}
    assert {entry["ref"] for entry in document["dependencies"]} == references
    assert all(set(entry.get("dependsOn", [])) <= references for entry in document["dependencies"])


def test_the_serial_number_is_of_the_contents(tmp_path: Path, document: Json):
    provenance = {
        "onednn": {"package": "onednn-cpu-gomp", "package_version": "1", "version": "3"},
        "libgomp": {"version": "12", "package": "", "package_version": "", "compiler": "gcc 12"}
        | {"source": "gcc", "source_version": "12"},
    }
    locked = build_sbom.read_locks([f"{name}==1 --hash=sha256:{'0' * 64}\n" for name in ("onednn-cpu-gomp", "pypjrt")])
    first = build_sbom.bill(WHEEL, PINS, provenance, locked)
    assert first == build_sbom.bill(WHEEL, PINS, provenance, locked)
    provenance["libgomp"]["version"] = "13"
    second = build_sbom.bill(WHEEL, PINS, provenance, locked)
    assert len({first["serialNumber"], second["serialNumber"], document["serialNumber"]}) == 3
    assert "purl" not in next(item for item in first["components"] if item["bom-ref"] == "libgomp")


# --- the release ---------------------------------------------------------------------------


def test_sizes_add_up():
    parts = sizes.measure(WHEEL)
    assert parts["all"].installed == parts["own"].installed + parts["bundled"].installed
    assert parts["own"].packed == parts["plugin"].packed + parts["python and metadata"].packed
    with zipfile.ZipFile(WHEEL) as archive:
        assert parts["all"].installed == sum(entry.file_size for entry in archive.infolist())
        assert parts["libdnnl.so.3"].installed == archive.getinfo("treadle/lib/libdnnl.so.3").file_size
    assert parts["plugin"].installed > 1_000_000
    assert "libgomp.so.1" in sizes.text(WHEEL)


def test_a_folder_that_holds_no_release_or_two_is_refused(tmp_path: Path):
    with pytest.raises(RefusedError, match=r"must hold one treadle-\*\.whl, and holds none"):
        artifacts.Artifacts.of(tmp_path)
    for name in ("treadle-1.0.0-py3-none-any.whl", "treadle-1.0.1-py3-none-any.whl"):
        (tmp_path / name).touch()
    with pytest.raises(RefusedError, match=r"holds treadle-1\.0\.0-.*, treadle-1\.0\.1-"):
        artifacts.Artifacts.of(tmp_path)


def test_a_file_that_was_changed_after_the_build_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("treadle-1.0.0-py3-none-any.whl", "treadle-1.0.0.tar.gz", "treadle-1.0.0.cdx.json"):
        (tmp_path / name).write_text(name)
    release = artifacts.Artifacts.of(tmp_path)
    assert str(release.version) == "1.0.0"
    assert len(artifacts.check_hashes(release)) == 1
    lines = "".join(f"{digest}  {name}\n" for name, digest in release.hashes().items())
    (tmp_path / artifacts.HASHES).write_text(lines)
    assert artifacts.check_hashes(release) == []
    release.sbom.write_text("other")
    assert artifacts.check_hashes(release) == ["treadle-1.0.0.cdx.json is not what SHA256SUMS says"]
    assert cli.main(["verify", "--json", str(tmp_path)]) == cli.FAILED
    answer = json.loads(capsys.readouterr().out)
    (finding,) = answer["findings"]
    assert (finding["name"], finding["passed"]) == ("SHA256SUMS", False)
    assert answer["not_run"] == ["all other checks: these are not the files that `build` made; build again"]


def test_a_commit_with_the_tag_of_another_version_is_not_built(tmp_path: Path):
    made = repository(tmp_path / "one")
    made.git("tag", "v0.2.0")
    with pytest.raises(RefusedError, match=r"has the tag v0\.2\.0, but versions\.toml says 0\.1\.0"):
        artifacts.build(made, tmp_path / "dist")


def test_an_archive_that_lacks_a_tracked_file_is_found(tmp_path: Path):
    made = repository(tmp_path / "one")
    path = build_sdist.build(made.root, tmp_path)
    assert verify.sdist_contents(made, path).passed
    commit(made, "Another file", {"later.txt": ""})
    finding = verify.sdist_contents(made, path)
    assert not finding.passed
    assert "later.txt" in finding.text


def test_each_python_is_tried_with_its_default_or_with_every_jaxlib(tmp_path: Path):
    pins = repository(tmp_path / "one").pins
    assert [str(pair) for pair in clean.pairs(pins, False)] == ["Python 3.11, jaxlib 1.0", "Python 3.12, jaxlib 1.5"]
    assert [pair.jaxlib for pair in clean.pairs(pins, True)] == ["1.0", "1.5", "1.0"]
    assert clean.pairs(pins, False)[0].lock == "third_party/python/lock/py311-jaxlib1.0.txt"
