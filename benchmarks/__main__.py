"""Measures Treadle beside jaxlib's CPU backend and prints a table of ratios.

python -m benchmarks [--only PATTERN] [--quick] [--json FILE]
bazel run -c opt //benchmarks
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import platform as machine
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jaxlib

from benchmarks import compile_latency, dispatch, measure, peak_memory, run_time

GROUPS: list[Callable[[measure.Settings], Iterator[measure.Row]]] = [
    compile_latency.rows,
    dispatch.rows,
    run_time.rows,
    peak_memory.rows,
]

# Two measurements of the same thing differ by this much.
NOTABLE = 1.05


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    model = machine.processor()
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    ours, theirs = measure.devices()
    return {
        "processor": model,
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": machine.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "under test": " ".join(ours.client.platform_version.split()),
        "beside it": " ".join(theirs.client.platform_version.split()),
    }


def line(row: measure.Row, name_width: int) -> str:
    """A row of the table."""
    ours, theirs = (f"{value:,.1f} {row.unit}" for value in (row.ours, row.theirs))
    return f"  {row.name:<{name_width}}  {ours:>16}  {theirs:>16}  {row.ratio:>6.2f}"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="only rows whose 'group: name' contains this")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, without the longest programs")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON ('-': standard output)")
    parser.add_argument("--platform", default="treadle", help="the platform under test (default: %(default)s)")
    parser.add_argument("--child-compile", help=argparse.SUPPRESS)
    parser.add_argument("--child-memory", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmarks; returns the exit code."""
    options = parse(arguments)
    measure.select_platform(options.platform)
    if options.child_compile:
        compile_latency.child(json.loads(options.child_compile))
        return 0
    if options.child_memory:
        peak_memory.child(options.child_memory)
        return 0
    about = environment()
    for key, value in about.items():
        print(f"{key}: {value}")
    settings = measure.Settings(options.only, options.quick, options.platform)
    rows: list[measure.Row] = []
    failures: list[str] = []
    width, group = 44, ""
    for measured in GROUPS:
        iterator = measured(settings)
        while True:
            try:
                row = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                # A group that fails must not hide the others; the exit code tells.
                failures.append(f"{measured.__module__}: {error}")
                print(f"  FAILED: {error}", file=sys.stderr)
                break
            if row.group != group:
                group = row.group
                print(f"\n{group:<{width + 2}}  {options.platform:>16}  {'jaxlib cpu':>16}   ratio")
            rows.append(row)
            print(line(row, width), flush=True)
    slower = sorted((row for row in rows if row.ratio > NOTABLE), key=lambda row: -row.ratio)
    print(f"\n{len(rows)} rows, {len(rows) - len(slower)} of them with a ratio of at most {NOTABLE}.")
    for row in slower:
        print(f"  slower: {row.ratio:6.2f}  {row.group}: {row.name}")
    if options.json:
        text = json.dumps(
            {"environment": about, "rows": [dataclasses.asdict(row) | {"ratio": row.ratio} for row in rows]}, indent=1
        )
        if options.json == "-":
            print(text)
        else:
            folder = os.environ.get("BUILD_WORKING_DIRECTORY") or os.getcwd()
            pathlib.Path(folder, options.json).write_text(text + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
