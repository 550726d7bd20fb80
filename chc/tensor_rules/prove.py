"""Proofs of rewrite rules between tensor terms, for every size of the rule's domain.

One arbitrary element of the result stands for all: its subscripts are integer variables within the shape.  The
normal forms of both sides' elements (:mod:`.normal_forms.normalise`) are compared (:mod:`.match`), and every fact on
indices that this needs is put to the solvers.  See docs/explanation/tensor_rules.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ir_semantics.tensors.conditions import All, equal
from ir_semantics.tensors.elements import Element, indices_of_element, substitute_element
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.terms import well_formed
from smt_encodings.claims import Equality, Status, Verdict, conclude
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols

from .check import EXAMPLE, Asking, example_script, replay_rule, written
from .context import Context, OutOfTime, Proof
from .kernel.replay import Derivation, opening
from .kernel.steps import Rejected, variable
from .match import Matcher
from .normal_forms.derive import chain
from .normal_forms.extrema import Normaliser
from .normal_forms.normal import Laws, indices_in
from .normal_forms.simplify import Digits, Indices
from .rule import TensorRule
from .sizes import sizes_drawn, sizes_within

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
    proof = Proof(Discharger(discharger.timeout, discharger.second, asking=discharger.asking), end)
    premise = rule.premise
    points = next(filter(None, (sizes_within(rule.sizes, premise, MOST_POINTS // 4, n) for n in LARGEST_SIZES)), [])
    points += [p for n in LARGEST_SIZES for p in sizes_drawn(rule.sizes, premise, MOST_POINTS // 2, n, proof.random)]
    context = Context(proof, (), tuple(points), rule.positive).under(premise)
    _satisfiable(context, rule, discharger)
    _shapes(rule, context)
    derivation = _derivation(rule, context)
    try:
        replay_rule(rule, derivation, Asking(discharger=discharger, answered=proof.answers))
    except Rejected as error:
        raise _NotProved(f"the kernel does not accept the derivation: {error}") from error
    return {"derivation": written(derivation, _example(context))}


@dataclass
class _Goal:
    """Both sides' elements at subscripts, or at digits of these: variables in ranges that are ``at`` subscripts."""

    ranges: tuple[tuple[str, Index], ...]
    left: Element
    right: Element
    at: dict[str, Index] = field(default_factory=dict)

    def in_digits(self, name: str, digits: Digits) -> None:
        """One variable in digits from now on."""
        self.left, self.right = (substitute_element(e, {name: digits.number}) for e in (self.left, self.right))
        position = [v for v, _ in self.ranges].index(name)
        two = ((digits.high, self.ranges[position][1] // digits.divisor), (digits.low, digits.divisor))
        self.ranges = (*self.ranges[:position], *two, *self.ranges[position + 1 :])
        self.at |= digits.of(self.at.pop(name, variable(name)))

    def split(self, indices: list[Index], context: Context) -> bool:
        """Whether a variable that some quotient divides was written in two digits."""
        for name, extent in self.ranges:
            digits = Indices(Laws.EXACT).splits(indices, name, extent, context)
            if digits is not None:
                self.in_digits(name, digits)
                return True
        return False


def _derivation(rule: TensorRule, context: Context) -> Derivation:
    """A derivation of the rule; raises _NotProved where the normal forms are not matched."""
    subscripts, one, other = opening(rule.left, rule.right, context.proof.names)
    goal = _Goal(tuple(zip(subscripts, rule.left.shape, strict=True)), one, other)
    while True:
        if goal.split([i for e in (goal.left, goal.right) for i in indices_of_element(e)], context):
            continue
        inner = context.under(ranges=goal.ranges)
        context.proof.used.clear()
        left = Normaliser(LAWS[rule.equality])
        a = left.value(goal.left, inner)
        equal_ = Matcher(left).values
        right = Normaliser(LAWS[rule.equality], "indices", left.divisors, left.divided, equal_)
        b = right.value(goal.right, inner)
        if not goal.split([i for f in a.value + b.value for i in indices_in(f)], context):
            break
    matched = Matcher(right).values(a.value, b.value, inner)
    if matched is None:
        texts = (" + ".join(map(str, v)) or "0" for v in (a.value, b.value))
        raise _NotProved("the normal forms were not matched: " + "  against  ".join(texts))
    return Derivation(chain(inner.hypotheses, a.step, matched, (b.step, True)), goal.at)


def _satisfiable(context: Context, rule: TensorRule, discharger: Discharger) -> None:
    """The precondition has a model: small sizes that satisfy it, confirmed by the solvers."""
    point = _example(context)
    facts = example_script(context.hypotheses, point)
    try:
        discharger.ask("health", "satisfiable", facts, EXAMPLE, expected="sat")
    except NotDischarged as error:
        if not point and any(a.status == "unsat" for a in error.obligation.answers):
            raise _Empty from error
        raise _NotProved(f"no sizes are known that satisfy the premise {rule.premise}") from error


def _example(context: Context) -> dict[str, int]:
    return context.samples[0] if context.samples else {}


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
