"""The plugins and the headers that these tests are about, and how they run the commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from treadle.plugin import library_path

PLUGIN = library_path()
HEADERS = Path(os.environ["RUNFILES_DIR"]) / "xla_headers"
PROBE = Path("plugin/probe/treadle_probe.so").absolute()
MAJOR_1 = Path("plugin/probe/probe_1_0.so").absolute()
MINOR_28 = Path("plugin/probe/probe_0_28.so").absolute()


def hostile(behaviour: str) -> Path:
    return Path(f"tests/versions/plugin_{behaviour}.so").absolute()


def command(module: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs `python -m module arguments`; the terminal is wide, so that nothing in --help is wrapped."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=kept | {"COLUMNS": "200"} | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
