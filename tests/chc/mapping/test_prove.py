"""The unbounded method on FlexASR pooling: proofs, what keeps it from proving, and hand-made wrong models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from accel_models.flexasr.layout import large_axi_address, vector_address
from accel_models.flexasr.options import FlexAsrOptions
from chc.mapping.horn import invariants as module
from chc.mapping.prove import prove
from ila_lang import Expr, Fragment, Kernel, const, load_bytes, true
from ila_lang.language.kernel import Command, For
from ila_lang.mapping import TensorMapping
from rewrites.mappings.flexasr import pooling as rewrite
from rewrites.mappings.flexasr.pooling import pooling_mapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from smt_encodings.solvers.z3 import HornAnswer
from tests.chc.mapping.toy import mapping as toy

LOCK_STEP = ("pair with ir.oy", "vector with ir.ox_div_16", "lane with ir.ox_mod_16")


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["max", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("mean", "add"))])
def test_pooling_is_proved_by_both_solvers(kind: str) -> None:
    verdict = prove(pooling_mapping(kind))
    assert verdict.status is Status.PROVED, verdict.reason
    for obligation in verdict.obligations:
        assert obligation.discharged
        assert [a.solver.split()[0] for a in obligation.answers] == ["z3", "cvc5"], obligation.name
    groups = {o.group for o in verdict.obligations}
    assert {"health", "no overflow", "lemmas", "coordinates", "lock-step", "sources", "values"} <= groups
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(set(names)) == len(names)
    assert {o.name for o in verdict.obligations if o.expected == "sat"} == {
        "precondition satisfiable", "the output: conclusion falsifiable"
    }  # fmt: skip
    everything = " ".join([o.meaning + o.name + o.smtlib for o in verdict.obligations])
    assert "one of the arguments" not in everything + " ".join(verdict.claim.assumptions)
    assert len(verdict.invariants) == 10
    assert verdict.details["in_addition"] == ["health"]
    computing = [f"flexasr layer_reduce: flexasr.{loops}" for loops in LOCK_STEP]
    once, first = "a cell is written exactly once", "a cell is read before it is overwritten"
    wanted = {level: (once, first) if level in computing else (once,) for level in verdict.invariants}
    split = "flexasr layer_reduce: flexasr.vector with flexasr.lane with ir.ox"
    wanted[split] = ("a split loop runs the same iterations",)
    assert "ir.ox = flexasr.lane + 16*flexasr.vector" in verdict.invariants[split]
    assert verdict.details["takes"] == wanted and set(computing) < set(wanted)
    for level, counters in zip(computing, LOCK_STEP, strict=True):
        one, other = counters.split(" with ")
        assert f"{other} = flexasr.{one}" in verdict.invariants[level]
        assert {"not operand0.stale", "not operand1.stale"} <= set(verdict.invariants[level])
        meanings = {o.meaning for o in verdict.obligations if o.group == f"invariant {level}"}
        assert all(m.endswith(f"the theorem takes from it that {once} and that {first}") for m in meanings)
    # no argument beside the invariants
    between = [o.name for o in verdict.obligations if o.name.endswith("does not come in between")]
    assert not [n for n in between if "store x" in n or "load y" in n]
    assert any("layer_reduce" in o.name and o.name.endswith("read before") for o in verdict.obligations)


@pytest.mark.proof
def test_a_proof_without_time_is_unknown() -> None:
    verdict = prove(pooling_mapping("mean"), discharger=Discharger(timeout=0.001, second=False))
    assert verdict.status is Status.UNKNOWN and "needs the answer" in verdict.reason


@pytest.fixture(scope="module")
def invariants() -> dict[str, list[str]]:
    """Those that are inferred for the toy, by level."""
    levels = prove(toy()).details["levels"]
    assert isinstance(levels, dict) and len(levels) == 4
    return {name: level["invariant"] for name, level in levels.items()}


def test_all_invariants_are_needed(invariants: dict[str, list[str]]) -> None:
    assert prove(toy(), invariants=invariants).status is Status.PROVED
    for name in invariants:
        rest = {level: conjuncts for level, conjuncts in invariants.items() if level != name}
        assert prove(toy(), invariants=rest).status is Status.UNKNOWN


@pytest.mark.parametrize("given", [["false"], ["true"], ["(and"], [], ["(= undeclared 0)"], ["true) (assert false"]])
def test_a_wrong_invariant_is_not_believed(given: list[str], invariants: dict[str, list[str]]) -> None:
    for name in invariants:
        assert prove(toy(), invariants={**invariants, name: given}).status is Status.UNKNOWN


@pytest.mark.parametrize(
    "answer",
    [["true"], ["false"], ["(this is no term"], ["(forall ((x Int)) (< x 0))"], []],
)
def test_what_spacer_says_is_checked(answer: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module.solver_z3,
        "solve_horn",
        lambda _, arguments, __: HornAnswer("sat", 0.0, dict.fromkeys(arguments, answer)),
    )
    verdict = prove(toy())
    assert verdict.status is Status.PROVED, verdict.reason
    levels = verdict.details["levels"]
    assert isinstance(levels, dict)
    assert {level["found_by"] for level in levels.values()} == {"candidates read off the loop"}


def test_a_reachable_bad_state_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.solver_z3, "solve_horn", lambda *_: HornAnswer("unsat", 0.0, {}))
    verdict = prove(toy())
    assert verdict.status is Status.UNKNOWN and "reachable" in verdict.reason


# -- wrong models -----------------------------------------------------------------------------------

MUTANTS: dict[str, Callable[[], TensorMapping]] = {}


def mutant(build: Callable[[], TensorMapping]) -> Callable[[], TensorMapping]:
    MUTANTS[build.__name__] = build
    return build


def with_inputs(fragment: Fragment, note: str, **changes: Expr) -> Fragment:
    """The fragment with other inputs for the commands whose note starts with ``note``."""

    def go(body: tuple[object, ...]) -> list[object]:
        found = []
        for statement in body:
            if isinstance(statement, For):
                statement = For(statement.counter, statement.extent, tuple(go(statement.body)))  # type: ignore[arg-type]
            elif isinstance(statement, Command) and statement.note.startswith(note):
                statement = Command(tuple((n, changes.get(n, v)) for n, v in statement.inputs), statement.note)
            found.append(statement)
        return found

    program = Kernel(fragment.program.name, body=go(tuple(fragment.program.body)))  # type: ignore[arg-type]
    return replace(fragment, program=program)


@mutant
def window_of_one_row_and_two_columns() -> TensorMapping:
    plain = pooling_mapping("max")
    sizes = {"pool_y_in": const(1, 8), "pool_x_in": const(2, 8), "stride_y_in": const(1, 8), "stride_x_in": const(2, 8)}
    return replace(plain, ir=with_inputs(plain.ir, "max pooling", **sizes))


@mutant
def stride_of_one_row() -> TensorMapping:
    plain = pooling_mapping("max")
    return replace(plain, ir=with_inputs(plain.ir, "max pooling", stride_y_in=const(1, 8)))


@mutant
def tensors_that_do_not_fit_the_buffer() -> TensorMapping:
    plain = pooling_mapping("max")
    return replace(plain, domain=plain.domain[:-1])


@mutant
def too_many_vectors() -> TensorMapping:
    plain = pooling_mapping("max")
    wide = ("1 <= nv <= 256", (const(1, 32) <= rewrite.NV) & (rewrite.NV <= 256))
    return replace(plain, domain=(*plain.domain[:2], wide, *plain.domain[3:]))


@mutant
def another_operator() -> TensorMapping:
    return replace(pooling_mapping("max"), ir=pooling_mapping("add").ir)


@mutant
def another_mode() -> TensorMapping:
    return replace(pooling_mapping("max"), device=pooling_mapping("mean").device)


@mutant
def a_false_lemma() -> TensorMapping:
    plain, other = pooling_mapping("max"), pooling_mapping("mean")
    lemma = replace(plain.lemmas[0], right=other.lemmas[0].right)
    return replace(plain, ir=other.ir, lemmas=(lemma,))


@mutant
def rows_loaded_one_too_low() -> TensorMapping:
    plain = pooling_mapping("max")
    ila = plain.device.ila
    program = Kernel("shifted")
    for statement in plain.device.program.body[:-1]:
        program.body.append(statement)
    width = rewrite.NV << 4
    with program.loop("u2", rewrite.T >> 1) as u, program.loop("w2", rewrite.NV) as w:
        vector = vector_address(rewrite.BASE, rewrite.NV, u + 1, w)
        program.command(
            "load y",
            if_axi_wr=~true, if_axi_rd=true, addr_in=large_axi_address(vector), data_in=const(0, 128),
        )  # fmt: skip
        for lane in range(16):
            program.store(
                rewrite.HOST_OUT, u * width + (w << 4) + lane, ila.states["data_out"][8 * lane + 7 : 8 * lane]
            )
    return replace(plain, device=replace(plain.device, program=program))


@mutant
def one_vector_stored_for_all() -> TensorMapping:
    plain = pooling_mapping("max")
    return replace(
        plain, device=with_inputs(plain.device, "store x", data_in=load_bytes(rewrite.HOST_IN, const(0, 32), 16))
    )


@mutant
def invalid_unit() -> TensorMapping:
    plain = pooling_mapping("max")
    return replace(plain, device=with_inputs(plain.device, "configure LayerReduce", data_in=const(0, 128)))


@pytest.mark.proof
@pytest.mark.parametrize(
    "name", [n if i % 3 == 0 else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(MUTANTS)]
)
def test_a_wrong_model_is_never_proved(name: str) -> None:
    verdict = prove(MUTANTS[name](), discharger=Discharger(timeout=2), horn_timeout=3)
    assert verdict.status in (Status.UNKNOWN, Status.ERROR) and verdict.reason


@pytest.mark.slow
@pytest.mark.proof
def test_the_published_stride_is_proved_too() -> None:
    """Software sets manager and unit alike, so both readings of the stride agree."""
    assert prove(pooling_mapping("max", FlexAsrOptions(reduce_stride="unit"))).status is Status.PROVED


@pytest.mark.slow
@pytest.mark.proof
def test_an_odd_last_row_is_left_out_in_the_recorded_reading_too() -> None:
    mapping = pooling_mapping("max", FlexAsrOptions(reduce_odd="recorded"), odd=True)
    assert prove(mapping).status is Status.PROVED
