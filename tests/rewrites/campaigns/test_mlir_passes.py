"""Programs that are drawn for passes of MLIR: always the same ones, readable, and put to passes one by one."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from chc.translation.refine import Options, refines
from ir_semantics.elements.terms import new_terms
from ir_semantics.mlir.convert import Converter, find_converter
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.semantics.arguments import arguments_of
from ir_semantics.mlir.semantics.function import meaning_of
from ir_semantics.mlir.semantics.program import Reading
from ir_semantics.mlir.semantics.values import NotCovered
from rewrites.campaigns.mlir.drawing import Example, drawn, smallest
from rewrites.campaigns.mlir.passes import PIPELINES, Outcome, is_new, outcomes
from rewrites.findings.mlir import STEPS, WrongStep, found
from smt_encodings.claims import Status

needs_mlir_opt = pytest.mark.skipif(find_converter() is None, reason="there is no mlir-opt here that runs passes")

SETTING = (80, 0, 4)
"""Examples, seed, and pipelines to choose from."""
FAKE = """#!{python}
import sys
if "--version" in sys.argv:
    print("LLVM version 22.9.0")
    sys.exit()
text = sys.stdin.read()
pipeline = " ".join(a for a in sys.argv if a.startswith("--pass-pipeline="))
if "unheard" in pipeline:
    sys.exit("<stdin>:1:1: error: 'unheard' does not refer to a registered pass or pass pipeline")
if "stumbling" in pipeline:
    sys.exit("<stdin>:1:1: error: failed to legalize")
if "falling" in pipeline:
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)
if "wrong" in pipeline:
    text = text.replace('"tosa.reverse"', '"tosa.identity"').replace(" <{{axis = 0 : i32}}>", "")
if "right" in pipeline:
    text = text.replace('"tosa.identity"', '"tosa.reverse"')
print(text, end="")
"""
REVERSED = """
"func.func"() <{function_type = (tensor<3xf32>) -> tensor<3xf32>, sym_name = "f"}> ({
^bb0(%x: tensor<3xf32>):
  %r = "tosa.reverse"(%x) <{axis = 0 : i32}> : (tensor<3xf32>) -> tensor<3xf32>
  "func.return"(%r) : (tensor<3xf32>) -> ()
}) : () -> ()
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Converter:
    path = tmp_path_factory.mktemp("fake") / "mlir-opt"
    path.write_text(FAKE.format(python=sys.executable))
    path.chmod(0o755)
    return Converter(str(path))


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return drawn(*SETTING)


def test_the_same_examples_for_a_seed(examples: list[Example]) -> None:
    assert examples == drawn(*SETTING) and len(set(examples)) > 60
    assert all(0 <= k < 4 for example in examples for k in example.pipelines)


def test_drawn_programs_have_a_meaning_in_both_forms_of_tosa(examples: list[Example]) -> None:
    """Both texts are read, and nearly all functions have a meaning; many operators are drawn."""
    seen, covered = Counter[str](), Counter[bool]()
    for example in examples:
        for new in (True, False):
            for function in read(example.program.text(new=new)).symbols():
                seen.update(o.name for o in function.regions[0].blocks[0].operations)
                try:
                    with new_terms():
                        meaning_of(function, arguments_of(function, Reading(), {}), Reading())
                    covered[True] += 1
                except NotCovered:
                    covered[False] += 1
    assert covered[True] > 9 * covered[False]
    assert len(seen) > 45 and {name.partition(".")[0] for name in seen} >= {"arith", "linalg", "math", "tensor", "tosa"}


def verdicts(fake: Converter, *passes: str) -> list[Outcome]:
    return list(outcomes(REVERSED, fake, [[(name, "") for name in passes]], 5.0))


def test_what_becomes_of_a_pass(fake: Converter) -> None:
    (good,) = verdicts(fake, "nothing")
    assert (good.verdict, good.release, good.pass_name) == ("same", "mlir-opt 22.9.0", "nothing")
    wrong, _ = verdicts(fake, "wrong", "nothing")
    assert wrong.verdict == "REFUTED" and wrong.function == "f" and "source" in wrong.reason
    assert wrong.operators == {"tosa.reverse"} and "tosa.identity" in wrong.target
    assert [o.verdict for o in verdicts(fake, "unheard", "nothing")] == ["absent"]
    assert [o.verdict for o in verdicts(fake, "stumbling", "nothing")] == ["refused"]
    assert [o.verdict for o in verdicts(fake, "falling", "nothing")] == ["crashed"]
    assert is_new("mlir-opt 22.1.8") and not is_new("mlir-opt 19.1.7")


def test_failures_are_made_smaller(examples: list[Example]) -> None:
    """The smallest program with a tile, from the first one that has one."""

    def tiles(example: Example) -> bool:
        return '"tosa.tile"' in example.program.text(new=True)

    first = next(e for e in examples if tiles(e))
    least = smallest(first, SETTING, tiles)
    assert tiles(least) and least.pipelines == (0,)
    (function,) = least.program.functions
    assert len(function.lines) <= 2 and len(least.program.text(new=True)) < len(first.program.text(new=True))


@needs_mlir_opt
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_pass_of_a_finding_gives_what_the_finding_says(step: WrongStep) -> None:
    """Where the mlir-opt that is here is one of those that the finding names; others may be repaired."""
    converter = find_converter()
    assert converter is not None
    if converter.release not in ("mlir-opt 19.1.7", "mlir-opt 22.1.8"):
        pytest.skip(f"the finding is of other releases than {converter.release}")
    before = converter.generic(step.before)
    after = converter.generic(before.text, step.passes.strip("`"))
    (target,), (stated,) = after.module.symbols(), read(step.after).symbols()
    assert found(step).counterexample
    assert refines(target, stated, Options()).status is refines(stated, target, Options()).status is Status.PROVED


def test_pipelines_are_lists_of_passes() -> None:
    from ilaverify.mlir.translation import passes_of

    assert len({name for text in PIPELINES for name, _ in passes_of(text)}) >= 24
