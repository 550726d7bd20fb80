"""Steps that the kernel must accept, and forged ones that it must reject: for each law, and each of its conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from chc.tensor_rules.kernel.replay import Derivation
from chc.tensor_rules.kernel.steps import Step
from chc.tensor_rules.obligations import extended
from ir_semantics.tensors.conditions import Condition, both, equal, inside, le, lt, negation
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, index, size
from ir_semantics.tensors.operators import fill, where
from ir_semantics.tensors.reductions import reduce
from ir_semantics.tensors.terms import Tensor, input_, make

REALS, SUMS, BITS = (True, True), (False, True), (False, False)
N, M, K = size("n"), size("m"), size("k")
INF = float("inf")


@dataclass(frozen=True)
class Case:
    """A last step under a premise, in one notion; whether it is right."""

    name: str
    right: bool
    last: Step
    premise: tuple[Condition, ...]
    notion: tuple[bool, bool] = REALS


def v(name: str) -> Index:
    return Index({(name,): 1})


def at(name: str, *indices: Index | int | str) -> Read:
    return Read(name, tuple(v(i) if isinstance(i, str) else index(i) for i in indices))


def number(value: int | float | Fraction) -> Number:
    return Number(value if isinstance(value, float) else Fraction(value))


def op(name: str, *args: Element) -> Apply:
    return Apply(name, args)


def over(name: str, extent: Index | int, body: Element, kind: str = "sum") -> Reduce:
    return Reduce(kind, name, index(extent), body)


X, Y, Z = at("x"), at("y"), at("z")
LOG = op("log", Y)
EMPTY = over("e.1", N, at("x", "e.1"), "max")
"""A maximum that may be that of nothing."""
P = at("p")
"""A positive number."""
SUM = over("i.1", N, at("x", "i.1"))
NONE = Reduce("sum", "u.0", index(0), number(0))


def step(law: str, left: Element, right: Element | None, *premises: Step, data: Any = (), under: Any = ()) -> Step:
    return Step(law, extended((), *under), left, right, premises, data)


def same(left: Element, under: Any = ()) -> Step:
    return step("same", left, left, under=under)


def read(left: Read, right: Read, *under: Condition) -> Step:
    return step("equal indices", left, right, under=under)


_Group = Callable[[], Iterator[tuple[str, bool, Step]]]
_GROUPS: list[tuple[_Group, tuple[Condition, ...], tuple[bool, bool]]] = []


def group(*premise: Condition, notion: tuple[bool, bool] = REALS) -> Callable[[_Group], _Group]:
    """Registers cases: each a name, whether it is right, and the last step."""

    def register(cases: _Group) -> _Group:
        _GROUPS.append((cases, premise, notion))
        return cases

    return register


def sums(left: Element, right: Element, *facts: Step, data: Any = (), under: Any = ()) -> Step:
    return step("sums of products", left, right, *facts, data=data, under=under)


@group(le(0, N))
def equality() -> Iterator[tuple[str, bool, Step]]:
    yield "same", True, same(X)
    yield "not the same", False, step("same", X, Y)
    yield "no such law", False, step("hope", X, Y)
    xy, one = read(at("x", N), at("x", N + 0)), sums(op("add", X, Y), op("add", Y, X))
    other = sums(op("add", Y, X), op("add", op("add", Y, X), number(0)))
    yield "transitive", True, step("chain", one.left, other.right, one, other, data=(False, False))
    yield "symmetric", True, step("chain", other.right, one.left, other, one, data=(True, True))  # type: ignore[arg-type]
    yield "not connected", False, step("chain", one.left, xy.right, one, xy, data=(False, False))
    yield "another end", False, step("chain", one.left, Z, one, data=(False,))
    yield "another start", False, step("chain", Z, one.right, one, data=(False,))
    yield "no direction", False, step("chain", one.left, X, one, data=())
    yield "nothing to go on", False, step("chain", X, Y)
    assumed = sums(at("x", N), at("x", N), under=[equal(N, 0)])
    zero = step("chain", at("x", N), at("x", 0), read(at("x", N), at("x", 0), equal(N, 0)), data=(False,))
    yield "a premise with more hypotheses", False, zero
    yield "fewer hypotheses", True, step("chain", assumed.left, at("x", N), xy, data=(False,), under=[equal(N, 0)])
    yield "a premise that is wrong", False, step("chain", X, Y, step("same", X, Y), data=(False,))


@group(le(0, N))
def parts() -> Iterator[tuple[str, bool, Step]]:
    swap = sums(op("add", X, Y), op("add", Y, X))
    old, new = swap.left, swap.right
    assert new is not None
    yield "of an operator", True, step("parts", op("exp", old), op("exp", new), swap)
    yield "another operator", False, step("parts", op("exp", old), op("log", new), swap)
    yield "a premise is missing", False, step("parts", op("mul", old, X), op("mul", new, Z), swap)
    yield "no premise", False, step("parts", op("exp", old), op("exp", Z))
    yield "about another part on the left", False, step("parts", op("exp", Z), op("exp", new), swap)
    yield "about other parts", False, step("parts", op("exp", old), op("exp", X), swap)
    yield "more parts", False, step("parts", op("add", X, Y), op("fma", X, Y, Z))
    condition = le(1, N)
    yield (
        "of a choice",
        True,
        step("parts", Choice(condition, old, at("x", N)), Choice(condition, new, at("x", N)), swap),
    )
    zero = read(at("x", N), at("x", 0), le(0, N), negation(condition))
    left = Choice(condition, X, at("x", N))
    yield "under the other condition", True, step("parts", left, Choice(condition, X, at("x", 0)), zero)
    yes = Choice(condition, at("x", N), X)
    yield "under the wrong condition", False, step("parts", yes, Choice(condition, at("x", 0), X), zero)
    yield "another condition", False, step("parts", left, Choice(le(2, N), X, at("x", N)))
    body = read(at("x", "i.1"), at("x", v("i.1") + 0))
    yield "of a sum", True, step("parts", SUM, SUM, body)
    yield "another extent", False, step("parts", SUM, over("i.1", N + 1, at("x", "i.1")))
    yield "another reduction", False, step("parts", SUM, over("i.1", N, at("x", "i.1"), "max"))
    yield "another variable", False, step("parts", SUM, over("j.1", N, at("x", "i.1")))
    first = read(at("x", "i.1"), at("x", 0), equal(v("i.1"), 0))
    yield (
        "the body under a hypothesis on the bound variable",
        False,
        step("parts", SUM, over("i.1", N, at("x", 0)), first, under=[equal(v("i.1"), 0)]),
    )
    outside = read(at("x", "i.1"), at("x", 0), inside(v("i.1"), 1))
    yield "the body in another range", False, step("parts", SUM, over("i.1", N, at("x", 0)), outside)


@group(le(0, N))
def cases() -> Iterator[tuple[str, bool, Step]]:
    choice = Choice(le(1, N), X, X)
    given = [step("chosen", choice, X, data=side, under=[c]) for side, c in ((True, le(1, N)), (False, lt(N, 1)))]
    yield "both", True, step("cases", choice, X, *given, data=(le(1, N), lt(N, 1)))
    yield "one only", False, step("cases", choice, X, given[0], data=(le(1, N),))
    yield "a case without premise", False, step("cases", choice, X, given[0], data=(le(1, N), lt(N, 1)))
    yield "none", False, step("cases", X, Y)
    yield "another conclusion", False, step("cases", choice, Y, *given, data=(le(1, N), lt(N, 1)))
    yield "absurd", True, step("absurd", X, Y, under=[lt(N, 0)])
    yield "not absurd", False, step("absurd", X, Y)


@group(le(0, N), le(1, M))
def indices() -> Iterator[tuple[str, bool, Step]]:
    i = v("i")
    ranged = [inside(i, M)]
    yield "a known quotient", True, step("known quotients", at("x", i // M), at("x", 0), data=(0,), under=ranged)
    yield "an unknown quotient", False, step("known quotients", at("x", i // M), at("x", 0), data=(0,))
    yield "another value", False, step("known quotients", at("x", i // M), at("x", -1), data=(-1,), under=ranged)
    yield "not what comes out", False, step("known quotients", at("x", i // M), at("x", 1), data=(0,), under=ranged)
    yield "nothing known", True, step("known quotients", at("x", i // M), at("x", i // M), data=(None,))
    yield (
        "in a number",
        True,
        step("known quotients", IndexValue(i // M), IndexValue(index(0)), data=(0,), under=ranged),
    )
    yield "equal indices", True, read(at("x", i), at("x", 0), equal(i, 0))
    yield "other indices", False, read(at("x", i), at("x", i + 1))
    yield "another input", False, read(at("x", i), at("y", i))
    yield "another number", False, step("equal indices", IndexValue(N), IndexValue(M))
    yield "another operator", False, step("equal indices", op("exp", X), op("log", X))
    yield "another body", False, step("equal indices", SUM, over("i.1", N, at("y", "i.1")))
    yield "an equal extent", True, step("equal indices", SUM, over("i.1", M, at("x", "i.1")), under=[equal(N, M)])
    yield "another extent", False, step("equal indices", SUM, over("i.1", M, at("x", "i.1")))
    yield "renamed", True, step("renamed", SUM, over("j.1", N, at("x", "j.1")))
    yield "renamed elsewhere", False, step("renamed", SUM, over("j.1", N, at("x", "j.2")))
    yield "renamed with another extent", False, step("renamed", SUM, over("j.1", M, at("x", "j.1")))
    yield "renamed with another operator", False, step("renamed", SUM, over("j.1", N, at("x", "j.1"), "max"))
    both_ = over("i.1", N, at("x", "i.1", "j.1"))
    yield "renamed to a variable that is there", False, step("renamed", both_, over("j.1", N, at("x", "j.1", "j.1")))
    nested = over("i.1", N, over("j.1", N, at("x", "i.1")))
    yield "captured", False, step("renamed", nested, over("j.1", N, over("j.1", N, at("x", "j.1"))))
    choice = Choice(le(1, N), X, Y)
    yield "chosen", True, step("chosen", choice, X, data=True, under=[le(3, N)])
    yield "the other one", True, step("chosen", choice, Y, data=False, under=[equal(N, 0)])
    yield "not decided", False, step("chosen", choice, X, data=True)
    yield "the wrong one", False, step("chosen", choice, Y, data=True, under=[le(3, N)])
    yield "no choice", False, step("chosen", X, X, data=True)


def _digits(body: Any, divisor: Index, high: str, low: str, extent: Index = N, kind: str = "sum") -> Step:
    left = over("i.1", extent, body(v("i.1")), kind)
    number_ = v(high) * divisor + v(low)
    right = over(high, extent // divisor, over(low, divisor, body(number_), kind), kind)
    return step("digits", left, right, data=(divisor, high, low))


def _x(i: Index) -> Element:
    return at("x", i)


@group(le(0, N), le(1, M))
def digits() -> Iterator[tuple[str, bool, Step]]:
    yield "of a multiple", True, _digits(_x, M, "h.1", "l.1", N * M)
    yield "of anything", False, _digits(_x, index(2), "h.1", "l.1")
    yield "one name", False, _digits(_x, M, "h.1", "h.1", N * M)
    yield "a name of the body", False, _digits(lambda i: at("x", i, "l.1"), M, "h.1", "l.1", N * M)
    yield "another name of the body", False, _digits(lambda i: at("x", i, "h.1"), M, "h.1", "l.1", N * M)
    wrong = _digits(_x, M, "h.1", "l.1", N * M)
    yield "another body", False, step("digits", wrong.left, SUM, data=wrong.data)
    yield "of no reduction", False, step("digits", X, X, data=wrong.data)
    yield "by the variable", False, _digits(_x, v("i.1") + 1, "h.1", "l.1", index(1))
    i = v("i.1")
    yield "by what is 1 in the range", False, _digits(_x, 1 + (i // 5) * (i // 5), "h.1", "l.1", index(3))


@group(le(0, N), le(1, M), notion=BITS)
def in_order() -> Iterator[tuple[str, bool, Step]]:
    yield "a maximum in digits", True, _digits(_x, M, "h.1", "l.1", N * M, "max")
    yield "a sum in digits", False, _digits(_x, M, "h.1", "l.1", N * M)
    yield "a sum", False, sums(op("add", X, Y), op("add", Y, X))
    yield "exchanged", True, step("exchanged", op("add", X, Y), op("add", Y, X))
    yield "exchanged and different", False, step("exchanged", op("add", X, Y), op("add", Y, Y))
    yield "a difference exchanged", False, step("exchanged", op("sub", X, Y), op("sub", Y, X))
    yield "to another operator", False, step("exchanged", op("add", X, Y), op("mul", Y, X))
    yield "zeros of two signs", False, step("same", number(0), number(-0.0))
    choice = Choice(le(1, N), X, Y)
    yield "a choice turned", True, step("sides of choices", choice, Choice(lt(N, 1), Y, X))
    yield "a choice exchanged", False, step("sides of choices", choice, Choice(le(1, N), Y, X))
    yield "another choice", False, step("sides of choices", choice, Choice(le(2, N), X, Y))
    yield "known by the solvers", True, step("sides of choices", choice, Choice(le(1, 2 * N), X, Y))
    turned = over("j.1", N, at("x", N - 1 - v("j.1")))
    yield "a sum turned", False, _turned(SUM, turned)
    yield "the minimum of what may be nothing", False, _lattice(EMPTY, op("maximum", Y, Z), _pairs(Y, Z))
    yield (
        "the minimum of what is something",
        True,
        _lattice(_some("i.1"), op("maximum", Y, Z), _pairs(Y, Z, _some), (_some("i.1"),)),
    )
    yield "a real law", False, step("exponential", op("exp", number(0)), number(1))
    yield "a real infinity", False, step("exponential of minus infinity", op("exp", number(-INF)), number(0))
    yield "a real summand", False, step("infinite summand", number(INF), number(INF))
    moved = op("add", op("mul", number(1), over("i.1", N, X, "max")), number(0))
    yield "a real factor", False, step("out of an extremum", over("i.1", N, X, "max"), moved, data=("max", ()))


@group(le(0, N), notion=SUMS)
def in_any_order() -> Iterator[tuple[str, bool, Step]]:
    yield "commutative", True, sums(op("add", X, Y), op("add", Y, X))
    yield "a sum of nothing", True, sums(op("add", X, NONE), X)
    yield "zero", False, sums(op("add", X, number(0)), X)
    yield "distributed", False, sums(op("mul", X, op("add", Y, Z)), op("add", op("mul", X, Y), op("mul", X, Z)))
    yield "negated", False, sums(op("sub", X, X), NONE)
    yield "counted", False, sums(over("i.1", N, X), op("mul", IndexValue(N), X), data=((), ("i.1",)))
    counted = op("add", op("mul", X, Y), over("i.1", N, X))
    yield "counted on both sides", False, sums(counted, counted, data=((), ("i.1",)))
    missing = step("bijection", op("add", X, Y), op("add", Y, Z), data=((X,), (Z,), ()))
    yield "nothing in common", False, missing
    yield "more than there is", False, step("bijection", X, Y, data=((op("add", X, Y),), (op("add", Y, X),), ()))


DIVIDED = Step("divisor of the left side", (), Y, None, (same(Y),))


@group(le(0, N))
def arithmetic() -> Iterator[tuple[str, bool, Step]]:
    yield "a ring", True, sums(op("mul", X, op("sub", Y, Z)), op("sub", op("mul", X, Y), op("mul", Z, X)))
    yield "another sum", False, sums(op("add", X, Y), op("add", X, Z))
    yield "another coefficient", False, sums(op("add", X, X), X)
    yield "another guard", False, sums(Choice(le(1, N), X, number(0)), Choice(le(2, N), X, number(0)))
    yield "another extent", False, sums(SUM, over("i.1", N + 1, at("x", "i.1")))
    yield "a finite product with 0", True, sums(op("mul", number(0), X), number(0))
    yield "a logarithm times 0", False, sums(op("mul", number(0), LOG), number(0))
    yield "a logarithm minus itself", False, sums(op("sub", LOG, LOG), number(0))
    yield "an infinity minus itself", False, sums(op("sub", number(INF), number(INF)), number(0))
    yield "an empty maximum minus itself", False, sums(op("sub", EMPTY, EMPTY), number(0))
    yield "a maximum minus itself", True, sums(op("sub", EMPTY, EMPTY), number(0), under=[le(1, N)])
    guarded = Choice(le(1, N), X, number(0))
    yield (
        "a logarithm under a guard",
        False,
        sums(op("mul", guarded, LOG), Choice(le(1, N), op("mul", X, LOG), number(0))),
    )
    yield (
        "a logarithm under a guard, first",
        False,
        sums(op("mul", LOG, guarded), Choice(le(1, N), op("mul", X, LOG), number(0))),
    )
    yield (
        "a finite factor under a guard",
        True,
        sums(op("mul", guarded, Z), Choice(le(1, N), op("mul", X, Z), number(0))),
    )
    yield (
        "an infinity distributed",
        False,
        sums(op("mul", EMPTY, op("add", X, Y)), op("add", op("mul", EMPTY, X), op("mul", EMPTY, Y))),
    )
    yield (
        "over an infinity",
        True,
        sums(op("mul", X, op("add", EMPTY, Y)), op("add", op("mul", EMPTY, X), op("mul", X, Y))),
    )
    yield "a quotient by itself", False, sums(op("div", X, X), number(1))
    yield "a quotient of positive numbers", True, sums(op("div", P, P), number(1))
    size_ = IndexValue(N)
    yield "a size over itself", False, sums(op("div", size_, size_), number(1))
    powers = over("i.1", N, op("exp", at("x", "i.1")))
    yield "a sum of nothing over itself", False, sums(op("div", powers, powers), number(1))
    twice = op("div", number(1), op("div", number(1), EMPTY))
    fact = Step("divisor of the left side", extended((), le(0, N)), EMPTY, None, (same(EMPTY),))
    yield "a double quotient of an infinity", False, sums(twice, EMPTY, fact)
    yield (
        "0 times a quotient by a sum of nothing",
        False,
        sums(op("mul", number(0), op("div", number(1), powers)), number(0)),
    )
    yield "a double quotient", False, sums(op("div", number(1), op("div", number(1), X)), X)
    yield "a quotient of sums", False, sums(op("div", guarded, Y), Choice(le(1, N), op("div", X, Y), number(0)))
    yield "a quotient of a product", True, sums(op("div", X, op("mul", Y, Z)), op("div", op("div", X, Z), Y))
    infinite = op("exp", EMPTY)
    yield "an exponential of nothing over itself", False, sums(op("div", infinite, infinite), number(1))
    yield "counted", True, sums(over("i.1", N, X), op("mul", IndexValue(N), X), data=((), ("i.1",)))
    yield (
        "counted fewer than nothing",
        False,
        sums(over("i.1", N - 3, X), op("mul", IndexValue(N - 3), X), data=((), ("i.1",))),
    )
    yield "counted without value", False, sums(over("i.1", N, LOG), op("mul", IndexValue(N), LOG), data=((), ("i.1",)))
    yield "counted though it depends", False, sums(SUM, op("mul", IndexValue(N), at("x", "i.1")), data=((), ("i.1",)))
    yield "not asked to count", False, sums(over("i.1", N, X), op("mul", IndexValue(N), X))
    two = over("i.1", 2, at("x", "i.1"))
    yield "written out", True, sums(two, op("add", at("x", 1), at("x", 0)), data=(("i.1",), ()))
    yield (
        "written out too far",
        False,
        sums(two, op("add", op("add", at("x", 1), at("x", 0)), at("x", 2)), data=(("i.1",), ())),
    )
    yield "written out for any size", False, sums(SUM, number(0), data=(("i.1",), ()))
    yield "a sum over fewer than nothing", True, sums(over("i.1", -1, LOG), number(0))
    shadow = over("i.1", N, over("i.1", N, at("x", "i.1")))
    yield "one variable twice", False, sums(shadow, shadow)
    yield "a divisor that is not the left side's", False, sums(op("div", Y, Y), number(1), DIVIDED)
    free = at("y", "i.1")
    yield (
        "a variable that is free and bound",
        False,
        sums(op("mul", SUM, free), over("i.1", N, op("mul", at("x", "i.1"), free))),
    )
    square = op("mul", SUM, SUM)
    yield "one variable in two factors", False, sums(square, square)


def _fact(left: Element, right: Element, fact: Step, *under: Condition) -> Step:
    """``left`` divides by the fact's element."""
    return sums(left, right, fact, under=under)


