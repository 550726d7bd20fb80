"""From element expressions to normal forms, in a context that decides index questions.

Every normal form comes with a step of a derivation that it is equal to its element: an instance of one of the kernel's
laws, or a chain of these.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from chc.tensor_rules.context import Context
from chc.tensor_rules.kernel.forms import UNIT as UNIT_ELEMENT
from chc.tensor_rules.kernel.forms import opened
from chc.tensor_rules.kernel.steps import Step
from chc.tensor_rules.obligations import extended
from ir_semantics.tensors.conditions import TRUE, Condition, both, le, negation
from ir_semantics.tensors.elements import (
    Apply,
    Choice,
    Element,
    IndexValue,
    Number,
    Read,
    Reduce,
    indices_of_element,
    substitute_element,
)
from ir_semantics.tensors.index import Index

from .derive import Elements, chain, exponentials, joined, joined_steps, parts, same, settled, split, step
from .normal import (
    Atom,
    Family,
    Group,
    IntegerAtom,
    Laws,
    Literal,
    Opaque,
    OrderedSum,
    Value,
    family,
    indices_in,
    merged,
    one_atom,
    times,
    variables_in,
)
from .signs import Signs
from .simplify import Replaced

UNIT = {"max": float("-inf"), "min": float("inf")}
MOST_GUARDS = 4
"""A function of a sum with more guarded summands than this is not taken apart by cases."""


class Normal(NamedTuple):
    """A normal form, and the step that an element is equal to it."""

    value: Value
    step: Step


@dataclass
class Values(Signs, ABC):
    """Normalises elements by the laws of one equality notion; ``group`` names the obligations that it records.

    ``divisors`` are steps that what is divided by is not 0.
    """

    divisors: list[Step] = field(default_factory=list)
    divided: list[tuple[Value, Step]] = field(default_factory=list)
    """What the left side divides by, and the step that leads there."""
    equal: Callable[[Value, Value, Context], Step | None] | None = None
    """For the right side: that two values are equal."""

    def __post_init__(self) -> None:
        self.elements = Elements(self.laws)

    def arithmetic(self, context: Context, left: Element, right: Element) -> Step:
        """That two elements are one sum of products (or one choice)."""
        at = context.hypotheses
        if left == right:
            return same(at, left)
        if self.laws is Laws.EXACT:
            return step("sides of choices", at, left, right)
        facts = [d for d in self.divisors if set(d.hypotheses) <= set(at)]
        return step("sums of products", at, left, right, *facts)

    # -- values -------------------------------------------------------------------------------------

    def value(self, element: Element, context: Context) -> Normal:
        """The normal form of an element; a bound variable whose name was used before gets a new one."""
        at = context.hypotheses
        match element:
            case Read(name, subscripts):
                tape: list[Replaced] = []
                read = Read(name, tuple(self.index(i, context, tape) for i in subscripts))
                return Normal(one_atom(read), _quotients(context, element, read, tape))
            case Number(value):
                return self._as(self._literal(value), context, element)
            case IndexValue(value):
                tape = []
                number = IndexValue(self.index(value, context, tape))
                normal = self._as(self._integer(number.value), context, number)
                return Normal(normal.value, chain(at, _quotients(context, element, number, tape), normal.step))
            case Choice():
                return self._choice(element, context)
            case Reduce("sum"):
                return self._sum(element, context)
            case Reduce() | Apply("maximum" | "minimum", _):
                return self.extremum(element, context)
            case Apply(op, args):
                arg_forms = [self.value(a, context) for a in args]
                whole = Apply(op, tuple(self.elements.value(a.value) for a in arg_forms))
                first = parts(at, element, whole, *(a.step for a in arg_forms))
                normal = self._apply(op, arg_forms, context)
                return Normal(normal.value, chain(at, first, normal.step))

    @abstractmethod
    def extremum(self, element: Element, context: Context) -> Normal:
        """The normal form of a maximum or minimum."""

    def _as(self, value: Value, context: Context, element: Element) -> Normal:
        """A value that an element is by arithmetic."""
        return Normal(value, self.arithmetic(context, element, self.elements.value(value)))

    def _literal(self, value: Fraction | float) -> Value:
        if self.laws is Laws.RING and isinstance(value, float) and math.isnan(value):
            raise ValueError("over the reals a literal must be a number, not NaN; claim the rule bit_exact")
        if self.laws is Laws.RING and (isinstance(value, Fraction) or value == 0):
            return (family(Fraction(value), {}),) if value else ()
        return one_atom(Literal(value))

    def _integer(self, value: Index) -> Value:
        if self.laws is not Laws.RING:
            return one_atom(IntegerAtom(value))
        families = []
        for monomial, coefficient in value.terms:
            powers: dict[Atom, int] = {}
            for a in monomial:
                atom = IntegerAtom(Index({(a,): 1}))
                powers[atom] = powers.get(atom, 0) + 1
            families.append(family(coefficient, powers))
        return tuple(families)

    def chosen(self, element: Choice, context: Context) -> tuple[Choice, Step, bool | None]:
        """A choice with a simpler condition, the step to it, and which side it is where that is decided."""
        tape: list[Replaced] = []
        condition = self.condition(element.condition, context, tape)
        plain = Choice(condition, element.yes, element.no)
        first = _quotients(context, element, plain, tape)
        for side in (True, False):
            holds = condition if side else negation(condition)
            if self.decided(holds, context):
                one, at = plain.yes if side else plain.no, context.hypotheses
                there = step("sides of choices", extended(at, holds), plain, one)
                return plain, chain(at, first, split(at, plain, one, [holds], there)), side
        return plain, first, None

    def _choice(self, element: Choice, context: Context) -> Normal:
        at = context.hypotheses
        plain, first, side = self.chosen(element, context)
        if side is not None:
            normal = self.value(plain.yes if side else plain.no, context)
            return Normal(normal.value, chain(at, first, normal.step))
        opposite = negation(plain.condition)
        yes = self.value(plain.yes, context.under(plain.condition))
        no = self.value(plain.no, context.under(opposite))
        value = _guarded(plain.condition, yes.value) + _guarded(opposite, no.value)
        whole = Choice(plain.condition, self.elements.value(yes.value), self.elements.value(no.value))
        joined = self.arithmetic(context, whole, self.elements.value(value))
        return Normal(value, chain(at, first, parts(at, plain, whole, yes.step, no.step), joined))

    def named(self, element: Reduce, context: Context) -> tuple[Reduce, Step]:
        """A reduction with a simpler extent and a bound variable of its own, and the step to it."""
        tape: list[Replaced] = []
        plain = Reduce(element.op, element.variable, self.index(element.extent, context, tape), element.body)
        first = _quotients(context, element, plain, tape)
        used = context.proof.used
        if plain.variable not in used:
            used.add(plain.variable)
            return plain, first
        fresh = context.proof.names.fresh(plain.variable.partition(".")[0])
        body = substitute_element(plain.body, {plain.variable: Index({(fresh,): 1})})
        new = Reduce(plain.op, fresh, plain.extent, body)
        return new, chain(context.hypotheses, first, step("renamed", context.hypotheses, plain, new))

    def in_digits(self, element: Reduce, indices: Iterable[Index], context: Context) -> tuple[Reduce, Step] | None:
        """A reduction over a variable as one over its two digits, where some quotient asks for them."""
        digits = self.splits(indices, element.variable, element.extent, context)
        if digits is None:
            return None
        body = substitute_element(element.body, {element.variable: digits.number})
        low = Reduce(element.op, digits.low, digits.divisor, body)
        high = Reduce(element.op, digits.high, element.extent // digits.divisor, low)
        unit = self.elements.zero if element.op == "sum" else UNIT_ELEMENT[element.op]
        (bound, _, one), (_, _, other) = (opened(element.op, e, unit) for e in (element, high))
        others = {v: Index({(v,): 1}) for v, _ in bound[1:]}
        there = digits.of(Index({(element.variable,): 1})) | others
        back = {element.variable: digits.number} | others
        at = context.hypotheses
        if element.op == "sum":
            return high, step("bijection", at, element, high, same(at, one), data=((0, 0, there, back),))
        data = element.op, ((0, 0, 0, there), (1, 0, 0, back))
        return high, step("covering", at, element, high, same(at, one), same(at, other), data=data)

    def _sum(self, element: Reduce, context: Context) -> Normal:
        at = context.hypotheses
        plain, first = self.named(element, context)
        variable, extent = plain.variable, plain.extent
        inner = context.under(ranges=[(variable, extent)])
        if self.laws is Laws.EXACT:
            normal = self.value(plain.body, inner)
            ordered = OrderedSum(variable, extent, normal.value)
            return Normal(
                one_atom(ordered), chain(at, first, parts(at, plain, self.elements.atom(ordered), normal.step))
            )
        split = self.in_digits(plain, indices_of_element(plain.body), context)
        if split is None:
            mark = set(context.proof.used), len(self.divisors)
            normal = self.value(plain.body, inner)
            split = self.in_digits(plain, (i for f in normal.value for i in indices_in(f)), context)
            if split is not None:
                context.proof.used = mark[0]
                del self.divisors[mark[1] :]
        if split is not None:
            normal = self._sum(split[0], context)
            return Normal(normal.value, chain(at, first, split[1], normal.step))
        over = Reduce("sum", variable, extent, self.elements.value(normal.value))
        summands = [Family(((variable, extent), *f.bound), f.guard, f.coefficient, f.powers) for f in normal.value]
        raw = self.arithmetic(
            context, over, joined("sum", list(map(self.elements.family, summands)), self.elements.zero)
        )
        counted = [self._counted(f, context) for f in summands]
        each = [joined_steps("sum", at, [s for _, s in counted])] if counted else []
        value = self._merged(f for v, _ in counted for f in v)
        assert (each or [raw])[-1].right is not None
        last = self._as(value, context, (each or [raw])[-1].right)  # type: ignore[arg-type]
        return Normal(value, chain(at, first, parts(at, plain, over, normal.step), raw, *each, last.step))

    def _counted(self, family: Family, context: Context) -> Normal:
        """An outermost variable on which nothing depends multiplies by its extent (over the reals)."""
        at, whole = context.hypotheses, self.elements.family(family)
        (variable, extent), *rest = family.bound
        without = Family(tuple(rest), family.guard, family.coefficient, family.powers)
        if self.laws is not Laws.RING or variable in variables_in(without):
            return Normal((family,), same(at, whole))
        if not context.establish(le(0, extent), self.group, f"{extent} is no less than 0"):
            return Normal((family,), same(at, whole))
        product = Apply("mul", (IndexValue(extent), self.elements.family(without)))
        value = self._merged(times(without, c) for c in self._integer(extent))
        first = step("counted", at, whole, product, *self.divisors_at(context))
        return Normal(value, chain(at, first, self._as(value, context, product).step))

    def _merged(self, families: Iterable[Family]) -> Value:
        """Equal products once, with the sum of their coefficients (over the reals)."""
        return merged(families) if self.laws is Laws.RING else tuple(families)

    # -- scalar operators ---------------------------------------------------------------------------

    def _apply(self, op: str, operands: list[Normal], context: Context) -> Normal:
        args = [g.value for g in operands]
        whole = Apply(op, tuple(map(self.elements.value, args)))
        if op == "add" and self.laws is Laws.MONOID:
            return self._as(args[0] + args[1], context, whole)
        if self.laws is Laws.RING:
            match op:
                case "add":
                    return self._as(self._merged(args[0] + args[1]), context, whole)
                case "sub":
                    return self._as(self._merged(args[0] + _scaled(args[1], -1)), context, whole)
                case "neg":
                    return self._as(_scaled(args[0], -1), context, whole)
                case "mul":
                    return self._as(self._product(args[0], args[1]), context, whole)
                case "fma":
                    return self._as(self._merged(self._product(args[0], args[1]) + args[2]), context, whole)
                case "div":
                    return self._cases(op, args, (1,), context, lambda a, c: self._quotient(a, operands[1].step, c))
                case "exp":
                    return self._cases(op, args, (0,), context, lambda a, c: self._exp(a[0], c))

        def opaque(case: list[Value], inner: Context) -> Normal:
            if op == "tanh" and not any(case) and self.laws is Laws.RING:
                zero = self.elements.zero
                return Normal((), step("exponential", inner.hypotheses, Apply(op, (zero,)), zero))
            return self._as(one_atom(Opaque(op, tuple(case))), inner, Apply(op, tuple(map(self.elements.value, case))))

        return self._cases(op, args, range(len(args)), context, opaque)

    def _product(self, left: Value, right: Value) -> Value:
        return self._merged(times(a, b) for a in left for b in right)

    def _cases(
        self,
        op: str,
        args: Sequence[Value],
        split: Iterable[int],
        context: Context,
        build: Callable[[list[Value], Context], Normal],
    ) -> Normal:
        """A function of values, by cases of the guards of their families without bound variables."""
        choices = [self._choices(a, context) if j in split else [(TRUE, a)] for j, a in enumerate(args)]
        cases: list[tuple[Condition, Context, list[Value], Normal]] = []
        for combination in itertools.product(*choices):
            guard = both(*(g for g, _ in combination))
            if len(combination) > 1 and guard != TRUE and context.excludes(guard, self.group, f"never {guard}"):
                continue
            inner = context if guard == TRUE else context.under(guard)
            case = [v for _, v in combination]
            cases.append((guard, inner, case, build(case, inner)))
        if len(cases) == 1 and cases[0][0] == TRUE:
            return cases[0][3]
        value = self._merged(f for guard, _, _, result in cases for f in _guarded(guard, result.value))
        whole = Apply(op, tuple(map(self.elements.value, args)))
        steps = []
        for _, inner, case, result in cases:
            pairs = [(self.elements.value(a), self.elements.value(c)) for a, c in zip(args, case, strict=True)]
            narrowed = parts(
                inner.hypotheses,
                whole,
                Apply(op, tuple(c for _, c in pairs)),
                *(self.arithmetic(inner, *p) for p in pairs),
            )
            steps.append(self.case(value, result, narrowed, inner))
        return Normal(value, self.all_cases(whole, value, [guard for guard, *_ in cases], steps, context))

    def case(self, total: Value, result: Normal, before: Step, context: Context) -> Step:
        """In one case, ``before`` leads to what a result is the normal form of, and the total is the result."""
        back = self.arithmetic(context, self.elements.value(total), self.elements.value(result.value))
        return chain(context.hypotheses, before, result.step, (back, True))

    def all_cases(
        self, whole: Element, value: Value, guards: Sequence[Condition], steps: Sequence[Step], context: Context
    ) -> Step:
        """An element is a value in each of several cases."""
        return split(context.hypotheses, whole, self.elements.value(value), guards, *steps)

    def _choices(self, value: Value, context: Context) -> list[tuple[Condition, Value]]:
        """A value as cases that exclude each other and leave nothing out, where none has guards of its own."""
        if self.laws is Laws.EXACT:  # a value is a choice: the guards are the cases
            return [(f.guard, (Family(f.bound, TRUE, f.coefficient, f.powers),)) for f in value]
        guards = list(dict.fromkeys(f.guard for f in value if not f.bound and f.guard != TRUE))
        if not guards or len(guards) > MOST_GUARDS:
            return [(TRUE, value)]
        cases = []
        for guard, held in self._assignments(guards, context):
            kept = [
                f if f.bound or f.guard == TRUE else Family((), TRUE, f.coefficient, f.powers)
                for f in value
                if f.bound or f.guard == TRUE or f.guard in held
            ]
            cases.append((guard, self._merged(kept)))
        return cases

    def _assignments(
        self, guards: Sequence[Condition], context: Context
    ) -> list[tuple[Condition, frozenset[Condition]]]:
        """The possible cases of some conditions: which of them hold."""
        cases: list[tuple[Condition, frozenset[Condition]]] = [(TRUE, frozenset())]
        for position, condition in enumerate(guards):
            opposite = negation(condition)
            if opposite in guards[:position]:
                cases = [(guard, held if opposite in held else held | {condition}) for guard, held in cases]
                continue
            longer = []
            for guard, held in cases:
                for part, now in ((condition, held | {condition}), (opposite, held)):
                    case = both(guard, part)
                    if not context.excludes(case, self.group, f"never {case}"):
                        longer.append((case, now))
            cases = longer
        return cases

    def _settled(self, value: Value, context: Context) -> Normal | None:
        """A sum with one infinite summand of positive factors is that infinity (other summands are finite)."""
        infinite = [f for f in value if any(isinstance(a, Literal) for a, _ in f.powers)]
        if len(infinite) != 1 or not infinite[0].simple:
            return None
        literal = next(a for a, _ in infinite[0].powers if isinstance(a, Literal))
        others = [(a, n) for a, n in infinite[0].powers if a != literal]
        if (literal, 1) not in infinite[0].powers or not all(self.positive(a, context) for a, _ in others):
            return None
        if not isinstance(literal.value, float) or not math.isinf(literal.value):
            return None
        coefficient = infinite[0].coefficient
        rest = tuple(f for f in value if f is not infinite[0])
        parts_ = (self.elements.product(abs(coefficient), tuple(others)), self.elements.value(rest) if rest else None)
        facts = self.divisors_at(context)
        last = settled(context.hypotheses, literal.value, coefficient < 0, *parts_, facts)
        first = self.arithmetic(context, self.elements.value(value), last.left)
        end = one_atom(Literal(literal.value if coefficient > 0 else -literal.value))
        return Normal(end, chain(context.hypotheses, first, last))

    def divisors_at(self, context: Context) -> list[Step]:
        """What is known not to be 0."""
        return [d for d in self.divisors if set(d.hypotheses) <= set(context.hypotheses)]

    def _exp(self, value: Value, context: Context) -> Normal:
        at = context.hypotheses
        infinite = self._settled(value, context)
        before = Apply("exp", (self.elements.value(value),))
        whole = Apply("exp", (self.elements.value(infinite.value),)) if infinite else before
        first = parts(at, before, whole, infinite.step) if infinite else same(at, before)
        if infinite is not None:
            value = infinite.value
        if value == one_atom(Literal(UNIT["max"])):
            last = step("exponential", at, whole, self.elements.value(()))
            return Normal((), chain(at, first, last))
        result: Value = (family(1, {}),)
        roots: list[tuple[Element, int]] = []
        for f in value:
            if any(isinstance(a, Literal) for a, _ in f.powers) or not (f.bound or f.guard == TRUE):
                return Normal(one_atom(Opaque("exp", (value,))), first)
            root = Family(f.bound, f.guard, Fraction(1, f.coefficient.denominator), f.powers)
            roots.append((self.elements.value((root,)), f.coefficient.numerator))
            result = self._product(result, (family(1, {Opaque("exp", ((root,),)): f.coefficient.numerator}),))
        last = exponentials(at, roots, self.divisors_at(context))
        assert isinstance(last.left, Apply) and isinstance(whole, Apply) and last.right is not None
        apart = parts(at, whole, last.left, self.arithmetic(context, whole.args[0], last.left.args[0]))
        return Normal(
            result, chain(at, first, apart, last, self.arithmetic(context, last.right, self.elements.value(result)))
        )

    def _quotient(self, args: list[Value], divisor: Step, context: Context) -> Normal:
        """A division; ``divisor`` is the step that leads to what is divided by, before cases."""
        at = context.hypotheses
        dividend, value = args
        factor, rest = self.content(value, lambda atom: True)
        inverse = family(1 / factor.coefficient, {a: -n for a, n in factor.powers})
        plain = self.elements.value(value)
        written = plain
        if rest != (family(1, {}),):
            written = Apply("mul", (self.elements.value((factor,)), self.elements.value(rest)))
            inverse = times(inverse, family(1, {Group(rest): -1}))
        self._not_zero(value, written, divisor, context)
        result = self._product(dividend, (inverse,))
        above = self.elements.value(dividend)
        first = parts(
            at, Apply("div", (above, plain)), Apply("div", (above, written)), self.arithmetic(context, plain, written)
        )
        last = self.arithmetic(context, Apply("div", (above, written)), self.elements.value(result))
        return Normal(result, chain(at, first, last))

    def content(self, value: Value, allowed: Callable[[Atom], bool]) -> tuple[Family, Value]:
        """A common factor of all families of a sum without their bound variables, and what is left."""
        if not value:
            return family(1, {}), value
        bound = {v for f in value for v, _ in f.bound}
        powers: dict[Atom, int] = {}
        for atom, n in value[0].powers:
            others = [dict(f.powers).get(atom, 0) for f in value]
            if all(o * n > 0 for o in others) and not variables_in(atom) & bound and allowed(atom):
                powers[atom] = min(others) if n > 0 else max(others)
        coefficient = value[0].coefficient
        if any(f.coefficient != coefficient for f in value):
            coefficient = Fraction(1)
        if not powers and coefficient == 1:
            return family(1, {}), value
        inverse = family(1 / coefficient, {a: -n for a, n in powers.items()})
        return family(coefficient, powers), tuple(times(f, inverse) for f in value)

    def _not_zero(self, value: Value, written: Element, divisor: Step, context: Context) -> None:
        """Notes that a divisor is not 0: one of the left side, or one that is equal to one of these."""
        at = context.hypotheses
        plain = self.elements.value(value)
        last = self.arithmetic(context, plain, written)
        assert divisor.right is not None
        if self.equal is None:
            first = chain(at, divisor, self.arithmetic(context, divisor.right, plain))
            self.divided.append((value, first))
            self.divisors.append(Step("divisor of the left side", at, written, None, (chain(at, first, last),)))
        elif not (len(value) == 1 and value[0].simple and all(self.positive(a, context) for a, _ in value[0].powers)):
            for known, first in self.divided:
                if set(first.hypotheses) <= set(at) and (same := self.equal(known, value, context)) is not None:
                    equal = chain(at, first, same, last)
                    self.divisors.append(Step("divisor of the left side", at, written, None, (equal,)))
                    break


def _quotients(context: Context, left: Element, right: Element, tape: list[Replaced]) -> Step:
    return step("indices", context.hypotheses, left, right, data=tuple(tape))


def _guarded(guard: Condition, value: Value) -> Value:
    return tuple(Family(f.bound, both(guard, f.guard), f.coefficient, f.powers) for f in value)


def _scaled(value: Value, by: Fraction | int) -> Value:
    return tuple(Family(f.bound, f.guard, f.coefficient * by, f.powers) for f in value)
