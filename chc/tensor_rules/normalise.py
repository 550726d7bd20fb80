"""From element expressions to normal forms, in a context that decides index questions.

Every step is one of the laws that :class:`~chc.tensor_rules.normal.Laws` names, or replaces an index by an equal one
after its context has established the fact that this needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

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

from .context import Context
from .normal import (
    Atom,
    Extremum,
    Family,
    Group,
    IntegerAtom,
    Laws,
    Literal,
    Member,
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

__all__ = ["Normaliser"]

UNIT = {"max": float("-inf"), "min": float("inf")}
MOST_GUARDS = 4
"""A function of a sum with more guarded summands than this is not taken apart by cases."""


@dataclass
class Normaliser(Signs):
    """Normalises elements by the laws of one equality notion; ``group`` names the obligations that it records.

    Over the reals, ``divisors`` collects what is divided by, and ``lost`` products that leave the normal form because
    they cancel or are multiplied by 0, each with the context in which it is; ``operations`` are additions,
    multiplications and divisions.
    """

    divisors: list[tuple[Value, Context]] = field(default_factory=list)
    lost: list[tuple[Family, Context]] = field(default_factory=list)
    operations: list[tuple[str, tuple[Value, ...], Context]] = field(default_factory=list)

    # -- values -------------------------------------------------------------------------------------

    def value(self, element: Element, context: Context) -> Value:
        """The normal form of an element; bound variables get names of their own."""
        match element:
            case Read(name, at):
                return one_atom(Read(name, tuple(self.index(i, context) for i in at)))
            case Number(value):
                return self._literal(value)
            case IndexValue(value):
                return self._integer(self.index(value, context))
            case Choice(condition, yes, no):
                return self._choice(condition, context, lambda c: self.value(yes, c), lambda c: self.value(no, c))
            case Reduce("sum", variable, extent, body):
                return self._sum(variable, extent, body, context)
            case Reduce() | Apply("maximum" | "minimum", _):
                return self._extremum(element, context)
            case Apply(op, args):
                return self._apply(op, [self.value(a, context) for a in args], context)

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

    def _choice(
        self, raw: Condition, context: Context, yes: Callable[[Context], Value], no: Callable[[Context], Value]
    ) -> Value:
        return tuple(
            Family(f.bound, both(guard, f.guard), f.coefficient, f.powers)
            for guard, inner, build in self._branches(raw, context, yes, no)
            for f in build(inner)
        )

    def _branches(
        self, raw: Condition, context: Context, yes: Callable[[Context], Value], no: Callable[[Context], Value]
    ) -> list[tuple[Condition, Context, Callable[[Context], Value]]]:
        """The sides of a choice that are possible, each with its guard."""
        condition = self.condition(raw, context)
        if self.decided(condition, context):
            return [(TRUE, context, yes)]
        opposite = negation(condition)
        if self.decided(opposite, context):
            return [(TRUE, context, no)]
        return [(condition, context.under(condition), yes), (opposite, context.under(opposite), no)]

    def _sum(self, variable: str, extent: Index, body: Element, context: Context) -> Value:
        extent = self.index(extent, context)
        fresh, body = self._renamed(variable, body, context)
        inner = context.under(ranges=[(fresh, extent)])
        if self.laws is Laws.EXACT:
            return one_atom(OrderedSum(fresh, extent, self.value(body, inner)))
        value: Value = ()
        mark = self._mark()
        divisor = self.splits(indices_of_element(body), fresh, extent, context)
        if divisor is None:
            value = self.value(body, inner)
            divisor = self.splits((i for f in value for i in indices_in(f)), fresh, extent, context)
        if divisor is not None:
            self.forget(mark)
            high, low, body = self.digits(fresh, divisor, body, context)
            return self._sum(high, extent // divisor, Reduce("sum", low, divisor, body), context)
        return self._merged(
            (
                counted
                for f in value
                for counted in self._counted(
                    Family(((fresh, extent), *f.bound), f.guard, f.coefficient, f.powers), context
                )
            ),
            context,
        )

    def _mark(self) -> tuple[int, int, int]:
        return len(self.divisors), len(self.lost), len(self.operations)

    def forget(self, mark: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Forgets what was collected since: the same element is normalised again in another form."""
        del self.divisors[mark[0] :], self.lost[mark[1] :], self.operations[mark[2] :]

    def _renamed(self, variable: str, body: Element, context: Context) -> tuple[str, Element]:
        fresh = context.proof.names.fresh(variable.partition(".")[0])
        return fresh, substitute_element(body, {variable: Index({(fresh,): 1})})

    def _counted(self, given: Family, context: Context) -> Value:
        """A bound variable on which nothing depends multiplies by its extent (over the reals)."""
        if self.laws is not Laws.RING:
            return (given,)
        for position, (variable, extent) in enumerate(given.bound):
            rest = given.bound[:position] + given.bound[position + 1 :]
            without = Family(rest, given.guard, given.coefficient, given.powers)
            if variable in variables_in(without) or extent.variables & {v for v, _ in rest}:
                continue
            if context.under(ranges=rest).establish(le(0, extent), self.group, f"{extent} is no less than 0"):
                counts = self._integer(extent)
                return tuple(f for c in counts for f in self._counted(times(without, c), context))
        return (given,)

    def _merged(self, families: Iterable[Family], context: Context) -> Value:
        """Equal products once, with the sum of their coefficients (over the reals)."""
        given = tuple(families)
        if self.laws is not Laws.RING:
            return given
        found = merged(given)
        kept = {(f.bound, f.guard, f.powers) for f in found}
        self.lost += [(f, context) for f in given if (f.bound, f.guard, f.powers) not in kept]
        return found

    # -- scalar operators ---------------------------------------------------------------------------

    def _apply(self, op: str, args: list[Value], context: Context) -> Value:
        if op == "add" and self.laws is Laws.MONOID:
            return args[0] + args[1]
        if self.laws is Laws.RING:
            if op in ("add", "sub", "mul", "fma", "div"):
                self.operations.append((op, tuple(args), context))
            match op:
                case "add":
                    return self._merged(args[0] + args[1], context)
                case "sub":
                    return self._merged(args[0] + self._scaled(args[1], -1), context)
                case "neg":
                    return self._scaled(args[0], -1)
                case "mul":
                    return self._product(args[0], args[1], context)
                case "fma":
                    return self._merged(self._product(args[0], args[1], context) + args[2], context)
                case "div":
                    return self._cases(
                        args[1:], context, lambda a, c: self._product(args[0], self._divisor(a[0], c), c)
                    )
                case "exp":
                    return self._cases(args, context, lambda a, c: self._exp(a[0], c))
        return self._cases(args, context, lambda a, c: one_atom(Opaque(op, tuple(a))))

    def _scaled(self, value: Value, by: Fraction | int) -> Value:
        return tuple(Family(f.bound, f.guard, f.coefficient * by, f.powers) for f in value)

    def _product(self, left: Value, right: Value, context: Context) -> Value:
        if not left or not right:
            self.lost += [(f, context) for f in left + right]
        for a, b in itertools.product(left, right):
            inverse = {(atom, -n) for atom, n in b.powers}
            self.lost += [(family(1, {atom: 1}), context) for atom, n in a.powers if (atom, n) in inverse]
        return self._merged((times(a, b) for a in left for b in right), context)

    def _cases(self, args: Sequence[Value], context: Context, build: Callable[[list[Value], Context], Value]) -> Value:
        """A function of values, by cases of the guards of their families without bound variables."""
        choices = [self._choices(a, context) for a in args]
        families: list[Family] = []
        for combination in itertools.product(*choices):
            guard = both(*(g for g, _ in combination))
            if len(combination) > 1 and guard != TRUE and context.excludes(guard, self.group, f"never {guard}"):
                continue
            inner = context if guard == TRUE else context.under(guard)
            for f in build([v for _, v in combination], inner):
                families.append(Family(f.bound, both(guard, f.guard), f.coefficient, f.powers))
        return self._merged(families, context)

    def _choices(self, value: Value, context: Context) -> list[tuple[Condition, Value]]:
        """A value as cases that exclude each other and leave nothing out, where none has guards of its own."""
        if self.laws is Laws.EXACT:  # a value is a choice: the guards are the cases
            return [(f.guard, (Family(f.bound, TRUE, f.coefficient, f.powers),)) for f in value]
        guards = list(dict.fromkeys(f.guard for f in value if not f.bound and f.guard != TRUE))
        if not guards or len(guards) > MOST_GUARDS:
            return [(TRUE, value)]
        found = []
        for guard, held in self._assignments(guards, context):
            kept = [
                f if f.bound or f.guard == TRUE else Family((), TRUE, f.coefficient, f.powers)
                for f in value
                if f.bound or f.guard == TRUE or f.guard in held
            ]
            found.append((guard, self._merged(kept, context)))
        return found

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
            extended = []
            for guard, held in cases:
                for part, now in ((condition, held | {condition}), (opposite, held)):
                    case = both(guard, part)
                    if not context.excludes(case, self.group, f"never {case}"):
                        extended.append((case, now))
            cases = extended
        return cases

    def _settled(self, value: Value, context: Context) -> Value:
        """A sum with one infinite summand of positive factors is that infinity (other summands are finite)."""
        infinite = [f for f in value if any(isinstance(a, Literal) for a, _ in f.powers)]
        if len(infinite) != 1 or not infinite[0].simple:
            return value
        literal = next(a for a, _ in infinite[0].powers if isinstance(a, Literal))
        others = [(a, n) for a, n in infinite[0].powers if a != literal]
        if (literal, 1) not in infinite[0].powers or not all(self.positive(a, context) for a, _ in others):
            return value
        if not isinstance(literal.value, float) or not math.isinf(literal.value):
            return value
        self.lost += [(f, context) for f in value if f is not infinite[0]]
        sign = 1 if infinite[0].coefficient > 0 else -1
        return one_atom(Literal(sign * literal.value))

    def _exp(self, value: Value, context: Context) -> Value:
        value = self._settled(value, context)
        if value == one_atom(Literal(UNIT["max"])):
            return ()
        result: Value = (family(1, {}),)
        for f in value:
            if any(isinstance(a, Literal) for a, _ in f.powers) or not (f.bound or f.guard == TRUE):
                return one_atom(Opaque("exp", (value,)))
            root = Family(f.bound, f.guard, Fraction(1, f.coefficient.denominator), f.powers)
            power = family(1, {Opaque("exp", ((root,),)): f.coefficient.numerator})
            result = self._product(result, (power,), context)
        return result

    def _divisor(self, value: Value, context: Context) -> Value:
        """1 / value."""
        self.divisors.append((value, context))
        factor, rest = self.content(value, lambda atom: True)
        inverse = family(1 / factor.coefficient, {a: -n for a, n in factor.powers})
        if rest == (family(1, {}),):
            return (inverse,)
        return (times(inverse, family(1, {Group(rest): -1})),)

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

    # -- extrema ------------------------------------------------------------------------------------

    def _extremum(self, element: Element, context: Context) -> Value:
        if isinstance(element, Reduce) and element.op == "min":
            return self._of_members("min", self._members("min", element, context), context)
        return self._of_members("max", self._members("max", element, context), context)

    def _members(self, op: str, element: Element, context: Context) -> list[Member]:
        """Members whose extremum the element is; a minimum of maxima is a maximum of minima."""
        match element:
            case Reduce(o, variable, extent, body) if o == op:
                extent = self.index(extent, context)
                fresh, body = self._renamed(variable, body, context)
                inner: list[Member] = []
                mark = self._mark()
                divisor = self.splits(indices_of_element(body), fresh, extent, context)
                if divisor is None:
                    inner = self._members(op, body, context.under(ranges=[(fresh, extent)]))
                    divisor = self.splits((i for m in inner for i in indices_in(m)), fresh, extent, context)
                if divisor is not None:
                    self.forget(mark)
                    high, low, body = self.digits(fresh, divisor, body, context)
                    nested = Reduce(op, high, extent // divisor, Reduce(op, low, divisor, body))
                    return self._members(op, nested, context)
                return [self._needed(Member(((fresh, extent), *m.bound), m.guard, m.value), context) for m in inner]
            case Choice(condition, yes, no):
                sides = self._branches(condition, context, lambda c: (), lambda c: ())
                opposite = len(sides) == 1 and not self.decided(self.condition(condition, context), context)
                bodies = [no] if opposite else [yes] if len(sides) == 1 else [yes, no]
                return [
                    Member(m.bound, both(guard, m.guard), m.value)
                    for (guard, inside_, _), body in zip(sides, bodies, strict=True)
                    for m in self._members(op, body, inside_)
                ]
            case Apply("maximum", (a, b)) if op == "max":
                return self._members(op, a, context) + self._members(op, b, context)
            case Apply("minimum", (a, b)) if op == "min":
                return self._members(op, a, context) + self._members(op, b, context)
            case Apply("minimum", (a, b)):
                left, right = self._members("max", a, context), self._members("max", b, context)
                if self.laws is not Laws.RING and not all(self.inhabited(side, context) for side in (left, right)):
                    # the minimum of a NaN and of the maximum of nothing is NaN, and there would be no pair
                    maxima = [Member((), TRUE, self._of_members("max", s, context)) for s in (left, right)]
                    return [Member((), TRUE, self._of_members("min", maxima, context))]
                return [
                    Member(m.bound + n.bound, both(m.guard, n.guard), self._minimum(m, n, context))
                    for m in left
                    for n in right
                ]
        value = self.value(element, context)
        if value == one_atom(Literal(UNIT[op])):
            return []
        return [Member((), TRUE, value)]

    def _needed(self, member: Member, context: Context) -> Member:
        """Without the outermost bound variable, where nothing depends on it and it has a value."""
        (variable, extent), *rest = member.bound
        without = Member(tuple(rest), member.guard, member.value)
        if variable in variables_in(without):
            return member
        return without if context.establish(le(1, extent), self.group, f"{extent} is positive") else member

    def _minimum(self, left: Member, right: Member, context: Context) -> Value:
        inner = context.under(left.guard, right.guard, ranges=[*left.bound, *right.bound])
        members: list[Member] = []
        for value in (left.value, right.value):
            atom = _alone(value)
            members += atom.members if isinstance(atom, Extremum) and atom.op == "min" else [Member((), TRUE, value)]
        return self._of_members("min", members, inner)

    def _of_members(self, op: str, members: list[Member], context: Context) -> Value:
        members = list(dict.fromkeys(members))
        guards = list(dict.fromkeys(m.guard for m in members if not m.bound and m.guard != TRUE))
        if not guards or len(guards) > MOST_GUARDS:
            return self._atom_of(op, members, context)
        families: list[Family] = []
        for guard, held in self._assignments(guards, context):
            kept = [
                m if m.bound or m.guard == TRUE else Member((), TRUE, m.value)
                for m in members
                if m.bound or m.guard == TRUE or m.guard in held
            ]
            inner = self._atom_of(op, list(dict.fromkeys(kept)), context.under(guard))
            families += [Family(f.bound, both(guard, f.guard), f.coefficient, f.powers) for f in inner]
        return tuple(families)

    def _atom_of(self, op: str, members: list[Member], context: Context) -> Value:
        if not members:
            return one_atom(Literal(UNIT[op]))
        if len(members) == 1 and not members[0].bound and members[0].guard == TRUE:
            return members[0].value
        if self.laws is not Laws.RING:
            return one_atom(Extremum(op, tuple(members)))
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
        scaled = tuple(Member(m.bound, m.guard, tuple(times(f, inverse) for f in m.value)) for m in reduced)
        return self._merged([times(factor, family(1, {Extremum(op, scaled): 1})), *shared], context)


def _alone(value: Value) -> Atom | None:
    """The atom that a value is, if it is one."""
    if len(value) == 1 and value[0].simple and value[0].coefficient == 1:
        powers = value[0].powers
        if len(powers) == 1 and powers[0][1] == 1:
            return powers[0][0]
    return None
