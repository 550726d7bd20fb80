"""Expressions as integer terms and as bit-vector terms, against plain evaluation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pysmt.shortcuts as smt
import pytest
import z3
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pysmt.environment import pop_env, push_env
from pysmt.fnode import FNode

from ila_lang import BOOL, Expr, Function, bv, compile_terms, concat, const, free_variables, ite, mem, var
from smt_encodings.discharge import decide
from smt_encodings.environment import fresh, fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.expressions.direct import miter_script
from smt_encodings.expressions.integers import IntegerEncoding, NotLinearizable
from smt_encodings.printer import script
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers.z3 import check
from tests.ila_lang.oracle import evaluate


@pytest.fixture(autouse=True)
def symbols_of_its_own() -> Iterator[None]:
    """pySMT keeps one sort per name and process; here ``a`` is an integer in one test and bits in another."""
    push_env()
    yield
    pop_env()


A, B, C = var("a", bv(4)), var("b", bv(4)), var("c", bv(3))
VARIABLES = (A, B, C)
BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}


@st.composite
def terms(draw: st.DrawFn, depth: int = 3, width: int | None = None) -> Expr:
    """An index expression of at most 8 bits."""
    width = width or draw(st.integers(1, 8))
    if depth == 0:
        fitting = [v for v in VARIABLES if v.width <= width]
        if fitting and draw(st.booleans()):
            return draw(st.sampled_from(fitting)).zext(width)
        return const(draw(st.integers(0, (1 << width) - 1)), width)
    kind = draw(
        st.sampled_from(["+", "-", "*", "+", "*", "shift", "concat", "extract", "zext", "ite", "/", "%", "leaf"])
    )
    less = lambda w=width: draw(terms(depth=depth - 1, width=w))  # noqa: E731
    if kind in BINARY:
        return BINARY[kind](less(), less())
    if kind == "shift":
        return less() << draw(st.integers(0, min(3, (1 << width) - 1)))
    if kind == "concat" and width > 1:
        low = draw(st.integers(1, width - 1))
        return concat(less(width - low), less(low))
    if kind == "extract" and width < 8:
        wide = draw(st.integers(width, 8))
        low = draw(st.integers(0, wide - width))
        return less(wide)[low + width - 1 : low]
    if kind == "zext" and width > 1:
        return less(draw(st.integers(1, width))).zext(width)
    if kind == "ite":
        return ite(draw(conditions(depth=depth - 1)), less(), less())
    if kind in "/%":
        divisor = const(draw(st.integers(1, (1 << width) - 1)), width)
        return less() // divisor if kind == "/" else less() % divisor
    return draw(terms(depth=0, width=width))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Expr:
    """A comparison of two index expressions."""
    width = draw(st.integers(2, 6))
    left, right = draw(terms(depth=depth, width=width)), draw(terms(depth=depth, width=width))
    return draw(st.sampled_from([left < right, left <= right, left == right, left != right, ~(left < right)]))


def points() -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(1 << v.width) for v in VARIABLES)))


def value(encoding: IntegerEncoding, term: FNode, values: dict[FNode, FNode]) -> int:
    """A term at a point; quotients and remainders have the values of Python's divmod."""
    known = dict(values)
    for (dividend, divisor), (quotient, remainder) in encoding._divisions.items():
        number = int(dividend.substitute(known).simplify().constant_value())
        known[quotient], known[remainder] = (smt.Int(n) for n in divmod(number, divisor))
    found = term.substitute(known).simplify()
    assert found.is_constant(), found
    return int(found.constant_value())


def integer(variable: Expr) -> FNode:
    """The symbol of a variable in integer arithmetic."""
    return IntegerEncoding(lambda *_: False, "").symbol(variable)


def proved_by_enumeration(allowed: Sequence[tuple[int, ...]]) -> Callable[[list[FNode], FNode], bool]:
    """A decision procedure that tries all points; it is given the encoding afterwards."""

    def decides(hypotheses: list[FNode], goal: FNode) -> bool:
        encoding = holder[0]
        for point in allowed:
            values = {integer(v): smt.Int(x) for v, x in zip(VARIABLES, point, strict=True)}
            if value(encoding, smt.And(encoding.assumed), values) and not value(encoding, goal, values):
                return False
        return True

    holder: list[IntegerEncoding] = []
    decides.holder = holder  # type: ignore[attr-defined]
    return decides


