"""The HTML page: what it says, that it says no more than is proved, and that no text becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.html.claims import EQUALITIES, INTERPRETATIONS, VERDICTS, Comparison, claim_view, window_of
from reports.html.page import Beside, html_page
from reports.outcomes import NOT_RUN, ProofOutcome
from smt_encodings.claims import Equality, Interpretation, Status
from tests.reports.html.html_examples import (
    RUN_AT,
    SOLVERS,
    campaign,
    certificate,
    comparison,
    obligation,
    proved,
    refuted,
    times,
)
from tests.reports.outcome_examples import ALL, HOSTILE, LEFT, NASTY, UNKNOWN, WRONG, claim

ROOT = Path(__file__).parents[3]
STYLE = (ROOT / "reports" / "html" / "templates" / "style.css").read_text(encoding="utf-8")
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><a href=javascript:alert(3)>"
INLINE = {"a", "code", "em", "mark", "span", "strong"}
LOADING = {"script", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form"}
VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    """An element with its attributes, its elements and its text."""

    tag: str
    attributes: dict[str, str]
    children: list[Node] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def all(self, tag: str = "", **wanted: str) -> list[Node]:
        """All elements below of that tag, with one of these words in each of these attributes."""
        found = []
        for child in self.children:
            given = {name: child.attributes.get(name.rstrip("_"), "").split() for name in wanted}
            if tag in ("", child.tag) and all(word in given[name] for name, word in wanted.items()):
                found.append(child)
            found += child.all(tag, **wanted)
        return found

    def one(self, tag: str = "", **wanted: str) -> Node:
        (found,) = self.all(tag, **wanted)
        return found

    @property
    def text(self) -> str:
        """The whole text, with single spaces."""
        return " ".join("".join(self.pieces).split())


class Reader(HTMLParser):
    """Builds the tree, and refuses what does not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in INLINE:
            self.handle_data(" ")
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"{tag} ends another element"
        if tag not in INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for node in self.open:
            node.pieces.append(data)


def read(page: str) -> Node:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1, f"{reader.open[-1].tag} is never closed"
    return reader.root


METHODS = {
    "chc": ("every size at once", "anything about sizes outside the size domain above"),
    "bmc": ("one shape", "anything about any other shape"),
}


def tree(*outcomes: ProofOutcome, **more: Any) -> Node:
    return read(html_page(outcomes, Beside(**{"methods": METHODS, **more})))


def verdicts(page: Node) -> dict[str, int]:
    """The tiles: how many claims have which verdict."""
    tiles = page.one("ul", class_="tiles").all("li")
    return {t.one(class_="word").text.partition(" ")[2]: int(t.one("strong").text) for t in tiles}


def claims(page: Node) -> dict[str, Node]:
    """The claims' articles by name."""
    return {node.one("h3").text: node for node in page.all("article", class_="claim")}


def badge(article: Node) -> str:
    return article.one("header").one(class_="badge").text.partition(" ")[2]


def everything(tmp_path: Path) -> dict[str, Any]:
    return {"campaigns": [campaign(tmp_path)], "scaling": times(tmp_path), "versions": {"z3": "5.4.0"}}


# -- what the page says -------------------------------------------------------------------------------


def test_the_counts_are_the_verdicts() -> None:
    page = tree(proved(), proved("second"), refuted(), UNKNOWN)
    assert verdicts(page) == {"PROVED": 2, "REFUTED": 1, "UNKNOWN": 1, "VACUOUS": 0, "ERROR": 0}
    assert verdicts(tree(*ALL))[NOT_RUN] == 1
    assert sum(verdicts(tree(*ALL)).values()) == len(ALL)


