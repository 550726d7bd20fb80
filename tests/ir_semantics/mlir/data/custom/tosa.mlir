// TOSA operators, whose windows and paddings are attributes.
func.func @network(%image: tensor<1x8x8x3xf32>, %filter: tensor<4x3x3x3xf32>, %bias: tensor<4xf32>) -> tensor<1x6x6x4xf32> {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %r = tosa.conv2d %image, %filter, %bias, %zero, %zero {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x4xf32>
  %c = tosa.clamp %r {max_val = 6.0 : f32, min_val = 0.0 : f32} : (tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %s = tosa.const_shape {values = dense<[1, 6, 6, 4]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %t = tosa.reshape %c, %s : (tensor<1x6x6x4xf32>, !tosa.shape<4>) -> tensor<1x6x6x4xf32>
  return %t : tensor<1x6x6x4xf32>
}
