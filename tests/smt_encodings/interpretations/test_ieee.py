"""The solvers' floats against concrete ones: on all operands of a small format, and on binary32."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Sequence
from fractions import Fraction

import pytest

from ir_semantics.scalars.concrete import evaluate, values_of
from ir_semantics.scalars.floats import decode, float_value, round_to
from ir_semantics.scalars.formats import BINARY16, BINARY32, BINARY64, BOOLEAN, Format, Value, float_format, integer
from ir_semantics.scalars.machine import MachineExpressions
from ir_semantics.scalars.terms import Scalar, apply, cast, constant, exp, interpret, log, pow_, variable
from smt_encodings.environment import fresh_symbols
from smt_encodings.interpretations import AbstractFloats, CannotInterpret, IeeeFloats
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

SMALL = float_format(3, 4)
INT5, UINT4 = integer(5), integer(4, signed=False)
x, y = variable("x"), variable("y")
SOME = [0.0, -0.0, 1.0, -1.0, 2.0**-5, -(2.0**-5), 15.0, -15.0, math.inf, -math.inf, math.nan, 0.5, -1.5, 3.25, 7.0]
ALL = values_of(SMALL)


def literal(value: Value, kind: Format) -> Scalar:
    if kind == BOOLEAN:
        return constant(bool(value))
    return constant(value if isinstance(value, float) else Fraction(value), kind)


def differences(cases: Sequence[tuple[Scalar, Value]], *, experimental: bool = True) -> str:
    """A question that is satisfiable iff a term without variables differs from the value it should have."""
    with fresh_symbols():
        encoding = IeeeFloats(MachineExpressions(), experimental)
        claims = [term.same(literal(wanted, term.format)) for term, wanted in cases]
        terms = interpret(claims, encoding)
        return encoding.script([f"(or {' '.join(f'(not {t})' for t in terms)} false)"])


def applications(op: str, kind: Format, operands: Sequence[Sequence[Value]]) -> list[tuple[Scalar, Value]]:
    terms = [apply(op, *(literal(v, kind) for v in values)) for values in itertools.product(*operands)]
    return [(t, evaluate(t, {})) for t in terms]


OPERATIONS = [
    *((op, 2) for op in ("add", "sub", "mul", "div", "maximum", "minimum", "maxnum", "minnum")),
    *((op, 2) for op in ("lt", "le", "eq", "same")),
    *((op, 1) for op in ("neg", "abs", "sqrt", "floor", "ceil", "trunc", "round")),
    *((op, 1) for op in ("unsigned_zero", "is_nan", "is_finite")),
]  # fmt: skip


@pytest.mark.parametrize(("op", "arity"), OPERATIONS)
def test_z3_agrees_on_a_small_format(op: str, arity: int) -> None:
    cases = applications(op, SMALL, [SOME[:12], ALL[::5]] if arity == 2 else [ALL])
    assert solver_z3.check(differences(cases), 60).status == "unsat"


@pytest.mark.parametrize(("op", "arity"), OPERATIONS)
def test_cvc5_agrees_on_a_small_format(op: str, arity: int) -> None:
    cases = applications(op, SMALL, [SOME[:12], ALL[::5]] if arity == 2 else [ALL])
    text = "(set-option :fp-exp true)\n" + differences(cases)
    assert solver_cvc5.check(text, 60).status == "unsat"


@pytest.mark.slow
@pytest.mark.parametrize(("op", "arity"), [o for o in OPERATIONS if o[1] == 2])
def test_both_agree_on_all_operands_of_a_small_format(op: str, arity: int) -> None:
    cases = applications(op, SMALL, [ALL, ALL])
    assert solver_z3.check(differences(cases), 200).status == "unsat"
    assert solver_cvc5.check("(set-option :fp-exp true)\n" + differences(cases), 200).status == "unsat"


def test_a_wrong_value_is_noticed() -> None:
    cases = [*applications("add", SMALL, [SOME, SOME]), (literal(1.0, SMALL) + 1, 3.0)]
    assert solver_z3.check(differences(cases), 60).status == "sat"


@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "div", "fma", "sqrt", "floor", "ceil", "trunc", "round", "maximum", "maxnum"]
)
def test_both_solvers_agree_on_binary32(op: str) -> None:
    source = random.Random(op)
    arity = {"sqrt": 1, "floor": 1, "ceil": 1, "trunc": 1, "round": 1, "fma": 3}.get(op, 2)
    cases: list[tuple[Scalar, Value]] = []
    for i in range(60):
        values = [decode(source.getrandbits(32), BINARY32) for _ in range(arity)]
        if i % 2 and arity == 2 and math.isfinite(values[0]):  # operands of like size, so that sums cancel
            values[1] = round_to(-Fraction(values[0]) * Fraction(source.randint(90, 110), 100), BINARY32)
        cases.append((apply(op, *(literal(v, BINARY32) for v in values)), float_value(op, BINARY32, values)))
    text = differences(cases, experimental=False)
    assert solver_z3.check(text, 60).status == "unsat"
    assert solver_cvc5.check(text, 60).status == "unsat"


@pytest.mark.parametrize("target", [INT5, UINT4, integer(5, overflow="saturate")], ids=str)
def test_conversions_between_floats_and_integers(target: Format) -> None:
    cases = [(cast(literal(v, SMALL), target), evaluate(cast(literal(v, SMALL), target), {})) for v in ALL]
    cases += [
        (cast(literal(n, target), SMALL), evaluate(cast(literal(n, target), SMALL), {})) for n in values_of(target)
    ]
    cases += [(cast(constant(b), SMALL), float(b)) for b in (True, False)]
    assert solver_z3.check(differences(cases), 60).status == "unsat"
    assert solver_cvc5.check("(set-option :fp-exp true)\n" + differences(cases), 60).status == "unsat"


def test_conversions_between_float_formats() -> None:
    source = random.Random(1)
    cases: list[tuple[Scalar, Value]] = []
    for _ in range(60):
        wide = literal(decode(source.getrandbits(64), BINARY64), BINARY64)
        near = literal(round_to(Fraction(source.randint(-(2**40), 2**40), 2**20), BINARY64), BINARY64)
        cases += [(cast(t, BINARY32), evaluate(cast(t, BINARY32), {})) for t in (wide, near)]
        narrow = literal(decode(source.getrandbits(32), BINARY32), BINARY32)
        cases.append((cast(narrow, BINARY64), evaluate(cast(narrow, BINARY64), {})))
    text = differences(cases, experimental=False)
    assert solver_z3.check(text, 60).status == "unsat"
    assert solver_cvc5.check(text, 60).status == "unsat"


@pytest.mark.parametrize("op", ["exp", "log", "pow"])
def test_special_cases_of_functions_are_true(op: str) -> None:
    """The assertions about a function are satisfiable together with its values."""
    numbers = values_of(SMALL)[::2] if op != "pow" else SOME
    cases = applications(op, SMALL, [numbers] * (2 if op == "pow" else 1))
    with fresh_symbols():
        encoding = IeeeFloats(MachineExpressions(), experimental=True)
        terms = interpret([t.same(literal(v, SMALL)) for t, v in cases], encoding)
        assert solver_z3.check(encoding.script(terms), 60).status == "sat"
    assert not encoding.exact
    assert encoding.assumptions == (
        f"{op} is correctly rounded; used: the special cases of IEEE 754, the result's sign",
    )


def proved(claim: Scalar) -> bool:
    with fresh_symbols():
        encoding = IeeeFloats(MachineExpressions())
        text = encoding.script(interpret([~claim], encoding, BINARY32))
    return all(s.check(text, 30).status == "unsat" for s in (solver_z3, solver_cvc5))


def test_facts_about_functions_are_used() -> None:
    assert proved(~(exp(x) < 0))
    assert proved(exp(constant(0.0)).same(1))
    assert proved(pow_(x, 0).same(1))
    assert proved(log(constant(-1.0)).same(constant(math.nan)))
    assert not proved(log(exp(x)).same(x))


def test_models_are_read_as_bits() -> None:
    with fresh_symbols():
        encoding = IeeeFloats(MachineExpressions())
        n = variable("n", integer(8))
        terms = interpret(
            [x.same(constant(-0.0)), y.same(2.5), n.equals(-3), variable("p", BOOLEAN)], encoding, BINARY32
        )
        model = solver_z3.check(encoding.script(terms), 10).model
    assert {k: model[k] for k in ("x", "y", "n", "p")} == {"x": 1 << 31, "y": 0x40200000, "n": 0xFD, "p": 1}


def test_formats_without_two_solvers_are_refused() -> None:
    encoding = IeeeFloats(MachineExpressions())
    with pytest.raises(CannotInterpret) as caught:
        interpret([x + y], encoding, BINARY16)
    assert str(caught.value) == "the theory of floats must be given binary32 or binary64, not binary16"
    with pytest.raises(CannotInterpret, match="floats have no operator quotient"):
        interpret([apply("quotient", x, y)], encoding, BINARY32)


def test_constants_are_not_rounded() -> None:
    for kind in (SMALL, BINARY32):
        for value in [*ALL, 15.5, 2.0**-6, 0.1, 16777217.0, 3.25, 3.125, 2.0**128, 2.0**-149, 3 * 2.0**-150]:
            assert isinstance(value, float)
            if not math.isfinite(value):
                continue
            holds = round_to(Fraction(value), kind) == value
            for encoding in (IeeeFloats(MachineExpressions(), True), AbstractFloats(MachineExpressions())):
                if holds:
                    encoding.constant(Fraction(value), kind)
                else:
                    with pytest.raises(CannotInterpret, match=f"is not representable in {re.escape(str(kind))}; "):
                        encoding.constant(Fraction(value), kind)
    with pytest.raises(CannotInterpret, match="1/3 is not representable in binary32; choose one that it has, or round"):
        interpret([x + Fraction(1, 3)], IeeeFloats(MachineExpressions()), BINARY32)
