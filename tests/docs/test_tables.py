"""The table of rules: its lines, its place in the document, its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from chc.scalar_rules.prove import prove_rule
from chc.scalar_rules.rule import ScalarRule
from docs import tables
from docs.markdown_tables import with_table
from docs.tables import MLIR_PAGE, RULES_PAGE, Entry, Table, decided, mlir_operators, scalar_entries, tensor_entries
from ir_semantics.scalars.formats import BINARY32, integer
from ir_semantics.scalars.terms import exp, log, variable
from smt_encodings.claims import Interpretation, Status
from smt_encodings.discharge import Discharger

x, y = variable("x"), variable("y")


def entry(rule: ScalarRule, wrong: bool, note: str = "") -> Entry:
    return Entry("R1", wrong, rule.text, str(rule.number), lambda d: prove_rule(rule, d), note)


REFUTED = entry(ScalarRule("minus", x - y, y - x, integer(8)), True, "It is antisymmetric.")
PROVED = entry(ScalarRule("plus", x + y, y + x, integer(8)), False)
UNKNOWN = entry(ScalarRule("plus", x + y, y + x, BINARY32, interpretation=Interpretation.UNINTERPRETED), False)


def test_lines() -> None:
    assert [e.line(e.prove(Discharger())) for e in (REFUTED, PROVED, UNKNOWN)] == [
        "| R1 | `x - y -> y - x` | int8 | REFUTED | `x = 0, y = 1: -1 vs 1`. It is antisymmetric. |",
        "| R1 | `x + y -> y + x` | int8 | PROVED | bits |",
        "| R1 | `x + y -> y + x` | binary32 | UNKNOWN | uninterpreted: not implied |",
    ]


def test_assumptions_stand_in_the_line() -> None:
    from ir_semantics.scalars.formats import REALS

    proved = entry(ScalarRule("log", log(exp(x)), x, REALS), False)
    assert "reals; assumed: exp is positive" in proved.line(proved.prove(Discharger()))


def test_the_table_replaces_what_stood_in_its_place() -> None:
    before = RULES_PAGE.read_text(encoding="utf-8")
    once = with_table(before, "rules on scalars", ["| one |"])
    assert once.count("| one |") == 1
    assert with_table(once, "rules on scalars", ["| two |"]).count("| one |") == 0
    head = before.partition("<!-- rules on scalars")[0]
    assert once.startswith(head)
    tensors = with_table(once, "rules on tensors", ["| three |"])
    assert tensors.index("| one |") < tensors.index("## Rules on tensors") < tensors.index("| three |")
    with pytest.raises(ValueError, match="the document must have the lines '<!-- rules on scalars"):
        with_table("# Rules", "rules on scalars", [])


@pytest.mark.parametrize(("entries", "code"), [([REFUTED, PROVED], 0), ([REFUTED, UNKNOWN], 1)])
def test_the_command(
    entries: list[Entry],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = tmp_path / "rules.md"
    empty = with_table(RULES_PAGE.read_text(encoding="utf-8"), "rules on scalars", [])
    document.write_text(empty, encoding="utf-8")
    monkeypatch.setitem(tables.TABLES, "rules on scalars", Table(document, lambda timeout: decided(entries, timeout)))
    assert tables.main(["--write", "rules on scalars"]) == code
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"2 rules, {code} with another verdict than expected"
    assert said[0].startswith("REFUTED ")
    assert "| R1 | `x - y -> y - x` | int8 | REFUTED |" in document.read_text(encoding="utf-8")


def test_wrong_rules_must_be_refuted_and_others_proved() -> None:
    assert REFUTED.expected is Status.REFUTED
    assert PROVED.expected is Status.PROVED
    assert {e.row for e in scalar_entries()} >= {"F1", "I41", "C19"}
    assert {e.row for e in tensor_entries()} >= {"C7", "L39"}


def test_an_unknown_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tables.main(["vectors"])
    said = f"error: NAME must be one of {', '.join(tables.TABLES)}, not 'vectors'\n"
    assert capsys.readouterr().err.endswith(said)


def test_the_table_of_mlir_operators_is_that_of_the_code() -> None:
    text = MLIR_PAGE.read_text(encoding="utf-8")
    assert with_table(text, "operators of MLIR", mlir_operators()) == text
