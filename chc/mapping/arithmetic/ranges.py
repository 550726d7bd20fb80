"""Bounds on sums of products of counters, in steps that solvers find easy.

``base + 16*((t div 16)*n + v) + t mod 16`` stays below a limit because each counter is at most its extent less one,
and the sum grows with every counter.  Asked at once, with symbolic ``n``, solvers answer in milliseconds or never.  The
steps replace one counter after the other by its bound: where the difference ``limit - sum`` is ``rest - k*c`` with
``k >= 0`` and ``c <= u``, it is at least ``rest - k*u``, for ``(u - c)*k >= 0``.  A counter that stands with a positive
factor is dropped, for ``c*k >= 0``.  A sum of counters that a hypothesis bounds as a whole, such as an output row
``r + K/2 - k`` below the height, is replaced as a whole, in the same way.  What is left speaks of sizes only, and is
linear in products of sizes.

The facts ``(u - c)*k >= 0`` follow from ``u - c >= 0`` and ``k >= 0`` by one lemma about two numbers, an obligation
like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from smt_encodings.caching import cached_with_symbols
from smt_encodings.discharge import conjuncts
from smt_encodings.discharge import decide as decide_within
from smt_encodings.expressions.integers import is_linear
from smt_encodings.expressions.polynomials import (
    Polynomial,
    difference_of,
    expand,
    polynomial_term,
    product_of,
    text_of,
    without,
)

from .steps import Step

Decide = Callable[[list[FNode], FNode], bool]

MOST_STEPS = 24


@dataclass(frozen=True)
class _Facts:
    """What is known, and of linear facts the symbols."""

    known: Sequence[FNode]
    linear: Sequence[tuple[FNode, frozenset[FNode]]]

    def about(self, symbols: set[FNode]) -> list[FNode]:
        """What is known of symbols and of what linear facts tie them to."""
        reached = set(symbols)
        for _ in range(2):
            for _, free in self.linear:
                if len(free) <= 3 and not reached.isdisjoint(free):
                    reached |= free
        return [fact for fact, free in self.linear if free <= reached]


@cached_with_symbols(200)
def _facts(hypotheses: tuple[FNode, ...]) -> _Facts:
    known = conjuncts(hypotheses)
    return _Facts(known, [(f, f.get_free_variables()) for f in known if is_linear(f)])


def quick(hypotheses: list[FNode], goal: FNode) -> bool:
    """Whether solvers see within a second that ``goal`` follows."""
    return decide_within(hypotheses, goal, 1.0)


def range_steps(
    hypotheses: Sequence[FNode], smaller: FNode, larger: FNode, sizes: set[FNode], decide: Decide, gap: int = 0
) -> list[Step] | None:
    """Steps that prove ``smaller + gap <= larger``; None where they are not found.

    ``sizes`` are the symbols that may be left at the end; all others are replaced by bounds.  Sums of counters that a
    linear hypothesis bounds, as a guard of blocks with an edge does, are tried where bounds of single ones do not do.
    """
    known = _facts(tuple(hypotheses))
    sums = [f for f in known.known if f.is_le() or f.is_lt() or f.is_not()]
    products = [f for f in sums if not is_linear(f)]
    steps = _steps(known, (smaller, larger, gap), sizes, decide, products)
    if steps is None and len(sums) > len(products):
        steps = _steps(known, (smaller, larger, gap), sizes, decide, sums)
    return steps


def _steps(
    known: _Facts,
    goal_of: tuple[FNode, FNode, int],
    sizes: set[FNode],
    decide: Decide,
    sums: Sequence[FNode],
) -> list[Step] | None:
    smaller, larger, gap = goal_of
    difference = difference_of(expand(larger), expand(smaller))
    steps: list[Step] = []
    conclusions: list[Polynomial] = []
    products: list[dict[FNode, FNode]] = []
    whole = difference
    a, b = smt.Symbol("!a", INT), smt.Symbol("!b", INT)
    for _ in range(MOST_STEPS):
        replaced = _bounded_sum(known, difference, sizes, decide, sums) or _next(known, difference, sizes, decide)
        if replaced is None:
            break
        gain, factor, difference, facts = replaced
        if not steps:
            zero = smt.Int(0)
            lemma = [smt.LE(zero, a), smt.LE(zero, b)], smt.LE(zero, smt.Times(a, b))
            steps.append(Step("products", *lemma, products))
        products.append({a: gain, b: factor})
        number = len(conclusions) + 1
        for what, term in (("distance", gain), ("factor", factor)):
            steps.append(Step(f"{what} {number}", facts, smt.LE(smt.Int(0), term)))
        conclusions.append(product_of(expand(gain), expand(factor)))
    left = {s for m in difference for a in m for s in a.get_free_variables()}
    if not left <= sizes or not conclusions:
        return None
    rest = smt.LE(smt.Int(gap), polynomial_term(difference))
    about = [h for h in known.known if h.get_free_variables() <= sizes]
    if not decide(about, rest):
        return None
    steps.append(Step("sizes", about, rest))
    # for any numbers in place of the products of symbols; here they are these products
    names: dict[tuple[FNode, ...], FNode] = {}
    parts = [_named(p, names) for p in (difference, *conclusions, whole)]
    low = [smt.LE(smt.Int(gap if part is parts[0] else 0), part) for part in parts[:-1]]
    at = [{symbol: polynomial_term({monomial: 1}) for monomial, symbol in names.items()}]
    steps.append(Step("sum", low, smt.LE(smt.Int(gap), parts[-1]), at))
    goal = smt.LE(smt.Plus(smaller, smt.Int(gap)), larger)
    steps.append(Step("whole", [smt.LE(smt.Int(gap), polynomial_term(whole))], goal))
    return steps


def _named(polynomial: Polynomial, names: dict[tuple[FNode, ...], FNode]) -> FNode:
    """A polynomial with a symbol for each product of several symbols; the same one for the same product."""
    linear: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        if len(monomial) > 1:
            monomial = (names.setdefault(monomial, smt.Symbol(f"!product{len(names)}", INT)),)
        linear[monomial] = coefficient
    return polynomial_term(linear)


def digit_steps(
    hypotheses: Sequence[FNode], digit: FNode, radix: FNode, sizes: set[FNode], decide: Decide
) -> list[Step] | None:
    """Steps that prove ``0 <= digit < radix``; None where they are not found."""
    linear = _facts(tuple(hypotheses)).about({*digit.get_free_variables(), *radix.get_free_variables()})
    steps: list[Step] = []
    for smaller, larger, gap, name in ((smt.Int(0), digit, 0, "not negative"), (digit, radix, 1, "below the radix")):
        goal = smt.LT(smaller, larger) if gap else smt.LE(smaller, larger)
        if is_linear(goal) and decide(linear, goal):
            steps.append(Step(name, linear, goal))
            continue
        bounding = range_steps(hypotheses, smaller, larger, sizes, decide, gap)
        if bounding is None:
            return None
        steps += [step._replace(name=f"{name}, {step.name}") for step in bounding]
        steps.append(Step(name, [bounding[-1].goal], goal))
    return steps


def apart_steps(
    hypotheses: Sequence[FNode], left: FNode, right: FNode, sizes: set[FNode], decide: Decide
) -> list[Step] | None:
    """Steps that prove ``left != right``, as a theorem about them or by instances; None where they are not found.

    Where that is no question of linear arithmetic, one is below the other, or a digit of both is: ``m*h + d`` and
    ``m*h' + d'`` with digits below m differ where the digits do, or the rest does.
    """
    one, two = expand(left), expand(right)
    residue = _residue_steps(left, right, difference_of(one, two))
    if residue is not None:
        return residue
    apart = smt.Not(smt.Equals(left, right))
    if is_linear(apart):
        linear = [fact for fact, _ in _facts(tuple(hypotheses)).linear]
        return [Step("apart", linear, apart)] if decide(linear, apart) else None
    for smaller, larger in ((left, right), (right, left)):
        steps = range_steps(hypotheses, smaller, larger, sizes, decide, 1)
        if steps is not None:
            return [*steps, Step("apart", [steps[-1].goal], apart)]
    for radix in _radices(one, two, sizes):
        found = [_digit_and_rest(hypotheses, p, radix, sizes, decide) for p in (one, two)]
        if found[0] is None or found[1] is None:
            continue
        lows, highs, inside = zip(*found, strict=True)
        for what, (a, b), number in (("digits", lows, 0), ("rest", highs, 1)):
            below = None if a is b else apart_steps(hypotheses, a, b, sizes, decide)
            if below is None:
                continue
            steps = []
            for side, whole, low, high, group in zip(
                ("left", "right"), (left, right), lows, highs, inside, strict=True
            ):
                form = smt.Plus(smt.Times(radix, high), low)
                steps.append(Step(f"{side}, digit and rest", [], smt.Equals(whole, form)))
                steps += [step._replace(name=f"{side} digit, {step.name}") for step in group]
            steps += [step._replace(name=f"{what}: {step.name}") for step in below]
            # over any digits, rests and sizes; here these are those of left and right
            n, d, h, e, k = (smt.Symbol(f"!{x}", INT) for x in ("n", "d", "h", "d.other", "h.other"))
            base = radix if radix.is_constant() else n
            ranges = [smt.LE(smt.Int(0), x) for x in (d, e)] + [smt.LT(x, base) for x in (d, e)]
            different = smt.Not(smt.Equals(*((d, e), (h, k))[number]))
            sums = [smt.Plus(smt.Times(base, x), y) for x, y in ((h, d), (k, e))]
            at = {d: lows[0], e: lows[1], h: highs[0], k: highs[1]} | ({} if radix.is_constant() else {n: radix})
            steps.append(Step("radix", [*ranges, different], smt.Not(smt.Equals(*sums)), [at]))
            return steps
    return None


def _radices(one: Polynomial, two: Polynomial, sizes: set[FNode]) -> list[FNode]:
    """What two sums may have a digit below: literal factors, the largest first, and sizes that are factors in both."""
    literals = sorted({abs(c) for c in (*one.values(), *two.values()) if abs(c) > 1}, reverse=True)
    factors = [{a for m in p if len(m) > 1 for a in m} & sizes for p in (one, two)]
    return [*map(smt.Int, literals), *sorted(factors[0] & factors[1], key=text_of)]


def _digit_and_rest(
    hypotheses: Sequence[FNode], whole: Polynomial, radix: FNode, sizes: set[FNode], decide: Decide
) -> tuple[FNode, FNode, list[Step]] | None:
    """A sum as ``radix*rest + digit``, and the steps to the digit's range; such as n - 1 of ``a*n + n - 1``."""
    digit: Polynomial = {}
    rest: Polynomial = {}
    for monomial, coefficient in whole.items():
        if radix.is_constant() and coefficient % int(radix.constant_value()) == 0:
            rest[monomial] = coefficient // int(radix.constant_value())
        elif (left := without(monomial, (radix,))) is not None:
            rest[left] = coefficient
        else:
            digit[monomial] = coefficient
    steps = digit_steps(hypotheses, polynomial_term(digit), radix, sizes, decide)
    if steps is None and any(c < 0 for c in digit.values()):
        digit, rest = difference_of(digit, expand(smt.Times(smt.Int(-1), radix))), difference_of(rest, {(): 1})
        steps = digit_steps(hypotheses, polynomial_term(digit), radix, sizes, decide)
    return None if steps is None else (polynomial_term(digit), polynomial_term(rest), steps)


