// Constants of all kinds.
#rows = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @constants() {
  %0 = arith.constant dense<[[1, -2], [3, 127]]> : tensor<2x2xi8>
  %1 = arith.constant dense<true> : tensor<1000000x1000000xi1>
  %2 = arith.constant dense<[true, false, true]> : vector<3xi1>
  %3 = arith.constant sparse<[[0, 0], [1, 3]], [1.5, -0.0]> : tensor<2x4xf16>
  %4 = arith.constant sparse<[[2, 1]], -7> : tensor<5x2xi32>
  %5 = arith.constant dense<"0x0000803F000000C00000807F"> : tensor<3xf32>
  %6 = arith.constant dense<[(1.0, 2.0), (-0.0, 0x7FF8000000000000)]> : tensor<2xcomplex<f64>>
  %7 = arith.constant dense<> : tensor<0x4xf32>
  %8 = arith.constant dense<[0, -1, 9223372036854775807]> : tensor<3xindex>
  %9 = arith.constant 340282366920938463463374607431768211455 : i128
  %10 = arith.constant dense<[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
    33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
    63, -64, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16, -17, -18, -19, -20, -21, -22, -23, -24,
    -25, -26, -27, -28, -29, -30, -31, -32, -33, -34, -35, -36, -37, -38]> : tensor<103xi7>
  %11 = arith.constant dense_resource<weights> : tensor<2xi32>
  "any.thing"() {
    a = array<i64: 1, -9223372036854775808>, b = array<f32: 0.1, 0xFFC00000>, c = array<i1: true, false>, d = array<i8>,
    e = [1, 2 : i8, 3.0, 4.5 : f16, "x", "y" : i32, unit, @f::@"g h", i32, 0xFFF0000000000001 : f64], f, "g h" = {"i" = {}, j},
    k = "tab\09 quote\22 backslash\\ \C3\A9 newline\0A", l = affine_set<(d0)[s0] : (d0 - s0 >= 0, d0 * 2 - 8 == 0)>,
    m = affine_map<() -> ()>, n = affine_map<(d0, d1) -> (-d0, d0 - d1 * 3, (d0 + 1) ceildiv 2 - 7, -(d0 mod 2) + d1)>,
    o = strided<[1, ?], offset: 5>, p = 5 : ui8, q = -5 : si8, r = loc("file.py":3:4), s = #any<"thing"> : i8, t = true
  } : () -> ()
  return
}
func.func private @types(
  tensor<*xf8E4M3FN>, memref<*xbf16, 1>, memref<?xi4, strided<[?], offset: 2>>, vector<4x[8]xf32>, vector<f64>,
  tuple<none, complex<f32>, (i1) -> ((index) -> ())>, !any.type<[1, "a>"], (b)>, tensor<2x2xf32, #rows>,
  memref<1xf128, #gpu.address_space<workgroup>>, tensor<0x?xui16, "code">, f80, tf32, f6E2M3FN) -> ((i32) -> i32)

{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000100000002000000"
    }
  }
#-}