SAMPLE = [p for i, p in enumerate(points()) if i % 7 == 0] + [(15, 15, 7), (0, 0, 0), (15, 0, 7), (0, 15, 7)]


@given(terms(), conditions(depth=1))
@settings(max_examples=120)
def test_an_accepted_term_is_exact_under_the_hypotheses(term: Expr, hypothesis: Expr) -> None:
    decides = proved_by_enumeration(SAMPLE)
    encoding = IntegerEncoding(decides, "t")
    decides.holder.append(encoding)  # type: ignore[attr-defined]
    truth = compile_terms(VARIABLES, [term, hypothesis])
    try:
        encoding.assume(hypothesis)
        found = encoding.term(term)
    except NotLinearizable:
        return
    for point in SAMPLE:
        wanted, holds = truth(*point)
        if holds:
            values = {integer(v): smt.Int(x) for v, x in zip(VARIABLES, point, strict=True)}
            assert value(encoding, found, values) == wanted
            for assumed, condition in encoding.fits:
                # recorded with what was assumed before it, from which it follows
                if condition.is_implies():  # for any operands within literal bounds
                    assert decide([], condition)
                elif value(encoding, smt.And(assumed), values):
                    assert value(encoding, condition, values)


def wrapping(width: int) -> list[tuple[str, Expr]]:
    x, y = var("x", bv(width)), var("y", bv(width))
    return [("+", x + y), ("-", x - y), ("*", x * y), ("<<", x << 1), ("+1", x + 1)]


@pytest.mark.parametrize("name,term", wrapping(8))
def test_an_operation_that_can_leave_its_width_is_refused(name: str, term: Expr) -> None:
    with pytest.raises(NotLinearizable, match="may leave its 8 bits"):
        IntegerEncoding(decide).term(term)


@pytest.mark.parametrize("name,term", wrapping(8))
def test_the_same_operation_is_accepted_and_recorded_where_it_fits(name: str, term: Expr) -> None:
    x, y = var("x", bv(8)), var("y", bv(8))
    encoding = IntegerEncoding(decide)
    encoding.assume((x <= 11) & (y <= 11) & (y <= x))
    before = encoding.assumed
    encoding.term(term)
    assert encoding.fits and all(assumed == before for assumed, _ in encoding.fits)
    for _, condition in encoding.fits:
        assert decide(encoding.hypotheses, condition)
        assert condition.is_implies() == decide(encoding.definitions, condition)


def test_a_condition_is_not_proved_from_the_assumption_that_needs_it() -> None:
    x = var("x", bv(8))
    with pytest.raises(NotLinearizable):
        IntegerEncoding(decide).assume(x + 100 <= 200)  # also true for x = 156 .. 255, where it wraps
    encoding = IntegerEncoding(decide)
    encoding.assume(x <= 100)
    encoding.assume(x + 100 <= 150)
    (assumed, condition), *_ = encoding.fits
    assert len(assumed) == 1 and decide([*encoding.definitions, *assumed], condition)


def test_a_part_of_a_condition_is_exact_where_those_before_it_do_not_decide() -> None:
    x, y = var("x", bv(8)), var("y", bv(8))
    near, far = x - y < 9, x - y - 1 < 9
    for condition in ((y <= x) & near, (x < y) | near, ~((y <= x) & near), (y <= x) & ~(x == y) & far):
        encoding = IntegerEncoding(decide)
        found, run = encoding.term(condition), compile_terms([x, y], [condition])
        for point in itertools.product((0, 1, 8, 9, 10, 200, 255), repeat=2):
            values = {encoding.symbol(v): smt.Int(n) for v, n in zip((x, y), point, strict=True)}
            assert found.substitute(values).simplify().is_true() == bool(run(*point)[0])
        assert all(decide([*encoding.definitions, *assumed], fact) for assumed, fact in encoding.fits)
        assert not encoding.assumed
    for condition in (near & (y <= x), near | (x < y), (x <= y) & near, (y <= x) | near):
        with pytest.raises(NotLinearizable, match="may leave its 8 bits"):
            IntegerEncoding(decide).term(condition)


def test_a_truncation_is_a_remainder_unless_it_drops_zeros() -> None:
    x = var("x", bv(8))
    encoding = IntegerEncoding(decide, "t")
    low = encoding.term(x[3:0])
    assert low.is_symbol() and low.symbol_name() == "x!mod16"
    small = IntegerEncoding(decide, "t")
    small.assume(x <= 15)
    assert small.term(x[3:0]).symbol_name() == "x"
    assert small.fits


