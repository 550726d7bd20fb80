#map = affine_map<(d0)[s0] -> ((d0 * 3 - s0) floordiv 4 + d0 mod 5)>
"builtin.module"() ({
  "func.func"() <{function_type = (i8, f32) -> (i8, f32), sym_name = "unknown", sym_visibility = "private"}> ({
  }) : () -> ()
  "func.func"() <{function_type = (i8, f32) -> (i8, f32), sym_name = "clamp"}> ({
  ^bb0(%arg1: i8, %arg2: f32):
    %3 = "arith.constant"() <{value = -100 : i8}> : () -> i8
    %4 = "arith.cmpi"(%arg1, %3) <{predicate = 2 : i64}> : (i8, i8) -> i1
    %5 = "arith.select"(%4, %3, %arg1) : (i1, i8, i8) -> i8
    %6 = "arith.extf"(%arg2) : (f32) -> f64
    %7 = "arith.addf"(%6, %6) <{fastmath = #arith.fastmath<nnan,nsz>}> : (f64, f64) -> f64
    %8 = "arith.truncf"(%7) : (f64) -> f32
    %9 = "arith.addi"(%5, %3) <{overflowFlags = #arith.overflow<nsw>}> : (i8, i8) -> i8
    %10:2 = "func.call"(%9, %8) <{callee = @unknown}> : (i8, f32) -> (i8, f32)
    "func.return"(%10#0, %10#1) : (i8, f32) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (index) -> index, sym_name = "indices"}> ({
  ^bb0(%arg0: index):
    %0 = "affine.apply"(%arg0, %arg0) <{map = #map}> : (index, index) -> index
    %1 = "arith.constant"() <{value = 7 : index}> : () -> index
    %2 = "arith.maxsi"(%0, %1) : (index, index) -> index
    "func.return"(%2) : (index) -> ()
  }) : () -> ()
}) : () -> ()