def _residue_steps(left: FNode, right: FNode, difference: Polynomial) -> list[Step] | None:
    """Steps that prove ``left != right`` where they differ by ``k*rest + c``, and c is no multiple of k."""
    rest = {m: c for m, c in difference.items() if m}
    divisor, literal = gcd(*rest.values()), difference.get((), 0)
    if divisor < 2 or literal % divisor == 0:
        return None
    quotient, k = polynomial_term({m: c // divisor for m, c in rest.items()}), smt.Symbol("!k", INT)
    multiple, any_rest = (smt.Times(smt.Int(divisor), x) for x in (quotient, k))
    no_multiple = smt.Not(smt.Equals(smt.Plus(any_rest, smt.Int(literal)), smt.Int(0)))
    return [
        Step("residue", [], smt.Equals(left, smt.Plus(right, multiple, smt.Int(literal)))),
        Step("no multiple", [], no_multiple, [{k: quotient}]),
    ]


def _bounded_sum(
    known: _Facts, difference: Polynomial, sizes: set[FNode], decide: Decide, sums: Sequence[FNode]
) -> tuple[FNode, FNode, Polynomial, list[FNode]] | None:
    """As :func:`_next`, for several counters: what one of ``sums`` says is not negative, times a factor."""
    for fact in sums:
        gain = _not_negative(fact)
        inner = [m for m in gain if not {s for a in m for s in a.get_free_variables()} <= sizes]
        if len(inner) < 2 and not any(abs(gain[m]) > 1 for m in inner):
            continue
        for monomial, coefficient in difference.items():
            rest = list(monomial)
            if coefficient % gain[inner[0]] or any(rest.count(a) < inner[0].count(a) for a in inner[0]):
                continue
            for a in inner[0]:
                rest.remove(a)
            factor = {tuple(rest): coefficient // gain[inner[0]]}
            taken = product_of(gain, factor)
            left = difference_of(difference, taken)
            if any(m in left for m in product_of(dict.fromkeys(inner, 1), factor)):
                continue
            about = known.about({s for a in rest for s in a.get_free_variables()})
            if decide(about, smt.LE(smt.Int(0), polynomial_term(factor))):
                return polynomial_term(gain), polynomial_term(factor), left, [fact, *about]
    return None


@cached_with_symbols(10_000)
def _not_negative(fact: FNode) -> Polynomial:
    """What a comparison says is at least 0; nothing for other formulas."""
    strict, inner = fact.is_lt(), fact
    if fact.is_not():
        inner, strict = fact.arg(0), fact.arg(0).is_le()
    if not (inner.is_le() or inner.is_lt()):
        return {}
    smaller, larger = inner.args() if inner is fact else reversed(inner.args())
    return difference_of(expand(larger), expand(smt.Plus(smaller, smt.Int(int(strict)))))


def _next(
    known: _Facts, difference: Polynomial, sizes: set[FNode], decide: Decide
) -> tuple[FNode, FNode, Polynomial, list[FNode]] | None:
    """A counter to replace: what its bound exceeds it by, its factor, the difference that is left, and facts used."""
    atoms = {a for m in difference for a in m if not a.get_free_variables() <= sizes}
    for atom in sorted(atoms, key=text_of):
        if any(m.count(atom) > 1 for m in difference):
            continue
        with_atom = {m: c for m, c in difference.items() if atom in m}
        factor = {tuple(a for a in m if a is not atom): c for m, c in with_atom.items()}
        rest = {m: c for m, c in difference.items() if m not in with_atom}
        about = known.about({atom, *(s for m in factor for a in m for s in a.get_free_variables())})
        if all(c > 0 for c in factor.values()):
            if decide(about, smt.LE(smt.Int(0), atom)):
                return atom, polynomial_term(factor), rest, about
            continue
        if any(c > 0 for c in factor.values()):
            continue
        positive = {m: -c for m, c in factor.items()}
        for bound in _bounds(known.known, atom, sizes):
            wider = known.about({*bound.get_free_variables(), *(s for h in about for s in h.get_free_variables())})
            if decide(wider, smt.LE(smt.Int(0), smt.Minus(bound, atom))):
                taken = product_of(expand(bound), positive)
                return smt.Minus(bound, atom), polynomial_term(positive), difference_of(rest, taken), wider
    return None


def _bounds(known: Sequence[FNode], atom: FNode, sizes: set[FNode]) -> list[FNode]:
    """Terms that may bound an atom from above: sizes first, then literals, the smallest first."""
    bounds: list[FNode] = []
    if "!div" in text_of(atom):  # a quotient may be bounded by that of an extent
        others = {s for h in known for s in h.get_free_variables() if "!div" in s.symbol_name()}
        divisor = text_of(atom).rpartition("!")[2]
        bounds += [
            _less_one(s) for s in sorted(others - {atom}, key=lambda s: (not text_of(s).endswith(divisor), text_of(s)))
        ]
        bounds += [_less_one(s) for s in sorted(sizes - others, key=text_of)]  # of all that has that many blocks
    for fact in known:
        if fact.is_lt() and fact.arg(0) is atom:
            bounds.append(_less_one(fact.arg(1)))
        elif fact.is_le() and fact.arg(0) is atom:
            bounds.append(fact.arg(1))
        elif fact.is_not() and fact.arg(0).is_le() and fact.arg(0).arg(1) is atom:
            bounds.append(_less_one(fact.arg(0).arg(0)))
        elif fact.is_not() and fact.arg(0).is_lt() and fact.arg(0).arg(1) is atom:
            bounds.append(fact.arg(0).arg(0))
    bounds.sort(key=lambda b: (1, int(b.constant_value())) if b.is_constant() else (0, 0))
    return bounds


def _less_one(bound: FNode) -> FNode:
    return smt.Int(int(bound.constant_value()) - 1) if bound.is_constant() else smt.Minus(bound, smt.Int(1))