@pytest.mark.parametrize("term", [-A, A & B, A | B, A ^ B, A << B.zext(4), A // (B + C.zext(4)), A.sext(8), A.ashr(B)])
def test_what_has_no_integer_counterpart_is_refused(term: Expr) -> None:
    encoding = IntegerEncoding(decide)
    encoding.assume(B <= 5)  # so that the sum fits
    with pytest.raises(NotLinearizable, match="no integer counterpart"):
        encoding.term(term)


def test_all_bits_inverted_are_what_is_left_to_the_greatest_number() -> None:
    encoding = IntegerEncoding(decide, "t")
    terms = {term: encoding.term(term) for term in (~A, ~A[0:0], (~A).zext(5))}
    for term, found in terms.items():
        run = compile_terms([A], [term])
        for n in range(16):
            assert value(encoding, found, {integer(A): smt.Int(n)}) == run(n)[0]
    assert not encoding.fits


def test_a_fork_does_not_change_its_origin() -> None:
    base = IntegerEncoding(decide, "base")
    base.assume(A <= 7)
    fork = base.fork("fork")
    fork.assume(B <= 3)
    fork.term((A.zext(8) + B.zext(8)) % const(5, 8))
    assert len(base.assumed) == 1 and len(fork.assumed) == 2
    assert not base._divisions and not base.fits and len(fork._divisions) == 1
    assert all(s.symbol_name() == "a" for h in base.hypotheses for s in h.get_free_variables())
    with pytest.raises(NotLinearizable):
        base.term(A + B)
    fork.term(A + B)


def test_equal_names_in_two_forks_do_not_mean_the_same() -> None:
    base = IntegerEncoding(decide, "base")
    one, two = base.fork("goal"), base.fork("goal")
    first = one.term((A.zext(8) + 1) % const(5, 8))
    second = two.term((A.zext(8) + 2) % const(5, 8))
    assert first is second
    assert one.meaning(first) != two.meaning(second)
    assert one.meaning(first) == one.fork("x").meaning(first)


def test_an_instance_is_the_term_at_a_point() -> None:
    base = IntegerEncoding(decide, "base")
    box = base.fork("box")
    counter = var("k", bv(8))
    box.assume(counter < 40)
    generic = box.term((counter + 3) % const(7, 8) + counter // const(5, 8))
    point = base.term(A.zext(8) + B.zext(8))
    moved = base.instance(box, generic, {box.term(counter): point})
    for a, b in itertools.product(range(16), repeat=2):
        values = {integer(A): smt.Int(a), integer(B): smt.Int(b)}
        assert value(base, moved, values) == (a + b + 3) % 7 + (a + b) // 5
    again = base.instance(box, generic, {box.term(counter): point})
    assert again is moved, "equal quotients get equal symbols"


@pytest.mark.parametrize("name", ["a.div3", "t.e0", "t.e0.div3", "a.mod3"])
def test_no_variable_has_the_name_of_a_quotient(name: str) -> None:
    other = var(name, bv(4))
    encoding = IntegerEncoding(decide, "t")
    encoding.term(A // const(3, 4))
    encoding.term((A.zext(8) + 1) // const(3, 8))
    encoding.term(other % const(3, 4))
    introduced = {s.symbol_name() for pair in encoding._divisions.values() for s in pair}
    assert len(introduced) == 6 and name not in introduced


# -- bits -------------------------------------------------------------------------------------------

F = Function("twist", {"x": bv(4)}, bv(4), None)
F.body = F.params[0] ^ (F.params[0] >> 1)


@st.composite
def any_terms(draw: st.DrawFn, depth: int = 3, width: int = 4) -> Expr:
    if depth == 0:
        return draw(st.sampled_from([A, B, C.zext(4), const(draw(st.integers(0, 15)), 4)])).zext(max(width, 4))[
            width - 1 : 0
        ]
    left, right = draw(any_terms(depth=depth - 1, width=width)), draw(any_terms(depth=depth - 1, width=width))
    choices: list[Callable[[], Expr]] = [
        lambda: left + right, lambda: left - right, lambda: left * right, lambda: left // right, lambda: left % right,
        lambda: left & right, lambda: left | right, lambda: left ^ right, lambda: left << right, lambda: left >> right,
        lambda: left.ashr(right), lambda: ~left, lambda: -left, lambda: ite(left < right, left, right),
        lambda: ite(left.slt(right) ^ (left == right), right, left), lambda: ite(left.sle(right), left, right),
        lambda: concat(left, right)[width : 1], lambda: left.sext(width + 3)[width + 2 : 3],
        lambda: F(left) if width == 4 else left, lambda: left.zext(width + 1)[width:1],
    ]  # fmt: skip
    return choices[draw(st.integers(0, len(choices) - 1))]()


@given(any_terms(), st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 7)))
@settings(max_examples=200)
def test_a_bit_vector_term_has_the_value_of_its_expression(term: Expr, point: tuple[int, ...]) -> None:
    values = dict(zip(("a", "b", "c"), point, strict=True))
    wanted = evaluate(term, values)
    assert compile_terms(VARIABLES, [term])(*point)[0] == wanted
    exact = smt.Equals(BitEncoding().term(term), smt.BV(wanted, term.width))
    given = [smt.Equals(BitEncoding().term(v), smt.BV(values[v.name], v.width)) for v in VARIABLES]
    assert check(script([*given, exact]), 5).status == "sat"
    assert check(script([*given, smt.Not(exact)]), 5).status == "unsat"


@given(any_terms())
@settings(max_examples=60)
def test_the_direct_printer_says_the_same(term: Expr) -> None:
    assume(free_variables(term))
    result = var("result", term.sort)
    direct = z3.parse_smt2_string(miter_script([(term, result)]))
    printed = z3.parse_smt2_string(script([smt.Not(smt.Equals(BitEncoding().term(term), BitEncoding().term(result)))]))
    solver = z3.Solver()
    solver.add(z3.Xor(z3.And(*direct), z3.And(*printed)))
    assert str(solver.check()) == "unsat"


def test_functions_are_inlined_unless_kept() -> None:
    assert BitEncoding(frozenset({"twist"})).term(F(A)).is_function_application()
    assert not any(x.is_function_application() for x in BitEncoding().term(F(A)).args())
    bodiless = Function("hole", {"x": bv(4)}, bv(4), None)
    assert BitEncoding().term(bodiless(A)).is_function_application()


def test_two_functions_of_one_name_are_not_one_symbol() -> None:
    other = Function("twist", {"x": bv(4)}, bv(4), None)
    other.body = other.params[0] + 1
    with fresh_symbols():
        encoding = BitEncoding(frozenset({"twist"}))
        text = script([smt.Not(smt.Equals(encoding.term(F(A)), encoding.term(other(A))))])
    assert "(declare-fun twist (" in text and "(declare-fun twist!2 (" in text
    assert check(text, 5).status == "sat"


@pytest.mark.parametrize("name", ["exp", "bvadd", "let", "fp.add", "true", "rem", "é"])
def test_words_of_solvers_are_names_like_any_other(name: str) -> None:
    """A size and a function, both with that name: each is a symbol of its own for both solvers."""
    function = Function(name, {"x": bv(4), "y": bv(4)}, bv(4), None)
    variable = var(name, bv(4))
    for differ, status in ((variable + 1, "sat"), (variable, "unsat")):
        with fresh_symbols():
            encoding = BitEncoding()
            left, right = function(variable, A), function(differ, A)
            texts = [
                script([smt.Not(smt.Equals(encoding.term(left), encoding.term(right)))]),
                miter_script([(left, right)]),
            ]
        for text in texts:
            assert check(text, 5).status == status, text
            assert solver_cvc5.check(text, 5).status == status, text


def test_the_integer_and_the_bits_of_one_variable_are_two_symbols() -> None:
    with fresh_symbols():
        bits, number = BitEncoding().term(A), IntegerEncoding(lambda *_: False, "").term(A)
        assert bits.symbol_type() != number.symbol_type()
        assert {bits.symbol_name(), number.symbol_name()} == {"a", "a!2"}


def test_a_variable_that_is_made_up_is_no_other_one() -> None:
    with fresh_symbols():
        made = [fresh("a", bv(4)), fresh("a", bv(4)), fresh("a!2", bv(4))]
        assert len({A, *made}) == 4
        texts = [BitEncoding().term(v).symbol_name() for v in (made[1], A, made[0], made[2])]
        assert texts == ["a", "a!2", "a!3", "a!4"]
    with fresh_symbols():
        assert fresh("a", bv(4)) is made[0], "a proof has the same symbols whenever it is made"


def test_a_quotient_of_a_quotient_is_not_the_quotient_by_a_quotient() -> None:
    x, y, z = (var(n, bv(8)) for n in "xyz")

    def proves(hypotheses: list[FNode], goal: FNode) -> bool:
        return check(script([*hypotheses, smt.Not(goal)]), 5).status == "unsat"

    with fresh_symbols():
        encoding = IntegerEncoding(proves, "t")
        for size in (y, z, y // z):
            encoding.assume(const(1, 8) <= size)
        assert encoding.term((x // y) // z) is not encoding.term(x // (y // z))


def test_memories_and_booleans() -> None:
    memory, flag = var("m", mem(4, 4)), var("flag", BOOL)
    term = BitEncoding().term(ite(flag, memory.store(A, B).load(C.zext(4)), B))
    expected = smt.Ite(
        smt.Symbol("flag"),
        smt.Ite(
            smt.Equals(BitEncoding().term(A), BitEncoding().term(C.zext(4))),
            BitEncoding().term(B),
            smt.Select(BitEncoding().term(memory), BitEncoding().term(C.zext(4))),
        ),
        BitEncoding().term(B),
    )
    assert check(script([smt.Not(smt.Equals(term, expected))]), 5).status == "unsat"


X, Y, P, Q = var("x", bv(8)), var("y", bv(8)), var("p", BOOL), var("q", BOOL)


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        (X <= Y, 255), (X < Y, 254), (~(Y <= X), 254), (X <= 9, 9), (X < 9, 8), (X.zext(16) <= const(300, 16), 255),
        (X.zext(16) < const(200, 16), 199), ((X <= 9) & (X < 9), 8), (X == 9, 255), (Y <= X, 255),
    ],
    ids=str,
)  # fmt: skip
def test_bounds_that_hypotheses_give(condition: Expr, most: int) -> None:
    """No value of X that meets the hypothesis is larger, as enumeration finds."""
    encoding = IntegerEncoding(decide, "t")
    encoding.assume(condition)
    assert encoding.upper(X) == most
    values = [x for x in range(256) for y in (0, 1, 254, 255) if evaluate(condition, {"x": x, "y": y})]
    assert all(x <= most for x in values)


@pytest.mark.parametrize("term", [P ^ Q, (P ^ Q) ^ P, P == Q, ~(P & Q) | (P ^ Q)], ids=str)
def test_truth_values_are_combined_as_written(term: Expr) -> None:
    encoding = IntegerEncoding(decide, "t")
    translated = encoding.term(term)
    symbols = {encoding.symbol(v): v.name for v in (P, Q)}
    for p, q in itertools.product((False, True), repeat=2):
        env = {"p": p, "q": q}
        chosen = {symbol: smt.Bool(env[name]) for symbol, name in symbols.items()}
        assert translated.substitute(chosen).simplify().is_true() is evaluate(term, env)


def test_a_bound_of_a_product_is_an_obligation_about_all_operands_within_theirs() -> None:
    """Products of sums are bounded step by step; each step speaks of any operands up to their own bounds."""
    encoding = IntegerEncoding(decide, "t")
    for condition in (X <= 9, Y <= 7):
        encoding.assume(condition)
    encoding.term((X.zext(16) + 3) * (Y.zext(16) + 1) * Y.zext(16))
    steps = [condition for _, condition in encoding.fits if condition.is_implies()]
    bounds = {(12, 8): 96, (96, 7): 672}
    assert len(steps) == len(bounds)
    for step, ((first, second), most) in zip(steps, bounds.items(), strict=True):
        symbols = sorted(step.get_free_variables(), key=str)
        assert len(symbols) == 2

        def holds(part: FNode, *values: int, symbols: list[FNode] = symbols) -> bool:
            chosen = dict(zip(symbols, map(smt.Int, values), strict=True))
            return bool(part.substitute(chosen).simplify().is_true())

        ranges, bound = step.args()
        assert holds(ranges, 0, 0) and holds(ranges, first, second) and holds(bound, first, second)
        assert not holds(ranges, first + 1, 0) and not holds(ranges, 0, second + 1) and not holds(ranges, -1, 0)
        assert holds(bound, 1, most) and not holds(bound, 1, most + 1)
