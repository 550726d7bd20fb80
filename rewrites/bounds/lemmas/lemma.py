"""Lemmas on single primitives: what a primitive's result has to do with the real operation it stands for.

A lemma is proved in one of two ways.  *Every argument*: the compiled primitive is run on each argument of the lemma's
domain and compared, in integers, with an exact value or an outward-rounded enclosure.  *Two solvers*: the lemma is a
statement on bit-vectors, put to z3 and cvc5.  Either way it is refuted by an argument, at which both the primitive and
the statement were evaluated.

What a lemma's proof trusts is in docs/reference/numerics.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pysmt.shortcuts as smt
from numpy.typing import NDArray

from ila_lang import Expr, Function, compile_terms, inline
from ila_lang.text.portable import digest
from smt_encodings.claims import Claim, Equality, Interpretation, Obligation, Status, Verdict, conclude
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script

Words: TypeAlias = NDArray[np.int64]

EVERY_ARGUMENT = "every argument"
TWO_SOLVERS = "two solvers"
_BLOCK = 1 << 16


def signed(words: Words, width: int) -> Words:
    """Words of ``width`` bits as two's complement."""
    return words - ((words >> (width - 1) & 1) << width)


def blocks(low: int, high: int, *others: Sequence[int]) -> Iterator[tuple[Words, ...]]:
    """All combinations of an integer in low .. high - 1 and elements of the others, in blocks of arrays."""
    for start in range(low, high, _BLOCK):
        first = np.arange(start, min(start + _BLOCK, high), dtype=np.int64)
        grids = [np.array([0])] if not others else np.meshgrid(*others, indexing="ij")
        for rest in zip(*(g.ravel() for g in grids), strict=True):
            yield (first, *(np.full_like(first, int(r)) for r in rest)) if others else (first,)


@dataclass(frozen=True)
class Every:
    """A comparison on every argument.

    ``arguments`` yields arrays of signed or unsigned integers, one per parameter; ``error(result, *arguments)`` gives
    two arrays of one unit: how far the result (unsigned words) may be off at most, and how far it is allowed to be.
    """

    arguments: Callable[[], Iterable[tuple[Words, ...]]]
    error: Callable[..., tuple[Words, Words]]


@dataclass(frozen=True)
class Statement:
    """A statement on bit-vectors: ``hypotheses`` imply ``goal``, for all values of ``variables``.

    ``cases`` are conditions under each of which the goal is asked by itself; that one of them holds is asked, too.
    """

    variables: tuple[Expr, ...]
    hypotheses: tuple[Expr, ...]
    goal: Expr
    cases: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Lemma:
    """A primitive's lemma.

    ``statement`` and ``domain`` say it in words (v(.) is the number that a word stands for); ``constants`` are the
    numbers in it that bounds use; ``proof`` makes the comparison or the statement for a function in the primitive's
    place, so that a broken one can be tried.
    """

    name: str
    function: Function
    statement: str
    domain: str
    proof: Callable[[Function], Every | Statement]
    constants: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """How it is proved."""
        return EVERY_ARGUMENT if isinstance(self.proof(self.function), Every) else TWO_SOLVERS


def solvers(statement: Callable[[Function], Statement]) -> Callable[[Function], Every | Statement]:
    """The statement as a lemma's proof (for the type checker)."""
    return statement


def lemma_claim(lemma: Lemma) -> Claim:
    """What a PROVED of a lemma says."""
    by_arguments = lemma.method == EVERY_ARGUMENT
    assumed = "compiled expressions mean what their operators say" if by_arguments else "two solvers agree"
    return Claim(
        lemma.function.name, lemma.statement, lemma.domain, Equality.WITHIN, (Interpretation.BITS,), (assumed,)
    )


def prove_lemma(lemma: Lemma, discharger: Discharger | None = None, *, function: Function | None = None) -> Verdict:
    """Proves a lemma, or refutes it with an argument; ``function`` takes the primitive's place.

    The verdict's details have the digest of the primitive's body, the ``method``, and, by enumeration, the number of
    ``arguments`` and the ``largest`` error as a part of what is allowed; if refuted, the ``counterexample``.
    """
    target, discharger = function or lemma.function, discharger or Discharger(timeout=60)
    proof = lemma.proof(target)
    details: dict[str, object] = {"digest": digest(target)}
    start, mark = time.perf_counter(), len(discharger.obligations)
    if isinstance(proof, Every):
        method = "enumeration"
        status, reason = _enumerate(lemma, target, proof, details)
    else:
        method = "lemma"
        with fresh_symbols():
            status, reason = _ask(lemma, proof, discharger, details)
    seconds = time.perf_counter() - start
    return Verdict(status, lemma_claim(lemma), method, seconds, reason, discharger.obligations[mark:], details=details)


