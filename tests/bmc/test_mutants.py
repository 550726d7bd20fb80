"""Mutants of mappings: one place is changed, the mapping itself stays as it is, and wrong ones are not proved."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from random import Random

import pytest

import bmc.prove
import chc.mapping.prove
from bmc.mutants import Mutant, changes, mutants, statement_changes
from bmc.search import search
from ila_lang import BOOL, Expr, For, Kernel, bv, concat, const, ite, mem, primitive, var
from ila_lang.language.kernel import Let, Store
from ila_lang.mapping import TensorMapping
from reports.certificate import semantics_of
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.toy import copy_body, mapping

A, B, C, D = var("a", bv(8)), var("b", bv(8)), var("c", BOOL), var("d", bv(4))
M = var("m", mem(8, 8))


@primitive(bv(8), x=bv(8), y=bv(8))
def less(x: Expr, y: Expr) -> Expr:
    """The difference."""
    return x - y


CHANGES: dict[Expr, set[Expr]] = {
    A + B: {A - B, A + B + 1, A + B - const(1, 8)},
    A - B: {A + B, B - A, A - B + 1, A - B - const(1, 8)},
    A < B: {A <= B, B < A, ~(A < B)},
    A <= B: {A < B, B <= A, A == B, ~(A <= B)},
    ~C: {C},
    C: {~C},
    const(3, 8): {const(4, 8), const(2, 8)},
    const(255, 8): {const(0, 8), const(254, 8)},
    ite(C, A, B): {ite(C, B, A), ite(C, A, B) + 1, ite(C, A, B) - const(1, 8)},
    A[5:2]: {A[4:1], A[6:3], A[5:2] + 1, A[5:2] - const(1, 4)},
    A[7:4]: {A[6:3], A[7:4] + 1, A[7:4] - const(1, 4)},
    D.zext(8): {D.sext(8), D.zext(8) + 1, D.zext(8) - const(1, 8)},
    concat(D, A[3:0]): {concat(A[3:0], D), concat(D, A[3:0]) + 1, concat(D, A[3:0]) - const(1, 8)},
    less(A, B): {less(B, A), less(A, B) + 1, less(A, B) - const(1, 8)},
    A << B: {A >> B, B << A, (A << B) + 1, (A << B) - const(1, 8)},
    M: set(),
}


@pytest.mark.parametrize("node", CHANGES, ids=str)
def test_one_thing_of_a_node_is_changed(node: Expr) -> None:
    assert set(changes(node)) == CHANGES[node]
    assert all(new.sort == node.sort for new in changes(node))


def test_a_variable_is_replaced_by_those_of_its_sort() -> None:
    assert set(changes(A, [A, B, C, D])) == {A, B, A + 1, A - const(1, 8)}


def test_statements_are_dropped_doubled_and_exchanged() -> None:
    first, second = Store(M, A, A), Store(M, B, B)
    found = {what: (count, new) for what, count, new in statement_changes(first, second)}
    assert found == {
        "dropped": (1, ()), "doubled": (1, (first, first)), "exchanged with the next one": (2, (second, first)),
    }  # fmt: skip
    inner = For(B, var("n", bv(8)), (first,))
    (_, _, (loop,)) = list(statement_changes(For(A, var("k", bv(8)), (inner,)), None))[-1]
    assert loop == For(B, var("n", bv(8)), (For(A, var("k", bv(8)), (first,)),))
    triangle = For(A, var("k", bv(8)), (For(B, A, (first,)),))
    assert "interchanged with the loop inside" not in {what for what, _, _ in statement_changes(triangle, None)}
    assert [what for what, _, _ in statement_changes(Let(A, B), None)] == ["dropped", "doubled"]


def drawn(claim: TensorMapping, count: int, seed: int = 0) -> list[Mutant]:
    return list(islice(mutants(claim, Random(seed)), count))


def test_the_same_seed_makes_the_same_mutants_and_another_one_others() -> None:
    names = [[m.what for m in drawn(mapping(), 30, seed)] for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2]
    assert len(set(names[0])) == 30


def test_every_mutant_means_something_else_and_the_mapping_stays_as_it_is() -> None:
    claim = mapping(copy_body, copy_body)
    before = semantics_of(claim)
    meanings = [semantics_of(m.mapping) for m in drawn(claim, 60)]
    assert semantics_of(claim) == before
    for meaning in meanings:
        assert meaning["relation"] == before["relation"]
        assert (meaning["device"] != before["device"]) + (meaning["ir"] != before["ir"]) == 1


def test_all_kinds_of_places_are_changed_in_instructions_that_run() -> None:
    """The toys' write and read stand beside the program."""
    said = "\n".join(m.what for m in drawn(mapping(), 250))
    for part in (
        "device, program", "ir, program", "device, toy_kernel", "ir, toyir_kernel", "decode: ", "update of n_reg: ",
        "start: ", ": dropped", ": doubled", "interchanged", "extent: ", "address: ", "value: ", "run: ",
    ):  # fmt: skip
        assert part in said, part
    assert "instruction go" in said and "instruction write" not in said and "instruction read" not in said


def added(kernel: Kernel, s: Mapping[str, Expr]) -> None:
    """dst := src + j, with a register and a product."""
    with kernel.loop("i", s["n"]) as i, kernel.loop("j", s["m"]) as j:
        word = kernel.load("word", s["src"], i * s["m"] + j)
        kernel.store(s["dst"], i * s["m"] + j, kernel.let("sum", word * 3 + 1))


@pytest.mark.proof
def test_mutants_that_differ_are_not_proved() -> None:
    claim, different = mapping(added, added), 0
    for mutant in drawn(claim, 24, seed=3):
        if search(mutant.mapping, budget_seconds=0.3) is None:
            continue
        different += 1
        verdict = chc.mapping.prove.prove(mutant.mapping, discharger=Discharger(timeout=1.0))
        assert verdict.status is not Status.PROVED, mutant.what
        verdict = bmc.prove.prove(mutant.mapping, (2, 3), discharger=Discharger(timeout=1.0), search_seconds=0)
        if search(mutant.mapping, shapes=[(2, 3)], budget_seconds=0.3) is not None:
            assert verdict.status is not Status.PROVED, mutant.what
    assert different >= 12
    assert chc.mapping.prove.prove(claim, discharger=Discharger(timeout=10.0)).status is Status.PROVED
