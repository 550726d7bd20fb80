"""Levels and their composition, by brute force; injectivity; commands; printing of invariants."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pysmt.shortcuts as smt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysmt.environment import Environment, pop_env, push_env
from pysmt.exceptions import PysmtException
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT

from chc.mapping.arithmetic.injectivity import injectivity_steps
from chc.mapping.arithmetic.steps import Step
from chc.mapping.dataflow import _tracked
from chc.mapping.horn.invariants import Inferred, infer, parse_term, show_invariant
from chc.mapping.horn.levels import Event, Hazard, LevelSystem, Side, System
from chc.mapping.horn.splits import Counted, SplitSystem
from chc.mapping.horn.systems import AntiDependence
from chc.mapping.program.commands import rolled
from chc.mapping.program.schedule import schedule_of
from ila_lang import Store, all_of, bv, const, mem, var
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import decide
from smt_encodings.environment import plain
from smt_encodings.expressions.polynomials import expand, polynomial_term
from tests.chc.mapping.toy import mapping

ENVIRONMENT = Environment()  # symbols below are made while this module is imported; conftest.py gives them to each test
push_env(ENVIRONMENT)


def bad_is_reached(system: System, parameters: dict[str, int], granted: bool = False) -> bool | None:
    """Runs the transition system from its start; None where the parameters violate its facts, unless granted."""

    def at(term: FNode, state: dict[FNode, FNode]) -> bool | int:
        value = term.substitute(state).simplify()
        assert value.is_constant()
        return value.constant_value()  # type: ignore[no-any-return]

    state = {p: smt.Int(parameters[n]) for n, p in system.parameters.items()}
    changing = [s for n, s in system.arguments.items() if n not in system.parameters]
    state |= {s: smt.FALSE() if s.symbol_type() == BOOL else smt.Int(0) for s in changing}
    if not granted and not at(system.init, state):
        return None
    for _ in range(50):
        if at(system.bad, state):
            return True
        if not at(system.guard, state):
            return False
        state |= {s: t.substitute(state).simplify() for s, t in system.next.items()}
    raise AssertionError("the loop does not end")


@given(
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(-1, 5),
    st.integers(-1, 5),
    st.integers(-1, 5),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=200)
def test_bad_states_are_what_enumeration_says(
    extent: int, other: int, at: int, reader: int, writer: int, ordered: bool, same: bool
) -> None:
    sides = [Side("i", "n", (Event("writes", "w"),)), Side("j", "m", ())]
    system = LevelSystem("x", sides, [Hazard("h", "r", "v", same)], ordered=ordered)
    found = bad_is_reached(system, {"n": extent, "m": other, "w": at, "r": reader, "v": writer})
    if not 0 <= at < extent or (ordered and (reader > writer or (reader == writer and not same))):
        assert found is None
        return
    iterations = range(min(extent, other))
    writes = sum(i == at for i in iterations)
    stale = any(i == reader and any(k == writer for k in range(i if same else i + 1)) for i in iterations)
    assert found is (extent != other or writes != 1 or stale)


@pytest.mark.parametrize("late", [0, 1])
def test_loops_that_are_out_of_step_are_a_bad_state_before_they_end(late: int) -> None:
    system = LevelSystem("x", [Side("i", "n", ()), Side("j", "n", ())])
    i, j = system.counters.values()
    state = {i: smt.Int(1), j: smt.Int(1 + late), system.parameters["n"]: smt.Int(5)}
    assert system.bad.substitute(state).simplify().is_true() is bool(late)


def loop(at: str = "w") -> LevelSystem:
    return LevelSystem("i", [Side("i", "n", (Event("writes", at),))])


def test_names_in_a_level_must_differ() -> None:
    with pytest.raises(ValueError, match="must be different"):
        LevelSystem("i", [Side("i", "i", ())])
    with pytest.raises(ValueError, match="must be different"):
        LevelSystem("i", [Side("i", "n", (Event("n", "w"),))])


def test_true_levels_are_inferred_and_false_ones_are_not() -> None:
    found = infer(loop(), 5)
    assert not isinstance(found, str)
    for condition in loop().conditions(found.term).values():
        assert decide([], smt.Not(smt.And(condition)))
    for same in (True, False):
        for ordered in (True, False):
            side = Side("i", "n", (Event("writes", "w"),))
            found = infer(LevelSystem("i", [side], [Hazard("h", "r", "w", same)], ordered=ordered), 5)
            assert isinstance(found, str) is not ordered


def test_loops_that_are_alike_have_one_invariant_and_others_have_their_own() -> None:
    def level(side: str, *, ordered: bool = True) -> LevelSystem:
        hazards = [Hazard(f"{side}.operand", f"{side}.r", f"{side}.w")]
        one = Side(f"{side}.i", f"{side}.n", (Event(f"{side}.writes", f"{side}.w"),))
        two = Side(f"{side}.j", f"{side}.n", (Event(f"{side}.others", f"{side}.v"),))
        return LevelSystem(side, [one, two], hazards, ordered=ordered)

    known: dict[str, Inferred] = {}
    first = infer(level("a"), 5, known)
    assert not isinstance(first, str)
    assert len(known) == 1
    alike = level("b")
    found = infer(alike, 5, known)
    assert not isinstance(found, str)
    assert len(known) == 1
    assert found.seconds == first.seconds  # it was not looked for again
    assert found.term.get_free_variables() <= set(alike.arguments.values())
    for condition in alike.conditions(found.term).values():
        assert decide([], smt.Not(smt.And(condition)))
    assert all("." in name for name in alike.anonymous().arguments)  # none is a variable of a lemma, of another sort
    # the same but for one fact: here the stale value is read
    other = infer(level("c", ordered=False), 5, known)
    assert other == "level c: Spacer: the bad states are reachable"
    assert len(known) == 1


# -- loops that are split -------------------------------------------------------------------------------


def split(low: int | str) -> SplitSystem:
    return SplitSystem(Counted("ir.x", "most"), Counted("toy.q", "n"), Counted("toy.r", low))


@given(st.integers(0, 12), st.integers(0, 4), st.integers(0, 4), st.booleans())
@settings(max_examples=200)
def test_bad_states_of_a_split_loop_are_what_enumeration_says(whole: int, high: int, low: int, literal: bool) -> None:
    system = split(low if literal else "k")
    parameters = {"most": whole, "n": high, "k": low}
    assert bad_is_reached(system, parameters) == (None if whole != high * low else False)
    digits = list(itertools.product(range(high), range(low)))  # in the order of the loops
    numbers = [q * low + r for q, r in digits]
    assert bad_is_reached(system, parameters, granted=True) is (numbers != list(range(whole)))


@pytest.mark.parametrize("low,by", [(16, "Spacer"), (1, "Spacer"), ("k", "candidates read off the loop")])
def test_the_digits_of_a_split_loop_are_inferred(low: int | str, by: str) -> None:
    system = split(low)
    found = infer(system, 5)
    assert not isinstance(found, str), found
    assert found.found_by == by
    for condition in system.conditions(found.term).values():
        assert decide([], smt.Not(smt.And(condition)))
    q, r, x = system.counters.values()
    weight = smt.Int(low) if isinstance(low, int) else smt.Symbol(low, INT)
    assert decide([found.term, system.guard], smt.Equals(x, smt.Plus(smt.Times(weight, q), r)))


@pytest.mark.parametrize("low", [16, "k"])
def test_a_split_loop_with_another_extent_has_no_invariant(low: int | str) -> None:
    system = split(low)
    less_one = {system.parameters["most"]: smt.Plus(system.parameters["most"], smt.Int(1))}
    system.init, system.facts = (t.substitute(less_one) for t in (system.init, system.facts))
    assert not any(
        all(decide([], smt.Not(smt.And(c))) for c in system.conditions(smt.And(seeds)).values())
        for seeds in (system.seeds(), [system.init])
    )


# -- composition ------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(
        lambda extents: st.tuples(
            st.just(extents),
            st.permutations(list(itertools.product(*map(range, extents)))),
            st.permutations(list(itertools.product(*map(range, extents)))),
            st.randoms(use_true_random=False),
        )
    )
)
@settings(max_examples=100)
def test_levels_compose_to_nests(drawn: tuple[list[int], list[tuple[int, ...]], list[tuple[int, ...]], object]) -> None:
    """In-place nests with random injective write maps and random read maps, executed; also with the store first."""
    extents, layout, reads, _ = drawn
    order = list(itertools.product(*map(range, extents)))
    written_by = dict(enumerate(layout))
    address_of = {iteration: address for address, iteration in written_by.items()}
    read_of = {iteration: address_of[other] for iteration, other in zip(order, reads, strict=True)}
    for load_first in (True, False):
        memory = {a: ("old", a) for a in written_by}
        result = {}
        counts = dict.fromkeys(written_by, 0)
        for iteration in order:
            loaded = memory[read_of[iteration]]
            memory[address_of[iteration]] = ("new", iteration)
            result[iteration] = loaded if load_first else memory[read_of[iteration]]
            counts[address_of[iteration]] += 1
        for address, witness in written_by.items():
            per_level = [sum(i == w for i in range(e)) for e, w in zip(extents, witness, strict=True)]
            assert all(n == 1 for n in per_level) and counts[address] == 1
            assert memory[address] == ("new", witness)
        for reader in order:
            components = (tuple(const(i, 8) for i in at) for at in (reader, written_by[read_of[reader]]))
            levels = AntiDependence(*components, load_first).facts()
            assert bool(all_of(levels).value) is (result[reader] == ("old", read_of[reader]))


# -- injectivity ------------------------------------------------------------------------------------

K, J, N = (smt.Symbol(n, INT) for n in ("i", "j", "n"))
OTHER = {K: smt.Symbol("i.other", INT), J: smt.Symbol("j.other", INT)}


def steps(address: FNode, rows: FNode, columns: FNode) -> Sequence[Step]:
    ranges = [smt.And(smt.LE(smt.Int(0), x), smt.LT(x, n)) for x, n in ((K, rows), (J, columns))]
    hypotheses = [*ranges, *(r.substitute(OTHER) for r in ranges)]
    return injectivity_steps(hypotheses, address, OTHER, list(OTHER.items()))


@pytest.mark.parametrize("stride,lanes", [(16, 16), (17, 16), (1, 1), (20, 3)])
def test_digits_of_literal_weight(stride: int, lanes: int) -> None:
    found = steps(smt.Plus(smt.Times(smt.Int(stride), K), J), N, smt.Int(lanes))
    assert all(decide([*hypotheses], goal) for _, hypotheses, goal, _ in found)
    assert found[-1][2] == smt.And([smt.Equals(a, b) for a, b in OTHER.items()])


@pytest.mark.parametrize("stride,lanes", [(15, 16), (0, 2), (1, 2), (2, 16)])
def test_overlapping_rows_are_refused(stride: int, lanes: int) -> None:
    with pytest.raises(Unsupported, match="not shown to be injective"):
        steps(smt.Plus(smt.Times(smt.Int(stride), K), J), N, smt.Int(lanes))


def test_digits_of_symbolic_weight() -> None:
    found = steps(smt.Plus(smt.Times(N, K), J), smt.Int(100), N)
    assert all(decide([*hypotheses], goal) for _, hypotheses, goal, _ in found)
    with pytest.raises(Unsupported):
        steps(smt.Plus(smt.Times(smt.Minus(N, smt.Int(1)), K), J), smt.Int(100), N)


polynomials = st.recursive(
    st.sampled_from([K, J, N]) | st.integers(-3, 9).map(smt.Int),
    lambda inner: st.tuples(st.sampled_from([smt.Plus, smt.Times, smt.Minus]), inner, inner).map(
        lambda t: t[0](t[1], t[2])
    ),
    max_leaves=8,
)


@given(polynomials, st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-4, 4)))
@settings(max_examples=200)
def test_an_expanded_term_has_the_same_value(term: FNode, point: tuple[int, ...]) -> None:
    values = {s: smt.Int(v) for s, v in zip((K, J, N), point, strict=True)}
    assert term.substitute(values).simplify() == polynomial_term(expand(term)).substitute(values).simplify()


# -- nests ------------------------------------------------------------------------------------------

MEMORY, SOURCE = var("out", mem(32, 8)), var("word", bv(128))
BASE = var("base", bv(32))


def test_word_by_word_stores_are_rolled_only_if_all_are_alike() -> None:
    alike = [Store(MEMORY, (BASE << 4) | const(k, 32), SOURCE[7:0]) for k in range(16)]
    form = rolled(alike)
    assert form is not None and plain(form[0].name) == "lane"
    for broken in range(16):
        changed = list(alike)
        changed[broken] = Store(MEMORY, alike[broken].address, SOURCE[15:8])
        assert rolled(changed) is None
        changed[broken] = Store(MEMORY, (BASE << 4) | const(16, 32), SOURCE[7:0])
        assert rolled(changed) is None
    assert rolled(alike[:2]) is None and rolled(list(reversed(alike))) is None
    assert rolled([*alike[:-1], Store(var("other", mem(32, 8)), alike[-1].address, SOURCE[7:0])]) is None


def test_an_undecided_command_is_refused() -> None:
    operation = var("n", bv(16))[3:0]
    claim = mapping(program=lambda p, s: p.command("?", run=const(1, 1) == 1, op=operation))
    with pytest.raises(Unsupported, match="exactly one instruction for all sizes; candidates: go, write, read"):
        schedule_of(claim.device)
    claim = mapping(program=lambda p, s: p.command("?", run=const(1, 1) == 1, op=const(9, 4)))
    with pytest.raises(Unsupported, match="candidates: none"):
        schedule_of(claim.device)
    claim = mapping(program=lambda p, s: p.command("?", run=const(1, 1) == 0, op=const(0, 4)))
    with pytest.raises(Unsupported):
        schedule_of(claim.device)


def test_the_writes_of_a_kernel() -> None:
    (write,) = schedule_of(mapping().device).writes
    assert [c.name for c in write.counters] == ["i", "j"]
    assert [repr(e) for _, e in write.loops] == ["zext(n, 32)", "zext(m, 32)"] or len(write.loops) == 2
    assert write.value.op == "load"


# -- text -------------------------------------------------------------------------------------------

P, Q = smt.Symbol("p", BOOL), smt.Symbol("q", BOOL)
SHOWN = [
    ([smt.LE(smt.Int(0), K), smt.Not(smt.LE(smt.Int(2), K))], ["i is 0 or 1"]),
    ([smt.LE(K, J), smt.LE(J, K)], ["j = i"]),
    ([smt.Implies(smt.LT(K, N), smt.Equals(J, smt.Int(0)))], ["i < row => j = 0"]),
    ([smt.Or(smt.Not(P), Q)], ["p => q"]),
    ([smt.Not(P)], ["not p"]),
    ([smt.Not(smt.LE(K, smt.Int(3)))], ["3 < i"]),
    ([smt.LE(smt.Plus(K, smt.Times(smt.Int(-1), N)), smt.Int(0))], ["i <= row"]),
]


@pytest.mark.parametrize("conjuncts,lines", SHOWN, ids=range(len(SHOWN)))
def test_invariants_as_text(conjuncts: list[FNode], lines: list[str]) -> None:
    assert show_invariant(tuple(conjuncts), {"n": "row"}) == lines


@pytest.mark.parametrize("text", ["(< i n)", "(and (<= 0 i) (not p))", "true"])
def test_terms_are_read(text: str) -> None:
    assert parse_term(text, {"i": K, "n": N, "p": P}).get_free_variables() <= {K, N, P}


def test_a_condition_with_a_quantifier_is_refused() -> None:
    with pytest.raises(PysmtException, match="not one quantifier-free condition"):
        parse_term("(forall ((i Int)) (< i n))", {"i": K, "n": N})


@pytest.mark.parametrize("text", ["", "(< i", "i", "(< i z)", "true) (assert false", "(foo i)", "7"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(PysmtException):
        parse_term(text, {"i": K, "n": N})
    assert smt.FreshSymbol(smt.INT).is_symbol()  # pySMT has nothing left of it


pop_env()


def test_a_dependence_of_each_form_is_tracked() -> None:
    """Two stand for all of their form; one whose read must come in an earlier iteration is of another form."""
    one, other = const(1, 32), const(2, 32)
    same = [AntiDependence((const(k, 32),), (other,), True) for k in range(4)]
    earlier, deeper = AntiDependence((one,), (other,), False), AntiDependence((one, one), (other, other), True)
    assert _tracked(same) == same[:2]
    assert _tracked([*same, earlier, deeper, earlier]) == [*same[:2], earlier, deeper]
    assert {d.form for d in (*same, earlier, deeper)} == {d.form for d in _tracked([*same, earlier, deeper])}
