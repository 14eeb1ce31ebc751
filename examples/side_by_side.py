"""What the examples share: two devices in one process, timing, the closing table.

An example trains the same model from the same weights on the same batches twice: on the platform it was asked for
(Treadle) and on jaxlib's own CPU backend. Everything that is random comes from NumPy, so the two runs differ in
nothing but the backend.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

REFERENCE = "jaxlib cpu"


@dataclasses.dataclass
class Run:
    """The measurements of one training run on one device.

    Attributes:
      name: what the table calls the platform.
      device: where it ran.
      lower_seconds: tracing and lowering to StableHLO, which is JAX's own work.
      compile_seconds: from StableHLO to a loaded executable, which is the backend's work.
      step_seconds: every step's time, in order, each measured until its loss was ready.
      curves: named series to draw or report (loss, accuracy).
    """

    name: str
    device: jax.Device
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    step_seconds: list[float] = dataclasses.field(default_factory=list)
    curves: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    @property
    def step_median(self) -> float:
        """The median step in seconds, without the first, which touches its memory for the first time."""
        return statistics.median(self.step_seconds[1:] or self.step_seconds)

    def compile(self, function: Callable[..., Any], *args: Any, donate: Sequence[int] = ()) -> Any:
        """Compiles `function` for the device of `args` and adds the time to this run's."""
        start = time.perf_counter()
        lowered = jax.jit(function, donate_argnums=tuple(donate)).lower(*args)
        middle = time.perf_counter()
        compiled = lowered.compile()
        self.lower_seconds += middle - start
        self.compile_seconds += time.perf_counter() - middle
        return compiled

    def as_json(self) -> dict[str, Any]:
        """The run as plain data."""
        return {
            "platform": self.name,
            "device": str(self.device),
            "lower_seconds": self.lower_seconds,
            "compile_seconds": self.compile_seconds,
            "step_seconds_median": self.step_median,
            "steps": len(self.step_seconds),
            **self.curves,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that every example has."""
    parser.add_argument(
        "--platform",
        default="treadle",
        help="the JAX platform to train on; jaxlib's cpu runs beside it (default: %(default)s)",
    )
    parser.add_argument("--no-reference", action="store_true", help="skip the run on jaxlib's cpu")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="also write the results as JSON: to FILE, or to standard output if none is named",
    )


def open_platforms(platform: str, with_reference: bool) -> list[Run]:
    """The devices to train on, the one asked for first.

    JAX_PLATFORMS is left alone if the user set it. Exits with code 2 and JAX's own reason if `platform` is not there:
    an example that silently trained elsewhere would show nothing.
    """
    if not os.environ.get("JAX_PLATFORMS"):
        jax.config.update("jax_platforms", platform if platform == "cpu" else f"{platform},cpu")
    try:
        runs = [Run(platform, jax.local_devices(backend=platform)[0])]
    except RuntimeError as error:
        print(f"the platform {platform!r} is not available: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    if with_reference:
        runs.append(Run(REFERENCE, jax.local_devices(backend="cpu")[0]))
    print(f"jax {jax.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    for run in runs:
        version = " ".join(run.device.client.platform_version.split())
        print(f"  {run.name}: {run.device!r} ({version})")
    return runs


def print_table(runs: Sequence[Run], quality: Sequence[tuple[str, str]]) -> None:
    """Prints the runs beside each other, and the ratio of the first to the second.

    Args:
      runs: one or two runs.
      quality: rows (title, name of a curve) that show a curve's last value; they get no ratio.
    """
    header = ["", *(run.name for run in runs)]
    rows = [[title, *(f"{run.curves[curve][-1]:.4f}" for run in runs)] for title, curve in quality]
    timings: list[tuple[str, list[float], str]] = [
        ("compile", [run.compile_seconds for run in runs], "s"),
        ("step (median)", [run.step_median * 1e3 for run in runs], "ms"),
        ("all steps", [sum(run.step_seconds) for run in runs], "s"),
    ]
    for title, values, unit in timings:
        row = [title, *(f"{value:.3f} {unit}" for value in values)]
        if len(values) == 2:
            row.append(f"{values[0] / values[1]:.2f}")
        rows.append(row)
    if len(runs) == 2:
        header.append("ratio")
    widths = [max(len(row[i]) for row in [header, *rows] if i < len(row)) for i in range(len(header))]
    print()
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        print("  ".join(cells).rstrip())
    print()


def write_json(target: str | None, runs: Sequence[Run], **more: Any) -> None:
    """Writes the results where `--json` says, if it was given."""
    if target is None:
        return
    text = json.dumps({**more, "runs": [run.as_json() for run in runs]}, indent=2)
    if target == "-":
        print(text)
    else:
        path = output_path(target)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"results written to {path}")


def output_path(name: str) -> pathlib.Path:
    """Where a file named on the command line goes: under `bazel run` the caller's folder, not the runfiles."""
    base = os.environ.get("BUILD_WORKING_DIRECTORY") or os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.getcwd()
    path = pathlib.Path(base, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def adam(parameters: Any, state: tuple[Any, Any], gradients: Any, step: jax.Array, rate: float) -> tuple[Any, Any]:
    """One step of Adam (Kingma & Ba, 2015, algorithm 1) on a tree of parameters.

    Args:
      parameters: the tree.
      state: first and second moments, two trees like it.
      gradients: the gradients, likewise.
      step: the number of this step, from 1, as a float32 scalar.
      rate: the learning rate.

    Returns:
      The new parameters and the new state.
    """
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, state[0], gradients)
    second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, state[1], gradients)
    unbias1, unbias2 = 1 - beta1**step, 1 - beta2**step
    updated = jax.tree.map(
        lambda p, m, v: p - rate * (m / unbias1) / (jax.numpy.sqrt(v / unbias2) + epsilon), parameters, first, second
    )
    return updated, (first, second)
