"""MLIR: passes of ``mlir-opt`` that change what a program means, on small programs.

Each finding has the program before and after the pass, as the pass gave it; the pair is evaluated, and a repaired pair
proved, on every call.  No ``mlir-opt`` is needed: that a release gives this program is a test where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from chc.translation.refine import Options, refines
from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.semantics.program import Reading
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

from .finding import Finding, require

_RELEASES = "19.1.7 and 22.1.8"


@dataclass(frozen=True)
class WrongStep:
    """A program before and after a pass, in the generic form: one function.

    ``repair`` are texts of both programs, and what must stand in their place for the pair to be PROVED, in the
    ``reading``.  ``classified`` says whether it is a fault of the pass, a licence of MLIR, or our reading, and why.
    """

    name: str
    title: str
    passes: str
    claim: str
    before: str
    after: str
    repair: tuple[str, str]
    holds: str
    classified: str
    limits: str
    reading: Reading = field(default_factory=Reading)
    drawn: str = (
        "`ilaverify campaign mlir_passes` draws programs, {} on them, compares each function with what it was, and "
        "shrinks"
    )
    """How it was found; the braces stand for which passes were run."""


def found(step: WrongStep) -> Finding:
    """The finding, once its pair is REFUTED and its repaired pair PROVED."""
    pair = refines(_function(step.before), _function(step.after), Options(), Discharger())
    require(pair.status is Status.REFUTED, f"{step.name}: the pair must be REFUTED, not {pair.status.value}")
    old, new = step.repair
    before, after = (_function(text.replace(old, new)) for text in (step.before, step.after))
    repaired = refines(before, after, Options(step.reading), Discharger())
    require(repaired.status is Status.PROVED, f"{step.name}: the repaired pair must be PROVED, not {repaired.reason}")
    return Finding(
        name=step.name,
        title=step.title,
        claim=step.claim,
        method=step.drawn.format(f"runs {step.passes} of mlir-opt {_RELEASES}") + "; here the pair is evaluated again.",
        counterexample=pair.reason,
        evidence=(
            "Before the pass, in the generic form:",
            f"```mlir\n{step.before.strip()}\n```",
            "After it:",
            f"```mlir\n{step.after.strip()}\n```",
        ),
        holds=step.holds,
        status=f"REFUTED, evaluated on the inputs; repaired form PROVED by z3 and cvc5. {step.classified}",
        limits=step.limits,
    )


def _function(text: str) -> ir.Operation:
    (function,) = read(text).symbols()
    return function


MAX_POOL = WrongStep(
    name="mlir_max_pool",
    title="MLIR: max pooling of minus infinities is the lowest finite number after its lowering",
    passes="`tosa-to-linalg-named`",
    claim="`tosa-to-linalg-named` keeps the value of `tosa.max_pool2d`",
    before="""
"func.func"() <{function_type = (tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<1x1x1x1xf32>):
  %r = "tosa.max_pool2d"(%x) <{kernel = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}>
    : (tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  "func.return"(%r) : (tensor<1x1x1x1xf32>) -> ()
}) : () -> ()
""",
    after="""
"func.func"() <{function_type = (tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<1x1x1x1xf32>):
  %lowest = "arith.constant"() <{value = -3.40282347E+38 : f32}> : () -> f32
  %empty = "tensor.empty"() : () -> tensor<1x1x1x1xf32>
  %start = "linalg.fill"(%lowest, %empty) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    "linalg.yield"(%a) : (f32) -> ()
  }) : (f32, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %window = "tensor.empty"() : () -> tensor<1x1xf32>
  %r = "linalg.pooling_nhwc_max"(%x, %window, %start) <{dilations = dense<1> : vector<2xi64>,
    operandSegmentSizes = array<i32: 2, 1>, strides = dense<1> : vector<2xi64>}> ({
  ^bb0(%a: f32, %w: f32, %m: f32):
    %larger = "arith.maximumf"(%m, %a) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "linalg.yield"(%larger) : (f32) -> ()
  }) : (tensor<1x1x1x1xf32>, tensor<1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  "func.return"(%r) : (tensor<1x1x1x1xf32>) -> ()
}) : () -> ()
""",
    repair=("-3.40282347E+38", "0xFF800000"),
    holds="with the maximum started at minus infinity the pair is proved",
    classified="Fault of the pass: the least value of fp32 is minus infinity in the table of formats of TOSA 1.0.2, "
    "and the maximum of a window that holds nothing else is that.",
    limits="models without infinities in what they pool never show it. A reading in which the operator starts at "
    "the lowest finite number makes the lowering right, and the operator something else than a maximum.",
)

REDUCTIONS = WrongStep(
    name="mlir_reduce_max",
    title="MLIR: the largest of minus infinities is the lowest finite number after its lowering",
    passes="`tosa-to-linalg`",
    claim="`tosa-to-linalg` keeps the value of `tosa.reduce_max`",
    before="""
