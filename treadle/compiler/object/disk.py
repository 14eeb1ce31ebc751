"""A folder of compiled kernels, shared by all processes of one user.

A blob is an object file with one or more kernels; it is found under the name of any of them (hard links to one file).
What lies there is executable code that will be run, so the folder must belong to the user and be writable by nobody
else, or it is not used at all. Files appear whole, by renaming; a damaged one is dropped. Losing a file at any moment
is harmless: it is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import stat
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from treadle.compiler import knobs

_log = logging.getLogger(__name__)

_MAGIC = b"TREADLE KERNEL 1"
_DIGEST = 16
_HEAD = struct.Struct(f"<{len(_MAGIC)}s{_DIGEST}s")
# A file's time is renewed when it is used, but not more often than this: reading should not mean writing.
_RENEW_SECONDS = 3600.0
_SWEEP_EVERY = 64
_SWEEP_TO = 0.8


def default_folder() -> Path:
    """TREADLE_CACHE_DIR, or `treadle` in the user's cache folder."""
    named = knobs.CACHE_DIR.get()
    if named is not None:
        return named
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "treadle"


class Disk:
    """The folder. Every method is safe with other threads and processes; none raises for what is wrong with the disk.

    Attributes:
      problem: why the folder is not used; "" when it is.
    """

    def __init__(self, folder: Path, limit: int = knobs.CACHE_LIMIT_MB.default << 20):
        self.folder = folder / "kernels"
        self.limit = limit
        self.problem = ""
        self._writes = 0
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.problem = _unsafe(folder) or _unsafe(self.folder)
        except OSError as error:
            self.problem = f"{error.strerror or error}: {folder}"
        if self.problem:
            _log.warning("kernel cache is off: %s", self.problem)

    def read(self, symbol: str) -> bytes | None:
        """The object that defines `symbol`, if it is here and whole."""
        if self.problem:
            return None
        path = self.folder / symbol
        try:
            content = path.read_bytes()
        except OSError:
            return None
        code = _unpack(content)
        if code is None:
            _log.warning("kernel cache: dropped a damaged file: %s", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _RENEW_SECONDS:
                os.utime(path)
        return code

    def write(self, symbols: Sequence[str], code: bytes) -> None:
        """Keeps an object under the names of all its kernels."""
        if self.problem:
            return
        try:
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_pack(code))
                for symbol in symbols[1:]:
                    self._link(name, symbol)
                os.replace(name, self.folder / symbols[0])
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            _log.warning("kernel cache: cannot write: %s", error)
            return
        self._writes += 1
        if self._writes % _SWEEP_EVERY == 1:
            self.sweep()

    def _link(self, source: str, symbol: str) -> None:
        """A further name for a file; an existing one keeps its content, which is as good."""
        try:
            os.link(source, self.folder / symbol)
        except FileExistsError:
            pass
        except OSError:
            # No hard links here: a copy, which appears whole as well.
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(Path(source).read_bytes())
            os.replace(name, self.folder / symbol)

    def sweep(self) -> None:
        """Removes the longest unused files when the folder is larger than its limit."""
        files: dict[int, tuple[float, int, list[str]]] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        info = entry.stat(follow_symlinks=False)
                        _, _, names = files.setdefault(info.st_ino, (info.st_mtime, info.st_size, []))
                        names.append(entry.path)
        except OSError:
            return
        total = sum(size for _, size, _ in files.values())
        if total <= self.limit:
            return
        for _, size, names in sorted(files.values()):
            if total <= self.limit * _SWEEP_TO:
                break
            for name in names:
                with contextlib.suppress(OSError):
                    os.unlink(name)
            total -= size


def _unsafe(folder: Path) -> str:
    """Why code found in `folder` must not be run; "" when it may."""
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        return f"{folder} is not a folder"
    if info.st_uid != os.getuid():
        return f"{folder} belongs to another user"
    if info.st_mode & 0o022:
        return f"{folder} can be written by others; make it private with chmod go-w"
    return ""


def _pack(code: bytes) -> bytes:
    return _HEAD.pack(_MAGIC, hashlib.blake2b(code, digest_size=_DIGEST).digest()) + code


def _unpack(content: bytes) -> bytes | None:
    if len(content) < _HEAD.size:
        return None
    magic, digest = _HEAD.unpack_from(content)
    code = content[_HEAD.size :]
    if magic != _MAGIC or hashlib.blake2b(code, digest_size=_DIGEST).digest() != digest:
        return None
    return code


@functools.cache
def shared_disk() -> Disk:
    """The folder that compiles of this process use.

    Raises:
      CompileError: INVALID_ARGUMENT for a TREADLE_CACHE_LIMIT_MB that is no such number.
    """
    return Disk(default_folder(), knobs.CACHE_LIMIT_MB.get() << 20)
