"""What conversion does beside renaming: inlining, locations, arguments, devices, and what it refuses."""

from __future__ import annotations

import inspect
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.compiler.frontend.programs import artifact, imported, main, ops
from treadle.compiler import interp
from treadle.compiler.errors import CompileError, StatusCode, UnsupportedError
from treadle.compiler.ir.core import Input
from treadle.compiler.ir.verifier import verify


def refused(program) -> CompileError:
    with pytest.raises(CompileError) as caught:
        imported(program)
    return caught.value


# ---- calls


def test_calls_are_inlined_once_per_call():
    @jax.jit
    def twice(x):
        return x * 2

    program = imported(artifact(lambda x: twice(twice(x)) + twice(x), np.ones(4, np.float32)))
    assert len(ops(program, "multiply")) == 3
    assert {op.name for op in program.entry.walk()} <= {"multiply", "add", "constant", "broadcast_in_dim"}


def test_recursion_is_refused_and_named():
    error = refused("""
        func.func @main(%a: tensor<f32>) -> tensor<f32> {
          %0 = func.call @f(%a) : (tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        func.func private @f(%a: tensor<f32>) -> tensor<f32> {
          %0 = func.call @main(%a) : (tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }""")
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "main -> f -> main" in error.message


def test_composite_becomes_its_decomposition():
    program = imported("""
        func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
          %0 = stablehlo.composite "some.thing" %a {decomposition = @impl} : (tensor<3xf32>) -> tensor<3xf32>
          return %0 : tensor<3xf32>
        }
        func.func private @impl(%a: tensor<3xf32>) -> tensor<3xf32> {
          %0 = stablehlo.negate %a : tensor<3xf32>
          return %0 : tensor<3xf32>
        }""")
    assert [op.name for op in program.entry.ops] == ["negate"]


def test_module_without_main_is_refused():
    error = refused("func.func @other() { return }")
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "'other'" in error.message


# ---- regions


def test_combiner_regions_are_closed_by_copying_constants():
    program = imported(
        main(
            """
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %two = stablehlo.constant dense<2.0> : tensor<f32>
        %0 = "stablehlo.reduce"(%a, %zero) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %m = stablehlo.maximum %y, %two : tensor<f32>
          %s = stablehlo.maximum %x, %m : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>""",
            "%a: tensor<4xf32>",
            "tensor<f32>",
        )
    )
    verify(program)
    assert interp.run(program, [np.array([0, 1, -3, 1.5], np.float32)])[0] == 2


def test_combiner_that_uses_an_argument_from_outside_is_refused():
    error = refused(
        main(
            """
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = "stablehlo.reduce"(%a, %zero) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>""",
            "%a: tensor<4xf32>, %b: tensor<f32>",
            "tensor<f32>",
        )
    )
    assert error.code is StatusCode.UNIMPLEMENTED
    assert "a value from outside in a region of stablehlo.reduce" in error.message


def test_map_is_its_region_on_whole_arrays():
    program = imported(
        main(
            """
        %0 = "stablehlo.map"(%a, %b) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %half = stablehlo.constant dense<0.5> : tensor<f32>
          %p = stablehlo.multiply %x, %half : tensor<f32>
          %s = stablehlo.add %p, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>""",
            "%a: tensor<4xf32>, %b: tensor<4xf32>",
            "tensor<4xf32>",
        )
    )
    verify(program)
    assert [op.name for op in program.entry.ops] == ["constant", "multiply", "add"]
    a, b = np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)
    np.testing.assert_array_equal(interp.run(program, [a, b])[0], a / 2 + 3)


# ---- locations


def test_locations_are_the_users():
    def scaled(x):
        return jnp.sin(x)

    line = inspect.getsourcelines(scaled)[1] + 1
    (sine,) = ops(imported(artifact(scaled, np.ones(4, np.float32))), "sine")
    assert sine.loc.file == __file__
    assert sine.loc.line == line
    assert sine.loc.name.endswith("/sin")
    assert str(sine.loc) == f"{sine.loc.name} at {__file__}:{line}"
    assert hash(sine.loc) == hash(sine.loc)


