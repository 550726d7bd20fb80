"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x6x6x4xf32>, sym_name = "network"}> ({
  ^bb0(%arg0: tensor<1x8x8x3xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<4xf32>):
    %0 = "tosa.const"() <{values = dense<0.000000e+00> : tensor<1xf32>}> : () -> tensor<1xf32>
    %1 = "tosa.conv2d"(%arg0, %arg1, %arg2, %0, %0) <{acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}> : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x4xf32>
    %2 = "tosa.clamp"(%1) <{max_val = 6.000000e+00 : f32, min_val = 0.000000e+00 : f32, nan_mode = #tosa.nan_mode<PROPAGATE>}> : (tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
    %3 = "tosa.const_shape"() <{values = dense<[1, 6, 6, 4]> : tensor<4xindex>}> : () -> !tosa.shape<4>
    %4 = "tosa.reshape"(%2, %3) : (tensor<1x6x6x4xf32>, !tosa.shape<4>) -> tensor<1x6x6x4xf32>
    "func.return"(%4) : (tensor<1x6x6x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()

