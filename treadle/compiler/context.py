"""What one compile knows besides its program: the request, and what the stages have made so far."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from treadle.compiler.frontend.options import CompileOptions


@dataclasses.dataclass(slots=True)
class CompileContext:
    """Passed to every stage.

    Attributes:
      program: the bytes that JAX sent.
      options_bytes: the compile options that it sent, serialized.
      options: the same, read.
      num_devices: addressable devices of the client.
      cpu_features: bits of the ABI's table: what the host has and code may use.
      num_threads: the runtime's thread budget.
      products: what each finished stage made, by its name.
      resources: closed when the compile ends, whichever way it does.
    """

    program: bytes
    options_bytes: bytes
    options: CompileOptions
    num_devices: int
    cpu_features: int
    num_threads: int
    products: dict[str, Any] = dataclasses.field(default_factory=dict)
    resources: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)