def test_a_claim_says_what_is_proved() -> None:
    page = tree(proved())
    article = claims(page)["good"]
    assert badge(article) == "PROVED"
    facts = article.all("dl", class_="facts")[0]
    told = dict(zip([d.text for d in facts.all("dt")], [d.text for d in facts.all("dd")], strict=True))
    assert told["Proved for sizes"] == "1 <= n <= 9"
    assert told["Equality"].startswith("bit_exact: both sides leave the same bits")
    assert "bits: operations on data are their closed forms" in told["Data"]
    assert "chc: every size at once" in told["Method"]
    assert told["Solvers agree"] == "z3 5.4.0 and cvc5 1.4.2 gave the expected answer to each of 3 obligations"
    assert told["Concrete runs"].startswith("3 runs of both sides before PROVED was said, none of which showed")
    runs = facts.one("details")
    assert runs.one("summary").text == "Sizes and operands (2)" and [li.text for li in runs.all("li")] == RUN_AT
    assert "bmc at T = 2: PROVED" in told["Concrete runs"]
    assert told["Time"] == "proved in 7.5 s; with everything around it 8.2 s"
    assert json.loads(proved().document)["digest"] in told["Certificate"]
    assert told["Source"] == "rewrites/a.py:12"
    headings = [h.text for h in article.all("h4")]
    assert headings[:2] == ["Under these assumptions", "This does not say"]
    assumed, not_said = article.one(class_="columns").all("ul")
    assert [li.text for li in assumed.all("li")] == ["the host waits"]
    assert not_said.all("li")[0].text == "anything about sizes outside the size domain above"
    assert "equal codes say nothing about rounding" in not_said.text and "RTL" in not_said.text
    summaries = [s.text for s in article.all("summary")]
    assert [s.partition(" ")[0] for s in summaries] == [
        "Sizes",
        "Lemmas",
        "Invariants",
        "Obligations",
        "Everything",
        "Certificate",
    ]
    assert "(<= 2 i)" in article.text and "found by Spacer" in article.text
    assert "the lemma" in article.text and "what values mean" in article.text


def test_readable_invariants_take_the_place_of_terms() -> None:
    text = claims(tree(proved(), invariants={"good": {"loop of rows": ["i < 2", "1 <= i => done"]}}))["good"].text
    assert "i < 2 1 <= i => done" in text and "(<= 2 i)" not in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"method": "bmc", "parameters": {"shape": [16, 64]}}, "anything about any other shape"),
        ({"equality": "over_reals"}, "rounding is left out"),
        ({"equality": "up_to_reduction_order"}, "rounding depends on the order of a sum"),
        ({"equality": "within(2^-7)"}, "that the bound is the smallest one"),
        ({"equality": "unheard of"}, "equality in any other sense"),
        ({"method": "unheard of"}, "anything about sizes other than those above"),
    ],
)
def test_what_is_not_said_fits_the_claim(changes: dict[str, Any], expected: str) -> None:
    words = claim("good", **{k: v for k, v in changes.items() if k == "equality"})
    parts = {k: v for k, v in changes.items() if k != "equality"}
    outcome = proved(claim=words, document=certificate(words, **parts), method=parts.get("method", "chc"))
    article = claims(tree(outcome))["good"]
    assert badge(article) == "PROVED" and expected in article.one(class_="columns").text
    if "parameters" in parts:
        assert "shape [16, 64]" in article.all("dl", class_="facts")[0].text


def test_all_notions_have_words() -> None:
    """A notion that is added needs words for strangers here, with what it does not say."""
    assert {i.value for i in Interpretation} == INTERPRETATIONS.keys()
    assert {e.value for e in Equality} == EQUALITIES.keys()
    assert {s.value for s in Status} | {NOT_RUN} == VERDICTS.keys()


def test_each_interpretation_is_told_with_its_limits() -> None:
    words = claim("good", interpretations=["uninterpreted", "reals"])
    article = claims(tree(proved(claim=words, document=certificate(words))))["good"]
    assert "Data, then reals: data are real numbers" in article.text
    not_said = article.one(class_="columns").all("ul")[1].text
    assert "that rounded or bounded numbers behave like real ones" in not_said and "wrap or saturate" not in not_said


