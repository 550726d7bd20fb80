"""What ``check`` says: REJECTED of what is wrong, UNDECIDED where no answer came; exit codes tell them apart."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ilaverify.cli import main
from reports import checker
from reports.certificate import certificate_text, content_digest
from reports.checker import replay
from smt_encodings.claims import Answer

RULE = "transposed-twice"
SCRIPT = "(set-logic ALL)\n(assert false)\n(check-sat)\n"


def slow(enough: float) -> Callable[[str, float], Answer]:
    """A solver that needs ``enough`` seconds for anything, and notes what it was given."""

    def check(smtlib: str, timeout: float) -> Answer:
        if timeout < enough:
            return Answer("unknown", timeout, "slow 1", "timeout")
        return Answer("unsat", enough, "slow 1")

    return check


def replayed(monkeypatch: pytest.MonkeyPatch, enough: float, expected: str = "unsat") -> checker.Replay:
    monkeypatch.setattr(checker, "SOLVERS", {"z3": slow(enough)})
    monkeypatch.setattr(checker, "_VERSIONS", {"z3": lambda: "slow 1"})
    obligation = {"group": "g", "name": "n", "smtlib": SCRIPT, "expected": expected}
    return replay({"obligations": [obligation]}, "z3", 2.0)


def test_an_obligation_without_an_answer_is_asked_again_with_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replayed(monkeypatch, 10.0).problems == ()
    found = replayed(monkeypatch, 10.1)
    assert found.wrong == () and found.problems == found.undecided
    assert found.undecided == (
        "g: n: slow 1 gave no answer within 2 s, and then 10 s (timeout); give more time with --timeout",
    )
    found = replayed(monkeypatch, 1.0, "sat")
    assert found.undecided == () and found.wrong == ("g: n: expected sat, slow 1 says unsat",)


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("proved")
    assert main(["rule", RULE, "-o", str(directory)]) == 0
    (path,) = directory.iterdir()
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["check", *map(str, arguments)])
    return code, capsys.readouterr().out


def forged(path: Path, directory: Path) -> Path:
    """The certificate with another obligation, and the digest that it then has."""
    content = json.loads(path.read_text())
    content["obligations"][0]["smtlib"] = SCRIPT
    new = directory / "forged.cert.json"
    new.write_text(certificate_text({**content, "digest": content_digest(content)}))
    return new


def test_words_and_exit_codes(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    false = forged(proved, tmp_path)
    code, out = check(capsys, proved)
    assert code == 0 and out.startswith(f"ACCEPTED  {proved}\n") and out.endswith("1 accepted, 0 rejected\n")
    code, out = check(capsys, false)
    assert code == 1 and out.startswith(f"REJECTED  {false}\n") and out.endswith("0 accepted, 1 rejected\n")

    monkeypatch.setattr(checker, "SOLVERS", {name: slow(1e9) for name in checker.SOLVERS})
    code, out = check(capsys, proved, "--timeout", "1")
    assert code == 2 and out.startswith(f"UNDECIDED {proved}\n")
    assert "gave no answer within 1 s, and then 5 s (timeout); give more time with --timeout" in out
    assert out.endswith("0 accepted, 0 rejected, 1 undecided\n")
    code, out = check(capsys, false)  # what is wrong is wrong without solvers
    assert code == 1 and out.startswith("REJECTED")
    code, out = check(capsys, proved, false)
    assert code == 1 and out.endswith("0 accepted, 1 rejected, 1 undecided\n")
    code, out = check(capsys, proved, "--json")
    (found,) = json.loads(out)
    assert (code, found["verdict"], found["accepted"], found["problems"]) == (2, "UNDECIDED", False, [])
    assert found["undecided"]


def changed(path: Path, directory: Path, *keys: str | int, value: object) -> Path:
    """The certificate with another value at a place, and the digest that it then has."""
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    new = directory / "changed.cert.json"
    new.write_text(certificate_text({**content, "digest": content_digest(content)}))
    return new


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("runs", "count"), -5, "the runs: count must be present and of the published form, not -5"),
        (("runs", "count"), 10**13, "the runs: count must be present and of the published form, not 10000000000000"),
        (("seconds",), -1.0, "seconds must be present and of the published form, not -1.0"),
        (("seconds",), 10**400, f"seconds must be present and of the published form, not 1{59 * '0'}"),
        (("obligations", 0, "answers"), [], None),
        (("obligations", 0, "answers"), [{"seconds": 0, "solver": "z3", "status": "maybe"}], None),
    ],
)
def test_numbers_and_answers_that_are_invented_are_rejected(
    proved: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    keys: tuple[str | int, ...],
    value: object,
    message: str | None,
) -> None:
    first = json.loads(proved.read_text())["obligations"][0]
    asked = f"{first['group']}: {first['name']}: its answers must be {first['expected']}, and there must be one"
    path = changed(proved, tmp_path, *keys, value=value)
    code, out = check(capsys, path)
    then = "prove the claim again to have a certificate that is intact"
    told = f"  {path}: {message}; {then}\n" if message else f"  {asked}\n"
    assert code == 1 and out.startswith(f"REJECTED  {path}\n") and out.endswith(f"{told}0 accepted, 1 rejected\n")


def test_advice_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.json"
    path.write_text("{")
    _, out = check(capsys, path)
    assert out.splitlines()[1].endswith("; prove the claim again (ilaverify prove NAME -o DIR)")
    assert out.count("prove the claim again") == 1


RUNS = {"at": ["n = 1"], "count": 7, "notes": []}


@pytest.mark.parametrize(
    ("keys", "value"), [((), RUNS), (("count",), 7), (("at",), ["n = 1"]), (("notes",), ["all of them by hand"])]
)
def test_runs_that_are_invented_are_rejected(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: tuple[str, ...], value: object
) -> None:
    code, out = check(capsys, changed(proved, tmp_path, "runs", *keys, value=value))
    assert code == 1
    assert "  its concrete runs are not those that its claim survives now; prove the claim again\n" in out


def test_runs_that_are_made_again_say_so(proved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, proved)
    assert code == 0 and re.search(r"^  it survived \d+ concrete runs at \d+ points, made again$", out, re.MULTILINE)


def test_runs_of_mappings_are_told_as_what_a_certificate_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mapping", "vta_add_imm", "--shape", "1x16", "-o", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    code, out = check(capsys, changed(path, tmp_path, "runs", value=RUNS))
    told = "  it says that its proof survived 7 concrete runs at 1 point; check does not repeat them\n"
    assert code == 0 and told in out


FORGED = "x\nACCEPTED  evil\n\x1b[2J"


@pytest.mark.parametrize(
    "keys", [("claim", "subject"), ("obligations", 0, "name"), ("method",), ("claim", "statement")]
)
def test_texts_of_certificates_are_shown_in_one_line_each(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: tuple[str | int, ...]
) -> None:
    code, out = check(capsys, changed(proved, tmp_path, *keys, value=FORGED))
    unknown = keys == ("claim", "subject")
    assert code == 1 + unknown
    assert out.endswith("\n0 accepted, 0 rejected, 1 undecided\n" if unknown else "\n0 accepted, 1 rejected\n")
    assert not any(line.startswith("ACCEPTED") for line in out.splitlines())
    assert out.replace("\n", "").isprintable()


def test_the_subject_of_a_certificate_is_quoted_in_part(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = check(capsys, changed(proved, tmp_path, "claim", "subject", value="x" * 1_000_000))
    assert code == 2 and len(out) < 1000 and f"there is no claim named '{'x' * 99} (see ilaverify list)" in out


def test_a_certificate_of_a_claim_of_ones_own(proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, changed(proved, tmp_path, "claim", "subject", value="gemmq"))
    own = "a claim of your own is known with --module, or checked from Python (docs/tutorials/row_pairs.md)"
    assert code == 2 and out.startswith("UNDECIDED")
    assert f"\n  there is no claim named 'gemmq' (did you mean vta_gemm?); {own}\n" in out


def test_an_accepted_file_is_shown_with_the_claim_that_it_is_of(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "products-of-matrices-commute.tensor.cert.json"
    other.write_bytes(proved.read_bytes())
    code, out = check(capsys, other)
    claim = json.loads(proved.read_text())["claim"]
    told = f"  {RULE}: {claim['statement']}: {claim['size_domain']}\n"
    assert code == 0 and out.startswith(f"ACCEPTED  {other}\n{told}")


def test_a_process_that_dies_decides_nothing(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(smtlib: str, timeout: float) -> Answer:
        os._exit(7)

    other = tmp_path / "again.cert.json"
    other.write_bytes(proved.read_bytes())
    monkeypatch.setattr(checker, "SOLVERS", dict.fromkeys(checker.SOLVERS, dies))
    code, out = check(capsys, proved, other)
    assert code == 2 and out.endswith("0 accepted, 0 rejected, 2 undecided\n")
    assert "  its process ended with exit code 7\n" in out


def test_the_limit_of_memory_is_that_of_a_single_certificate_too(
    proved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def grows(smtlib: str, timeout: float) -> Answer:
        data = []
        while True:
            data.append(np.empty(1 << 28, np.uint8))

    monkeypatch.setattr(checker, "SOLVERS", dict.fromkeys(checker.SOLVERS, grows))
    code, out = check(capsys, proved, "--memory", "4000")
    assert code == 2 and out == (
        f"UNDECIDED {proved}\n  out of memory (limit 4000 MB, --memory)\n0 accepted, 0 rejected, 1 undecided\n"
    )


def test_a_certificate_through_a_pipe(proved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    if not os.fork():
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(proved.read_bytes())
        os._exit(0)
    os.close(writing)
    code, out = check(capsys, f"/proc/self/fd/{reading}", "--solver", "z3")
    os.close(reading)
    os.wait()
    assert code == 0 and out.endswith("1 accepted, 0 rejected\n")


def test_a_statement_about_certificates_is_left_out(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``check DIR/*.json`` names it beside the certificates."""
    statement = tmp_path / "proofs.intoto.json"
    code, out = check(capsys, proved, statement, "--solver", "z3")
    assert code == 0 and out.endswith("1 accepted, 0 rejected\n")


