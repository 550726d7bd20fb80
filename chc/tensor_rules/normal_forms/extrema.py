"""Maxima and minima in normal form: sets of candidates, with the steps that lead to them."""

from __future__ import annotations

from chc.tensor_rules.context import Context
from chc.tensor_rules.kernel.forms import UNIT as UNIT_ELEMENT
from chc.tensor_rules.kernel.laws import each_candidate
from chc.tensor_rules.kernel.steps import Step
from chc.tensor_rules.obligations import Hypotheses
from ir_semantics.tensors.conditions import TRUE, both, le, negation
from ir_semantics.tensors.elements import Apply, Choice, Element, Reduce, indices_of_element
from ir_semantics.tensors.index import Index, index

from .derive import chain, joined, joined_steps, lifted, parts, same, step
from .normal import (
    Atom,
    Extremum,
    Family,
    Laws,
    Literal,
    Member,
    Value,
    family,
    indices_in,
    one_atom,
    times,
    variables_in,
)
from .normalise import MOST_GUARDS, UNIT, Normal, Values

Members = tuple[list[Member], Step]
"""Candidates, and the step that an element is their extremum."""


class Normaliser(Values):
    """Normal forms of all elements."""

    def extremum(self, element: Element, context: Context) -> Normal:
        """The normal form of a maximum or minimum; a minimum of maxima is a maximum of minima."""
        op = "min" if isinstance(element, Reduce) and element.op == "min" else "max"
        members, first = self._members(op, element, context)
        normal = self._of_members(op, members, context)
        return Normal(normal.value, chain(context.hypotheses, first, normal.step))

    def _same(self, op: str, context: Context, left: Element, right: Element) -> Step:
        if left == right:
            return same(context.hypotheses, left)
        return step("same candidates", context.hypotheses, left, right, data=op)

    def _members(self, op: str, element: Element, context: Context) -> Members:
        """Members whose extremum the element is."""
        at = context.hypotheses
        match element:
            case Reduce(name, _, _, _) if name == op:
                return self._reduced(op, element, context)
            case Choice():
                return self._chosen(op, element, context)
            case Apply("maximum", (a, b)) if op == "max":
                return self._joined(op, element, (a, b), context)
            case Apply("minimum", (a, b)) if op == "min":
                return self._joined(op, element, (a, b), context)
            case Apply("minimum", (a, b)):
                return self._lattice(element, (a, b), context)
        normal = self.value(element, context)
        if normal.value == one_atom(Literal(UNIT[op])):
            return [], normal.step
        return [Member((), TRUE, normal.value)], chain(at, normal.step)

    def _joined(self, op: str, element: Apply, args: tuple[Element, Element], context: Context) -> Members:
        (left, one), (right, other) = (self._members(op, a, context) for a in args)
        both_ = Apply(element.op, (self.elements.extremum(op, left), self.elements.extremum(op, right)))
        members = left + right
        last = self._same(op, context, both_, self.elements.extremum(op, members))
        return members, chain(context.hypotheses, parts(context.hypotheses, element, both_, one, other), last)

    def _reduced(self, op: str, element: Reduce, context: Context) -> Members:
        at = context.hypotheses
        plain, first = self.named(element, context)
        bound = (plain.variable, plain.extent)
        split = self.in_digits(plain, indices_of_element(plain.body), context)
        if split is None:
            mark = set(context.proof.used), len(self.divisors)
            inner, within = self._members(op, plain.body, context.under(ranges=[bound]))
            split = self.in_digits(plain, (i for m in inner for i in indices_in(m)), context)
            if split is not None:
                context.proof.used = mark[0]
                del self.divisors[mark[1] :]
        if split is not None:
            members, last = self._members(op, split[0], context)
            return members, chain(at, first, split[1], last)
        over = Reduce(op, *bound, self.elements.extremum(op, inner))
        outer = [Member((bound, *m.bound), m.guard, m.value) for m in inner]
        members = [self._needed(m, context) for m in outer]
        raw = self.elements.extremum(op, outer)
        links = [parts(at, plain, over, within), self._same(op, context, over, raw)]
        if members != outer:
            links.append(self._without(op, context, outer, members))
        return members, chain(at, first, *links)

    def _without(self, op: str, context: Context, outer: list[Member], members: list[Member]) -> Step:
        """Members have lost variables on which nothing depends: the candidates are those at 0."""
        at, maps, steps = context.hypotheses, [], []
        for j, (long, short) in enumerate(zip(outer, members, strict=True)):
            if long != short:
                kept = {v: Index({(v,): 1}) for v, _ in short.bound}
                first = {v: kept.get(v, index(0)) for v, _ in long.bound}
                maps += [(0, j, j, kept), (1, j, j, first)]
                steps += 2 * [same(at, self.elements.value(short.value))]
        left, right = (self.elements.extremum(op, each) for each in (outer, members))
        return step("covering", at, left, right, *steps, data=(op, tuple(maps)))

    def _needed(self, member: Member, context: Context) -> Member:
        """Without the outermost bound variable, where nothing depends on it and it has a value."""
        (variable, extent), *rest = member.bound
        without = Member(tuple(rest), member.guard, member.value)
        if variable in variables_in(without):
            return member
        return without if context.establish(le(1, extent), self.group, f"{extent} is positive") else member

    def _chosen(self, op: str, element: Choice, context: Context) -> Members:
        at = context.hypotheses
        plain, first, side = self.chosen(element, context)
        if side is not None:
            members, last = self._members(op, plain.yes if side else plain.no, context)
            return members, chain(at, first, last)
        opposite = negation(plain.condition)
        sides = [
            (guard, *self._members(op, branch, context.under(guard)))
            for guard, branch in ((plain.condition, plain.yes), (opposite, plain.no))
        ]
        whole = Choice(plain.condition, *(self.elements.extremum(op, branch_members) for _, branch_members, _ in sides))
        members = [
            Member(m.bound, both(guard, m.guard), m.value) for guard, branch_members, _ in sides for m in branch_members
        ]
        last = self._same(op, context, whole, self.elements.extremum(op, members))
        return members, chain(at, first, parts(at, plain, whole, *(s for *_, s in sides)), last)

    def _lattice(self, element: Apply, args: tuple[Element, Element], context: Context) -> Members:
        """The minimum of two maxima as a maximum of minima."""
        at = context.hypotheses
        (left, one), (right, other) = (self._members("max", a, context) for a in args)
        whole = Apply("minimum", (self.elements.extremum("max", left), self.elements.extremum("max", right)))
        first = parts(at, element, whole, one, other)
        if self.laws is not Laws.RING and not all(self.inhabited(side, context) for side in (left, right)):
            # the minimum of a NaN and of the maximum of nothing is NaN, and there would be no pair
            maxima = [self._of_members("max", side, context) for side in (left, right)]
            values = [self.elements.value(m.value) for m in maxima]
            second = parts(at, whole, joined("min", values), *(m.step for m in maxima))
            lowest_value = self._of_members("min", [Member((), TRUE, m.value) for m in maxima], context)
            return [Member((), TRUE, lowest_value.value)], chain(at, first, second, lowest_value.step)
        members, steps = [], []
        for m in left:
            for n in right:
                bound, guard = m.bound + n.bound, both(m.guard, n.guard)
                lowest = self._minimum(n, m, context)
                members.append(Member(bound, guard, lowest.value))
                steps.append(self.elements.inside("max", at, bound, guard, lowest.step, UNIT_ELEMENT["max"]))
        second = self._all_pairs(whole, context)
        if not steps:
            return members, chain(at, first, second, self._same("max", context, _right(second), joined("max", [])))
        third = joined_steps("max", at, steps)
        pairs = self._same("max", context, _right(second), third.left)
        last = self._same("max", context, _right(third), self.elements.extremum("max", members))
        return members, chain(at, first, second, pairs, third, last)

    def _all_pairs(self, whole: Apply, context: Context) -> Step:
        """min(max a, max b) = max min(a, max b), and each min(a, max b) = max min(b, a)."""
        facts, (one, other) = self.divisors_at(context), whole.args

        def monotone(at: Hypotheses, left: Apply) -> Step:
            right = each_candidate("max", left.args[0], lambda a: Apply("minimum", (a, left.args[1])))
            return step("monotone", at, left, right, *facts, data="max")

        def turned(at: Hypotheses, a: Element) -> Step:
            there, back = Apply("minimum", (a, other)), Apply("minimum", (other, a))
            return chain(at, step("same candidates", at, there, back, data="min"), monotone(at, back))

        at = context.hypotheses
        return chain(at, monotone(at, whole), lifted("max", at, one, turned))

    def _minimum(self, left: Member, right: Member, context: Context) -> Normal:
        inner = context.under(left.guard, right.guard, ranges=[*left.bound, *right.bound])
        whole = joined("min", [self.elements.value(m.value) for m in (left, right)])
        members: list[Member] = []
        for value in (left.value, right.value):
            atom = _alone(value)
            members += atom.members if isinstance(atom, Extremum) and atom.op == "min" else [Member((), TRUE, value)]
        normal = self._of_members("min", members, inner)
        first = self._same("min", inner, whole, self.elements.extremum("min", members))
        return Normal(normal.value, chain(inner.hypotheses, first, normal.step))

    def _of_members(self, op: str, operands: list[Member], context: Context) -> Normal:
        """The normal form of the extremum of members."""
        at = context.hypotheses
        members = list(dict.fromkeys(operands))
        whole = self.elements.extremum(op, members)
        first = self._same(op, context, self.elements.extremum(op, operands), whole)
        guards = list(dict.fromkeys(m.guard for m in members if not m.bound and m.guard != TRUE))
        if not guards or len(guards) > MOST_GUARDS:
            normal = self._atom_of(op, members, context)
            return Normal(normal.value, chain(at, first, normal.step))
        cases = []
        for guard, held in self._assignments(guards, context):
            kept = dict.fromkeys(
                m if m.bound or m.guard == TRUE else Member((), TRUE, m.value)
                for m in members
                if m.bound or m.guard == TRUE or m.guard in held
            )
            inner = context.under(guard)
            narrowed = self._same(op, inner, whole, self.elements.extremum(op, list(kept)))
            cases.append((guard, inner, narrowed, self._atom_of(op, list(kept), inner)))
        value = tuple(
            Family(f.bound, both(guard, f.guard), f.coefficient, f.powers)
            for guard, _, _, normal in cases
            for f in normal.value
        )
        steps = [self.case(value, normal, narrowed, inner) for _, inner, narrowed, normal in cases]
        last = self.all_cases(whole, value, [guard for guard, *_ in cases], steps, context)
        return Normal(value, chain(at, first, last))

    def _atom_of(self, op: str, members: list[Member], context: Context) -> Normal:
        at = context.hypotheses
        whole = self.elements.extremum(op, members)
        as_it_is = same(at, whole)
        if not members:
            return Normal(one_atom(Literal(UNIT[op])), as_it_is)
        if len(members) == 1 and not members[0].bound and members[0].guard == TRUE:
            return Normal(members[0].value, as_it_is)
        if self.laws is not Laws.RING:
            return Normal(one_atom(Extremum(op, tuple(members))), as_it_is)
        bound = {v for m in members for v, _ in m.bound}
        shared = [
            f
            for f in members[0].value
            if f.simple and not variables_in(f) & bound and all(f in m.value for m in members)
        ]
        reduced = [Member(m.bound, m.guard, tuple(f for f in m.value if f not in shared)) for m in members]
        everything = tuple(f for m in reduced for f in m.value)
        factor, _ = self.content(
            everything, lambda atom: not variables_in(atom) & bound and self.positive(atom, context)
        )
        if factor.coefficient < 0:
            factor = Family((), TRUE, -factor.coefficient, factor.powers)
        inverse = family(1 / factor.coefficient, {a: -n for a, n in factor.powers})
        scaled = [Member(m.bound, m.guard, tuple(times(f, inverse) for f in m.value)) for m in reduced]
        value = self._merged([times(factor, family(1, {Extremum(op, tuple(scaled)): 1})), *shared])
        if not shared and factor == family(1, {}):
            return Normal(value, as_it_is)
        shift = self.elements.value(tuple(shared))
        functions: list[tuple[str, Element]] = []
        if factor != family(1, {}):
            functions.append(("mul", self.elements.value((factor,))))
        if shared:
            functions.append(("add", shift))
        steps = [self._moved(op, m, s, functions, context) for m, s in zip(members, scaled, strict=True)]
        outside = self.elements.extremum(op, scaled)
        back = same(at, outside)
        for name, other in functions:
            left = Apply(name, (back.left, other))
            inner = parts(at, left, Apply(name, (_right(back), other)), back)
            back = chain(at, inner, self._out(op, name, _right(back), other, context))
        last = self.arithmetic(context, back.left, self.elements.value(value))
        return Normal(value, chain(at, joined_steps(op, at, steps), (back, True), last))

    def _moved(
        self, op: str, member: Member, scaled: Member, functions: list[tuple[str, Element]], context: Context
    ) -> Step:
        """That a member consists of functions of what another one consists of."""
        inner = context.under(member.guard, ranges=member.bound)
        moved: Element = self.elements.value(scaled.value)
        for name, other in functions:
            moved = Apply(name, (moved, other))
        body = self.arithmetic(inner, self.elements.value(member.value), moved)
        return self.elements.inside(op, context.hypotheses, member.bound, member.guard, body, UNIT_ELEMENT[op])

    def _out(self, op: str, name: str, inner: Element, other: Element, context: Context) -> Step:
        """f(max a) = max f(a) for f(x) = x * c or x + s."""
        right = each_candidate(op, inner, lambda a: Apply(name, (a, other)))
        left = Apply(name, (inner, other))
        return step("monotone", context.hypotheses, left, right, *self.divisors_at(context), data=op)


def _right(equation: Step) -> Element:
    assert equation.right is not None
    return equation.right


def _alone(value: Value) -> Atom | None:
    """The atom that a value is, if it is one."""
    if len(value) == 1 and value[0].simple and value[0].coefficient == 1:
        powers = value[0].powers
        if len(powers) == 1 and powers[0][1] == 1:
            return powers[0][0]
    return None
