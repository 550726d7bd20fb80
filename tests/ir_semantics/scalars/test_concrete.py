"""Concrete values against independent ones: NumPy for floats, exact fractions for machine numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ila_lang import compile_terms
from ir_semantics.scalars.concrete import evaluate, same_value, show_value, values_of
from ir_semantics.scalars.floats import decode, encode, float_value, largest, round_to, smallest
from ir_semantics.scalars.formats import (
    BINARY16,
    BINARY32,
    BINARY64,
    INTEGERS,
    REALS,
    Format,
    Value,
    code_format,
    fixed_point,
    float_format,
    integer,
)
from ir_semantics.scalars.machine import MachineExpressions
from ir_semantics.scalars.terms import apply, cast, variable

SMALL = float_format(3, 4)
TYPES = {BINARY16: np.float16, BINARY32: np.float32, BINARY64: np.float64}
UNSIGNED = {BINARY16: np.uint16, BINARY32: np.uint32, BINARY64: np.uint64}
INF, NAN = math.inf, math.nan


def bits_of(kind: Format) -> st.SearchStrategy[int]:
    """Bits of a float, with ends, subnormal numbers and neighbours drawn often."""
    e, s = (int(p) for p in kind.parameters)
    fields = st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 1, (1 << e) - 1, (1 << e) - 2, (1 << (e - 1)) - 1]) | st.integers(0, (1 << e) - 1),
        st.sampled_from([0, 1, (1 << (s - 1)) - 1, 1 << (s - 2)]) | st.integers(0, (1 << (s - 1)) - 1),
    )
    return fields.map(lambda f: f[0] << (e + s - 1) | f[1] << (s - 1) | f[2])


def floats(kind: Format) -> st.SearchStrategy[float]:
    return bits_of(kind).map(lambda b: decode(b, kind))


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_arithmetic_is_numpys(kind: Format, data: st.DataObject) -> None:
    a, b = data.draw(floats(kind)), data.draw(floats(kind))
    number = TYPES[kind]
    with np.errstate(all="ignore"):
        p, q = number(a), number(b)
        binary = {
            "add": p + q,
            "sub": p - q,
            "mul": p * q,
            "div": p / q,
            "maximum": np.maximum(p, q) if p != q else None,  # NumPy's is free to choose between zeros
            "maxnum": np.fmax(p, q) if p != q else None,
        }
        unary = {n: getattr(np, n)(p) for n in ("sqrt", "floor", "ceil", "trunc")} | {"neg": -p, "abs": abs(p)}
    for op, wanted in binary.items():
        if wanted is not None:
            assert same_value(float_value(op, kind, [a, b]), float(wanted)), (op, a, b)
    for op, wanted in unary.items():
        assert same_value(float_value(op, kind, [a]), float(wanted)), (op, a)
    assert float_value("lt", kind, [a, b]) == bool(p < q)
    assert float_value("le", kind, [a, b]) == bool(p <= q)
    assert float_value("eq", kind, [a, b]) == bool(p == q)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_bits_are_numpys(kind: Format, data: st.DataObject) -> None:
    code = data.draw(bits_of(kind))
    array = np.array([code], dtype=UNSIGNED[kind])
    value = float(array.view(TYPES[kind])[0])
    assert same_value(decode(code, kind), value)
    assert math.isnan(value) or encode(value, kind) == code
    assert math.isnan(decode(encode(NAN, kind), kind))


@pytest.mark.parametrize("kind", [BINARY16, BINARY32])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
@example(data=None)
def test_conversions_are_numpys(kind: Format, data: st.DataObject | None) -> None:
    value = 65519.99999 if data is None else data.draw(floats(BINARY64))
    with np.errstate(all="ignore"):
        wanted = float(TYPES[kind](np.float64(value)))
    x = variable("x")
    assert same_value(evaluate(cast(x, kind), {"x": value}, BINARY64), wanted)
    narrow = evaluate(cast(x, kind), {"x": value}, BINARY64)
    assert isinstance(narrow, float)
    wide = cast(cast(variable("x", kind), BINARY64), kind)
    assert same_value(evaluate(wide, {"x": narrow}), narrow)


@settings(max_examples=60, deadline=None)
@given(floats(BINARY16), floats(BINARY16), floats(BINARY16))
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    fused = float_value("fma", BINARY16, [a, b, c])
    # binary64 holds products of binary16 exactly, and its sums are exact where it has the exact sum
    product = a * b
    total = product + c
    if math.isfinite(total) and Fraction(total) == Fraction(a) * Fraction(b) + Fraction(c):
        with np.errstate(over="ignore"):
            assert same_value(fused, float(np.float16(np.float64(total))))
    elif not math.isfinite(total):
        assert same_value(fused, total)


def test_fma_differs_from_a_product_and_a_sum() -> None:
    a = 1 + 3 * 2.0**-10
    assert float_value("fma", BINARY16, [a, a, -1.0]) != float_value(
        "add", BINARY16, [float(float_value("mul", BINARY16, [a, a])), -1.0]
    )
    assert same_value(float_value("fma", BINARY16, [0.0, -1.0, -0.0]), -0.0)
    assert same_value(float_value("fma", BINARY16, [0.0, -1.0, 0.0]), 0.0)
    assert same_value(float_value("fma", BINARY16, [INF, 0.0, 1.0]), NAN)
    assert same_value(float_value("fma", BINARY16, [INF, 1.0, -INF]), NAN)
    tiny = smallest(BINARY16)
    assert same_value(float_value("fma", BINARY16, [-tiny, 0.25, 0.0]), -0.0)


def test_functions_are_correctly_rounded() -> None:
    """On every 31st number of binary16.

    NumPy's functions of binary64 are wrong by less than 2^-50 of the result; rounded to 11 bits they can only be wrong
    within that distance of a tie, where the exact function decides.  None of these results is so close.
    """
    with np.errstate(all="ignore"):
        for code in range(0, 1 << 16, 31):
            x = decode(code, BINARY16)
            for op, wide in (("exp", np.exp(np.float64(x))), ("log", np.log(np.float64(x)))):
                assert same_value(float_value(op, BINARY16, [x]), float(np.float16(wide))), (op, x)


@settings(max_examples=60, deadline=None)
@given(floats(BINARY16), floats(BINARY16))
def test_powers_are_correctly_rounded(x: float, y: float) -> None:
    with np.errstate(all="ignore"):
        wide = float(np.power(np.float64(x), np.float64(y)))
        wanted = float(np.float16(wide))
        near = {float(np.float16(wide * (1 + d))) for d in (-(2.0**-48), 2.0**-48)} if math.isfinite(wide) else {wanted}
    if len(near) == 1:
        assert same_value(float_value("pow", BINARY16, [x, y]), wanted)


@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        (NAN, 0.0, 1.0), (1.0, NAN, 1.0), (-1.0, INF, 1.0), (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF),
        (-0.0, 0.5, 0.0), (-INF, 0.5, INF), (-INF, 3.0, -INF), (-INF, -3.0, -0.0), (-2.0, 0.5, NAN), (-2.0, 3.0, -8.0),
        (0.5, INF, 0.0), (2.0, -INF, 0.0), (4.0, 0.5, 2.0), (2.0, -149.0, 2.0**-149), (2.0, -151.0, 0.0),
        (3.0, 200.0, INF), (9.0, -0.5, float(np.float32(1 / 3))), (1 + 2.0**-23, 2.0, 1 + 2.0**-22),
    ],
)  # fmt: skip
def test_special_powers(x: float, y: float, wanted: float) -> None:
    assert same_value(float_value("pow", BINARY32, [x, y]), wanted)


def test_square_roots_are_powers_of_one_half() -> None:
    """On numbers of binary16 up to infinity, where both are correctly rounded; not at -0 and -inf."""
    for code in range(1, 0x7C01, 31):
        x = decode(code, BINARY16)
        assert same_value(float_value("pow", BINARY16, [x, 0.5]), float_value("sqrt", BINARY16, [x])), x
    for x in (-0.0, -INF):
        assert not same_value(float_value("pow", BINARY16, [x, 0.5]), float_value("sqrt", BINARY16, [x])), x


def test_large_and_small_arguments_of_exp() -> None:
    assert float_value("exp", BINARY32, [89.0]) == INF
    assert float_value("exp", BINARY32, [88.0]) == float(np.float32(np.exp(88.0)))
    assert same_value(float_value("exp", BINARY32, [-1e38]), 0.0)
    assert float_value("exp", BINARY32, [-103.0]) == smallest(BINARY32)
    assert float_value("exp", BINARY64, [-745.0]) == smallest(BINARY64)
    assert float_value("exp", BINARY64, [2.0**-1074]) == 1.0


def test_ends_of_formats() -> None:
    assert largest(BINARY32) == float(np.finfo(np.float32).max)
    assert smallest(BINARY16) == float(np.finfo(np.float16).smallest_subnormal)
    assert round_to(Fraction(65520), BINARY16) == INF  # the tie above the largest number goes to the even one, infinity
    assert round_to(Fraction(65520) - Fraction(1, 10**9), BINARY16) == 65504.0
    assert same_value(round_to(Fraction(-1, 2**25), BINARY16), -0.0)
    assert (largest(SMALL), smallest(SMALL)) == (15.0, 2.0**-5)
    assert len(values_of(SMALL)) == 2 * 56 + 2 + 1  # finite numbers, infinities, NaN


def test_integers_beyond_a_format_are_infinite() -> None:
    """15.5 is the largest number of float(3, 5); to nearest, the tie goes to the even 16."""
    kind = float_format(3, 5)
    assert largest(kind) == 15.5
    ups = {op: float_value(op, kind, [15.5]) for op in ("floor", "ceil", "trunc", "round")}
    assert ups == {"floor": 15.0, "ceil": INF, "trunc": 15.0, "round": INF}
    assert float_value("floor", kind, [-15.5]) == -INF and same_value(float_value("ceil", kind, [-0.5]), -0.0)


def test_numbers_that_a_format_lacks_are_refused() -> None:
    with pytest.raises(ValueError) as caught:
        encode(0.1, BINARY16)
    assert str(caught.value) == "0.1 is not representable in binary16; round it first"
    with pytest.raises(ValueError, match="not representable in binary16"):
        encode(1e6, BINARY16)
    with pytest.raises(ValueError) as caught:
        values_of(BINARY32)
    assert str(caught.value) == (
        "values must be enumerated for formats of at most 16 bits, not for binary32; sample them"
    )


# -- machine numbers ---------------------------------------------------------------------------------------

ROUND: dict[str, Callable[[Fraction], int]] = {
    "down": math.floor,
    "nearest_up": lambda q: math.floor(q + Fraction(1, 2)),
    "nearest_even": round,
    "toward_zero": math.trunc,
}


def fitted(exact: Fraction, kind: Format) -> Value:
    """A number in a machine format, from the format's definition."""
    if kind.family == "integer":
        width, sign, overflow = kind.parameters
        fraction, rounding = 0, "down"
    else:
        width, fraction, sign, rounding, overflow = kind.parameters
    bits, places = int(width), int(fraction)
    code = ROUND[str(rounding)](exact * 2**places)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign == "signed" else (0, 2**bits - 1)
    code = min(max(code, low), high) if overflow == "saturate" else (code - low) % 2**bits + low
    return code if kind.family == "integer" else Fraction(code, 2**places)