def test_a_green_run_and_a_red_one() -> None:
    top = tree(proved(), refuted()).one("header", class_="top").text
    assert "All 2 claims are as expected. 1 claim proved; 1 claim known to be false, and refuted." in top
    page = tree(proved(), refuted(), WRONG, LEFT)
    assert "2 of 4 claims are not as expected: wrong (REFUTED, expected PROVED), left (NOT RUN, expected PROVED)" in (
        page.one("header", class_="top").one(class_="alarm").text
    )
    headings = [h.text for h in page.all("h2")]
    assert headings[2:5] == ["Not as expected (2)", "Proved (1)", "False on purpose, and refuted (1)"]
    assert "the run was interrupted" in claims(page)["left"].text


def test_sizes_are_shown_as_proved_only_with_a_proof() -> None:
    page = tree(proved(), UNKNOWN)
    sizes = [row.one(class_="sizes").text for row in page.one("table", class_="overview").one("tbody").all("tr")]
    assert sizes == ["1 <= n <= 9", "no invariant"]
    assert "Sizes claimed" in claims(page)["unknown"].text and "Proved for sizes" not in claims(page)["unknown"].text
    assert "This does not say that the claim is wrong, or that it is right." in claims(page)["unknown"].text


def test_from_the_store() -> None:
    article = claims(tree(proved(from_store=True, seconds=0.2)))["good"]
    assert "proved in 7.5 s; taken from the store in 0.200 s" in article.text


def test_an_empty_run_proves_nothing() -> None:
    page = tree()
    assert set(verdicts(page).values()) == {0}
    assert "Nothing was proved." in page.one(class_="alarm").text and not page.all(id="overview")


def test_a_stranger_is_told_how_to_read_it() -> None:
    page = tree(proved())
    told = next(s for s in page.all("section") if s.attributes["aria-labelledby"] == "reading").text
    for word in (
        "accelerator",
        "IR",
        "Sizes",
        "Equality",
        "Data",
        "Assumptions",
        "obligations",
        "certificate",
        "invariant",
    ):
        assert word in told
    rows = page.one("table", class_="verdicts").one("tbody").all("tr")
    assert [r.one("th").text.partition(" ")[2] for r in rows] == [
        "PROVED", "REFUTED", "UNKNOWN", "VACUOUS", "ERROR", NOT_RUN,
    ]  # fmt: skip
    assert all(len(r.all("td")) == 2 and all(cell.text for cell in r.all("td")) for r in rows)


# -- PROVED is not taken on trust ---------------------------------------------------------------------


def lone_answer() -> list[dict[str, Any]]:
    return [obligation("one", answers=[{"solver": SOLVERS[0], "status": "unsat", "seconds": 0.1}])]


def other_answer() -> list[dict[str, Any]]:
    return [obligation("one", answers=[{"solver": s, "status": "sat", "seconds": 0.1} for s in SOLVERS])]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "there is none"),
        ("certificate", "a certificate must be JSON text"),
        (certificate(claim("other")), "its claim must be that of the claim as it is now"),
        (certificate(claim("good", size_domain="n = 1")), "its claim must be that of the claim as it is now"),
        (certificate(claim("good"), method="bmc"), "its method must be that of the claim"),
        (certificate(claim("good"), obligations=lone_answer()), "2 solvers must have answered"),
        (certificate(claim("good"), obligations=other_answer()), "an answer is not the expected one"),
        (certificate(claim("good")).replace('"seconds":7.5', '"seconds":7.4'), "the digest must match the content"),
    ],
)
def test_without_an_intact_certificate_nothing_is_proved(document: str, reason: str) -> None:
    page = tree(proved(document=document))
    assert verdicts(page)["PROVED"] == 0 and verdicts(page)["ERROR"] == 1
    article = claims(page)["good"]
    assert badge(article) == "ERROR" and reason in article.text and "expected PROVED" in article.text
    assert "Proved for sizes" not in article.text and "This does not say anything at all" in article.text
    assert "Proved (1)" not in page.text


