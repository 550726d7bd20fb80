"""Proofs of rewrite rules between tensor terms, for every size of the rule's domain.

One arbitrary element of the result stands for all: its subscripts are integer variables within the shape.  The
normal forms of both sides' elements (:mod:`.normalise`) are compared (:mod:`.match`), and every fact on
indices that this needs is put to the solvers.  See docs/tensor_rules.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import pysmt.shortcuts as smt

from ir_semantics.tensors.conditions import All, equal
from ir_semantics.tensors.elements import Element, indices_of_element, substitute_element
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.terms import element_of, well_formed
from smt_encodings.claims import Equality, Status, Verdict, conclude
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols

from .context import Context, OutOfTime, Proof, sizes_drawn, sizes_within
from .match import Matcher
from .normal import Atom, Laws, Value, indices_in, one_atom
from .normalise import Normaliser
from .rule import TensorRule

__all__ = ["METHOD", "prove_tensor_rule"]

METHOD = "tensor"
LAWS = {
    Equality.OVER_REALS: Laws.RING,
    Equality.UP_TO_REDUCTION_ORDER: Laws.MONOID,
    Equality.BIT_EXACT: Laws.EXACT,
}
MOST_POINTS = 120
LARGEST_SIZES = (5, 9, 16)


class _NotProved(Exception):
    """The step that did not succeed."""


def prove_tensor_rule(rule: TensorRule, discharger: Discharger | None = None, seconds: float = 60.0) -> Verdict:
    """PROVED with all obligations, UNKNOWN with the step that failed, or VACUOUS; never REFUTED.

    About ``seconds`` are spent at most.  Raises ValueError for an equality notion that tensor rules do not have, and
    for a NaN among real numbers.
    """
    if rule.equality not in LAWS:
        raise ValueError(f"the rule {rule.name} must be claimed bit_exact, up_to_reduction_order or over_reals")
    asked = discharger if discharger is not None else Discharger(timeout=8.0)
    start, mark = time.perf_counter(), len(asked.obligations)
    details = dict[str, object]()
    with fresh_symbols():
        try:
            details = _prove(rule, asked, start + seconds)
            status, reason = conclude(asked.obligations[mark:])
        except _NotProved as stop:
            status, reason = Status.UNKNOWN, str(stop)
        except OutOfTime:
            status, reason = Status.UNKNOWN, f"no proof was found within {seconds:g} s"
        except _Empty:
            status, reason = Status.VACUOUS, "no sizes satisfy the side condition"
    took = time.perf_counter() - start
    return Verdict(status, rule.claim, METHOD, took, reason, asked.obligations[mark:], details=details)


class _Empty(Exception):
    """No sizes satisfy the premise."""


def _prove(rule: TensorRule, discharger: Discharger, end: float) -> dict[str, object]:
    _ = rule.inputs  # one shape for every name
    proof = Proof(discharger, end)
    premise = rule.premise
    points = next(filter(None, (sizes_within(rule.sizes, premise, MOST_POINTS // 4, n) for n in LARGEST_SIZES)), [])
    points += [p for n in LARGEST_SIZES for p in sizes_drawn(rule.sizes, premise, MOST_POINTS // 2, n, proof.random)]
    context = Context(proof, (), tuple(points), rule.positive).under(premise)
    _satisfiable(context, rule)
    _shapes(rule, context)
    subscripts = [proof.names.fresh("o") for _ in range(rule.left.rank)]
    at = [Index({(s,): 1}) for s in subscripts]
    left, right = element_of(rule.left, at, proof.names), element_of(rule.right, at, proof.names)
    ranges = list(zip(subscripts, rule.left.shape, strict=True))
    normalisers = Normaliser(LAWS[rule.equality]), Normaliser(LAWS[rule.equality])
    values, inner = _normalised(normalisers, (left, right), ranges, context)
    matcher = Matcher(LAWS[rule.equality])
    _has_value(*normalisers, matcher)
    if not matcher.values(*values, inner):
        raise _NotProved(
            "the normal forms were not matched: " + "  against  ".join(" + ".join(map(str, v)) or "0" for v in values)
        )
    return {"normal forms": [" + ".join(map(str, v)) or "0" for v in values]}


def _satisfiable(context: Context, rule: TensorRule) -> None:
    """The precondition has a model: small sizes that satisfy it, confirmed by the solvers."""
    terms, discharger = context.proof.terms, context.proof.discharger
    assertions = [terms.condition(h) for h in context.hypotheses] + terms.definitions(context.hypotheses)
    point = context.samples[0] if context.samples else {}
    fixed = [smt.Equals(terms.index(Index({(v,): 1})), smt.Int(n)) for v, n in sorted(point.items())]
    try:
        discharger.ask("health", "satisfiable", [*assertions, *fixed], "some sizes satisfy the premise", expected="sat")
    except NotDischarged as error:
        if not point and any(a.status == "unsat" for a in error.obligation.answers):
            raise _Empty from error
        raise _NotProved(f"no sizes are known that satisfy the premise {rule.premise}") from error


def _shapes(rule: TensorRule, context: Context) -> None:
    if rule.left.rank != rule.right.rank:
        raise _NotProved(f"the sides have {rule.left.rank} and {rule.right.rank} axes")
    needed = well_formed(rule.right)
    for part in needed.parts if isinstance(needed, All) else (needed,):
        if not context.establish(part, "shapes", "the right side is well formed"):
            raise _NotProved(f"the right side is well formed only if {part}")
    for axis, (a, b) in enumerate(zip(rule.left.shape, rule.right.shape, strict=True)):
        if not context.establish(equal(a, b), "shapes", f"both sides have one size along axis {axis}"):
            raise _NotProved(f"along axis {axis} the sides have the sizes {a} and {b}")


def _has_value(left: Normaliser, right: Normaliser, matcher: Matcher) -> None:
    """The right side has a value where the left one has: what its operations need is established, or is on the left."""
    for divisor, place in right.divisors:
        if not _divides(divisor, place, left.divisors, right, matcher):
            raise _NotProved(f"the right side divides by {' + '.join(map(str, divisor)) or 0}, which may be 0")
    for product, place in right.lost:
        if not right.finite((product,), place) and not any(
            _reaches(there, place) and matcher.values((product,), (value,), place) for value, there in left.lost
        ):
            raise _NotProved(f"the right side has {product}, which cancels and may have no value")
    for op, args, place in right.operations:
        if right.has_value(op, args, place):
            continue
        for f in itertools.chain(*args):
            inner = place.under(f.guard, ranges=f.bound)
            for atom, _ in f.powers:
                if not right.finite(one_atom(atom), inner) and not any(
                    matcher.values(one_atom(atom), one_atom(other), inner) for other in _computed_with(left, inner)
                ):
                    raise _NotProved(f"the right side computes with {atom}, which may have no value")


def _computed_with(side: Normaliser, context: Context) -> Iterator[Atom]:
    """Factors of what a side adds, multiplies or divides wherever a context's hypotheses hold."""
    for _, args, place in side.operations:
        for f in itertools.chain(*args):
            if _reaches(place.under(f.guard, ranges=f.bound), context):
                yield from (atom for atom, _ in f.powers)


