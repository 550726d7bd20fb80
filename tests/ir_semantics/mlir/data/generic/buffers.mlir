#map = affine_map<(d0, d1) -> (d1, d0)>
"builtin.module"() ({
  "memref.global"() <{constant, initial_value = dense<[[1.000000e+00, -2.500000e+00, 1.000000e-01], [3.000000e+10, 0x7F800000, -0.000000e+00]]> : tensor<2x3xf32>, sym_name = "table", sym_visibility = "private", type = memref<2x3xf32>}> : () -> ()
  "memref.global"() <{initial_value, sym_name = "counter", type = memref<i64>}> : () -> ()
  "func.func"() <{function_type = (memref<8x?xf32>, index) -> f32, sym_name = "window"}> ({
  ^bb0(%arg2: memref<8x?xf32>, %arg3: index):
    %6 = "memref.get_global"() <{name = @table}> : () -> memref<2x3xf32>
    %7 = "memref.subview"(%arg2, %arg3) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 2, 3>, static_strides = array<i64: 2, 1>}> : (memref<8x?xf32>, index) -> memref<2x3xf32, strided<[?, 1], offset: ?>>
    "memref.copy"(%6, %7) : (memref<2x3xf32>, memref<2x3xf32, strided<[?, 1], offset: ?>>) -> ()
    %8 = "arith.constant"() <{value = 0 : index}> : () -> index
    %9 = "arith.constant"() <{value = 1 : index}> : () -> index
    %10 = "arith.constant"() <{value = 2 : index}> : () -> index
    %11 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %12 = "scf.for"(%8, %10, %9, %11) ({
    ^bb0(%arg4: index, %arg5: f32):
      %14 = "memref.load"(%7, %arg4, %9) : (memref<2x3xf32, strided<[?, 1], offset: ?>>, index, index) -> f32
      %15 = "arith.addf"(%arg5, %14) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "scf.yield"(%15) : (f32) -> ()
    }) : (index, index, index, f32) -> f32
    %13 = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4x4xi1, #map, 3>
    "memref.dealloc"(%13) : (memref<4x4xi1, #map, 3>) -> ()
    "func.return"(%12) : (f32) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (index, i1) -> index, sym_name = "count"}> ({
  ^bb0(%arg0: index, %arg1: i1):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    "cf.br"(%0)[^bb1] : (index) -> ()
  ^bb1(%2: index):  // 2 preds: ^bb0, ^bb2
    "cf.cond_br"(%arg1, %2)[^bb3, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, index) -> ()
  ^bb2:  // pred: ^bb1
    %3 = "arith.addi"(%2, %1) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    %4 = "arith.cmpi"(%3, %arg0) <{predicate = 6 : i64}> : (index, index) -> i1
    "cf.cond_br"(%4, %3, %3)[^bb1, ^bb3] <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (i1, index, index) -> ()
  ^bb3(%5: index):  // 2 preds: ^bb1, ^bb2
    "func.return"(%5) : (index) -> ()
  }) : () -> ()
}) : () -> ()

