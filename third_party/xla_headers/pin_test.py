"""The fetched headers are at the versions that versions.toml says."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

HEADERS = Path(os.environ["RUNFILES_DIR"]) / "xla_headers" / "xla"
PIN = tomllib.loads(Path("versions.toml").read_text())["xla_headers"]


@pytest.mark.parametrize(
    ("pin", "header", "prefix"),
    [
        ("pjrt_api", "pjrt/c/pjrt_c_api.h", "PJRT_API"),
        ("ffi_api", "ffi/api/c_api.h", "XLA_FFI_API"),
    ],
)
def test_version(pin: str, header: str, prefix: str) -> None:
    found = re.findall(rf"#define {prefix}_(?:MAJOR|MINOR) (\d+)", (HEADERS / header).read_text())
    assert ".".join(found) == PIN[pin]
