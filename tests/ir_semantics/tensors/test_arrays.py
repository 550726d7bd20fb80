"""Terms on arrays against an evaluation in plain Python: random expressions, and operators beyond those of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_semantics.tensors import arrays
from ir_semantics.tensors.arrays import DataError, Program
from ir_semantics.tensors.comprehension import by_definition
from ir_semantics.tensors.conditions import both, inside, le, lt
from ir_semantics.tensors.elements import (
    Apply,
    Choice,
    Element,
    IndexValue,
    Number,
    Read,
    Reader,
    Reduce,
    substitute_element,
)
from ir_semantics.tensors.index import Index, Names, index
from ir_semantics.tensors.operators import concat, pad, reshape, slice_, transpose, upsample, where
from ir_semantics.tensors.reductions import conv, cumsum, dot, matmul, max_pool, reduce
from ir_semantics.tensors.selection import gather
from ir_semantics.tensors.terms import Tensor, input_, make
from tests.ir_semantics.tensors.plain import evaluate

Draw = st.DrawFn
DTYPES = ("float32", "int8", "float64", "uint16")
ZERO = Number(Fraction(0))


def numbers(shape: Sequence[int], dtype: str, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.integers(-4, 5, shape).astype(dtype)
    if dtype.startswith("float"):
        values[generator.random(shape) < 0.2] = -0.0
        values[generator.random(shape) < 0.02] = np.nan
        values[generator.random(shape) < 0.02] = -np.inf
    return values


def same(left: np.ndarray, right: np.ndarray, signs: bool = True) -> None:
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    np.testing.assert_array_equal(left, right)
    if signs and left.dtype.kind == "f":
        known = ~np.isnan(left)
        np.testing.assert_array_equal(np.signbit(left)[known], np.signbit(right)[known])


def compare(term: Tensor, operands: Sequence[np.ndarray], dtype: str, signs: bool = True) -> None:
    program, expected = Program(term, len(operands), dtype), evaluate(term, operands, dtype)
    for _ in range(2):  # the second run is of the kept form
        same(program(operands), expected, signs)
    same(by_definition(term, operands, dtype), expected)


@st.composite
def subscripts(draw: Draw, of: Sequence[Index]) -> Index:
    """An affine index, or one with quotients, of some variables."""
    total = index(draw(st.integers(-2, 3)))
    for variable in of:
        total = total + draw(st.sampled_from([-2, -1, 0, 0, 1, 1, 2, 3])) * variable
    divisor = draw(st.sampled_from([1, 1, 1, 2, 3]))
    return total // divisor if draw(st.booleans()) else total


@st.composite
def reads(draw: Draw, of: Sequence[Index], reader: Reader, shape: Sequence[int]) -> Element:
    """A read that stays inside: by remainders, or by a guard that is narrow enough."""
    at, guards = [], []
    for extent in shape:
        i = draw(st.sampled_from(of)) if of and draw(st.booleans()) else draw(subscripts(of))
        if draw(st.booleans()):
            at.append(i % extent)
        else:
            at.append(i)
            guards.append(inside(i, extent))
    element = reader(at)
    if draw(st.booleans()):
        for guard in guards:
            element = Choice(guard, element, ZERO)
    elif guards:
        extra = [le(draw(subscripts(of)), 2)] if draw(st.booleans()) else []
        element = Choice(both(*guards, *extra), element, draw(st.sampled_from([ZERO, Number(Fraction(3))])))
    return element


@st.composite
def terms(draw: Draw) -> tuple[Tensor, list[np.ndarray], str]:
    dtype = draw(st.sampled_from(DTYPES))
    shapes = [tuple(draw(st.lists(st.integers(1, 4), max_size=3))) for _ in range(2)]
    extents = draw(st.lists(st.integers(0, 6), max_size=3))
    kind = draw(st.sampled_from(["read", "read", "sum", "product", "product", "max", "min", "running", "parts"]))

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        free = list(at)
        if kind == "read":
            return draw(reads(free, of[0], shapes[0]))
        if kind == "parts":
            element = draw(reads(free, of[0], shapes[0]))
            for _ in range(draw(st.integers(1, 3))):
                condition = draw(st.sampled_from([le, lt]))(draw(subscripts(free)), draw(st.integers(-1, 4)))
                element = Choice(condition, draw(reads(free, of[1], shapes[1])), element)
            return element
        bound = [names.fresh("k") for _ in range(draw(st.integers(1, 2)))]
        ends = [index(draw(st.integers(0, 4))) for _ in bound]
        if kind == "running" and free:
            bound, ends = bound[:1], [draw(st.sampled_from(free)) + 1]
        inner = [*free, *(Index({(k,): 1}) for k in bound)]
        body = draw(reads(inner, of[0], shapes[0]))
        if kind == "product":
            body = Apply("mul", (body, draw(reads(inner, of[1], shapes[1]))))
        for k, end in zip(bound, ends, strict=True):
            body = Reduce(kind if kind in ("max", "min") else "sum", k, end, body)
        return body

    names = Names()  # the rule draws, so that it must be asked once
    free = [names.fresh("o") for _ in extents]
    readers: list[Reader] = [lambda at, j=j: Read(f"#{j}", tuple(at)) for j in range(2)]  # type: ignore[misc]
    element = rule([Index({(v,): 1}) for v in free], readers, names)

    def again(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        for _ in range(5):
            names.fresh("k")
        return substitute_element(element, dict(zip(free, at, strict=True)))

    operands = [input_(f"x{j}", *shape) for j, shape in enumerate(shapes)]
    seed = draw(st.integers(0, 1 << 16))
    data = [numbers(shape, dtype, seed + j) for j, shape in enumerate(shapes)]
    if draw(st.booleans()):  # operands that are views
        data = [np.asarray(a, order="F") for a in data]
    return make("test.random", operands, extents, again), data, dtype


@settings(max_examples=120, deadline=None)
@given(terms())
def test_random_expressions(term: tuple[Tensor, list[np.ndarray], str]) -> None:
    compare(*term, signs=False)


X, Y = input_("x0", 3, 4), input_("x1", 4, 3)


def roll(x: Tensor, shift: int, axis: int) -> Tensor:
    """Elements moved on along an axis; what leaves it at the end comes in at the start."""
    extent = x.shape[axis]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        behind, before = ([*at[:axis], at[axis] + by, *at[axis + 1 :]] for by in (extent - shift, index(-shift)))
        return Choice(lt(at[axis], shift), of[0](behind), of[0](before))

    return make("test.roll", [x], x.shape, rule, requires=[le(0, shift), le(shift, extent)])


@pytest.mark.parametrize(
    "term",
    [
        roll(X, 1, 0),
        roll(X, 3, 1),
        upsample(X, [2, 3]),
        matmul(X, Y),
        dot(X, input_("x1", 4)),
        where(lambda i, j: le(j, i), X, input_("x1", 3, 4)),
        concat(0, X, input_("x1", 2, 4), input_("x2", 1, 4)),
        slice_(X, [1, 0], [3, 3], [1, 2]),
        reduce("sum", X, [0, 1]),
        reduce("max", X, [1], initial=1),
        cumsum(X, 0),
        conv(input_("x0", 1, 2, 5), input_("x1", 4, 1, 3), pads=[(1, 2)], strides=[2], groups=2, correlate=False),
        conv(input_("x0", 2, 6, 5), input_("x1", 4, 3, 2), dilations=[2], groups=2),
        max_pool(input_("x0", 1, 1, 5), [2], outside=0, pads=[(1, 1)]),
        reshape(input_("x0", 2, 3, 4), 6, 4),
        reshape(input_("x0", 6, 4), 4, 3, 2),
        reshape(input_("x0", 24), 4, 6),
    ],
    ids=lambda t: t.operator,
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators(term: Tensor, dtype: str) -> None:
    shapes = [tuple(d.constant or 0 for d in o.shape) for o in term.operands]
    compare(term, [numbers(s, dtype, j) for j, s in enumerate(shapes)], dtype, signs=False)


def test_what_resembles_a_selection_is_none() -> None:
    """A position that moves with the variable, an extremum that does, and an element that does not."""
    x, k, j = numbers((4, 4), "int64", 5), Index({("k.7",): 1}), Index({("k.8",): 1})
    least = Number(float("-inf"))

    def fixed_points(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        here = Apply("eq", (of[0]([at[0], k]), IndexValue(k)))
        return Reduce("max", "k.7", index(4), Apply("select", (here, of[0]([k, at[0]]), least)))

    def moving(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        extremum = Reduce("max", "k.8", index(2), of[0]([at[0], j + k]))
        here = Apply("eq", (of[0]([at[0], 2 * k]), extremum))
        return Reduce("min", "k.7", index(2), Apply("select", (here, IndexValue(k), IndexValue(index(2)))))

    def constant(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        here = Apply("eq", (of[0]([at[0], index(0)]), IndexValue(k)))
        return Reduce("max", "k.7", index(4), Apply("select", (here, of[0]([index(1), at[0]]), least)))

    for rule in (fixed_points, moving, constant):
        compare(make("test.like", [input_("x0", 4, 4)], [4], rule), [x], "int64")


def test_operators_on_operators() -> None:
    x = numbers((3, 4), "float32", 0)
    term = reduce("sum", concat(0, X, transpose(transpose(X, [1, 0]), [1, 0])), [0])
    same(Program(term, 1, "float32")([x]), by_definition(term, [x], "float32"), signs=False)


def test_reading_outside_is_an_error() -> None:
    term = make("test.outside", [X], [3], lambda at, of, names: of[0]([at[0] + 1, index(0)]))
    for run in (Program(term, 1, "float32"), lambda operands: by_definition(term, operands, "float32")):
        with pytest.raises(IndexError, match=r"^#0\[o.1 \+ 1, 0\] is read outside of the shape \(3, 4\)$"):
            run([np.zeros((3, 4), np.float32)])
    quotient = make("test.quotient", [X], [3], lambda at, of, names: of[0]([at[0] // 2 + at[0] // 3 * 2 + 2, index(0)]))
    with pytest.raises(IndexError, match="is read outside of the shape"):
        Program(quotient, 1, "float32")([np.zeros((3, 4), np.float32)])


@pytest.mark.parametrize("kind", ["uint8", "int64", "uint64"])
def test_positions_are_those_of_wide_integers(kind: str) -> None:
    x, at = np.arange(600, dtype=np.float32), np.array([1, 255, 88], kind)
    term = gather(input_("x0", 600), input_("x1", 3), 0)
    for run in (Program(term, 2, "float32"), lambda operands: by_definition(term, operands, "float32")):
        assert run([x, at]).tolist() == [1, 255, 88]
    for wrong in (-1, 600) if kind == "int64" else (600,) if kind == "uint64" else ():
        with pytest.raises(DataError, match=rf"^indices must be in 0 \.\. 599, not {wrong} \.\. {wrong}; "):
            Program(term, 2, "float32")([x, np.full(3, wrong, kind)])


def test_common_forms_are_not_evaluated_by_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a change of a definition or of index arithmetic would cost speed without a test that fails."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("evaluated by definition")

    monkeypatch.setattr(arrays._Forms, "general", refuse)
    image, kernel = input_("x0", 1, 4, 5, 5), input_("x1", 4, 2, 3, 3)
    pads = [(1, 1), (1, 1)]
    for term in (
        conv(image, kernel, pads=pads, groups=2),
        conv(image, input_("x1", 4, 1, 3, 3), pads=pads, groups=4),
        max_pool(image, [3, 3], pads=pads, strides=[2, 2]),
        matmul(X, Y),
        reduce("sum", X, [1]),
        cumsum(X, 1),
        upsample(X, [2, 2]),
        reshape(X, 2, 6),
        concat(1, X, X),
        gather(X, input_("x1", 2), 0),
        pad(X, [1, 0], [0, 2], input_("x1")),
        roll(X, 2, 1),
    ):
        shapes = [tuple(d.constant or 0 for d in o.shape) for o in term.operands]
        operands = [np.zeros(s, np.int64) for s in shapes]
        Program(term, len(operands), "int64")(operands)


def test_an_index_as_a_number() -> None:
    term = make("test.number", [X], [3, 4], lambda at, of, names: Apply("mul", (of[0](at), IndexValue(at[1]))))
    compare(term, [numbers((3, 4), "int8", 1)], "int8")
