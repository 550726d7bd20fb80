"""The HTML page from the command line: what the store holds counts only if it is of the claims as they are now."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bmc.counterexample import replays
from bmc.search import search
from chc.mapping.prove import claim_of
from ilaverify.catalogue import mapping_entries, mappings
from ilaverify.cli import main
from ilaverify.cli.campaigns.properties import result_json
from ilaverify.cli.report import PageInputs, page_of, stored_outcomes
from ilaverify.identity import prover_identity
from reports.certificate import certificate_of, certificate_text, claim_json, content_digest, semantics_of
from reports.html.inputs import InputError, read_campaign, read_campaigns, read_scaling
from reports.outcomes import NOT_RUN, ProofOutcome
from reports.store import CERTIFICATE, COUNTEREXAMPLE, ProofStore, proof_key
from reports.subjects import Entry
from rewrites.campaigns.campaign import run_campaign
from rewrites.claims.counterexamples import counterexample_text
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr.chains import reload_mapping
from rewrites.mappings.flexasr.pooling import selection_mapping
from smt_encodings.claims import Answer, Obligation, Runs, Status, Verdict
from tests.bmc.test_search import with_a_tensor
from tests.ilaverify.cli.command import run
from tests.ilaverify.cli.toy_campaigns import CAMPAIGNS
from tests.reports.html.html_examples import CAMPAIGN, TIMES, certificate, proved
from tests.reports.outcome_examples import claim

ROOT = Path(__file__).parents[3]
TRUE, FALSE = "flexasr_reload_apart", "flexasr_maxpool_select"
ENTRIES = mapping_entries([TRUE, "flexasr_meanpool", FALSE])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a proof of the true claim (its one obligation was put to nobody) and a refutation of the other."""
    path = tmp_path_factory.mktemp("store") / "proofs.sqlite3"
    mapping, false = reload_mapping("apart"), selection_mapping()
    store, prover = ProofStore(path), prover_identity(MappingSubject(mapping))
    answers = (Answer("unsat", 0.1, "z3 1"), Answer("unsat", 0.1, "cvc5 1"))
    obligations = [Obligation("n", "g", "(check-sat)\n", "unsat", "m", answers)]
    verdict = Verdict(Status.PROVED, claim_of(mapping), "chc", 7.5, "", obligations, {}, {"levels": {}}, Runs(1, ()))
    text = certificate_text(certificate_of(semantics_of(mapping), verdict, {}, "ilaverify test"))
    key = proof_key(semantics_of(mapping), claim_json(claim_of(mapping)), "chc", {}, prover)
    store.put(key, CERTIFICATE, TRUE, text)
    found = search(false)
    assert found is not None and replays(false, found)
    key = proof_key(semantics_of(false), claim_json(claim_of(false)), "chc", {}, prover)
    store.put(key, COUNTEREXAMPLE, FALSE, counterexample_text(found))
    return path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> ProofStore:
    (tmp_path / "s").write_bytes(filled.read_bytes())
    return ProofStore(tmp_path / "s")


def changed(store: ProofStore, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement, values)


def badges(page: str) -> dict[str, str]:
    """The verdict of each claim's article."""
    found = re.findall(r'<article class="claim ([A-Z]+)" id="claim-(\w+)"', page)
    return {name: verdict for verdict, name in found}


# -- the store ----------------------------------------------------------------------------------------


def test_what_the_store_holds(store: ProofStore) -> None:
    found = {o.name: o for o in stored_outcomes(ENTRIES, store)}
    assert {n: (o.status, o.expected) for n, o in found.items()} == {
        TRUE: ("PROVED", "PROVED"), "flexasr_meanpool": (NOT_RUN, "PROVED"), FALSE: ("REFUTED", "REFUTED"),
    }  # fmt: skip
    assert found[TRUE].from_store and found[TRUE].file == "rewrites/mappings/flexasr/chains.py"
    assert found[TRUE].summary == mappings()[TRUE].summary and "assumption" in found[TRUE].trust
    assert found["flexasr_meanpool"].reason == (
        "not proved with these semantics: the store holds nothing of this claim; prove it with ilaverify prove"
    )
    assert not found["flexasr_meanpool"].document and found["flexasr_meanpool"].seconds == 0


def test_an_answer_for_other_semantics_does_not_count(store: ProofStore) -> None:
    changed(store, "UPDATE proofs SET key = ? WHERE subject = ?", "0" * 64, TRUE)
    outcome = stored_outcomes(ENTRIES, store)[0]
    assert (outcome.status, outcome.document) == (NOT_RUN, "")
    assert outcome.reason == (
        "not proved with these semantics: the store holds one answer for other semantics, words, prover or solvers, "
        "and none for these; prove the claim with ilaverify prove"
    )


