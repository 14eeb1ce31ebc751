"""Programs that once broke a stage, through the whole pipeline."""

from __future__ import annotations

from tests.compiler.frontend.programs import context, main
from treadle.compiler import driver, knobs


def test_equal_constants_in_two_regions_of_one_op(monkeypatch):
    monkeypatch.setenv(knobs.CHECK.name, "1")
    program = main(
        """
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = "stablehlo.select_and_scatter"(%a, %b, %zero) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %c = stablehlo.constant dense<1.0> : tensor<f32>
          %s = stablehlo.add %x, %c : tensor<f32>
          %p = stablehlo.compare GE, %s, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }, {
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %c = stablehlo.constant dense<1.0> : tensor<f32>
          %s = stablehlo.maximum %x, %y : tensor<f32>
          %m = stablehlo.minimum %s, %c : tensor<f32>
          stablehlo.return %m : tensor<f32>
        }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}
          : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x4xf32>
        return %0 : tensor<4x4xf32>""",
        "%a: tensor<4x4xf32>, %b: tensor<2x2xf32>",
        "tensor<4x4xf32>",
    )
    driver.run(context(program), "pack")
