"""Proving many mappings: the store, expectations, exit codes, interruption."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bmc.counterexample import Counterexample, replays
from bmc.search import search, search_at
from bmc.unroll import Cell
from chc.mapping.prove import claim_of
from ila_lang.mapping import TensorMapping
from ilaverify import cli
from ilaverify.catalogue import find_entry, mapping_entries, mappings
from ilaverify.cli.outcomes import exit_code_of
from ilaverify.identity import prover_identity, sources_stamp
from ilaverify.proving import prove_all as module
from ilaverify.proving import stored
from ilaverify.proving.prove_all import prove_all
from ilaverify.proving.workers import Limits, Task, run_tasks
from reports.certificate import certificate_text, content_digest
from reports.outcomes import NOT_RUN, ProofOutcome, tally
from reports.store import CERTIFICATE, COUNTEREXAMPLE, ProofStore
from reports.subjects import Entry
from rewrites.claims.counterexamples import counterexample_from_text, counterexample_text
from rewrites.claims.subjects import mapping as mapping_subject
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.mappings.flexasr.pooling import pooling_mapping, selection_mapping
from smt_encodings import answers
from smt_encodings.claims import Answer, Obligation, Runs, Status, Verdict
from smt_encodings.discharge import Discharger
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

ROOT = Path(__file__).parents[2]


# -- mappings, with a prover that costs nothing -------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> Counterexample:
    """A counterexample to the false claim; the models are built here once, too, and inherited by all processes."""
    pooling_mapping("max")
    difference = search(selection_mapping())
    assert difference is not None
    return difference


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Counterexample) -> Iterator[Callable[[], int]]:
    """Replaces the prover by one that says what ``tmp_path/verdict`` says; the value counts its calls."""
    calls = tmp_path / "calls"
    calls.touch()

    def fake(mapping: TensorMapping, method: str, discharger: Discharger) -> Verdict:
        with calls.open("a") as file:
            file.write("x")
        claim = claim_of(mapping)
        answers = (Answer("unsat", 0.1, "z3 1"), Answer("unsat", 0.1, "cvc5 1"))
        obligations = [Obligation("n", "g", "(check-sat)\n", "unsat", "m", answers)]
        if mappings()[mapping.name].false:
            return Verdict(Status.REFUTED, claim, "chc", 0.1, found.summary(), [], {}, {"counterexample": found})
        return Verdict(Status.PROVED, claim, "chc", 0.1, "", obligations, {}, {"levels": {}}, Runs(1, ()))

    monkeypatch.setattr(mapping_subject, "verify_with", fake)
    yield lambda: len(calls.read_text())


ENTRIES = mapping_entries(["flexasr_maxpool", "flexasr_maxpool_select"])


def outcomes(store: ProofStore | None, entries: Any = None, **more: Any) -> dict[str, ProofOutcome]:
    with closing(prove_all(entries or ENTRIES, limits=Limits(2, 60), store=store, **more)) as found:
        return {o.name: o for o in found}


def test_the_store_saves_the_prover_work(asked: Callable[[], int], tmp_path: Path) -> None:
    store = ProofStore(tmp_path / "s")
    first = outcomes(store)
    assert asked() == 2 and all(o.as_expected and not o.from_store for o in first.values())
    assert first["flexasr_maxpool_select"].program and first["flexasr_maxpool_select"].notes == ()
    second = outcomes(store)
    assert asked() == 2 and all(o.as_expected and o.from_store for o in second.values())
    kinds = {"PROVED": CERTIFICATE, "REFUTED": COUNTEREXAMPLE}
    for name, outcome in second.items():
        assert store.get(outcome.key) == (kinds[outcome.status], outcome.document)
        again = replace(outcome, seconds=0, from_store=False, obligations=0, solvers=(), key="")
        assert again == replace(first[name], seconds=0, obligations=0, solvers=())
    assert second["flexasr_maxpool"].solvers == ("cvc5 1", "z3 1")
    assert outcomes(None)["flexasr_maxpool"].from_store is False and asked() == 4


def test_another_prover_uses_no_old_proof(
    asked: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ProofStore(tmp_path / "s")
    outcomes(store)
    now = prover_identity(ENTRIES["flexasr_maxpool"].build())
    for name in now:
        before = asked()
        other = {**now, name: "other"}
        for place in (module, stored):
            monkeypatch.setattr(place, "prover_identity", lambda subject, other=other: other)
        assert not any(o.from_store for o in outcomes(store).values()) and asked() == before + 2


def test_a_proof_is_not_kept_where_its_prover_changed_meanwhile(
    asked: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file may change: it is no part of the proof."""
    before = sources_stamp()
    prover, compiler = (next(p for p in before if p.match(name)) for name in ("chc/mapping/prove.py", "compiler.py"))
    for path, kept in ((prover, False), (compiler, True)):
        store = ProofStore(tmp_path / path.name)
        stamps = iter([before])
        monkeypatch.setattr(module, "sources_stamp", lambda s=stamps, p=path: next(s, {**before, p: (0, 0)}))
        found = outcomes(store)
        assert all(o.as_expected for o in found.values()) and asked()
        assert bool(store.entries()) is kept
        said = "not put into the store: files of the prover changed while it ran"
        assert all((said in o.notes) is not kept for o in found.values())


