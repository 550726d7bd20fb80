from __future__ import annotations

import json

import pytest

from rewrites.bounds import __main__ as command
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.lemmas.codes import LEMMAS as CODES
from rewrites.bounds.lemmas.lemma import Lemma


def test_lemmas_and_rules_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["relu", "one less", "cut"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["PROVED"] * 3
    assert lines[0].endswith("s  lemma relu  (every argument, 1048576 of them)")
    assert lines[2].endswith("s  rule cut  (two solvers)")


def test_a_lemma_and_a_rule_of_one_name_are_both_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["sum"]) == 0
    names = [line.split("s  ")[1].split("  (")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["lemma sum", "rule sum"]


def test_json_has_the_digest_and_the_argument_that_refutes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = LEMMAS["mean"]
    wrong = Lemma("mean", LEMMAS["add"].function, good.statement, good.domain, good.proof)
    monkeypatch.setitem(LEMMAS, "mean", wrong)
    assert command.main(["mean", "decode", "--json"]) == 1
    out, err = capsys.readouterr()
    proved, refuted = map(json.loads, out.splitlines())
    assert (refuted["status"], proved["status"]) == ("REFUTED", "PROVED")
    assert set(refuted["counterexample"]) == {"a", "b"}
    assert len(proved["digest"]) == 64
    assert err == "1 not proved\n"


def test_bad_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["tan"])
    assert stopped.value.code == 64
    assert capsys.readouterr().err.startswith(f"error: NAME must be one of {CODES[0].name}, ")
