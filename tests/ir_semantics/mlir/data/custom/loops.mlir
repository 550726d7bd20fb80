// Matrix product, fill, a generic reduction and a transposed elementwise loop, of symbolic sizes.
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j, i)>
#sum = affine_map<(i, j) -> (i)>
func.func @product(%a: tensor<?x16xf32>, %b: tensor<16x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x16xf32>, tensor<16x?xf32>) outs(%start : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @rows(%a: tensor<4x6xbf16>, %b: tensor<6x4xbf16>, %acc: tensor<4xbf16>) -> tensor<4xbf16> {
  %r = linalg.generic {indexing_maps = [#rows, #columns, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : tensor<4x6xbf16>, tensor<6x4xbf16>) outs(%acc : tensor<4xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %old: bf16):
    %p = arith.mulf %x, %y : bf16
    %i = linalg.index 1 : index
    %s = arith.addf %old, %p : bf16
    linalg.yield %s : bf16
  } -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}
