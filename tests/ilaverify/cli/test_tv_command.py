"""The verb ``tv``: two files, passes one by one, certificates, counterexamples and reports."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import ilaverify
from ilaverify.cli import main
from ilaverify.errors import UsageError
from ilaverify.identity import prover_identity
from ilaverify.proving.prove_all import prove_all
from ir_semantics.mlir import convert
from ir_semantics.mlir.convert import find_converter
from reports.certificate import certificate_text, claim_json, content_digest, questions_digest, read_certificate
from reports.outcomes import ProofOutcome
from reports.store import CERTIFICATE, ProofStore, key_of
from reports.subjects import Entry
from rewrites.claims.subjects.translation import TranslationSubject
from smt_encodings.claims import Status
from tests.ilaverify.cli.mlir_programs import (
    ADD,
    ADD_FLOATS,
    FLOATS,
    SUBTRACT,
    SWAPPED,
    UNKNOWN,
    fake_mlir_opt,
    function,
)

needs_mlir_opt = pytest.mark.skipif(find_converter() is None, reason="there is no mlir-opt here that runs passes")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *functions: str) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(functions), encoding="utf-8")
    return name


def tv(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["tv", "--jobs", "1", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def claims(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = tv(capsys, *arguments, "--json")
    return code, {claim["name"]: claim for claim in json.loads(out)["claims"]}


def checked(capsys: pytest.CaptureFixture[str], *paths: str) -> tuple[int, str]:
    code = main(["check", "--jobs", "1", *paths])
    return code, capsys.readouterr().out


def test_each_function_has_a_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write("a.mlir", function("good", ADD), function("bad", ADD), function("odd", UNKNOWN))
    target = write("b.mlir", function("good", SWAPPED), function("bad", SUBTRACT), function("odd", UNKNOWN))
    code, rows = claims(capsys, source, target)
    assert code == 1
    assert {name: row["status"] for name, row in rows.items()} == {"good": "PROVED", "bad": "REFUTED", "odd": "UNKNOWN"}
    assert rows["bad"]["location"] == {"file": "a.mlir", "line": 6}
    assert "any.thing at 13:3" in rows["odd"]["reason"]
    assert rows["bad"]["counterexample"]
    assert rows["good"]["obligations"] > 0
    assert "@good of source SHA-256" in rows["good"]["claim"]["statement"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(ADD, SWAPPED, 0), (ADD, SUBTRACT, 1), (ADD, UNKNOWN, 2), (UNKNOWN, UNKNOWN, 2)],
)
def test_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, expected: int) -> None:
    code, _, _ = tv(capsys, write("a.mlir", function("f", before)), write("b.mlir", function("f", after)))
    assert code == expected


def test_a_certificate_is_accepted_and_a_changed_one_is_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = write("a.mlir", function("f", ADD)), write("b.mlir", function("f", SWAPPED))
    assert tv(capsys, source, target, "-o", "proofs")[0] == 0
    [path] = Path("proofs").glob("*.cert.json")
    assert checked(capsys, str(path))[0] == 0

    def forged(change: Any) -> str:
        content = read_certificate(path)
        change(content)
        content["digest"] = content_digest(content)
        Path("forged.cert.json").write_text(certificate_text(content), encoding="utf-8")
        code, out = checked(capsys, "forged.cert.json")
        assert code == 1
        return out

    wrong = function("f", SUBTRACT)

    def other_target(content: Any) -> None:
        content["parameters"]["pair"]["target"]["text"] = wrong

    def other_target_with_its_digest(content: Any) -> None:
        other_target(content)
        content["semantics"]["target"] = ilaverify_digest(wrong)

    def no_answers(content: Any) -> None:
        content["parameters"]["answers"] = []

    def no_text(content: Any) -> None:
        content["parameters"]["pair"]["target"]["text"] = "%"

    def other_name(content: Any) -> None:
        content["claim"]["subject"] = "layer.g"

    def no_truth_value(content: Any) -> None:
        content["parameters"]["pair"]["options"]["associative"] = "no"

    assert "the option associative of a pair must be true or false" in forged(no_truth_value)
    assert "the subject of a claim about @f must end with f, not be layer.g" in forged(other_name)
    assert "the target side of f is not the one that was proved" in forged(other_target)
    assert "REJECTED" in forged(other_target_with_its_digest)
    assert "REJECTED" in forged(no_answers)
    assert "its programs cannot be read: 1:1: here must be" in forged(no_text)


def ilaverify_digest(text: str) -> str:
    from rewrites.claims.sources import text_digest

    return text_digest(text)


def test_a_counterexample_replays_and_a_changed_one_does_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = write("a.mlir", function("f", ADD)), write("b.mlir", function("f", SUBTRACT))
    assert tv(capsys, source, target, "-o", "out", "--buffers-apart")[0] == 1
    [path] = Path("out").glob("*.counterexample-data.json")
    code, out = checked(capsys, str(path))
    assert code == 0
    assert "the sides differ, replayed" in out
    digests = [ilaverify_digest(Path(name).read_text(encoding="utf-8"))[:16] for name in (source, target)]
    assert (
        f"it is of @f of source SHA-256 {digests[0]} and target SHA-256 {digests[1]}; the reading is: arguments that "
        "are buffers are blocks of their own\n"
    ) in out
    content = json.loads(path.read_text(encoding="utf-8"))
    content["pair"]["target"] = content["pair"]["source"]
    path.write_text(json.dumps(content), encoding="utf-8")
    code, out = checked(capsys, str(path))
    assert code == 1
    assert "both sides agree on these data" in out


def test_a_proof_is_taken_from_a_store(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write("a.mlir", function("f", ADD)), write("b.mlir", function("f", SWAPPED))
    assert claims(capsys, *files, "--store", "store")[1]["f"]["origin"] == "this run"
    assert claims(capsys, *files, "--store", "store")[1]["f"]["origin"] == "from store"
    write("b.mlir", function("f", SUBTRACT))
    assert claims(capsys, *files, "--store", "store")[1]["f"]["status"] == "REFUTED"


def test_a_forged_proof_is_found_where_solvers_are_asked_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The proof of another pair with a name, texts and digests of this one."""
    good = write("a.mlir", function("f", ADD)), write("b.mlir", function("f", SWAPPED))
    assert claims(capsys, *good, "--store", "store", "-o", "proofs")[0] == 0
    forged = read_certificate(Path("proofs/f.refinement.cert.json"))
    forged["parameters"]["pair"]["target"]["text"] = Path(write("c.mlir", function("f", SUBTRACT))).read_text()
    forged["parameters"]["answers"] = [True]
    subject = TranslationSubject.of_certificate(forged)
    forged["semantics"], forged["claim"] = subject.semantics(), claim_json(subject.claim(forged["parameters"]))
    forged["digest"] = content_digest(forged)
    key = key_of(subject, prover_identity(subject))
    ProofStore(Path("store")).put(key, CERTIFICATE, "f", certificate_text(forged), questions_digest(forged))
    assert claims(capsys, "a.mlir", "c.mlir", "--store", "store")[0] == 0  # as the documents say
    code, rows = claims(capsys, "a.mlir", "c.mlir", "--store", "store", "--recheck")
    assert (code, rows["f"]["status"]) == (1, "REFUTED")
    assert "the stored proof was refused: " in rows["f"]["notes"][0]
    code, _, err = tv(capsys, *good, "--recheck")
    assert (code, err) == (64, "ilaverify: --recheck is about stored proofs; name their store with --store FILE\n")


