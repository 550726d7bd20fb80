// Loops of scf and affine, in order and parallel, over buffers and over tensors.
func.func @scaled(%x: memref<?xf32>, %out: memref<?xf32>, %k: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xf32>
    %invariant = arith.mulf %k, %k : f32
    %b = arith.mulf %a, %invariant : f32
    memref.store %b, %out[%i] : memref<?xf32>
  }
  return
}
func.func @blocks(%x: memref<10xi32>, %k: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c10 = arith.constant 10 : index
  scf.for %i = %c0 to %c10 step %c4 {
    %left = arith.subi %c10, %i : index
    %size = arith.minsi %left, %c4 : index
    scf.for %j = %c0 to %size step %c1 {
      %at = arith.addi %i, %j : index
      %a = memref.load %x[%at] : memref<10xi32>
      %b = arith.addi %a, %k : i32
      memref.store %b, %x[%at] : memref<10xi32>
    }
  }
  return
}
func.func @sum(%x: tensor<?xi32>, %start: i32) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> (i32) {
    %a = tensor.extract %x[%i] : tensor<?xi32>
    %t = arith.addi %s, %a : i32
    scf.yield %t : i32
  }
  return %r : i32
}
func.func @strides(%x: memref<9xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c9 step %c2 iter_args(%s = %zero) -> (f32) {
    %a = memref.load %x[%i] : memref<9xf32>
    %t = arith.addf %s, %a : f32
    scf.yield %t : f32
  }
  return %r : f32
}
func.func @filled(%t: tensor<?xf32>, %k: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> (tensor<?xf32>) {
    %a = tensor.extract %s[%i] : tensor<?xf32>
    %b = arith.mulf %a, %k : f32
    %new = tensor.insert %b into %s[%i] : tensor<?xf32>
    scf.yield %new : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @parallel(%x: memref<6x8xf32>, %y: memref<6x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %new = memref.alloc() : memref<6x8xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%c6, %c8) step (%c1, %c1) {
    %a = memref.load %x[%i, %j] : memref<6x8xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %new[%i, %j] : memref<6x8xf32>
    scf.reduce
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%c6, %c8) step (%c1, %c1) {
    %a = memref.load %new[%i, %j] : memref<6x8xf32>
    %b = arith.negf %a : f32
    memref.store %b, %y[%i, %j] : memref<6x8xf32>
    scf.reduce
  }
  return
}
func.func @total(%x: memref<?xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> i32 {
    %a = memref.load %x[%i] : memref<?xi32>
    scf.reduce(%a : i32) {
    ^bb0(%s: i32, %t: i32):
      %u = arith.addi %s, %t : i32
      scf.reduce.return %u : i32
    }
  }
  return %r : i32
}
func.func @tiles(%x: tensor<8x6xf32>, %to: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %r = scf.forall (%i) = (0) to (8) step (2) shared_outs(%t = %to) -> (tensor<8x6xf32>) {
    %part = tensor.extract_slice %x[%i, 0] [2, 6] [1, 1] : tensor<8x6xf32> to tensor<2x6xf32>
    %n = arith.negf %part : tensor<2x6xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %t[%i, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<8x6xf32>
    }
  }
  return %r : tensor<8x6xf32>
}
func.func @counted(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.while (%i = %zero) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %one : i32
    scf.yield %next : i32
  }
  return %r : i32
}
