"""A child process that compiles bad programs, so that one that ends the process only ends this one.

    python replay.py STAGE FILE...            compiles files
    python replay.py STAGE FILE --seeds A B   compiles mutants A..B-1 of one file

Before each program it prints its name, after it the status code; a parent that sees a name without
a code knows what the process died of.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tests.bad_input.mutants import mutate
from treadle.compiler import driver
from treadle.compiler.errors import CompileError


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stage")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seeds", nargs=2, type=int)
    arguments = parser.parse_args()
    for name, program in _programs(arguments.files, arguments.seeds):
        print(name, end=" ", flush=True)
        print(compile_to(program, arguments.stage), flush=True)


def _programs(files: list[Path], seeds: list[int] | None) -> Iterator[tuple[str, bytes]]:
    if seeds is None:
        yield from ((path.name, path.read_bytes()) for path in files)
        return
    program = files[0].read_bytes()
    for seed in range(*seeds):
        yield f"{files[0].name}:{seed}", mutate(program, seed)


def compile_to(program: bytes, stage: str) -> str:
    """OK, or the code of the error."""
    try:
        context = driver.make_context(program, driver.FORMAT, b"", 1, 0, 1)
        driver.run(context, stage)
    except CompileError as e:
        str(e).encode()  # the text must be valid
        return e.code.name if e.code.name != "INTERNAL" else f"INTERNAL {e.message!r}"
    return "OK"


if __name__ == "__main__":
    main()