"func.func"() <{function_type = (tensor<2xf32>) -> tensor<1xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<2xf32>):
  %r = "tosa.reduce_max"(%x) <{axis = 0 : i32}> : (tensor<2xf32>) -> tensor<1xf32>
  "func.return"(%r) : (tensor<1xf32>) -> ()
}) : () -> ()
""",
    after="""
"func.func"() <{function_type = (tensor<2xf32>) -> tensor<1xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<2xf32>):
  %empty = "tensor.empty"() : () -> tensor<f32>
  %lowest = "arith.constant"() <{value = -3.40282347E+38 : f32}> : () -> f32
  %start = "linalg.fill"(%lowest, %empty) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    "linalg.yield"(%a) : (f32) -> ()
  }) : (f32, tensor<f32>) -> tensor<f32>
  %m = "linalg.reduce"(%x, %start) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: f32, %b: f32):
    %larger = "arith.maximumf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "linalg.yield"(%larger) : (f32) -> ()
  }) : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  %r = "tensor.expand_shape"(%m) <{reassociation = [], static_output_shape = array<i64: 1>}>
    : (tensor<f32>) -> tensor<1xf32>
  "func.return"(%r) : (tensor<1xf32>) -> ()
}) : () -> ()
""",
    repair=("-3.40282347E+38", "0xFF800000"),
    holds="with the maximum started at minus infinity the pair is proved",
    classified="Fault of the pass: TOSA 1.0.2 starts REDUCE_MAX at the least value of the type, which is minus "
    "infinity in its table of formats. The authors know (llvm/llvm-project, pull request 222140).",
    limits="data without infinities never show it. A reading in which the operator starts at the lowest finite number "
    "makes the lowering right, and the largest of two numbers none of them. The campaign refutes "
    "`tosa.reduce_min` likewise, whose lowering starts at the largest finite number.",
)

ONE_SUMMAND = WrongStep(
    name="mlir_reduce_sum",
    title="MLIR: the sum of one number keeps the sign of a zero when it is folded, and loses it when it is lowered",
    passes="`canonicalize`",
    claim="`canonicalize` keeps the value of `tosa.reduce_sum`, which starts at +0.0",
    before="""
"func.func"() <{function_type = (tensor<1xf32>) -> tensor<1xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<1xf32>):
  %r = "tosa.reduce_sum"(%x) <{axis = 0 : i32}> : (tensor<1xf32>) -> tensor<1xf32>
  "func.return"(%r) : (tensor<1xf32>) -> ()
}) : () -> ()
""",
    after="""
"func.func"() <{function_type = (tensor<1xf32>) -> tensor<1xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<1xf32>):
  "func.return"(%x) : (tensor<1xf32>) -> ()
}) : () -> ()
""",
    repair=("", ""),
    reading=Reading(sums_start_at_minus_zero=True),
    holds="read with `--sums-start-at-minus-zero` the pair is proved",
    classified="Fault or reading: sums start at +0.0, as we read TOSA 1.0. No start makes both this pass and "
    "`tosa-to-linalg` right.",
    limits="only the sign of a zero differs. With the other reading, `tosa-to-linalg` is the pass that is refuted "
    "(docs/how-to/mlir.md). Every pass that folds operations on its way does the same as `canonicalize`.",
)
MAX_NUM = WrongStep(
    name="mlir_maxnum",
    title="MLIR: of two zeros, the expansion of maxnumf gives the second one",
    passes="`arith-expand`",
    claim="`arith-expand` keeps the value of `arith.maxnumf`, -0.0 being less than +0.0",
    before="""
"func.func"() <{function_type = (f32) -> f32, sym_name = "f"}> ({
^bb0(%x: f32):
  %y = "arith.negf"(%x) : (f32) -> f32
  %r = "arith.maxnumf"(%x, %y) : (f32, f32) -> f32
  "func.return"(%r) : (f32) -> ()
}) : () -> ()
""",
    after="""
