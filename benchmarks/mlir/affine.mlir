// Nests of affine loops: a producer and a consumer, a product, a window, a border, a triangle.
func.func @producer(%x: memref<8xf32>, %y: memref<8xf32>) {
  %two = arith.constant 2.0 : f32
  %new = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %a = affine.load %x[%i] : memref<8xf32>
    %b = arith.mulf %a, %two : f32
    affine.store %b, %new[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %a = affine.load %new[%i] : memref<8xf32>
    %b = arith.addf %a, %two : f32
    affine.store %b, %y[%i] : memref<8xf32>
  }
  memref.dealloc %new : memref<8xf32>
  return
}
func.func @product(%x: memref<4x6xf32>, %y: memref<6x3xf32>, %z: memref<4x3xf32>) {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 3 {
      affine.for %k = 0 to 6 {
        %a = affine.load %x[%i, %k] : memref<4x6xf32>
        %b = affine.load %y[%k, %j] : memref<6x3xf32>
        %p = arith.mulf %a, %b : f32
        %s = affine.load %z[%i, %j] : memref<4x3xf32>
        %t = arith.addf %s, %p : f32
        affine.store %t, %z[%i, %j] : memref<4x3xf32>
      }
    }
  }
  return
}
func.func @window(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %a = affine.load %x[%i] : memref<?xf32>
    %b = affine.load %x[%i + 1] : memref<?xf32>
    %s = arith.addf %a, %b : f32
    affine.store %s, %y[%i] : memref<?xf32>
  }
  return
}
func.func @border(%x: memref<8xf32>, %k: f32) {
  affine.for %i = 0 to 8 {
    affine.if affine_set<(d0) : (d0 - 2 >= 0, 5 - d0 >= 0)>(%i) {
      affine.store %k, %x[%i] : memref<8xf32>
    }
  }
  return
}
func.func @triangle(%x: memref<6x6xi32>, %k: i32) {
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {
      affine.store %k, %x[%i, %j] : memref<6x6xi32>
    }
  }
  return
}
func.func @sum(%x: memref<10xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %r = affine.for %i = 0 to 10 iter_args(%s = %zero) -> (i32) {
    %a = affine.load %x[%i] : memref<10xi32>
    %t = arith.addi %s, %a : i32
    affine.yield %t : i32
  }
  return %r : i32
}
func.func @parallel(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  affine.parallel (%i, %j) = (0, 0) to (4, 8) {
    %a = affine.load %x[%i, %j] : memref<4x8xf32>
    %b = arith.negf %a : f32
    affine.store %b, %y[%i, %j] : memref<4x8xf32>
  }
  return
}
func.func @steps(%x: memref<24xf32>, %k: f32) {
  affine.for %i = 2 to 22 step 3 {
    %c = arith.mulf %k, %k : f32
    affine.store %c, %x[%i] : memref<24xf32>
  }
  return
}
func.func @twice(%x: memref<6xf32>, %k: f32) -> f32 {
  affine.store %k, %x[2] : memref<6xf32>
  %a = affine.load %x[2] : memref<6xf32>
  %b = affine.load %x[2] : memref<6xf32>
  %s = arith.addf %a, %b : f32
  affine.store %s, %x[2] : memref<6xf32>
  return %s : f32
}
