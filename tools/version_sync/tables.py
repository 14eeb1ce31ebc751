"""The tables that the wheel carries and that are made from versions.toml and from the pinned headers.

They are kept under version control, so that a checkout works without a build.
"""

from __future__ import annotations

import json
from typing import Any

from tools.version_sync import header

SUPPORTED = "treadle/versions/supported.json"
SLOTS = "treadle/versions/slots.json"


def supported(versions: dict[str, Any]) -> str:
    """supported.json, from the content of versions.toml."""
    rows = versions["jax"]["tested"]
    bounds = {name: versions[name] for name in ("llvmlite", "numpy", "ml_dtypes")}
    bounds |= {"jax": versions["jax"], "jaxlib": versions["jax"]}
    content = {
        "python": versions["python"]["versions"],
        "accepted": {
            name: {key: pin[key] for key in ("minimum", "below") if key in pin} for name, pin in sorted(bounds.items())
        },
        "tested": {name: sorted({row[name] for row in rows}, key=_numbers) for name in ("jax", "jaxlib")},
        "pairs": [[row["jax"], row["jaxlib"], row["python"]] for row in rows],
        "pjrt_api": versions["xla_headers"]["pjrt_api"],
        "ffi_api": versions["xla_headers"]["ffi_api"],
    }
    return _text(content)


def slots(pinned: header.Header) -> str:
    """slots.json: the functions of PJRT_Api and the types of extensions, in order."""
    prefix = "PJRT_Extension_Type_"
    types = sorted(
        (number, name.removeprefix(prefix)) for name, number in pinned.enums["PJRT_Extension_Type"].values.items()
    )
    if [number for number, _ in types] != list(range(len(types))):
        raise ValueError(f"the extension types are not numbered from 0 on without a gap: {types}")
    return _text({"slots": pinned.slots, "extensions": [name for _, name in types]})


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"
