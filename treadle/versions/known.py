"""The versions that released jaxlibs speak, each measured once; for where they cannot be measured."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from treadle.versions import releases
from treadle.versions.api_version import ApiVersion

_FILE = Path(__file__).parent / "known.json"


@dataclass(frozen=True)
class Release:
    """What one jaxlib speaks: of PJRT's C API, of XLA's FFI, and from which to which StableHLO it reads."""

    pjrt: ApiVersion
    ffi: ApiVersion
    stablehlo_current: str
    stablehlo_minimum: str


@functools.cache
def table() -> dict[str, Release]:
    """The known releases, by jaxlib's version."""
    return {
        version: Release(
            ApiVersion.parse(row["pjrt"]),
            ApiVersion.parse(row["ffi"]),
            row["stablehlo_current"],
            row["stablehlo_minimum"],
        )
        for version, row in json.loads(_FILE.read_text(encoding="utf-8")).items()
    }


def release(jaxlib: str) -> Release | None:
    """The row of a jaxlib; None if that version was never measured."""
    return table().get(releases.public(jaxlib))
