"""Whole artifacts on disk: a program that this user compiled before needs neither MLIR nor LLVM, not even imported.

Keyed by everything a compile depends on: the request and the compiler's build id. Lies in the kernel cache's folder
under the same rules.
"""

from __future__ import annotations

import hashlib

from treadle.build_id import build_id
from treadle.compiler import knobs
from treadle.compiler.object.disk import shared_disk

# Larger artifacts hold constants or very large programs: their compile time is not worth the space.
_MAX_BYTES = 4 << 20


def _wanted() -> bool:
    """Whether this compile may be answered from disk: not when somebody wants to see it happen."""
    if not knobs.CACHE.get():
        return False
    return knobs.DUMP.get() is None and not knobs.CHECK.get() and not knobs.DEBUG.get()


def name_of(program: bytes, *others: object) -> str | None:
    """The name under which a request's artifact is kept; None when it is not to be looked for.

    Args:
      program: its bytes.
      others: everything else that the artifact depends on, by its repr. (Not the options' bytes: protobuf writes the
        entries of a map in any order, so equal options differ from process to process.)
    """
    if not _wanted() or len(program) > _MAX_BYTES:
        return None
    digest = hashlib.blake2b(f"{build_id()} {others}\n".encode(), digest_size=16)
    digest.update(program)
    return "a_" + digest.hexdigest()


def find(name: str) -> bytes | None:
    """The artifact, if it is here and whole."""
    return shared_disk().read(name)


def keep(name: str, artifact: bytes) -> None:
    """Stores an artifact that was just made."""
    if len(artifact) <= _MAX_BYTES:
        shared_disk().write([name], artifact)
