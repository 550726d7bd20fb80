// Memory: new buffers, views of buffers, and operators of linalg that write in place.
#both = affine_map<(i, j) -> (i, j)>
func.func @through_a_buffer(%x: memref<4x5xf32>, %y: memref<4x5xf32>, %out: memref<4x5xf32>) {
  %sum = memref.alloc() : memref<4x5xf32>
  linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<4x5xf32>, memref<4x5xf32>) outs(%sum : memref<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %y : memref<4x5xf32>, memref<4x5xf32>) outs(%out : memref<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  }
  memref.dealloc %sum : memref<4x5xf32>
  return
}
func.func @product(%x: memref<4x6xf32>, %y: memref<6x3xf32>, %out: memref<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<4x3xf32>)
  linalg.matmul ins(%x, %y : memref<4x6xf32>, memref<6x3xf32>) outs(%out : memref<4x3xf32>)
  return
}
func.func @products(%x: memref<?x?xi32>, %y: memref<?x?xi32>, %out: memref<?x?xi32>) {
  linalg.matmul ins(%x, %y : memref<?x?xi32>, memref<?x?xi32>) outs(%out : memref<?x?xi32>)
  return
}
func.func @window(%m: memref<8x8xf32>, %i: index, %j: index) -> f32 {
  %c1 = arith.constant 1 : index
  %v = memref.subview %m[%i, %j] [3, 4] [1, 1] : memref<8x8xf32> to memref<3x4xf32, strided<[8, 1], offset: ?>>
  %r = memref.load %v[%c1, %c1] : memref<3x4xf32, strided<[8, 1], offset: ?>>
  return %r : f32
}
func.func @copies(%x: memref<4xf32>, %out: memref<4xf32>) {
  %new = memref.alloca() : memref<4xf32>
  memref.copy %x, %new : memref<4xf32> to memref<4xf32>
  memref.copy %new, %out : memref<4xf32> to memref<4xf32>
  return
}
func.func @cell(%x: f32) -> f32 {
  %new = memref.alloca() : memref<f32>
  memref.store %x, %new[] : memref<f32>
  %old = memref.load %new[] : memref<f32>
  %twice = arith.addf %old, %old : f32
  memref.store %twice, %new[] : memref<f32>
  %r = memref.load %new[] : memref<f32>
  return %r : f32
}
func.func @reshaped(%m: memref<4x6xf32>, %i: index) -> f32 {
  %flat = memref.collapse_shape %m [[0, 1]] : memref<4x6xf32> into memref<24xf32>
  %r = memref.load %flat[%i] : memref<24xf32>
  return %r : f32
}
func.func @turned(%x: memref<4x6xf32>, %out: memref<6x4xf32>) {
  linalg.transpose ins(%x : memref<4x6xf32>) outs(%out : memref<6x4xf32>) permutation = [1, 0]
  return
}