@group()
def divisors() -> Iterator[tuple[str, bool, Step]]:
    yield "of the left side", True, _fact(op("div", Y, Y), number(1), DIVIDED)
    yield "not of the left side", False, _fact(op("div", X, X), number(1), DIVIDED)
    product = op("mul", Y, Z)
    factor = Step("divisor of the left side", (), product, None, (same(product),))
    yield "a factor of one", True, _fact(op("div", op("mul", Y, X), product), op("div", X, Z), factor)
    summed = op("add", Y, Z)
    added = Step("divisor of the left side", (), summed, None, (same(summed),))
    yield (
        "a summand of one",
        False,
        _fact(op("mul", op("div", Y, summed), op("div", Y, Y)), op("div", Y, summed), added),
    )
    here = le(1, N)
    choice = Choice(here, op("div", Y, Y), number(1))
    under = Step("divisor of the left side", extended((), here), Y, None, (same(Y),))
    inner = sums(op("div", Y, Y), number(1), under, under=[here])
    yield "in its place", True, step("parts", choice, Choice(here, number(1), number(1)), inner)
    elsewhere = Choice(here, op("div", X, Y), op("div", Y, Y))
    wrong = Choice(here, op("div", X, Y), number(1))
    away = Step("divisor of the left side", extended((), negation(le(2, N))), Y, None, (same(Y),))
    last = Choice(le(2, N), op("div", X, Y), number(1))
    first = Choice(le(2, N), op("div", X, Y), op("mul", number(1), number(1)))
    del elsewhere, wrong
    yield (
        "in another place",
        False,
        step(
            "parts",
            Choice(le(2, N), op("div", X, Y), op("mul", Z, op("exp", Y))),
            Choice(le(2, N), op("div", X, Y), op("mul", Z, op("exp", op("mul", Y, op("div", Y, Y))))),
            step(
                "parts",
                op("mul", Z, op("exp", Y)),
                op("mul", Z, op("exp", op("mul", Y, op("div", Y, Y)))),
                step(
                    "parts",
                    op("exp", Y),
                    op("exp", op("mul", Y, op("div", Y, Y))),
                    sums(Y, op("mul", Y, op("div", Y, Y)), away, under=[negation(le(2, N))]),
                    under=[negation(le(2, N))],
                ),
                under=[negation(le(2, N))],
            ),
        ),
    )
    del last, first
    other = Step("divisor of the left side", (), X, None, (same(Y),))
    quotient = op("div", Z, Y)
    yield "of another element", False, _fact(quotient, op("mul", quotient, op("div", X, X)), other)
    infinite = Step("divisor of the left side", (), EMPTY, None, (same(EMPTY),))
    yield "an infinity", False, _fact(op("div", EMPTY, EMPTY), number(1), infinite)
    above = op("mul", op("div", X, EMPTY), op("div", number(1), op("div", number(1), EMPTY)))
    yield "an infinity below", False, _fact(above, op("mul", op("div", X, EMPTY), EMPTY), infinite)
    strict = Step("divisor of the left side", (), Y, None, (same(Y, [le(1, N)]),))
    yield "a premise with more hypotheses", False, _fact(op("div", Y, Y), number(1), strict)
    narrow = Step("divisor of the left side", extended((), le(1, N)), Y, None, (same(Y),))
    yield "a fact with more hypotheses", False, _fact(op("div", Y, Y), number(1), narrow)
    yield "another law", False, _fact(op("div", Y, Y), number(1), Step("same", (), Y, None, (same(Y),)))
    yield "no premise", False, _fact(op("div", Y, Y), number(1), Step("divisor of the left side", (), Y, None, ()))


