// Numbers: what folds, what is dead, what is expanded or narrowed.
func.func @folds(%x: i32, %y: i32) -> (i32, i32, i1) {
  %zero = arith.constant 0 : i32
  %eight = arith.constant 8 : i32
  %a = arith.addi %x, %zero : i32
  %b = arith.muli %a, %eight : i32
  %c = arith.subi %b, %b : i32
  %d = arith.xori %y, %c : i32
  %same = arith.cmpi eq, %d, %y : i32
  return %b, %d, %same : i32, i32, i1
}
func.func @quotients(%x: i32, %y: i32, %n: index) -> (i32, i32, index) {
  %four = arith.constant 4 : index
  %up = arith.ceildivsi %x, %y : i32
  %down = arith.floordivsi %x, %y : i32
  %blocks = arith.ceildivui %n, %four : index
  return %up, %down, %blocks : i32, i32, index
}
func.func @ranges(%x: i8, %held: i1) -> (i32, i1) {
  %hundred = arith.constant 100 : i32
  %thousand = arith.constant 1000 : i32
  %wide = arith.extui %x : i8 to i32
  %sum = arith.addi %wide, %hundred : i32
  %chosen = arith.select %held, %sum, %wide : i32
  %always = arith.cmpi ult, %chosen, %thousand : i32
  %rest = arith.remsi %sum, %thousand : i32
  return %rest, %always : i32, i1
}
func.func @floats(%x: f32, %y: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %a = arith.mulf %x, %one : f32
  %m = arith.maximumf %a, %y : f32
  %n = arith.minimumf %a, %y : f32
  %narrow = arith.truncf %m : f32 to bf16
  %back = arith.extf %narrow : bf16 to f32
  return %m, %n, %back : f32, f32, f32
}
func.func @branches(%held: i1, %x: i32, %y: i32) -> i32 {
  %p = arith.muli %x, %y : i32
  %s = arith.addi %x, %y : i32
  %r = scf.if %held -> i32 {
    %again = scf.if %held -> i32 {
      scf.yield %p : i32
    } else {
      scf.yield %s : i32
    }
    scf.yield %again : i32
  } else {
    %twice = arith.addi %s, %s : i32
    scf.yield %twice : i32
  }
  return %r : i32
}
func.func private @square(%x: i32) -> i32 {
  %r = arith.muli %x, %x : i32
  return %r : i32
}
func.func @called(%x: i32, %y: i32) -> i32 {
  %a = func.call @square(%x) : (i32) -> i32
  %b = func.call @square(%y) : (i32) -> i32
  %r = arith.addi %a, %b : i32
  return %r : i32
}
func.func @elementary(%x: f32, %y: f32) -> (f32, f32) {
  %p = arith.mulf %x, %y fastmath<contract> : f32
  %s = arith.addf %p, %x fastmath<contract> : f32
  %f = math.floor %s : f32
  %c = math.ceil %y : f32
  %r = math.copysign %f, %c : f32
  return %r, %c : f32, f32
}
