"""Compiles a program on the command line, up to any stage.

    python -m treadle.compiler FILE.mlir --to STAGE
    python -m treadle.compiler FILE.mlirbc --time --repeat 10

Exit codes: 0 it worked, 1 the program was refused, 2 wrong usage, 3 Treadle failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from treadle.compiler import driver, knobs
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.host import host_cpu_features
from treadle.compiler.stages import BY_NAME, STAGES, Stage

REFUSED, USAGE, FAILED = 1, 2, 3

# Suffixes of products that are no text.
_BINARY = ("o", "bin")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.stages:
        print("\n".join(f"{stage.name:10} {stage.sentence}" for stage in STAGES))
        return 0
    if options.knobs:
        print(knobs.table())
        return 0
    if options.file is None:
        parser.error("the following arguments are required: FILE")
    try:
        program = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        compile_options = options.options.read_bytes() if options.options else b""
    except OSError as e:
        print(f"{parser.prog}: {e}", file=sys.stderr)
        return USAGE
    return _compile(program, compile_options, options)


def _compile(program: bytes, compile_options: bytes, options: argparse.Namespace) -> int:
    recorder = _Recorder(options.to)
    try:
        for _ in range(options.repeat):
            context = driver.make_context(
                program, driver.FORMAT, compile_options, options.num_devices, options.cpu_features, options.num_threads
            )
            driver.run(context, options.to, recorder)
    except CompileError as e:
        if options.json:
            print(json.dumps({"error": e.code.name, "message": e.message}))
        else:
            print(f"{e.code.name}: {e.message}", file=sys.stderr)
        return FAILED if e.code is StatusCode.INTERNAL else REFUSED
    if options.json:
        times = {name: [round(t * 1e3, 4) for t in seconds] for name, seconds in recorder.seconds.items()}
        text = recorder.rendered.decode("utf-8", "replace") if BY_NAME[options.to].suffix not in _BINARY else None
        print(
            json.dumps({"stage": options.to, "bytes": len(recorder.rendered), "milliseconds": times, "product": text})
        )
    elif options.time:
        print(recorder.table())
    elif options.output:
        options.output.write_bytes(recorder.rendered)
    elif BY_NAME[options.to].suffix in _BINARY and sys.stdout.isatty():
        print(f"{len(recorder.rendered)} bytes; --output FILE writes them to a file")
    else:
        sys.stdout.buffer.write(recorder.rendered)
        sys.stdout.buffer.flush()
    return 0


class _Recorder:
    """Keeps every stage's times, and the last stage's product as bytes."""

    def __init__(self, last: str):
        self.seconds: dict[str, list[float]] = {}
        self.rendered = b""
        self._last = last

    def __call__(self, stage: Stage, seconds: float, product: Any) -> None:
        self.seconds.setdefault(stage.name, []).append(seconds)
        if stage.name == self._last:
            self.rendered = stage.render(product)

    def table(self) -> str:
        lines = [f"{'stage':10} {'first':>9} {'best':>9} {'median':>9}   ms"]
        rows = [*self.seconds.items(), ("total", [sum(t) for t in zip(*self.seconds.values(), strict=True)])]
        for name, seconds in rows:
            ordered = sorted(seconds)
            cells = (seconds[0], ordered[0], ordered[len(ordered) // 2])
            lines.append(f"{name:10} " + " ".join(f"{t * 1e3:9.2f}" for t in cells))
        return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m treadle.compiler",
        description="Compiles a StableHLO program and prints the product of a stage.",
        epilog="Exit codes: 0 it worked, 1 the program was refused, 2 wrong usage, 3 Treadle failed.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="MLIR text, bytecode or portable artifact; - is stdin")
    parser.add_argument("--to", metavar="STAGE", choices=list(BY_NAME), default=STAGES[-1].name, help="the last stage")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write the product (default: stdout)")
    parser.add_argument("--json", action="store_true", help="print product, times and errors as JSON")
    parser.add_argument("--time", action="store_true", help="print the time of every stage, not the product")
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="compile N times")
    parser.add_argument("--options", type=Path, metavar="FILE", help="a serialized xla.CompileOptionsProto")
    parser.add_argument("--num-devices", type=_positive, default=1, metavar="N")
    parser.add_argument("--num-threads", type=_positive, default=1, metavar="N")
    parser.add_argument(
        "--cpu-features", type=lambda text: int(text, 0), default=host_cpu_features(), metavar="BITS",
        help="what the code may use (default: what this CPU has)",
    )  # fmt: skip
    parser.add_argument("--stages", action="store_true", help="list the stages and exit")
    parser.add_argument("--knobs", action="store_true", help="list the environment variables and exit")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