@group(le(0, N))
def exponentials() -> Iterator[tuple[str, bool, Step]]:
    def exp(x: Element) -> Apply:
        return op("exp", x)

    both_ = exp(op("sub", X, Y))
    roots = ((X, 1), (Y, -1))
    yield "a difference", True, step("exponential", both_, op("div", exp(X), exp(Y)), data=roots)
    yield "another exponent", False, step("exponential", both_, exp(X), data=((X, 1),))
    yield "another product", False, step("exponential", both_, op("div", exp(X), exp(Z)), data=roots)
    yield "a sum", False, step("exponential", exp(op("add", X, Y)), op("add", exp(X), exp(Y)), data=((X, 1), (Y, 1)))
    right = op("div", exp(X), exp(Y))
    yield "plus something", False, step("exponential", both_, op("add", right, Z), data=roots)
    yield "under a guard", False, step("exponential", both_, Choice(le(1, N), right, number(0)), data=roots)
    yield "twice", False, step("exponential", both_, op("mul", number(2), op("div", exp(X), exp(Y))), data=roots)
    lost = exp(op("sub", X, EMPTY))
    parts_ = ((X, 1), (EMPTY, -1))
    yield "of a maximum of nothing", False, step("exponential", lost, op("div", exp(X), exp(EMPTY)), data=parts_)
    twice = step("exponential", exp(op("add", X, X)), exp(X), data=((X, 1), (X, 1)))
    yield "one exponential twice", False, twice
    yield (
        "of a logarithm",
        False,
        step("exponential", op("log", op("add", X, Y)), op("mul", exp(X), exp(Y)), data=((X, 1), (Y, 1))),
    )
    zero = ((X, 1), (EMPTY, 0))
    yield "to the power 0", False, step("exponential", exp(X), exp(X), data=zero)
    minus = number(-INF)
    yield "of -inf", True, step("exponential of minus infinity", exp(minus), number(0))
    yield "of inf", False, step("exponential of minus infinity", exp(number(INF)), number(0))
    yield "of -inf, not 0", False, step("exponential of minus infinity", exp(minus), number(1))
    inf = number(INF)
    yield "an infinity", True, step("infinite summand", op("add", X, op("mul", P, minus)), minus)
    yield "times any number", False, step("infinite summand", op("add", X, op("mul", Z, minus)), minus)
    yield "beside a logarithm", False, step("infinite summand", op("add", LOG, minus), minus)
    yield "of another sign", False, step("infinite summand", op("add", X, op("mul", number(-1), minus)), minus)
    yield "two infinities", False, step("infinite summand", op("add", inf, op("mul", P, minus)), inf)
    yield "no infinity", False, step("infinite summand", X, inf)
    yield "over an infinity", False, step("infinite summand", op("add", X, op("div", P, inf)), inf)
    yield "an infinity that may be absent", False, step("infinite summand", Choice(le(1, N), inf, number(0)), inf)


