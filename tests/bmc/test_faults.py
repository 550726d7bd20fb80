"""Every seeded fault is refuted with a counterexample that replays, and no method proves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from accel_models.flexasr.numerics import adpfloat_max
from accel_models.flexasr.program import parse_program, run
from bmc.counterexample import Counterexample, replays
from bmc.programs import program_of, write_program_file
from bmc.prove import prove
from bmc.search import search
from chc.mapping.prove import prove as prove_chc
from ila_lang import Kernel, Machine, bv, const, mem, var
from ila_lang.mapping import TensorMapping
from rewrites.mappings.flexasr.pooling import pooling_mapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.bmc.faults import FAULTS, LARGE_FAULTS, Parts, minimum
from tests.bmc.mutation import NotSeeded, mutate, mutate_statements

SECONDS = {
    "one_vector_too_many", "stride_of_another_manager_entry", "started_while_not_valid", "mean_mode_for_max",
    "unit_counts_one_vector_less", "unit_counts_two_timesteps_less", "window_stride_one", "unit_not_started",
    "unit_names_only_even_manager_entries",
}  # fmt: skip
"""Faults whose search takes seconds."""
LONG = {"window_one_by_two", "odd_rows_admitted", "store_swaps_bytes", "one_lane_too_few"}
"""Faults of which the attempt at a proof takes seconds."""


def some(names: Iterable[str], chosen: Callable[[int, str], bool]) -> list[Any]:
    """Names as parameters; those that are not chosen are slow tests."""
    return [n if chosen(i, n) else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(names)]


def test_a_minimum_that_is_called_maximum_is_refused() -> None:
    parts, other = Parts(), minimum("adpfloat_max")
    mutate(parts.kernel, lambda n: n.func is adpfloat_max, lambda n: other(*n.args))
    with pytest.raises(ValueError, match="must have names of their own, but two are called adpfloat_max"):
        parts.mapping("a minimum")


def find(name: str) -> tuple[TensorMapping, Counterexample]:
    shape, build = (None, FAULTS[name]) if name in FAULTS else LARGE_FAULTS[name]
    mapping = build()
    found = search(mapping, shapes=None if shape is None else [shape], budget_seconds=120)
    assert found is not None
    return mapping, found


def check(name: str) -> None:
    mapping, found = find(name)
    assert replays(mapping, found)
    assert found.device != found.ir
    # shrunk: a fault shows with a few non-zero inputs and a few dirty registers
    assert len(found.initial) <= 4
    for data in ("uninterpreted", "bits"):
        verdict = prove(
            mapping,
            found.sizes,
            data=data,
            discharger=Discharger(timeout=3, second=False),
            search_seconds=0,  # type: ignore[arg-type]
        )
        assert verdict.status is Status.UNKNOWN
    # the program file shows the same outputs on the faulty model, where commands can set the state it depends on
    text = write_program_file(mapping, found)
    reads = run(parse_program(text), Machine(mapping.device.ila))
    words = [word >> 8 * lane & 255 for _, word in reads for lane in range(16)]
    _, columns = mapping.output_extents(found.sizes)
    assert words[found.row * columns + found.column] == found.device


@pytest.mark.proof
@pytest.mark.parametrize("name", some(FAULTS, lambda _, name: name not in SECONDS))
def test_fault_is_refuted(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("name", LARGE_FAULTS)
def test_fault_of_large_shapes_is_refuted(name: str) -> None:
    check(name)


@pytest.mark.proof
@pytest.mark.parametrize("name", some([*FAULTS, *LARGE_FAULTS], lambda i, name: i % 6 == 0 and name not in LONG))
def test_fault_is_not_proved_for_every_size(name: str) -> None:
    mapping = FAULTS[name]() if name in FAULTS else LARGE_FAULTS[name][1]()
    verdict = prove_chc(mapping, discharger=Discharger(timeout=3, second=False), horn_timeout=3)
    assert verdict.status is Status.UNKNOWN


@pytest.mark.proof
def test_bounded_proof_refutes_at_its_own_shape() -> None:
    mapping = FAULTS["pairs_from_the_top"]()
    holds = prove(mapping, (2, 16), discharger=Discharger(second=False))
    assert holds.status is Status.PROVED  # one pair has no order
    verdict = prove(mapping, (4, 16), discharger=Discharger(second=False))
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample)
    assert found.shape == (4, 16) and replays(mapping, found)


@pytest.mark.proof
def test_counterexample_of_one_mapping_does_not_replay_on_another() -> None:
    _, found = find("mean_mode_for_max")
    assert not replays(pooling_mapping("max"), found)


def test_programs_are_flat_command_lists() -> None:
    mapping = pooling_mapping("max")
    commands = program_of(mapping, mapping.sizes_of(2, 16), {"host_in": {0: 5}})
    assert len(commands) == 6
    assert commands[0]["data_in"] == 5 and commands[0]["if_axi_wr"] == 1


def test_a_fault_that_changes_nothing_is_an_error() -> None:
    kernel = Kernel("k")
    memory, i = var("memory", mem(8, 8)), const(1, 8)
    kernel.store(memory, i, kernel.load("word", memory, i) + 1)
    with pytest.raises(NotSeeded):
        mutate(kernel, lambda n: n is var("absent", bv(8)), lambda n: n)
    with pytest.raises(NotSeeded):
        mutate_statements(kernel, lambda _: True, lambda _: [])
    mutate_statements(kernel, lambda _: True, lambda _: [], 2)
    assert kernel.body == []
