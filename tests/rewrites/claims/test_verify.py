"""What a claim that is not proved says, and where a difference is then looked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bmc.counterexample import replays
from bmc.search import search
from chc.mapping.diagnosis import sizes_in_model
from chc.mapping.prove import prove
from ila_lang import Expr, Function, Kernel, bv, const, ite, primitive, true, var
from ila_lang.mapping import Lemma
from ilaverify.refutations import write_refutation
from rewrites.claims import verify as module
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.claims.verify import counterexample_of, verify
from smt_encodings.claims import Answer, Obligation, Status
from smt_encodings.discharge import decide
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.expressions.integers import IntegerEncoding
from smt_encodings.solvers import z3 as solver_z3
from tests.chc.mapping.toy import M, N, mapping


@pytest.fixture
def little_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shapes, which show no difference, are searched for a second and no longer."""
    monkeypatch.setattr(
        module, "search", lambda claim, budget_seconds, **more: search(claim, budget_seconds=0.5, **more)
    )


@pytest.mark.usefixtures("little_search")
def test_the_sizes_of_a_solvers_model_are_run() -> None:
    """At one number of rows the device has one less: no small shape shows it, and no sampled one."""

    def program(p: Kernel, _: Mapping[str, Expr]) -> None:
        rows = ite(N + N + N == 273, N - 1, N)
        p.command("go", run=true, op=const(0, 4), n_in=rows.zext(32), m_in=M.zext(32))

    claim = mapping(program=program)
    alone = prove(claim)
    assert alone.status is Status.UNKNOWN
    [suspect] = alone.details["suspects"]  # type: ignore[misc, attr-defined]
    assert alone.reason.endswith(f": sat, at n = {suspect['n']}, m = {suspect['m']}")
    verdict = verify(claim, "chc")
    found = counterexample_of(verdict)
    assert verdict.status is Status.REFUTED and verdict.details["unproved"] == alone.reason
    assert found is not None and found.sizes["n"] == 91 and replays(claim, found)


def test_sizes_of_the_whole_domain_are_run_before_a_proof_is_tried() -> None:
    """Both sides sum up a row; the device counts with 7 bits, and small shapes have up to 64 columns."""

    def sums(bits: int) -> Callable[[Kernel, Mapping[str, Expr]], None]:
        def body(k: Kernel, s: Mapping[str, Expr]) -> None:
            with k.loop("i", s["n"]) as i:
                total = k.let("total", const(0, 8))
                with k.loop("q", s["m"][bits - 1 : 0]) as q:
                    k.assign(total, total + k.load("word", s["src"], i * s["m"] + q.zext(32)))
                k.store(s["dst"], i, total)

        return body

    claim = mapping(sums(7), sums(31), columns=const(1, 32))
    verdict = verify(claim, "chc")
    found = counterexample_of(verdict)
    assert verdict.status is Status.REFUTED and found is not None and found.sizes["m"] >= 128
    assert not verdict.obligations and replays(claim, found)


def test_a_false_lemma_is_told_with_its_operands() -> None:
    same = primitive(bv(8), x=bv(8), y=bv(8), name="same")(lambda x, y: x + y)
    other = primitive(bv(8), x=bv(8), y=bv(8), name="other")(lambda x, y: ite((x == 5) & (y == 7), const(1, 8), x + y))
    x, y = var("x", bv(8)), var("y", bv(8))
    false = Lemma("the same", same(x, y), other(x, y))

    def squared(k: Kernel, s: Mapping[str, Expr]) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            k.store(s["dst"], i * s["m"] + j, same(word, word))

    claim = mapping(squared, squared, lemmas=(false,), abstract=frozenset({"same", "other"}))
    says = "at x = 0x5, y = 0x7, where the left side is 0xc and the right side 0x1"
    asked = f"obligation 'the same' (lemmas) needs the answer unsat; {solver_z3.version()}: sat"
    alone = prove(claim)
    assert (alone.status, alone.reason) == (Status.UNKNOWN, f"{asked}, {says}")
    assert alone.details["suspects"] == []
    bounded = verify(claim, "bmc", shape=(2, 2), data="uninterpreted")
    assert bounded.status is Status.UNKNOWN and bounded.reason.endswith(f": sat, {says}")


def test_what_cannot_be_verified() -> None:
    with pytest.raises(TypeError) as wrong:
        verify(None)  # type: ignore[arg-type]
    assert str(wrong.value) == "what is verified must be a TensorMapping, not None"
    with pytest.raises(ValueError) as shaped:
        verify(mapping(), "chc", shape=(4, 8))
    assert str(shaped.value) == "method chc has no parameter shape; leave it out, or use method bmc or hash"