@pytest.mark.parametrize("changes", [{"counterexample": ""}, {"document": ""}])
def test_without_a_counterexample_nothing_is_refuted(changes: dict[str, str]) -> None:
    page = tree(refuted(**changes))
    assert verdicts(page)["REFUTED"] == 0 and badge(claims(page)["false"]) == "ERROR"
    assert "It was said to be REFUTED, but it has no counterexample" in claims(page)["false"].text


def test_a_false_claim_that_was_proved_is_an_alarm() -> None:
    page = tree(proved(expected="REFUTED"))
    assert "1 of 1 claim is not as expected: good (PROVED, expected REFUTED)" in page.one(class_="alarm").text
    assert "Not as expected (1)" in page.text


def test_a_word_that_is_no_verdict_is_an_error() -> None:
    assert badge(claims(tree(ProofOutcome("x", "PERHAPS")))["x"]) == "ERROR"


# -- counterexamples ----------------------------------------------------------------------------------


def cells(table: Node) -> dict[tuple[int, int], Node]:
    """The cells of an output by row and column, as the headings number them."""
    columns = [int(h.text) for h in table.one("thead").all("th")[1:]]
    found = {}
    for row in table.one("tbody").all("tr"):
        for column, cell in zip(columns, row.all("td"), strict=True):
            found[int(row.one("th").text), column] = cell
    return found


def test_the_first_differing_cell_is_marked_on_both_sides() -> None:
    article = claims(tree(refuted(), comparisons={"false": comparison()}))["false"]
    device, ir = (cells(table) for table in article.one(class_="outputs").all("table"))
    for side, text in ((device, "0x00"), (ir, "0x80")):
        marked = {place: cell for place, cell in side.items() if "class" in cell.attributes}
        assert {place: cell.attributes["class"] for place, cell in marked.items()} == {
            (1, 9): "first", (1, 12): "differs",
        }  # fmt: skip
        assert marked[1, 9].one("mark").attributes["title"] == "first difference"
        assert {cell.text for cell in marked.values()} == {text}
        assert {cell.text for place, cell in side.items() if place not in marked} == {"0x00"}
    assert "other differing elements (2 in all)" in article.text and "all 2 rows, columns 6 to 13 of 16" in article.text
    assert "host_in[7] = 0x80" in article.text


@pytest.mark.parametrize("rows", [1, 2, 8, 9, 64])
@pytest.mark.parametrize("columns", [1, 8, 9, 256])
def test_the_window_holds_the_first_difference(rows: int, columns: int) -> None:
    for first in {(0, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)}:
        window = window_of(comparison(rows, columns, (first,)))
        assert window is not None and first[0] in window.rows and first[1] in window.columns
        assert len(window.rows) == min(rows, 8) and len(window.columns) == min(columns, 8)
        assert set(window.rows) <= set(range(rows)) and set(window.columns) <= set(range(columns))
        for (_, side), text in zip(window.sides, ("0x00", "0x80"), strict=True):
            assert side[window.rows.index(first[0])][window.columns.index(first[1])] == (text, "first")
            assert sum(mark != "" for line in side for _, mark in line) == 1


def test_outputs_that_are_equal_or_no_tensors() -> None:
    assert window_of(Comparison(2, ("0", "1"), ("0", "1"))) is None
    with pytest.raises(ValueError, match="Outputs of both sides must be tensors of 2 columns, not 2 and 3 elements"):
        window_of(Comparison(2, ("0", "1"), ("0", "1", "2")))


def test_outputs_that_cannot_be_shown_are_told() -> None:
    article = claims(tree(refuted(), comparisons={"false": "one side does not accept its program"}))["false"]
    assert "The outputs are not shown: one side does not accept its program." in article.text
    assert not article.all("table") and not article.all("mark")