def _turned(left: Reduce, right: Reduce, **changes: Any) -> Step:
    """sum x[i] = sum x[n-1-j], by i = n - 1 - j."""
    i, j, n = left.variable, right.variable, N
    f, g = changes.get("f", {j: n - 1 - v(i)}), changes.get("g", {i: n - 1 - v(j)})
    image = at("x", n - 1 - f[j]) if j in f else at("x", n - 1 - v(j))
    premise = changes.get("premise", step("equal indices", at("x", i), image, under=[inside(v(i), n)]))
    pieces = changes.get("pieces", ((0, 0, f, g),))
    data = (changes.get("lefts", (left,)), changes.get("rights", (right,)), pieces)
    return step("bijection", left, right, *changes.get("premises", (premise,)), data=data)


@group(le(0, N))
def bijections() -> Iterator[tuple[str, bool, Step]]:
    right = over("j.1", N, at("x", N - 1 - v("j.1")))
    yield "turned", True, _turned(SUM, right)
    yield "another map", False, _turned(SUM, right, f={"j.1": v("i.1")})
    yield "another map back", False, _turned(SUM, right, g={"i.1": v("j.1")})
    yield "no piece", False, _turned(SUM, right, pieces=(), premises=())
    yield (
        "twice the same piece",
        False,
        _turned(
            SUM,
            right,
            pieces=2 * ((0, 0, {"j.1": N - 1 - v("i.1")}, {"i.1": N - 1 - v("j.1")}),),
            premises=2 * (read(at("x", "i.1"), at("x", v("i.1") + 0), inside(v("i.1"), N)),),
        ),
    )
    longer = over("j.1", N + 1, at("x", N - 1 - v("j.1")))
    yield "one more on the right", False, _turned(SUM, longer)
    shorter = over("j.1", N - 1, at("x", N - 1 - v("j.1")))
    yield "one less on the right", False, _turned(SUM, shorter)
    other = over("j.1", N, at("y", "j.1"))
    wrong = step("same", at("x", "i.1"), at("y", N - 1 - v("i.1")), under=[inside(v("i.1"), N)])
    yield "other summands", False, _turned(SUM, other, premise=wrong)
    ident = read(at("x", "i.1"), at("x", "i.1"))
    yield "summands of another place", False, _turned(SUM, other, premise=ident)
    yield "not the summands of the side", False, _turned(SUM, right, lefts=(over("i.1", N, at("z", "i.1")),))
    wide, free = over("i.1", N, at("x", "i.1", 0)), over("j.1", N, at("x", "j.1", "z.1"))
    yield (
        "a map of another variable",
        False,
        step(
            "bijection",
            wide,
            free,
            same(wide.body),
            data=((wide,), (free,), ((0, 0, {"j.1": v("i.1"), "z.1": index(0)}, {"i.1": v("j.1")}),)),
        ),
    )
    bound_, outside = over("i.1", N, X), Reduce("sum", "j.1", N, Choice(lt(v("j.1"), v("i.1")), X, number(0)))
    first = over("i.1", N, Choice(equal(v("i.1"), 0), number(0), X))
    paired = (first,), (outside,), ((0, 0, {"j.1": v("i.1") - 1}, {"i.1": v("j.1") + 1}),)
    yield "a variable that is free on the right", False, step("bijection", first, outside, same(X), data=paired)
    del bound_
    yield "nothing is mapped", False, step("bijection", X, Y, data=((), (), ()))
    p = v("j.1") * v("j.1") - v("j.1")
    one, two = over("i.1", 1, X), over("j.1", 2, X)
    either_ = ((0, 0, {"j.1": v("j.1")}, {"i.1": index(0)}), (0, 0, {"j.1": (p - 1) // (p + 1)}, {"i.1": index(0)}))
    yield (
        "maps that depend on the other side's variable",
        False,
        step("bijection", one, two, same(X), same(X), data=((one,), (two,), either_)),
    )
    back = ((0, 0, {"i.1": index(0)}, {"j.1": v("j.1")}), (0, 0, {"i.1": index(0)}, {"j.1": (p - 1) // (p + 1)}))
    yield (
        "maps back that depend on the other side's variable",
        False,
        step("bijection", two, one, same(X), same(X), data=((two,), (one,), back)),
    )
    j = v("j.1")
    spread = Reduce("sum", "j.1", (N - 1) * K + 1, Choice(both(equal(j // K * K, j), inside(j // K, N)), X, number(0)))
    dense = over("i.1", N, X)
    there, back = {"j.1": v("i.1") * K}, {"i.1": j // K}
    under = [le(1, N), le(1, K)]
    data = (dense,), (spread,), ((0, 0, there, back),)
    yield "a map back that divides", True, step("bijection", dense, spread, same(X), data=data, under=under)
    data = (spread,), (dense,), ((0, 0, back, there),)
    yield "a map that divides", True, step("bijection", spread, dense, same(X), data=data, under=under)
    yield "a map without its variable", False, _turned(SUM, right, f={}, g={"i.1": v("j.1")})
    yield (
        "a map with the other side's variable",
        False,
        step(
            "bijection",
            over("i.1", 1, at("x", "i.1")),
            over("j.1", 2, at("x", 0)),
            read(at("x", "i.1"), at("x", 0), inside(v("i.1"), 1)),
            data=(
                (over("i.1", 1, at("x", "i.1")),),
                (over("j.1", 2, at("x", 0)),),
                ((0, 0, {"j.1": v("j.1")}, {"i.1": index(0)}),),
            ),
        ),
    )
    yield (
        "a map back with the other side's variable",
        False,
        step(
            "bijection",
            over("i.1", 2, at("x", 0)),
            over("j.1", 1, at("x", 0)),
            same(at("x", 0)),
            data=(
                (over("i.1", 2, at("x", 0)),),
                (over("j.1", 1, at("x", 0)),),
                ((0, 0, {"j.1": index(0)}, {"i.1": v("i.1")}),),
            ),
        ),
    )
    # q = i // k is anything where k = 0, and then nothing is known of the map
    divided = {"j.1": (v("i.1") * K) // K}
    yield "a map that cancels a divisor", True, step("bijection", SUM, SUM, data=((), (), ()))
    del divided
    yield (
        "common summands",
        True,
        step(
            "bijection",
            op("add", SUM, X),
            op("add", X, right),
            _turned(SUM, right).premises[0],
            data=_turned(SUM, right).data,
        ),
    )
    yield (
        "a common logarithm that moved over",
        False,
        step("bijection", op("sub", X, LOG), Y, same(X), data=((X,), (op("add", Y, LOG),), ((0, 0, {}, {}),))),
    )
    moved = step("bijection", op("sub", X, Z), op("sub", X, Z), data=((), (), ()))
    yield "what is common is not mapped", True, moved
    zero = over("i.1", N, number(0))
    yield (
        "finite summands moved over",
        True,
        step(
            "bijection",
            op("sub", X, Y),
            number(0),
            step("absurd", X, Y, under=[le(0, N), lt(N, 0)]),
            data=((X,), (Y,), ((0, 0, {}, {}),)),
            under=[lt(N, 0)],
        ),
    )
    yield (
        "a logarithm moved over",
        False,
        step("bijection", op("sub", LOG, LOG), number(0), same(LOG), data=((LOG,), (LOG,), ((0, 0, {}, {}),))),
    )
    yield (
        "an empty maximum moved over",
        False,
        step(
            "bijection",
            op("sub", EMPTY, over("f.1", N, at("x", "f.1"), "max")),
            number(0),
            step(
                "covering",
                EMPTY,
                over("f.1", N, at("x", "f.1"), "max"),
                step("equal indices", at("x", "e.1"), at("x", "e.1"), under=[inside(v("e.1"), N)]),
                step("equal indices", at("x", "f.1"), at("x", "f.1"), under=[inside(v("f.1"), N)]),
                data=(
                    "max",
                    (EMPTY,),
                    (over("f.1", N, at("x", "f.1"), "max"),),
                    ((0, 0, 0, {"f.1": v("e.1")}), (1, 0, 0, {"e.1": v("f.1")})),
                ),
            ),
            data=((EMPTY,), (over("f.1", N, at("x", "f.1"), "max"),), ((0, 0, {}, {}),)),
        ),
    )
    del zero


def _some(name: str) -> Reduce:
    return over(name, 3, at("x", name), "max")


def _lattice(left: Element, right: Apply, pairs: Element, members: tuple[Element, ...] = (EMPTY,)) -> Step:
    return step("minimum of maxima", op("minimum", left, right), pairs, data=(members, right.args))


def _pairs(a: Element, b: Element, members: Any = None) -> Element:
    """The maximum over all pairs with a maximum over one variable."""
    name, extent = ("i.1", index(3)) if members else ("e.1", N)
    return op("maximum", *(over(name, extent, op("minimum", at("x", name), e), "max") for e in (a, b)))


@group(le(0, N))
def extrema() -> Iterator[tuple[str, bool, Step]]:
    def alike(
        left: Element, right: Element, needless: tuple[str, ...] = (), kind: str = "max", under: Any = ()
    ) -> Step:
        return step("same candidates", left, right, data=(kind, needless), under=under)

    joined = op("maximum", X, op("maximum", Y, X))
    yield "joined", True, alike(joined, op("maximum", Y, X))
    yield "one more", False, alike(joined, op("maximum", op("maximum", Y, X), Z))
    yield "one less", False, alike(joined, X)
    yield "nothing and -inf", True, alike(op("maximum", X, number(-INF)), X)
    yield "nothing and inf", False, alike(op("maximum", X, number(INF)), X)
    yield "a minimum", False, alike(op("minimum", X, number(-INF)), X)
    yield "a sum", False, alike(op("add", X, X), X, kind="sum")
    yield "another guard", False, alike(Choice(le(1, N), X, Y), Choice(le(2, N), X, Y))
    needless = over("i.1", N, X, "max")
    yield "needless", True, alike(needless, X, ("i.1",), under=[le(1, N)])
    yield "needless and maybe empty", False, alike(needless, X, ("i.1",))
    yield "needed", False, alike(EMPTY, at("x", "e.1"), ("e.1",), under=[le(1, N)])
    yield "not said to be needless", False, alike(needless, X, under=[le(1, N)])
    yield "empty", True, alike(over("i.1", 0, X, "max"), number(-INF))

    def cover(left: Element, right: Element, *maps: tuple[Any, Step], kind: str = "max", **members: Any) -> Step:
        data = (kind, members.get("lefts", (left,)), members.get("rights", (right,)), tuple(m for m, _ in maps))
        return step("covering", left, right, *(s for _, s in maps), data=data)

    turned = over("j.1", N, at("x", N - 1 - v("j.1")), "max")
    there = (0, 0, 0, {"j.1": N - 1 - v("e.1")}), read(at("x", "e.1"), at("x", "e.1"))
    back = (1, 0, 0, {"e.1": N - 1 - v("j.1")}), read(turned.body, turned.body)  # type: ignore[arg-type]
    yield "covered", True, cover(EMPTY, turned, there, back)
    yield "covered on one side", False, cover(EMPTY, turned, there)
    yield "covered on the other side", False, cover(EMPTY, turned, back)
    longer = over("j.1", N + 1, at("x", "j.1"), "max")
    into = (0, 0, 0, {"j.1": v("e.1")}), read(at("x", "e.1"), at("x", "e.1"))
    out = (1, 0, 0, {"e.1": v("j.1")}), read(at("x", "j.1"), at("x", "j.1"))
    yield "one more candidate", False, cover(EMPTY, longer, into, out)
    yield (
        "other candidates",
        False,
        cover(EMPTY, over("j.1", N, at("y", "j.1"), "max"), (into[0], same(at("x", "e.1"))), out),
    )
    yield "members of another element", False, cover(EMPTY, X, lefts=(X,))
    yield "members of another element on the right", False, cover(X, EMPTY, rights=(X,))
    yield "of a sum", False, cover(SUM, X, kind="sum")
    j = v("j.1")
    sparse = Reduce(
        "max",
        "j.1",
        (N - 1) * K + 1,
        Choice(both(equal(j // K * K, j), inside(j // K, N)), at("x", j // K), number(-INF)),
    )
    places = (0, 0, 0, {"j.1": v("e.1") * K}), (1, 0, 0, {"e.1": j // K})
    reads = [read(at("x", i), at("x", i)) for i in ("e.1", j // K)]
    data = ("max", (EMPTY,), (sparse,), places)
    yield "a map that divides", True, step("covering", EMPTY, sparse, *reads, data=data, under=[le(1, N), le(1, K)])
    yield "a map without its variable", False, cover(EMPTY, turned, ((0, 0, 0, {}), there[1]), back)
    yield "the minimum of maxima", False, _lattice(EMPTY, op("maximum", Y, LOG), _pairs(Y, LOG))
    lattice = _lattice(EMPTY, op("maximum", Y, Z), _pairs(Y, Z))
    yield "the minimum of finite numbers", True, lattice
    yield "pairs are missing", False, step("minimum of maxima", lattice.left, _pairs(Y, Y), data=lattice.data)
    yield "members are missing", False, step("minimum of maxima", lattice.left, _pairs(Y, Y), data=((EMPTY,), (Y,)))
    yield (
        "no minimum",
        False,
        step("minimum of maxima", op("maximum", EMPTY, op("maximum", Y, Z)), _pairs(Y, Z), data=lattice.data),
    )
    twice = op("minimum", EMPTY, EMPTY)
    yield (
        "the minimum of one maximum with itself",
        False,
        step(
            "minimum of maxima",
            twice,
            over("e.1", N, op("minimum", at("x", "e.1"), at("x", "e.1")), "max"),
            data=((EMPTY,), (EMPTY,)),
        ),
    )
    free = op("minimum", EMPTY, at("x", "e.1"))
    captured = over("e.1", N, op("minimum", at("x", "e.1"), at("x", "e.1")), "max")
    yield "a variable is captured", False, step("minimum of maxima", free, captured, data=((EMPTY,), (at("x", "e.1"),)))


@group(le(0, N))
def out_of_extrema() -> Iterator[tuple[str, bool, Step]]:
    def moved(
        factor: Element, summand: Element, *body: Element, members: Any = None, right: Element | None = None
    ) -> Step:
        left = over("e.1", N, op("add", op("mul", factor, body[0]), summand), "max")
        inner = over("e.1", N, body[0], "max")
        outside = op("add", op("mul", factor, inner), summand)
        return step("out of an extremum", left, right or outside, data=("max", members or ((left, inner),)))

    x = at("x", "e.1")
    yield "positive", True, moved(P, Y, x)
    yield "of any sign", False, moved(Z, Y, x)
    yield "negative", False, moved(number(-2), Y, x)
    yield "plus infinity", False, moved(P, number(INF), x)
    yield "plus a logarithm", False, moved(P, LOG, x)
    yield "a factor that depends", False, moved(op("exp", at("y", "e.1")), Y, x)
    yield "a summand that depends", False, moved(P, at("y", "e.1"), x)
    good = moved(P, Y, x)
    yield "a difference", False, moved(P, Y, x, right=op("sub", op("mul", P, EMPTY), Y))
    yield "a quotient", False, moved(P, Y, x, right=op("add", op("div", P, EMPTY), Y))
    yield "no product", False, moved(P, Y, x, right=op("mul", P, EMPTY))
    other = over("e.1", N, at("y", "e.1"), "max")
    yield (
        "other candidates",
        False,
        step("out of an extremum", good.left, op("add", op("mul", P, other), Y), data=("max", ((good.left, other),))),
    )
    yield "members of another extremum", False, step("out of an extremum", Z, good.right, data=good.data)
    yield (
        "members of another inner extremum",
        False,
        step("out of an extremum", good.left, op("add", op("mul", P, Z), Y), data=good.data),
    )
    shorter = over("e.1", N - 1, x, "max")
    yield (
        "other points",
        False,
        step(
            "out of an extremum", good.left, op("add", op("mul", P, shorter), Y), data=("max", ((good.left, shorter),))
        ),
    )
    yield (
        "a sum",
        False,
        step("out of an extremum", SUM, op("add", op("mul", number(1), SUM), number(0)), data=("sum", ((SUM, SUM),))),
    )


CASES = [
    Case(f"{cases.__name__}: {name}", right, last, premise, notion)
    for cases, premise, notion in _GROUPS
    for name, right, last in cases()
]


@dataclass(frozen=True)
class RuleCase:
    """A derivation that two tensors are equal, over the reals."""

    name: str
    right: bool
    sides: tuple[Tensor, Tensor]
    derivation: Derivation
    premise: tuple[Condition, ...] = (le(0, N), le(0, M))


def _like(x: Tensor, *dimensions: Index, requires: Sequence[Condition] = ()) -> Tensor:
    """The elements of a tensor under another shape or other conditions."""
    return make("like", [x], dimensions or x.shape, lambda at, of, names: of[0](at), requires=requires)


def _rule_cases() -> Iterator[RuleCase]:
    x, y = input_("x", N), input_("y", N)
    here, there = at("x", "o.1"), at("y", "o.1")
    plain = Derivation((), same(here))
    yield RuleCase("a tensor and itself", True, (x, x), plain)
    yield RuleCase("another rank", False, (x, input_("x", N, 1)), plain)
    yield RuleCase("another shape", False, (x, _like(x, N + 1)), plain)
    yield RuleCase("what is well formed at some sizes", False, (x, _like(x, requires=[le(5, N)])), plain)
    yield RuleCase("what is well formed", True, (x, _like(x, requires=[le(0, N)])), plain)
    yield RuleCase("another left side", False, (y, x), plain)
    yield RuleCase("another right side", False, (x, y), plain)
    nowhere = Derivation((), step("absurd", here, there, under=[le(0, N), lt(N, 0)]))
    yield RuleCase("under more hypotheses", False, (x, y), nowhere)
    paired = where(lambda i: lt(i, N // 2 * 2), x, fill(0, N))
    high, low = v("o.2"), v("o.3")
    body = at("x", high * 2 + low)
    choice = Choice(lt(high * 2 + low, N // 2 * 2), body, number(0))
    ranges = [le(0, N), inside(high, N // 2), inside(low, 2)]
    digits_ = Derivation((("o.1", index(2), "o.2", "o.3"),), step("chosen", choice, body, data=True, under=ranges))
    yield RuleCase("pairs of any number of elements", False, (paired, x), digits_)
    even = input_("x", N * 2), where(lambda i: lt(i, N * 2), input_("x", N * 2), fill(0, N * 2))
    all_ = Choice(lt(high * 2 + low, N * 2), body, number(0))
    ranges = [inside(high, N), inside(low, 2)]
    both_ = Derivation((("o.1", index(2), "o.2", "o.3"),), step("chosen", all_, body, data=True, under=ranges))
    yield RuleCase("pairs of an even number of elements", True, even[::-1], both_)
    matrix = input_("x", N * 2, M)
    diagonal = where(lambda i, j: equal(i // 2, j), matrix, fill(0, N * 2, M))
    body = at("x", high * 2 + v("o.4"), "o.2")
    chosen = Choice(equal((high * 2 + v("o.4")) // 2, high), body, number(0))
    last = step("chosen", chosen, body, data=True, under=[inside(v("o.4"), 2)])
    yield RuleCase(
        "a digit that is another subscript",
        False,
        (diagonal, matrix),
        Derivation((("o.1", index(2), "o.2", "o.4"),), last),
    )
    sized = Derivation((("o.1", index(2), "n", "o.3"),), same(at("x", N * 2 + v("o.3"))))
    yield RuleCase("a digit that is a size", False, (input_("x", N * 2), input_("x", N * 2)), sized)
    rows = reduce("sum", matrix, [1])
    corner = reduce("sum", where(lambda i, j: equal(i // 2, j), matrix, matrix), [1])
    inner = over("r.2", M, at("x", v("r.2") * 2 + v("o.4"), "r.2"))
    yield RuleCase(
        "a digit that is bound inside",
        False,
        (rows, corner),
        Derivation((("o.1", index(2), "r.2", "o.4"),), same(inner)),
    )
    unknown = Derivation((("o.9", index(2), "o.2", "o.3"),), same(here))
    yield RuleCase("digits of no subscript", False, (x, x), unknown)


RULE_CASES = list(_rule_cases())