FORMATS = [
    *(integer(4, signed=s, overflow=o) for s in (True, False) for o in ("wrap", "saturate")),
    *(
        fixed_point(3, 2, signed=s, rounding=r, overflow=o)
        for s in (True, False)
        for r in ROUND
        for o in ("wrap", "saturate")
    ),
    fixed_point(3, 5),  # all numbers below 1/4: more fraction bits than bits
]

EXACT: dict[str, Callable[..., Fraction | bool]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
    "neg": lambda a: -a,
    "abs": abs,
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
    "trunc": lambda a: Fraction(math.trunc(a)),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
}

WHOLE: dict[str, Callable[..., Fraction]] = {
    "quotient": lambda a, b: Fraction(math.trunc(a / b) if b else 0),
    "floor_quotient": lambda a, b: Fraction(math.floor(a / b) if b else 0),
}


def operands(kind: Format, count: int) -> Iterable[tuple[Value, ...]]:
    return itertools.product(values_of(kind), repeat=count)


def applied(op: str, kind: Format, values: Iterable[Value]) -> Value:
    given_values = list(values)
    names = [variable(n, kind) for n in "abc"[: len(given_values)]]
    return evaluate(apply(op, *names), dict(zip("abc", given_values, strict=False)))


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_machine_operators_are_exact_and_then_fitted(kind: Format) -> None:
    table = EXACT | (WHOLE if kind.family == "integer" else {})
    for op, exact in table.items():
        count = 1 if op in ("neg", "abs", "floor", "ceil", "trunc") else 2
        for values in operands(kind, count):
            result = exact(*(Fraction(v) for v in values))
            wanted = result if isinstance(result, bool) else fitted(result, kind)
            assert applied(op, kind, values) == wanted, (op, values)