def changed(store: ProofStore, name: str, change: Callable[[str], str]) -> None:
    with sqlite3.connect(store.path) as connection:
        (text,) = connection.execute("SELECT text FROM proofs WHERE subject = ?", (name,)).fetchone()
        assert change(text) != text
        connection.execute("UPDATE proofs SET text = ? WHERE subject = ?", (change(text), name))


def resealed(text: str, **parts: Any) -> str:
    content = json.loads(text) | parts
    return certificate_text({**content, "digest": content_digest(content)})


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda t: t.replace("65534", "65535"), "the digest must match the content"),
        (lambda t: t[: len(t) // 2], "a certificate must be JSON text"),
        (lambda t: "", "a certificate must be JSON text"),
        (lambda t: resealed(t, semantics={"device": "d", "ir": "i", "relation": "r"}), "its semantics must be that"),
        (lambda t: resealed(t, claim=json.loads(t)["claim"] | {"size_domain": "all"}), "its claim must be that"),
        (lambda t: resealed(t, obligations=[{**json.loads(t)["obligations"][0], "answers": []}]), "2 solvers must"),
    ],
)
def test_a_tampered_proof_is_reported_and_made_again(
    asked: Callable[[], int], tmp_path: Path, change: Callable[[str], str], note: str
) -> None:
    store, entries = ProofStore(tmp_path / "s"), mapping_entries(["flexasr_maxpool"])
    outcomes(store, entries)
    changed(store, "flexasr_maxpool", change)
    (outcome,) = outcomes(store, entries).values()
    assert asked() == 2 and outcome.as_expected and not outcome.from_store
    assert len(outcome.notes) == 1 and note in outcome.notes[0]
    (outcome,) = outcomes(store, entries).values()  # it was replaced
    assert asked() == 2 and outcome.from_store and outcome.notes == ()


def other_counterexample(**parts: Any) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | parts)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda t: "{", "Expecting property name"),
        (other_counterexample(initial=[]), "it does not replay"),
        (other_counterexample(device=1), "it does not replay"),
        (other_counterexample(sizes={"T": 1, "nv": 1, "base": 0, "entry": 0}), "it does not replay"),
        (other_counterexample(sizes={}), "it does not replay"),
        (other_counterexample(shown=["0x01", "0x02"]), "it does not replay"),
        (other_counterexample(row="0"), "row of a counterexample must have its form, not '0'"),
        (other_counterexample(initial=[[1, 2]]), "initial of a counterexample must have its form, not [[1, 2]]"),
        (other_counterexample(more=1), "keys of a counterexample must be exactly"),
    ],
)
def test_a_tampered_counterexample_is_reported_and_found_again(
    asked: Callable[[], int], tmp_path: Path, change: Callable[[str], str], note: str
) -> None:
    store, entries = ProofStore(tmp_path / "s"), mapping_entries(["flexasr_maxpool_select"])
    outcomes(store, entries)
    changed(store, "flexasr_maxpool_select", change)
    (outcome,) = outcomes(store, entries).values()
    assert asked() == 2 and outcome.as_expected and not outcome.from_store
    assert len(outcome.notes) == 1 and note in outcome.notes[0]


