"""Operators on terms: integers as polynomials, conditions, choices and scalar operators; constants are evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from ir_semantics.scalars.concrete import Concrete
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Literal, Value
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import NotInterpreted
from ir_semantics.tensors.index import Index

from .terms import Term, constant, integer_value, is_false, is_true, literal, make, number, terms_of_proof, truth

# -- integers ----------------------------------------------------------------------------------------------


def polynomial(term: Term) -> Index:
    """An integer as a polynomial over names of atoms (:func:`atom`)."""
    known = terms_of_proof().polynomials
    if term not in known:
        if term.op == "polynomial":
            assert isinstance(term.payload, Index)
            known[term] = term.payload
        elif (value := integer_value(term)) is not None:
            known[term] = Index({(): value})
        else:
            name = f"t.{term.number:07}"
            terms_of_proof().atoms[name] = term
            known[term] = Index({(name,): 1})
    return known[term]


def atom(name: str) -> Term:
    """The term that a name in a polynomial stands for."""
    return terms_of_proof().atoms[name]


def of_polynomial(value: Index) -> Term:
    """The integer that a polynomial over names of atoms is."""
    if value.constant is not None:
        return number(value.constant)
    if value.variable is not None:
        return atom(value.variable)
    return make("polynomial", tuple(atom(n) for n in sorted(value.variables)), INTEGERS, value)


def plus(*terms: Term) -> Term:
    """The sum of integers."""
    total = Index({})
    for term in terms:
        total = total + polynomial(term)
    return of_polynomial(total)


def minus(a: Term, b: Term) -> Term:
    """a - b."""
    return of_polynomial(polynomial(a) - polynomial(b))


def times(*terms: Term) -> Term:
    """The product of integers."""
    total = Index({(): 1})
    for term in terms:
        total = total * polynomial(term)
    return of_polynomial(total)


def quotient(a: Term, b: Term) -> Term:
    """a / b, rounded down; b must be positive wherever it matters."""
    value = integer_value(b)
    if value is not None and value <= 0:
        return number(0)
    return of_polynomial(polynomial(a) // polynomial(b))


def remainder(a: Term, b: Term) -> Term:
    """a - b * (a / b), from 0 to b - 1; b must be positive wherever it matters."""
    return minus(a, times(b, quotient(a, b)))


def at_most(a: Term, b: Term) -> Term:
    """a <= b, of integers."""
    difference = minus(b, a)
    value = integer_value(difference)
    if value is not None:
        return truth(value >= 0)
    return make("le", (number(0), difference), BOOLEAN)


def below(a: Term, b: Term) -> Term:
    """a < b, of integers."""
    return at_most(plus(a, number(1)), b)


def equal(a: Term, b: Term) -> Term:
    """a = b, of integers."""
    difference = polynomial(a) - polynomial(b)
    if difference.constant is not None:
        return truth(difference.constant == 0)
    if difference.terms[0][1] < 0:
        difference = -difference
    return make("eq", (number(0), of_polynomial(difference)), BOOLEAN)


def inside(at: Term, extent: Term) -> Term:
    """0 <= at < extent."""
    return both(at_most(number(0), at), below(at, extent))


# -- operators ----------------------------------------------------------------------------------------------


def both(*conditions: Term) -> Term:
    """The conjunction."""
    parts = list(conjuncts(conditions))
    if any(is_false(p) for p in parts):
        return truth(False)
    if not parts:
        return truth(True)
    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = make("and", (part, result), BOOLEAN)
    return result


def conjuncts(conditions: Iterable[Term]) -> Iterator[Term]:
    """The parts of conditions that must all hold, each once, without those that are true."""
    seen: set[Term] = set()
    stack = list(conditions)[::-1]
    while stack:
        term = stack.pop()
        if term.op == "and":
            stack.extend(reversed(term.args))
        elif term not in seen and not is_true(term):
            seen.add(term)
            yield term


def either(*conditions: Term) -> Term:
    """The disjunction."""
    return negation(both(*map(negation, conditions)))


def negation(condition: Term) -> Term:
    """The negation."""
    if condition.op == "not":
        return condition.args[0]
    if (value := literal(condition)) is not None:
        return truth(not value)
    return make("not", (condition,), BOOLEAN)


def same(a: Term, b: Term) -> Term:
    """Whether two values of one format are the same: -0 and +0 differ, all NaNs are one."""
    if a.kind != b.kind:
        raise TypeError(f"values must have one format to be the same, not {a.kind} and {b.kind}")
    if a is b:
        return truth(True)
    if a.kind == INTEGERS:
        return equal(a, b)
    return apply("same", a, b)


def choose(condition: Term, yes: Term, no: Term) -> Term:
    """``yes`` where the condition holds, else ``no``."""
    if yes.kind != no.kind:
        raise TypeError(f"both values of a choice must have one format, not {yes.kind} and {no.kind}")
    if is_true(condition) or yes is no:
        return yes
    if is_false(condition):
        return no
    if condition.op == "not":
        return choose(condition.args[0], no, yes)
    if yes.kind == BOOLEAN and literal(yes) is not None:
        return either(condition, no) if is_true(yes) else both(negation(condition), no)
    if yes.kind == BOOLEAN and literal(no) is not None:
        return either(negation(condition), yes) if is_true(no) else both(condition, yes)
    return make("select", (condition, yes, no), yes.kind)


_INTEGERS_OPERATORS: Mapping[str, Callable[..., Term]] = {
    "add": plus, "sub": minus, "mul": times, "lt": below, "le": at_most, "eq": equal, "same": equal,
    "floor_quotient": quotient, "neg": lambda a: minus(number(0), a),
}  # fmt: skip
_LOGIC: Mapping[str, Callable[..., Term]] = {"and": both, "or": either, "not": negation}


def apply(op: str, *args: Term, target: Format | None = None) -> Term:
    """A scalar operator; ``target`` is the format of a cast.  Constants are evaluated.

    Raises TypeError where the formats of operands differ.
    """
    operator = OPERATORS[op]
    if op == "select":
        return choose(*args)
    if len({a.kind for a in args}) != 1 or len(args) != operator.arity:
        raise TypeError(
            f"{op} must be given {operator.arity} operands of one format, not {[str(a.kind) for a in args]}"
        )
    kind = target or (BOOLEAN if operator.result == "boolean" else args[0].kind)
    if op in _LOGIC:
        return _LOGIC[op](*args)
    if op == "same" and args[0] is args[1]:
        return truth(True)
    if op == "cast":
        return cast(args[0], kind)
    if args[0].kind == INTEGERS and op in _INTEGERS_OPERATORS:
        return _INTEGERS_OPERATORS[op](*args)
    return _evaluated(op, args, kind)


def _evaluated(op: str, args: tuple[Term, ...], kind: Format) -> Term:
    values = [literal(a) for a in args]
    known = [v for v in values if v is not None]
    if len(known) == len(values):
        try:
            domain = Concrete({})
            operands = [domain.constant(v, a.kind) for v, a in zip(known, args, strict=True)]
            value = domain.apply(op, kind, [a.kind for a in args], operands)
        except (NotInterpreted, KeyError):
            return make(op, args, kind)
        if isinstance(value, float) and _is_rounded(op, known, value):
            terms_of_proof().rounded = True
        return constant_of(value, kind)
    return make(op, args, kind)


def _is_rounded(op: str, operands: Sequence[Literal], value: float) -> bool:
    """Whether real numbers give another value, for operands that are real numbers."""
    exact = Fraction if op == "cast" else OPERATORS[op].exact
    if exact is None or not all(map(math.isfinite, operands)) or (op == "div" and operands[1] == 0):
        return False
    return not math.isfinite(value) or Fraction(value) != exact(*(Fraction(v) for v in operands))


def constant_of(value: Value, kind: Format) -> Term:
    """A concrete value as a constant."""
    return constant(value if isinstance(value, float) else Fraction(value), kind)


def cast(value: Term, kind: Format) -> Term:
    """A conversion; those between integers and words, which cut bits, are taken apart where that is exact."""
    if value.kind == kind:
        return value
    if kind.family == "integer" and value.kind == INTEGERS:
        if isinstance(value.payload, Index) and _wraps(kind) and not value.payload.quotients:
            return word_of(value.payload, kind)
        if value.op == "cast" and value.args[0].kind.family == "integer":
            return cast(value.args[0], kind)  # a number cut to bits: extension and truncation of words are both that
        if value.op == "select":
            return choose(value.args[0], cast(value.args[1], kind), cast(value.args[2], kind))
    if value.op == "cast" and _wraps(value.kind) and _wraps(kind):
        inner = value.args[0]
        wide = int(value.kind.parameters[0])
        if inner.kind.family in ("int", "integer") and int(kind.parameters[0]) <= wide:
            return cast(inner, kind)  # bits above are cut anyway; those below are the same
    return _evaluated("cast", (value,), kind)


def _wraps(kind: Format) -> bool:
    """Whether a conversion to a format cuts bits, rather than saturates."""
    return kind.family == "integer" and kind.parameters[2] == "wrap"


def word_of(value: Index, kind: Format) -> Term:
    """A polynomial cut to bits: sums and products may be cut at each step."""
    total: Term | None = None
    for monomial, coefficient in value.terms:
        factors = [cast(atom(str(a)), kind) for a in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, cast(number(coefficient), kind))
        term = factors[0]
        for factor in factors[1:]:
            term = apply("mul", term, factor)
        total = term if total is None else apply("add", total, term)
    assert total is not None
    return total
