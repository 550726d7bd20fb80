"""Bounded proofs of pooling, the ways they may be asked for, and what they never say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pysmt.shortcuts as smt
import pytest

import ila_lang as il
from accel_models.flexasr.numerics import adpfloat_max
from bmc.prove import classes, prove
from bmc.search import search
from bmc.unroll import unroll_mapping
from ila_lang import Expr, Kernel, bv, const, ite, true, var
from ila_lang.interpreter.compile import compile_function
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.flexasr.pooling import pooling_mapping
from smt_encodings.claims import Interpretation, Status
from smt_encodings.discharge import Discharger
from smt_encodings.environment import fresh_symbols, plain
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.expressions.direct import miter_script
from smt_encodings.printer import script
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3
from tests.chc.mapping.toy import copy_body, go, mapping

pytestmark = pytest.mark.proof
SHAPES = [(2, 16), (4, 32)]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        *itertools.product(["max", "mean", "add"], SHAPES[:1]),
        ("max", SHAPES[1]),
        *(pytest.param(kind, SHAPES[1], marks=pytest.mark.slow) for kind in ("mean", "add")),
    ],
)
@pytest.mark.parametrize("data", ["uninterpreted", "bits"])
def test_pooling_is_proved(kind: str, shape: tuple[int, int], data: str) -> None:
    # cvc5 needs seconds for the arithmetic of mean and add; once, on bits, is enough
    second = kind == "max" or (shape == (2, 16) and data == "bits")
    verdict = prove(pooling_mapping(kind), shape, data=data, discharger=Discharger(second=second))  # type: ignore[arg-type]
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.size_domain.startswith(f"input {shape[0]}x{shape[1]} only (T = {shape[0]}, ")
    assert verdict.claim.interpretations == (Interpretation(data),)
    assert all(o.discharged for o in verdict.obligations)
    assert {o.expected for o in verdict.obligations if o.group == "health"} == {"sat"}


def test_all_cells_stand_in_one_script() -> None:
    verdict = prove(pooling_mapping("max"), (16, 64), data="uninterpreted", discharger=Discharger(second=False))
    assert verdict.status is Status.PROVED
    (whole,) = [o for o in verdict.obligations if o.name == "all elements"]
    assert whole.smtlib.count("(not (= ") == 512
    assert "up to the names" not in whole.meaning


def test_another_base() -> None:
    verdict = prove(
        pooling_mapping("max"), {"T": 18, "nv": 3, "base": 1000, "entry": 3}, discharger=Discharger(second=False)
    )
    assert verdict.status is Status.PROVED
    assert verdict.claim.size_domain == "T = 18, nv = 3, base = 1000, entry = 3 only"


def test_arrays() -> None:
    verdict = prove(pooling_mapping("max"), (2, 16), memory="arrays")
    assert verdict.status is Status.PROVED, verdict.reason
    (whole,) = [o for o in verdict.obligations if o.group == "elements"]
    assert "(store " in whole.smtlib and "(select " in whole.smtlib


def test_shape_errors_come_through() -> None:
    mapping = pooling_mapping("max")
    with pytest.raises(SizeError) as ours:
        prove(mapping, (3, 16))
    with pytest.raises(SizeError) as theirs:
        mapping.sizes_of(3, 16)
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(SizeError, match="T is a multiple of 2"):
        prove(mapping, {"T": 3, "nv": 1, "base": 0, "entry": 0})
    with pytest.raises(ValueError, match="data must be"):
        prove(mapping, (2, 16), data="guess")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_no_time_is_no_proof(kind: str) -> None:
    mapping = pooling_mapping(kind)
    assert prove(mapping, (2, 16), discharger=Discharger(timeout=0.0), search_seconds=0).status is Status.UNKNOWN
    verdict = prove(mapping, (2, 16), data="bits", discharger=Discharger(timeout=0.001), search_seconds=0)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason


def test_no_counterexample_to_what_holds() -> None:
    assert search(pooling_mapping("max"), shapes=[(2, 16), (18, 32)], budget_seconds=5) is None


def test_the_maximum_need_not_be_an_argument() -> None:
    a, b = var("a", bv(8)), var("b", bv(8))
    result = adpfloat_max(a, b)
    axiom = (result == a) | (result == b)
    answer = solver_z3.check(script([smt.Not(BitEncoding().term(axiom))]), 20)
    assert answer.status == "sat"
    run = compile_function(adpfloat_max)
    x, y = answer.model.get("a", 0), answer.model.get("b", 0)
    assert run(x, y) not in (x, y)
    assert sum(run(x, y) not in (x, y) for x, y in itertools.product(range(256), repeat=2)) == 255
    verdict = prove(pooling_mapping("max"), (2, 16), discharger=Discharger(second=False))
    for obligation in verdict.obligations:
        assert obligation.smtlib.count("(assert ") == 1  # the negated goal, and no axiom


def test_classes_tell_terms_apart() -> None:
    x, y, z = (var(n, bv(8)) for n in "xyz")
    wide = var("w", bv(9))
    pairs = [(x + y, y), (y + z, z), (x + y, x), (x + x, x), (x, y), (wide, wide), (x, x), (x, const(1, 8))]
    assert [(c.element, c.count) for c in classes(pairs)] == [(0, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1)]


def test_functions_of_one_name_are_not_mixed_up() -> None:
    x = var("x", bv(8))
    one, two = (il.Function("f", {"a": bv(8)}, bv(8), None) for _ in range(2))
    assert len(classes([(one(x), x), (two(x), x)])) == 2
    with fresh_symbols():
        text = miter_script([(one(x), two(x))], keep=frozenset({"f"}))
    assert solver_z3.check(text, 20).status == solver_cvc5.check(text, 20).status == "sat"


def _samples() -> list[tuple[Expr, Expr]]:
    """Terms with every operator, each beside a variable."""
    a, b, p = var("a", bv(8)), var("b", bv(8)), var("p", il.BOOL)
    m = var("m", il.mem(8, 8))
    terms = [
        a + b, a - b, a * b, a // b, a % b, a & b, a | b, a ^ b, a << b, a >> b, a.ashr(b), ~a, -a, ite(p, a, b),
        il.concat(a[3:0], b[7:4]), a[3:0].zext(8), a[3:0].sext(8), ite(a < b, a, b), ite(a <= b, a, b),
        ite(a.slt(b), a, b), ite(a.sle(b), a, b), ite((a == b) ^ p, a, b), ite(~p & (a < b), a, b),
        ite(p | (a < b), a, b), m.load(a), m.store(a, b).load(b + 1), adpfloat_max(a + b, a), (a + b) * (a + b),
    ]  # fmt: skip
    return [(t, var("r", bv(8))) for t in terms]


@pytest.mark.parametrize(("left", "right"), _samples())
def test_both_printers_say_the_same(left: Expr, right: Expr) -> None:
    """One script asserts that r is the term, the other printer's text that it is not."""
    direct = miter_script([(left, right)]).replace("(check-sat)\n", "").replace("(assert (not", "(assert (and")
    equal = BitEncoding()
    other = script([smt.Not(smt.Equals(equal.term(left), equal.term(right)))])
    assertion = other[other.index("(assert ") :]
    assert solver_z3.check(direct + assertion, 20).status == "unsat"
    assert solver_cvc5.check(direct + assertion, 20).status == "unsat"
    assert solver_z3.check(direct + "(check-sat)\n", 20).status == "sat"