def _refuted(details: dict[str, object], counterexample: Mapping[str, int], seen: str) -> tuple[Status, str]:
    details["counterexample"] = dict(counterexample)
    return Status.REFUTED, f"at {', '.join(f'{n} = {v}' for n, v in counterexample.items())}: {seen}"


def names_of(function: Function) -> list[str]:
    """The names of a primitive's parameters, as a counterexample has them."""
    return [p.name.rpartition(".")[2] for p in function.params]


def _enumerate(lemma: Lemma, function: Function, proof: Every, details: dict[str, object]) -> tuple[Status, str]:
    assert function.body is not None
    run = compile_terms(function.params, [function.body], vector=True)
    masks = [(1 << p.width) - 1 for p in function.params]
    details["method"] = EVERY_ARGUMENT
    count, largest = 0, Fraction(0)
    for arguments in proof.arguments():
        (result,) = run(*(a & m for a, m in zip(arguments, masks, strict=True)))
        result = np.broadcast_to(np.asarray(result, np.int64), arguments[0].shape)
        error, allowed = (np.broadcast_to(e, result.shape) for e in proof.error(result, *arguments))
        wrong = error > allowed
        if wrong.any():
            at = int(np.argmax(wrong))
            values = {n: int(a[at]) for n, a in zip(names_of(function), arguments, strict=True)}
            seen = f"the result is {int(result[at])}, off by up to {int(error[at])} where {int(allowed[at])} is allowed"
            return _refuted(details, values, seen)
        count += error.size
        positive = allowed > 0
        if positive.any():
            at = int(np.argmax(np.where(positive, error / np.maximum(allowed, 1), 0.0)))
            largest = max(largest, Fraction(int(error[at]), max(int(allowed[at]), 1)))
    counted = {"arguments": count, "largest": float(largest)}
    details |= counted
    if not count:
        return Status.VACUOUS, "the domain has no argument"
    details["enumerations"] = [{"name": lemma.name, "meaning": lemma.statement, **counted}]
    return conclude((), EVERY_ARGUMENT)


def _ask(lemma: Lemma, statement: Statement, discharger: Discharger, details: dict[str, object]) -> tuple[Status, str]:
    details["method"] = TWO_SOLVERS
    encoding = BitEncoding()
    hypotheses = [encoding.term(h) for h in statement.hypotheses]
    goal, cases = encoding.term(statement.goal), [encoding.term(case) for case in statement.cases]
    questions = [("premises", hypotheses, "sat", "some argument meets the premises")]
    if cases:
        questions.append(("cases", [*hypotheses, *map(smt.Not, cases)], "unsat", "the cases are all"))
    for number, case in enumerate(cases):
        questions.append((f"case {number + 1}", [*hypotheses, case, smt.Not(goal)], "unsat", lemma.statement))
    if not cases:
        questions.append(("statement", [*hypotheses, smt.Not(goal)], "unsat", lemma.statement))
    for name, assertions, expected, meaning in questions:
        if expected == "sat" and not hypotheses:
            continue
        text = script(assertions, comment=f"{lemma.name}: {name}")
        try:
            discharger.ask_text(Obligation(f"{lemma.name}: {name}", "numerics", text, expected, meaning))
        except NotDischarged as failed:
            return _failed(statement, failed.obligation, details)
    return discharger.conclude()


def _failed(statement: Statement, obligation: Obligation, details: dict[str, object]) -> tuple[Status, str]:
    answer = obligation.answers[-1]
    if obligation.expected == "sat":
        status = Status.VACUOUS if answer.status == "unsat" else Status.UNKNOWN
        return status, f"premises: {answer.solver} says {answer.status}"
    models = [a.model for a in obligation.answers if a.status == "sat" and a.model is not None]
    values = {v.name: models[0].get(v.name, 0) for v in statement.variables} if models else {}
    if models and not _holds(statement, values):
        return _refuted(details, values, "the statement evaluates to false")
    return Status.UNKNOWN, f"{answer.solver} says {answer.status}, where {obligation.expected} is needed"


def _holds(statement: Statement, values: Mapping[str, int]) -> bool:
    """The statement evaluated at an argument, without a solver."""
    roots = [inline(r) for r in (*statement.hypotheses, statement.goal)]
    *premises, goal = compile_terms(statement.variables, roots)(*(values[v.name] for v in statement.variables))
    return bool(goal) or not all(premises)
