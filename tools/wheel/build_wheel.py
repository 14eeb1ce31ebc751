"""Writes Treadle's wheel: a zip archive with the metadata that the wheel format asks for.

The same inputs give the same bytes: names are sorted and times are the zip format's
zero. Only the standard library is imported.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

EARLIEST = (1980, 1, 1, 0, 0, 0)
REGULAR_FILE = 0o100644 << 16
SHARED_LIBRARY = 0o100755 << 16

METADATA = """\
Metadata-Version: 2.4
Name: treadle
Version: {version}
Summary: A CPU backend for JAX, outside XLA and jaxlib: a PJRT plugin and a StableHLO compiler
License-Expression: Apache-2.0 AND GPL-3.0-or-later WITH GCC-exception-3.1
{license_files}Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: {requires_python}
{requires}Description-Content-Type: text/markdown

{readme}"""

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

    def add_metadata(self, readme: str, requires_python: str, requires: list[str]) -> None:
        """Adds METADATA, WHEEL and the entry points: the plugin for JAX, the command `treadle`."""
        prefix = f"{self.info}/licenses/"
        licenses = sorted(name[len(prefix) :] for name in self.files if name.startswith(prefix))
        metadata = METADATA.format(
            version=self.version,
            license_files="".join(f"License-File: {name}\n" for name in licenses),
            requires_python=requires_python,
            requires="".join(f"Requires-Dist: {requirement}\n" for requirement in requires),
            readme=readme,
        )
        self.files[f"{self.info}/METADATA"] = metadata.encode()
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
                entry.external_attr = SHARED_LIBRARY if ".so" in name else REGULAR_FILE
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)


def main(arguments: list[str]) -> int:
    """Parses the command line and writes the wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--requires-python", required=True)
    parser.add_argument("--requires", action="append", default=[])
    parser.add_argument("--file", action="append", default=[], metavar="NAME=PATH")
    options = parser.parse_args(arguments)
    wheel = Wheel(options.version, options.tag)
    for argument in options.file:
        name, _, path = argument.partition("=")
        if name in wheel.files:
            parser.error(f"two files are called {name} in the wheel")
        wheel.files[name] = Path(path).read_bytes()
    wheel.add_metadata(options.readme.read_text(), options.requires_python, options.requires)
    wheel.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
