"""The gate between the table and the compiler: it fails when either has something that the other has not."""

import functools

import jax

from tests.ops import harness
from tests.ops.cases import ALL


def lowered_text(function, arguments):
    with jax.default_device(harness.reference_device()):
        return jax.jit(function).lower(*arguments).as_text()


def ops_after(stage, text):
    """The names of the ops in the program, nested ones too, after a stage of the compiler."""
    from treadle.compiler import driver as compiler_driver

    context = compiler_driver.make_context(text.encode(), "mlir", b"", 1, 0, 1)
    program = compiler_driver.run(context, stage)
    return {op.name for op in program.entry.walk()}


@functools.cache
def exercised():
    """Op name -> a row that contains it: as JAX gives it, and as it is left by the compiler's simplifications."""
    rows: dict[str, str] = {}
    for case in ALL:
        texts = [lowered_text(case.function, case.arguments())]
        if case.grad:
            texts.append(lowered_text(*harness.gradient_of(case)))
        for text in texts:
            for stage in ("convert", "optimise"):
                for name in ops_after(stage, text):
                    rows.setdefault(name, case.name)
    return rows


def known_ops():
    from treadle.compiler.lowering import registry

    return registry.all_ops()


def test_every_rule_of_the_compiler_is_exercised_by_a_row():
    missing = known_ops() - exercised().keys()
    assert not missing, f"ops that Treadle compiles and no row of the table has: {sorted(missing)}"


def test_every_op_in_the_table_has_a_rule():
    unknown = {name: row for name, row in exercised().items() if name not in known_ops()}
    assert not unknown, f"ops of the table that Treadle has no rule for (op: row): {unknown}"
