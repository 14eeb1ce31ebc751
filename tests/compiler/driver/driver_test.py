"""The driver: stages in order, one clear error, dumps, logs, checks."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.frontend.programs import artifact, context, imported, serialized
from treadle.compiler import check, collector, driver, knobs, stages
from treadle.compiler.errors import CompileError, IrError, StatusCode, UnsupportedError, unsupported_message
from treadle.compiler.ir.core import Location, Op
from treadle.compiler.ir.types import F32, TensorType
from treadle.compiler.stages import BY_NAME, STAGES, Stage

X = np.ones(4, np.float32)


@pytest.fixture(scope="module")
def add() -> bytes:
    return artifact(lambda x: x + 1, X)


def request(program: bytes, fmt: str = "mlir", options: bytes = b"") -> bytes:
    return driver.compile_request(program, fmt, options, 1, 0, 1)


def fails(program: bytes, **kwargs) -> CompileError:
    with pytest.raises(CompileError) as caught:
        request(program, **kwargs)
    return caught.value


# ---- the seam


def test_a_compile_gives_an_artifact(add):
    result = request(add, options=serialized(devices=[[0]]))
    assert result.startswith(b"TREADLE\n")


def test_unknown_format(add):
    error = fails(add, fmt="hlo_with_config")
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "'hlo_with_config'" in error.message


def test_bad_options(add):
    error = fails(add, options=b"\xff\xfe\xfd")
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "CompileOptionsProto" in error.message


def test_several_devices_are_unimplemented(add):
    error = fails(add, options=serialized(1, 2, [[0, 1]]))
    assert error.code is StatusCode.UNIMPLEMENTED
    assert "1 replicas and 2 partitions" in error.message


def test_garbage(add):
    for program in (b"", b"hello", b"ML\xefRgarbage", add[: len(add) // 2]):
        assert fails(program).code is StatusCode.INVALID_ARGUMENT


# ---- errors


@pytest.fixture
def failing_stage(monkeypatch):
    """Replaces the function of a stage by one that raises."""

    def replace(name: str, error: BaseException):
        def fail(op: Op, _: object) -> None:
            raise error

        def function(product: object, ctx: object) -> None:
            op = Op("tanh", [], [TensorType(F32, ())], loc=Location("jit(f)/tanh", "user.py", 7))
            fail(op, ctx)

        module = types.ModuleType("failing_stage")
        vars(module)["function"] = function
        monkeypatch.setitem(sys.modules, "failing_stage", module)
        monkeypatch.setenv("TREADLE_CACHE", "0")  # an artifact kept on disk needs no stages
        original = BY_NAME[name]
        broken = Stage(name, original.sentence, "failing_stage:function", original.dump, original.suffix)
        monkeypatch.setattr(driver, "STAGES", tuple(broken if s is original else s for s in STAGES))
        stages._load.cache_clear()

    yield replace
    stages._load.cache_clear()


def test_a_bug_names_stage_op_and_place(failing_stage, add):
    failing_stage("fuse", KeyError("x"))
    error = fails(add)
    assert error.code is StatusCode.INTERNAL
    for part in ("stage 'fuse'", "KeyError: 'x'", "tanh (jit(f)/tanh at user.py:7)", "TREADLE_DUMP"):
        assert part in error.message


@pytest.mark.parametrize(
    ("stage", "raised", "code"),
    [
        ("plan", MemoryError(), StatusCode.RESOURCE_EXHAUSTED),
        ("plan", RecursionError(), StatusCode.RESOURCE_EXHAUSTED),
        ("plan", KeyboardInterrupt(), StatusCode.CANCELLED),
        ("plan", IrError("x"), StatusCode.INTERNAL),
        ("convert", IrError("x"), StatusCode.INVALID_ARGUMENT),
        ("plan", CompileError(StatusCode.DATA_LOSS, "x"), StatusCode.DATA_LOSS),
    ],
)
def test_every_exception_becomes_a_compile_error(failing_stage, add, stage, raised, code):
    failing_stage(stage, raised)
    assert fails(add).code is code


def test_unsupported_message_groups_and_counts():
    places = [Location(f"f{i}", "a.py", i) for i in range(1, 6)]
    text = unsupported_message([("the op a", p) for p in places] + [("the op b", places[0])])
    assert "2 things" in text
    assert "the op a: f1 at a.py:1; f2 at a.py:2; f3 at a.py:3 and 2 more places" in text
    assert "the op b: f1 at a.py:1" in text
    assert UnsupportedError([("x", places[0])]).code is StatusCode.UNIMPLEMENTED


# ---- stages


def test_stages_stop_where_told_and_render(add):
    seen = []

    def observe(stage, seconds, product):
        seen.append((stage.name, seconds >= 0, len(stage.render(product)) > 0))

    driver.run(context(add), "fuse", observe)
    assert seen == [(name, True, True) for name in ("import", "partition", "convert", "optimise", "fuse")]


def test_importing_the_driver_loads_neither_mlir_nor_llvm():
    code = (
        "import sys, treadle.compiler.driver\n"
        "print([m for m in sys.modules if m.startswith(('jaxlib', 'llvmlite', 'jax'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- dumps and logs


def test_dump_has_every_stage_and_a_reproducer(add, tmp_path, monkeypatch):
    monkeypatch.setenv(knobs.DUMP.name, str(tmp_path / "dumps"))
    request(add)
    (folder,) = (tmp_path / "dumps").iterdir()
    assert "jit" in folder.name
    assert (folder / "program.mlirbc").read_bytes() == add
    expected = {f"{i + 1}-{stage.name}.{stage.suffix}" for i, stage in enumerate(STAGES)}
    assert expected <= {f.name for f in folder.iterdir()}
    assert "stablehlo.add" in (folder / "1-import.mlir").read_text()
    assert "add %arg0" in (folder / "3-convert.txt").read_text()
    assert "program.mlirbc" in json.loads((folder / "request.json").read_text())["again"]


def test_dump_of_a_failure_has_input_and_error(tmp_path, monkeypatch):
    monkeypatch.setenv(knobs.DUMP.name, str(tmp_path))
    program = artifact(jnp.sort, X)
    fails(program)
    fails(b"module {")
    first, second = sorted(tmp_path.iterdir())
    assert (first / "program.mlirbc").read_bytes() == program
    error = (first / "error.txt").read_text()
    assert "stage: convert" in error
    assert "UNIMPLEMENTED" in error
    assert "Traceback" in error
    assert (second / "program.mlir").read_bytes() == b"module {"
    assert "stage: import" in (second / "error.txt").read_text()


def test_dump_into_an_impossible_folder(add, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(knobs.DUMP.name, str(tmp_path / "file"))
    error = fails(add)
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert knobs.DUMP.name in error.message


def test_debug_levels(add, capfd, monkeypatch):
    lines = []
    for level in range(4):
        monkeypatch.setenv(knobs.DEBUG.name, str(level))
        driver.run(context(add), "convert")
        lines.append(capfd.readouterr().err)
    assert lines[0] == ""
    assert lines[1].count("\n") == 1
    assert "convert: " in lines[2]
    assert "convert: " in lines[3]
    assert " ops" in lines[3]


def test_collector_rests_only_during_a_compile(add):
    assert gc.isenabled()
    states = []
    driver.run(context(add), "convert", lambda *_: states.append(gc.isenabled()))
    assert states == [False] * 3
    assert gc.isenabled()
    gc.disable()
    try:
        with collector.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


# ---- checks


def test_check_accepts_the_passes(add, monkeypatch):
    monkeypatch.setenv(knobs.CHECK.name, "1")
    driver.run(context(add), "optimise")


def test_check_names_the_pass_that_changes_a_result(add):
    program = imported(add)
    checker = check.Checker(program)
    checker.after("innocent", program)
    (addition,) = [op for op in program.entry.ops if op.name == "add"]
    addition.name = "subtract"
    with pytest.raises(
        CompileError, match="The pass 'guilty' changed what the program computes: output 0 differs in 4"
    ):
        checker.after("guilty", program)


def test_check_names_the_pass_that_breaks_the_ir(add):
    program = imported(add)
    checker = check.Checker(program)
    program.entry.ops.reverse()
    with pytest.raises(CompileError, match="The pass 'guilty' made a program that breaks the IR's rules"):
        checker.after("guilty", program)


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True),
        ([1.0], [1.00001], True),
        ([1.0], [1.01], False),
        ([np.inf], [-np.inf], False),
        ([np.nan], [1.0], False),
        ([1.0, 2.0], [1.0], False),
    ],
)
def test_compare(want, got, same):
    assert (check.compare([np.array(want, np.float32)], [np.array(got, np.float32)]) == "") is same


# ---- knobs


def test_knobs_are_typed(monkeypatch):
    monkeypatch.delenv(knobs.DEBUG.name, raising=False)
    assert knobs.DEBUG.get() == 0
    monkeypatch.setenv(knobs.DEBUG.name, "2")
    assert knobs.DEBUG.get() == 2
    monkeypatch.setenv(knobs.CHECK.name, "on")
    assert knobs.CHECK.get() is True
    wrong = ((knobs.DEBUG, "4"), (knobs.DEBUG, "x"), (knobs.CHECK, "maybe"), (knobs.CACHE, "maybe"))
    for name, value in (*wrong, (knobs.CACHE_LIMIT_MB, "-1"), (knobs.CACHE_LIMIT_MB, "all")):
        monkeypatch.setenv(name.name, value)
        with pytest.raises(CompileError, match=f"{name.name} is '{value}'; it must be"):
            name.get()


def test_every_variable_that_the_sources_read_is_a_knob():
    root = Path(knobs.__file__).parents[1]
    found: set[str] = set()
    for path in root.rglob("*.py"):
        if path.parent.name != "versions":  # its variables are those of its own tool
            found |= set(re.findall(r"""environ(?:\.get\(|\[)["'](TREADLE_\w+)""", path.read_text()))
    assert found <= {knob.name for knob in knobs.ALL}


def test_every_knob_is_in_the_table():
    table = knobs.table()
    for knob in knobs.ALL:
        assert knob.name in table
        assert knob.documentation[:20] in table