def test_a_directory_is_checked_with_its_counterexamples(
    proved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / proved.name).write_bytes(proved.read_bytes())
    assert main(["rule", "f1", "-o", str(tmp_path)]) == 1
    data = tmp_path / "f1.counterexample-data.json"
    code, out = check(capsys, tmp_path, "--solver", "z3")
    assert code == 0 and out.endswith("2 accepted, 0 rejected\n")
    assert f"ACCEPTED  {data}\n  f1: the sides differ, replayed: " in out
    data.write_text("{}")
    code, out = check(capsys, tmp_path, "--solver", "z3")
    assert code == 1 and f"REJECTED  {data}\n  {data}: a counterexample must name its claim" in out


def test_data_outside_of_a_true_claim_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "l.counterexample-data.json"
    data.write_text('{"operands":{"a":-1,"b":0},"subject":"lemma-vta-shift"}')
    code, out = check(capsys, data)
    assert code == 1 and out == (
        f"REJECTED  {data}\n  {data}: the operand a of VTA shift must fit 32 bits, not -1\n0 accepted, 1 rejected\n"
    )


def test_messages_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "a\x1b[2J"]) == 64
    message = capsys.readouterr().err
    assert message.startswith("ilaverify: a [2J") and message.endswith("\n") and message[:-1].isprintable()