@pytest.mark.parametrize("kind", FORMATS[::5], ids=str)
def test_fused_products_are_fitted_once(kind: Format) -> None:
    for a, b, c in itertools.islice(operands(kind, 3), 0, None, 7):
        assert applied("fma", kind, (a, b, c)) == fitted(Fraction(a) * Fraction(b) + Fraction(c), kind)


@pytest.mark.parametrize("kind", FORMATS[:4], ids=str)
def test_shifts_read_their_amount_unsigned(kind: Format) -> None:
    for a, b in operands(kind, 2):
        amount = int(b) % 16
        assert applied("shift_left", kind, (a, b)) == fitted(Fraction(a) * 2**amount, kind), (a, b)
        assert applied("shift_right", kind, (a, b)) == int(a) >> amount, (a, b)


@pytest.mark.parametrize("source", FORMATS, ids=str)
def test_conversions_between_machine_formats_fit_the_value(source: Format) -> None:
    targets = [*FORMATS, integer(7), fixed_point(9, 1, rounding="nearest_even", overflow="saturate")]
    for target in targets:
        term = cast(variable("a", source), target)
        for value in values_of(source):
            assert evaluate(term, {"a": value}) == fitted(Fraction(value), target), (target, value)


@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
@pytest.mark.parametrize("signed", [True, False])
def test_eight_bit_arithmetic_on_all_operands(signed: bool, overflow: str) -> None:
    """The expressions on arrays of codes, against NumPy's wider integers."""
    kind = integer(8, signed=signed, overflow=overflow)
    domain = MachineExpressions()
    p, q = domain.variable("p", kind), domain.variable("q", kind)
    codes_p, codes_q = (g.ravel() for g in np.meshgrid(np.arange(256), np.arange(256), indexing="ij"))
    a, b = ((c ^ 128) - 128 if signed else c for c in (codes_p, codes_q))
    low, high = (-128, 127) if signed else (0, 255)
    for op, exact in {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "maximum": np.maximum(a, b),
        "neg": -a,
        "abs": abs(a),
    }.items():
        operands, kinds = ([p], [kind]) if op in ("neg", "abs") else ([p, q], [kind, kind])
        run = compile_terms([p, q], [domain.apply(op, kind, kinds, operands)], vector=True)
        wanted = np.clip(exact, low, high) if overflow == "saturate" else exact
        assert np.array_equal(run(codes_p, codes_q)[0], wanted & 255), op


