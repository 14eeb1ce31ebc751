"""The checks of bytecode accept what MLIR writes and refuse, with a reason, what it does not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.frontend.cases import CASES, Case
from tests.compiler.frontend.programs import artifact
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend import bytecode, bytecode_ir, vhlo
from treadle.compiler.frontend.checks import check_program
from treadle.compiler.frontend.encodings import check_encodings

# Programs with what Treadle does not compile, too: the checks must not stand in the way of its error.
OTHERS: dict[str, Case] = {
    "sort": (jnp.sort, [np.ones(4, np.float32)]),
    "fft": (jnp.fft.fft, [np.ones(4, np.complex64)]),
    "complex_constant": (lambda x: x * np.array([1j, 2, 3, 4], np.complex64), [np.ones(4, np.complex64)]),
    "cholesky": (jnp.linalg.cholesky, [np.eye(3, dtype=np.float32)]),
    "eigh": (jnp.linalg.eigh, [np.eye(3, dtype=np.float32)]),
    "solve": (jax.scipy.linalg.solve_triangular, [np.eye(3, dtype=np.float32)] * 2),
    "top_k": (lambda x: jax.lax.top_k(x, 2), [np.ones(4, np.float32)]),
    "int4": (lambda x: x.astype(jnp.int4) * jnp.asarray([1, 2, 3, -4], jnp.int4), [np.ones(4, np.int8)]),
    "float8": (lambda x: x + jnp.asarray([1, 2, 3, 4], x.dtype), [np.ones(4, jnp.float8_e4m3fn)]),
    "algorithm": (
        lambda x: jax.lax.dot(x, x, precision=jax.lax.DotAlgorithmPreset.F32_F32_F32), [np.ones((4, 4), np.float32)]
    ),
    "bits": (lambda k: jax.lax.rng_bit_generator(k, (4,)), [np.ones(4, np.uint32)]),
    "packed_bits": (lambda: np.arange(19) % 3 == 0, []),
    "one_bit": (lambda: np.array([True]), []),
    "no_bits": (lambda: np.zeros((0, 3), bool), []),
}  # fmt: skip


def read(program: bytes) -> tuple[bytecode.Tables, tuple[int, int]]:
    """The tables and where the IR section is, of a version that is known here."""
    found = bytecode.read_tables(program)
    assert found is not None
    return found


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_what_jaxlib_writes_is_accepted(name):
    function, arguments = (CASES | OTHERS)[name]
    program = artifact(function, *arguments)
    check_program(program)
    tables, where = read(program)
    seen = {tables.op_names[op][0] for op, _, _ in bytecode_ir.check_ir(tables, *where)}
    assert "vhlo.func_v1" in seen


def test_every_op_with_attributes_is_checked():
    """An op that is not in the table of properties would reach MLIR unchecked."""
    missing = set()
    for function, arguments in (CASES | OTHERS).values():
        tables, where = read(artifact(function, *arguments))
        for op, _, properties in bytecode_ir.check_ir(tables, *where):
            name = tables.op_names[op][0]
            if properties >= 0 and name.startswith("vhlo.") and name not in vhlo.PROPERTIES:
                missing.add(name)
    # Later revisions of these have attributes that are not known here.
    assert missing <= {"vhlo.custom_call_v2", "vhlo.dot_general_v3"}


def _add() -> bytes:
    return artifact(lambda x: x + 1, np.ones(8, np.float32))


def test_a_cycle_is_refused():
    program = bytearray(_add())
    tables, where = read(bytes(program))
    names = [e for e in tables.attributes if e.dialect == "builtin" and program[e.start] >> 1 == 14]
    location = tables.attributes.index(names[0])
    program[names[0].end - 1] = location << 1 | 1  # the location inside it is itself
    assert len(bytes(program)) == len(_add())
    tables, where = read(bytes(program))
    with pytest.raises(bytecode.BytecodeError, match="contains itself"):
        check_encodings(tables, bytecode_ir.check_ir(tables, *where))


def test_every_truncation_is_refused():
    program = _add()
    for size in range(len(program)):
        if size < len(bytecode.MAGIC):
            continue
        with pytest.raises(CompileError) as caught:
            check_program(program[:size])
        assert caught.value.code is StatusCode.INVALID_ARGUMENT


def test_newer_versions_are_left_to_mlir():
    assert bytecode.read_tables(bytecode.MAGIC + b"\x81" + bytes(50)) is None
    with pytest.raises(bytecode.BytecodeError, match="version 1"):
        bytecode.read_tables(bytecode.MAGIC + b"\x03" + bytes(50))


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 16383, 16384, 2**31, 2**56 - 1, 2**56, 2**64 - 1])
def test_varint(value):
    size = max(1, -(-value.bit_length() // 7))
    encoded = (
        b"\0" + value.to_bytes(8, "little") if size > 8 else (value << size | 1 << size - 1).to_bytes(size, "little")
    )
    assert bytecode.varint(b"x" + encoded + b"y", 1) == (value, 1 + len(encoded))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"module { // \xff\n}", "not valid UTF-8 at byte 12"),
        (b"module {}\0", "zero byte"),
        (b'module @"\\C3\\28" {}', "not valid UTF-8"),
        (b"module {" * 501, "nests brackets more than 500 deep"),
        (b"dim_numbers = [b, 0, 1, f]x[0, 99999999999, i, o]->[b, 0, 1, f]", "dimension above 64"),
    ],
)
def test_text_that_mlir_must_not_see(text, says):
    with pytest.raises(CompileError, match=says):
        check_program(text)


def test_text_that_it_may():
    check_program(b'module @"\\C3\\A9" {}')
    check_program(b"module { // " + b"({[<" * 600 + b"\n}")