def test_a_stored_counterexample_outside_the_domain_is_refused(asked: Callable[[], int], tmp_path: Path) -> None:
    mapping = selection_mapping()
    inside = search_at(mapping, {"T": 2, "nv": 1, "base": 0, "entry": 0})
    assert inside is not None
    outside = replace(inside, sizes={**inside.sizes, "base": 65537})
    assert replays(mapping, outside) and not mapping.holds(outside.sizes)
    store, entries = ProofStore(tmp_path / "s"), mapping_entries(["flexasr_maxpool_select"])
    outcomes(store, entries)
    changed(store, "flexasr_maxpool_select", lambda _: counterexample_text(outside))
    (outcome,) = outcomes(store, entries).values()
    assert asked() == 2 and not outcome.from_store and "it does not replay" in outcome.notes[0]


def test_a_proof_under_another_key_is_refused(asked: Callable[[], int], tmp_path: Path) -> None:
    store = ProofStore(tmp_path / "s")
    outcomes(store)
    keys = {subject: key for key, _, subject in store.entries()}
    entry = store.get(keys["flexasr_maxpool"])
    assert entry is not None
    store.put(keys["flexasr_maxpool_select"], CERTIFICATE, "flexasr_maxpool_select", entry[1])
    outcome = outcomes(store)["flexasr_maxpool_select"]
    assert outcome.status == "REFUTED" and "its semantics must be that of the claim as it is now" in outcome.notes[0]


def test_a_damaged_store_is_reported_and_left_alone(asked: Callable[[], int], tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"no database at all" * 100)
    found = outcomes(ProofStore(path))
    assert asked() == 2 and all(o.as_expected for o in found.values())
    assert all("the proof store is damaged or no store" in o.notes[0] for o in found.values())
    assert path.read_bytes() == b"no database at all" * 100


def test_two_runs_at_once(asked: Callable[[], int], tmp_path: Path) -> None:
    store = ProofStore(tmp_path / "s")

    def one_run() -> str:
        return json.dumps([o.to_text() for o in outcomes(store).values()])

    for end in run_tasks([Task("a", one_run), Task("b", one_run)], jobs=2, timeout=60, memory=4096):
        assert end.text is not None, end.failure
        both = [ProofOutcome.from_text(t) for t in json.loads(end.text)]
        assert len(both) == 2 and all(o.as_expected and o.notes == () for o in both)
    store.check()
    assert len(store.entries()) == 2
    assert all(o.from_store for o in outcomes(store).values())


def test_recheck_asks_solvers(asked: Callable[[], int], tmp_path: Path) -> None:
    """The fake proof's only obligation is none that the claim needs: only asking again can tell."""
    store, entries = ProofStore(tmp_path / "s"), mapping_entries(["flexasr_maxpool"])
    outcomes(store, entries)
    (outcome,) = outcomes(store, entries, recheck=True).values()
    assert not outcome.from_store and "the obligations of the claim cannot be generated" in outcome.notes[0]


# -- what is expected ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
def test_broken_entries_are_errors(asked: Callable[[], int], tmp_path: Path, kept: bool) -> None:
    store = ProofStore(tmp_path / "s") if kept else None

    def broken() -> TensorMapping:
        raise KeyError("nothing of that name")

    def crash() -> TensorMapping:
        os._exit(3)

    entries = {
        "raises": Entry("r", lambda: MappingSubject.built(broken)),
        "crashes": Entry("c", lambda: MappingSubject.built(crash)),
    } | ENTRIES
    found = outcomes(store, entries)
    assert {n: o.status for n, o in found.items()} == {
        "raises": "ERROR", "crashes": "ERROR", "flexasr_maxpool": "PROVED", "flexasr_maxpool_select": "REFUTED",
    }  # fmt: skip
    assert found["raises"].reason == "KeyError: 'nothing of that name'" and found["raises"].summary == "r"
    assert found["crashes"].reason == "its process ended with exit code 3"
    assert not found["raises"].as_expected and exit_code_of(list(found.values())) == 2


