"""Deciding claims about sums: proved by cancelling or by two solvers, refuted by numbers, or neither."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import Enum
from itertools import chain

from smt_encodings.claims import Answer, Claim, Equality, Interpretation, Obligation, Status, Verdict, conclude
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

from .cancel import cancellation, sums_within
from .encode import Data, Encoding, script
from .replay import Cancellation, Rejected, replay
from .terms import Counterexample, Product, Sum, SumClaim, Term, distinguish, evaluate, flat_lengths

NORMAL_FORM = "normal form"
"""``details["decided_by"]`` of a claim that was proved without a solver."""

NUMBERS = "numbers"
"""``details["decided_by"]`` of a claim that was refuted."""


class Method(Enum):
    """The encoding that each solver is given."""

    HASH = "hash"
    """The hash encoding, one text for both solvers; where equal hashes cancel without rest, no solver is asked."""
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

_CANCELLED = (
    "decided by a derivation that was replayed, no solver was asked: both sides add up the same elements equally "
    "often, with sums among elements opened and -0.0 left out"
)


def prove_sums(
    claim: SumClaim,
    method: Method = Method.HASH,
    data: Data = Data.UNINTERPRETED,
    timeout: float = 40.0,
    *,
    ask: bool = False,
) -> Verdict:
    """Decides a claim; ``timeout`` is in seconds per solver.

    ``details["decided_by"]`` says what decided it, where something did.

    * :data:`NORMAL_FORM`: with the method ``HASH``, both sides add up the same elements as often: PROVED, without
      obligations, by ``details["derivation"]``, which :func:`benchmarks.sums.replay.replay` accepted.  With ``ask``
      this is not tried, and a claim is proved by both solvers or not at all.
    * :data:`NUMBERS`: both sides were evaluated and differ (``details["counterexample"]``): REFUTED.  Numbers are tried
      before solvers are asked, because sums that differ are hard for solvers and easy for exact arithmetic.
    * the names of both solvers, of which each answered "unsat": PROVED.

    UNKNOWN: a solver gives up, or finds the encoded claim false where no numbers were found to differ, as for laws that
    the encoding does not have.  ERROR: the solvers disagree, or numbers do not replay.
    """
    start = time.perf_counter()
    obligations: list[Obligation] = []
    details: dict[str, object] = {}
    if method is Method.HASH and not ask and (derivation := cancellation(claim)) is not None:
        status, reason = _replayed(claim, derivation)
        details |= {"decided_by": NORMAL_FORM, "derivation": derivation}
    elif (counterexample := distinguish(claim)) is not None:
        status, reason = _replay(claim, counterexample)
        details["counterexample"] = counterexample
        if status is Status.REFUTED:
            details["decided_by"] = NUMBERS
    else:
        status, reason, obligations = _ask(claim, method, data, timeout)
        if status is Status.PROVED:
            details["decided_by"] = " and ".join(a.solver for o in obligations for a in o.answers)
    statement = _statement(claim, data)
    return Verdict(status, statement, method.value, time.perf_counter() - start, reason, obligations, {}, details)


def _replayed(claim: SumClaim, derivation: Cancellation) -> tuple[Status, str]:
    try:
        replay(claim, derivation)
    except Rejected as error:
        return Status.ERROR, f"the kernel must accept the derivation of what cancels: {error}"
    return conclude((), derivation)[0], _CANCELLED


def _replay(claim: SumClaim, counterexample: Counterexample) -> tuple[Status, str]:
    left, right = evaluate(claim, counterexample.numbers)
    if (left, right) != (counterexample.left, counterexample.right) or left == right:
        return (
            Status.ERROR,
            f"the counterexample must replay as {counterexample}, not as left = {left}, right = {right}",
        )
    return Status.REFUTED, str(counterexample)


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
    return *_status(answers, obligations), obligations


def _status(answers: list[Answer], obligations: list[Obligation]) -> tuple[Status, str]:
    """PROVED for two answers "unsat"; the last answer decides otherwise, because no solver is asked after any other."""
    last = answers[-1]
    if len(answers) == 2 and all(a.status == "unsat" for a in answers):
        return conclude(obligations)
    if last.status == "sat" and len(answers) == 2:
        return Status.ERROR, f"the solvers must agree; {answers[0].solver}: unsat, {last.solver}: sat"
    if last.status == "sat":
        return Status.UNKNOWN, (
            f"the encoding does not imply the claim ({last.solver}: sat), yet no numbers were found for which the "
            "sides differ; it may need a law that the encoding does not have, such as distributivity or arithmetic on "
            "literals"
        )
    return Status.UNKNOWN, f"{last.solver}: {last.status} {last.reason}".strip()


def _statement(claim: SumClaim, data: Data) -> Claim:
    sides = (claim.left, claim.right)
    sums = sums_within(*sides)
    lengths = flat_lengths(sums)
    left, right = (_shown(t, lengths) for t in sides)
    assumptions = ["addition is commutative and associative with unit -0.0, in both sides"]
    if Product in map(type, chain(sides, *(s.elements for s in sums))):
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
