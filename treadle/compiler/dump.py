"""A folder per compile with everything that happened in it (TREADLE_DUMP)."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from treadle.compiler import knobs
from treadle.compiler.context import CompileContext
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.stages import STAGES, Stage

_counter = itertools.count(1)


class DumpFolder:
    """Files of one compile: `request.json`, `program.mlir[bc]`, `options.pb`, `N-stage.suffix`, `error.txt`."""

    def __init__(self, root: Path, context: CompileContext):
        """Makes the folder and writes the request, so that even a crash leaves a reproducer.

        Raises:
          CompileError: FAILED_PRECONDITION if the folder cannot be written.
        """
        self._path = root / f"{os.getpid()}-{next(_counter):04d}"
        try:
            self._path.mkdir(parents=True)
        except OSError as e:
            raise CompileError(
                StatusCode.FAILED_PRECONDITION,
                f"{knobs.DUMP.name} asks to write to {str(root)!r}, which cannot be done: {e.strerror}. Name a folder "
                "that can be written to, or unset it.",
            ) from None
        suffix = "mlirbc" if context.program.startswith(b"ML\xefR") else "mlir"
        request = {
            "num_devices": context.num_devices,
            "cpu_features": context.cpu_features,
            "num_threads": context.num_threads,
            "python": sys.version,
            "again": f"python -m treadle.compiler program.{suffix} --options options.pb "
            f"--num-devices {context.num_devices} --num-threads {context.num_threads} "
            f"--cpu-features {context.cpu_features:#x}",
        }
        self.write(f"program.{suffix}", context.program)
        self.write("options.pb", context.options_bytes)
        self.write("request.json", json.dumps(request, indent=2).encode())

    @classmethod
    def open(cls, context: CompileContext) -> DumpFolder | None:
        """The folder of this compile, or None if no dumps are wanted."""
        root = knobs.DUMP.get()
        return None if root is None else cls(root, context)

    def name_after(self, program: str) -> None:
        """Adds the program's name, now that it is known, to the folder's."""
        safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", program)[:60]
        target = self._path.with_name(f"{self._path.name}-{safe}")
        try:
            self._path.rename(target)
        except OSError:
            return  # the number alone is a name, too
        self._path = target

    def stage(self, stage: Stage, product: Any) -> None:
        """Writes a stage's product; one that cannot be printed is skipped."""
        name = f"{STAGES.index(stage) + 1}-{stage.name}.{stage.suffix}"
        try:
            content = stage.render(product)
        except Exception as e:
            content = f"This product of {stage.name} cannot be printed: {type(e).__name__}: {e}\n".encode()
        self.write(name, content)

    def write(self, name: str, content: bytes) -> None:
        """Writes one file; what cannot be written is skipped, for the compile matters more."""
        try:
            (self._path / name).write_bytes(content)
        except OSError as e:
            sys.stderr.write(f"treadle: cannot dump {name}: {e}\n")
