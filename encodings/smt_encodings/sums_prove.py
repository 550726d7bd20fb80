"""Deciding claims about sums: refuted by numbers, proved by two solvers, or neither."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import Enum

from . import solver_cvc5, solver_z3
from .claims import Answer, Claim, Equality, Interpretation, Obligation, Status, Verdict
from .sums import Counterexample, Product, Sum, SumClaim, Term, distinguish, evaluate, flat_lengths, post_order
from .sums_encode import Data, Encoding, script

__all__ = ["Method", "prove_sums"]


class Method(Enum):
    """The encoding that each solver is given."""

    HASH = "hash"
    """The hash encoding, one text for both solvers."""
    MULTISET = "multiset"
    """Arrays of counts for z3 and bags for cvc5: each solver proves the claim from its own text."""
    UNROLLED = "unrolled"
    """Chains of an uninterpreted add, one text for both solvers: proves sums in identical order."""


_ENCODINGS = {
    Method.HASH: (Encoding.HASH, Encoding.HASH),
    Method.MULTISET: (Encoding.COUNTS, Encoding.BAGS),
    Method.UNROLLED: (Encoding.UNROLLED, Encoding.UNROLLED),
}

_MEANING = "sides that differ for some values of the symbols and some order of additions"


def prove_sums(
    claim: SumClaim, method: Method = Method.HASH, data: Data = Data.UNINTERPRETED, timeout: float = 40.0
) -> Verdict:
    """Decides a claim; ``timeout`` is in seconds per solver.

    REFUTED comes with numbers for which both sides were evaluated and differ (``details["counterexample"]``); numbers
    are tried before solvers are asked, because sums that differ are hard for solvers and easy for exact arithmetic.
    PROVED means that z3 and cvc5 both answer "unsat".  UNKNOWN: a solver gives up, or finds the encoded claim false
    where no numbers were found to differ, as for laws that the encoding does not have.  ERROR: the solvers disagree.
    """
    start = time.perf_counter()
    found = distinguish(claim)
    if found is not None:
        status, reason = _replay(claim, found)
        obligations: list[Obligation] = []
    else:
        status, reason, obligations = _ask(claim, method, data, timeout)
    said = _said(claim, data)
    verdict = Verdict(status, said, method.value, time.perf_counter() - start, reason, obligations)
    if found is not None:
        verdict.details["counterexample"] = found
    return verdict


def _replay(claim: SumClaim, found: Counterexample) -> tuple[Status, str]:
    left, right = evaluate(claim, found.numbers)
    if (left, right) != (found.left, found.right) or left == right:
        return Status.ERROR, f"the counterexample must replay as {found}, not as left = {left}, right = {right}"
    return Status.REFUTED, str(found)


def _ask(claim: SumClaim, method: Method, data: Data, timeout: float) -> tuple[Status, str, list[Obligation]]:
    obligations: list[Obligation] = []
    answers: list[Answer] = []
    texts: dict[Encoding, str] = {}
    for encoding, solver in zip(_ENCODINGS[method], (solver_z3, solver_cvc5), strict=True):
        if encoding not in texts:
            texts[encoding] = script(claim, encoding, data)
            obligations.append(Obligation(encoding.value, claim.name, texts[encoding], "unsat", _MEANING))
        answer = solver.check(texts[encoding], timeout)
        answers.append(answer)
        obligations[-1] = replace(obligations[-1], answers=(*obligations[-1].answers, answer))
        if answer.status != "unsat":
            break
    status, reason = _status(answers)
    return status, reason, obligations


def _status(answers: list[Answer]) -> tuple[Status, str]:
    """PROVED for two answers "unsat"; the last answer decides otherwise, because nobody is asked after another one."""
    last = answers[-1]
    if len(answers) == 2 and all(a.status == "unsat" for a in answers):
        return Status.PROVED, ""
    if last.status == "sat" and len(answers) == 2:
        return Status.ERROR, f"the solvers must agree; {answers[0].solver}: unsat, {last.solver}: sat"
    if last.status == "sat":
        return Status.UNKNOWN, (
            f"the encoding does not imply the claim ({last.solver}: sat), yet no numbers were found for which the "
            "sides differ; it may need a law that the encoding does not have, such as distributivity or arithmetic on "
            "literals"
        )
    return Status.UNKNOWN, f"{last.solver}: {last.status} {last.reason}".strip()


def _said(claim: SumClaim, data: Data) -> Claim:
    order = post_order(claim.left, claim.right)
    lengths = flat_lengths(order)
    left, right = (_shown(t, lengths) for t in (claim.left, claim.right))
    assumptions = ["addition is commutative and associative with unit -0.0, in both sides"]
    if any(isinstance(t, Product) for t in order):
        assumptions.append("multiplication is commutative")
        if data is Data.SIGN_MAGNITUDE:
            assumptions.append("the sign of a product is the exclusive or of the factors' signs")
    return Claim(
        claim.name,
        f"{left} = {right}, whatever the symbols are",
        "these lengths only",
        Equality.UP_TO_REDUCTION_ORDER,
        (Interpretation.UNINTERPRETED,),
        tuple(assumptions),
    )


def _shown(side: Term, lengths: dict[int, int]) -> str:
    if isinstance(side, Sum):
        length = lengths[id(side)]
        return f"sum of {length} element{'' if length == 1 else 's'}"
    return type(side).__name__.lower()
