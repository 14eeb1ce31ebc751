#loc1 = loc("w")
#loc2 = loc("x")
#loc8 = loc("select_and_scatter")
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x1x8xf32> loc("w"), %arg1: tensor<2x8x8x1xf32> loc("x")) -> (tensor<3x3x1x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.convolution(%arg1, %arg0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 2147483648, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x8x1xf32>, tensor<3x3x1x8xf32>) -> tensor<2x8x8x8xf32> loc(#loc21)
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc18)
    %1 = stablehlo.broadcast_in_dim %cst, dims = [-1] : (tensor<f32>) -> tensor<2x4x4x8xf32> loc(#loc22)
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc23)
    %2 = stablehlo.pad %0, %cst_0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x8x8x8xf32>, tensor<f32>) -> tensor<2x8x8x8xf32> loc(#loc27)
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc23)
    %3 = "stablehlo.select_and_scatter"(%2, %1, %cst_1) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg2: tensor<f32> loc("select_and_scatter:"(#loc8)), %arg3: tensor<f32> loc("select_and_scatter:"(#loc8))):
      %6 = stablehlo.compare GE, %arg2, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc29)
      stablehlo.return %6 : tensor<i1> loc(#loc28)
    }, {
    ^bb0(%arg2: tensor<f32> loc("select_and_scatter:"(#loc8)), %arg3: tensor<f32> loc("select_and_scatter:"(#loc8))):
      %6 = stablehlo.add %arg2, %arg3 : te