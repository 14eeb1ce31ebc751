"""Compiling, serializing and loading, and what an executable says of itself; a test plays the compiler."""

import ctypes

import numpy as np
import pytest
from pypjrt import errors

from tests.capi.artifacts import F32, S32, Buffer, Program
from tests.capi.harness import PLUGIN, Client, call, raises
from tests.capi.programs import ADD_ONE, x4
from tests.capi.wire import compile_options, wire


@pytest.mark.parametrize(
    "options, texts",
    [
        (compile_options(1, 1, [[2]]), ["no device has id 2", "0 to 1"]),
        (compile_options(1, 2, [[0, 1]]), ["compiled for 1 replicas of 1 partitions", "1 of 2"]),
        (
            wire(3, wire(4, 2) + wire(9, wire(1, 1) + wire(2, 1) + wire(3, wire(1, b"\0")))),
            ["2 replicas", "for 1 of 1"],
        ),
        (wire(3, wire(9, wire(1, 2) + wire(2, 1) + wire(3, wire(1, b"\0")))), ["does not name a device for each"]),
        (b"\x1a\xff", ["CompileOptionsProto", "end inside"]),
        (b"\x1a\x7f\x00", ["CompileOptionsProto", "end inside"]),
        (b"\xff" * 20, ["CompileOptionsProto"]),
        (b"\x07", ["CompileOptionsProto"]),
        (wire(3, wire(4, 2**31)), ["num_replicas"]),
    ],
)
def test_bad_compile_options(client, options, texts):
    with raises(errors.InvalidArgument, "PJRT_Client_Compile: ", *texts):
        client.compile(ADD_ONE, options)


# ---- the compiler's answers


def test_what_the_compiler_is_asked():
    client = Client(num_devices=3, num_threads=2)
    executable = client.compile(ADD_ONE)
    assert client.requests == [{"program": b"a program", "devices": 3, "threads": 2}]
    executable.close()
    client.close()


def test_the_compilers_error(client):
    with raises(errors.Unimplemented, "PJRT_Client_Compile: no such op \u2192 here"):
        client.compile((12, "no such op \u2192 here"))
    with raises(errors.Unknown, "a code of its own"):
        client.compile((99, "a code of its own"))
    with raises(errors.Internal, "no message"):
        client.compile((13, ""))


def test_unknown_format(client):
    with raises(errors.InvalidArgument, "'hlo'", "'mlir'"):
        client.compile(ADD_ONE, fmt="hlo")
    assert client.requests == []


def test_an_artifact_that_is_none(client):
    for garbage in (b"", b"x", bytes(1000), ADD_ONE.pack()[:-5], b"TREADLE\n"):
        with raises(errors.PjrtError, "PJRT_Client_Compile: "):
            client.compile(garbage)


def test_after_python_has_begun_to_shut_down():
    flag = ctypes.c_int32(1)
    client = Client(compile_enabled=ctypes.addressof(flag))
    client.compile(ADD_ONE).close()
    flag.value = 0
    with raises(errors.FailedPrecondition, "shutting down"):
        client.compile(ADD_ONE)
    client.close()


# ---- serialization


def test_serialize_and_load(client):
    executable = client.compile(ADD_ONE)
    data = executable.serialize()
    executable.close()
    other = Client()
    loaded = other.deserialize(data)
    assert other.requests == []
    x = x4(other)
    ((y,),) = loaded.run([x])
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    assert loaded.serialize() == data
    with raises(errors.Unimplemented, "PJRT_Executable_GetCompileOptions"):
        call("PJRT_Executable_GetCompileOptions", executable=loaded.executable)
    for thing in (x, y, loaded, other):
        thing.close()


def test_loading_onto_another_device(client):
    data = ADD_ONE.pack()
    executable = client.deserialize(data, compile_options(1, 1, [[1]]))
    x = x4(client, device=1)
    ((y,),) = executable.run([x])
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    for thing in (x, y, executable):
        thing.close()
    by_artifact = client.deserialize(Program(ADD_ONE.inputs, ADD_ONE.outputs, ADD_ONE.body, devices=(1,)).pack())
    args = call("PJRT_LoadedExecutable_AddressableDevices", executable=by_artifact.handle)
    assert ctypes.cast(args.addressable_devices, ctypes.POINTER(ctypes.c_void_p))[0] == client.devices[1]
    by_artifact.close()


def test_foreign_and_damaged_executables(client):
    survivor = x4(client)
    with raises(errors.FailedPrecondition, "PJRT_Executable_DeserializeAndLoad: "):
        client.deserialize(Program(ADD_ONE.inputs, ADD_ONE.outputs, ADD_ONE.body, cpu_features=1 << 40).pack())
    data = ADD_ONE.pack()
    for damaged in (b"", data[:100], data + b"x", data[:200] + b"\xff" + data[201:], b"something else entirely"):
        with raises(errors.PjrtError, "PJRT_Executable_DeserializeAndLoad: ") as _:
            client.deserialize(damaged)
    np.testing.assert_array_equal(survivor.numpy(), [0, 1, 2, 3])
    survivor.close()


