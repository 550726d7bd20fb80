"""Conversions of integers, one after the other, against Python."""

from __future__ import annotations

from itertools import product

import pytest

from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.operators import cast, plus, times
from ir_semantics.elements.terms import fresh, new_terms, number, variable_of
from ir_semantics.scalars.formats import INTEGERS, Format, integer

FORMATS = [
    integer(width, signed=signed, overflow=overflow)
    for width, signed, overflow in product((4, 8), (False, True), ("wrap", "saturate"))
]
VALUES = (-32768, -300, -200, -129, -128, -9, -8, -1, 0, 1, 7, 8, 15, 16, 127, 128, 200, 255, 256, 300, 32767)


def converted(value: int, kind: Format) -> int:
    width, sign, overflow = (kind.parameters[0], *kind.parameters[1:])
    low = -(1 << (int(width) - 1)) if sign == "signed" else 0
    high = low + (1 << int(width)) - 1
    if overflow == "saturate":
        return min(max(value, low), high)
    return (value - low) % (1 << int(width)) + low


@pytest.mark.parametrize("last", FORMATS, ids=str)
@pytest.mark.parametrize("first", FORMATS, ids=str)
def test_two_conversions(first: Format, last: Format) -> None:
    with new_terms():
        word, index = fresh("word", integer(16)), fresh("index", INTEGERS)
        for value in VALUES:
            at = Evaluation({variable_of(word): value, variable_of(index): value}, lambda *_: 0, Budget(1000))
            assert at.value(cast(cast(word, first), last)) == converted(converted(value, first), last)
            if first.parameters[2] == "wrap":  # integers of any size are cut, and do not saturate
                total = plus(times(number(3), index), number(5))
                assert at.value(cast(cast(index, first), last)) == converted(converted(value, first), last)
                assert at.value(cast(cast(total, first), last)) == converted(converted(3 * value + 5, first), last)