def test_long_programs_are_cut() -> None:
    text = claims(tree(refuted(program="x" * 30_000)))["false"].text
    assert "x" * 20_000 in text and "x" * 20_001 not in text and "Cut; the file has all of it." in text


def test_many_obligations_are_counted_and_not_all_listed() -> None:
    many = [obligation(f"number {i}", f"group {i % 3}") for i in range(310)]
    article = claims(tree(proved(document=certificate(claim("good"), obligations=many))))["good"]
    table = next(t for t in article.all("table") if "Obligation" in t.text)
    assert len([c for c in table.all("td") if c.text.startswith("number")]) == 300
    assert [h.text.partition(")")[0] for h in table.all("th", scope="rowgroup")] == [
        "group 0 (104", "group 1 (103", "group 2 (103",
    ]  # fmt: skip
    assert "10 more obligations in the certificate." in article.text and "each of 310 obligations" in article.text


# -- campaigns and times ------------------------------------------------------------------------------


def test_campaigns_and_times_are_there_only_when_given(tmp_path: Path) -> None:
    bare = tree(proved())
    assert not bare.all("svg") and not bare.all(id="campaigns") and not bare.all(id="scaling")
    assert not bare.all(href="#campaigns") and not bare.all(href="#scaling")
    full = tree(proved(), **everything(tmp_path))
    assert len(full.all("svg", class_="plot")) == 2
    assert full.one(id="campaigns") and full.one(id="scaling") and full.one(href="#scaling")


def test_a_campaign_is_told_as_sampling(tmp_path: Path) -> None:
    article = tree(proved(), campaigns=[campaign(tmp_path)]).one("article", class_="campaign")
    assert "0 of 4 checked examples violate it." in article.text
    assert "Checked were 75.0 % of the results' elements" in article.text
    assert "in all 1.25 % 0.100 % 2.00 %" in article.text and not [
        h for h in article.all("th", scope="row") if h.text == "arithmetic"
    ]
    assert "rows 1 .. 3" in article.text and "columns 2, 4 .. 8" in article.text
    assert "ilaverify campaign toy_add --examples 5 --seed 7" in article.text
    bars = article.one("svg", class_="plot").all("rect")
    assert sum(int(bar.one("title").text.rpartition(" ")[2]) for bar in bars) == 4
    assert {bar.attributes["class"] for bar in bars} == {"bar series0", "bar series1"}
    assert "This is sampling, and no proof" in tree(campaigns=[campaign(tmp_path)]).text


def test_bars_stand_on_each_other(tmp_path: Path) -> None:
    samples = [{"distribution": name, "error": error} for name in ("uniform", "normal") for error in (0.1, 0.1, 0.2)]
    bars = tree(campaigns=[campaign(tmp_path, samples=samples)]).one("svg", class_="plot").all("rect")
    stacks: dict[str, list[tuple[float, float, int]]] = {}
    for bar in bars:
        count = int(bar.one("title").text.rpartition(" ")[2])
        top, height = float(bar.attributes["y"]), float(bar.attributes["height"])
        stacks.setdefault(bar.attributes["x"], []).append((top, height, count))
    assert sorted([count for _, _, count in stack] for stack in stacks.values()) == [[1, 1], [2, 2]]
    (unit,) = {round(height / count, 1) for stack in stacks.values() for _, height, count in stack}
    for (below, _, _), (above, height, _) in stacks.values():
        assert above + height == pytest.approx(below, abs=0.02)
    assert len({round(stack[0][0] + stack[0][1], 1) for stack in stacks.values()}) == 1 and unit > 10  # one ground


def test_a_violation_is_told(tmp_path: Path) -> None:
    record = campaign(tmp_path, violating=1, violation={"property": "equal", "seen": "3 is not 4"})
    text = tree(campaigns=[record]).one("article", class_="campaign").text
    assert "1 of 4 checked examples violates it." in text and "Violated. equal: 3 is not 4" in text