def test_a_proof_that_dies_leaves_the_place_of_its_claim(
    asked: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from reports.formats.junit import junit_text

    def dies(*_: object) -> Verdict:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    known = outcomes(None, mapping_entries(["flexasr_maxpool"]))["flexasr_maxpool"]
    monkeypatch.setattr(mapping_subject, "verify_with", dies)
    found = outcomes(None, mapping_entries(["flexasr_maxpool"]))["flexasr_maxpool"]
    assert found.status == "ERROR" and found.reason.startswith(
        "its process was ended by SIGKILL; probably out of memory"
    )
    assert (found.file, found.line) == (known.file, known.line) and found.line > 0
    case = junit_text([found])
    assert (
        f'file="rewrites/mappings/flexasr/pooling.py" line="{known.line}"' in case and '<error message="ERROR, ' in case
    )


def test_a_run_asks_each_question_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("_ANSWERED", "_OWN"):
        monkeypatch.setattr(answers, known, {})
    entries = {"an-axis-of-size-1-dropped-and-back": find_entry("an-axis-of-size-1-dropped-and-back")}
    (first,) = outcomes(None, entries).values()
    assert first.status == "PROVED" and first.obligations

    def asked(*_: object, **__: object) -> Answer:
        raise AssertionError("a solver is asked")

    monkeypatch.setattr(solver_z3, "_attempt", asked)
    monkeypatch.setattr(solver_cvc5, "_answer", asked)
    (again,) = outcomes(None, entries).values()
    assert (again.status, again.obligations, again.solvers) == ("PROVED", first.obligations, first.solvers)
    monkeypatch.setattr(answers, "_ANSWERED", {})
    (unknown,) = outcomes(None, entries).values()
    assert unknown.status == "ERROR" and "a solver is asked" in unknown.reason


def test_a_false_claim_is_fine_only_if_refuted(asked: Callable[[], int]) -> None:
    assert outcomes(None)["flexasr_maxpool_select"].as_expected
    other = {Status.PROVED: Status.REFUTED, Status.REFUTED: Status.PROVED}
    wrong = outcomes(None, {n: replace(e, expected=other[e.expected]) for n, e in ENTRIES.items()})
    assert not any(o.as_expected for o in wrong.values())


def proved(**changes: Any) -> ProofOutcome:
    return replace(ProofOutcome("toy", "PROVED", document="certificate"), **changes)


def test_a_claim_that_cannot_be_built_hides_no_refutation() -> None:
    broken, false = proved(status="ERROR", document="", refused=True), proved(status="REFUTED", counterexample="c")
    assert [exit_code_of(these) for these in ([proved(), broken], [broken, false])] == [64, 1]


@pytest.mark.parametrize(
    ("outcome", "fine", "code"),
    [
        (proved(), True, 0),
        (proved(document=""), False, 2),
        (proved(expected="REFUTED"), False, 2),
        (proved(status="REFUTED", counterexample="c"), False, 1),
        (proved(status="REFUTED", counterexample="c", expected="REFUTED"), True, 0),
        (proved(status="REFUTED", expected="REFUTED"), False, 2),
        (proved(status="UNKNOWN", document=""), False, 2),
        (proved(status="VACUOUS", document=""), False, 2),
        (proved(status="ERROR", document=""), False, 2),
        (proved(status=NOT_RUN, document=""), False, 2),
        (proved(status="ERROR", expected="ERROR"), False, 2),
    ],
)
def test_exit_codes(outcome: ProofOutcome, fine: bool, code: int) -> None:
    assert outcome.as_expected is fine
    assert exit_code_of([proved(), outcome]) == code
    told = "; all that ran as expected" if outcome.status == NOT_RUN else "; 1 not as expected"
    assert tally([proved(), outcome]).endswith("; all as expected" if fine else told)


def test_nothing_proved_is_no_success() -> None:
    assert exit_code_of([]) == 2


# -- helpers ------------------------------------------------------------------------------------------


def test_outcomes_survive_as_text() -> None:
    outcome = proved(name="\ud800 <&>\x00", claim={"subject": "x"}, solvers=("a", "b"), notes=("n",))
    assert ProofOutcome.from_text(outcome.to_text()) == outcome


def test_counterexamples_survive_as_text() -> None:
    cells = {Cell("input", "host_in", 3): 7, Cell("device", "reg", None): 1 << 127}
    found = Counterexample("m", {"T": 2}, (2, 16), cells, 0, 1, 2, 3, ("a", "b"), 1, 16)
    again = counterexample_from_text(counterexample_text(found))
    assert vars(again) == vars(found)
    assert vars(counterexample_from_text(counterexample_text(replace(found, shape=None))))["shape"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sizes", {"T": "2"}), ("sizes", {"T": 2.5}), ("sizes", {"T": True}), ("shape", ["2", 16]), ("row", True),
        ("initial", [["input", "x", 0]]), ("initial", ["word"]), ("initial", [["input", "x", 0, "7"]]),
        ("initial", [["input", "x", "0", 7]]), ("initial", [["input", [], 0, 7]]),
        ("initial", [["input", "x", 0, 1e400]]), ("shown", [[], []]), ("initial", 7),
    ],
)  # fmt: skip
def test_parts_of_counterexamples_of_another_form_are_refused(name: str, value: Any) -> None:
    found = Counterexample("m", {"T": 2}, (2, 16), {}, 0, 1, 2, 3, ("a", "b"), 1, 16)
    content = json.loads(counterexample_text(found)) | {name: value}
    with pytest.raises(ValueError) as caught:
        counterexample_from_text(json.dumps(content))
    assert str(caught.value) == f"{name} of a counterexample must have its form, not {value!r}"