def test_eight_bit_conversions_and_extensions() -> None:
    a = variable("a", integer(8))
    unsigned = cast(a, integer(8, signed=False))
    assert evaluate(cast(unsigned, integer(16)), {"a": -1}) == 255
    assert evaluate(cast(a, integer(16)), {"a": -1}) == -1
    assert evaluate(cast(a, integer(4, overflow="saturate")), {"a": 100}) == 7


@settings(max_examples=80, deadline=None)
@given(st.integers(-(2**31), 2**31 - 1))
@example(16777217)
@example(-(2**31))
def test_integers_become_floats_as_in_numpy(n: int) -> None:
    a = variable("a", integer(32))
    assert evaluate(cast(a, BINARY32), {"a": n}) == float(np.float32(np.int64(n)))
    assert evaluate(cast(a, BINARY64), {"a": n}) == float(n)


@pytest.mark.parametrize(
    ("value", "signed", "wanted"),
    [(1.875, True, 1), (-1.875, True, -1), (NAN, True, 0), (INF, True, 127), (-INF, True, -128), (127.5, True, 127),
     (-128.5, True, -128), (-0.0, True, 0), (-3.0, False, 0), (255.5, False, 255), (INF, False, 255)],
)  # fmt: skip
def test_floats_become_integers_by_cutting_and_saturating(value: float, signed: bool, wanted: int) -> None:
    assert evaluate(cast(variable("a", BINARY32), integer(8, signed=signed)), {"a": value}) == wanted


def test_exact_numbers() -> None:
    x, y = variable("x"), variable("y")
    values: dict[str, Value] = {"x": Fraction(-7, 2), "y": Fraction(2)}
    results = {op: evaluate(apply(op, x), values, REALS) for op in ("floor", "ceil", "trunc", "abs", "neg")}
    assert results == {"floor": -4, "ceil": -3, "trunc": -3, "abs": Fraction(7, 2), "neg": Fraction(7, 2)}
    assert evaluate(x / y, values, REALS) == Fraction(-7, 4)
    whole: dict[str, Value] = {"x": -7, "y": 2}
    assert evaluate(apply("quotient", x, y), whole, INTEGERS) == -3
    assert evaluate(apply("floor_quotient", x, y), whole, INTEGERS) == -4
    assert evaluate(apply("floor_quotient", x, y * 0), whole, INTEGERS) == 0
    assert evaluate(cast(variable("i", INTEGERS), REALS) / 2, {"i": 3}) == Fraction(3, 2)


def test_codes_without_primitives_have_no_operators() -> None:
    kind = code_format("letters", 8)
    a = variable("a", kind)
    assert evaluate(a.same(a), {"a": 3}) is True
    with pytest.raises(ValueError) as caught:
        evaluate(a + a, {"a": 3})
    assert str(caught.value) == "the format letters has no operator add; name its primitive"


def test_values_are_shown_so_that_they_read_back() -> None:
    assert [show_value(v) for v in (True, -0.0, Fraction(1, 3), 7, NAN)] == ["true", "-0.0", "1/3", "7", "nan"]
