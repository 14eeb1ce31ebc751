"""The extensions, each called through its struct of functions: layouts and shardings of a program's arrays."""

import ctypes

import numpy as np

from tests.capi.artifacts import Buffer, Program
from tests.capi.harness import PLUGIN, int64s


def test_layouts_extension(client):
    """Every array is row-major, which XLA writes as the list of dimensions from the last to the first."""
    program = Program((Buffer(()), Buffer((2, 3, 4))), (Buffer((5, 6)),), "(void)b")
    executable = client.compile(program)
    extension = PLUGIN.require_extension("Layouts")
    functions = ctypes.cast(extension.address, ctypes.POINTER(ctypes.c_void_p))[3:10]
    destroy, serialize, of_client, of_buffer, _, of_outputs, of_parameters = functions

    def ask(function, *values):
        """The slot's argument struct as words: its size, the extensions, then `values` and room for what comes out."""
        words = (ctypes.c_int64 * 12)(12 * 8, 0, *values)
        assert ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(function)(ctypes.addressof(words)) is None
        return words

    def text(layout):
        words = ask(serialize, layout)
        result = ctypes.string_at(words[3], words[4]).decode()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(words[6])(words[5])
        ask(destroy, layout)
        return result

    def texts(words):
        return [text(layout) for layout in ctypes.cast(words[4], ctypes.POINTER(ctypes.c_int64))[: words[3]]]

    assert texts(ask(of_parameters, executable.executable)) == ["{}", "{2,1,0}"]
    assert texts(ask(of_outputs, executable.executable)) == ["{1,0}"]
    dims = int64s([7, 1])
    assert text(ask(of_client, client.handle, 11, ctypes.addressof(dims), 2)[6]) == "{1,0}"
    buffer = client.put(np.zeros((1, 2, 3, 4), np.float32))
    assert text(ask(of_buffer, buffer.handle)[3]) == "{3,2,1,0}"
    ask(destroy, 0)
    buffer.close()
    executable.close()


def test_shardings_extension(client):
    program = Program((Buffer((4,)), Buffer((4,), sharding=b"\x08\x01")), (Buffer((4,)),), "(void)b")
    executable = client.compile(program)
    extension = PLUGIN.require_extension("Shardings")
    functions = ctypes.cast(extension.address, ctypes.POINTER(ctypes.c_void_p))

    class Args(ctypes.Structure):
        _fields_ = (
            ("struct_size", ctypes.c_size_t),
            ("extension_start", ctypes.c_void_p),
            ("executable", ctypes.c_void_p),
            ("count", ctypes.c_size_t),
            ("shardings", ctypes.POINTER(ctypes.c_void_p)),
            ("sizes", ctypes.POINTER(ctypes.c_size_t)),
        )

    def ask(index):
        args = Args(ctypes.sizeof(Args), None, executable.executable)
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Args))(functions[3 + index])
        assert function(ctypes.byref(args)) is None
        return args

    parameters, outputs = ask(0), ask(1)
    assert parameters.count == 2 and parameters.sizes[:2] == [0, 2]
    assert ctypes.string_at(parameters.shardings[1], 2) == b"\x08\x01"
    assert outputs.count == 1 and not outputs.shardings
    executable.close()
