"""The registries' clients: pip on an index in a folder, and what is said when one does not answer."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tools.version_sync import registry
from tools.version_sync.registry import Archive, RegistryError

CONTENT = b"not a real wheel, but pip only fetches it"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An index with the package `thing`: 1.0 and 2.0, 2.0 for Python 3.12 alone, and a pre-release."""
    folder = tmp_path / "simple" / "thing"
    folder.mkdir(parents=True)
    names = ["thing-1.0-py3-none-any.whl", "thing-2.0-cp312-none-any.whl", "thing-3.0rc1-py3-none-any.whl"]
    for name in names:
        (folder / name).write_bytes(CONTENT)
    (folder / "index.html").write_text("".join(f'<a href="{name}">{name}</a>\n' for name in names))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    url = (tmp_path / "simple").as_uri()
    monkeypatch.setenv("PIP_INDEX_URL", url)
    return url


def test_versions_for_a_python_the_newest_first(index: str):
    assert registry.versions("thing", "3.12") == ["2.0", "1.0"]
    assert registry.versions("thing", "3.11") == ["1.0"]


def test_pre_releases_when_asked_for(index: str):
    assert registry.versions("thing", "3.12", pre=True)[0] == "3.0rc1"


def test_another_index_can_be_given(index: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/none")
    assert registry.versions("thing", "3.11", index=index) == ["1.0"]


def test_a_registry_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/none")
    with pytest.raises(RegistryError, match="The versions of thing: ERROR"):
        registry.versions("thing")


def test_a_file_with_another_hash_is_refused(index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "PIP", (*registry.PIP, "--no-cache-dir"))
    good = Archive("thing", "1.0", hashlib.sha256(CONTENT).hexdigest(), "3.11")
    with pytest.raises(RegistryError, match=r"Fetching thing 1\.0: ERROR: .*HASH"):
        registry.download(Archive("thing", "1.0", "0" * 64, "3.11"), tmp_path / "bad")
    assert good.sha256 != "0" * 64


@pytest.mark.parametrize(
    ("candidate", "version"), [("4.2.3+ds-9", "4.2.3"), ("1:5.0~rc1-2", "5.0"), ("6.1.0", "6.1.0")]
)
def test_debians_part_of_a_version_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: str, version: str
):
    apt = tmp_path / "apt-cache"
    apt.write_text(f"#!/bin/sh\necho 'bazel-bootstrap:'\necho '  Candidate: {candidate}'\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registry.debian_version("bazel-bootstrap") == version


def test_no_apt_and_no_such_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RegistryError, match="there is no apt-cache here"):
        registry.debian_version("bazel-bootstrap")
    apt = tmp_path / "apt-cache"
    apt.write_text("#!/bin/sh\n")
    apt.chmod(0o755)
    with pytest.raises(RegistryError, match="apt knows no such package"):
        registry.debian_version("bazel-bootstrap")
