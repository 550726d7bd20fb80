// Memory: globals, sub-views with strides, layouts, loads and stores, and nested loops with branches.
memref.global "private" constant @table : memref<2x3xf32> = dense<[[1.0, -2.5, 0.1], [3.0e10, 0x7F800000, -0.0]]>
memref.global @counter : memref<i64> = uninitialized
func.func @window(%m: memref<8x?xf32>, %i: index) -> f32 {
  %t = memref.get_global @table : memref<2x3xf32>
  %v = memref.subview %m[%i, 0] [2, 3] [2, 1] : memref<8x?xf32> to memref<2x3xf32, strided<[?, 1], offset: ?>>
  memref.copy %t, %v : memref<2x3xf32> to memref<2x3xf32, strided<[?, 1], offset: ?>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> (f32) {
    %x = memref.load %v[%k, %c1] : memref<2x3xf32, strided<[?, 1], offset: ?>>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %buffer = memref.alloc() : memref<4x4xi1, affine_map<(d0, d1) -> (d1, d0)>, 3>
  memref.dealloc %buffer : memref<4x4xi1, affine_map<(d0, d1) -> (d1, d0)>, 3>
  return %sum : f32
}
func.func @count(%n: index, %stop: i1) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  cf.cond_br %stop, ^exit(%i : index), ^body
^body:
  %next = arith.addi %i, %c1 : index
  %more = arith.cmpi ult, %next, %n : index
  cf.cond_br %more, ^head(%next : index), ^exit(%next : index)
^exit(%r: index):
  return %r : index
}
