// Scalars of several formats, with flags, calls, and two functions that share names.
func.func private @unknown(i8, f32) -> (i8, f32)

func.func @clamp(%x: i8, %y: f32) -> (i8, f32) {
  %low = arith.constant -100 : i8
  %small = arith.cmpi slt, %x, %low : i8
  %kept = arith.select %small, %low, %x : i8
  %wide = arith.extf %y : f32 to f64
  %twice = arith.addf %wide, %wide fastmath<nnan, nsz> : f64
  %narrow = arith.truncf %twice : f64 to f32
  %sum = arith.addi %kept, %low overflow<nsw> : i8
  %r:2 = call @unknown(%sum, %narrow) : (i8, f32) -> (i8, f32)
  return %r#0, %r#1 : i8, f32
}

func.func @indices(%x: index) -> index {
  %0 = affine.apply affine_map<(d0)[s0] -> ((d0 * 3 - s0) floordiv 4 + d0 mod 5)>(%x)[%x]
  %c = arith.constant 7 : index
  %1 = arith.maxsi %0, %c : index
  return %1 : index
}
