"""Compiled programs as bytes: the `pack` stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from treadle.compiler.context import CompileContext


def pack_artifact(objects: Sequence[bytes], context: CompileContext) -> bytes:
    """The stage."""
    from treadle.compiler.artifact.pack import pack

    return pack(objects, context)


def dump(artifact: bytes) -> bytes:
    """The artifact itself."""
    return artifact