def test_a_campaign_without_errors_has_no_picture(tmp_path: Path) -> None:
    record = campaign(tmp_path, samples=[], error=None, input_error=None)
    article = tree(campaigns=[record]).one("article", class_="campaign")
    assert not article.all("svg") and "No example has a relative error." in article.text


def test_times_are_points_of_a_plot_and_a_table(tmp_path: Path) -> None:
    page = tree(scaling=times(tmp_path))
    plot = page.one("svg", class_="plot")
    titles = [t.text for t in plot.all("title")]
    assert titles == [
        "BMC, 2x16: 0.48 s", "BMC, 16x64: 0.54 s", "BMC, 64x256: timeout after 300 s",
        "CHC symbolic, 2x16: 5.66 s", "CHC symbolic, 16x64: 3.38 s",
    ]  # fmt: skip
    assert len(plot.all("polyline")) == 2 and len(plot.all(class_="cross")) == 1
    ticks = {t.text for t in plot.all("text", class_="tick")}
    assert {"1", "10", "100", "1,000", "10,000"} <= ticks
    section = next(s for s in page.all("section") if s.attributes["aria-labelledby"] == "scaling")
    rows = [[c.text for c in row.children] for row in section.one("tbody").all("tr")]
    assert rows == [["2x16", "0.48", "5.66"], ["16x64", "0.54", "3.38"], ["64x256", "> 300", "–"]]
    assert [li.text for li in section.one(class_="legend").all("li")] == ["BMC", "CHC symbolic"]
    assert "A cross marks a run that did not end with PROVED." in section.text


def test_both_axes_of_the_times_are_logarithmic(tmp_path: Path) -> None:
    row = {"BMC": {"seconds": 1.0, "answer": "PROVED"}}
    shapes = {f"{10**n}x1": {"BMC": {"seconds": 10.0**n, "answer": "PROVED"}} for n in range(4)} | {"7x1": row}
    plot = tree(scaling=times(tmp_path, cells=shapes)).one("svg", class_="plot")
    points = [tuple(map(float, p.split(","))) for p in plot.one("polyline").attributes["points"].split()]
    decades = [p for p in points if p != points[1]]  # 7 elements stand between 1 and 10
    for axis in (0, 1):
        steps = [b[axis] - a[axis] for a, b in pairwise(decades)]
        assert max(steps) - min(steps) < 0.3 and abs(steps[0]) > 20
    assert decades[0][1] > decades[-1][1]  # more seconds are higher up


# -- hostile texts ------------------------------------------------------------------------------------


def hostile(text: str, tmp_path: Path) -> str:
    """A page on which every text that comes from outside is ``text``."""
    words = claim(text, statement=text, size_domain=text, equality=text, interpretations=[text], assumptions=[text])
    level = {"found_by": text, "seconds": 1.0, "horn": text, "invariant": [text], "names": {text: text}}
    answers = [{"solver": f"{text}{n}", "status": "unsat", "seconds": 0.1} for n in range(2)]
    asked = [obligation(text, group, meaning=text, answers=answers) for group in ("lemmas", text)]
    document = certificate(
        words, tool=text, method=text, parameters={text: text}, obligations=asked, invariants={text: level},
        semantics=dict.fromkeys(("device", "ir", "relation"), text),
    )  # fmt: skip
    rest = dict.fromkeys(("summary", "reason", "trust", "file"), text)
    good = ProofOutcome(text, "PROVED", claim=words, document=document, method=text, notes=(text,), **rest)
    bad = replace(good, status="REFUTED", counterexample=text, program=text, document=text)
    unseen = replace(bad, name=text + "2")
    shown = Comparison(1, (text,), (text + "!",), ((text, text),))
    record = campaign(
        tmp_path, campaign=text, property=text, reference=text, parameters={text: [text]}, distributions={text: text},
        seed=text, skipped={text: 1}, violation={"property": text, "seen": text},
        samples=[{"distribution": text, "error": 0.5}],
    )  # fmt: skip
    measured = times(
        tmp_path, command=text, machine={text: text}, cells={"1x1": {text: {"seconds": 1.0, "answer": text}}}
    )
    return html_page(
        [good, bad, unseen, replace(good, status=text)], Beside(comparisons={text: shown, text + "2": text},
        campaigns=[record], scaling=replace(measured, source=text), source=text, versions={text: text},
        invariants={text + "2": {text: [text]}}, methods={text: (text, text)}),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", [ATTACK, HOSTILE, "</style><script>", "{{ 7*7 }}{% raw %}", "&lt;b&gt;&#60;", "]]>-->"]
)
def test_no_text_becomes_markup(text: str, tmp_path: Path) -> None:
    plain, attacked = read(hostile("plain", tmp_path)), read(hostile(text, tmp_path))
    assert skeleton(attacked) == skeleton(plain)
    assert not attacked.all("script") and not attacked.all("img")
    if text.isprintable():
        assert attacked.text.count(" ".join(text.split())) >= 40


