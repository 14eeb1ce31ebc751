"""Failures as tools print them, and the kind of each. The texts were seen, or are in the sources of who prints them."""

from __future__ import annotations

import pytest

from tools.nightly.classify import classify
from tools.nightly.kinds import Kind, first_of

SEEN = {
    # ./bazelw build with a header that lacks a struct
    Kind.HEADER: """\
ERROR: plugin/api/BUILD:12:23: Compiling plugin/api/layout.cc failed: (Exit 1): gcc failed
plugin/api/layout.cc:47:3: error: \u2018PJRT_Buffer_MemoryLayout_Tiled\u2019 was not declared in this scope
Target //:wheel failed to build
""",
    # JAX_PLATFORMS=treadle with a plugin that says it is of major version 1
    Kind.API: """\
Traceback (most recent call last):
RuntimeError: Unable to initialize backend 'treadle': INVALID_ARGUMENT: Mismatched PJRT plugin PJRT API major version \
(1) and framework PJRT API major version 0). (set JAX_PLATFORMS='' to automatically choose an available backend)
""",
    # the compiler on bytecode whose version number was raised
    Kind.STABLEHLO: """\
E   jax.errors.JaxRuntimeError: INVALID_ARGUMENT: PJRT_Client_Compile: The program cannot be parsed; MLIR says: \
bytecode version 63 is newer than the current version 6 at loc("-":0:0). It must be StableHLO (portable artifact, \
MLIR bytecode or text).
""",
    Kind.PRIVATE_API: """\
  File "treadle/plugin.py", line 114, in _register
AttributeError: module 'jax._src.xla_bridge' has no attribute 'make_pjrt_c_api_client'
""",
    Kind.CRASH: """\
[gw0] node down: Not properly terminated
worker 'gw0' crashed while running 'tests/ops/table_test.py::test_forward[add-f32]'
""",
    Kind.UNIMPLEMENTED: """\
E   jax.errors.JaxRuntimeError: UNIMPLEMENTED: PJRT_Client_Compile: The program uses 1 thing that Treadle cannot do:
E     - the op stablehlo.fft: jit(fft)/fft at program.py:9
""",
    Kind.NUMERICS: """\
E   AssertionError:
E   Not equal to tolerance rtol=1e-07, atol=0
E
E   Mismatched elements: 1 / 4 (25%)
""",
    Kind.ENVIRONMENT: """\
ERROR: Could not find a version that satisfies the requirement jaxlib==99.0 (from versions: 0.10.2, 0.11.0)
ERROR: No matching distribution found for jaxlib==99.0
""",
    Kind.TEST: """\
    def test_users_of_jaxlibs_backend_do_not_notice():
>       assert printed == "cpu"
E       AssertionError: assert 'treadle' == 'cpu'
""",
}


@pytest.mark.parametrize("kind", SEEN, ids=str)
def test_seen(kind: Kind):
    assert classify(SEEN[kind], otherwise=Kind.TEST).kind is kind


@pytest.mark.parametrize(
    "kind, text",
    [
        (Kind.HEADER, "./xla/pjrt/c/pjrt_c_api.h:31:2: error: #error this header needs C++20"),
        (Kind.HEADER, "a.cc:1:10: fatal error: xla/pjrt/c/pjrt_c_api_layouts_extension.h: No such file or directory"),
        (Kind.HEADER, "e.cc:3:7: error: 'PJRT_Api' {aka 'struct PJRT_Api'} has no member named 'PJRT_Buffer_New'"),
        (Kind.API, "Plugin PJRT API version 0.28 is older than the minimum supported version 0.29"),
        (Kind.API, "Unexpected PJRT_Client_Create_Args size: expected 80, got 64. Check installed software versions."),
        (
            Kind.API,
            "PJRT_Event_Await: the argument struct's struct_size is 8 and must be at least 24",
        ),
        (Kind.STABLEHLO, "unregistered operation 'vhlo.add_v9' found in dialect ('vhlo') that does not allow unknown"),
        (Kind.STABLEHLO, "failed to deserialize portable artifact using StableHLO_v1.20.0"),
        (Kind.PRIVATE_API, "ImportError: cannot import name 'vhlo' from 'jaxlib.mlir.dialects' (unknown location)"),
        (Kind.PRIVATE_API, "ModuleNotFoundError: No module named 'jax._src.interpreters.mlir'"),
        (Kind.CRASH, "Fatal Python error: Segmentation fault"),
        (Kind.NUMERICS, "AssertionError: Arrays are not almost equal to 6 decimals"),
        (Kind.ENVIRONMENT, "ERROR: Could not install packages: [Errno 28] No space left on device"),
    ],
)
def test_messages(kind: Kind, text: str):
    evidence = classify(f"first\n{text}\nlast")
    assert (evidence.kind, evidence.line) == (kind, text)


def test_what_is_below_explains_what_is_above():
    assert classify(SEEN[Kind.NUMERICS] + SEEN[Kind.API]).kind is Kind.API


def test_nothing_known_gives_the_error_line():
    evidence = classify("one\nValueError: odd\n  at the end\n", otherwise=Kind.BUILD)
    assert (evidence.kind, evidence.line) == (Kind.BUILD, "ValueError: odd")
    assert classify("").line == "no output"
    assert classify("one\ntwo\n").line == "two"


def test_a_module_of_treadles_is_no_private_name():
    assert classify("ModuleNotFoundError: No module named 'treadle.compiler.nothing'").kind is Kind.OTHER


def test_a_long_line_is_cut():
    line = classify("Mismatched elements: 1 / 4 " + "x" * 400).line
    assert len(line) == 300
    assert line.endswith("x...")


def test_every_kind_has_an_exit_code_of_its_own():
    codes = [kind.exit_code for kind in Kind]
    assert len(set(codes)) == len(codes)
    assert not set(codes) & {0, 2, 4}
    assert all(kind.meaning for kind in Kind)


def test_the_order_of_blame():
    assert first_of([Kind.TEST, Kind.NUMERICS, Kind.STABLEHLO, Kind.PRIVATE_API]) is Kind.STABLEHLO
    with pytest.raises(ValueError):
        first_of([])
