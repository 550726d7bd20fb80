"""Dense layers that the IR sums in another order than VTA's GEMM, and faults of the program that must not be proved."""

from __future__ import annotations

from functools import partial

import pytest

import bmc.sums
import chc.mapping.prove
from bmc.counterexample import Counterexample, replays
from ila_lang import const
from ir_semantics.layers.dense import Order
from rewrites.mappings.vta import dense as dense_module
from rewrites.mappings.vta.dense import dense_mapping
from smt_encodings.claims import Equality, Status
from smt_encodings.discharge import Discharger
from tests.rewrites.mappings.vta.faults import Change, faulty, given, left_out, twice

SHAPE = (1, 32, 16)


@pytest.mark.proof
@pytest.mark.parametrize(
    "order",
    [Order.BACKWARD, *(pytest.param(o, marks=pytest.mark.slow) for o in (Order.FORWARD, Order.BLOCKED))],
    ids=str,
)
def test_any_order_is_proved(order: Order) -> None:
    """GEMM sums the products of a tile before it adds them, so that blocks are its own order."""
    verdict = bmc.sums.prove(dense_mapping(order=order), SHAPE)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.equality is Equality.BIT_EXACT
    elements = [o for o in verdict.obligations if o.name == "class 0 of 1"]
    assert ("(!hash0 " in elements[0].smtlib) == (order is not Order.BLOCKED)
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)


CHANGES: dict[str, dict[str, Change]] = {
    "accumulators are not cleared": {"clear accumulators": left_out},
    "each product is added twice": {"GEMM": twice},
    "the bias lands on the sums": {"load ACC": given(sram_base=const(0, 32))},
}
BACKWARD = partial(dense_mapping, order=Order.BACKWARD)
FAULTS = {name: partial(faulty, BACKWARD, dense_module, changes) for name, changes in CHANGES.items()}


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    mapping = FAULTS[name]()
    assert bmc.sums.prove(mapping, SHAPE, search_seconds=0).status is Status.UNKNOWN
    every_size = chc.mapping.prove.prove(mapping, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
    assert every_size.status is Status.UNKNOWN
    verdict = bmc.sums.prove(mapping, SHAPE)
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and replays(mapping, found)
