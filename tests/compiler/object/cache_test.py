"""The kernel cache: hits, misses, damage, limits, foreign folders, many processes."""

import multiprocessing
import os
import time

import numpy as np
import pytest

from tests.compiler.codegen.cases import elementwise_kernel
from tests.compiler.codegen.harness import HOST, SSE, link
from treadle.compiler.ir import types as t
from treadle.compiler.loops.schedule import schedule
from treadle.compiler.object import elf
from treadle.compiler.object.cache import KernelCache, kernel_symbol
from treadle.compiler.object.disk import Disk, default_folder


def kernels(count, name="add"):
    return [schedule(elementwise_kernel(name, t.F32, (t.F32, t.F32), 100 + i), HOST) for i in range(count)]


def fresh(tmp_path, **arguments):
    return KernelCache(Disk(tmp_path / "cache", **arguments))


def test_one_kernel_has_one_symbol():
    (a,), (b,) = kernels(1), kernels(1)
    assert a is not b
    assert kernel_symbol(a, HOST) == kernel_symbol(b, HOST)
    assert kernel_symbol(a, HOST) != kernel_symbol(a, SSE)
    assert kernel_symbol(a, HOST) != kernel_symbol(kernels(2)[1], HOST)


def test_compiles_once(tmp_path):
    cache = fresh(tmp_path)
    wanted = kernels(20)
    symbols, objects = cache.objects(wanted + wanted[:3], HOST)
    assert symbols[:3] == symbols[20:]
    assert cache.statistics.compiled == 20
    assert len(objects) == 2
    assert set(symbols) == {name for code in objects for name in elf.symbols(code)[0]}
    assert cache.objects(wanted, HOST) == (symbols[:20], objects)
    assert cache.statistics.compiled == 20
    link(objects[0])


def test_survives_the_process(tmp_path):
    symbols, objects = fresh(tmp_path).objects(kernels(5), HOST)
    second = fresh(tmp_path)
    assert second.objects(kernels(5), HOST) == (symbols, objects)
    assert second.statistics.compiled == 0
    # Any one of them is found alone, too.
    third = fresh(tmp_path)
    assert third.objects(kernels(5)[3:4], HOST) == (symbols[3:4], objects)
    assert third.statistics.compiled == 0


def test_without_a_disk():
    cache = KernelCache(None)
    _, objects = cache.objects(kernels(2), HOST)
    assert cache.objects(kernels(2), HOST)[1] == objects
    assert cache.statistics.compiled == 2


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "foreign"])
def test_a_damaged_file_is_dropped_and_made_again(tmp_path, damage):
    (symbol,), objects = fresh(tmp_path).objects(kernels(1), HOST)
    path = tmp_path / "cache" / "kernels" / symbol
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    path.write_bytes({"flip": content, "truncate": content[:-5], "empty": b"", "foreign": b"x" * 5000}[damage])
    cache = fresh(tmp_path)
    assert cache.objects(kernels(1), HOST) == ([symbol], objects)
    assert cache.statistics.compiled == 1
    assert fresh(tmp_path).objects(kernels(1), HOST)[1] == objects


def test_a_folder_that_others_can_write_is_not_used(tmp_path):
    folder = tmp_path / "cache"
    Disk(folder)
    os.chmod(folder, 0o777)
    disk = Disk(folder)
    assert "can be written by others" in disk.problem
    disk.write(["k_1"], b"code")
    assert disk.read("k_1") is None
    assert not (folder / "kernels" / "k_1").exists()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    disk = Disk(tmp_path / "file" / "cache")
    assert disk.problem
    assert KernelCache(disk).objects(kernels(1), HOST)[1]


def test_folder_is_private(tmp_path):
    Disk(tmp_path / "cache")
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_the_limit_drops_what_was_not_used_for_longest(tmp_path):
    disk = Disk(tmp_path / "cache", limit=10_000)
    now = time.time()
    for i in range(10):
        disk.write([f"k_{i}", f"k_{i}_more"], bytes([i]) * 2000)
        for name in (f"k_{i}", f"k_{i}_more"):
            os.utime(disk.folder / name, (now - 1000 * (10 - i),) * 2)
    disk.sweep()
    left = sorted(path.name for path in disk.folder.iterdir())
    assert "k_9" in left
    assert "k_9_more" in left
    assert "k_0" not in left
    assert sum(path.stat().st_size for path in disk.folder.iterdir() if "more" not in path.name) <= 10_000


def test_reading_renews(tmp_path):
    disk = Disk(tmp_path / "cache")
    disk.write(["k_1"], b"code")
    old = time.time() - 100_000
    os.utime(disk.folder / "k_1", (old, old))
    assert disk.read("k_1") == b"code"
    assert (disk.folder / "k_1").stat().st_mtime > old + 1000


def _work(folder, seed, results):
    order = np.random.default_rng(seed).permutation(12)
    cache = KernelCache(Disk(folder))
    every = kernels(12)
    for start in range(0, 12, 4):
        cache.objects([every[i] for i in order[start : start + 4]], HOST)
    symbols, objects = cache.objects(every, HOST)
    results.put(set(symbols) <= {name for code in objects for name in elf.symbols(code)[0]})


def test_many_processes(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_work, args=(tmp_path / "cache", seed, results)) for seed in range(3)]
    for process in processes:
        process.start()
    assert [results.get(timeout=120) for _ in processes] == [True] * 3
    for process in processes:
        process.join()
    assert not [path for path in (tmp_path / "cache" / "kernels").iterdir() if path.name.startswith(".new-")]
    again = fresh(tmp_path)
    again.objects(kernels(12), HOST)
    assert again.statistics.compiled == 0


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"
    monkeypatch.delenv("TREADLE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "treadle"
