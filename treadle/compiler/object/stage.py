"""The `object` stage: machine code of the main function and of every kernel, out of the cache where it has them."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.codegen.program import ProgramCode
from treadle.compiler.context import CompileContext
from treadle.compiler.object.cache import shared_cache


def compile_objects(code: ProgramCode, _context: CompileContext) -> list[bytes]:
    """Relocatable objects that together define the entry symbol and every kernel."""
    cache = shared_cache()
    main = cache.module(code.main, code.target, code.kernels.keys(), clean_up=code.has_loops)
    return [main, *cache.link(code.kernels, code.target)]


def dump(objects: Sequence[bytes]) -> bytes:
    """The main function's object."""
    return objects[0]
