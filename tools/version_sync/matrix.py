"""`matrix`: builds the wheel against each set of XLA headers and runs it on each supported jaxlib.

The pinned headers are built with, those of each --headers DIR, and with --variants two sets made from
the pinned ones (as of PJRT 0.112, and one version on with invented additions). Each wheel goes into an
environment for each jaxlib of versions.toml's [jax] matrix (or of --jaxlib), with the newest Python of
those that it is tested with or can be had for, and there it has to name the versions right, to find every private
name of JAX, to give the values that jaxlib's own backend gives, and to serialize through the compilation cache.
Environments are kept for the next run in --work (or the user's cache).

Exit codes: 0 every row works, 1 a wheel or an environment could not be made, 2 wrong usage, 4 a row fails,
5 a registry could not be asked.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from third_party.python import environment
from tools.version_sync import checkout, environments, header, registry, support_matrix, variants
from tools.version_sync.environments import MatrixError, Target
from tools.version_sync.preprocess import HeaderError
from tools.version_sync.registry import RegistryError

SCHEMA = "treadle-matrix-1"
WORKS, NOT_MADE, USAGE, FAILS, UNKNOWN = 0, 1, 2, 4, 5
OLDEST_HEADER = 112
PROGRAM_TIMEOUT = 900


@dataclass(frozen=True)
class Headers:
    """A set of headers to build against: a folder that holds xla/, and where it is from."""

    folder: Path
    pjrt_api: str
    ffi_api: str
    origin: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what `matrix` takes."""
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the answer as JSON too (schema " + SCHEMA + ")"
    )
    parser.add_argument("--headers", action="append", type=Path, default=[], metavar="DIR", help="holds xla/")
    parser.add_argument("--variants", action="store_true", help="also build against header sets made from the pin")
    parser.add_argument("--jaxlib", action="append", default=[], metavar="V", help="this jaxlib instead of the listed")
    parser.add_argument("--index", default="", metavar="URL", help="also the newest jaxlib of this index of nightlies")
    parser.add_argument("--quick", action="store_true", help="the first programs only, and no compilation cache")
    parser.add_argument("--fresh", action="store_true", help="make every environment anew")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where environments and wheels are kept")


def header_sets(options: argparse.Namespace, root: Path, work: Path) -> list[Headers]:
    """The pinned headers, the given ones, and the made ones.

    Raises:
        HeaderError: a given folder holds no headers, or too old ones.
        RegistryError: the pinned headers cannot be fetched.
    """
    pinned = checkout.named_headers(checkout.pins(root)["xla_headers"]["pjrt_api"], root)
    found = [(pinned, "pinned"), *((folder, "given") for folder in options.headers)]
    if options.variants:
        text = (pinned / "xla" / header.PJRT).read_text(encoding="utf-8")
        made = {"as of 0.112": variants.older(text, OLDEST_HEADER), "one version on": variants.newer(text)}
        for number, (what, content) in enumerate(made.items()):
            folder = variants.write(pinned, work / "variants" / str(number), content)
            found.append((folder, f"made from the pinned ones, {what}"))
    sets = []
    for folder, origin in found:
        read = header.read(folder)
        version = read.version("PJRT_API") or "?"
        if read.number("PJRT_API_MAJOR") != 0 or (read.number("PJRT_API_MINOR") or 0) < OLDEST_HEADER:
            raise HeaderError(f"{folder} is PJRT {version}; the plugin needs 0.{OLDEST_HEADER} or newer")
        sets.append(Headers(folder.resolve(), version, read.version("XLA_FFI_API") or "?", origin))
    return sets


def repository(headers: Headers, root: Path, into: Path) -> Path:
    """A Bazel repository of these headers: their folder itself if it is one, else a wrapper."""
    names = {path.name for path in headers.folder.iterdir()}
    if "WORKSPACE" in names and {"BUILD", "BUILD.bazel"} & names:
        return headers.folder
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    (into / "WORKSPACE").write_text('workspace(name = "xla_headers")\n')
    shutil.copyfile(root / "third_party" / "xla_headers" / "headers.BUILD", into / "BUILD")
    (into / "xla").symlink_to(headers.folder / "xla" if (headers.folder / "xla").is_dir() else headers.folder)
    return into


