// A product in tiles: the schedule at the end says how transform-interpreter cuts what it finds.
module attributes {transform.with_named_sequence} {
func.func @product(%x: tensor<8x6xf32>, %y: tensor<6x4xf32>, %acc: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %r = linalg.matmul ins(%x, %y : tensor<8x6xf32>, tensor<6x4xf32>) outs(%acc : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
func.func @product_of_any_size(%x: tensor<?x?xi32>, %y: tensor<?x?xi32>, %acc: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %r = linalg.matmul ins(%x, %y : tensor<?x?xi32>, tensor<?x?xi32>) outs(%acc : tensor<?x?xi32>) -> tensor<?x?xi32>
  return %r : tensor<?x?xi32>
}
func.func @elements(%x: tensor<10x4xf32>, %y: tensor<10x4xf32>, %to: tensor<10x4xf32>) -> tensor<10x4xf32> {
  %r = linalg.add ins(%x, %y : tensor<10x4xf32>, tensor<10x4xf32>) outs(%to : tensor<10x4xf32>) -> tensor<10x4xf32>
  return %r : tensor<10x4xf32>
}
transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
  %products = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
  %a, %i, %j = transform.structured.tile_using_for %products tile_sizes [2, 4, 0]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %sums = transform.structured.match ops{["linalg.add"]} in %module : (!transform.any_op) -> !transform.any_op
  %b, %l = transform.structured.tile_using_forall %sums tile_sizes [4, 0]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}