@pytest.mark.parametrize(
    ("build", "code"),
    [(lambda: pooling_mapping("max"), "    return flexasr_mapping("), (selection_mapping, "    return replace(")],
)
def test_a_mapping_is_located_where_it_is_made(build: Callable[[], TensorMapping], code: str) -> None:
    file, line = MappingSubject.built(build).place()
    assert file == "rewrites/mappings/flexasr/pooling.py"
    assert (ROOT / file).read_text().splitlines()[line - 1] == code


# -- the command --------------------------------------------------------------------------------------


def command(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
    env["XDG_CACHE_HOME"] = str(cwd / "cache")
    return subprocess.Popen(
        [sys.executable, "-m", "ilaverify", "prove", *map(str, arguments)],
        cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test may run where Ctrl-C is ignored
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "prove must be given either the names of claims, or --kind, or --target, or --all"),
        ("--all flexasr_maxpool", "prove must be given either the names of claims, or --kind, or --target, or --all"),
        ("--all --kind rule", "prove must be given either the names of claims, or --kind, or --target, or --all"),
        ("--kind rules", "argument --kind: invalid choice: 'rules'"),
        ("flexasr_maxpol", "there is no claim named 'flexasr_maxpol' (did you mean flexasr_maxpool?)"),
        ("--all --jobs 0", "must be a positive integer, not '0'"),
        ("--all --memory much", "must be a positive integer, not 'much'"),
        ("--all --memory 50", "argument --memory: must be at least 512 MB, which loading takes, not 50 MB"),
        ("--all --seed x", "argument --seed: must be a seed, an integer of 0 or more, not 'x'"),
        ("--all --timeout -1", "must be a positive number of seconds, not '-1'"),
        ("--all --timeout inf", "must be a positive number of seconds, not 'inf'"),
        ("--all --store .", "--store must name a file, not the directory ."),
        ("--all --trust .", "--trust must name a file, not the directory ."),
        ("--all --store s --no-store", "--store and --no-store exclude each other"),
        ("--all --seed 3", "--seed draws mutants; give --mutants N as well, or leave --seed out"),
        (
            "--all --recheck --no-store",
            "--recheck is about stored proofs, and --no-store uses none; leave one of them out",
        ),
        ("--all --mutants 3 --no-store", "--mutants keeps no proofs and writes no reports; leave --no-store out"),
        ("--all --mutants 3 --scaling x", "--mutants keeps no proofs and writes no reports; leave --scaling out"),
        ("--all -o file", "-o must name a directory, not the file file"),
        ("--all --junit r.xml --sarif ./r.xml", "--junit and --sarif must name different files, not both r.xml"),
        ("--all --store r.html --html r.html", "--store and --html must name different files, not both r.html"),
    ],
)
def test_bad_usage(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = cli.main(["prove", *line.split()])
    output, errors = capsys.readouterr()
    assert (code, output) == (64, "")
    assert message in errors and errors.startswith("ilaverify: ") and "Traceback" not in errors
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_has(number: int, tmp_path: Path) -> None:
    """The run is interrupted when the second proof has just begun; a single process takes from the end first."""
    process = command("flexasr_maxpool", "flexasr_meanpool", "--jobs", "1", "-o", "out", cwd=tmp_path)
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("PROVED   flexasr_meanpool ")
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted; what was proved is kept" in errors, errors
    assert "Traceback" not in errors and "1 NOT RUN, 1 PROVED; all that ran as expected" in output
    assert sorted(os.listdir(tmp_path / "out")) == ["flexasr_meanpool.chc.cert.json", "proofs.intoto.json"]
    store = ProofStore(tmp_path / "cache" / "ilaverify" / "proofs.sqlite3")
    assert [subject for _, _, subject in store.entries()] == ["flexasr_meanpool"]


@pytest.mark.slow
@pytest.mark.proof
def test_end_to_end(tmp_path: Path) -> None:
    process = command("vta_relu", "-o", "out", "--json", cwd=tmp_path)
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, ""), output
    (mapping,) = json.loads(output)["claims"]
    assert (mapping["status"], mapping["as_expected"], mapping["origin"]) == ("PROVED", True, "this run")
    assert mapping["location"]["file"] == "rewrites/mappings/vta/elementwise.py" and mapping["obligations"] > 50
    asked_for = ["--junit", "j.xml", "--sarif", "s.sarif", "--markdown", "deep/m.md", "--trust", "t.txt"]
    process = command("vta_relu", "-o", "again", *asked_for, cwd=tmp_path)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "") and ", from store" in output
    for name in ("j.xml", "s.sarif", "deep/m.md", "t.txt", "again/proofs.intoto.json"):
        assert f"written   {name}\n" in output and "vta_relu" in (tmp_path / name).read_text().replace("\\", "")
    name = "vta_relu.chc.cert.json"
    certificates = [(tmp_path / directory / name).read_bytes() for directory in ("out", "again")]
    assert certificates[0] == certificates[1]
    statement = json.loads((tmp_path / "again" / "proofs.intoto.json").read_text())
    digest = hashlib.sha256(certificates[0]).hexdigest()
    assert statement["subject"] == [{"name": name, "digest": {"sha256": digest}}]
    process = command("vta_relu", "--recheck", cwd=tmp_path)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "") and ", from store" in output


@pytest.mark.parametrize(
    ("finished", "options", "said"),
    [
        (0, ["--no-store"], "nothing was proved"),
        (1, ["--no-store"], "what was proved is shown, and not kept"),
        (1, ["--no-store", "-o", "out"], "what was proved is kept"),
        (1, [], "what was proved is kept"),
    ],
)
def test_an_interrupted_run_says_what_it_keeps(
    finished: int,
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[ProofOutcome]:
        yield from [ProofOutcome("f1", "PROVED", kind="rule")][:finished]
        raise KeyboardInterrupt

    monkeypatch.setattr("ilaverify.proving.prove_all.prove_all", interrupted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["prove", "f1", *options]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == f"ilaverify: interrupted; {said}"
