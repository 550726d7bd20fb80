"""Layouts are injective: the one nonlinear theorem of the method, in steps that solvers find easy.

"``address(i) = address(j)`` implies ``i = j``" mixes remainders, quotients and a product with a symbolic stride; asked
at once, solvers answer in milliseconds or never.  The steps follow how addresses are built:

1. *Digits of literal weight.*  An address is ``m*high + digit`` with ``0 <= digit < m`` (a lane, a row of a tile).
   Equal addresses then have equal digits and equal high parts, whatever these are; the digit is peeled off and the
   high part goes on.
2. *Digits of symbolic weight.*  What is left, such as ``q*n + v = q'*n + v'``, gives ``q = q'`` and ``v = v'`` from the
   ranges of these variables and nothing else.
3. The counters follow from their digits, linearly.

Each step is an obligation of its own, and so is the identity that writes the address in this form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from smt_encodings.claims import Unsupported
from smt_encodings.discharge import conjuncts, decide
from smt_encodings.expressions.integers import is_linear
from smt_encodings.expressions.polynomials import Polynomial, expand, polynomial_term, without

from .ranges import digit_steps, quick
from .steps import Step


def injectivity_steps(
    hypotheses: Sequence[FNode],
    address: FNode,
    renamed: dict[FNode, FNode],
    counters: Sequence[tuple[FNode, FNode]],
) -> list[Step]:
    """The steps that prove "equal addresses have equal counters" under ``hypotheses``.

    The other address is ``address`` with its symbols ``renamed``; symbols that are not renamed are common to both.
    Raises Unsupported where a step is not found.
    """
    known = conjuncts(hypotheses)
    steps, conclusions, _ = part_steps(hypotheses, address, renamed)
    goal = smt.And([smt.Equals(a, b) for a, b in counters])
    reach = _about(known, _reach(known, goal.get_free_variables()))
    premises = [*(h for h in reach if is_linear(h)), *conclusions]
    if not decide(premises, goal):
        raise Unsupported("an address map is not shown to be injective: two iterations may write one cell")
    return [*steps, Step("counters", premises, goal)]


def part_steps(
    hypotheses: Sequence[FNode], address: FNode, renamed: dict[FNode, FNode]
) -> tuple[list[Step], list[FNode], list[FNode]]:
    """Steps that prove "equal addresses have equal parts", what they say, and the parts, as terms of ``address``.

    The parts are the digits of the sum that the address is, as far as it can be taken apart.  What both addresses have
    in common is left aside, unless it is part of a digit, as the K/2 of an output row ``r + K/2 - k`` below the height.
    """
    whole = expand(address)
    common = {m: c for m, c in whole.items() if all(_common(a, renamed) for a in m)}
    digits = _digits(hypotheses, address, renamed, common)
    if common and digits[2] and not is_linear(digits[2][-1]):
        other = _digits(hypotheses, address, renamed, {})
        digits = other if len(other[2]) > len(digits[2]) else digits
    return digits


def _digits(
    hypotheses: Sequence[FNode], address: FNode, renamed: dict[FNode, FNode], common: Polynomial
) -> tuple[list[Step], list[FNode], list[FNode]]:
    """As :func:`part_steps`, of the address without ``common``."""
    known = conjuncts(hypotheses)
    rest = {m: c for m, c in expand(address).items() if m not in common}
    steps: list[Step] = []
    conclusions: list[FNode] = []
    parts: list[FNode] = []
    unit = _content(rest)
    high = {m: c // unit for m, c in rest.items()}
    layers: list[tuple[FNode, int]] = []
    while (peeled := _low_digit(high)) is not None:
        digit, modulus, above = peeled
        moved = digit.substitute(renamed)
        peeling = _peel(known, (digit, moved, modulus), polynomial_term(above), renamed, len(layers))
        if peeling is None:
            break
        steps += peeling
        conclusions.append(smt.Equals(digit, moved))
        parts.append(digit)
        layers.append((digit, modulus))
        high = above
    form = polynomial_term(high)
    for digit, modulus in reversed(layers):
        form = smt.Plus(smt.Times(smt.Int(modulus), form), digit)
    form = smt.Plus(smt.Times(smt.Int(unit), form), polynomial_term(common))
    steps.insert(0, Step("the address, digit by digit", [], smt.Equals(address, form), [{}, renamed]))
    for part in _parts(known, high, renamed, steps):
        term = polynomial_term(part)
        conclusion = smt.Equals(term, term.substitute(renamed))
        conclusions.append(conclusion)
        parts.append(term)
        if term.is_symbol():
            continue
        for symbol in (s for s in conclusion.get_free_variables() if s in renamed):
            goal = smt.Equals(symbol, renamed[symbol])
            premises = [*_about(known, conclusion.get_free_variables()), conclusion]
            if decide(premises, goal):
                steps.append(Step(f"digit {symbol.symbol_name()}", premises, goal))
                conclusions.append(goal)
    return steps, conclusions, parts


def _peel(
    known: Sequence[FNode],
    digit_of: tuple[FNode, FNode, int],
    above: FNode,
    renamed: dict[FNode, FNode],
    layer: int,
) -> list[Step] | None:
    """``m*high + digit`` determines ``digit`` and ``high``, for any integers ``high``; here these are ``above``."""
    digit, moved, modulus = digit_of
    here, there = smt.Symbol(f"high{layer}", INT), smt.Symbol(f"high{layer}.other", INT)
    steps: list[Step] = []
    ranges = []
    for side, term in (("", digit), (", other", moved)):
        symbols = term.get_free_variables()
        # what bounds a digit may be a size: then what is known of that size counts, too
        sizes = {s for h in known if h.get_free_variables() & symbols for s in h.get_free_variables()}
        inside = smt.And(smt.LE(smt.Int(0), term), smt.LT(term, smt.Int(modulus)))
        # or more, as of the block whose rest bounds the digit: how many blocks there are
        near, wide = ([h for h in of if is_linear(h)] for of in (_about(known, sizes | symbols), known))
        about = next((of for of in (near, wide) if decide(of, inside)), None)
        if about is None:
            return None
        steps.append(Step(f"digit {digit.symbol_name()}{side} below {modulus}", about, inside))
        ranges.append(inside)
    equation = smt.Equals(
        smt.Plus(smt.Times(smt.Int(modulus), here), digit),
        smt.Plus(smt.Times(smt.Int(modulus), there), moved),
    )
    goal = smt.And(smt.Equals(digit, moved), smt.Equals(here, there))
    at = [{here: above, there: above.substitute(renamed)}]
    steps.append(Step(f"digit {digit.symbol_name()} of weight 1 of {modulus}", [*ranges, equation], goal, at))
    return steps


def _parts(
    known: Sequence[FNode], whole: Polynomial, renamed: dict[FNode, FNode], steps: list[Step]
) -> list[Polynomial]:
    """Parts of a sum that are equal on both sides if the sums are, as far as it can be taken apart; adds the steps.

    ``n*high + low`` with ``0 <= low < n`` determines ``high`` and ``low``; ``n`` is a literal or a size.
    """
    sizes = {s for h in known for s in h.get_free_variables()} - {*renamed, *renamed.values()}
    for modulus, low, high in _splits(whole, renamed):
        term = polynomial_term(low)
        rest = term.substitute(renamed)
        below = []
        for digit in (term, rest):
            steps_below = digit_steps(known, digit, modulus, sizes, quick)
            if steps_below is None:
                break
            below.append(steps_below)
        if len(below) < 2:
            continue
        number = len(steps)
        n, *numbers = (smt.Symbol(f"!{x}", INT) for x in ("n", "h", "h.other", "d", "d.other"))
        base = modulus if modulus.is_constant() else n
        h, other_h, d, other_d = numbers
        ranges = [smt.LE(smt.Int(0), x) for x in (d, other_d)] + [smt.LT(x, base) for x in (d, other_d)]
        equation = smt.Equals(smt.Plus(smt.Times(base, h), d), smt.Plus(smt.Times(base, other_h), other_d))
        lemma = smt.And(smt.Equals(d, other_d), smt.Equals(h, other_h))
        top = polynomial_term(high)
        here = {h: top, d: term, **({} if modulus.is_constant() else {n: modulus})}
        at = [{**here, other_h: top.substitute(renamed), other_d: rest}]
        steps.append(Step(f"radix {number}", [*ranges, equation], lemma, at))
        for side, names in (("", {}), (", other", renamed)):  # of one modulus
            parts = smt.Plus(smt.Times(modulus, top.substitute(names)), term.substitute(names))
            steps.append(Step(f"parts {number}{side}", [], smt.Equals(polynomial_term(whole).substitute(names), parts)))
        for side, group in zip(("", ", other"), below, strict=True):
            steps.extend(step._replace(name=f"digit {number}{side}: {step.name}") for step in group)
        return [*_parts(known, low, renamed, steps), *_parts(known, high, renamed, steps)]
    return [whole]


def _splits(whole: Polynomial, renamed: dict[FNode, FNode]) -> list[tuple[FNode, Polynomial, Polynomial]]:
    """Ways to write a sum as ``n*high + low``, where n is the factor of a counter, or of a sum of products of counters:
    a literal, sizes, or both."""
    factors: dict[tuple[int, tuple[FNode, ...]], None] = {}
    multiples = [{a for a in m if _common(a, renamed)} for m in whole if len(m) > 1]
    for monomial, coefficient in whole.items():
        sizes = tuple(a for a in monomial if _common(a, renamed))
        for factor in ((coefficient, sizes), (coefficient, ()), (1, sizes)):
            if factor[0] > 1 or factor[1]:
                factors[factor] = None
        for shared in (set(sizes) & other for other in multiples if set(sizes) != other):
            if len(shared) == 1:
                factors[1, tuple(shared)] = None
    splits: list[tuple[FNode, Polynomial, Polynomial]] = []
    for literal, sizes in sorted(factors, key=lambda f: (-len(f[1]), -f[0])):
        high, low = {}, {}
        for monomial, coefficient in whole.items():
            left = without(monomial, sizes)
            if left is None or coefficient % literal:
                low[monomial] = coefficient
            else:
                high[left] = coefficient // literal
        if low and high:
            splits.append((polynomial_term({sizes: literal}), low, high))
    return splits


def _common(factor: FNode, renamed: dict[FNode, FNode]) -> bool:
    """Whether a factor, which may be a choice, is the same on both sides."""
    return renamed.keys().isdisjoint(factor.get_free_variables())


def _low_digit(polynomial: Polynomial) -> tuple[FNode, int, Polynomial] | None:
    """A symbol of coefficient 1, the common divisor of all other coefficients, and their quotients."""
    single = [m for m, c in polynomial.items() if c == 1 and len(m) == 1 and m[0].is_symbol()]
    for monomial in single:
        others = {m: c for m, c in polynomial.items() if m != monomial}
        modulus = _content(others)
        if others and modulus > 1:
            return monomial[0], modulus, {m: c // modulus for m, c in others.items()}
    return None


def _content(polynomial: Polynomial) -> int:
    return gcd(*polynomial.values()) or 1 if polynomial else 1


def _about(terms: Iterable[FNode], symbols: Iterable[FNode]) -> list[FNode]:
    """The terms that speak of nothing but ``symbols``."""
    allowed = set(symbols)
    return [t for t in terms if t.get_free_variables() <= allowed]


def _reach(terms: Sequence[FNode], symbols: Iterable[FNode]) -> set[FNode]:
    """``symbols`` and those that equations define them by, or define by them."""
    reached = set(symbols)
    for term in terms:
        if term.is_equals() and term.get_free_variables() & reached and is_linear(term):
            reached |= term.get_free_variables()
    return reached
