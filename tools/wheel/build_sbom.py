"""Writes the wheel's bill of materials: CycloneDX 1.6, JSON.

It lists what the wheel holds of others (with the hashes of the files as they lie in it), what was
compiled in, and what an installer fetches beside it. There is no time in it, and the serial number
is a hash of the rest: the same wheel has the same bill. Only the standard library is imported.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tomllib
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.wheel import metadata

Json = dict[str, Any]

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
# The namespace of the serial numbers: fixed, so that they depend on the contents alone.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "treadle bill of materials")
_LOCKED = re.compile(r"^([\w.-]+)==(\S+) --hash=sha256:([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Locked:
    """One line of a lock file."""

    version: str
    sha256: str


def read_locks(texts: list[str]) -> dict[str, Locked]:
    """The packages that lock files name, by name."""
    return {name: Locked(version, digest) for text in texts for name, version, digest in _LOCKED.findall(text)}


def _sha256(content: bytes) -> list[Json]:
    return [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]


def _properties(**values: str) -> list[Json]:
    return [{"name": f"treadle:{name}", "value": value} for name, value in sorted(values.items()) if value]


def _spdx(identifier: str) -> list[Json]:
    return [{"license": {"id": identifier, "acknowledgement": "declared"}}]


def _expression(text: str) -> list[Json]:
    return [{"expression": text, "acknowledgement": "declared"}]


def bundled(wheel: zipfile.ZipFile, provenance: Json, locked: dict[str, Locked]) -> list[Json]:
    """The libraries of others in the wheel."""
    onednn, libgomp = provenance["onednn"], provenance["libgomp"]
    files = {name.rpartition("/")[2]: name for name in wheel.namelist()}
    origin = f"{onednn['package']}@{onednn['package_version']}"
    debian = f"{libgomp['package']}@{quote(libgomp['package_version'], safe='')}"
    return [
        {
            "type": "library",
            "bom-ref": "onednn",
            "name": "oneDNN",
            "version": onednn["version"],
            "description": "Matrix products and convolutions; opened by the plugin when a program needs them",
            "scope": "required",
            "licenses": _spdx("Apache-2.0"),
            "purl": f"pkg:pypi/{origin}",
            "hashes": _sha256(wheel.read(files["libdnnl.so.3"])),
            "pedigree": {"notes": "Symbol table removed (strip); search path $ORIGIN added (patchelf)."},
            "properties": _properties(
                file=files["libdnnl.so.3"],
                license_of_parts=files["THIRD-PARTY-PROGRAMS.onednn"],
                origin_sha256=locked[onednn["package"]].sha256,
            ),
        },
        {
            "type": "library",
            "bom-ref": "libgomp",
            "name": "libgomp",
            "version": libgomp["version"],
            "description": "GCC's OpenMP runtime, which oneDNN needs",
            "scope": "required",
            "licenses": _expression("GPL-3.0-or-later WITH GCC-exception-3.1"),
            **({"purl": f"pkg:deb/debian/{debian}?arch=amd64"} if libgomp["package"] else {}),
            "hashes": _sha256(wheel.read(files["libgomp.so.1"])),
            "properties": _properties(
                file=files["libgomp.so.1"], source=f"{libgomp['source']} {libgomp['source_version']}"
            ),
        },
    ]


def compiled_in(pins: Json, locked: dict[str, Locked]) -> list[Json]:
    """What the build reads and the wheel does not hold as such: C headers."""
    headers = pins["xla_headers"]
    package, version = headers["package"], headers["version"]
    return [
        {
            "type": "library",
            "bom-ref": "xla-headers",
            "name": "XLA C headers (PJRT, FFI)",
            "version": f"{headers['xla_branch']}-{headers['xla_date']}",
            "description": "Declarations that the plugin is compiled against; no code of XLA is in it",
            "scope": "excluded",
            "licenses": _spdx("Apache-2.0"),
            "purl": f"pkg:pypi/{package}@{version}",
            # A hash says which archive they were taken from; the headers are not a file of the wheel.
            "hashes": [{"alg": "SHA-256", "content": locked[package].sha256}],
            "properties": _properties(pjrt_api=headers["pjrt_api"], ffi_api=headers["ffi_api"]),
        }
    ]


def required(pins: Json) -> list[Json]:
    """What an installer fetches with the wheel: any version in the range, so no version is named."""
    return [
        {
            "type": "library",
            "bom-ref": f"requires-{name}",
            "name": name,
            "scope": "required",
            "purl": f"pkg:pypi/{name.replace('_', '-')}",
            "properties": _properties(requires=bounds),
        }
        for name, bounds in sorted(metadata.requirements(pins).items())
    ]


def bill(wheel: Path, pins: Json, provenance: Json, locked: dict[str, Locked]) -> Json:
    """The bill of the wheel file `wheel`.

    `provenance` tells where the bundled libraries are from (`@onednn//:provenance.json`), `locked`
    holds the archives that the build took them and the headers from.
    KeyError: the wheel or a lock file lacks something that the bill must name.
    """
    version = pins["treadle"]["version"]
    with zipfile.ZipFile(wheel) as archive:
        components = bundled(archive, provenance, locked) + compiled_in(pins, locked) + required(pins)
    references = [component["bom-ref"] for component in components]
    document: Json = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "library",
                "bom-ref": "treadle",
                "name": "treadle",
                "version": version,
                "description": metadata.SUMMARY,
                "licenses": _expression(metadata.WHEEL_LICENSE),
                "purl": f"pkg:pypi/treadle@{version}",
                "hashes": _sha256(wheel.read_bytes()),
                "properties": _properties(
                    compiler=provenance["libgomp"]["compiler"],
                    file=wheel.name,
                    requires_python=metadata.requires_python(pins),
                ),
            },
        },
        "components": components,
        "dependencies": [
            {"ref": "treadle", "dependsOn": sorted(name for name in references if name != "libgomp")},
            {"ref": "onednn", "dependsOn": ["libgomp"]},
            *({"ref": name} for name in references if name != "onednn"),
        ],
    }
    content = json.dumps(document, sort_keys=True)
    return {**document, "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, content)}"}


def main(arguments: list[str]) -> int:
    """Parses the command line and writes the bill."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--pins", type=Path, required=True, help="versions.toml")
    parser.add_argument("--provenance", type=Path, required=True, help="where the bundled libraries are from (JSON)")
    parser.add_argument("--lock", type=Path, action="append", default=[], help="a lock file of what the build fetches")
    options = parser.parse_args(arguments)
    document = bill(
        options.wheel,
        tomllib.loads(options.pins.read_text(encoding="utf-8")),
        json.loads(options.provenance.read_text(encoding="utf-8")),
        read_locks([path.read_text(encoding="utf-8") for path in options.lock]),
    )
    options.out.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
