// Layers in linalg on tensors, of sizes that are numbers and of sizes that are not.
#both = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
#turned = affine_map<(i, j) -> (j, i)>
#unit = affine_map<(i, j) -> (0, j)>

// max(x * w + b, 0)
func.func @dense(%x: tensor<4x6xf32>, %w: tensor<6x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x3xf32>) outs(%start : tensor<4x3xf32>) -> tensor<4x3xf32>
  %s = linalg.generic {indexing_maps = [#both, #columns, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<4x3xf32>, tensor<3xf32>) outs(%empty : tensor<4x3xf32>) {
  ^bb0(%u: f32, %v: f32, %old: f32):
    %t = arith.addf %u, %v : f32
    linalg.yield %t : f32
  } -> tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x3xf32>) outs(%empty : tensor<4x3xf32>) {
  ^bb0(%u: f32, %old: f32):
    %t = arith.maximumf %u, %zero : f32
    linalg.yield %t : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
// (x + y) turned, times z
func.func @fused(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %first = tensor.empty(%m, %n) : tensor<?x?xf32>
  %second = tensor.empty(%n, %m) : tensor<?x?xf32>
  %s = linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%first : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#turned, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%s, %z : tensor<?x?xf32>, tensor<?x?xf32>) outs(%second : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
// exp(x - max) and the sums of its rows
func.func @softmax_parts(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%m) : tensor<?xf32>
  %whole = tensor.empty(%m) : tensor<?x8xf32>
  %lowest = linalg.fill ins(%low : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %largest = linalg.reduce { arith.maximumf } ins(%x : tensor<?x8xf32>) outs(%lowest : tensor<?xf32>) dimensions = [1]
  %e = linalg.generic {indexing_maps = [#both, #rows, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %largest : tensor<?x8xf32>, tensor<?xf32>) outs(%whole : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.generic {indexing_maps = [#both, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<?x8xf32>) outs(%start : tensor<?xf32>) {
  ^bb0(%a: f32, %old: f32):
    %t = arith.addf %old, %a : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %e, %sums : tensor<?x8xf32>, tensor<?xf32>
}
func.func @image(%x: tensor<1x6x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x2x2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<1x4x4x4xf32>
  %e2 = tensor.empty() : tensor<1x2x2x4xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %a = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x6x6x2xf32>, tensor<3x3x2x4xf32>)
      outs(%a : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %b = linalg.fill ins(%low : f32) outs(%e2 : tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%c, %window : tensor<1x4x4x4xf32>, tensor<2x2xf32>) outs(%b : tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  return %r : tensor<1x2x2x4xf32>
}
// sums of i8 products in i32
func.func @quantised(%x: tensor<4x8xi8>, %w: tensor<8x3xi8>, %acc: tensor<4x3xi32>) -> tensor<4x3xi32> {
  %r = linalg.matmul ins(%x, %w : tensor<4x8xi8>, tensor<8x3xi8>) outs(%acc : tensor<4x3xi32>) -> tensor<4x3xi32>
  return %r : tensor<4x3xi32>
}
func.func @batches(%x: tensor<2x?x4xf32>, %y: tensor<2x4x3xf32>, %acc: tensor<2x?x3xf32>) -> tensor<2x?x3xf32> {
  %r = linalg.batch_matmul ins(%x, %y : tensor<2x?x4xf32>, tensor<2x4x3xf32>) outs(%acc : tensor<2x?x3xf32>)
      -> tensor<2x?x3xf32>
  return %r : tensor<2x?x3xf32>
}
func.func @units(%x: tensor<1x5xf32>, %y: tensor<1x5xf32>) -> tensor<1x5xf32> {
  %empty = tensor.empty() : tensor<1x5xf32>
  %r = linalg.generic {indexing_maps = [#unit, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<1x5xf32>, tensor<1x5xf32>) outs(%empty : tensor<1x5xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<1x5xf32>
  return %r : tensor<1x5xf32>
}
func.func @named(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %to: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %a = linalg.add ins(%x, %y : tensor<?x4xf32>, tensor<?x4xf32>) outs(%x : tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = linalg.exp ins(%a : tensor<?x4xf32>) outs(%a : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.transpose ins(%b : tensor<?x4xf32>) outs(%to : tensor<4x?xf32>) permutation = [1, 0]
  return %r : tensor<4x?xf32>
}
func.func @scaled(%x: tensor<4x5xf32>, %k: f32) -> tensor<4x5xf32> {
  %empty = tensor.empty() : tensor<4x5xf32>
  %all = linalg.fill ins(%k : f32) outs(%empty : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.mul ins(%x, %all : tensor<4x5xf32>, tensor<4x5xf32>) outs(%empty : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
// a scalar in tensors of rank 0
func.func @scalar(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %empty = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%x, %y : tensor<f32>, tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