def test_a_description_that_contradicts_itself(client):
    class OfAnotherSize(Buffer):
        byte_size = 1000

    with raises(errors.DataLoss, "output 0 shares the memory of input 0"):
        client.deserialize(Program((Buffer((4,)),), (Buffer((8,), alias=0),), "(void)b").pack())
    with raises(errors.InvalidArgument, "f32[4] as 1000 bytes"):
        client.deserialize(Program((OfAnotherSize((4,)),), (), "(void)b").pack())


def test_client_load_and_client_free_compile(client):
    executable = client.compile(ADD_ONE)
    topology = call("PJRT_Client_TopologyDescription", client=client.handle).topology
    code, format_ = ctypes.create_string_buffer(b"a program"), ctypes.create_string_buffer(b"mlir")
    program = PLUGIN.args(
        "PJRT_Program",
        code=ctypes.addressof(code),
        code_size=9,
        format=ctypes.addressof(format_),
        format_size=4,
    )
    compiled = call(
        "PJRT_Compile", topology=topology, program=ctypes.addressof(program), client=client.handle
    ).executable
    loaded = call("PJRT_Client_Load", client=client.handle, executable=compiled).loaded_executable
    assert loaded
    call("PJRT_LoadedExecutable_Destroy", executable=loaded)
    call("PJRT_Executable_Destroy", executable=compiled)
    executable.close()


# ---- what an executable says of itself


def test_description(client):
    program = Program(
        (Buffer((4,), donated=True), Buffer((2, 3), S32, sharding=b"\x08\x01")),
        (Buffer((4,), alias=0), Buffer((2, 3), S32), Buffer(())),
        "(void)b",
        scratch_bytes=128,
        flops=7,
    )
    executable = client.compile(program, compile_options(1, 1, [[0]]))
    handle = executable.executable

    def texts(args, list_field, sizes_field, count):
        pointers = ctypes.cast(getattr(args, list_field), ctypes.POINTER(ctypes.c_void_p))
        sizes = ctypes.cast(getattr(args, sizes_field), ctypes.POINTER(ctypes.c_size_t))
        return [ctypes.string_at(pointers[i], sizes[i]) if sizes[i] else b"" for i in range(count)]

    args = call("PJRT_Executable_Name", executable=handle)
    assert ctypes.string_at(args.executable_name, args.executable_name_size) == b"test_program"
    args = call("PJRT_Executable_OutputElementTypes", executable=handle)
    assert ctypes.cast(args.output_types, ctypes.POINTER(ctypes.c_int))[:3] == [F32, S32, F32]
    args = call("PJRT_Executable_OutputDimensions", executable=handle)
    assert args.num_outputs == 3
    assert ctypes.cast(args.dim_sizes, ctypes.POINTER(ctypes.c_size_t))[:3] == [1, 2, 0]
    assert ctypes.cast(args.dims, ctypes.POINTER(ctypes.c_int64))[:3] == [4, 2, 3]
    args = call("PJRT_Executable_OutputMemoryKinds", executable=handle)
    assert texts(args, "memory_kinds", "memory_kind_sizes", 3) == [b"device"] * 3
    args = call("PJRT_Executable_ParameterMemoryKinds", executable=handle)
    assert texts(args, "memory_kinds", "memory_kind_sizes", args.num_parameters) == [b"device"] * 2
    args = call("PJRT_Executable_GetCompiledMemoryStats", executable=handle)
    assert (args.argument_size_in_bytes, args.output_size_in_bytes) == (40, 44)
    assert (args.alias_size_in_bytes, args.temp_size_in_bytes) == (16, 128)
    assert args.generated_code_size_in_bytes > 0
    args = call("PJRT_Executable_GetCostAnalysis", executable=handle)
    assert args.num_properties == 2
    args = call("PJRT_Executable_Fingerprint", executable=handle)
    fingerprint = ctypes.string_at(args.executable_fingerprint, args.executable_fingerprint_size)
    assert len(fingerprint) == 8
    args = call("PJRT_Executable_GetCompileOptions", executable=handle)
    assert ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size) == compile_options(1, 1, [[0]])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.serialized_compile_options_deleter)(args.serialized_compile_options)
    with raises(errors.Unimplemented, "does not carry its program"):
        wanted = PLUGIN.args("PJRT_Program")
        call("PJRT_Executable_OptimizedProgram", executable=handle, program=ctypes.addressof(wanted))
    executable.close()
