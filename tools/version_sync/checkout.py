"""The checkout that the tools work on, its pins, and the header sets that it knows by name."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from third_party.python import environment
from tools.version_sync.registry import Archive, RegistryError, download


def root() -> Path:
    """The checkout: where `bazelw run` was called, or where this file lies."""
    return Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY") or Path(__file__).resolve().parents[2])


def pins(folder: Path) -> dict[str, Any]:
    """versions.toml of the checkout `folder`."""
    return tomllib.loads((folder / "versions.toml").read_text(encoding="utf-8"))


def say(text: str) -> None:
    """Progress, for people: on stderr, so that --json stays clean."""
    print(text, file=sys.stderr, flush=True)


def cannot(command: str, schema: str, message: str, code: int, as_json: bool) -> int:
    """Says why `command` has no answer, with --json as an object of its schema too; gives the exit code."""
    if as_json:
        print(json.dumps({"schema": schema, "exit_code": code, "error": message}, indent=2))
    say(f"version_sync {command}: {message}")
    return code


def header_names(folder: Path) -> list[str]:
    """The PJRT versions whose headers can be had by name, the oldest first."""
    known = pins(folder)["xla_headers"]
    names = [known["pjrt_api"], *(row["pjrt_api"] for row in known.get("older", []))]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def named_headers(name: str, folder: Path) -> Path:
    """A directory that holds xla/ with the headers of PJRT version `name`, fetched if it is not in the cache.

    Raises:
        RegistryError: they cannot be fetched.
        KeyError: no headers of that version are known.
    """
    known = pins(folder)["xla_headers"]
    if name == known["pjrt_api"]:
        return _pinned(known, folder)
    for row in known.get("older", []):
        if row["pjrt_api"] == name:
            return _from_wheel(row)
    raise KeyError(name)


def _pinned(known: dict[str, Any], folder: Path) -> Path:
    lock = folder / "third_party" / "xla_headers" / "lock.txt"
    try:
        files = environment.wheelhouse(lock, known["package"])
    except SystemExit as error:
        raise RegistryError(f"The pinned headers could not be fetched: {error}") from error
    stem = f"{known['package']}-{known['version']}"
    kept = environment.default_cache() / f"headers-{files.name}"
    if not kept.is_dir():
        with tarfile.open(files / f"{stem}.tar.gz") as archive:
            prefix = f"{stem}/{known['root']}/xla/"
            members = (member for member in archive.getmembers() if member.isfile() and member.name.startswith(prefix))
            read = ((member.name[len(prefix) :], archive.extractfile(member)) for member in members)
            _keep(kept, ((name, file.read()) for name, file in read if file is not None))
    return kept


def _from_wheel(row: dict[str, Any]) -> Path:
    archive = Archive(row["package"], row["version"], row["sha256"], row["python"])
    kept = environment.default_cache() / f"headers-{archive.sha256[:24]}"
    if not kept.is_dir():
        say(f"fetching {archive.package} {archive.version} for its headers (only they are kept)")
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetching-") as scratch:
            wheel = zipfile.ZipFile(download(archive, Path(scratch)))
            prefix = row["folder"] + "/"
            names = [name for name in wheel.namelist() if name.startswith(prefix)]
            into = row.get("into", "")
            _keep(kept, ((into + name[len(prefix) :], wheel.read(name)) for name in names))
    return kept


def _keep(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes the C headers among `files` under folder/xla: all of them, or no folder."""
    wanted = ("pjrt/c/", "ffi/api/", "backends/profiler/plugin/")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".headers-") as scratch:
        for name, content in files:
            if name.endswith(".h") and name.startswith(wanted):
                path = Path(scratch) / "set" / "xla" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        try:
            (Path(scratch) / "set").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first: the same files
                raise