def test_writes_that_bits_of_counters_tell_apart_are_unknown() -> None:
    def body(k: Kernel, s: Mapping[str, Expr]) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            for name, bit in (("even", 0), ("odd", 1)):
                with k.when(name, (i ^ j)[0] == bit):
                    k.store(s["dst"], i * s["m"] + j, k.load(f"{name}_word", s["src"], i * s["m"] + j))

    assert prove(mapping(body)).reason == "operator 'bvxor' in an index has no integer counterpart: row ^ column"


def test_a_refutation_has_its_data_also_without_a_program_file(tmp_path: Path) -> None:
    def one_more(k: Kernel, s: Mapping[str, Expr]) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + 1)

    claim = mapping(one_more)
    subject = MappingSubject(claim)
    told = subject.refutation(verify(claim, "bmc", shape=(2, 2)))
    assert told is not None and told.program == ""
    assert told.notes == (
        "no program file: Mapping toy must have a program_file to be written as one; its device has none",
    )
    written = write_refutation(told, claim.name, tmp_path)
    assert written == [tmp_path / "toy.counterexample-data.json"]
    again = subject.replayed(written[0].read_text())
    assert again is not None and again.summary == told.summary


def test_operands_at_which_a_lemma_is_false_are_tried_as_data() -> None:
    same = primitive(bv(8), x=bv(8), y=bv(8), name="same")(lambda x, y: x + y)
    rare = primitive(bv(8), x=bv(8), y=bv(8), name="rare")(
        lambda x, y: ite((x == 0x35) & (y == 0xC9), const(1, 8), x + y)
    )
    x, y = var("x", bv(8)), var("y", bv(8))

    def added(function: Function) -> Callable[[Kernel, Mapping[str, Expr]], None]:
        def body(k: Kernel, s: Mapping[str, Expr]) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                at = i * s["m"] + j
                k.store(s["dst"], at, function(k.load("word", s["src"], at), k.load("next", s["src"], at + 1)))

        return body

    lemma = Lemma("sums agree", same(x, y), rare(x, y))
    claim = mapping(added(same), added(rare), lemmas=(lemma,), abstract=frozenset({"same", "rare"}))
    verdict = verify(claim, "chc")
    found = counterexample_of(verdict)
    assert verdict.status is Status.REFUTED and found is not None and replays(claim, found)
    assert sorted(found.initial.values()) == [0x35, 0xC9]


def test_sizes_of_a_solvers_model_that_show_no_difference_are_told_as_such() -> None:
    f = primitive(bv(8), x=bv(8), name="f")(lambda x: x + 1)
    g = primitive(bv(8), x=bv(8), name="g")(lambda x: x + 1)

    def applied(function: Function) -> Callable[[Kernel, Mapping[str, Expr]], None]:
        def body(k: Kernel, s: Mapping[str, Expr]) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, function(k.load("word", s["src"], i * s["m"] + j)))

        return body

    domain = (("1 <= n <= 5", (const(1, 16) <= N) & (N <= 5)), ("1 <= m <= 5", (const(1, 16) <= M) & (M <= 5)))
    claim = mapping(applied(f), applied(g), domain=domain, abstract=frozenset({"f", "g"}))
    verdict = verify(replace(claim, sample_shapes=((2, 2),)), "chc")
    assert verdict.status is Status.UNKNOWN and verdict.details["suspects"]
    [suspect] = verdict.details["suspects"]  # type: ignore[misc, attr-defined]
    assert verdict.reason.endswith(
        f": sat, at n = {suspect['n']}, m = {suspect['m']}; no run at these sizes shows a difference"
    )


def test_sizes_in_a_model_are_those_of_indices_or_those_among_data() -> None:
    """Both are symbols of one size, with names of their own."""
    with fresh_symbols():
        base, claim = IntegerEncoding(decide, "size"), mapping()
        names = [base.symbol(N).symbol_name(), BitEncoding(frozenset()).term(N).symbol_name()]
        assert len(set(names)) == 2
        for name in names:
            failed = Obligation("n", "values", "", "unsat", "", (Answer("sat", 0.0, "z3", "", {name: 3}),))
            proof: Any = SimpleNamespace(mapping=claim, base=base)
            found = sizes_in_model(proof, failed)
            assert found is not None and found["n"] == 3