def test_an_op_of_a_cached_function_is_where_it_was_called():
    @jax.jit
    def inner(x):
        return jnp.cos(x)

    def outer(x):
        return inner(x)

    program = imported(artifact(outer, np.ones(4, np.float32)))
    (cosine,) = ops(program, "cosine")
    assert "inner" in cosine.loc.name
    assert cosine.loc.file == __file__
    assert cosine.loc.line > 0


# ---- arguments


def test_donation_and_aliasing():
    def step(p, q, x):
        return p + x, q * 2

    shape = np.ones(4, np.float32)
    program = imported(artifact(step, shape, shape, shape, donate_argnums=(0, 1)))
    assert [i.donated for i in program.inputs] == [True, True, False]
    text = main(
        "return %a, %b : tensor<2xf32>, tensor<2xf32>",
        "%a: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<2xf32> {jax.buffer_donor = true, "
        'mhlo.memory_kind = "pinned_host"}, %c: tensor<2xf32>',
        'tensor<2xf32>, tensor<2xf32> {mhlo.memory_kind = "device"}',
    )
    program = imported(text)
    assert program.inputs == [Input(True, 1), Input(True, -1, b"", "pinned_host"), Input()]
    assert [o.memory_kind for o in program.outputs] == ["", "device"]


@pytest.mark.parametrize(("first", "second", "says"), [(2, 0, "not one of its 2"), (1, 1, "so does argument 0")])
def test_impossible_aliases_are_refused(first, second, says):
    error = refused(
        main(
            "return %a, %b : tensor<2xf32>, tensor<2xf32>",
            f"%a: tensor<2xf32> {{tf.aliasing_output = {first} : i32}}, "
            f"%b: tensor<2xf32> {{tf.aliasing_output = {second} : i32}}",
            "tensor<2xf32>, tensor<2xf32>",
        )
    )
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert says in error.message


@pytest.mark.parametrize(
    "attribute",
    [
        'tf.aliasing_output = "x"',
        'tf.aliasing_output = loc("x")',
        "mhlo.memory_kind = 1 : i32",
        "mhlo.layout_mode = 1 : i32",
    ],
)
def test_argument_attributes_of_the_wrong_kind(attribute):
    error = refused(main("return %a : tensor<f32>", f"%a: tensor<f32> {{{attribute}}}", "tensor<f32>"))
    assert error.code is StatusCode.INVALID_ARGUMENT


LAYOUTS = {"default": True, "auto": True, "{2,1,0}": True, "{0,1,2}": False, "{2,1,0:T(8,128)}": False, "x": False}


@pytest.mark.parametrize(("layout", "fits"), LAYOUTS.items(), ids=list(LAYOUTS))
def test_layouts_other_than_row_major_are_refused(layout, fits):
    text = main(
        "return %a, %b : tensor<2x3x4xf32>, tensor<f32>",
        f'%a: tensor<2x3x4xf32> {{mhlo.layout_mode = "{layout}"}}, %b: tensor<f32> {{mhlo.layout_mode = "{{}}"}}',
        f'tensor<2x3x4xf32> {{mhlo.layout_mode = "{layout}"}}, tensor<f32> {{mhlo.layout_mode = "auto"}}',
    )
    if fits:
        imported(text)
        return
    error = refused(text)
    assert error.code is StatusCode.UNIMPLEMENTED
    assert f"the layout {layout} " in error.message and "row-major: {2,1,0}" in error.message
    assert "argument 0 of the program" in error.message and "result 0 of the program" in error.message


# ---- one device


