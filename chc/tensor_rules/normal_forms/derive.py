"""Steps of derivations, written while a proof is sought: normal forms as elements, and what relates them.

Nothing here is trusted.  A step that is wrong is rejected by the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from chc.tensor_rules.kernel.forms import BINARY, NOTHING, UNIT
from chc.tensor_rules.kernel.steps import Step, variable
from chc.tensor_rules.obligations import Hypotheses, extended
from ir_semantics.tensors.conditions import TRUE, Condition, negation
from ir_semantics.tensors.conditions import inside as within
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index

from .normal import Atom, Extremum, Family, Group, IntegerAtom, Laws, Literal, Member, Opaque, OrderedSum, Powers, Value


def step(law: str, at: Hypotheses, left: Element, right: Element, *premises: Step, data: Any = ()) -> Step:
    """A step that is an instance of a law."""
    return Step(law, at, left, right, premises, data)


def same(at: Hypotheses, element: Element) -> Step:
    """That an element is equal to itself."""
    return step("chain", at, element, element)


def split(at: Hypotheses, left: Element, right: Element, data: Sequence[Condition] = (), *steps: Step) -> Step:
    """That two elements are equal in each of several cases; without any, that there is no such point."""
    return step("cases", at, left, right, *steps, data=tuple(data))


def chain(at: Hypotheses, *links: Step | tuple[Step, bool]) -> Step:
    """Steps one after the other; those in a pair with True are read backwards."""
    steps = [(link, False) if isinstance(link, Step) else link for link in links]
    steps = [(s, backwards) for s, backwards in steps if s.left != s.right]
    if not steps:
        first = links[0] if isinstance(links[0], Step) else links[0][0]
        return same(at, first.left)
    if len(steps) == 1 and not steps[0][1]:
        return steps[0][0]
    ends = [(s.right, s.left) if backwards else (s.left, s.right) for s, backwards in steps]
    start, end = ends[0][0], ends[-1][1]
    assert start is not None and end is not None
    return step("chain", at, start, end, *(s for s, _ in steps), data=tuple(b for _, b in steps))


def parts(at: Hypotheses, *sides_and_steps: Any) -> Step:
    """That equal parts make equal wholes: both of these, and steps about their parts."""
    left, right, *premises = sides_and_steps
    return step("parts", at, left, right, *(p for p in premises if p.left != p.right))


class Elements:
    """Normal forms as elements, by the laws of one notion."""

    def __init__(self, laws: Laws) -> None:
        self._laws = laws
        self.zero: Element = Number(Fraction(0)) if laws is Laws.RING else NOTHING

    def value(self, value: Value) -> Element:
        """A sum; where sums keep their order, a choice."""
        if self._laws is Laws.EXACT:
            if not value:
                return self.zero
            *others, last = value
            element = self.product(last.coefficient, last.powers)
            for f in reversed(others):
                element = Choice(f.guard, self.product(f.coefficient, f.powers), element)
            return element
        if not value:
            return self.zero
        element = self.family(value[0])
        for f in value[1:]:
            element = Apply("add", (element, self.family(f)))
        return element

    def family(self, f: Family) -> Element:
        """One summand."""
        return _over("sum", f.bound, f.guard, self.product(f.coefficient, f.powers), self.zero)

    def product(self, coefficient: Fraction, powers: Powers) -> Element:
        """A product without its variables and guard."""
        factors = [self.atom(a) for a, n in powers for _ in range(max(n, 0))]
        if coefficient != 1 or not factors:
            factors.insert(0, Number(coefficient))
        element = factors[0]
        for factor in factors[1:]:
            element = Apply("mul", (element, factor))
        for atom, n in powers:
            for _ in range(max(-n, 0)):
                element = Apply("div", (element, self.atom(atom)))
        return element

    def atom(self, atom: Atom) -> Element:
        """One factor."""
        match atom:
            case Read():
                return atom
            case Literal(value):
                return Number(value)
            case IntegerAtom(value):
                return IndexValue(value)
            case Opaque(op, args):
                return Apply(op, tuple(map(self.value, args)))
            case Extremum(op, members):
                return self.extremum(op, members)
            case Group(value):
                return self.value(value)
            case OrderedSum(variable, extent, value):
                return Reduce("sum", variable, extent, self.value(value))

    def extremum(self, op: str, members: Sequence[Member]) -> Element:
        """The extremum of members."""
        return joined(op, [self.member(op, m) for m in members])

    def member(self, op: str, m: Member) -> Element:
        """One member."""
        return _over(op, m.bound, m.guard, self.value(m.value), UNIT[op])

    def factors(self, at: Hypotheses, coefficient: Fraction, powers: Powers, equal: Mapping[Atom, Step]) -> Step:
        """A product with each factor replaced by an equal one."""
        pairs = [equal[a] for a, n in powers for _ in range(max(n, 0))]
        if coefficient != 1 or not pairs:
            number = Number(coefficient)
            pairs.insert(0, same(at, number))
        current = pairs[0]
        below = [equal[a] for a, n in powers for _ in range(max(-n, 0))]
        for op, other in [("mul", s) for s in pairs[1:]] + [("div", s) for s in below]:
            assert current.right is not None and other.right is not None
            left, right = Apply(op, (current.left, other.left)), Apply(op, (current.right, other.right))
            current = parts(at, left, right, current, other)
        return current

    # -- steps that look inside ---------------------------------------------------------------------

    def inside(
        self, op: str, at: Hypotheses, bound: Sequence[tuple[str, Index]], guard: Condition, body: Step, unit: Element
    ) -> Step:
        """A step about the body of a guarded reduction as a step about the whole."""
        contexts = [at]
        for name, extent in bound:
            contexts.append(extended(contexts[-1], within(variable(name), extent)))
        current = body
        if guard != TRUE:
            current = parts(contexts[-1], *(Choice(guard, e, unit) for e in _sides(current)), current)
        for (name, extent), outer in zip(reversed(bound), reversed(contexts[:-1]), strict=True):
            current = parts(outer, *(Reduce(op, name, extent, e) for e in _sides(current)), current)
        return current


def _sides(equation: Step) -> tuple[Element, Element]:
    assert equation.right is not None
    return equation.left, equation.right


def joined(op: str, elements: Sequence[Element], nothing: Element | None = None) -> Element:
    """The sum, maximum or minimum of elements."""
    if not elements:
        return nothing or UNIT[op]
    element = elements[0]
    for other in elements[1:]:
        element = Apply(BINARY[op], (element, other))
    return element


def joined_steps(op: str, at: Hypotheses, steps: Sequence[Step]) -> Step:
    """Steps about elements as a step about their maximum or minimum."""
    current = steps[0]
    for other in steps[1:]:
        assert current.right is not None and other.right is not None
        name = BINARY[op]
        current = parts(
            at, Apply(name, (current.left, other.left)), Apply(name, (current.right, other.right)), current, other
        )
    return current


def lifted(op: str, at: Hypotheses, element: Element, leaf: Callable[[Hypotheses, Element], Step]) -> Step:
    """Steps about functions of the candidates of an extremum as a step about the extrema of these."""
    match element:
        case Reduce(name, v, extent, body) if name == op:
            inner = [lifted(op, extended(at, within(variable(v), extent)), body, leaf)]
            ends: list[Element] = [Reduce(op, v, extent, e) for e in _sides(inner[0])]
        case Apply(name, args) if name == BINARY[op]:
            inner = [lifted(op, at, a, leaf) for a in args]
            ends = [Apply(name, pair) for pair in zip(*map(_sides, inner), strict=True)]
        case Choice(condition, yes, no):
            sides = (yes, condition), (no, negation(condition))
            inner = [lifted(op, extended(at, c), e, leaf) for e, c in sides]
            ends = [Choice(condition, *pair) for pair in zip(*map(_sides, inner), strict=True)]
        case _:
            return same(at, element) if element == UNIT[op] else leaf(at, element)
    return parts(at, *ends, *inner)


def congruence(at: Hypotheses, left: Element, right: Element) -> Step:
    """That elements of one form are equal, whose indices are equal under the hypotheses."""
    if left == right:
        return same(at, left)
    match left, right:
        case Apply(_, args), Apply(_, others):
            return parts(at, left, right, *(congruence(at, a, b) for a, b in zip(args, others, strict=True)))
        case Choice(_, yes, no), Choice(condition, one, other):
            between = Choice(condition, yes, no)
            first = step("sides of choices", at, left, between)
            sides = ((yes, one, condition), (no, other, negation(condition)))
            return chain(
                at, first, parts(at, between, right, *(congruence(extended(at, c), a, b) for a, b, c in sides))
            )
        case Reduce(op, v, _, body), Reduce(_, _, extent, other):
            between_ = Reduce(op, v, extent, body)
            inner = congruence(extended(at, within(variable(v), extent)), body, other)
            return chain(at, step("indices", at, left, between_), parts(at, between_, right, inner))
    return step("indices", at, left, right)


def exponentials(at: Hypotheses, roots: Sequence[tuple[Element, int]], facts: Sequence[Step]) -> Step:
    """exp of a sum of multiples of roots as the product of their exponentials."""
    exponent: Element = Number(Fraction(0))
    last = step("exponential", at, Apply("exp", (exponent,)), Number(Fraction(1)))
    for root, n in roots:
        for _ in range(abs(n)):
            exponent = Apply("add" if n > 0 else "sub", (exponent, root))
            op, powers = "mul" if n > 0 else "div", tuple(Apply("exp", (e,)) for e in exponent.args)
            apart = step("exponential", at, Apply("exp", (exponent,)), Apply(op, powers), *facts)
            last = chain(at, apart, parts(at, Apply(op, powers), Apply(op, (_sides(last)[1], powers[1])), last))
    return last


def settled(
    at: Hypotheses, infinity: float, negative: bool, factor: Element, rest: Element | None, facts: Sequence[Step]
) -> Step:
    """rest + factor * infinity (or minus it) as that infinity."""
    whole: Element = Number(infinity)
    links = []
    if negative:
        whole, infinity = Apply("neg", (whole,)), -infinity
        links.append(step("infinity", at, whole, Number(infinity)))
    for op, other in (("mul", None if factor == Number(Fraction(1)) else factor), ("add", rest)):
        if other is not None:
            whole, plain = Apply(op, (other, whole)), Apply(op, (other, Number(infinity)))
            before = [parts(at, whole, plain, *links)] if links else []
            links = [chain(at, *before, step("infinity", at, plain, Number(infinity), *facts))]
    return links[0] if links else same(at, whole)


def _over(op: str, bound: Iterable[tuple[str, Index]], guard: Condition, body: Element, unit: Element) -> Element:
    element = body if guard == TRUE else Choice(guard, body, unit)
    for name, extent in reversed(tuple(bound)):
        element = Reduce(op, name, extent, element)
    return element
