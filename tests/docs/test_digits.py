"""docs/reference/digits.md has the table of the recorded results, and these agree with the images that are shipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import table4
from benchmarks.digits import CHECKED, ROWS, host_scores, measure, prove, table
from examples.digits import load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "benchmarks/results/digits.json").read_text())
    return content


@pytest.mark.parametrize("page", ["docs/reference/digits.md", "benchmarks/results/digits.md"])
def test_pages_have_the_recorded_table(page: str, recorded: dict[str, Any]) -> None:
    assert "\n".join(table(recorded)) + "\n" in (ROOT / page).read_text(encoding="utf-8")


def test_table_4_has_the_recorded_numbers() -> None:
    rows = json.loads((ROOT / "benchmarks/results/table4.json").read_text())["rows"]
    assert [row["name"] for row in rows] == [*table4.DIGITS, *table4.MODELS]
    assert table4.tables(rows) in (ROOT / "benchmarks/results/table4.md").read_text(encoding="utf-8")
    assert all(row[design]["beyond_bound"] == 0 for row in rows[: len(table4.DIGITS)] for design in table4.DESIGNS)


def test_recorded_counts_follow_from_recorded_answers(recorded: dict[str, Any]) -> None:
    labels = load().test_labels
    host = host_scores().argmax(axis=1)
    assert recorded["images"] == len(labels)
    assert [row["row"] for row in recorded["rows"]] == list(ROWS)
    assert recorded["host"]["answers"] == "".join(map(str, host))
    assert recorded["host"]["right"] == int((host == labels).sum())
    assert recorded["host"]["as_onnxruntime"] == len(labels)
    for row in recorded["rows"]:
        answers = np.array(list(row["answers"]), dtype=np.int64)
        assert len(answers) == len(labels)
        assert (row["right"], row["as_host"]) == (int((answers == labels).sum()), int((answers == host).sum()))


def test_margins_of_the_network_are_as_the_page_says() -> None:
    second, first = np.sort(host_scores(), axis=1)[:, -2:].T
    assert 9 < np.median(first - second) < 10
    assert round(100 * np.mean(first - second < 1.5)) == 1


def test_every_operator_was_within_its_bound(recorded: dict[str, Any]) -> None:
    for row in recorded["rows"]:
        assert row["beyond_bound"] == row["without_bound"] == 0
        assert row["within_bound"] == CHECKED * row["nodes"] > 0


def test_what_the_page_says_of_published_formats(recorded: dict[str, Any]) -> None:
    rows = {row["row"]: row for row in recorded["rows"]}
    lost = {name: recorded["host"]["right"] - row["right"] for name, row in rows.items()}
    published = "hlscnn-8-published", "hlscnn-16-published"
    assert [lost[name] for name in (*published, "hlscnn-8", "hlscnn-16")] == [4, 3, 1, 0]
    assert {name for name, row in rows.items() if row["saturated"]} == set(published)
    assert all(rows[name]["saturated"] == 6 * recorded["images"] for name in published)


@pytest.mark.slow
@pytest.mark.proof
def test_answers_come_out_again(recorded: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLSCNN's answers on the first images, from certificates that are made for this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # where the store of proofs is
    prove(tmp_path / "proofs", ["hlscnn-16"])
    found = measure("hlscnn-16", tmp_path / "proofs", 25)
    (row,) = (r for r in recorded["rows"] if r["row"] == "hlscnn-16")
    assert found["answers"] == row["answers"][:25]
    assert found["beyond_bound"] == 0 and found["nodes"] == row["nodes"]


def test_a_row_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^vta-dense: no operator runs on an accelerator: "):
        measure("vta-dense", tmp_path, 1)
