#loc = loc("file.py":3:4)
#map = affine_map<() -> ()>
#map1 = affine_map<(d0, d1) -> (-d0, d0 - d1 * 3, (d0 + 1) ceildiv 2 - 7, -(d0 mod 2) + d1)>
#set = affine_set<(d0)[s0] : (d0 - s0 >= 0, d0 * 2 - 8 == 0)>
#sparse = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
"builtin.module"() ({
  "func.func"() <{function_type = () -> (), sym_name = "constants"}> ({
    %0 = "arith.constant"() <{value = dense<[[1, -2], [3, 127]]> : tensor<2x2xi8>}> : () -> tensor<2x2xi8>
    %1 = "arith.constant"() <{value = dense<true> : tensor<1000000x1000000xi1>}> : () -> tensor<1000000x1000000xi1>
    %2 = "arith.constant"() <{value = dense<[true, false, true]> : vector<3xi1>}> : () -> vector<3xi1>
    %3 = "arith.constant"() <{value = sparse<[[0, 0], [1, 3]], [1.500000e+00, -0.000000e+00]> : tensor<2x4xf16>}> : () -> tensor<2x4xf16>
    %4 = "arith.constant"() <{value = sparse<[[2, 1]], -7> : tensor<5x2xi32>}> : () -> tensor<5x2xi32>
    %5 = "arith.constant"() <{value = dense<[1.000000e+00, -2.000000e+00, 0x7F800000]> : tensor<3xf32>}> : () -> tensor<3xf32>
    %6 = "arith.constant"() <{value = dense<[(1.000000e+00,2.000000e+00), (-0.000000e+00,0x7FF8000000000000)]> : tensor<2xcomplex<f64>>}> : () -> tensor<2xcomplex<f64>>
    %7 = "arith.constant"() <{value = dense<> : tensor<0x4xf32>}> : () -> tensor<0x4xf32>
    %8 = "arith.constant"() <{value = dense<[0, -1, 9223372036854775807]> : tensor<3xindex>}> : () -> tensor<3xindex>
    %9 = "arith.constant"() <{value = -1 : i128}> : () -> i128
    %10 = "arith.constant"() <{value = dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F407F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A"> : tensor<103xi7>}> : () -> tensor<103xi7>
    %11 = "arith.constant"() <{value = dense_resource<weights> : tensor<2xi32>}> : () -> tensor<2xi32>
    "any.thing"() {a = array<i64: 1, -9223372036854775808>, b = array<f32: 1.000000e-01, 0xFFC00000>, c = array<i1: true, false>, d = array<i8>, e = [1, 2 : i8, 3.000000e+00, 4.500000e+00 : f16, "x", "y" : i32, unit, @f::@"g h", i32, 0xFFF0000000000001 : f64], f, "g h" = {i = {}, j}, k = "tab\09 quote\22 backslash\\ \C3\A9 newline\0A", l = #set, m = #map, n = #map1, o = strided<[1, ?], offset: 5>, p = 5 : ui8, q = -5 : si8, r = #loc, s = #any<"thing"> : i8, t = true} : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<*xf8E4M3FN>, memref<*xbf16, 1>, memref<?xi4, strided<[?], offset: 2>>, vector<4x[8]xf32>, vector<f64>, tuple<none, complex<f32>, (i1) -> ((index) -> ())>, !any.type<[1, "a>"], (b)>, tensor<2x2xf32, #sparse>, memref<1xf128, #gpu.address_space<workgroup>>, tensor<0x?xui16, "code">, f80, tf32, f6E2M3FN) -> ((i32) -> i32), sym_name = "types", sym_visibility = "private"}> ({
  }) : () -> ()
}) : () -> ()

{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000100000002000000"
    }
  }
#-}

