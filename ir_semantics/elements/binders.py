"""Folds and conditions of every tuple, and terms made anew: no variable is captured, whatever it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format
from ir_semantics.tensors.index import Index, Quotient

from .operators import apply, at_most, both, cast, conjuncts, either, equal, inside, negation, of_polynomial, polynomial
from .terms import (
    Input,
    Symbol,
    Table,
    Term,
    fresh,
    function,
    integer_value,
    is_true,
    make,
    number,
    read,
    symbol,
    terms_of_proof,
    truth,
    variable_of,
)

# -- binders --------------------------------------------------------------------------------------------------


def _close(symbols: Sequence[Symbol], body: Term) -> tuple[tuple[Symbol, ...], Term]:
    """A body with canonical variables instead: terms that differ in names of bound variables are one object."""
    bound = terms_of_proof().bound
    own = tuple(
        bound.setdefault((body.depth, i, s.kind), Symbol(f"b{body.depth}_{i}", s.kind)) for i, s in enumerate(symbols)
    )
    return own, substitute(body, {s: symbol(o) for s, o in zip(symbols, own, strict=True)})


def every(variables: Sequence[Term], extents: Sequence[Term], condition: Term) -> Term:
    """Whether a condition holds for all values of variables below extents.

    Parts of a conjunction are conditions of their own, and those without the variables are true of empty ranges.  Nests
    of ranges are one, in which no variable is without use but those of ranges that may be empty.
    """
    if condition.op == "and":
        return both(*(every(variables, extents, part) for part in conjuncts([condition])))
    if is_true(condition) or any((n := integer_value(e)) is not None and n <= 0 for e in extents):
        return truth(True)
    idle = {
        variable_of(v): number(0)
        for v, e in zip(variables, extents, strict=True)
        if (n := integer_value(e)) is not None and (n == 1 or variable_of(v) not in condition.symbols)
    }
    if idle:
        left = [(v, e) for v, e in zip(variables, extents, strict=True) if variable_of(v) not in idle]
        return every([v for v, _ in left], [e for _, e in left], substitute(condition, idle))
    if condition.op == "every" and all(e.symbols.isdisjoint(map(variable_of, variables)) for e in condition.args[:-1]):
        inner, sizes, condition = opened_every(condition)
        return every([*variables, *inner], [*extents, *sizes], condition)
    if condition.symbols.isdisjoint(variable_of(v) for v in variables):
        return either(*(equal(e, number(0)) for e in extents), condition)
    inside_of = _where_not_empty(condition)
    if inside_of is not None and inside_of[0].symbols.isdisjoint(map(variable_of, variables)):
        extent, condition = inside_of
        return every([*variables, fresh("i", INTEGERS)], [*extents, extent], condition)
    own, body = _close([variable_of(v) for v in variables], condition)
    return make("every", (*extents, body), BOOLEAN, own)


def _where_not_empty(condition: Term) -> tuple[Term, Term] | None:
    """The extent and the condition of what was said of all values of a range that the condition does not have."""
    parts = list(conjuncts([condition.args[0]])) if condition.op == "not" else []
    for k, part in enumerate(parts):
        if part.op == "not" and part.args[0].op == "eq" and len(parts) > 1:
            for zero, extent in (part.args[0].args, part.args[0].args[::-1]):
                if integer_value(zero) == 0 and is_count(extent):
                    return extent, negation(both(*parts[:k], *parts[k + 1 :]))
    return None


def is_count(extent: Term) -> bool:
    """Whether a number is seen not to be negative: it is chosen only where it is not, and else 0."""
    if extent.op != "select" or integer_value(extent.args[2]) != 0:
        return False
    return extent.args[0] is at_most(number(0), extent.args[1])


def opened_every(term: Term) -> tuple[list[Term], tuple[Term, ...], Term]:
    """Fresh variables, extents and condition of an :func:`every`."""
    assert isinstance(term.payload, tuple)
    variables = [fresh(s.name, s.kind) for s in term.payload]
    values = dict(zip(term.payload, variables, strict=True))
    return variables, term.args[:-1], substitute(term.args[-1], values)


def instance(term: Term, at: Sequence[Term]) -> Term:
    """What an :func:`every` says of given values: the condition, where they are in range."""
    assert isinstance(term.payload, tuple)
    range_ = both(*(inside(i, e) for i, e in zip(at, term.args[:-1], strict=True)))
    return either(negation(range_), substitute(term.args[-1], dict(zip(term.payload, at, strict=True))))


def array(variables: Sequence[Term], extents: Sequence[Term], value: Term, defined: Term) -> Term:
    """A whole tensor, as an operand of a call: its element at variables, and whether that is defined."""
    pair = make("pair", (value, defined), Format("pair"))
    own, body = _close([variable_of(v) for v in variables], pair)
    return make("array", (*extents, body), Format("array", (str(value.kind), len(variables))), own)


def opened_array(term: Term) -> tuple[list[Term], tuple[Term, ...], Term, Term]:
    """Fresh variables, extents, and the value and whether it is defined, of an :func:`array`."""
    assert isinstance(term.payload, tuple)
    variables = [fresh(s.name, s.kind) for s in term.payload]
    value, defined = substitute(term.args[-1], dict(zip(term.payload, variables, strict=True))).args
    return variables, term.args[:-1], value, defined


@dataclass(frozen=True)
class Fold:
    """A fold with variables of its own: see the module."""

    start: Term
    accumulator: Term
    variables: tuple[Term, ...]
    extents: tuple[Term, ...]
    step: Term

    def after(self, value: Term, at: Sequence[Term]) -> Term:
        """The accumulator after a step at given values of the variables."""
        symbols = map(variable_of, (self.accumulator, *self.variables))
        return substitute(self.step, dict(zip(symbols, (value, *at), strict=True)))


def fold(start: Term, accumulator: Term, ranges: Sequence[tuple[Term, Term]], step: Term) -> Term:
    """A fold over ranges, pairs of a variable and its extent; ``accumulator`` is a variable as well."""
    if start.kind != accumulator.kind or step.kind != accumulator.kind:
        raise TypeError(f"a fold must have values of one format, not {start.kind} and {step.kind}")
    if any(integer_value(e) == 0 for _, e in ranges) or step is accumulator:
        return start
    ones = {variable_of(v): number(0) for v, e in ranges if integer_value(e) == 1}
    if ones:
        return fold(start, accumulator, [r for r in ranges if variable_of(r[0]) not in ones], substitute(step, ones))
    if not ranges:
        return substitute(step, {variable_of(accumulator): start})
    own, body = _close([variable_of(accumulator), *(variable_of(v) for v, _ in ranges)], step)
    return make("fold", (start, *(e for _, e in ranges), body), start.kind, own)


def opened_fold(term: Term) -> Fold:
    """A fold with fresh variables."""
    assert isinstance(term.payload, tuple)
    accumulator, *variables = (fresh(s.name, s.kind) for s in term.payload)
    values = dict(zip(term.payload, (accumulator, *variables), strict=True))
    return Fold(term.args[0], accumulator, tuple(variables), term.args[1:-1], substitute(term.args[-1], values))


def unrolled(root: Term, most: int, ops: Sequence[str] = ("fold",)) -> Term:
    """The term with folds of at most ``most`` steps, a literal number, written out; also conditions, "every"."""

    def changed(_: Term, new: Term) -> Term:
        if new.op not in ops:
            return new
        if new.op == "every":
            return _written(new, most)
        sizes = [integer_value(e) for e in new.args[1:-1]]
        known = [s for s in sizes if s is not None]
        if len(known) < len(sizes) or prod(known) > most:
            return new
        opened = opened_fold(new)
        value = opened.start
        for place in range(prod(known)):
            at = []
            for size in reversed(known):
                at.append(number(place % size))
                place //= size
            value = opened.after(value, at[::-1])
        return value

    return rebuilt(root, lambda term: term.depth > 0, changed)


def _written(term: Term, most: int) -> Term:
    """A condition of every tuple as one of each, where these are few."""
    sizes = [integer_value(e) for e in term.args[:-1]]
    known = [s for s in sizes if s is not None]
    if len(known) < len(sizes) or prod(max(s, 0) for s in known) > most:
        return term
    return both(*(instance(term, [number(i) for i in at]) for at in product(*map(range, known))))


# -- walking ----------------------------------------------------------------------------------------------


def postorder(
    roots: Iterable[Term],
    wanted: Callable[[Term], bool] = lambda _: True,
    below: Callable[[Term], tuple[Term, ...]] = lambda term: term.args,
) -> Iterator[Term]:
    """Every subterm once, operands first, bodies of binders included; ``wanted`` says where not to go."""
    seen: set[Term] = set()
    stack = [(root, False) for root in list(roots)[::-1]]
    while stack:
        term, ready = stack.pop()
        if ready:
            yield term
        elif term not in seen and wanted(term):
            seen.add(term)
            stack.append((term, True))
            stack.extend((a, False) for a in reversed(below(term)) if a not in seen)


def with_args(term: Term, args: tuple[Term, ...]) -> Term:
    """The term with other operands, brought to its normal form again."""
    if args == term.args:
        return term
    match term.op:
        case "polynomial":
            assert isinstance(term.payload, Index)
            names = {f"t.{old.number:07}": polynomial(new) for old, new in zip(term.args, args, strict=True)}
            return of_polynomial(_substituted(term.payload, names))
        case "read":
            assert isinstance(term.payload, Input | Table)
            return read(term.payload, args)
        case "cast":
            return cast(args[0], term.kind)
        case "function":
            return function(str(term.payload), term.kind, *args)
        case "call" | "pair":
            return make(term.op, args, term.kind, term.payload)
    return apply(term.op, *args)


def _substituted(value: Index, names: Mapping[str, Index]) -> Index:
    """As Index.substitute; a divisor that becomes a number below 1 leaves a value that does not matter."""

    def replace(atom_: str | Quotient) -> Index | None:
        if isinstance(atom_, str):
            return names.get(atom_)
        divisor = _substituted(atom_.divisor, names)
        if divisor.constant is not None and divisor.constant <= 0:
            return Index({})
        return _substituted(atom_.dividend, names) // divisor

    return value.rebuild(replace)


def rebuilt(root: Term, wanted: Callable[[Term], bool], changed: Callable[[Term, Term], Term]) -> Term:
    """A term made anew of changed parts; no variable is captured.

    ``wanted`` says of which subterms there may be a change; ``changed`` gets a subterm, and it made of changed parts.
    """
    done: dict[Term, Term] = {}

    def of(term: Term) -> Term:
        return rebuilt(term, wanted, changed)

    for term in outside_binders(root, wanted):
        if term.op == "fold":
            old = opened_fold(term)
            ranges = [(v, of(e)) for v, e in zip(old.variables, old.extents, strict=True)]
            new = fold(done.get(old.start, old.start), old.accumulator, ranges, of(old.step))
        elif term.op == "array":
            variables, extents, value, defined = opened_array(term)
            new = array(variables, [of(e) for e in extents], of(value), of(defined))
        elif term.op == "every":
            variables, extents, condition = opened_every(term)
            new = every(variables, [of(e) for e in extents], of(condition))
        else:
            new = with_args(term, tuple(done.get(a, a) for a in term.args))
        done[term] = changed(term, new)
    return done.get(root, root)


def substitute(root: Term, values: Mapping[Symbol, Term]) -> Term:
    """The term with free variables replaced, all at once; no variable is captured."""
    kept = {s: t for s, t in values.items() if s in root.symbols}
    if not kept:
        return root
    names = frozenset(kept)

    def changed(old: Term, new: Term) -> Term:
        return kept.get(variable_of(old), old) if old.op == "symbol" else new

    return rebuilt(root, lambda term: not names.isdisjoint(term.symbols), changed)


def operands(term: Term) -> tuple[Term, ...]:
    """The operands that no variable is bound in, extents excepted."""
    return term.args[:1] if term.op == "fold" else () if term.op in ("every", "array") else term.args


def outside_binders(root: Term, wanted: Callable[[Term], bool] = lambda _: True) -> Iterator[Term]:
    """As :func:`postorder`, by :func:`operands`."""
    return postorder([root], wanted, operands)


Loop: TypeAlias = tuple[object, ...]


def loop_of(term: Term) -> Loop:
    """What a fold is but for its start; a whole tensor."""
    return (term.payload, *term.args[term.op == "fold" :])
