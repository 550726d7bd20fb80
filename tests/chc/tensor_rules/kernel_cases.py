"""Steps that the kernel must accept, and forged ones that it must reject: for each law, and each of its conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from chc.tensor_rules.kernel.replay import Derivation
from chc.tensor_rules.kernel.steps import Step
from chc.tensor_rules.obligations import extended
from ir_semantics.tensors.conditions import Condition, both, either, equal, inside, le, lt, negation
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, Quotient, index, size
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
    return step("chain", left, left, under=under)


def read(left: Read, right: Read, *under: Condition) -> Step:
    return step("indices", left, right, under=under)


_Group = Callable[[], Iterator[tuple[str, bool, Step]]]
_GROUPS: list[tuple[_Group, tuple[Condition, ...], tuple[bool, bool]]] = []


def group(*premise: Condition, notion: tuple[bool, bool] = REALS) -> Callable[[_Group], _Group]:
    """Registers cases: each a name, whether it is right, and the last step."""

    def register(cases: _Group) -> _Group:
        _GROUPS.append((cases, premise, notion))
        return cases

    return register


def sums(left: Element, right: Element, *facts: Step, under: Any = ()) -> Step:
    return step("sums of products", left, right, *facts, under=under)


@group(le(0, N))
def equality() -> Iterator[tuple[str, bool, Step]]:
    yield "same", True, same(X)
    yield "not the same", False, step("chain", X, Y)
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
    yield "a premise that is wrong", False, step("chain", X, Y, step("chain", X, Y), data=(False,))


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
    given = [step("sides of choices", choice, X, under=[c]) for c in (le(1, N), lt(N, 1))]
    yield "both", True, step("cases", choice, X, *given, data=(le(1, N), lt(N, 1)))
    yield "one only", False, step("cases", choice, X, given[0], data=(le(1, N),))
    yield "a case without premise", False, step("cases", choice, X, given[0], data=(le(1, N), lt(N, 1)))
    yield "none", False, step("cases", X, Y)
    yield "another conclusion", False, step("cases", choice, Y, *given, data=(le(1, N), lt(N, 1)))
    yield "absurd", True, step("cases", X, Y, under=[lt(N, 0)])
    yield "not absurd", False, step("cases", X, Y)


@group(le(0, N), le(1, M))
def indices() -> Iterator[tuple[str, bool, Step]]:
    i = v("i")
    ranged = [inside(i, M)]

    def known(
        left: Element, right: Element, q: int, under: Any = ranged, a: Index = i, b: Index = M, c: int = 1
    ) -> Step:
        return step("indices", left, right, data=((a, b, index(q), index(c)),), under=under)

    yield "a known quotient", True, known(at("x", i // M), at("x", 0), 0)
    yield "an unknown quotient", False, known(at("x", i // M), at("x", 0), 0, ())
    yield "another value", False, known(at("x", i // M), at("x", -1), -1)
    yield "not what comes out", False, known(at("x", i // M), at("x", 1), 0)
    yield "nothing known", True, step("indices", at("x", i // M), at("x", i // M))
    yield "in a number", True, known(IndexValue(i // M), IndexValue(index(0)), 0)
    yield "by one factor", True, known(at("x", (i + 3 * M) // (M * 2)), at("x", 1), 3, ranged, i + 3 * M, M, 2)
    wrong = known(at("x", (i + 3 * M) // (M * 2)), at("x", 1), 2, ranged, i + 3 * M, M, 2)
    yield "by one factor and another quotient", False, wrong
    condition = equal(i // M, 0)
    choice = Choice(condition, X, Y)
    yield "in a condition", True, known(choice, Choice(equal(index(0), 0), X, Y), 0)
    yield "in a condition and other sides", False, known(choice, Choice(equal(index(0), 0), Y, X), 0)
    yield "another condition", False, step("indices", choice, Choice(equal(i // M, 1), X, Y))
    yield "equal indices", True, read(at("x", i), at("x", 0), equal(i, 0))
    yield "other indices", False, read(at("x", i), at("x", i + 1))
    yield "another input", False, read(at("x", i), at("y", i))
    yield "another number", False, step("indices", IndexValue(N), IndexValue(M))
    yield "another operator", False, step("indices", op("exp", X), op("log", X))
    yield "another body", False, step("indices", SUM, over("i.1", N, at("y", "i.1")))
    yield "an equal extent", True, step("indices", SUM, over("i.1", M, at("x", "i.1")), under=[equal(N, M)])
    yield "another extent", False, step("indices", SUM, over("i.1", M, at("x", "i.1")))
    yield "renamed", True, step("renamed", SUM, over("j.1", N, at("x", "j.1")))
    yield "renamed elsewhere", False, step("renamed", SUM, over("j.1", N, at("x", "j.2")))
    yield "renamed with another extent", False, step("renamed", SUM, over("j.1", M, at("x", "j.1")))
    yield "renamed with another operator", False, step("renamed", SUM, over("j.1", N, at("x", "j.1"), "max"))
    both_ = over("i.1", N, at("x", "i.1", "j.1"))
    yield "renamed to a variable that is there", False, step("renamed", both_, over("j.1", N, at("x", "j.1", "j.1")))
    nested = over("i.1", N, over("j.1", N, at("x", "i.1")))
    yield "captured", False, step("renamed", nested, over("j.1", N, over("j.1", N, at("x", "j.1"))))
    choice = Choice(le(1, N), X, Y)

    def chosen(side: Element, holds: Condition, *under: Condition) -> Step:
        there = step("sides of choices", choice, side, under=[*under, holds])
        return step("cases", choice, side, there, data=(holds,), under=under)

    yield "chosen", True, chosen(X, le(1, N), le(3, N))
    yield "the other one", True, chosen(Y, lt(N, 1), equal(N, 0))
    yield "not decided", False, chosen(X, le(1, N))
    yield "the wrong one", False, chosen(Y, le(1, N), le(3, N))


def _digits(divisor: Index, extent: Index = N, kind: str = "sum", **changes: Any) -> Step:
    """A reduction of x over the range of a number as one over the ranges of its digits."""
    left, i, number_ = over("i.1", extent, at("x", "i.1"), kind), v("i.1"), v("h.1") * divisor + v("l.1")
    right = over("h.1", extent // divisor, over("l.1", divisor, at("x", number_), kind), kind)
    there, back = {"h.1": i // divisor, "l.1": i % divisor} | changes, {"i.1": number_}
    if kind == "sum":
        return step("bijection", left, right, same(at("x", "i.1")), data=((0, 0, there, back),))
    reads = same(at("x", "i.1")), same(at("x", number_))
    return step("covering", left, right, *reads, data=(kind, ((0, 0, 0, there), (1, 0, 0, back))))


@group(le(0, N), le(1, M))
def digits() -> Iterator[tuple[str, bool, Step]]:
    yield "of a multiple", True, _digits(M, N * M)
    yield "of anything", False, _digits(index(2))
    yield "by another digit", False, _digits(M, N * M, **{"l.1": v("i.1") // M})
    i = v("i.1")
    yield "by what is 1 in the range", False, _digits(1 + (i // 5) * (i // 5), index(3))


@group(le(0, N), le(1, M), notion=BITS)
def in_order() -> Iterator[tuple[str, bool, Step]]:
    yield "a maximum in digits", True, _digits(M, N * M, "max")
    yield "a sum in digits", False, _digits(M, N * M)
    yield "a sum", False, sums(op("add", X, Y), op("add", Y, X))
    yield "exchanged", True, step("exchanged", op("add", X, Y), op("add", Y, X))
    yield "exchanged and different", False, step("exchanged", op("add", X, Y), op("add", Y, Y))
    yield "a difference exchanged", False, step("exchanged", op("sub", X, Y), op("sub", Y, X))
    yield "to another operator", False, step("exchanged", op("add", X, Y), op("mul", Y, X))
    yield "zeros of two signs", False, step("chain", number(0), number(-0.0))
    choice = Choice(le(1, N), X, Y)
    yield "a choice turned", True, step("sides of choices", choice, Choice(lt(N, 1), Y, X))
    yield "a choice exchanged", False, step("sides of choices", choice, Choice(le(1, N), Y, X))
    yield "another choice", False, step("sides of choices", choice, Choice(le(2, N), X, Y))
    yield "known by the solvers", True, step("sides of choices", choice, Choice(le(1, 2 * N), X, Y))
    turned = over("j.1", N, at("x", N - 1 - v("j.1")))
    yield "a sum turned", False, _turned(SUM, turned)
    yield "the minimum of what may be nothing", False, _minimum(EMPTY, Y)
    yield "the minimum of what is something", True, _minimum(over("i.1", 3, at("x", "i.1"), "max"), Y)
    yield "a real law", False, step("exponential", op("exp", number(0)), number(1))
    yield "a real infinity", False, step("exponential", op("exp", number(-INF)), number(0))
    yield "a real hyperbolic tangent", False, step("exponential", op("tanh", number(0)), number(0))
    yield "a real summand", False, step("infinity", op("neg", number(INF)), number(-INF))
    factor = op("mul", EMPTY, number(1))
    yield "a real factor", False, _monotone(factor)
    yield "a real summand in an extremum", False, _monotone(op("add", EMPTY, number(1)))
    yield "a real count", False, step("counted", over("i.1", N, X), op("mul", IndexValue(N), X))


@group(le(0, N), notion=SUMS)
def in_any_order() -> Iterator[tuple[str, bool, Step]]:
    yield "commutative", True, sums(op("add", X, Y), op("add", Y, X))
    yield "a sum of nothing", True, sums(op("add", X, NONE), X)
    yield "zero", False, sums(op("add", X, number(0)), X)
    yield "distributed", False, sums(op("mul", X, op("add", Y, Z)), op("add", op("mul", X, Y), op("mul", X, Z)))
    yield "negated", False, sums(op("sub", X, X), NONE)
    yield "a difference", False, sums(op("sub", op("add", X, Y), Z), op("add", X, op("sub", Y, Z)))
    yield "a negated sum", False, sums(op("neg", op("add", X, Y)), op("add", op("neg", X), op("neg", Y)))
    yield "a product", False, sums(op("mul", op("mul", X, Y), Z), op("mul", X, op("mul", Y, Z)))
    yield "a product and a sum", False, sums(op("fma", X, Y, Z), op("add", op("fma", X, Y, NONE), Z))
    yield "a quotient", False, sums(op("div", op("div", X, Y), Z), op("div", op("div", X, Z), Y))
    yield "a number", False, sums(IndexValue(N + M), op("add", IndexValue(N), IndexValue(M)))
    yield "counted", False, step("counted", over("i.1", N, X), op("mul", IndexValue(N), X))
    yield "nothing in common", False, step("bijection", op("add", X, Y), op("add", Y, Z))
    twice = ((0, 0, {}, {}), (1, 0, {}, {}))
    yield "more than there is", False, step("bijection", op("add", X, X), X, same(X), same(X), data=twice)
    yield (
        "pairs exchanged",
        True,
        step("bijection", op("add", X, Y), op("add", Y, X), same(X), same(Y), data=((0, 1, {}, {}), (1, 0, {}, {}))),
    )


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
    yield "a sum of two is not one of nothing", False, sums(over("i.1", 2, at("x", "i.1")), number(0))
    yield "0 times exp of a quotient", False, sums(op("mul", number(0), op("exp", op("div", X, Y))), number(0))
    yield (
        "0 times exp of an infinite quotient",
        False,
        sums(op("mul", number(0), op("exp", op("div", LOG, P))), number(0)),
    )
    yield "0 times the size of a logarithm", False, sums(op("mul", number(0), op("abs", LOG)), number(0))
    yield "a quotient by a sum", False, sums(op("div", X, op("add", Y, Z)), op("div", op("div", X, Y), Z))
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
    yield "counted by arithmetic", False, sums(over("i.1", N, X), op("mul", IndexValue(N), X))

    def counted(n: Index, body: Element, product: Element | None = None) -> Step:
        return step("counted", over("i.1", n, body), product or op("mul", IndexValue(n), body))

    yield "counted", True, counted(N, X)
    yield "counted fewer than nothing", False, counted(N - 3, X)
    yield "counted without value", False, counted(N, LOG)
    yield "counted though it depends", False, counted(N, at("x", "i.1"))
    yield "counted and another number", False, counted(N, X, op("mul", IndexValue(N + 1), X))
    yield "counted a maximum", False, step("counted", over("i.1", N, X, "max"), op("mul", IndexValue(N), X))
    two = over("i.1", 2, at("x", "i.1"))
    copies = [read(at("x", "i.1"), at("x", j), equal(j, v("i.1"))) for j in range(3)]

    def written_out(*at_: int) -> Step:
        right = at("x", at_[0])
        for j in at_[1:]:
            right = op("add", right, at("x", j))  # type: ignore[assignment]
        data = tuple((0, k, {}, {"i.1": index(j)}) for k, j in enumerate(at_))
        return step("bijection", two, right, *(copies[j] for j in at_), data=data)

    yield "written out", True, written_out(1, 0)
    yield "written out too far", False, written_out(1, 0, 2)
    yield "written out in part", False, written_out(1)
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
    for name, right, of, stated in (
        ("a root", True, X, X),
        ("another root", False, X, Y),
        ("a root of an infinity", False, over("e.2", N, at("x", "e.2"), "min"), None),
    ):
        root, known = op("sqrt", of), op("sqrt", of if stated is None else stated)
        fact = Step("divisor of the left side", (), known, None, (same(known),))
        above = op("add", op("div", X, known), op("div", op("mul", root, Y), root))
        yield name, right, _fact(above, op("add", op("div", X, known), Y), fact)
    strict = Step("divisor of the left side", (), Y, None, (same(Y, [le(1, N)]),))
    yield "a premise with more hypotheses", False, _fact(op("div", Y, Y), number(1), strict)
    narrow = Step("divisor of the left side", extended((), le(1, N)), Y, None, (same(Y),))
    yield "a fact with more hypotheses", False, _fact(op("div", Y, Y), number(1), narrow)
    yield "another law", False, _fact(op("div", Y, Y), number(1), Step("chain", (), Y, None, (same(Y),)))
    yield "no premise", False, _fact(op("div", Y, Y), number(1), Step("divisor of the left side", (), Y, None, ()))


@group(le(0, N))
def exponentials() -> Iterator[tuple[str, bool, Step]]:
    def exp(x: Element) -> Apply:
        return op("exp", x)

    def apart(op_: str, a: Element, b: Element, right: Element | None = None) -> Step:
        return step("exponential", exp(op(op_, a, b)), right or op({"add": "mul", "sub": "div"}[op_], exp(a), exp(b)))

    yield "a sum", True, apart("add", X, EMPTY)
    yield "a difference", True, apart("sub", EMPTY, Y)
    yield "a difference of a maximum of nothing", False, apart("sub", X, EMPTY)
    yield "another exponent", False, apart("sub", X, Y, exp(X))
    yield "another product", False, apart("sub", X, Y, op("mul", exp(X), exp(Y)))
    yield "a product", False, step("exponential", exp(op("mul", X, Y)), op("mul", exp(X), exp(Y)))
    yield "of a logarithm", False, step("exponential", op("log", op("add", X, Y)), op("mul", exp(X), exp(Y)))
    minus, inf = number(-INF), number(INF)
    yield "of -inf", True, step("exponential", exp(minus), number(0))
    yield "of 0", True, step("exponential", exp(number(0)), number(1))
    yield "of inf", False, step("exponential", exp(inf), number(0))
    yield "of 2", False, step("exponential", exp(number(2)), number(0))
    yield "of -inf, not 0", False, step("exponential", exp(minus), number(1))
    yield "tanh of 0", True, step("exponential", op("tanh", number(0)), number(0))
    yield "tanh of 0, not 0", False, step("exponential", op("tanh", number(0)), number(1))
    yield "tanh of 1", False, step("exponential", op("tanh", number(1)), number(0))
    yield "an infinity plus a number", True, step("infinity", op("add", X, minus), minus)
    yield "a multiple of an infinity", True, step("infinity", op("mul", P, minus), minus)
    yield "the other infinity", True, step("infinity", op("neg", inf), minus)
    yield "the same infinity", False, step("infinity", op("neg", inf), inf)
    yield "no infinity", False, step("infinity", op("neg", number(2)), number(-2))
    yield "times any number", False, step("infinity", op("mul", Z, minus), minus)
    yield "beside a logarithm", False, step("infinity", op("add", LOG, minus), minus)
    yield "of another sign", False, step("infinity", op("add", X, minus), inf)
    yield "plus another infinity", False, step("infinity", op("add", inf, minus), minus)
    yield "minus an infinity", False, step("infinity", op("sub", X, inf), inf)
    yield "plus a number", False, step("infinity", op("add", X, number(2)), number(2))


def _turned(left: Reduce, right: Reduce, **changes: Any) -> Step:
    """sum x[i] = sum x[n-1-j], by i = n - 1 - j."""
    i, j, n = left.variable, right.variable, N
    f, g = changes.get("f", {j: n - 1 - v(i)}), changes.get("g", {i: n - 1 - v(j)})
    image = at("x", n - 1 - f[j]) if j in f else at("x", n - 1 - v(j))
    premise = changes.get("premise", step("indices", at("x", i), image, under=[inside(v(i), n)]))
    pieces = changes.get("pieces", ((0, 0, f, g),))
    return step("bijection", left, right, *changes.get("premises", (premise,)), data=pieces)


def _divided_by_nothing() -> Step:
    """(K*i) // K is i where K is positive; at K = 0 two such steps would make x[0] and x[1] equal."""
    none, i, j = [equal(K, 0)], v("i.1"), v("j.1")
    divided = over("j.1", 1, at("x", j // K))

    def to_divided(shift: int) -> list[Step]:
        alone, summed = at("x", shift), over("i.1", 1, at("x", i + shift))
        back = (0, 0, {"j.1": (i + shift) * K}, {"i.1": index(0)})
        return [
            step("bijection", alone, summed, same(alone, none), data=((0, 0, {"i.1": index(0)}, {}),), under=none),
            step("bijection", summed, divided, same(summed.body, none), data=(back,), under=none),
        ]

    steps = *to_divided(0), *to_divided(1)[::-1]
    return step("chain", at("x", 0), at("x", 1), *steps, data=(False, False, True, True), under=none)


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
    wrong = step("chain", at("x", "i.1"), at("y", N - 1 - v("i.1")), under=[inside(v("i.1"), N)])
    yield "other summands", False, _turned(SUM, other, premise=wrong)
    ident = read(at("x", "i.1"), at("x", "i.1"))
    yield "summands of another place", False, _turned(SUM, other, premise=ident)
    wide, free = over("i.1", N, at("x", "i.1", 0)), over("j.1", N, at("x", "j.1", "z.1"))
    yield (
        "a map of another variable",
        False,
        step(
            "bijection",
            wide,
            free,
            same(wide.body),
            data=((0, 0, {"j.1": v("i.1"), "z.1": index(0)}, {"i.1": v("j.1")}),),
        ),
    )
    bound_, outside = over("i.1", N, X), Reduce("sum", "j.1", N, Choice(lt(v("j.1"), v("i.1")), X, number(0)))
    first = over("i.1", N, Choice(equal(v("i.1"), 0), number(0), X))
    paired = ((0, 0, {"j.1": v("i.1") - 1}, {"i.1": v("j.1") + 1}),)
    yield "a variable that is free on the right", False, step("bijection", first, outside, same(X), data=paired)
    del bound_
    yield "nothing is mapped", False, step("bijection", X, Y)
    p = v("j.1") * v("j.1") - v("j.1")
    one, two = over("i.1", 1, X), over("j.1", 2, X)
    either_ = ((0, 0, {"j.1": v("j.1")}, {"i.1": index(0)}), (0, 0, {"j.1": (p - 1) // (p + 1)}, {"i.1": index(0)}))
    yield (
        "maps that depend on the other side's variable",
        False,
        step("bijection", one, two, same(X), same(X), data=either_),
    )
    back = ((0, 0, {"i.1": index(0)}, {"j.1": v("j.1")}), (0, 0, {"i.1": index(0)}, {"j.1": (p - 1) // (p + 1)}))
    yield (
        "maps back that depend on the other side's variable",
        False,
        step("bijection", two, one, same(X), same(X), data=back),
    )
    j = v("j.1")
    spread = Reduce("sum", "j.1", (N - 1) * K + 1, Choice(both(equal(j // K * K, j), inside(j // K, N)), X, number(0)))
    dense = over("i.1", N, X)
    there, back = {"j.1": v("i.1") * K}, {"i.1": j // K}
    under = [le(1, N), le(1, K)]
    data: Any = ((0, 0, there, back),)
    yield "a map back that divides", True, step("bijection", dense, spread, same(X), data=data, under=under)
    data = ((0, 0, back, there),)
    yield "a map that divides", True, step("bijection", spread, dense, same(X), data=data, under=under)
    by = 2 + (-2) // ((j // K) * (j // K) + 1)  # 0 or 1 whatever j // K is, and i where it is i
    ends = either(equal(j, 0), equal(j, K))
    two, spread = over("i.1", 2, X), Reduce("sum", "j.1", K + 1, Choice(ends, X, number(0)))
    there, back, under = {"j.1": v("i.1") * K}, {"i.1": by}, [le(0, K)]
    for name, sides, maps in (("back", (two, spread), (there, back)), ("there", (spread, two), (back, there))):
        forged = step("bijection", *sides, same(X), data=((0, 0, *maps),), under=under)
        yield f"a map {name} that divides by what may be 0", False, forged
    yield "a map without its variable", False, _turned(SUM, right, f={}, g={"i.1": v("j.1")})
    yield (
        "a map with the other side's variable",
        False,
        step(
            "bijection",
            over("i.1", 1, at("x", "i.1")),
            over("j.1", 2, at("x", 0)),
            read(at("x", "i.1"), at("x", 0), inside(v("i.1"), 1)),
            data=((0, 0, {"j.1": v("j.1")}, {"i.1": index(0)}),),
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
            data=((0, 0, {"j.1": index(0)}, {"i.1": v("i.1")}),),
        ),
    )
    two = step(
        "bijection",
        op("add", SUM, X),
        op("add", X, right),
        *_turned(SUM, right).premises,
        same(X),
        data=(*((0, 1, f, g) for _, _, f, g in _turned(SUM, right).data), (1, 0, {}, {})),
    )
    yield "one summand of each side", True, two
    yield "elements that divide by what is 0", False, _divided_by_nothing()
    yield (
        "a difference",
        False,
        step("bijection", op("sub", X, Z), op("sub", X, Z), same(X), data=((0, 0, {}, {}),) * 2),
    )
    nothing = step("bijection", SUM, NONE, data=(), under=[lt(N, 0)])
    two, each = over("i.1", 2, X, "max"), ((0, 0, {}, {"i.1": index(0)}), (0, 1, {}, {"i.1": index(1)}))
    yield "a maximum as a sum", False, step("bijection", two, op("add", X, X), same(X), same(X), data=each)
    one_each = ((0, 0, {}, {}), (1, 1, {}, {}))
    yield (
        "a product as a sum",
        False,
        step("bijection", op("mul", X, Y), op("add", X, Y), same(X), same(Y), data=one_each),
    )
    choices = [Choice(le(1, N), X, e) for e in (Y, Z)]
    yield "the other sides of choices", False, step("bijection", *choices, same(X), data=one_each[:1])
    yield "sums of nothing", True, nothing
    yield "a sum of something", False, step("bijection", SUM, NONE)


def _minimum(extremum: Reduce, other: Element) -> Step:
    return _monotone(op("minimum", extremum, other))


def _monotone(left: Apply, kind: str = "max") -> Step:
    """A function of a maximum as the maximum of the function."""
    inner, other = left.args
    assert isinstance(inner, Reduce)
    right = Reduce(inner.op, inner.variable, inner.extent, op(left.op, inner.body, other))
    return step("monotone", left, right, data=kind)


@group(le(0, N))
def extrema() -> Iterator[tuple[str, bool, Step]]:
    def alike(left: Element, right: Element, kind: str = "max", under: Any = ()) -> Step:
        return step("same candidates", left, right, data=kind, under=under)

    joined = op("maximum", X, op("maximum", Y, X))
    yield "joined", True, alike(joined, op("maximum", Y, X))
    yield "one more", False, alike(joined, op("maximum", op("maximum", Y, X), Z))
    yield "one less", False, alike(joined, X)
    yield "nothing and -inf", True, alike(op("maximum", X, number(-INF)), X)
    yield "nothing and inf", False, alike(op("maximum", X, number(INF)), X)
    yield "a minimum", False, alike(op("minimum", X, number(-INF)), X)
    yield "a sum", False, alike(op("add", X, X), X, kind="sum")
    yield "a minimum and a maximum", False, alike(over("e.1", N, at("x", "e.1"), "min"), EMPTY)
    yield "a maximum of two and of nothing", False, alike(over("i.1", 2, at("x", "i.1"), "max"), number(-INF))
    yield "another guard", False, alike(Choice(le(1, N), X, Y), Choice(le(2, N), X, Y))
    needless = over("i.1", N, X, "max")
    yield "not the same", False, alike(needless, X, under=[le(1, N)])

    def lost(left: Element, right: Element, *under: Condition) -> Step:
        maps = (0, 0, 0, {}), (1, 0, 0, {"i.1": index(0)})
        return step("covering", left, right, same(X), same(X), data=("max", maps), under=under)

    yield "needless", True, lost(needless, X, le(1, N))
    yield "needless and maybe empty", False, lost(needless, X)
    yield "needed", False, lost(over("i.1", N, at("x", "i.1"), "max"), at("x", 0), le(1, N))
    yield "empty", True, alike(over("i.1", 0, X, "max"), number(-INF))

    def cover(left: Element, right: Element, *maps: tuple[Any, Step], kind: str = "max") -> Step:
        return step("covering", left, right, *(s for _, s in maps), data=(kind, tuple(m for m, _ in maps)))

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
    yield "of a sum", False, cover(SUM, X, kind="sum")
    j = v("j.1")
    sparse = Reduce(
        "max",
        "j.1",
        (N - 1) * K + 1,
        Choice(both(equal(j // K * K, j), inside(j // K, N)), at("x", j // K), number(-INF)),
    )
    places = (0, 0, 0, {"j.1": v("e.1") * K}), (1, 0, 0, {"e.1": j // K})
    reads = [read(at("x", i), at("x", i), le(1, K)) for i in ("e.1", j // K)]
    data = ("max", places)
    yield "a map that divides", True, step("covering", EMPTY, sparse, *reads, data=data, under=[le(1, N), le(1, K)])
    yield "a map without its variable", False, cover(EMPTY, turned, ((0, 0, 0, {}), there[1]), back)


@group(le(0, N))
def functions_of_extrema() -> Iterator[tuple[str, bool, Step]]:
    lowest = over("f.1", N, at("x", "f.1"), "min")
    yield "the minimum of a maximum and a number", True, _minimum(EMPTY, Y)
    yield "the maximum of a minimum and a number", True, _monotone(op("maximum", lowest, Y), "min")
    yield "and a logarithm", False, _minimum(EMPTY, LOG)
    yield "of something and a logarithm", True, _minimum(over("i.1", 3, at("x", "i.1"), "max"), LOG)
    yield "the maximum of a maximum of nothing", False, _monotone(op("maximum", EMPTY, Y))
    yield "of a sum", False, _monotone(op("minimum", SUM, Y), "sum")
    yield "times a positive number", True, _monotone(op("mul", EMPTY, P))
    yield "times any number", False, _monotone(op("mul", EMPTY, Z))
    yield "times a negative number", False, _monotone(op("mul", EMPTY, number(-2)))
    yield "plus a number", True, _monotone(op("add", EMPTY, Y))
    yield "plus infinity", False, _monotone(op("add", EMPTY, number(INF)))
    yield "plus a logarithm", False, _monotone(op("add", EMPTY, LOG))
    yield "minus a number", False, _monotone(op("sub", EMPTY, Y))
    yield "over a positive number", False, _monotone(op("div", EMPTY, P))
    yield "a summand that depends", False, _monotone(op("add", EMPTY, at("y", "e.1")))
    moved = _monotone(op("add", EMPTY, Y))
    yield "other candidates", False, step("monotone", moved.left, over("e.1", N, at("y", "e.1"), "max"), data="max")
    highest = over("f.1", N, op("mul", at("x", "f.1"), P), "max")
    yield "a minimum as a maximum", False, step("monotone", op("mul", lowest, P), highest, data="max")
    both_ = op("add", op("add", X, Z), op("add", Y, Z))
    yield "a sum as a maximum", False, step("monotone", op("add", op("add", X, Y), Z), both_, data="max")
    joined = op("maximum", Choice(le(1, N), X, number(-INF)), Z)
    right = op("maximum", Choice(le(1, N), op("mul", X, P), number(-INF)), op("mul", Z, P))
    yield "candidates under guards", True, step("monotone", op("mul", joined, P), right, data="max")


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
    return make("test.like", [x], dimensions or x.shape, lambda at, of, names: of[0](at), requires=requires)


def _rule_cases() -> Iterator[RuleCase]:
    x, y = input_("x", N), input_("y", N)
    here, there = at("x", "o.1"), at("y", "o.1")
    plain = Derivation(same(here))
    yield RuleCase("a tensor and itself", True, (x, x), plain)
    yield RuleCase("another rank", False, (x, input_("x", N, 1)), plain)
    yield RuleCase("another shape", False, (x, _like(x, N + 1)), plain)
    yield RuleCase("what is well formed at some sizes", False, (x, _like(x, requires=[le(5, N)])), plain)
    yield RuleCase("what is well formed", True, (x, _like(x, requires=[le(0, N)])), plain)
    yield RuleCase("another left side", False, (y, x), plain)
    yield RuleCase("another right side", False, (x, y), plain)
    nowhere = Derivation(step("cases", here, there, under=[le(0, N), lt(N, 0)]))
    yield RuleCase("under more hypotheses", False, (x, y), nowhere)
    high, low, o = v("h.1"), v("l.1"), v("o.1")
    digits_ = {"h.1": o // 2, "l.1": o % 2}
    body = at("x", high * 2 + low)

    def in_pairs(n: Index, *under: Condition) -> tuple[tuple[Tensor, Tensor], Derivation]:
        """Pairs and a choice that always holds for an even number of elements."""
        sides = where(lambda i: lt(i, n), input_("x", N), fill(0, N)), input_("x", N)
        choice = Choice(lt(high * 2 + low, n), body, number(0))
        chosen = step("sides of choices", choice, body, under=[*under, lt(high * 2 + low, n)])
        return sides, Derivation(
            step("cases", choice, body, chosen, data=(lt(high * 2 + low, n),), under=under), digits_
        )

    ranges = [inside(high, N // 2), inside(low, 2)]
    yield RuleCase("pairs of any number of elements", False, *in_pairs(N // 2 * 2, *ranges))
    even = (*ranges, equal(N // 2 * 2, N))
    yield RuleCase("pairs of an even number of elements", True, *in_pairs(N, *even), premise=(le(0, N), even[-1]))
    (left, right), derivation = in_pairs(N // 2 * 2, *ranges)
    del left, right
    yield RuleCase("digits of another subscript", False, (x, x), derivation)
    yield RuleCase("at another subscript", False, (x, x), Derivation(same(at("x", "p.1")), {"p.1": o + 1}))
    yield RuleCase("at the subscript", True, (x, x), Derivation(same(at("x", "p.1")), {"p.1": o + 0}))
    by = Derivation(same(at("x", high * M + low)), {"h.1": o // M, "l.1": o % M})
    yield RuleCase("at digits to a base that may be 0", False, (x, x), by)
    yield RuleCase("at digits to a base", True, (x, x), by, premise=(le(0, N), le(1, M)))
    rows = input_("x", N, M // N)  # a subscript of the first axis says that N is positive
    row = Derivation(same(at("x", "o.1", "o.2")))
    yield RuleCase("a shape that divides by a size that may be 0", False, (rows, rows), row)
    yield RuleCase("a shape that divides by a size", True, (rows, rows), row, premise=(le(1, N), le(0, M)))
    zero = Derivation(same(at("x", o // high)), {"h.1": index(0)})
    yield RuleCase("at a quotient by 0", False, (x, x), zero)
    backwards = Index({(Quotient(-5 * N - 5, -N - 1),): 1})
    both_bounds = le(5, backwards), le(backwards, 3)  # as if -N-1 were positive: 0 <= 0 and 0 <= N
    never = Derivation(Step("cases", both_bounds, here, there))
    yield RuleCase("under hypotheses that divide by a negative number", False, (x, y), never, premise=(le(0, N),))
    yield RuleCase("no equation", False, (x, x), Derivation(Step("chain", (), here, None)))
    summed = reduce("sum", input_("x", N, M), [1])
    total = over("r.2", M, at("x", "o.1", "r.2"))
    unbound = over("r.2", M, at("x", "p.1", "r.2"))
    del total
    yield RuleCase(
        "at a variable that is bound inside", False, (summed, summed), Derivation(same(unbound), {"p.1": v("r.2")})
    )


RULE_CASES = list(_rule_cases())