def skeleton(node: Node) -> Any:
    """The elements with the names of their attributes, without any text."""
    return node.tag, sorted(node.attributes), [skeleton(child) for child in node.children]


@settings(max_examples=30)
@given(st.text(min_size=1, max_size=20))
def test_any_text_stays_in_its_place(text: str) -> None:
    outcome = replace(WRONG, name=text, reason=text, counterexample=text, notes=(text,), file=text)
    plain = replace(WRONG, name="x", reason="x", counterexample="x", notes=("x",), file="x")
    assert skeleton(tree(outcome, comparisons={text: text})) == skeleton(tree(plain, comparisons={"x": "x"}))


def test_what_cannot_be_seen_is_shown() -> None:
    page = html_page([NASTY], Beside())
    assert r"\x00\x1b[31m\ud800\ufffe" in page and r"\u202e" in page
    assert all(c.isprintable() or c == "\n" for c in page)
    page.encode()


# -- form ---------------------------------------------------------------------------------------------


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    text = html_page([proved(), refuted()], Beside(comparisons={"false": comparison()}, **everything(tmp_path)))
    page = read(text)
    for node in page.all():
        assert node.tag not in LOADING
        assert not any(name.startswith("on") or name in ("src", "srcset", "style") for name in node.attributes)
        address = node.attributes.get("href", node.attributes.get("xlink:href", "#"))
        assert address.startswith("#") or (node.tag, address) == ("link", "data:,")
    assert "@import" not in STYLE and "url(" not in STYLE and not re.search("https?:", text)
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_the_page_is_sound_html(tmp_path: Path) -> None:
    text = html_page(
        [*ALL, proved("x y"), proved("x/y")], Beside(comparisons={"false": comparison()}, **everything(tmp_path))
    )
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    page = read(text)
    assert [len(page.all(tag)) for tag in ("main", "h1", "head", "footer")] == [1, 1, 1, 1]
    assert page.one("head").one("title").text == "ilaverify: what is proved"
    assert page.one("meta", name="viewport").attributes["content"] == "width=device-width, initial-scale=1"
    anchors = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(anchors) == len(set(anchors)) and all(re.fullmatch(r"[A-Za-z][\w-]*", a) for a in anchors)
    for node in page.all():
        target = node.attributes.get("href", "")
        assert not target.startswith("#") or target[1:] in anchors
        label = node.attributes.get("aria-labelledby")
        assert label is None or label in anchors
        if node.tag == "table":
            assert node.all("th", scope="col") and all("scope" in h.attributes or not h.all() for h in node.all("th"))
        if node.tag == "details":
            assert node.children[0].tag == "summary" and node.children[0].text
        if node.attributes.get("role") == "region":
            assert node.attributes["tabindex"] == "0" and {"aria-label", "aria-labelledby"} & node.attributes.keys()