def _reaches(context: Context, other: Context) -> bool:
    """Whether what is in a context is in the other one, too."""
    return set(context.hypotheses) <= set(other.hypotheses)


def _divides(
    divisor: Value,
    place: Context,
    lefts: Sequence[tuple[Value, Context]],
    normaliser: Normaliser,
    matcher: Matcher,
) -> bool:
    """Whether a divisor of the right side is not 0 wherever the left side has a value."""
    if normaliser.nonzero(divisor, place):
        return True
    reached = [value for value, there in lefts if _reaches(there, place)]
    if any(matcher.values(divisor, value, place) for value in reached):
        return True
    if len(divisor) != 1 or not divisor[0].simple:
        return False
    known = {atom for value in reached if len(value) == 1 and value[0].simple for atom, n in value[0].powers if n > 0}
    return all(atom in known or normaliser.positive(atom, place) for atom, _ in divisor[0].powers)


def _normalised(
    normalisers: tuple[Normaliser, Normaliser],
    elements: Sequence[Element],
    ranges: list[tuple[str, Index]],
    context: Context,
) -> tuple[tuple[Value, Value], Context]:
    """Both normal forms, once subscripts are written in the digits by which they are divided."""
    raw = [i for e in elements for i in indices_of_element(e)]
    split = _split(normalisers[0], raw, ranges, context)
    if split is None:
        inner = context.under(ranges=ranges)
        for normaliser in normalisers:
            normaliser.forget()
        left, right = (n.value(e, inner) for n, e in zip(normalisers, elements, strict=True))
        indices = [i for value in (left, right) for f in value for i in indices_in(f)]
        split = _split(normalisers[0], indices, ranges, context)
        if split is None:
            return (left, right), inner
    variable, number, more = split
    written = [substitute_element(e, {variable: number}) for e in elements]
    return _normalised(normalisers, written, more, context)


def _split(
    normaliser: Normaliser, indices: list[Index], ranges: list[tuple[str, Index]], context: Context
) -> tuple[str, Index, list[tuple[str, Index]]] | None:
    """A subscript that some quotient divides, as a number of two digits, and the ranges with these."""
    for position, (variable, extent) in enumerate(ranges):
        divisor = normaliser.splits(indices, variable, extent, context)
        if divisor is not None:
            high, low = (context.proof.names.fresh("o") for _ in range(2))
            number = Index({(high,): 1}) * divisor + Index({(low,): 1})
            digits = [(high, extent // divisor), (low, divisor)]
            return variable, number, [*ranges[:position], *digits, *ranges[position + 1 :]]
    return None
