"""The pairs of sums and dot products of mlir-tv's benchmark (its pull request 282), and wrong twins of each.

Each claim is a function that builds it from nothing, so that building it can be part of what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.sums.terms import Constant, Sum, SumClaim, Symbol, Term, dot, vector

Vector = list[Term]
Claims = dict[str, Callable[[], SumClaim]]

UNIT = Constant(-0.0)
"""Accumulators are filled with -0.0."""

RIGHT = "right"
TWINS = ("one element changed", "one operand reversed", "an operand used twice")


def constants(*values: int) -> Vector:
    return [Constant(v) for v in values]


def total(elements: Sequence[Term]) -> Sum:
    return Sum((UNIT, *elements))


def product(left: Vector, right: Vector) -> Sum:
    return dot(left, right, UNIT)


def sums(build: Callable[[], tuple[Vector, Vector, Term]]) -> Claims:
    """A sum of elements against the same in another order; ``build`` gives both and an element that is in neither."""

    def claim(change: Callable[[Vector, Term], Vector]) -> Callable[[], SumClaim]:
        def built() -> SumClaim:
            left, right, other = build()
            return SumClaim(total(left), total(change(right, other)))

        return built

    return {
        RIGHT: claim(lambda right, _: right),
        "one element changed": claim(lambda right, other: [*right[:-1], other]),
        "an operand used twice": claim(lambda right, _: [*right[:-1], right[0]]),
    }


def reversed_constants() -> tuple[Vector, Vector, Term]:
    up = constants(*range(1, 11))
    return up[::-1], up, Constant(11)


def reversed_variables() -> tuple[Vector, Vector, Term]:
    t = vector("t", 100)
    return t[::-1], t, Symbol("z")


def transposed() -> tuple[Vector, Vector, Term]:
    t = vector("t", 200)
    return [t[20 * row + column] for column in range(20) for row in range(10)], t, Symbol("z")


def concatenated(joined: Callable[[Vector, Vector], Vector]) -> Callable[[], SumClaim]:
    def built() -> SumClaim:
        s, t = vector("s", 5), vector("t", 5)
        return SumClaim(Sum((total(s), total(t))), total(joined(s, t)))

    return built


CONCATENATED: Claims = {
    RIGHT: concatenated(lambda s, t: s + t),
    "one element changed": concatenated(lambda s, t: [*s, *t[:-1], Symbol("z")]),
    "an operand used twice": concatenated(lambda s, _: s + s),
}


def dots(build: Callable[[], tuple[Vector, Vector, Term]]) -> Claims:
    """A dot product of two vectors against that of both reversed; ``build`` gives them and an element in neither."""

    def claim(right: Callable[[Vector, Vector, Term], Sum], both: bool = True) -> Callable[[], SumClaim]:
        def built() -> SumClaim:
            a, b, other = build()
            return SumClaim(product(a[::-1], b[::-1] if both else b), right(a, b, other))

        return built

    return {
        RIGHT: claim(lambda a, b, _: product(a, b)),
        "one element changed": claim(lambda a, b, other: product(a, [*b[:-1], other])),
        "one operand reversed": claim(lambda a, b, _: product(a, b), both=False),
        "an operand used twice": claim(lambda a, _b, _: product(a, a)),
    }


def dots_of_constants() -> Claims:
    return dots(lambda: (constants(-12, 3, 2, 5, 4), constants(1, 8, 5, 6, 0), Constant(7)))


def dots_of_variables(length: int) -> Claims:
    return dots(lambda: (vector("a", length), vector("b", length), Symbol("z")))


def joined_dots(joined: Callable[[Vector, Vector], Vector]) -> Callable[[], SumClaim]:
    def built() -> SumClaim:
        a, b, c, d = vector("a", 50), vector("b", 50), vector("c", 100), vector("d", 100)
        first, second = [*a, *c], [*b, *d]
        return SumClaim(Sum((product(a, b), product(c, d))), product(first, joined(first, second)))

    return built


CONCATENATED_DOTS: Claims = {
    RIGHT: joined_dots(lambda _, second: second),
    "one element changed": joined_dots(lambda _, second: [*second[:-1], Symbol("z")]),
    "one operand reversed": joined_dots(lambda _, second: second[::-1]),
    "an operand used twice": joined_dots(lambda first, _: first),
}

LENGTHS = (5, 10, 25, 50, 100, 500, 5000)
"""The seven sizes of the size series; mlir-tv names them by the number of inputs of both vectors."""

PAIRS: dict[str, Claims] = {
    "sum reversed, 10 constants": sums(reversed_constants),
    "sum reversed, 100": sums(reversed_variables),
    "sum transposed, 10 x 20": sums(transposed),
    "sum concatenated, 5 + 5": CONCATENATED,
    "dot reversed, 5 constants": dots_of_constants(),
    "dot reversed, 100 (type)": dots_of_variables(100),
    "dot concatenated, 50 + 100": CONCATENATED_DOTS,
    **{f"dot reversed, {n}": dots_of_variables(n) for n in LENGTHS},
}