def test_levels_of_headings_leave_none_out(tmp_path: Path) -> None:
    page = tree(proved(), refuted(), comparisons={"false": comparison()}, **everything(tmp_path))
    levels = [int(node.tag[1]) for node in page.all() if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in pairwise(levels))


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    def page() -> str:
        return html_page([proved(), refuted()], Beside(comparisons={"false": comparison()}, **everything(tmp_path)))

    assert page() == page()


def test_a_missing_value_is_an_error_of_the_page() -> None:
    with pytest.raises(TypeError, match="a value of the page must be something, not None"):
        html_page([proved()], Beside(versions={"z3": None}))  # type: ignore[dict-item]


def test_views_are_not_as_expected_without_a_proof() -> None:
    assert claim_view(proved(), "a").as_expected and not claim_view(proved(document="x"), "a").as_expected
    assert proved(document="x").as_expected  # the record alone would have passed


# -- colours ------------------------------------------------------------------------------------------

TEXT_ON = [
    *product(("text", "soft", "link"), ("page", "card", "inset")),
    *product(("on-badge",), ("proved", "refuted", "unknown", "vacuous", "error", "notrun")),
    *product(("proved", "refuted", "unknown", "vacuous", "error", "notrun"), ("card",)),
    ("on-first", "first"), ("on-differs", "differs"),
]  # fmt: skip
"""Every text colour with the backgrounds that it stands on."""
SHAPE_ON = [*product((f"series{n}" for n in range(6)), ("card", "page"))]


def colours(dark: bool) -> dict[str, str]:
    light, _, rest = STYLE.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return found | (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rest.partition("\n}\n")[0])) if dark else {})


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(dark: bool) -> None:
    known = colours(dark)
    assert all(contrast(known[text], known[ground]) >= 4.5 for text, ground in TEXT_ON)
    assert all(contrast(known[shape], known[ground]) >= 3 for shape, ground in SHAPE_ON)


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the guidelines' near miss


def test_dark_has_colours_of_its_own() -> None:
    light, dark = colours(False), colours(True)
    assert light.keys() == dark.keys() and all(light[name] != dark[name] for name in light)


@pytest.mark.parametrize("check", [test_contrast])
def test_a_faint_colour_is_found(check: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.STYLE", STYLE.replace("--soft: #515a64", "--soft: #8a939d"))
    with pytest.raises(AssertionError):
        check(False)


def rule(name: str, **changes: Any) -> ProofOutcome:
    return proved(name, kind="rule", method="rule", **changes)


def test_rules_have_a_line_each_where_they_are_as_expected() -> None:
    words = claim("fine")
    fine = rule("fine", document=certificate(words, method="rule"))
    wrong = refuted("wrong-rule", kind="rule", method="rule")
    lemma = proved("many", kind="lemma", method="enumeration", claim=claim("many"))
    run = [{"name": "n", "meaning": "m", "arguments": 65536, "largest": 0.5}]
    lemma = replace(lemma, document=certificate(claim("many"), method="enumeration", obligations=[], enumerations=run))
    bad = replace(rule("bad"), status="UNKNOWN", document="", reason="nobody knows")
    page = tree(proved(), fine, wrong, lemma, bad)
    headings = [h.text for h in page.all("h2")]
    assert headings[2:7] == [
        "Not as expected (1)", "Proved (1)", "Rewrite rules (1)", "Wrong rules, refuted (1)", "Lemmas (1)",
    ]  # fmt: skip
    assert set(claims(page)) == {"good", "bad"}
    told = {t.one("tbody").one("th").text: t.one("tbody").text for t in page.all("table", class_="brief")}
    assert set(told) == {"✓ PROVED fine", "✗ REFUTED wrong-rule", "✓ PROVED many"}
    assert "3 concrete runs at 2 points" in told["✓ PROVED fine"]
    assert "3 obligations" in told["✓ PROVED fine"] and "run on 65,536 arguments" in told["✓ PROVED many"]
    assert "0x80 in the IR" in told["✗ REFUTED wrong-rule"]
