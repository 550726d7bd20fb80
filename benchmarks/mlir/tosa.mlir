// TOSA that all releases write alike.
func.func @elements(%x: tensor<3x4xf32>, %y: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %a = tosa.add %x, %y : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %b = tosa.sub %a, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %c = tosa.exp %b : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %d = tosa.abs %c : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = tosa.reciprocal %d : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %e : tensor<3x4xf32>
}
func.func @softmax(%x: tensor<?x5xf32>) -> tensor<?x5xf32> {
  %e = tosa.exp %x : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %s = tosa.reduce_sum %e {axis = 1 : i32} : (tensor<?x5xf32>) -> tensor<?x1xf32>
  %r = tosa.reciprocal %s : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %p = tosa.sub %e, %r : (tensor<?x5xf32>, tensor<?x1xf32>) -> tensor<?x5xf32>
  return %p : tensor<?x5xf32>
}
func.func @moved(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %a = tosa.reverse %x {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = tosa.reverse %a {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = tosa.concat %b, %y {axis = 0 : i32} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
func.func @chosen(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
  %more = tosa.greater %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %a = tosa.bitwise_and %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %b = tosa.bitwise_xor %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %r = tosa.select %more, %a, %b : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
func.func @integers(%x: tensor<3x4xi32>) -> tensor<3x1xi32> {
  %r = tosa.reduce_sum %x {axis = 1 : i32} : (tensor<3x4xi32>) -> tensor<3x1xi32>
  return %r : tensor<3x1xi32>
}
func.func @largest(%x: tensor<3x4xf32>) -> tensor<3x1xf32> {
  %r = tosa.reduce_max %x {axis = 1 : i32} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  return %r : tensor<3x1xf32>
}
func.func @pooled(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32> {
  %r = tosa.max_pool2d %x {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>}
    : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  return %r : tensor<1x2x2x2xf32>
}
func.func @cast(%x: tensor<4xf32>) -> tensor<4xi32> {
  %r = tosa.cast %x : (tensor<4xf32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