def build(headers: Headers, root: Path, work: Path) -> Path:
    """The wheel built against these headers.

    Raises:
        MatrixError: Bazel fails; the message has the compiler's first errors.
    """
    command = [str(root / "bazelw"), "build", "--color=no", "--curses=no", "--noshow_progress", "//:wheel"]
    key = f"{headers.pjrt_api}-{headers.origin.partition(' ')[0]}"
    if headers.origin != "pinned":
        wrapper = repository(headers, root, work / "repositories" / key)
        command.append(f"--override_repository=xla_headers={wrapper}")
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error:" in line or line.startswith("ERROR")]
        raise MatrixError(f"building against PJRT {headers.pjrt_api} failed: {' | '.join(errors[:4])}")
    version = checkout.pins(root)["treadle"]["version"]
    (wheel,) = (root / "bazel-bin").glob(f"treadle-{version}-*.whl")
    kept = work / "wheels" / key / wheel.name
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.unlink(missing_ok=True)
    shutil.copyfile(wheel, kept)
    return kept


def _answer(command: Sequence[str | Path], folder: Path, platforms: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object that a program prints last, and what it said on stderr."""
    variables = {"JAX_PLATFORMS": platforms, "TREADLE_CACHE_DIR": str(folder / "treadle-cache")}
    try:
        done = subprocess.run(
            command,
            env=environments.clean(variables),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PROGRAM_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return None, f"no end after {PROGRAM_TIMEOUT} s"
    start = done.stdout.find("{")
    try:
        answer = json.loads(done.stdout[start:]) if start >= 0 else None
    except json.JSONDecodeError:
        answer = None
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return answer, "" if answer else f"exit code {done.returncode}: {' | '.join(said[-2:])}"


def try_out(python: Path, quick: bool) -> dict[str, Any]:
    """Runs everything in an environment that holds the wheel; gives what was seen.

    `problems` lists in words what does not work: an empty list is a row that works.
    """
    problems: list[str] = []
    smoke = Path(__file__).resolve().with_name("smoke.py")
    seen: dict[str, Any] = {"pjrt": None, "pjrt_source": None, "verdict": None, "private": None, "programs": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        versions, said = _answer([python, "-m", "treadle", "versions", "--json"], folder, "cpu")
        if versions is None:
            problems.append(f"treadle versions: {said}")
        else:
            seen["pjrt"], seen["pjrt_source"] = versions["jaxlib"]["pjrt"], versions["jaxlib"]["pjrt_source"]
            seen["plugin_pjrt"] = versions["plugin"]["pjrt"] if versions["plugin"] else None
            seen["plugin_slots"] = versions["plugin"]["num_slots"] if versions["plugin"] else None
            seen["verdict"] = versions["verdict"]
            if seen["verdict"] not in ("compatible", "skew"):
                problems += [f"{found['text']} ({found['verdict']})" for found in versions["findings"]]
        private, said = _answer([python, "-m", "treadle", "versions", "--private", "--json"], folder, "cpu")
        if private is None:
            problems.append(f"private names: {said}")
        else:
            seen["private"] = {"checked": private["checked"], "broken": private["broken"]}
            problems += [f"private: {broken['name']}: {broken['problem']}" for broken in private["broken"]]
        options = ["--quick"] if quick else []
        programs, said = _answer([python, "-I", smoke, *options], folder, "treadle,cpu")
        if programs is None:
            problems.append(f"programs: {said}")
        else:
            seen["programs"] = programs["programs"]
            problems += [f"{entry['name']}: {entry['problem']}" for entry in programs["programs"] if not entry["ok"]]
        if not quick and programs is not None:
            problems += _through_the_cache(python, smoke, folder, seen)
    return seen | {"problems": problems}


def _through_the_cache(python: Path, smoke: Path, folder: Path, seen: dict[str, Any]) -> list[str]:
    """Two processes with one compilation cache: the second has to load what the first one serialized."""
    command: list[str | Path] = [python, "-I", smoke, "--quick", "--cache", folder / "jax-cache"]
    first, said = _answer(command, folder, "treadle,cpu")
    second, said_then = _answer(command, folder, "treadle,cpu") if first else (None, "")
    if first is None or second is None:
        return [f"compilation cache: {said or said_then}"]
    seen["cache"] = {"first": first["cache"], "second": second["cache"]}
    if first["cache"]["misses"] == 0 or second["cache"]["misses"] != 0 or second["cache"]["hits"] == 0:
        return [f"compilation cache: the second process did not load what the first wrote: {seen['cache']}"]
    return [
        f"compilation cache: {entry['name']}: {entry['problem']}" for entry in second["programs"] if not entry["ok"]
    ]


def targets(options: argparse.Namespace, pins: Mapping[str, Any]) -> tuple[list[Target | str], str]:
    """What to run on, or for each that cannot be had why not; and a line about nightlies."""
    found: list[Target | str] = []
    pythons = pins["python"]["versions"]
    tested = {row["jaxlib"]: row["python"] for row in pins["jax"]["tested"]}
    for jaxlib in options.jaxlib or pins["jax"]["matrix"]:
        try:
            found.append(environments.fitting(jaxlib, tested.get(jaxlib, pythons)))
        except (MatrixError, RegistryError) as error:
            found.append(f"jaxlib {jaxlib}: {error}")
    if not options.index:
        return found, "not run: no index of nightlies was given (--index)"
    try:
        newest = registry.versions("jaxlib", pythons[-1], pre=True, index=options.index)[0]
        nightly = environments.fitting(newest, pythons, options.index)
        jax = registry.versions("jax", nightly.python, pre=True, index=options.index)[0]
    except (MatrixError, RegistryError) as error:
        return found, f"not run: {error}"
    found.append(Target(nightly.jaxlib, jax, nightly.python, nightly.interpreter, options.index))
    return found, f"jaxlib {newest}, jax {jax}"


def run(options: argparse.Namespace) -> int:
    """Builds, installs, runs and prints; gives the exit code."""
    root = checkout.root()
    pins = checkout.pins(root)
    work = (options.work or environment.default_cache().parent / "matrix").resolve()
    if options.json and not options.json.absolute().parent.is_dir():
        checkout.say(f"version_sync matrix: --json {options.json}: there is no folder {options.json.absolute().parent}")
        return USAGE
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        checkout.say(f"version_sync matrix: --work {work} cannot be made: {error.strerror}")
        return USAGE
    try:
        sets = header_sets(options, root, work)
    except (HeaderError, RegistryError) as error:
        checkout.say(f"version_sync matrix: {error}")
        return UNKNOWN if isinstance(error, RegistryError) else NOT_MADE
    places, nightly = targets(options, pins)
    missing = [place for place in places if isinstance(place, str)]
    rows: list[dict[str, Any]] = []
    for headers in sets:
        checkout.say(f"building against PJRT {headers.pjrt_api} ({headers.origin})")
        begun = time.monotonic()
        try:
            wheel = build(headers, root, work)
        except MatrixError as error:
            checkout.say(f"  {error}")
            missing.append(str(error))
            continue
        checkout.say(f"  {wheel.name}, {time.monotonic() - begun:.0f} s")
        rows += [_row(headers, place, wheel, pins, work, options) for place in places if isinstance(place, Target)]
    answer = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "treadle": pins["treadle"]["version"],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "quick": options.quick,
        "nightly": nightly,
        "not_run": missing,
        "rows": rows,
    }
    if options.json:
        options.json.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
    print(support_matrix.to_text(answer))
    failing = any(row["problems"] for row in rows)
    return FAILS if failing else NOT_MADE if missing or not rows else WORKS


def _row(
    headers: Headers, place: Target, wheel: Path, pins: Mapping[str, Any], work: Path, options: argparse.Namespace
) -> dict[str, Any]:
    checkout.say(f"  jaxlib {place.jaxlib} on Python {place.python}")
    begun = time.monotonic()
    row: dict[str, Any] = {
        "header": {"pjrt_api": headers.pjrt_api, "ffi_api": headers.ffi_api, "origin": headers.origin},
        "jaxlib": place.jaxlib,
        "jax": place.jax,
        "python": place.python,
        "llvmlite": pins["llvmlite"]["version"],
    }
    try:
        folder = work / "environments" / f"jaxlib{place.jaxlib}-py{place.python}"
        python = environments.make(place, pins["llvmlite"]["version"], folder, options.fresh)
        unmet = environments.install(python, wheel)
        row |= try_out(python, options.quick)
        if unmet:
            row["problems"].append(f"pip check: {unmet}")
    except MatrixError as error:
        row |= {"problems": [str(error)], "programs": [], "pjrt": None, "verdict": None, "private": None}
    row["seconds"] = round(time.monotonic() - begun)
    checkout.say(f"    {'works' if not row['problems'] else 'FAILS: ' + row['problems'][0]}, {row['seconds']} s")
    return row