def other_claim(text: str) -> str:
    content = json.loads(text)
    content["claim"]["size_domain"] = "everything"
    return certificate_text(content | {"digest": content_digest(content)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.replace('"seconds":7.5', '"seconds":7.4'), "the digest must match the content"),
        (lambda t: "{", "a certificate must be JSON text"),
        (other_claim, "its claim must be that of the claim as it is now"),
    ],
)
def test_a_changed_proof_does_not_count(store: ProofStore, change: Callable[[str], str], reason: str) -> None:
    ((key, _, _),) = [entry for entry in store.entries() if entry[2] == TRUE]
    entry = store.get(key)
    assert entry is not None
    changed(store, "UPDATE proofs SET text = ? WHERE key = ?", change(entry[1]), key)
    outcome = stored_outcomes(ENTRIES, store)[0]
    assert outcome.status == NOT_RUN and reason in outcome.reason and "again" not in outcome.reason
    assert outcome.reason.startswith("not proved with these semantics: the stored proof was refused: ")


def test_a_mapping_that_cannot_be_built_is_an_error(store: ProofStore) -> None:
    def broken() -> Any:
        raise KeyError("nothing of that name")

    (outcome,) = stored_outcomes({TRUE: Entry("r", lambda: MappingSubject.built(broken))}, store)
    assert (outcome.status, outcome.reason) == ("ERROR", "KeyError: 'nothing of that name'")


# -- the page -----------------------------------------------------------------------------------------


def test_the_counterexample_is_run_and_shown(store: ProofStore) -> None:
    page = page_of(stored_outcomes(ENTRIES, store), PageInputs())
    assert re.findall(r"<mark title=\"first difference\">(\w+)</mark>", page) == ["0x00", "0x80"]
    found = search(selection_mapping())
    assert found is not None
    cell = next(a for a, word in found.inputs["host_in"].items() if word == 0x80)
    assert f"<code>host_in[{cell}]</code> = <code>0x80</code>" in page
    shown = re.search(rf"columns (\d+) to (\d+) of {found.shape[1]}", page)
    assert shown is not None and int(shown[1]) <= found.column <= int(shown[2])
    assert "Output of the device" in page and "Output of the IR" in page


@pytest.mark.parametrize(("ours", "shown"), [("w", r"(device|ir) host w\[0\]"), ("v", r"(v|w)\[0\]")])
def test_cells_are_shown_with_their_side_where_both_have_one_of_the_name(
    ours: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = with_a_tensor(False, ours)
    known = {claim.name: MappingClaim(claim.name, "", lambda: claim)}
    monkeypatch.setattr("ilaverify.catalogue.mappings", lambda: known)
    found = search(claim, shapes=[(1, 1)], budget_seconds=5.0)
    assert found is not None
    text = counterexample_text(found)
    outcome = ProofOutcome(claim.name, "REFUTED", kind="mapping", counterexample=found.summary(), document=text)
    page = page_of([outcome], PageInputs())
    assert re.search(f"<code>{shown}</code> = <code>0x1</code>", page)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "unknown_name"}, "the catalogue has no mapping of that name"),
        ({"document": "{}"}, "its data cannot be read (keys of a counterexample must be exactly mapping, sizes, "),
        ({"name": TRUE}, "its sizes or cells are not those of the mapping as it is now"),
        ({"name": "flexasr_maxpool"}, "a run of the mapping as it is now shows no difference"),
    ],
)
def test_outputs_that_cannot_be_shown(store: ProofStore, changes: dict[str, str], said: str) -> None:
    outcome = replace(stored_outcomes(ENTRIES, store)[2], **changes)
    page = page_of([outcome], PageInputs())
    assert badges(page) == {outcome.name: "REFUTED"}
    assert f"The outputs are not shown: {said}" in page and "<mark" not in page


@pytest.mark.parametrize("changes", [{"column": 6}, {"row": 0, "column": 8}, {"device": 1}, {"ir": 0x40}])
def test_outputs_of_another_difference_are_not_shown(store: ProofStore, changes: dict[str, int]) -> None:
    outcome = stored_outcomes(ENTRIES, store)[2]
    other = replace(outcome, document=json.dumps(json.loads(outcome.document) | changes))
    page = page_of([other], PageInputs())
    assert "a run of the mapping as it is now shows another difference" in page and "<mark" not in page


def test_invariants_are_readable() -> None:
    page = page_of([proved()], PageInputs())
    assert "<pre>i &lt; 2\nnot done =&gt; i &lt;= 0</pre>" in page and "(not (&lt;= 2 i))" not in page


