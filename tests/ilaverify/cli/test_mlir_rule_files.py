"""Rules from MLIR as any other rules: proved, refuted, checked, admitted by the gate, and used by the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from ila_lang import extensions
from ilaverify.cli import main
from ilaverify.identity import environment
from ilaverify.modules import use_module
from rewrites.claims.registry import entries
from smt_encodings.claims import Status

MATRIX = "tensor<?x?xf32>"
TWO = f"({MATRIX}, {MATRIX}) -> {MATRIX}"
HEAD = f"""
    %zero = "arith.constant"() <{{value = 0 : index}}> : () -> index
    %one = "arith.constant"() <{{value = 1 : index}}> : () -> index
    %m = "tensor.dim"(%x, %zero) : ({MATRIX}, index) -> index
    %n = "tensor.dim"(%x, %one) : ({MATRIX}, index) -> index
    %e = "tensor.empty"(%n, %m) : (index, index) -> {MATRIX}"""


def transposed(result: str, operand: str) -> str:
    return f"""
    %{result} = "linalg.transpose"(%{operand}, %e) <{{permutation = array<i64: 1, 0>}}> ({{
    ^bb0(%p: f32, %q: f32):
      "linalg.yield"(%p) : (f32) -> ()
    }}) : {TWO}"""


def function(name: str, *lines: str) -> str:
    body = HEAD + "".join(lines)
    return f"""
  "func.func"() <{{function_type = {TWO}, sym_name = "{name}"}}> ({{
  ^bb0(%x: {MATRIX}, %y: {MATRIX}):{body}
    "func.return"(%r) : ({MATRIX}) -> ()
  }}) : () -> ()"""


def add(result: str, a: str, b: str) -> str:
    return f"""
    %{result} = "arith.addf"(%{a}, %{b}) : {TWO}"""


BEFORE = function("sums", transposed("a", "x"), transposed("b", "y"), add("r", "a", "b"))
AFTER = function("sums", add("s", "x", "y"), transposed("r", "s"))
WRONG = function("sums", add("s", "x", "x"), transposed("r", "s"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    before = list(extensions._modules)
    yield tmp_path
    extensions._modules[:] = before


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def rule_file(name: str, left: str, right: str) -> str:
    sides = [side.replace('"sums"', f'"{where}"') for side, where in ((left, "left"), (right, "right"))]
    Path(name).write_text(
        f'"builtin.module"() <{{sym_name = "sum of transposes"}}> ({{{"".join(sides)}\n}}) : () -> ()'
    )
    return name


def sum_of_transposes() -> Path:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [3, 5]) for n in "xy")
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0]),
        helper.make_node("Transpose", ["y"], ["b"], perm=[1, 0]),
        helper.make_node("Add", ["a", "b"], ["z"]),
    ]
    graph = helper.make_graph(nodes, "g", [x, y], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [5, 3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "m.onnx")
    return Path("m.onnx")


@pytest.mark.proof
def test_a_proved_pair_becomes_a_rule_that_the_compiler_uses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("before.mlir").write_text(BEFORE)
    Path("after.mlir").write_text(AFTER)
    code, out, _ = run(capsys, "tv", "before.mlir", "after.mlir", "--jobs", "1", "--rules", "rules.mlir")
    assert code == 0
    command = "ilaverify rule sums --module rules.mlir"
    assert f"sums: it is written as the rule sums; {command} says whether that is proved\n" in out
    code, out, _ = run(capsys, "rule", "sums", "--module", "rules.mlir", "-o", "proofs")
    assert code == 0 and "transpose(x0) + transpose(x1) = transpose(x0 + x1)" in out and "bit_exact" in out
    code, out, _ = run(capsys, "compile", str(sum_of_transposes()), "--target", "hlscnn", "-o", "out", "--no-store",
                       "--module", "rules.mlir")  # fmt: skip
    assert code == 0 and "rests on      1 certificate: sums\n" in out
    code, out, _ = run(capsys, "check", "out", "--module", "rules.mlir")
    assert code == 0 and out.endswith("2 accepted, 0 rejected\n"), out
    code, out, _ = run(capsys, "show", "sums", "--mlir", "--module", "rules.mlir")
    assert code == 0 and out.startswith('"builtin.module"() <{sym_name = "sums"}> ({\n')
    extensions._modules.clear()
    code, out, _ = run(capsys, "check", "out")
    assert code == 1 and "sums: there is no claim of this name" in out


def test_pairs_of_one_name_are_rules_of_several(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file, text in {"before.mlir": BEFORE, "after.mlir": AFTER}.items():
        Path(file).write_text("".join(text.replace('"sums"', f'"{name}"') for name in ("A", "a", "\\C3\\A9")))
    code, out, _ = run(capsys, "tv", "before.mlir", "after.mlir", "--jobs", "1", "--rules", "rules.mlir")
    assert code == 0
    for name, rule in {"A": "a", "a": "a-2", "-": "function"}.items():
        assert f"{name}: it is written as the rule {rule}; " in out
    code, out, _ = run(capsys, "list", "rule", "--module", "rules.mlir")
    assert code == 0 and all(re.search(rf"^ +{rule} ", out, re.MULTILINE) for rule in ("a", "a-2", "function"))


@pytest.mark.proof
def test_a_wrong_twin_is_refuted_and_not_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = rule_file("wrong.mlir", BEFORE, WRONG)
    code, out, _ = run(capsys, "rule", "sum-of-transposes", "--module", rules, "-o", "proofs")
    assert code == 1 and out.startswith("REFUTED  sum-of-transposes") and not list(Path("proofs").glob("*.cert.json"))
    code, out, _ = run(capsys, "prove", "sum-of-transposes", "--module", rules, "-o", "proofs", "--no-store")
    assert code == 1
    # a certificate of the right rule is none of the wrong one, though they have one name
    right = rule_file("right.mlir", BEFORE, AFTER)
    extensions._modules.clear()
    assert run(capsys, "rule", "sum-of-transposes", "--module", right, "-o", "proofs")[0] == 0
    extensions._modules.clear()
    arguments = ("--target", "hlscnn", "-o", "out", "--no-store", "--module", rules)
    code, out, _ = run(capsys, "compile", str(sum_of_transposes()), *arguments)
    assert code == 0 and "rests on      0 certificates" in out
    assert "sum-of-transposes: its certificate does not count" in Path("out/SUMMARY.md").read_text()


def test_bad_files_of_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pair.mlir").write_text(BEFORE)
    Path("half.mlir").write_text(BEFORE.replace('"sums"', '"left"'))
    unknown = "rule.domain = affine_set<(d0) : (d0 >= 0)>"
    Path("domain.mlir").write_text(
        BEFORE.replace('"sums"', '"left"').replace("}) : () -> ()", f"}}) {{{unknown}}} : () -> ()", 1)
        + AFTER.replace('"sums"', '"right"')
    )
    Path("broken.mlir").write_text('"func.func"(')
    rule = Path(rule_file("rule.mlir", BEFORE, AFTER)).read_text()
    said = '{rule.equality = "over_reals"} '
    Path("right.mlir").write_text(said.join(rule.rsplit(": () -> ()\n}", 1)).replace(said, f"{said}: () -> ()\n}}"))
    Path("module.mlir").write_text(f"{said}: () -> ()".join(rule.rsplit(": () -> ()", 1)))
    Path("nameless.mlir").write_text(rule.replace("sum of transposes", "\\C3\\A9"))
    for name, expected in {
        "absent.mlir": "absent.mlir: an MLIR file must be a readable file: No such file or directory",
        "pair.mlir": "pair.mlir must have a module with the functions @left and @right; it has none",
        "half.mlir": "half.mlir:2:3: func.func: a rule must have two functions, @left and @right",
        "domain.mlir": "domain.mlir:2:3: func.func: the attribute rule.domain is none of a rule, or has no such "
        "value; a rule may have rule.domain, an affine set with 4 dimensions (one for each ? and each index of the "
        "arguments), and rule.equality, one of ",
        "broken.mlir": "broken.mlir:1:13: ",
        "right.mlir": "func.func: the attribute rule.equality must be of the function @left",
        "module.mlir": "builtin.module: the attribute rule.equality must be of the function @left",
        "nameless.mlir": "a rule of nameless.mlir must have a name with letters or digits of ASCII: transpose(x0) + ",
    }.items():
        code, _, err = run(capsys, "list", "rule", "--module", name)
        assert code == 64 and expected in err, err
    extensions._modules.clear()
    code, _, err = run(capsys, "show", "flexasr_linear", "--mlir")
    assert (code, err) == (
        64,
        "ilaverify: --mlir writes rules on tensors, and flexasr_linear is none; see ilaverify list rule\n",
    )
    code, _, err = run(capsys, "show", "upsampling-twice", "--mlir")
    assert (code, err) == (
        64,
        "ilaverify: upsampling-twice cannot be written as MLIR: MLIR has no operator for upsample of the rule "
        "upsampling twice\n",
    )
    code, _, err = run(capsys, "tv", "pair.mlir", "pair.mlir", "--rules", "rules.txt")
    assert (code, err) == (
        64, "ilaverify: --rules must name a file with the suffix .mlir, which --module takes, not rules.txt\n"
    )  # fmt: skip


def test_a_file_of_rules_is_a_module(folder: Path) -> None:
    use_module(rule_file("some.mlir", BEFORE, AFTER))
    assert entries()["sum-of-transposes"].expected is Status.PROVED
    before = environment()["file some.mlir"]
    use_module(rule_file("some.mlir", BEFORE, WRONG))
    assert environment()["file some.mlir"] != before
    assert entries()["sum-of-transposes"].summary.endswith("= transpose(x0 + x0)")


def test_rules_of_one_name_are_named_with_their_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mine.mlir", "yours.mlir"):
        rule_file(name, BEFORE, AFTER)
    assert run(capsys, "list", "rule", "--module", "mine.mlir", "--module", "yours.mlir") == (
        64,
        "",
        "ilaverify: two claims have the name sum-of-transposes, in mine.mlir and in yours.mlir; rename one of them\n",
    )
