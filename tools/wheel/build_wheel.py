"""Writes Treadle's wheel: a zip archive with the metadata that the wheel format asks for.

The same inputs give the same bytes: names are sorted, times are the zip format's zero, and
modes do not come from the files. What is left is the compressor, which is that of the Python
that runs this: two versions of zlib may pack the same contents into different bytes.
Only the standard library is imported.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from tools.wheel import metadata

EARLIEST = (1980, 1, 1, 0, 0, 0)
REGULAR_FILE = 0o100644 << 16
SHARED_LIBRARY = 0o100755 << 16

WHEEL = """\
Wheel-Version: 1.0
Generator: treadle-build-wheel
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """\
[jax_plugins]
treadle = jax_plugins.treadle

[console_scripts]
treadle = treadle.__main__:main
"""


@dataclass
class Wheel:
    """The contents of a wheel, by name in the archive."""

    version: str
    tag: str
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def info(self) -> str:
        """The folder of the metadata."""
        return f"treadle-{self.version}.dist-info"

    def licenses(self) -> list[str]:
        """The names of the licence files that were added, within the folder of licences."""
        prefix = f"{self.info}/licenses/"
        return sorted(name[len(prefix) :] for name in self.files if name.startswith(prefix))

    def add_metadata(self, text: str) -> None:
        """Adds METADATA (its text is given), WHEEL and the entry points: the plugin for JAX, the command `treadle`."""
        self.files[f"{self.info}/METADATA"] = text.encode()
        self.files[f"{self.info}/WHEEL"] = WHEEL.format(tag=self.tag).encode()
        self.files[f"{self.info}/entry_points.txt"] = ENTRY_POINTS.encode()
        self.files[f"{self.info}/top_level.txt"] = b"jax_plugins\ntreadle\n"

    def record(self) -> str:
        """RECORD: the hash and the size of every file but itself."""
        rows = []
        for name, content in sorted(self.files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            rows.append(f"{name},sha256={digest.decode()},{len(content)}\n")
        rows.append(f"{self.info}/RECORD,,\n")
        return "".join(rows)

    def write(self, path: Path) -> None:
        """Writes the archive; RECORD comes last, as the format recommends."""
        files = sorted(self.files.items())
        files.append((f"{self.info}/RECORD", self.record().encode()))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files:
                entry = zipfile.ZipInfo(name, EARLIEST)
                entry.create_system = 3  # Unix: what external_attr holds are a file's mode bits
                entry.external_attr = SHARED_LIBRARY if ".so" in name else REGULAR_FILE
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)


def main(arguments: list[str]) -> int:
    """Parses the command line and writes the wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pins", type=Path, required=True, help="versions.toml")
    parser.add_argument("--tag", required=True, help="the compatibility tag, such as py3-none-any")
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--file", action="append", default=[], metavar="NAME=PATH")
    options = parser.parse_args(arguments)
    pins = tomllib.loads(options.pins.read_text(encoding="utf-8"))
    wheel = Wheel(pins["treadle"]["version"], options.tag)
    for argument in options.file:
        name, _, path = argument.partition("=")
        if name in wheel.files:
            parser.error(f"two files are called {name} in the wheel")
        wheel.files[name] = Path(path).read_bytes()
    readme = options.readme.read_text(encoding="utf-8")
    wheel.add_metadata(metadata.metadata(pins, readme, metadata.WHEEL_LICENSE, wheel.licenses()))
    wheel.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
