"""Collects the versions of everything that must go together, and judges them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from treadle import plugin as registration
from treadle.versions import library, measure, rules
from treadle.versions.api_version import ApiVersion
from treadle.versions.rules import Finding, Verdict

_PJRT_HEADER = Path("xla/pjrt/c/pjrt_c_api.h")
_FFI_HEADER = Path("xla/ffi/api/c_api.h")


@dataclass(frozen=True)
class Headers:
    """The versions that a folder of XLA's headers says."""

    folder: str
    pjrt: ApiVersion
    ffi: ApiVersion


@dataclass(frozen=True)
class Report:
    """The facts, and what follows from them. `plugin_problem` says why there is no plugin."""

    treadle: str
    environment: measure.Environment
    framework: measure.Framework
    plugin: library.Plugin | None
    plugin_problem: str
    headers: Headers | None
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        found = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in rules.WORST_FIRST if verdict in found), Verdict.COMPATIBLE)


def read_headers(folder: Path) -> Headers:
    """Reads the versions out of XLA's headers.

    Raises:
      OSError: a header is missing.
      ValueError: one does not say its version.
    """
    return Headers(
        str(folder),
        ApiVersion.from_header((folder / _PJRT_HEADER).read_text(encoding="utf-8"), "PJRT_API"),
        ApiVersion.from_header((folder / _FFI_HEADER).read_text(encoding="utf-8"), "XLA_FFI_API"),
    )


def check(
    plugin: Path | None = None, python: str = sys.executable, headers: Headers | None = None, treadle: str = ""
) -> Report:
    """Collects and judges.

    Args:
      plugin: the plugin's file; None for the one that JAX would load.
      python: the interpreter whose packages are meant.
      headers: what the plugin should have been built with, where that is known.
      treadle: Treadle's version, for the report.

    Raises:
      children.ChildError: the interpreter does not answer.
    """
    environment = measure.environment(python)
    framework = measure.framework(environment.jaxlib, python)
    loaded, problem = None, ""
    findings = []
    try:
        loaded = library.read(plugin or registration.library_path())
    except FileNotFoundError as error:
        problem = str(error)
        findings.append(Finding(Verdict.UNKNOWN, f"no plugin: {problem}", rules.BUILD))
    except library.NoPluginError as error:
        problem = str(error)
        findings.append(Finding(Verdict.INCOMPATIBLE, f"no plugin: {problem}", rules.BUILD))
    if loaded is not None:
        findings += rules.plugin_pairing(loaded, environment, framework, headers.pjrt if headers else None)
    findings += rules.packages(environment)
    return Report(treadle, environment, framework, loaded, problem, headers, tuple(findings))