"func.func"() <{function_type = (f32) -> f32, sym_name = "f"}> ({
^bb0(%x: f32):
  %y = "arith.negf"(%x) : (f32) -> f32
  %greater = "arith.cmpf"(%x, %y) <{predicate = 9 : i64}> : (f32, f32) -> i1
  %larger = "arith.select"(%greater, %x, %y) : (i1, f32, f32) -> f32
  %nan = "arith.cmpf"(%x, %x) <{predicate = 14 : i64}> : (f32, f32) -> i1
  %r = "arith.select"(%nan, %y, %larger) : (i1, f32, f32) -> f32
  "func.return"(%r) : (f32) -> ()
}) : () -> ()
""",
    repair=('"arith.negf"(%x) : (f32)', '"arith.constant"() <{value = 1.0 : f32}> : ()'),
    holds="with the constant 1 as second operand the pair is proved",
    classified="Licence: maxnumf follows LLVM's maxnum, which leaves open which of two zeros it gives; our reading, "
    "which stands with each claim, takes the positive one.",
    limits="the pass is not wrong. `tv` says REFUTED, or UNKNOWN, of each pass that makes use of this licence.",
)

DATA_COPY = WrongStep(
    name="mlir_data_copy",
    title="MLIR: what a loop steps over in a buffer is overwritten by what was never written",
    passes="`affine-data-copy-generate{fast-mem-space=0 generate-dma=0}`",
    claim="`affine-data-copy-generate` keeps what a function leaves in memory",
    before="""
"func.func"() <{function_type = (memref<3xf32>, f32) -> (), sym_name = "f"}> ({
^bb0(%x: memref<3xf32>, %k: f32):
  "affine.for"() <{lowerBoundMap = affine_map<() -> (0)>, operandSegmentSizes = array<i32: 0, 0, 0>,
    step = 2 : index, upperBoundMap = affine_map<() -> (3)>}> ({
  ^bb0(%i: index):
    "affine.store"(%k, %x, %i) <{map = affine_map<(d0) -> (d0)>}> : (f32, memref<3xf32>, index) -> ()
    "affine.yield"() : () -> ()
  }) : () -> ()
  "func.return"() : () -> ()
}) : () -> ()
""",
    after="""
"func.func"() <{function_type = (memref<3xf32>, f32) -> (), sym_name = "f"}> ({
^bb0(%x: memref<3xf32>, %k: f32):
  %copy = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<3xf32>
  "affine.for"() <{lowerBoundMap = affine_map<() -> (0)>, operandSegmentSizes = array<i32: 0, 0, 0>,
    step = 2 : index, upperBoundMap = affine_map<() -> (3)>}> ({
  ^bb0(%i: index):
    "affine.store"(%k, %copy, %i) <{map = affine_map<(d0) -> (d0)>}> : (f32, memref<3xf32>, index) -> ()
    "affine.yield"() : () -> ()
  }) : () -> ()
  "affine.for"() <{lowerBoundMap = affine_map<() -> (0)>, operandSegmentSizes = array<i32: 0, 0, 0>,
    step = 1 : index, upperBoundMap = affine_map<() -> (3)>}> ({
  ^bb0(%j: index):
    %c = "affine.load"(%copy, %j) <{map = affine_map<(d0) -> (d0)>}> : (memref<3xf32>, index) -> f32
    "affine.store"(%c, %x, %j) <{map = affine_map<(d0) -> (d0)>}> : (f32, memref<3xf32>, index) -> ()
    "affine.yield"() : () -> ()
  }) : () -> ()
  "memref.dealloc"(%copy) : (memref<3xf32>) -> ()
  "func.return"() : () -> ()
}) : () -> ()
""",
    repair=("step = 2", "step = 1"),
    holds="where the loop writes each element the pair is proved",
    classified="Fault of the pass: it copies back all between the first and the last element that is written, and "
    "fills its copy only where the loop reads. A program that was run shows it, too; the authors know since 2022 "
    "(llvm/llvm-project, issue 54994).",
    limits="loops without gaps, and those that also read what they write, are copied as they should be.",
    drawn="`python -m benchmarks.mlir_passes benchmarks/mlir` {} on programs of this repository, and compares each "
    "function with what it was",
)

STEPS = (MAX_POOL, REDUCTIONS, ONE_SUMMAND, MAX_NUM, DATA_COPY)
FINDERS: dict[str, Callable[[], Finding]] = {step.name: partial(found, step) for step in STEPS}
"""The functions that find them, by name."""
