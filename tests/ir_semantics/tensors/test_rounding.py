"""Numbers that do not fit the type of the elements, against exact arithmetic: counts, indices, sums of binary16."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from ir_semantics.tensors.arrays import Program
from ir_semantics.tensors.comprehension import by_definition
from ir_semantics.tensors.conditions import lt
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Reader, Reduce
from ir_semantics.tensors.index import Index, Names, index
from ir_semantics.tensors.operators import concat
from ir_semantics.tensors.reductions import avg_pool, conv, cumsum, matmul, mean, reduce
from ir_semantics.tensors.terms import Tensor, input_, make
from tests.marks import slow_but

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def both_ways(term: Tensor, operands: Sequence[np.ndarray], dtype: str) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [Program(term, len(operands), dtype)(operands), by_definition(term, operands, dtype)]


def half(value: Fraction) -> float:
    """The nearest number of binary16: of 11 bits, ties to even."""
    exponent = -14
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - 10)
    return float(round(value / unit) * unit)


@pytest.mark.parametrize("count", slow_but([2049], [2049, 4099, 65536]))
@pytest.mark.parametrize("padded", [False, True])
def test_means_of_binary16(count: int, padded: bool) -> None:
    x = np.full((1, 1, count), 0.75, np.float16)
    image = input_("x0", 1, 1, count)
    pools = [avg_pool(image, [count], count_include_pad=padded)] if count < 5000 else []
    for term in (mean(image, [2]), *pools):
        for result in both_ways(term, [x], "float16"):
            assert result.dtype == np.float16 and result.ravel().tolist() == [0.75]


def test_padding_is_counted_exactly() -> None:
    x = np.full((1, 1, 3000), 1.0, np.float16)
    term = avg_pool(input_("x0", 1, 1, 3000), [3000], pads=[(1, 0)], count_include_pad=True)
    for result in both_ways(term, [x], "float16"):
        assert result.ravel().tolist() == [half(Fraction(2999, 3000)), 1.0]


def test_sums_of_binary16_go_on_beyond_2048() -> None:
    x = (np.arange(2101) % 3).astype(np.float16)
    exact = [Fraction(int(v)) for v in x]
    sums = list(accumulate(exact))
    row, column = x.reshape(1, -1), x.reshape(-1, 1)
    for result in both_ways(cumsum(input_("x0", 2101), 0), [x], "float16"):
        assert result.tolist() == [half(s) for s in sums]
    square = half(sum((e * e for e in exact), Fraction(0)))
    cases: list[tuple[Tensor, list[np.ndarray], float]] = [
        (reduce("sum", input_("x0", 2101), [0]), [x], half(sums[-1])),
        (matmul(input_("x0", 1, 2101), input_("x1", 2101, 1)), [row, column], square),
        (conv(input_("x0", 1, 1, 2101), input_("x1", 1, 1, 2101)), [x.reshape(1, 1, -1)] * 2, square),
    ]
    for term, operands, expected in cases:
        for result in both_ways(term, operands, "float16"):
            assert result.dtype == np.float16 and result.ravel().tolist() == [expected]


def test_a_sum_that_overflows_binary16_has_a_mean_and_is_infinite_itself() -> None:
    x = np.full(4, 60000, np.float16)
    assert [r.tolist() for r in both_ways(mean(input_("x0", 4), [0]), [x], "float16")] == [60000.0] * 2
    assert [r.tolist() for r in both_ways(reduce("sum", input_("x0", 4), [0]), [x], "float16")] == [float("inf")] * 2


def test_what_moves_binary16_leaves_it_as_it_is() -> None:
    x = np.array([1e-7, -0.0, np.inf, 65504], np.float16)
    for result in both_ways(concat(0, input_("x0", 4), input_("x0", 4)), [x, x], "float16"):
        assert result.tobytes() == x.tobytes() * 2


def element_of(body: Callable[[Element, Index, Names], Element]) -> Tensor:
    """An operator on one element each."""
    x = input_("x0", 3)

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return body(of[0](at), at[0], names)

    return make("test.element", [x], [3], rule)


LARGE = (1 << 24) + 1


def counted(x: Element, i: Index, names: Names) -> Element:
    """x divided by a count that is added up and is no number of binary32."""
    return Apply("div", (x, Reduce("sum", names.fresh("k"), index(11), IndexValue(index(LARGE // 11 + 1)))))


@pytest.mark.parametrize(
    ("body", "dtype", "data", "expected"),
    [
        (lambda x, i, _: Apply("div", (x, IndexValue(i + LARGE))), "float32", [LARGE + 1] * 3,
         [Fraction(LARGE + 1, LARGE + i) for i in range(3)]),
        (lambda x, i, _: Apply("sub", (x, Number(Fraction(LARGE)))), "float32", [LARGE + 1] * 3, [1, 1, 1]),
        (lambda x, i, _: Apply("mul", (x, Number(Fraction(65536)))), "float16", [0.5, 0, -0.25], [32768, 0, -16384]),
        (lambda x, i, _: Apply("lt", (x, IndexValue(i + LARGE))), "float32", [LARGE - 1, LARGE + 1, LARGE + 1],
         [True, False, True]),
        (counted, "float32", [1.0] * 3, [Fraction(1, 11 * (LARGE // 11 + 1))] * 3),
        (lambda x, i, _: Apply("maximum", (x, IndexValue(i - 300))), "int8", [-128, 5, -1], [-128, 5, -1]),
        (lambda x, i, _: Apply("minimum", (x, IndexValue(i + 255))), "uint8", [255, 255, 7], [255, 255, 7]),
        (lambda x, i, _: Apply("quotient", (x, IndexValue(i + 256))), "int16", [512, -514, 3], [2, -2, 0]),
        (lambda x, i, _: Apply("remainder", (x, IndexValue(i + 256))), "uint8", [200, 3, 0], [200, 3, 0]),
        (lambda x, i, _: Apply("shift_left", (x, IndexValue(i + 256))), "uint8", [1, 2, 3], [0, 0, 0]),
        (lambda x, i, _: Apply("eq", (x, IndexValue(i - 1))), "uint64", [2**64 - 1, 0, 1], [False, True, True]),
        (lambda x, i, _: Apply("same", (x, IndexValue(i + 256))), "uint8", [0, 1, 2], [False, False, False]),
        (lambda x, i, _: Apply("mul", (x, Choice(lt(i, 1), Number(Fraction(65536)), ONE))), "float16",
         [0.25, 2, 3], [16384, 2, 3]),
    ],
)  # fmt: skip
def test_an_index_is_exact(body: Any, dtype: str, data: list[Any], expected: list[Any]) -> None:
    x = np.array(data, dtype)
    operator_type = "bool" if isinstance(expected[0], bool) else dtype
    kind = np.dtype(operator_type).type
    for result in both_ways(element_of(body), [x], dtype):
        assert result.dtype == np.dtype(operator_type)
        assert result.tolist() == [kind(float(e) if isinstance(e, Fraction) else e).item() for e in expected]
