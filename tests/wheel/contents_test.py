"""The wheel file: its metadata, what it packs, and what its shared libraries ask of a system."""

from __future__ import annotations

import base64
import configparser
import csv
import email.parser
import hashlib
import io
import os
import re
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from tools.wheel.build_wheel import Wheel

WHEEL = Path(os.environ["WHEEL"])
VERSIONS = tomllib.loads(Path("versions.toml").read_text())
INFO = f"treadle-{VERSIONS['treadle']['version']}.dist-info"
PLUGIN, PROBE = "treadle/lib/treadle_pjrt.so", "treadle/lib/treadle_probe.so"
LIBRARIES = ("treadle/lib/libdnnl.so.3", "treadle/lib/libgomp.so.1", PLUGIN, PROBE)

# The newest symbol versions that a manylinux_2_34 system is bound to have.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}


@pytest.fixture(scope="module")
def archive() -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(WHEEL) as opened:
        yield opened


@pytest.fixture(scope="module")
def unpacked(archive: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def metadata(archive: zipfile.ZipFile) -> Message:
    return email.parser.Parser().parsestr(archive.read(f"{INFO}/METADATA").decode())


def tool(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_name_says_what_it_runs_on():
    assert WHEEL.name == f"treadle-{VERSIONS['treadle']['version']}-py3-none-manylinux_2_34_x86_64.whl"


def test_record_lists_every_file_with_its_hash_and_size(archive: zipfile.ZipFile):
    rows = list(csv.reader(io.StringIO(archive.read(f"{INFO}/RECORD").decode())))
    assert sorted(row[0] for row in rows) == sorted(archive.namelist())
    for name, digest, size in rows:
        if name == f"{INFO}/RECORD":
            assert (digest, size) == ("", "")
            continue
        content = archive.read(name)
        expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        assert (digest, size) == (f"sha256={expected}", str(len(content))), name


def test_jax_finds_the_plugin_by_entry_point(archive: zipfile.ZipFile):
    entries = configparser.ConfigParser()
    entries.read_string(archive.read(f"{INFO}/entry_points.txt").decode())
    assert dict(entries["jax_plugins"]) == {"treadle": "jax_plugins.treadle"}
    assert dict(entries["console_scripts"]) == {"treadle": "treadle.__main__:main"}
    assert "jax_plugins/treadle/__init__.py" in archive.namelist()
    # jax_plugins is a namespace: a file of that name would hide every other plugin.
    assert "jax_plugins/__init__.py" not in archive.namelist()


def test_the_requirements_are_the_ranges_of_versions_toml(metadata: Message):
    jax = VERSIONS["jax"]
    requires = metadata.get_all("Requires-Dist") or []
    assert f"jaxlib>={jax['minimum']},<{jax['below']}" in requires
    assert f"jax>={jax['minimum']},<{jax['below']}" in requires
    assert {re.split("[<>=]", text)[0] for text in requires} == {"jax", "jaxlib", "llvmlite", "ml_dtypes", "numpy"}
    assert metadata["Requires-Python"] == ">=3.11,<3.14"


def test_the_licences_of_everything_packed_are_packed(archive: zipfile.ZipFile, metadata: Message):
    listed = {f"{INFO}/licenses/{name}" for name in metadata.get_all("License-File") or []}
    assert {name.rpartition("/")[2] for name in listed} == {
        "BUNDLED",
        "COPYING3.libgomp",
        "LICENSE",
        "LICENSE.libgomp",
        "LICENSE.onednn",
        "THIRD-PARTY-PROGRAMS.onednn",
    }
    assert listed <= set(archive.namelist())
    text = {name: archive.read(f"{INFO}/licenses/{name}").decode() for name in ("COPYING3.libgomp", "LICENSE.libgomp")}
    assert "GNU GENERAL PUBLIC LICENSE" in text["COPYING3.libgomp"]
    assert "Version 3, 29 June 2007" in text["COPYING3.libgomp"]
    assert "GCC RUNTIME LIBRARY EXCEPTION" in text["LICENSE.libgomp"]
    bundled = archive.read(f"{INFO}/licenses/BUNDLED").decode()
    for library in LIBRARIES:
        if library not in (PLUGIN, PROBE):
            assert library.rpartition("/")[2] in bundled


def test_only_the_plugin_and_one_copy_of_each_library_are_binaries(archive: zipfile.ZipFile):
    binaries = [name for name in archive.namelist() if archive.read(name)[:4] == b"\x7fELF"]
    assert sorted(binaries) == sorted(LIBRARIES)


def test_treadles_own_part_is_a_few_megabytes(archive: zipfile.ZipFile):
    own = [entry for entry in archive.infolist() if entry.filename not in LIBRARIES[:2]]
    assert sum(entry.file_size for entry in own) < 6_000_000
    assert WHEEL.stat().st_size < 15_000_000


@pytest.mark.parametrize("library", [PLUGIN, PROBE])
def test_the_plugins_export_one_symbol(unpacked: Path, library: str):
    names = [line.split()[-1] for line in tool("nm", "-D", "--defined-only", unpacked / library).splitlines()]
    assert names == ["GetPjrtApi"]


def needed(library: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", tool("readelf", "-d", "-W", library)))


def test_the_plugin_links_the_system_and_nothing_else(unpacked: Path):
    system = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
    assert needed(unpacked / PLUGIN) <= system | {"libdl.so.2", "libpthread.so.0"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_libraries_run_on_manylinux_2_34(unpacked: Path, library: str):
    text = tool("readelf", "-V", "-W", unpacked / library)
    required = text.partition("Version needs section")[2]
    for family, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", required):
        assert tuple(map(int, version.split("."))) <= NEWEST[family], f"{family}_{version}"


def test_onednn_finds_the_libgomp_beside_it(unpacked: Path):
    dynamic = tool("readelf", "-d", "-W", unpacked / "treadle/lib/libdnnl.so.3")
    assert re.findall(r"\(RUNPATH\).*\[(.*)\]", dynamic) == ["$ORIGIN"]


@pytest.mark.parametrize("library", [PLUGIN, PROBE])
def test_our_libraries_do_not_tell_where_they_were_built(unpacked: Path, library: str):
    content = (unpacked / library).read_bytes()
    # The folders that Bazel builds in, in any user's cache, in a sandbox or not.
    for trace in (b"execroot", b"_bazel_", b"bazel-out", b"processwrapper-sandbox", b"linux-sandbox", b"/external/"):
        assert trace not in content, trace
    # What begins like a path in a home or a temporary folder; the one that is there is where `perf` looks.
    paths = re.findall(rb"/(?:home|root|tmp|var|build)/[\x21-\x7e]{2,}", content)
    assert set(paths) <= {b"/tmp/perf-"}
    assert ".debug_info" not in tool("readelf", "-S", "-W", unpacked / library)


def wheel_of(names: list[str], path: Path) -> bytes:
    wheel = Wheel("1.0", "py3-none-any", {name: f"contents of {name}".encode() for name in names})
    wheel.add_metadata("Metadata-Version: 2.4\nName: treadle\nVersion: 1.0\n")
    wheel.write(path)
    return path.read_bytes()


def test_the_order_of_the_inputs_and_the_mask_of_modes_do_not_matter(tmp_path: Path):
    names = ["treadle/b.py", "treadle/a.py", "treadle/lib/c.so", "treadle-1.0.dist-info/licenses/LICENSE"]
    first = wheel_of(names, tmp_path / "one")
    before = os.umask(0o077)
    try:
        second = wheel_of(names[::-1], tmp_path / "two")
    finally:
        os.umask(before)
    assert first == second


def test_the_archive_holds_no_time_and_no_user(archive: zipfile.ZipFile):
    for entry in archive.infolist():
        mode = 0o100755 if ".so" in entry.filename else 0o100644
        assert (entry.date_time, entry.create_system, entry.extra) == ((1980, 1, 1, 0, 0, 0), 3, b""), entry.filename
        assert entry.external_attr >> 16 == mode, entry.filename
    names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
    assert names == sorted(names)


def test_the_description_links_to_no_file_of_the_repository(metadata: Message):
    text = str(metadata.get_payload())
    assert "# Treadle" in text
    assert [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("https://")] == []