def test_functions_that_differ_in_type_or_are_gone_are_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = ', sym_visibility = "private"'
    source = write("a.mlir", function("f", ADD), function("g", ADD), function("h", ADD, attributes=private))
    target = write("b.mlir", function("f", ADD_FLOATS, FLOATS), function("new", ADD))
    code, rows = claims(capsys, source, target)
    assert code == 2
    assert rows.keys() == {"f", "g"}
    assert rows["f"]["reason"] == (
        "functions must have one signature to be compared; @f is (i32, i32) -> i32 in the source, and @f "
        "(f32, f32) -> f32 in the target; let the pass keep signatures, as docs/how-to/mlir.md says of bufferization"
    )
    assert rows["g"]["reason"] == "both programs must have one function @g with a body; the target has none"


def test_a_file_that_is_no_text_is_refused_by_its_first_byte(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bytes.mlir").write_bytes(b"\xfe\x80")
    assert main(["tv", "bytes.mlir", "bytes.mlir"]) == 64
    assert capsys.readouterr().err == (
        "ilaverify: bytes.mlir:1:1: here must be an operation in UTF-8, not the byte 0xfe\n"
    )


def test_one_function_is_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write("a.mlir", function("f", ADD), function("g", ADD))
    target = write("b.mlir", function("f", SUBTRACT), function("g", SWAPPED))
    code, rows = claims(capsys, source, target, "--function", "g")
    assert (code, list(rows)) == (0, ["g"])


def test_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write("a.mlir", function("good", ADD), function("bad", ADD))
    target = write("b.mlir", function("good", SWAPPED), function("bad", SUBTRACT))
    reports = ["--junit", "j.xml", "--sarif", "s.sarif", "--markdown", "m.md", "--html", "h.html"]
    code, out, _ = tv(capsys, source, target, *reports)
    assert code == 1
    assert "1 PROVED, 1 REFUTED; 1 not as expected" in out
    cases = {case.get("name"): case for case in ET.parse("j.xml").iter("testcase")}
    assert cases["good"].find("failure") is None
    assert cases["bad"].find("failure") is not None
    results = json.loads(Path("s.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    shown = next(r["properties"]["counterexample"] for r in results if r["ruleId"] == "refuted")
    assert shown == claims(capsys, source, target)[1]["bad"]["counterexample_data"]
    assert shown["place"] == "result 0"
    by_rule = {result["ruleId"]: result["locations"][0]["physicalLocation"] for result in results}
    assert by_rule["refuted"] == {
        "artifactLocation": {"uri": "a.mlir", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 6},
    }
    assert "**bad**: REFUTED, expected PROVED" in Path("m.md").read_text(encoding="utf-8")
    page = Path("h.html").read_text(encoding="utf-8")
    assert "bad" in page and "May a function of an MLIR program take the place of another one" in page
    assert not re.search("driver|accelerator", page[page.index("<body>") :])
    assert "answers <code>" not in page and "pair <code>" not in page  # nothing for people
    assert claims(capsys, source, target)[1]["bad"]["claim"]["interpretations"] == []  # evaluated


BAD_USAGE = {
    ("bytes.mlir", "a.mlir"): "bytes.mlir:1:1: the name of a function must be UTF-8; rename it",
    ("a.mlir",): "tv must be given either two files, SRC and TGT, or one (or a folder) with --passes",
    ("a.mlir", "a.mlir", "--passes", "cse"): "tv must be given either two files",
    ("a.mlir", "missing.mlir"): "missing.mlir: an MLIR file must be a readable file: No such file or directory",
    ("a.mlir", "wrong.mlir"): "wrong.mlir:1:1: here must be the name of a result, not '%'",
    ("a.mlir", "other.mlir"): (
        "both programs must have a function with a body under one name; a.mlir has @f, and other.mlir has @other"
    ),
    ("a.mlir", "a.mlir", "--function", "g"): (
        "both programs must have the function @g with a body under one name; a.mlir has @f, and a.mlir has @f\n"
    ),
    ("a.mlir", "a.mlir", "--function", "@g"): "both programs must have the function @g with a body under one name",
    ("a.mlir", "a.mlir", "--asociative"): (
        "ilaverify: unrecognized arguments: --asociative (did you mean --associative?)\nusage: ilaverify tv [-h]"
    ),
    ("a.mlir", "a.mlir", "--module", "./a"): (
        "--module must name a Python module, such as my_chip, or a file of rules, FILE.mlir, not './a'\n"
    ),
    ("a.mlir", "twice.mlir"): "twice.mlir:6:1: the function @f must be defined only once",
    ("a.mlir", "a.mlir", "--sarif", "x", "--junit", "x"): "--junit",
    ("a.mlir", "--passes", "cse;x"): "--passes must be names of passes of mlir-opt with commas between them",
    ("a.mlir", "--passes", "func.func(cse)"): (
        "options in braces, such as canonicalize,one-shot-bufferize{allow-unknown-ops=1}, not 'func.func(cse)'; passes "
        "on functions are named alone, without func.func(...)\n"
    ),
    ("a.mlir", "--passes", "cse,"): "--passes must name a pass behind each comma, such as canonicalize,cse",
    ("a.mlir", "--passes", "cse", "--mlir-opt", "no-such-program"): (
        "no-such-program must be a program that can be run; name an mlir-opt, on the path or with its folder\n"
    ),
}


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_USAGE.items(), ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
def test_bad_usage(folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    write("a.mlir", function("f", ADD))
    write("wrong.mlir", "%")
    write("other.mlir", function("other", ADD))
    write("twice.mlir", function("f", ADD), function("f", ADD))
    write("bytes.mlir", function("\\FF", ADD))
    code, out, err = tv(capsys, *arguments)
    assert (code, out) == (64, "")
    assert message in err


def test_passes_need_a_converter(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(convert.sysconfig, "get_path", lambda _: "nowhere")
    find_converter.cache_clear()
    code, _, err = tv(capsys, write("a.mlir", function("f", ADD)), "--passes", "cse")
    find_converter.cache_clear()
    assert code == 64
    assert "--passes needs an mlir-opt, and none was found; install one" in err


@pytest.fixture
def fake(folder: Path) -> str:
    """An mlir-opt with the passes swap, nothing, break (which is wrong) and fails."""
    return fake_mlir_opt(folder / "fake-mlir-opt")


def test_the_first_wrong_step_is_named(folder: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write("model.mlir", function("f", ADD))
    code, out, _ = tv(capsys, source, "--mlir-opt", fake, "--passes", "swap,nothing,break,swap")
    assert code == 1
    assert re.search(r"^PROVED +model\.1-swap\.f ", out, re.MULTILINE)
    assert re.search(r"^same +model\.2-nothing: the pass changed nothing$", out, re.MULTILINE)
    assert re.search(r"^REFUTED +model\.3-break\.f ", out, re.MULTILINE)
    assert "model.3-break.f: this is the first wrong step of model.mlir" in out
    assert out.count("first wrong step") == 1


def test_steps_are_shown_in_their_order_whatever_ends_first(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_first(entries: Mapping[str, Entry], **more: Any) -> Iterator[ProofOutcome]:
        yield from sorted(prove_all(entries, **more), key=lambda outcome: outcome.name, reverse=True)

    monkeypatch.setattr("ilaverify.proving.prove_all.prove_all", last_first)
    source = write("m.mlir", function("f", ADD))
    _, out, _ = tv(capsys, source, "--mlir-opt", fake, "--passes", "swap,break")
    rows = [line.split()[1] for line in out.splitlines() if line.startswith(("PROVED", "REFUTED"))]
    assert rows == ["m.1-swap.f", "m.2-break.f"]


def test_a_step_behind_one_that_is_not_proved_is_not_called_the_first_wrong_one(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write("m.mlir", function("f", ADD), function("g", UNKNOWN))
    _, out, _ = tv(capsys, source, "--mlir-opt", fake, "--passes", "swap,break")
    assert "m.2-break.f: this is the first step of m.mlir that is refuted; m.1-swap, before it, is not proved\n" in out
    _, out, _ = tv(capsys, source, "--mlir-opt", fake, "--passes", "swap,break,fails", "--function", "f")
    assert "m.2-break.f: this is the first wrong step of m.mlir\n" in out
    assert ".g" not in out


def test_a_pass_that_gives_two_functions_of_one_name_is_a_failed_step(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows = claims(capsys, write("m.mlir", function("f", ADD)), "--mlir-opt", fake, "--passes", "swap,double")
    assert (code, {name: row["status"] for name, row in rows.items()}) == (
        2, {"m.2-double": "ERROR", "m.1-swap.f": "PROVED"}
    )  # fmt: skip
    assert rows["m.2-double"]["reason"].endswith("6:1: the function @f must be defined only once")


def test_a_pass_that_changes_what_an_index_is_changes_all_functions(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write("m.mlir", f'"builtin.module"() ({{\n{function("f", ADD)}}}) : () -> ()\n')
    code, rows = claims(capsys, source, "--mlir-opt", fake, "--passes", "narrow")
    assert code == 2 and "values of type index must have 64 bits here" in rows["m.1-narrow.f"]["reason"]


def test_what_a_converter_says_reaches_no_terminal_as_it_is(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = tv(capsys, write("m.mlir", function("f", ADD)), "--mlir-opt", fake, "--passes", "colours")
    assert "here is red" in out and "\x1b" not in out


def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("all/a.mlir", function("f", ADD))
    os.mkfifo("all/b.mlir")
    assert list(claims(capsys, "all", "--mlir-opt", fake, "--passes", "swap")[1]) == ["a.1-swap.f"]


def test_a_folder_with_a_file_that_fails(folder: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("all/a.mlir", function("f", ADD))
    write("all/b.mlir", "%")
    write("all/c/d.mlir", function("f", ADD), function("g", ADD))
    code, rows = claims(capsys, "all", "--mlir-opt", fake, "--passes", "swap")
    assert code == 2
    assert {name: row["status"] for name, row in rows.items()} == {
        "a.1-swap.f": "PROVED",
        "b": "ERROR",
        "d.1-swap.f": "PROVED",
        "d.1-swap.g": "PROVED",
    }
    assert rows["b"]["reason"].startswith("all/b.mlir:1:1: here must be the name of a result")
    Path("empty").mkdir()
    code, _, err = tv(capsys, "empty", "--mlir-opt", fake, "--passes", "swap")
    assert (code, err) == (64, "ilaverify: empty must hold MLIR files (*.mlir), and it holds none\n")


def test_a_pass_that_fails_leaves_the_steps_before_it(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows = claims(capsys, write("m.mlir", function("f", ADD)), "--mlir-opt", fake, "--passes", "swap,fails,swap")
    assert code == 2
    assert {name: row["status"] for name, row in rows.items()} == {"m.2-fails": "ERROR", "m.1-swap.f": "PROVED"}
    assert rows["m.2-fails"]["reason"] == f"the pass fails must give a program: m.mlir:2:1: {fake}: this pass fails"


def test_one_function_is_chosen_after_each_pass(folder: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write("m.mlir", function("f", ADD), function("g", ADD))
    given = source, "--mlir-opt", fake, "--passes", "swap,nothing"
    code, rows = claims(capsys, *given, "--function", "@g")
    assert (code, list(rows)) == (0, ["m.1-swap.g"])
    code, out, err = tv(capsys, *given, "--function", "h")
    assert (code, out, err) == (64, "", "ilaverify: m.mlir must have the function @h with a body; it has @f, @g\n")
    other = write("other.mlir", function("f", ADD), function("g", SUBTRACT))
    code, out, _ = tv(capsys, other, "--mlir-opt", fake, "--passes", "break", "--function", "g")
    assert (code, out) == (0, "nothing to prove: no pass changed the function @g\n")


def test_passes_that_change_nothing_prove_nothing(folder: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = tv(capsys, write("m.mlir", function("f", ADD)), "--mlir-opt", fake, "--passes", "nothing")
    assert code == 0
    assert out.endswith("nothing to prove: no pass changed a function\n")


def test_a_pass_that_changes_a_resource_changes_what_uses_it(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body = '  %r = "arith.constant"() <{value = dense_resource<blob> : tensor<1xi32>}> : () -> tensor<1xi32>'
    resource = '{-# dialect_resources: {builtin: {blob: "0x0400000001000000"}} #-}'
    uses = function("uses", body, "(i32, i32) -> tensor<1xi32>")
    source = write("m.mlir", uses, function("f", ADD), resource)
    code, rows = claims(capsys, source, "--mlir-opt", fake, "--passes", "data")
    assert (code, {name: row["status"] for name, row in rows.items()}) == (2, {"m.1-data.uses": "UNKNOWN"})
    code, out, _ = tv(capsys, source, "--mlir-opt", fake, "--passes", "nothing")
    assert (code, "the pass changed nothing" in out) == (0, True)


def test_the_release_of_the_converter_is_an_assumption(
    folder: Path, fake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, rows = claims(capsys, write("m.mlir", function("f", ADD)), "--mlir-opt", fake, "--passes", "swap")
    assumptions = rows["m.1-swap.f"]["claim"]["assumptions"]
    assert "mlir-opt 99.0.0 writes in the generic form what its input says" in assumptions


def test_functions_may_have_any_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["../../up", "a b", "a-b", "é"]
    source = write("a.mlir", *(function(name, ADD) for name in names))
    target = write("b.mlir", *(function(name, SWAPPED) for name in names))
    code, rows = claims(capsys, source, target, "-o", "proofs")
    assert code == 0
    assert len(rows) == 4
    assert not list(folder.parent.glob("up*"))
    assert len(list(Path("proofs").glob("*.cert.json"))) == 4


@needs_mlir_opt
def test_real_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "func.func @f(%a: i32) -> i32 {\n  %0 = arith.constant 0 : i32\n  %1 = arith.addi %a, %0 : i32\n"
    source = write("a.mlir", f"{text}  %2 = arith.muli %1, %1 : i32\n  return %2 : i32\n}}\n")
    code, rows = claims(capsys, source, "--passes", "canonicalize,cse", "-o", "proofs")
    assert code == 0
    assert rows["a.1-canonicalize.f"]["location"] == {"file": "a.mlir", "line": 1}
    assert checked(capsys, "proofs")[0] == 0


@pytest.mark.slow
@needs_mlir_opt
def test_the_example_of_the_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parents[3] / "examples" / "mlir"
    passes = ["--passes", "tosa-to-linalg,canonicalize,linalg-fuse-elementwise-ops,cse"]
    converter = find_converter()
    assert converter is not None
    if not converter.release.startswith("mlir-opt 22."):
        pytest.skip(f"the example is in the TOSA of mlir-opt 22, not of {converter.release}")
    code, rows = claims(capsys, str(examples / "layer.mlir"), *passes)
    assert code == 0
    assert sorted(rows) == [
        f"layer.{number}-{name}.{function}"
        for number, name in ((1, "tosa-to-linalg"), (2, "canonicalize"), (3, "linalg-fuse-elementwise-ops"))
        for function in ("layer", "sums")
    ]
    code, rows = claims(
        capsys, str(examples / "layer.mlir"), "--passes", "tosa-to-linalg", "--sums-start-at-minus-zero"
    )
    assert code == 1
    assert {name: row["status"] for name, row in rows.items()} == {
        "layer.1-tosa-to-linalg.layer": "PROVED",
        "layer.1-tosa-to-linalg.sums": "REFUTED",
    }
    assert rows["layer.1-tosa-to-linalg.sums"]["notes"] == [
        f"this is the first wrong step of {examples / 'layer.mlir'}"
    ]


def test_the_python_api(folder: Path) -> None:
    source = write("a.mlir", function("good", ADD), function("bad", ADD))
    target = write("b.mlir", function("good", SWAPPED), function("bad", SUBTRACT))
    verdicts = ilaverify.tv(source, target)
    assert {name: verdict.status for name, verdict in verdicts.items()} == {
        "good": Status.PROVED,
        "bad": Status.REFUTED,
    }
    assert list(ilaverify.tv(source, target, function="bad")) == ["bad"]
    with pytest.raises(UsageError, match=r"^nowhere\.mlir: an MLIR file must be a readable file"):
        ilaverify.tv("nowhere.mlir", target)
