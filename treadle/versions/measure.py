"""Which PJRT C API a jaxlib speaks, and what else an environment holds.

jaxlib has no function that tells. But for each plugin that it initialises it logs the plugin's version and its own, so
a probe plugin is loaded in a child process and the log is read.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from treadle import private_jax
from treadle.versions import children, known
from treadle.versions.api_version import ApiVersion

PROBE = "treadle_probe.so"
PROBE_VARIABLE = "TREADLE_PROBE_PATH"
PACKAGES = ("jax", "jaxlib", "llvmlite", "numpy", "ml_dtypes")

# What jaxlib logs when it initialises a plugin; one of the things that private_jax checks.
LOG = re.compile(r"framework PJRT API version is (\d+)\.(\d+)")


@dataclass(frozen=True)
class Environment:
    """What a Python environment holds.

    Attributes:
      executable: its interpreter; `python` is that one's version.
      packages: the versions of PACKAGES; None for one that is not installed.
      ffi: the version in the FFI header that jaxlib carries; None without one.
      stablehlo: jaxlib's current and oldest StableHLO; None if jaxlib does not tell.
      jaxlib_problem: why the jaxlib that is installed cannot be imported; empty if it can, or if there is none.
    """

    executable: str
    python: str
    packages: dict[str, str | None]
    ffi: ApiVersion | None
    stablehlo: tuple[str, str] | None
    jaxlib_problem: str = ""

    @property
    def jaxlib(self) -> str | None:
        return self.packages["jaxlib"]


@dataclass(frozen=True)
class Framework:
    """The PJRT version of a jaxlib, and how it is known.

    Attributes:
      pjrt: the version; None if nothing tells.
      source: "measured", "table", or "unknown".
      note: why it was not measured; empty if it was.
    """

    pjrt: ApiVersion | None
    source: str
    note: str = ""


def environment(python: str = sys.executable) -> Environment:
    """Asks an interpreter what it has installed. Raises children.ChildError if it does not answer."""
    answer, _ = children.run(__name__, "environment", python=python)
    ffi, stablehlo = answer.pop("ffi"), answer.pop("stablehlo")
    return Environment(
        ffi=ApiVersion.parse(ffi) if ffi else None, stablehlo=tuple(stablehlo) if stablehlo else None, **answer
    )


def framework(
    jaxlib: str | None, python: str = sys.executable, probe: Path | None = None, timeout: float = children.SECONDS
) -> Framework:
    """Measures a jaxlib's PJRT version with the probe plugin, or looks it up.

    Args:
      jaxlib: the version that is installed for `python`; None if there is none.
      python: an interpreter.
      probe: the probe plugin; None for the one that belongs to this Treadle.
      timeout: how long the child may take, in seconds.
    """
    if jaxlib is None:
        return Framework(None, "unknown", "jaxlib is not installed")
    probe = probe or probe_path()
    if probe is None:
        note = f"{PROBE} is not there (it is in Treadle's wheel, and //plugin/probe builds it)"
    else:
        try:
            answer, log = children.run(
                __name__, "probe", str(probe), python=python, environment={"TF_CPP_MIN_LOG_LEVEL": "0"}, timeout=timeout
            )
            if match := LOG.search(log):
                return Framework(ApiVersion(int(match[1]), int(match[2])), "measured")
            note = answer["error"] or "jaxlib did not log its version"
        except children.ChildError as error:
            note = f"the process that asks jaxlib {error}"
    if row := known.release(jaxlib):
        return Framework(row.pjrt, "table", note)
    return Framework(None, "unknown", note)


def probe_path() -> Path | None:
    """The probe plugin: the one TREADLE_PROBE_PATH names, the wheel's, or the one that was built; None without one."""
    if named := os.environ.get(PROBE_VARIABLE):
        return Path(named)
    package = Path(__file__).absolute().parents[1]
    root = package.parent
    for folder in (package / "lib", root / "plugin" / "probe", root / "bazel-bin" / "plugin" / "probe"):
        if (folder / PROBE).is_file():
            return folder / PROBE
    return None


def answer(arguments: Sequence[str]) -> None:
    """The child's part."""
    if arguments[0] == "probe":
        children.reply({"error": _load_probe(arguments[1])})
    else:
        children.reply(_environment())


def _load_probe(path: str) -> str:
    try:
        private_jax.resolve("jaxlib.xla_client.load_pjrt_plugin_dynamically")("treadle_probe", path)
        private_jax.resolve("jaxlib.xla_client.initialize_pjrt_plugin")("treadle_probe")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _environment() -> dict[str, Any]:
    packages: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            packages[package] = None
    return {
        "executable": sys.executable,
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": packages,
        "ffi": _ffi(),
        "stablehlo": _stablehlo(),
        "jaxlib_problem": _jaxlib_problem() if packages["jaxlib"] else "",
    }


def _jaxlib_problem() -> str:
    try:
        importlib.import_module("jaxlib.xla_client")
    except Exception as error:  # whatever a damaged package raises
        return f"{type(error).__name__}: {error}"
    return ""


def _ffi() -> str | None:
    try:
        header = private_jax.ffi_header().read_text(encoding="utf-8")
        return str(ApiVersion.from_header(header, "XLA_FFI_API"))
    except Exception:  # a damaged jaxlib raises anything; _jaxlib_problem says what
        return None


def _stablehlo() -> list[str] | None:
    try:
        return [
            private_jax.resolve("jaxlib.mlir.dialects.stablehlo.get_current_version")(),
            private_jax.resolve("jaxlib.mlir.dialects.stablehlo.get_minimum_version")(),
        ]
    except Exception:  # likewise
        return None
