"""Fault campaigns: what is counted, what becomes of a prover that proves too much, and the command."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import chc.mapping.prove
from chc.mapping.prove import claim_of
from ilaverify import cli
from ilaverify.proving.fault_campaign import Tried, run_campaign
from ilaverify.proving.workers import Limits
from reports.subjects import Mutant
from rewrites.claims.subjects.mapping import MappingSubject
from smt_encodings.claims import Answer, Obligation, Status, Verdict
from smt_encodings.discharge import Discharger
from tests.bmc.test_sums import RIGHT, SHAPE
from tests.chc.mapping.toy import copy_body, mapping

Proof = Callable[[Discharger], tuple[Status, str]]


def says(status: Status) -> Proof:
    return lambda discharger: (status, "as told")


def sleeps(discharger: Discharger) -> tuple[Status, str]:
    time.sleep(60)
    return Status.PROVED, ""


def dies(discharger: Discharger) -> tuple[Status, str]:
    os._exit(3)


def breaks(discharger: Discharger) -> tuple[Status, str]:
    raise KeyError("some name")


def crashes(seconds: float) -> str | None:
    raise IndexError("a run that cannot be made")


class Told(MappingSubject):
    """A claim whose mutants are given: in words, where they differ, and what the prover says."""

    def __init__(self, mutants: list[tuple[str, Callable[[float], str | None], Proof]]) -> None:
        super().__init__(mapping(copy_body, copy_body))
        self.told = mutants

    def mutants(self, draw: Random) -> Iterator[Mutant]:
        return (Mutant(*parts) for parts in self.told)


def differs(seconds: float) -> str | None:
    return f"at 1, {seconds}"


def equal(seconds: float) -> str | None:
    return None


def test_only_wrong_mutants_are_put_to_the_prover_and_counted_by_what_it_says() -> None:
    campaign = run_campaign(
        Told([
            ("a", differs, says(Status.UNKNOWN)), ("b", equal, says(Status.PROVED)),
            ("c", differs, says(Status.PROVED)), ("d", differs, sleeps), ("e", differs, dies), ("f", differs, breaks),
            ("g", crashes, says(Status.PROVED)), ("h", differs, says(Status.REFUTED)),
            ("beyond", differs, says(Status.PROVED)),
        ]),
        8, limits=Limits(2, 3.0),
    )  # fmt: skip
    assert [t.what for t in campaign.tried] == list("abcdefgh") and len(campaign.different) == 6
    assert [t.what for t in campaign.wrongly_proved] == ["c"]
    assert campaign.not_proved == {"UNKNOWN": 3, "ERROR": 1, "REFUTED": 1}
    assert campaign.tried[0] == Tried(0, "a", "at 1, 2.0", "UNKNOWN", "as told")
    assert campaign.tried[1] == Tried(1, "b")
    assert "time" in campaign.tried[3].reason and campaign.tried[5].reason == "KeyError: 'some name'"
    assert [t.what for t in campaign.not_run] == ["g"] and "a run that cannot be made" in campaign.tried[6].reason
    told = campaign.to_json()
    assert (told["made"], told["different"], told["no_difference_found"], told["not_run"]) == (8, 6, 1, 1)
    assert told["wrongly_proved"] == [2] and told["not_proved"] == {"ERROR": 1, "REFUTED": 1, "UNKNOWN": 3}


@pytest.mark.proof
def test_no_mutant_of_a_toy_is_proved_by_its_method() -> None:
    copying, sums = MappingSubject(mapping(copy_body, copy_body)), MappingSubject(RIGHT, SHAPE)
    for subject, seed in ((copying, 0), (sums, 1)):
        campaign = run_campaign(subject, 4, seed=seed, limits=Limits(2, 120.0))
        assert len(campaign.tried) == 4 and len(campaign.different) >= 2, campaign
        assert not campaign.wrongly_proved and not campaign.not_run
        assert set(campaign.not_proved) <= {"UNKNOWN", "REFUTED"}, campaign.not_proved


def test_a_prover_that_believes_everything_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = (Answer("unsat", 0.0, "z3"), Answer("unsat", 0.0, "cvc5"))
    trivial = Obligation("trivial", "nothing", "(assert false)\n(check-sat)\n", "unsat", "false is false", answers)

    def believing(claim: Any, *_: object, **__: object) -> Verdict:
        return Verdict(Status.PROVED, claim_of(claim), "chc", 0.0, obligations=[trivial])

    monkeypatch.setattr(chc.mapping.prove, "prove", believing)
    arguments = ["prove", "flexasr_reload", "--mutants", "2", "-o", str(tmp_path)]
    assert cli.main(arguments) == 1
    out = capsys.readouterr().out
    files = sorted(tmp_path.glob("flexasr_reload.mutant-0-*.json"))
    assert files and out.count("WRONGLY PROVED: mutant") == len(files)
    content = json.loads(files[0].read_text())
    assert f"mutant {content['mutant']}: {content['change']}" in out and content["difference"] in out
    assert cli.main([*arguments, "--json"]) == 1
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert len(claim["wrongly_proved"]) == claim["different"] == len(files) and claim["not_proved"] == {}


@pytest.mark.proof
def test_rules_as_a_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = ("relu-commutes-with-max-pooling", "f3-repaired")
    assert cli.main(["prove", *names, "--mutants", "4", "--seed", "2", "-o", str(tmp_path / "none")]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("  ")[-1] == "no difference" and sorted(row.split()[0] for row in rows) == sorted(names)
    for row in rows:
        made, different, not_proved, wrong, same = map(int, row.split()[1:6])
        assert made == 4 and different == not_proved > 0 and wrong == 0 and different + same == made
    assert not (tmp_path / "none").exists()


def test_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["lemma-maximum", "--mutants", "1"], "must be of mappings or rules that must be PROVED, not of lemma-maximum"),
        (["f3", "--mutants", "1"], "must be PROVED, not of f3"),
        (["f3-repaired", "--mutants", "0"], "--mutants"),
        (["f3-repaired", "--mutants", "1", "--trust", "t"], "leave --trust out"),
    ):
        assert cli.main(["prove", *arguments]) == 64
        assert message in capsys.readouterr().err
