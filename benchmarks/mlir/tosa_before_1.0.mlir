// TOSA as releases before its version 1.0 write it; functions mean what those of one name in tosa_since_1.0.mlir do.
func.func @layer(%x: tensor<1x6x6x2xf32>, %w: tensor<4x3x3x2xf32>, %b: tensor<4xf32>) -> tensor<1x4x4x4xf32> {
  %c = tosa.conv2d %x, %w, %b {dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x6x6x2xf32>, tensor<4x3x3x2xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
  %r = tosa.clamp %c {max_fp = 6.0 : f32, max_int = 6 : i64, min_fp = 0.0 : f32, min_int = 0 : i64}
    : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %r : tensor<1x4x4x4xf32>
}
func.func @depthwise(%x: tensor<1x5x5x3xf32>, %w: tensor<1x1x3x2xf32>, %b: tensor<6xf32>) -> tensor<1x5x5x6xf32> {
  %r = tosa.depthwise_conv2d %x, %w, %b {dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x5x5x3xf32>, tensor<1x1x3x2xf32>, tensor<6xf32>) -> tensor<1x5x5x6xf32>
  return %r : tensor<1x5x5x6xf32>
}
func.func @products(%x: tensor<2x3x4xf32>, %y: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %r = tosa.matmul %x, %y : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}
func.func @moved(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  %order = "tosa.const"() <{value = dense<[2, 0, 1]> : tensor<3xi32>}> : () -> tensor<3xi32>
  %a = tosa.transpose %x, %order : (tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<4x2x3xf32>
  %r = tosa.reshape %a {new_shape = array<i64: 4, 6>} : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
func.func @padded(%x: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %amounts = "tosa.const"() <{value = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
  %k = "tosa.const"() <{value = dense<3.5> : tensor<f32>}> : () -> tensor<f32>
  %r = tosa.pad %x, %amounts, %k : (tensor<2x3xf32>, tensor<2x2xi64>, tensor<f32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
func.func @tiled(%x: tensor<2x3xi32>) -> tensor<4x3xi32> {
  %a = tosa.tile %x {multiples = array<i64: 2, 1>} : (tensor<2x3xi32>) -> tensor<4x3xi32>
  %r = tosa.mul %a, %a {shift = 0 : i8} : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
  return %r : tensor<4x3xi32>
}
func.func @turned_twice(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %there = "tosa.const"() <{value = dense<[2, 0, 1]> : tensor<3xi32>}> : () -> tensor<3xi32>
  %back = "tosa.const"() <{value = dense<[1, 2, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
  %a = tosa.transpose %x, %there : (tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<4x2x3xf32>
  %b = tosa.abs %a : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %r = tosa.transpose %b, %back : (tensor<4x2x3xf32>, tensor<3xi32>) -> tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}
func.func @constants() -> tensor<2x2xi32> {
  %order = "tosa.const"() <{value = dense<[1, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %a = "tosa.const"() <{value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
  %b = "tosa.const"() <{value = dense<7> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
  %c = tosa.transpose %a, %order : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  %r = tosa.add %c, %b : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  return %r : tensor<2x2xi32>
}
func.func @average(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32> {
  %r = tosa.avg_pool2d %x {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>}
    : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  return %r : tensor<1x2x2x2xf32>
}