def test_unrolled_terms_of_both_sides_share_inputs() -> None:
    unrolled = unroll_mapping(pooling_mapping("max"), {"T": 2, "nv": 1, "base": 0, "entry": 0})
    for number, (left, right) in enumerate(unrolled.pairs):
        assert {plain(name) for name in il.free_variables(left)} == {f"x_{number}", f"x_{number + 16}"}
        assert set(il.free_variables(right)) == set(il.free_variables(left))


def two_memories(second: int) -> TensorMapping:
    """A copy, after which one command stores two words in each of two memories; the IR stores them one by one."""

    def program(p: Kernel, s: Mapping[str, Expr]) -> None:
        go(p)
        p.command("both", run=true, op=const(9, 4), address=const(1, 32), data=const(40, 8))

    def ir_program(p: Kernel, s: Mapping[str, Expr]) -> None:
        go(p)
        for address, word in ((1, 42), (2, second)):
            p.command("write", run=true, op=const(1, 4), address=const(address, 32), data=const(word, 8))

    claim = mapping(copy_body, copy_body, program=program, ir_program=ir_program)
    ila = claim.device.ila
    address, data, op = (ila.inputs[name] for name in ("address", "data", "op"))
    both = ila.instruction("both").set_decode(ila.inputs["run"] & (op == 9))
    for name, more in (("tmp", 0), ("dst", 2)):
        memory = ila.states[name]
        both.update(memory, memory.store(address, data + more).store(address + 1, data + more + 1))
    return claim


def test_an_instruction_that_writes_two_memories() -> None:
    assert prove(two_memories(43), (2, 3)).status is Status.PROVED
    verdict = prove(two_memories(41), (2, 3))
    assert verdict.status is Status.REFUTED
