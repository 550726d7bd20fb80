"""The runner of mlir-tv's suite, on pairs of our own in the same form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.mlir_tv import READINGS, Row, main, pairs_of, remaining, respelled

ADD = '%r = "arith.addi"(%x, %y) : (i32, i32) -> i32'
SWAPPED = '%r = "arith.addi"(%y, %x) : (i32, i32) -> i32'
SUBTRACT = '%r = "arith.subi"(%x, %y) : (i32, i32) -> i32'
DIVIDE_BY_ZERO = (
    '%z = "arith.constant"() <{value = 0 : i32}> : () -> i32\n%r = "arith.divui"(%x, %z) : (i32, i32) -> i32'
)


def pair(folder: Path, name: str, head: str, source: str, target: str) -> None:
    for side, body in (("src", source), ("tgt", target)):
        path = folder / "tests" / f"{name}.{side}.mlir"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'{head}\n"func.func"() <{{function_type = (i32, i32) -> i32, sym_name = "f"}}> ({{\n'
            f'^bb0(%x: i32, %y: i32):\n{body}\n"func.return"(%r) : (i32) -> ()\n}}) : () -> ()\n',
            encoding="utf-8",
        )


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair(tmp_path, "a/good", "// VERIFY\n", ADD, SWAPPED)
    pair(tmp_path, "a/bad", "// VERIFY-INCORRECT\n", ADD, SUBTRACT)
    pair(tmp_path, "b/undefined", '// EXPECT: "correct (source is always undefined)"\n', DIVIDE_BY_ZERO, ADD)
    pair(tmp_path, "b/unknown", "// VERIFY\n", ADD.replace("arith.addi", "any.thing"), ADD)
    pair(tmp_path, "b/unread", "// VERIFY\n", ADD, "%")
    assert main([str(tmp_path), "--json", str(tmp_path / "rows.json"), "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    rows = {row["name"]: row for row in json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "a/bad": "REFUTED",
        "a/good": "PROVED",
        "b/undefined": "VACUOUS",
        "b/unknown": "UNKNOWN",
        "b/unread": "NOT READ",
    }
    assert rows["a/bad"]["selves"] == ["PROVED", "PROVED"]
    assert "| b/unknown | UNKNOWN (open) | PROVED |" in out
    assert "* 3 as expected, 2 open, 0 wrong, 0 read otherwise" in out


def test_a_choice_of_no_test_is_told_from_a_folder_without_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for message in (f"{tmp_path} must hold pairs *.src.mlir and *.tgt.mlir, and it holds none\n",
                    "--only must be in the name of a test, such as a/good, and 'b/' is in none\n"):  # fmt: skip
        with pytest.raises(SystemExit):
            main([str(tmp_path), "--only", "b/"])
        assert capsys.readouterr().err.endswith(f"error: {message}")
        pair(tmp_path, "a/good", "// VERIFY\n", ADD, SWAPPED)


def test_a_wrong_verdict_is_said_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair(tmp_path, "expected-otherwise", "// VERIFY\n", ADD, SUBTRACT)
    assert main([str(tmp_path), "--jobs", "1"]) == 1
    assert "| expected-otherwise | REFUTED **WRONG** | PROVED |" in capsys.readouterr().out


def test_what_is_expected(tmp_path: Path) -> None:
    pair(tmp_path, "x", "// VERIFY\n// ARGS: -use-neg-zero --associative", ADD, ADD)
    pair(tmp_path, "y", "// UNSUPPORTED", ADD, ADD)
    x, y = pairs_of(tmp_path)
    assert (x.name, x.expected, x.options) == ("x", "PROVED", ("associative", "use-neg-zero"))
    assert (y.expected, y.options) == ("", ())


@pytest.mark.parametrize(
    ("expected", "options", "verdict", "selves", "kind"),
    [
        ("PROVED", (), "PROVED", ("PROVED", "PROVED"), "as expected"),
        ("PROVED", (), "VACUOUS", (), "as expected"),
        ("VACUOUS", (), "PROVED", (), "as expected"),
        ("REFUTED", (), "VACUOUS", (), "open"),
        ("REFUTED", (), "PROVED", (), "wrong"),
        ("PROVED", (), "REFUTED", (), "wrong"),
        ("PROVED", ("associative",), "REFUTED", (), "open"),
        ("", (), "REFUTED", (), ""),
        ("REFUTED", (), "REFUTED", ("REFUTED", "PROVED"), "wrong"),
    ],
)
def test_kinds_of_rows(
    expected: str, options: tuple[str, ...], verdict: str, selves: tuple[str, ...], kind: str
) -> None:
    assert Row("x", expected, options, verdict, 0.0, "", selves).kind == kind


def test_tests_that_are_read_otherwise_are_counted_apart() -> None:
    name = next(iter(READINGS))
    kinds = [Row(name, "PROVED", (), v, 0.0, "", s).kind for v, s in (("REFUTED", ()), ("PROVED", ()), ("UNKNOWN", ()))]
    assert kinds == ["read otherwise", "as expected", "open"]
    assert Row(name, "PROVED", (), "REFUTED", 0.0, "", ("REFUTED",)).kind == "wrong"
    (_, _, line, _) = remaining([Row(name, "PROVED", (), "REFUTED", 0.0, "with x = 0")])
    assert line == f"| {name} | REFUTED | PROVED | {READINGS[name][1][:160]} |"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('iterator_types = ["parallel", "window"]', 'iterator_types = ["parallel", "reduction"]'),
        (
            "tensor.expand_shape %5 [[0, 1], [2]] : tensor<6x4xf32> into tensor<2x3x4xf32>",
            "tensor.expand_shape %5 [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>",
        ),
        ("tensor.expand_shape %a [[0, 1]] : tensor<?xf32> into tensor<?x3xf32>", ""),
        ("tensor.collapse_shape %a [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>", ""),
    ],
)
def test_programs_of_older_releases(old: str, new: str) -> None:
    assert respelled(f"%r = {old}\n") == f"%r = {new or old}\n"
