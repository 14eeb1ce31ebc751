"""Compile options against what jaxlib serializes."""

from __future__ import annotations

import pytest
from jax._src.lib import xla_client

from tests.compiler.frontend.programs import serialized
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend.options import CompileOptions, parse_options


def test_defaults():
    assert parse_options(b"") == CompileOptions(1, 1, ())
    assert parse_options(serialized()) == CompileOptions(1, 1, ())


def test_one_device():
    assert parse_options(serialized(devices=[[3]])).device_assignment == (3,)


def test_device_assignment_is_replica_major():
    options = parse_options(serialized(2, 3, [[5, 4, 3], [2, 1, 0]], spmd=True))
    assert options == CompileOptions(2, 3, (5, 4, 3, 2, 1, 0), use_spmd_partitioning=True)
    assert options.num_devices == 6


def test_portable_has_no_devices():
    assert parse_options(serialized(portable=True)).device_assignment == ()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff\xff\xff", "ends inside a number"),
        (b"\x0f", "wire type 7"),
        (b"\x00\x00", "field number 0"),
        (b"\x1a\x50\x01", "needs 80 bytes"),
        (b"\xff" * 11, "more than ten bytes"),
        (b"\x18\x05", "executable_build_options is a number"),
        (b"\x1a\x02\x22\x00", "num_replicas is not a number"),
        (b"\x1a\x0b\x20" + b"\xff" * 9 + b"\x01", "num_replicas is -1"),
        (b"\x1a\x02\x4a\x00", "the device assignment is for 0 replicas"),
        (b"\x1a\x06\x4a\x04\x08\x01\x10\x01", "does not list a device for each part"),
    ],
)
def test_bad_options_are_refused(data, says):
    with pytest.raises(CompileError) as caught:
        parse_options(data)
    assert caught.value.code is StatusCode.INVALID_ARGUMENT
    assert says in caught.value.message


def test_every_truncation_is_an_error_or_a_shorter_message():
    data = serialized(2, 3, [[5, 4, 3], [2, 1, 0]])
    for size in range(len(data)):
        try:
            parse_options(data[:size])
        except CompileError as e:
            assert e.code is StatusCode.INVALID_ARGUMENT


def overrides(**named) -> bytes:
    options = xla_client.CompileOptions()
    options.env_option_overrides = list(named.items())
    data: bytes = options.SerializeAsString()
    return data


def test_flags_of_xla_are_accepted_and_change_nothing():
    given = overrides(xla_embed_ir_in_executable=True, xla_dump_max_hlo_modules=200, exec_time_optimization_effort=0.0)
    assert parse_options(given) == parse_options(xla_client.CompileOptions().SerializeAsString())


def test_an_option_that_nobody_knows_is_refused_by_name():
    with pytest.raises(CompileError, match="No such compile option: 'invalid_key'") as caught:
        parse_options(overrides(xla_embed_ir_in_executable=True, invalid_key="v"))
    assert caught.value.code is StatusCode.INVALID_ARGUMENT
