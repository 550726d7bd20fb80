#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d1, d0)>
#map5 = affine_map<(d0, d1) -> (d0)>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?x16xf32>, tensor<16x?xf32>, index, index) -> tensor<?x?xf32>, sym_name = "product"}> ({
  ^bb0(%arg6: tensor<?x16xf32>, %arg7: tensor<16x?xf32>, %arg8: index, %arg9: index):
    %4 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %5 = "tensor.empty"(%arg8, %arg9) : (index, index) -> tensor<?x?xf32>
    %6 = "linalg.fill"(%4, %5) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg13: f32, %arg14: f32):
      "linalg.yield"(%arg13) : (f32) -> ()
    }) : (f32, tensor<?x?xf32>) -> tensor<?x?xf32>
    %7 = "linalg.matmul"(%arg6, %arg7, %6) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg10: f32, %arg11: f32, %arg12: f32):
      %8 = "arith.mulf"(%arg10, %arg11) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %9 = "arith.addf"(%arg12, %8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%9) : (f32) -> ()
    }) : (tensor<?x16xf32>, tensor<16x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
    "func.return"(%7) : (tensor<?x?xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x6xbf16>, tensor<6x4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>, sym_name = "rows"}> ({
  ^bb0(%arg0: tensor<4x6xbf16>, %arg1: tensor<6x4xbf16>, %arg2: tensor<4xbf16>):
    %0 = "linalg.generic"(%arg0, %arg1, %arg2) <{indexing_maps = [#map3, #map4, #map5], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg3: bf16, %arg4: bf16, %arg5: bf16):
      %1 = "arith.mulf"(%arg3, %arg4) <{fastmath = #arith.fastmath<none>}> : (bf16, bf16) -> bf16
      %2 = "linalg.index"() <{dim = 1 : i64}> : () -> index
      %3 = "arith.addf"(%arg5, %1) <{fastmath = #arith.fastmath<none>}> : (bf16, bf16) -> bf16
      "linalg.yield"(%3) : (bf16) -> ()
    }) : (tensor<4x6xbf16>, tensor<6x4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
    "func.return"(%0) : (tensor<4xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