def test_invariants_that_cannot_be_read_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    level = {"found_by": "x", "seconds": 0.1, "horn": "", "invariant": ["(< i 2)"], "names": {}}
    page = page_of([proved(document=certificate(claim("good"), invariants={"one": level}))], PageInputs())
    assert "<pre>(&lt; i 2)</pre>" in page
    assert "ilaverify: invariant of one is shown as SMT-LIB text: not an SMT-LIB term" in capsys.readouterr().err


def test_a_run_without_proofs(capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of([ProofOutcome("x", "PROVED", document="no certificate")], PageInputs())
    assert badges(page) == {"x": "ERROR"} and capsys.readouterr().err == ""


# -- the command --------------------------------------------------------------------------------------


def test_report(store: ProofStore, tmp_path: Path) -> None:
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns" / "toy_add.campaign.json").write_text(json.dumps(CAMPAIGN))
    (tmp_path / "times.json").write_text(json.dumps(TIMES))
    before = store.path.read_bytes()
    done = run(
        "report", TRUE, FALSE, "--store", "s", "-o", "deep/page.html", "--campaigns", "campaigns", "--scaling",
        "times.json", cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("written   deep/page.html\n1 PROVED, 1 REFUTED; all as expected\n")
    page = (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert badges(page) == {TRUE: "PROVED", FALSE: "REFUTED"}
    assert "nothing was proved to write this page" in page and "toy_add" in page and page.count('class="plot"') == 2
    assert store.path.read_bytes() == before and os.listdir(tmp_path / "deep") == ["page.html"]


def test_report_of_a_claim_that_is_not_proved(store: ProofStore, tmp_path: Path) -> None:
    done = run("report", TRUE, "flexasr_meanpool", "--store", "s", "-o", "p.html", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    found = json.loads(done.stdout)
    statuses = {m["name"]: m["status"] for m in found["claims"]}
    assert statuses == {TRUE: "PROVED", "flexasr_meanpool": NOT_RUN} and found["written"] == ["p.html"]
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert badges(page) == {TRUE: "PROVED", "flexasr_meanpool": "NOTRUN"}
    assert "not proved with these semantics" in page


@pytest.mark.slow
def test_without_a_store_nothing_is_proved(tmp_path: Path) -> None:
    done = run("report", TRUE, "-o", "p.html", cwd=tmp_path)
    assert done.returncode == 2 and "1 NOT RUN\n" in done.stdout
    assert badges((tmp_path / "p.html").read_text()) == {TRUE: "NOTRUN"} and os.listdir(tmp_path) == ["p.html"]


def test_claims_that_the_store_does_not_have_are_counted(tmp_path: Path) -> None:
    names = ["relu-twice", "transposed-twice", "relu-commutes-with-max-pooling", "im2col"]
    done = run("report", *names, "-o", "p.html", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == (
        "NOT RUN  4 claims: not proved with these semantics: the store holds nothing of this claim; prove it with "
        "ilaverify prove\nwritten   p.html\n4 NOT RUN\n"
    )
    done = run("report", *names[:3], "-o", "p.html", cwd=tmp_path)
    assert done.stdout.count("the store holds nothing of this claim") == 3


def test_prove_writes_the_page(store: ProofStore, tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text(json.dumps(TIMES))
    done = run("prove", TRUE, FALSE, "--store", "s", "--html", "p.html", "--scaling", "times.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and "written   p.html\n" in done.stdout
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert badges(page) == {TRUE: "PROVED", FALSE: "REFUTED"} and 'id="scaling"' in page
    assert "nothing was proved" not in page and "<mark" in page


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report", "the following arguments are required: -o"),
        ("report -o .", "-o must name a file, not the directory ."),
        (
            "report -o p --store none",
            "--store must name a proof store, not none; make one with ilaverify prove --store",
        ),
        ("report -o p --store no", "the proof store is damaged or no store"),
        ("report flexasr_maxpol -o p", "(did you mean flexasr_maxpool?)"),
        ("report -o p --campaigns none", "none: campaigns must be in a directory"),
        ("report -o p --campaigns .", ".: the directory must hold *.campaign.json; write them with ilaverify campaign"),
        ("report -o p --scaling none", "none: an input of the page must be a readable file: No such file or directory"),
        ("report -o p --scaling no", "no: the file must be JSON text"),
        ("prove --all --html .", "--html must name a file, not the directory ."),
        ("prove --all --scaling no", "--scaling is shown on the HTML page; give --html FILE as well"),
        ("prove --all --campaigns no", "--campaigns is shown on the HTML page; give --html FILE as well"),
        ("prove --all --html p --scaling no", "no: the file must be JSON text"),
    ],
)
def test_bad_usage(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no").write_text("no JSON, no store " * 100)
    monkeypatch.chdir(tmp_path)
    code, said = main(line.split()), capsys.readouterr()
    assert (code, said.out) == (64, "") and message in said.err and said.err.startswith("ilaverify: ")
    assert os.listdir(tmp_path) == ["no"]


def test_a_page_that_cannot_be_written(store: ProofStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    code = main(["report", TRUE, "--store", str(store.path), "-o", str(tmp_path / "file" / "p.html")])
    said = capsys.readouterr()
    assert (code, said.out) == (64, "") and said.err.startswith(f"ilaverify: -o: {tmp_path / 'file'}")


def test_a_page_that_cannot_be_made_leaves_the_old_one(store: ProofStore, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    page.write_text("old")
    (tmp_path / "x.campaign.json").write_text("{}")
    code = main(["report", TRUE, "--store", str(store.path), "-o", str(page), "--campaigns", str(tmp_path)])
    assert code == 64 and page.read_text() == "old"


# -- what the page shows beside proofs ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "other"}, "schema must be ilaverify-campaign-1, not 'other'; run the campaign again"),
        ({"samples": None}, "a campaign must have the form that ilaverify campaign writes (TypeError: "),
        ({"error": {"count": 1}}, "(KeyError: 'mean'); run the campaign again"),
        ({"covered": "all"}, "(TypeError: a number is needed, not 'all'); run the campaign again"),
        ({"samples": [{"distribution": "uniform", "error": float("nan")}]}, "a number must be finite and not negative"),
        ({"samples": [{"distribution": "uniform", "error": -1}]}, "a number must be finite and not negative, not -1"),
        ({"samples": [{"distribution": "other", "error": 1}]}, "(KeyError: 'other')"),
        ({"parameters": []}, "(AttributeError: "),
    ],
)
def test_campaigns_of_another_form(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.campaign.json"
    path.write_text(json.dumps(CAMPAIGN | changes))
    with pytest.raises(InputError) as caught:
        read_campaign(path)
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": {}}, "there must be at least one time, not none"),
        (
            {"cells": {"sum of ten": {"z3": {"seconds": 1, "answer": "unsat"}}}},
            "a shape must be like 16x64, not 'sum of",
        ),
        ({"cells": {"0x4": {"z3": {"seconds": 1, "answer": "unsat"}}}}, "a shape must be like 16x64, not '0x4'"),
        ({"cells": {"1x4": {"z3": {"seconds": 0, "answer": "unsat"}}}}, "seconds must be positive, not 0.0"),
        ({"limit": True}, "(TypeError: a number is needed, not True)"),
        ({"machine": "mine"}, "(AttributeError: "),
    ],
)
def test_times_of_another_form(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text(json.dumps(TIMES | changes))
    with pytest.raises(InputError) as caught:
        read_scaling(path)
    assert str(caught.value).startswith(f"{path}: times must have the form") and message in str(caught.value)


def test_files_that_are_no_objects(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(InputError, match="the file must hold a JSON object, not list"):
        read_scaling(tmp_path / "x.json")
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(InputError, match="the file must be JSON text"):
        read_scaling(tmp_path / "x.json")


def test_what_this_repository_measured_can_be_shown() -> None:
    scaling = read_scaling(ROOT / "benchmarks" / "results" / "table3.json")
    assert {"BMC", "BMC arrays", "CHC symbolic"} <= set(scaling.methods) and len(scaling.rows) >= 5


def test_what_a_campaign_writes_can_be_shown(tmp_path: Path) -> None:
    result = run_campaign(CAMPAIGNS["toy_holds"], examples=20, seed=1, database=None)
    (tmp_path / "toy.campaign.json").write_text(json.dumps(result_json(result)))
    (record,) = read_campaigns(tmp_path)
    assert (record.name, record.examples, record.checked) == ("toy_holds", 20, result.checked)
    assert sum(map(len, record.errors.values())) + sum(count for _, count in record.skipped) == 20


@pytest.mark.slow
@pytest.mark.proof
def test_a_true_proof_on_the_page(tmp_path: Path) -> None:
    done = run("prove", TRUE, "--html", "p.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert badges(page) == {TRUE: "PROVED"} and "is 0 or 1" in page and "precondition satisfiable" in page
    assert run("report", TRUE, "-o", "q.html", cwd=tmp_path).returncode == 0
    assert badges((tmp_path / "q.html").read_text(encoding="utf-8")) == {TRUE: "PROVED"}
