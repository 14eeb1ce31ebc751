"""How large the wheel is, packed and installed: Treadle's own part, and the libraries of others in it."""

from __future__ import annotations

import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# By the name in the wheel's treadle/lib. Everything else is Treadle's own.
BUNDLED = ("libdnnl.so.3", "libgomp.so.1")


@dataclass
class Size:
    """Bytes in the archive and on the disk."""

    packed: int = 0
    installed: int = 0

    def add(self, entry: zipfile.ZipInfo) -> None:
        """Counts one file of the archive."""
        self.packed += entry.compress_size
        self.installed += entry.file_size


def measure(wheel: Path) -> dict[str, Size]:
    """The sizes of the wheel's parts.

    "plugin", "python and metadata" and their sum "own"; each bundled library and their sum "bundled"; "all".
    """
    sizes = {name: Size() for name in ("plugin", "python and metadata", "own", *BUNDLED, "bundled", "all")}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = entry.filename.rpartition("/")[2]
            if name in BUNDLED:
                parts = (name, "bundled")
            else:
                parts = ("plugin" if ".so" in name else "python and metadata", "own")
            for part in (*parts, "all"):
                sizes[part].add(entry)
    return sizes


def as_json(wheel: Path) -> dict[str, Any]:
    """The same for programs."""
    return {"wheel_bytes": wheel.stat().st_size, "parts": {name: asdict(size) for name, size in measure(wheel).items()}}


def text(wheel: Path) -> str:
    """The table that a person reads."""
    lines = [f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", f"{'':22} {'in the wheel':>14} {'installed':>14}"]
    for name, size in measure(wheel).items():
        indent = "" if name in ("own", "bundled", "all") else "  "
        lines.append(f"{indent + name:22} {size.packed / 1e6:11.2f} MB {size.installed / 1e6:11.2f} MB")
    return "\n".join(lines)
