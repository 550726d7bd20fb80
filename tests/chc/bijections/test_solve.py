"""Guesses of maps between index sets, against plain counting."""

from __future__ import annotations

from itertools import product
from math import prod

import hypothesis.strategies as st
from hypothesis import given

from chc.bijections.solve import solved
from ir_semantics.tensors.index import Index, index, size


def _place(order: list[int], flipped: list[bool], extents: list[Index]) -> Index:
    """A place in mixed radix: digits in an order, the last one fastest, some of them counted downwards."""
    total = index(0)
    for k in order:
        digit = size(f"d{k}")
        total = total * extents[k] + (extents[k] - 1 - digit if flipped[k] else digit)
    return total


@given(st.data())
def test_digits_of_a_place_are_found_in_any_order_and_direction(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    order = data.draw(st.permutations(range(count)))
    flipped = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    sizes = data.draw(st.lists(st.integers(2, 4), min_size=count, max_size=count))
    is_symbolic = data.draw(st.booleans())
    extents = [size(f"n{k}") if is_symbolic else index(n) for k, n in enumerate(sizes)]
    place = _place(order, flipped, extents)
    unknowns = {f"d{k}": e for k, e in enumerate(extents)}
    values = solved([size("i") - place], unknowns, {"i": index(prod(sizes))})
    assert set(values) == set(unknowns)
    known = {f"n{k}": n for k, n in enumerate(sizes)}
    for at in product(*map(range, sizes)):
        here = {**known, **{f"d{k}": d for k, d in enumerate(at)}}
        here["i"] = place.value(here)
        assert [values[f"d{k}"].value(here) for k in range(count)] == list(at)


@given(st.lists(st.integers(2, 4), min_size=2, max_size=3), st.booleans())
def test_a_place_is_found_from_its_digits(sizes: list[int], is_reversed: bool) -> None:
    """Subscripts of a tensor that was flattened, and perhaps reversed then."""
    total = prod(sizes)
    place = total - 1 - size("i") if is_reversed else size("i")
    equations = []
    for k, n in enumerate(sizes):
        digit = place // prod(sizes[k + 1 :])
        equations.append(size(f"d{k}") - (digit if k == 0 else digit % n))
    values = solved(equations, {"i": index(total)}, {f"d{k}": index(n) for k, n in enumerate(sizes)})
    for i in range(total):
        here = {"i": i}
        here |= {f"d{k}": -(e - size(f"d{k}")).value({**here, f"d{k}": 0}) for k, e in enumerate(equations)}
        assert values["i"].value(here) == i


def test_digits_with_gaps_are_those_of_the_values_that_have_such_digits() -> None:
    place = 8 * size("a") + size("b") + 4
    values = solved([size("i") - place], {"a": size("n"), "b": index(4)}, {"i": 8 * size("n")})
    for a, b in product(range(3), range(4)):
        here = {"n": 3, "a": a, "b": b, "i": place.value({"a": a, "b": b})}
        assert (values["a"].value(here), values["b"].value(here)) == (a, b)
    assert solved([size("i") - 8 * size("a") - 3 * size("b")], {"a": size("n"), "b": index(4)}, {"i": size("n")}) == {}


def test_what_equations_leave_open_is_left_out() -> None:
    a, b, i = size("a"), size("b"), size("i")
    assert solved([i - a - b], {"a": index(3), "b": index(3)}, {"i": index(5)}) == {}
    assert solved([i - a * b], {"a": index(3), "b": index(3)}, {"i": index(5)}) == {}
    assert solved([i - 2 * a], {"a": size("n")}, {"i": 2 * size("n")}) == {"a": i // 2}
