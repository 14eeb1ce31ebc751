"""What the nightly job keeps on disk: a folder for each run, the last good result, the lock against a second job."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class BusyError(Exception):
    """Another run uses the folder."""


def default_folder() -> Path:
    """Where reports go unless --out says otherwise: the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "treadle" / "nightly"


def write_atomically(path: Path, text: str) -> None:
    """Replaces the file; a reader, and a job that is killed, see the old or the new text and nothing between."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes the document so that two versions of it can be compared line by line."""
    write_atomically(path, json.dumps(document, indent=2) + "\n")


def read_json(path: Path, schema: str) -> dict[str, Any] | None:
    """The document, or None where there is none of this schema that can be read."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and document.get("schema") == schema else None


class Store:
    """The folder of the nightly job."""

    LAST_GOOD_SCHEMA = "treadle-nightly-last-good-1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.runs.mkdir(parents=True, exist_ok=True)

    def run_folder(self, key: str) -> Path:
        """The folder of the run with this key; made if it is not there."""
        folder = self.runs / key
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder's lock; the system releases it however the process ends.

        Raises:
          BusyError: another process holds it; says which.
        """
        with open(self.folder / "lock", "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise BusyError(
                    f"{self.folder} is in use by process {holder}; wait for it, or give another --out"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield
            file.truncate(0)

    def last_good(self) -> dict[str, Any] | None:
        """The last run in which nothing broke."""
        return read_json(self.folder / "last_good.json", self.LAST_GOOD_SCHEMA)

    def set_last_good(self, document: dict[str, Any]) -> None:
        """Records a run in which nothing broke."""
        write_json(self.folder / "last_good.json", {"schema": self.LAST_GOOD_SCHEMA, **document})

    def prune(self, keep: int, current: str) -> list[str]:
        """Deletes the folders of all runs but the `keep` newest and the current one; gives their names."""
        folders = sorted(self.runs.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        old = [folder for folder in folders[keep:] if folder.name != current]
        for folder in old:
            shutil.rmtree(folder, ignore_errors=True)
        return [folder.name for folder in old]
