// Tensors that are cut, joined, padded and reshaped.
func.func @slices(%x: tensor<8x16xf32>) -> tensor<2x4xf32> {
  %a = tensor.extract_slice %x[2, 4] [4, 8] [1, 1] : tensor<8x16xf32> to tensor<4x8xf32>
  %b = tensor.extract_slice %a[1, 2] [2, 4] [1, 1] : tensor<4x8xf32> to tensor<2x4xf32>
  return %b : tensor<2x4xf32>
}
func.func @in_place(%x: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  %part = tensor.extract_slice %x[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %r = tensor.insert_slice %part into %x[%i] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @nested(%x: tensor<6x?xf32>, %y: tensor<2x?xf32>) -> tensor<6x?xf32> {
  %c1 = arith.constant 1 : index
  %size = tensor.dim %y, %c1 : tensor<2x?xf32>
  %part = tensor.extract_slice %x[2, 0] [3, %size] [1, 1] : tensor<6x?xf32> to tensor<3x?xf32>
  %new = tensor.insert_slice %y into %part[1, 0] [2, %size] [1, 1] : tensor<2x?xf32> into tensor<3x?xf32>
  %r = tensor.insert_slice %new into %x[2, 0] [3, %size] [1, 1] : tensor<3x?xf32> into tensor<6x?xf32>
  return %r : tensor<6x?xf32>
}
func.func @padded(%x: tensor<?x6xf32>, %low: index) -> tensor<?x9xf32> {
  %zero = arith.constant 0.0 : f32
  %r = tensor.pad %x low[%low, 1] high[2, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x6xf32> to tensor<?x9xf32>
  return %r : tensor<?x9xf32>
}
func.func @joined(%x: tensor<3x4xi32>, %y: tensor<2x4xi32>) -> tensor<5x4xi32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<3x4xi32>, tensor<2x4xi32>) -> tensor<5x4xi32>
  return %r : tensor<5x4xi32>
}
func.func @reshaped(%x: tensor<4x6xf32>) -> tensor<2x2x6xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %r = tensor.expand_shape %flat [[0, 1, 2]] output_shape [2, 2, 6] : tensor<24xf32> into tensor<2x2x6xf32>
  return %r : tensor<2x2x6xf32>
}
func.func @made(%n: index) -> (f32, index, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %t = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %k = arith.addi %i, %j : index
    %w = arith.index_cast %k : index to i32
    %f = arith.sitofp %w : i32 to f32
    %g = arith.mulf %f, %half : f32
    tensor.yield %g : f32
  } : tensor<?x4xf32>
  %x = tensor.extract %t[%c0, %c1] : tensor<?x4xf32>
  %size = tensor.dim %t, %c0 : tensor<?x4xf32>
  return %x, %size, %t : f32, index, tensor<?x4xf32>
}
func.func @casts(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %static = tensor.cast %x : tensor<?x4xf32> to tensor<3x4xf32>
  %n = arith.negf %static : tensor<3x4xf32>
  %r = tensor.cast %n : tensor<3x4xf32> to tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
func.func @elements(%x: tensor<4x4xi32>, %y: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %s = arith.addi %x, %y : tensor<4x4xi32>
  %more = arith.cmpi sgt, %s, %y : tensor<4x4xi32>
  %r = arith.select %more, %x, %s : tensor<4x4xi1>, tensor<4x4xi32>
  return %r : tensor<4x4xi32>
}
