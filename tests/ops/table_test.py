"""The differential table: every row forward and backward, as one program and eagerly, against its oracle."""

import jax
import pytest

from tests.ops import harness
from tests.ops.cases import ALL


def parameters(cases):
    return [pytest.param(case, id=case.name, marks=[pytest.mark.quick] if case.quick else []) for case in cases]


def expected_of(case, arguments):
    if case.expected is not None:
        return harness.to_numpy(case.expected(*arguments))
    return harness.run(case.function, arguments, harness.reference_device(), jit=True)


@pytest.mark.parametrize("case", parameters(ALL))
def test_forward(case):
    arguments = case.arguments()
    expected = expected_of(case, arguments)
    device = harness.device_under_test()
    harness.assert_equal(harness.run(case.function, arguments, device, jit=True), expected, case, "jit")
    if case.eager:
        harness.assert_equal(harness.run(case.function, arguments, device, jit=False), expected, case, "eager")


@pytest.mark.parametrize("case", parameters([case for case in ALL if case.grad]))
def test_gradient(case):
    function, arguments = harness.gradient_of(case)
    expected = harness.run(function, arguments, harness.reference_device(), jit=True)
    device = harness.device_under_test()
    harness.assert_equal(
        harness.run(function, arguments, device, jit=True), expected, case, "gradient, jit", gradient=True
    )
    if case.eager:
        harness.assert_equal(
            harness.run(function, arguments, device, jit=False), expected, case, "gradient, eager", gradient=True
        )


def test_names_are_unique():
    names = [case.name for case in ALL]
    assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})


def test_rows_do_not_depend_on_each_other():
    # The inputs come from a row's own name, so that one row can be run alone and gives what it gives in the table.
    case = ALL[0]
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), case.arguments(), case.arguments()))
