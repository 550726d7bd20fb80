"""Advice where a proof ends in UNKNOWN: every reason that a method may give has some, and it is shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import bmc
import chc
import smt_encodings.expressions.integers
from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const, ite
from ila_lang.mapping import TensorMapping
from ilaverify.text import show_verdict, verdict_json
from rewrites.claims.advice import ADVICE, advice_for
from smt_encodings.claims import Answer, Claim, Equality, Obligation, Status, Verdict
from tests.chc.mapping.toy import DOMAIN, mapping

RAISED = ("Unsupported", "NotLinearizable", "OutOfTime")


def texts(node: ast.expr) -> Iterator[str]:
    """The messages that an expression may be, with X for what is filled in."""
    match node:
        case ast.Constant(value=str(said)):
            yield said
        case ast.JoinedStr(values=parts):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in parts)
        case ast.Subscript(value=value):
            yield from texts(value)


def messages() -> Iterator[str]:
    """What provers raise where they do not cover a program."""
    folders = [Path(module.__file__ or "").parent for module in (bmc, chc)]
    files = [path for folder in (folders[0], folders[1] / "mapping") for path in folder.rglob("*.py")]
    for path in sorted([*files, Path(smt_encodings.expressions.integers.__file__ or "")]):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[message])) if name in RAISED:
                    yield from texts(message)


def test_every_reason_has_advice() -> None:
    found = set(messages())
    assert found and [message for message in sorted(found) if not advice_for(message)] == []


REASONS = {
    "obligation 'as many columns' (coordinates) needs the answer unsat; z3: sat": "correct `cell`, whose",
    "obligation 'f is g' (lemmas) needs the answer unsat; z3: sat": "correct the lemma",
    "obligation 'n' (values) needs the answer unsat; z3: unsat, cvc5: sat": "state a lemma",
    "obligation 'n' (values) needs the answer unsat; z3: unsat, cvc5: unknown timeout": "give solvers more time",
    "obligation 'n' (no overflow) needs the answer unsat; z3: sat, cvc5: unknown timeout": "compute on more bits",
    "obligation 'n' (no overflow) needs the answer unsat; z3: unknown timeout": "give solvers more time",
    "obligation 'f is g' (lemmas) needs the answer unsat; z3: unknown max. resource limit exceeded": "more time",
    "obligation 'n' (health) needs the answer sat; z3: sat, cvc5: unknown TIMEOUT, at T = 2": "give solvers more time",
    "obligation 'n' (health) needs the answer sat; z3: unknown canceled": "give solvers more time",
    "obligation 'f is g' (lemmas) needs the answer unsat; z3: sat, cvc5: unknown TIMEOUT": "correct the lemma",
    "obligation 'n' (health) needs the answer sat; z3: unsat, cvc5: unknown TIMEOUT": "the output must depend",
    "obligation 'n' (health) needs the answer sat; z3: unsat": "the output must depend",
    "obligation 'n' (toy: layout) needs the answer unsat; z3: unknown (incomplete quantifiers)": "give solvers more",
    "obligation 'n' (toy: layout) needs the answer unsat; z3: sat, at n = 3": "look at this place",
    "obligation 'n' (toy: cells in case 1) needs the answer unsat; z3: sat, at n = 33; no run at these sizes shows a "
    "difference": "add them to sample_shapes",
    "obligation 'k 3, 3: only the fold's iterations' (toy: accumulation) needs the answer unsat; z3: sat, at n = 1; no "
    "run at these sizes shows a difference": "digits of its own",
    "obligation 'r: i and j meet the index together' (lock-step) needs the answer unsat; z3: sat": "in one order",
    "whether and where w 1 writes depends on b, which was read from memory: this is not followed": "store in every",
    "go of toy must select exactly one instruction for all sizes; candidates: a, b": "write addresses as concat",
    "the result depends on tmp as it was before the program": "set it in the program",
    "steps that were found do not prove (n < m)": "report this claim",
    "no term was found for w of the iteration in which program writes host_c": "split the loop as `cell` is split",
    "which write gives a cell of acc its value differs between sizes or places: a, b": "write zeros before",
    "the loops of a and of b do not correspond: they run 4 times and n times": "equal extents",
    "an address map is not shown to be injective: two iterations may write one cell": "digits of its own",
    "no sample shape lies in the size domain: Sizes of mapping toy must be n": "give sample_shapes",
    "level x: no invariant found (Spacer: unknown timeout)": "plain counters",
    "output element 0 depends on no input: equality would say nothing of the data": "pair the tensors",
    "unrolling takes longer than the timeout": "choose a smaller --shape",
    "loop i has more iterations than its 8 bits can count": "as many bits",
    "loop u writes tmp depending on its registers": "another form of loop",
    "Mapping toy must declare by which operators it adds up; use --method bmc or chc": "declared in `sums`",
}


@pytest.mark.parametrize("reason", REASONS)
def test_advice_by_reason(reason: str) -> None:
    assert REASONS[reason] in advice_for(reason)


def test_every_entry_is_some_reasons_advice() -> None:
    found = {next(pattern for pattern, _ in ADVICE if re.search(pattern, reason, re.DOTALL)) for reason in REASONS}
    assert found == {pattern for pattern, _ in ADVICE}
    assert advice_for("") == advice_for("a reason that nobody gives") == ""


def wrong_from_200_on() -> TensorMapping:
    def body(k: Kernel, s: Mapping[str, Expr]) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            k.store(s["dst"], i * s["m"] + j, ite(i < 200, word, const(0, 8)))

    return mapping(body, domain=DOMAIN)


def test_unknown_shows_advice_and_what_failed() -> None:
    verdict = prove(wrong_from_200_on())
    assert verdict.status is Status.UNKNOWN
    shown, told = show_verdict(verdict), verdict_json(verdict)
    assert f"  advice    {advice_for(verdict.reason)[:60]}" in shown
    assert told["advice"] == advice_for(verdict.reason) != ""
    failed = next(o for o in verdict.obligations if not o.discharged)
    assert f"      it says: {failed.meaning[:40]}" in shown
    assert told["obligations"][-1]["answers"][0]["model"] == failed.answers[0].model


def test_the_model_of_an_obligation_that_is_false_is_shown() -> None:
    model = {"n": 3, "size.e0!2": 4, **{f"v{i:02}": i for i in range(30)}}
    answers = (Answer("sat", 0.1, "z3 x", "", model),)
    failed = Obligation("a name", "a group", "(check-sat)", "unsat", "what it means", answers)
    claim = Claim("c", "s", "d", Equality.BIT_EXACT, (), ())
    shown = " ".join(show_verdict(Verdict(Status.UNKNOWN, claim, "chc", 0.0, "r", [failed])).split())
    assert "a name 0.100 s NOT DISCHARGED it says: what it means false, says z3 x, where n = 3, size.e0 = 4," in shown
    assert "v21 = 21, and 8 more" in shown
    health = Obligation("a name", "health", "(check-sat)", "sat", "what it means", (Answer("unsat", 0.1, "z3 x"),))
    assert "false, says" not in show_verdict(Verdict(Status.UNKNOWN, claim, "chc", 0.0, "r", [health]))
