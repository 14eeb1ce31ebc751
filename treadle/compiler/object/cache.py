"""Compiled kernels, each compiled once: in memory, on disk, and only then by LLVM.

A kernel is known by a hash of its canonical text, the target, the compiler's own sources and LLVM's version; the hash
is also its symbol, so the same kernel has the same name in every program. What is missing is compiled together, a few
modules at a time, because a module costs a millisecond before its first function.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from treadle.compiler import knobs
from treadle.compiler.codegen.target import Target
from treadle.compiler.loops.ir import Kernel
from treadle.compiler.loops.text import kernel_text
from treadle.compiler.object import elf
from treadle.compiler.object.disk import Disk, shared_disk

_PER_MODULE = 16
_MEMORY_BYTES = 64 << 20
_HASH_DIGITS = 24
# What decides how a canonical text becomes code.
_SOURCES = ("artifact/abi.py", "codegen", "ir/types.py", "loops", "object")


@functools.cache
def build_id() -> str:
    """A hash of the sources that turn a kernel into code, and of LLVM's version."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.blake2b(metadata.version("llvmlite").encode(), digest_size=16)
    for name in _SOURCES:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0")
            digest.update(file.read_bytes())
    return digest.hexdigest()


def kernel_symbol(kernel: Kernel, target: Target) -> str:
    """The symbol under which a scheduled kernel is compiled, the same in every process."""
    digest = hashlib.blake2b(digest_size=_HASH_DIGITS // 2)
    for part in (build_id(), target.key, kernel_text(kernel)):
        digest.update(part.encode() + b"\0")
    return "k_" + digest.hexdigest()


@dataclasses.dataclass(slots=True)
class Statistics:
    """Where kernels came from, since the cache was made."""

    memory: int = 0
    disk: int = 0
    compiled: int = 0


class KernelCache:
    """The kernels of this process, backed by a folder unless `disk` is None."""

    def __init__(self, disk: Disk | None, memory_bytes: int = _MEMORY_BYTES):
        self.statistics = Statistics()
        self._disk = disk
        self._limit = memory_bytes
        self._lock = threading.Lock()
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def objects(self, kernels: Sequence[Kernel], target: Target) -> tuple[list[str], list[bytes]]:
        """Object code for scheduled kernels.

        Returns:
          The symbol of each kernel, and the distinct objects that together define them all. An object may also define
          kernels that were not asked for, and two objects the same kernel (then alike).
        """
        symbols = [kernel_symbol(kernel, target) for kernel in kernels]
        return symbols, self.link(dict(zip(symbols, kernels, strict=True)), target)

    def link(self, wanted: Mapping[str, Kernel], target: Target) -> list[bytes]:
        """The distinct objects that together define all of `wanted`: scheduled kernels by their symbols."""
        found: dict[str, bytes] = {}
        for symbol in wanted:
            if symbol not in found:
                code = self._look_up(symbol)
                if code is not None:
                    # Usually it is the object of several of them: then the others need no look of their own.
                    found.update(dict.fromkeys(elf.symbols(code)[0] & wanted.keys(), code))
        missing = {symbol: kernel for symbol, kernel in wanted.items() if symbol not in found}
        names = list(missing)
        for first in range(0, len(names), _PER_MODULE):
            group = names[first : first + _PER_MODULE]
            code = _compile_kernels({name: missing[name] for name in group}, target)
            self._keep(group, code)
            found.update(dict.fromkeys(group, code))
        return list(dict.fromkeys(found[symbol] for symbol in wanted))

    def module(self, text: str, target: Target, externals: Collection[str], clean_up: bool) -> bytes:
        """The object of a whole module (a program's main function), found again by its text."""
        digest = hashlib.blake2b(digest_size=_HASH_DIGITS // 2)
        for part in (build_id(), target.key, str(clean_up), text):
            digest.update(part.encode() + b"\0")
        symbol = "m_" + digest.hexdigest()
        code = self._look_up(symbol)
        if code is None:
            # Straight code runs once: better code would never win back the time that LLVM takes for it (a sixth).
            code = _compile_main(text, target, externals, clean_up)
            self._keep([symbol], code)
        return code

    def _look_up(self, symbol: str) -> bytes | None:
        with self._lock:
            code = self._memory.get(symbol)
            if code is not None:
                self._memory.move_to_end(symbol)
                self.statistics.memory += 1
                return code
        code = self._disk.read(symbol) if self._disk is not None else None
        if code is not None:
            with self._lock:
                self.statistics.disk += 1
                self._remember(symbol, code)
        return code

    def _keep(self, symbols: Sequence[str], code: bytes) -> None:
        with self._lock:
            self.statistics.compiled += len(symbols)
            for symbol in symbols:
                self._remember(symbol, code)
        if self._disk is not None:
            self._disk.write(symbols, code)

    def _remember(self, symbol: str, code: bytes) -> None:
        """Counts an object once for each of its symbols: an overestimate, and a cheap one."""
        if symbol not in self._memory:
            self._bytes += len(code)
        self._memory[symbol] = code
        while self._bytes > self._limit and len(self._memory) > 1:
            _, dropped = self._memory.popitem(last=False)
            self._bytes -= len(dropped)


def _compile_kernels(kernels: Mapping[str, Kernel], target: Target) -> bytes:
    # Imported late: a process that finds everything in the cache never loads LLVM, which takes
    # longer than most compiles.
    from treadle.compiler.codegen.kernel import emit_kernel
    from treadle.compiler.codegen.module import module_text
    from treadle.compiler.object.llvm import compile_module

    return compile_module(module_text([emit_kernel(kernel, name, target) for name, kernel in kernels.items()]), target)


def _compile_main(text: str, target: Target, externals: Collection[str], clean_up: bool) -> bytes:
    from treadle.compiler.object.llvm import DEFAULT_SPEED, compile_module

    return compile_module(text, target, externals, DEFAULT_SPEED if clean_up else 0, clean_up)


@functools.cache
def shared_cache() -> KernelCache:
    """The cache that compiles of this process use; TREADLE_CACHE=0 keeps it off the disk."""
    return KernelCache(shared_disk() if knobs.CACHE.get() else None)
