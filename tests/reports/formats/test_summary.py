"""The Markdown summary: its table, what it tells, hostile texts."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reports.formats.summary import summary_text
from reports.outcomes import ProofOutcome
from tests.reports.outcome_examples import ALL, BROKEN, FALSE, NASTY, PROVED, STORED, UNSOUND, WRONG

CELL = re.compile(r"(?<!\\)(?:\\\\)*\|")


def rows(text: str) -> list[list[str]]:
    """Cells of the table's rows; only an unescaped bar ends a cell."""
    found = []
    for line in text.split("\n"):
        if line.startswith("| "):
            found.append([cell.strip() for cell in CELL.split(line)[1:-1]])
    return found[2:]


def test_the_table() -> None:
    table = rows(summary_text(ALL))
    assert len(table) == len(ALL) and {len(row) for row in table} == {8}
    assert table[0] == ["good", "PROVED", "yes", r"1 \<= n \<= 9", r"bit\_exact", "93", "1.2 s", "this run"]
    assert table[1][-2:] == ["0.5 s", "from store"]
    assert [row[1:3] for row in table[2:5]] == [["REFUTED", "yes"], ["REFUTED", "NO"], ["PROVED", "NO"]]
    assert table[7][2:] == ["NO", "", "", "", "2.0 s", ""]


def test_a_green_run() -> None:
    text = summary_text([PROVED, STORED, FALSE])
    assert "\n2 PROVED, 1 REFUTED; all as expected\n" in text and "Not as expected" not in text
    assert "## Counterexamples\n\n* false: input 2x16\n" in text
    assert "**good**: good is right\n\n* the host waits\n" in text
    assert text.endswith(
        "PROVED relates two models; that hardware and compiler behave like them is another question.\n"
    )


def test_what_is_wrong_comes_first() -> None:
    text = summary_text([PROVED, WRONG, BROKEN, UNSOUND])
    wrong, _, rest = text.partition("## Verdicts")
    assert "3 not as expected" in wrong
    assert "**wrong**: REFUTED, expected PROVED.\n\n> input 4x16\n" in wrong
    assert "**broken**: ERROR, expected PROVED.\n\n> its process was ended by SIGSEGV\n" in wrong
    assert "**unsound**: PROVED, expected REFUTED.\n" in wrong and "**good**" not in wrong
    assert "* wrong: input 4x16\n" in rest


def test_hostile_texts() -> None:
    text = summary_text([NASTY])
    assert r"a\<b\>\&" in text and "<b>" not in text and r"\\x00\\x1b\[31m\\ud800" in text
    assert "\x1b" not in text and "\u202e" not in text
    text.encode()  # no lone surrogate is left


@given(st.text(max_size=30))
def test_any_text_stays_in_its_place(name: str) -> None:
    def shape(outcome: ProofOutcome) -> list[str]:
        return [re.sub(r"[^|#>*]", "", CELL.sub("|", line))[:1] for line in summary_text([outcome]).splitlines()]

    outcome = replace(WRONG, name=name, reason=name or "x", counterexample=name or "x", notes=(name or "x",))
    assert len(rows(summary_text([outcome]))[0]) == 8
    plain = replace(WRONG, name="x", reason="x", counterexample="x", notes=("x",))
    assert len(shape(outcome)) == len(shape(plain))