def test_shardings_of_one_device_are_nothing():
    mesh = Mesh(np.array(jax.devices("cpu")[:1]), ("x",))
    where = NamedSharding(mesh, PartitionSpec("x"))

    def per_device(x):
        return jax.lax.psum(x, "x") + jax.lax.axis_index("x")

    def function(x):
        x = jax.lax.with_sharding_constraint(x * 2, where)
        return jax.shard_map(per_device, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"))(x)

    x = np.arange(4, dtype=np.float32)
    program = imported(artifact(function, x))
    verify(program)
    np.testing.assert_array_equal(interp.run(program, [x])[0], 2 * x)


def test_sharding_custom_call_is_its_operand():
    program = imported(
        main(
            '%0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}"} : (tensor<2xf32>) -> '
            "tensor<2xf32>\n"
            "return %0 : tensor<2xf32>",
            "%a: tensor<2xf32>",
            "tensor<2xf32>",
        )
    )
    assert program.entry.ops == []
    assert program.entry.results == program.entry.args


# ---- what is not there


def test_everything_unsupported_is_in_one_error_with_its_place():
    def function(x, z):
        return jnp.sort(x), jnp.fft.fft(z), jnp.linalg.eigh(jnp.outer(x, x)), jnp.sort(-x)

    line = inspect.getsourcelines(function)[1] + 1
    error = refused(artifact(function, np.ones(4, np.float32), np.ones(4, np.complex64)))
    assert isinstance(error, UnsupportedError)
    assert error.code is StatusCode.UNIMPLEMENTED
    for what in ("the op stablehlo.sort", "the op stablehlo.fft", "the element type c64", "the custom call @lapack_"):
        assert error.message.count(what) == 1
    assert f"{__file__}:{line}" in error.message
    assert "argument 1 of the program" in error.message
    assert error.message.count("stablehlo.sort") == 1
    assert len([what for what, _ in error.items if what == "the op stablehlo.sort"]) == 2


@pytest.mark.parametrize(
    ("body", "arguments", "results", "says"),
    [
        ("return %a : tensor<?xf32>", "%a: tensor<?xf32>", "tensor<?xf32>", "the dynamic shape tensor<?xf32>"),
        ("return %a : tensor<2xi4>", "%a: tensor<2xi4>", "tensor<2xi4>", "the element type s4"),
        ("return %a : tensor<2xf8E5M2>", "%a: tensor<2xf8E5M2>", "tensor<2xf8E5M2>", "the element type f8e5m2"),
        ("return %a : tensor<2xi7>", "%a: tensor<2xi7>", "tensor<2xi7>", "the element type i7"),
        ("return %a : tuple<tensor<f32>>", "%a: tuple<tensor<f32>>", "tuple<tensor<f32>>", "values of type tuple"),
        ("return %a : !stablehlo.token", "%a: !stablehlo.token", "!stablehlo.token", "values of type !stablehlo.token"),
        ("cf.br ^x\n^x:\n return", "", "", "2 blocks"),
        ("%0 = arith.constant 1 : i32\nreturn", "", "", "the op arith.constant"),
    ],
)
def test_what_is_not_supported_is_named(body, arguments, results, says):
    error = refused(main(body, arguments, results))
    assert error.code is StatusCode.UNIMPLEMENTED
    assert says in error.message


def test_invalid_programs_say_what_mlir_says():
    error = refused(main("%0 = stablehlo.add %a, %a : tensor<3xf32>\nreturn", "%a: tensor<2xf32>"))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "expects different type than prior uses" in error.message
    error = refused(main('"foo.bar"() : () -> ()\nreturn'))
    assert "unregistered dialect" in error.message


def test_concurrent_imports_use_a_context_each():
    program = artifact(lambda x: jnp.tanh(x) + 1, np.ones(4, np.float32))
    names: list[list[str]] = []
    failures: list[BaseException] = []

    def work():
        try:
            for _ in range(5):
                names.append([op.name for op in imported(program).entry.ops])
                refused("module {")
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(names) == 20
    assert all(n == names[0] for n in names)
