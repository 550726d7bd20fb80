"""Reductions in any order, for every size: what is the same sum is proved, and what is not is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet

from chc.translation.prove import Prover
from chc.translation.refine import Options
from ir_semantics.elements.binders import fold
from ir_semantics.elements.operators import apply, at_most, minus, plus, same
from ir_semantics.elements.terms import Input, Term, fresh, new_terms, number, read
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS, Format
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

from .reduction_programs import Program, combine
from .verdicts import status, verdict

ANY_ORDER = Options(associative=True)
ELEMENTS = {"i32": None, "f32": ANY_ORDER}
Make = Callable[..., ir.Operation]


def dot(element: str, way: str, n: object) -> ir.Operation:
    """The product of two vectors, into a number."""
    p = Program(element)
    a, b, c = p.argument(n), p.argument(n), p.argument()
    maps = ["(k) -> (k)", "(k) -> (k)", "(k) -> ()"]
    match way:
        case "reversed":
            return p.done(p.loops(maps, "r", p.reverse(a, 0), p.reverse(b, 0), c))
        case "one reversed":
            return p.done(p.loops(maps, "r", p.reverse(a, 0), b, c))
        case "squares":
            return p.done(p.loops(maps, "r", p.reverse(a, 0), p.reverse(a, 0), c))
        case "other start":
            return p.done(
                p.loops(maps, "r", p.reverse(a, 0), p.reverse(b, 0), p.filled([], "1" + ".0" * (element == "f32")))
            )
        case "twice":
            once = p.loops(maps, "r", p.reverse(a, 0), p.reverse(b, 0), c)
            return p.done(p.loops(maps, "r", a, b, once))
        case "moved":
            return p.done(p.loops(maps, "r", p.reverse(p.moved(a, 3, 2), 0), p.reverse(b, 0), c))
        case "swapped":
            return p.done(p.loops(maps, "r", p.reverse(b, 0), p.reverse(a, 0), c))
    return p.done(p.loops(maps, "r", a, b, c))


def partial_sums(element: str, way: str, rows: object, columns: object) -> ir.Operation:
    """All elements of a matrix, into a number."""
    p = Program(element)
    a, c = p.argument(rows, columns), p.argument()
    start, axis = "", 1 if "columns" in way else 0
    match way:
        case "flat" | "flat reversed":
            n = "?" if "?" in (rows, columns) else int(str(rows)) * int(str(columns))
            flat = p.collapse(a, "[[0, 1]]", n)
            return p.done(
                p.loops(["(k) -> (k)", "(k) -> ()"], "r", p.reverse(flat, 0) if "reversed" in way else flat, c)
            )
        case "transposed":
            return p.done(p.loops(["(j, i) -> (i, j)", "(j, i) -> ()"], "rr", a, c))
        case "restarted":
            start = "1" + ".0" * (element[0] == "f")
        case "twice":
            c = p.loops(["(i, j) -> (i, j)", "(i, j) -> ()"], "rr", a, c)
        case "first row again":
            b = p.loops(["(j, i) -> (0, j)", "(j, i) -> (i, j)", "(j, i) -> ()"], "rr", a, a, c, region=_last(element))
            return p.done(b)
        case "diagonal":
            return p.done(
                p.loops(["(i, j) -> (i, i)", "(i, j) -> (i, j)", "(i, j) -> ()"], "rr", a, a, c, region=_last(element))
            )
    kept = "ij"[axis]
    sizes = [p.size(a, axis) if (rows, columns)[axis] == "?" else int(str((rows, columns)[axis]))]
    kinds = "pr" if axis == 0 else "rp"
    sums = p.loops(["(i, j) -> (i, j)", f"(i, j) -> ({kept})"], kinds, a, p.filled(sizes, start))
    if way == "without the start":
        return p.done(p.loops(["(i) -> (i)", "(i) -> ()"], "r", sums, p.filled([])))
    return p.done(p.loops(["(i) -> (i)", "(i) -> ()"], "r", sums, c))


def _last(element: str) -> str:
    """A region that adds the first of two operands."""
    return combine(element).replace(f"%r: {element}", f"%q: {element}, %r: {element}")


def matmul(element: str, way: str, *sizes: object) -> ir.Operation:
    """A product of matrices of which the inner dimension is two."""
    p = Program(element)
    m, n, outer, inner = sizes
    a, b, c = p.argument(m, outer, inner), p.argument(outer, inner, n), p.argument(m, n)

    def nest(loops: str, kinds: str, result: str, to: str, first: str = "m, a, b", second: str = "a, b, n") -> str:
        return p.loops([f"({loops}) -> ({x})" for x in (first, second, result)], kinds, a, b, to)

    match way:
        case "ba":
            return p.done(nest("m, n, b, a", "pprr", "m, n", c))
        case "outside":
            return p.done(nest("b, n, a, m", "rprp", "m, n", c))
        case "reversed":
            a, b = p.reverse(a, 1), p.reverse(b, 0)
            return p.done(nest("m, n, a, b", "pprr", "m, n", c))
        case "one reversed":
            a = p.reverse(a, 2)
            return p.done(nest("m, n, a, b", "pprr", "m, n", c))
        case "other reversed":
            a, b = p.reverse(a, 1), p.reverse(b, 1)
            return p.done(nest("m, n, a, b", "pprr", "m, n", c))
        case "blocks" | "restarted blocks" | "blocks without the start":
            size = [
                p.size(a, 0) if m == "?" else m,
                p.size(b, 2) if n == "?" else n,
                p.size(a, 1) if outer == "?" else outer,
            ]
            one = "1" + ".0" * (element[0] == "f")
            sums = nest("m, n, a, b", "pppr", "m, n, a", p.filled(size, one if "restarted" in way else ""))
            start = p.filled(size[:2]) if "without" in way else c
            return p.done(p.loops(["(m, n, a) -> (m, n, a)", "(m, n, a) -> (m, n)"], "ppr", sums, start))
        case "row again":
            return p.done(nest("m, n, a, b", "pprr", "m, n", c, second="0, b, n"))
        case "twice":
            c = nest("m, n, a, b", "pprr", "m, n", c)
    return p.done(nest("m, n, a, b", "pprr", "m, n", c))


def axis_sums(element: str, way: str, *sizes: object) -> ir.Operation:
    """Sums over the first and last dimension of three."""
    p = Program(element)
    a, c = p.argument(*sizes), p.argument(sizes[1])
    size = [p.size(a, k) if n == "?" else int(str(n)) for k, n in enumerate(sizes)]
    match way:
        case "kji":
            return p.done(p.loops(["(k, j, i) -> (i, j, k)", "(k, j, i) -> (j)"], "rpr", a, c))
        case "ik first":
            sums = p.loops(["(i, j, k) -> (i, j, k)", "(i, j, k) -> (j, k)"], "rpp", a, p.filled(size[1:]))
            return p.done(p.loops(["(j, k) -> (j, k)", "(j, k) -> (j)"], "pr", sums, c))
        case "reversed":
            return p.done(
                p.loops(["(i, j, k) -> (i, j, k)", "(i, j, k) -> (j)"], "rpr", p.reverse(p.reverse(a, 0), 2), c)
            )
        case "result reversed":
            return p.done(p.loops(["(i, j, k) -> (i, j, k)", "(i, j, k) -> (j)"], "rpr", p.reverse(a, 1), c))
        case "restarted" | "twice":
            one = "1" + ".0" * (element[0] == "f")
            to = p.filled(size[1:], one if way == "restarted" else "")
            sums = p.loops(["(i, j, k) -> (i, j, k)", "(i, j, k) -> (j, k)"], "rpp", a, to)
            if way == "twice":
                c = p.loops(["(j, k) -> (j, k)", "(j, k) -> (j)"], "pr", sums, c)
            return p.done(p.loops(["(j, k) -> (j, k)", "(j, k) -> (j)"], "pr", sums, c))
        case "first only" | "last again":
            row = "0, j, k" if way == "first only" else "i, j, 0"
            maps = [f"(i, j, k) -> ({row})", "(i, j, k) -> (i, j, k)", "(i, j, k) -> (j)"]
            return p.done(p.loops(maps, "rpr", a, a, c, region=_last(element)))
    return p.done(p.loops(["(i, j, k) -> (i, j, k)", "(i, j, k) -> (j)"], "rpr", a, c))


def convolution(element: str, way: str, rows: object, columns: object) -> ir.Operation:
    """A convolution of an image of any size."""
    p = Program(element)
    x, w, c = p.argument("?", "?"), p.argument(rows, columns), p.argument("?", "?")
    loops, kinds, image, kernel = "h, w, k, l", "pprr", "h + k, w + l", "k, l"
    match way:
        case "lk":
            loops, kinds = "l, h, w, k", "rppr"
        case "flat":
            w = p.collapse(w, "[[0, 1]]", int(str(rows)) * int(str(columns)))
            loops, kinds, image, kernel = "h, w, q", "ppr", f"h + q floordiv {columns}, w + q mod {columns}", "q"
        case "reversed":
            w = p.reverse(p.reverse(w, 0), 1)
            image = f"h + {int(str(rows)) - 1} - k, w + {int(str(columns)) - 1} - l"
        case "kernel reversed":
            w = p.reverse(w, 0)
        case "image transposed":
            image = "h + l, w + k"
        case "one row":
            image = "h, w + l"
        case "off by one":
            w = p.reverse(w, 0)
            image = f"h + {int(str(rows)) - 1} - k, w + {int(str(columns)) - 1} - l"
        case "twice":
            c = p.loops([f"({loops}) -> ({m})" for m in (image, kernel, "h, w")], kinds, x, w, c)
        case "wrong flat":
            w = p.collapse(w, "[[0, 1]]", int(str(rows)) * int(str(columns)))
            loops, kinds, image, kernel = "h, w, q", "ppr", f"h + q mod {rows}, w + q floordiv {rows}", "q"
    return p.done(p.loops([f"({loops}) -> ({m})" for m in (image, kernel, "h, w")], kinds, x, w, c))


def tree(element: str, way: str, n: int) -> ir.Operation:
    """A vector of a power of two, by halves that are added, down to a number."""
    p = Program(element)
    a, c = p.argument(n), p.argument()
    if way == "loop":
        return p.done(p.loops(["(k) -> (k)", "(k) -> ()"], "r", a, c))
    while n > 1:
        n //= 2
        lower, upper = p.slice(a, 0, n), p.slice(a, n - (way == "overlap" and n == 4), n)
        if way == "pairs":
            pairs = p.expand(a, "[[0, 1]]", n, 2)
            a = p.loops(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", pairs, p.filled([n]))
        elif way == "lost":
            a = p.each(lower, lower if n == 2 else upper)
        else:
            a = p.each(lower, p.reverse(upper, 0) if way == "reversed halves" else upper)
        if way == "restarted" and n == 2:
            a = p.each(a, p.filled([n], "1" + ".0" * (element[0] == "f")))
        if way == "twice" and n == 4:
            a = p.each(a, a)
    if way == "without the start":
        c = p.filled([])
    return p.done(p.loops(["(k) -> (k)", "(k) -> ()"], "r", a, c))


Case = tuple[Make, str, str, tuple[object, ...]]
DYNAMIC = ("?", "?", "?", "?")


def _cases(make: Make, one: str, ways: str, *sizes: tuple[object, ...]) -> list[Case]:
    return [(make, one, way.strip(), s) for way in ways.split(",") for s in sizes]


SAME: list[Case] = [
    *_cases(dot, "plain", "reversed, swapped", ("?",), (5000,), (20,), (1,)),
    *_cases(partial_sums, "plain", "rows, columns", ("?", "?"), ("?", 4), (30, 40), (3, 4)),
    *_cases(partial_sums, "rows", "columns, transposed", ("?", "?"), (30, 40)),
    *_cases(partial_sums, "flat", "rows, columns, transposed", ("?", "?"), ("?", 4), (30, 40)),
    *_cases(partial_sums, "flat reversed", "columns", ("?", 4)),
    *_cases(partial_sums, "flat reversed", "flat", ("?", "?")),
    *_cases(matmul, "ab", "ba, outside, reversed, blocks", DYNAMIC, (100, 100, 10, 10), (2, 3, 2, 3)),
    *_cases(axis_sums, "ijk", "kji, ik first, reversed", DYNAMIC[:3], (20, 3, 30), (2, 3, 4)),
    *_cases(convolution, "kl", "lk, flat, reversed", (3, 3)),
    *_cases(convolution, "kl", "lk", ("?", "?")),
    *_cases(convolution, "kl", "flat", (11, 7)),
    *_cases(tree, "loop", "halves, pairs, reversed halves", (8,), (32,)),
]
OTHER: list[Case] = [
    *_cases(dot, "plain", "one reversed, squares, other start, twice", ("?",), (300,)),
    *_cases(dot, "plain", "moved", (300,), (5000,)),
    *_cases(partial_sums, "plain", "restarted, twice, first row again, without the start", ("?", "?"), (6, 15)),
    *_cases(partial_sums, "plain", "diagonal", (8, 8)),
    *_cases(matmul, "ab", "one reversed, other reversed, restarted blocks", DYNAMIC, (2, 3, 8, 9)),
    *_cases(matmul, "ab", "blocks without the start, row again, twice", DYNAMIC, (2, 3, 8, 9)),
    *_cases(axis_sums, "ijk", "result reversed, restarted, twice, first only, last again", DYNAMIC[:3], (9, 3, 8)),
    *_cases(convolution, "kl", "kernel reversed, image transposed, off by one, one row, twice, wrong flat", (3, 3)),
    *_cases(tree, "loop", "overlap, lost, restarted, twice, without the start", (16,)),
]


def _parameters(cases: list[Case]) -> list[ParameterSet]:
    """Each case in one format, every fourth of them by default."""
    parameters = []
    for k, (make, one, other, sizes) in enumerate(cases):
        for j, element in enumerate(ELEMENTS):
            name = f"{make.__name__} {one} {other} {'x'.join(map(str, sizes))} {element}"
            marks = () if k % 4 == 2 * j else (pytest.mark.slow,)
            parameters.append(pytest.param(make, one, other, sizes, element, id=name, marks=marks))
    return parameters


@pytest.mark.parametrize(("make", "one", "other", "sizes", "element"), _parameters(SAME))
def test_the_same_sums_are_proved(make: Make, one: str, other: str, sizes: tuple[object, ...], element: str) -> None:
    outcome = verdict(make(element, one, *sizes), make(element, other, *sizes), ELEMENTS[element])
    assert (outcome.status, outcome.reason) == (Status.PROVED, "")


@pytest.mark.parametrize(("make", "one", "other", "sizes", "element"), _parameters(OTHER))
def test_other_sums_are_refuted(make: Make, one: str, other: str, sizes: tuple[object, ...], element: str) -> None:
    assert status(make(element, one, *sizes), make(element, other, *sizes), ELEMENTS[element]) is Status.REFUTED


def test_what_long_runs_refute_no_solver_is_asked() -> None:
    outcome = verdict(dot("i32", "plain", 5000), dot("i32", "moved", 5000))
    assert (outcome.status, outcome.obligations) == (Status.REFUTED, [])


def test_a_sum_is_not_proved_to_be_twice_that_sum() -> None:
    """The prover alone: runs would refute it."""
    with new_terms():
        kind, n = Format("integer", (32, "signed", "wrap")), fresh("n", INTEGERS)
        vector, start = Input("x", kind, (n,)), fresh("start", kind)

        def total(start: Term, *, backwards: bool = False) -> Term:
            i, accumulator = fresh("i", INTEGERS), fresh("accumulator", kind)
            element = read(vector, [minus(n, plus(i, number(1))) if backwards else i])
            return fold(start, accumulator, [(i, n)], apply("add", accumulator, element))

        def is_proved(one: Term, other: Term) -> bool:
            return Prover(Discharger(), "sums").follows("the same", [at_most(number(0), n)], same(one, other))

        once, twice = total(start, backwards=True), total(total(start))
        assert is_proved(total(once, backwards=True), twice)
        assert not is_proved(once, twice)
        assert not is_proved(twice, once)
