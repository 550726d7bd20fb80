"""What tests of mappings ask: right ones are proved by both solvers, wrong ones are refuted by a run and not proved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import pytest

import chc.mapping.prove
from bmc.counterexample import replays
from bmc.search import search
from ila_lang import Command, Expr, For, Fragment, Kernel, Statement, Store, substitute
from ila_lang.language.kernel import map_statement
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.marks import slow_but

Test = Callable[[str], None]


def fault_tests(faults: Mapping[str, Callable[[], TensorMapping]], quick: Collection[str]) -> tuple[Test, Test]:
    """Tests that each fault is refuted by a run that replays, and that it is not proved for every size.

    But for the quick runs they are slow.
    """

    @pytest.mark.parametrize("name", slow_but(quick, faults))
    def refuted(name: str) -> None:
        require_refuted(faults[name]())

    @pytest.mark.slow
    @pytest.mark.parametrize("name", faults)
    def unproved(name: str) -> None:
        require_unproved(faults[name]())

    return refuted, unproved


def require_refuted(
    mapping: TensorMapping, *, shapes: Iterable[tuple[int, ...]] | None = None, seconds: float = 300.0
) -> None:
    """A run within so many seconds shows that both sides differ, and shows it again."""
    found = search(mapping, shapes=shapes, budget_seconds=seconds)
    assert found is not None
    assert replays(mapping, found)


def require_unproved(mapping: TensorMapping) -> None:
    """CHC tries and says that it does not know."""
    verdict = chc.mapping.prove.prove(mapping, discharger=Discharger(timeout=10.0, second=False), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN, verdict.reason


def require_proved(mapping: TensorMapping) -> Verdict:
    """CHC proves it for every size, by obligations with names of their own, each answered by both solvers."""
    verdict = chc.mapping.prove.prove(mapping)
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    return verdict


def edited(mapping: TensorMapping, note: str, change: Callable[[Command], Command]) -> TensorMapping:
    """The mapping with the command of that note changed, which must stand in the device's program once."""
    count = 0

    def walk(statement: Statement) -> Statement:
        nonlocal count
        if isinstance(statement, For):
            return For(statement.counter, statement.extent, tuple(map(walk, statement.body)))
        if isinstance(statement, Command) and statement.note == note:
            count += 1
            return change(statement)
        return statement

    device = mapping.device
    program = Kernel(device.name, body=list(map(walk, device.program.body)))
    assert count == 1
    return replace(mapping, device=Fragment(device.name, device.ila, device.parameters, device.tensors, program))


def changed(mapping: TensorMapping, where: str, values: Mapping[Expr, Expr]) -> TensorMapping:
    """The mapping with terms put in the place of others in the commands of a note, in conditions, or in stores."""
    found: list[Statement] = []

    def go(statement: Statement) -> Statement:
        match statement:
            case For(counter=counter, extent=extent, body=body):
                if counter.name.startswith(where):
                    found.append(statement)
                    extent = substitute(extent, values)
                return For(counter, extent, tuple(map(go, body)))
            case Command(note=note) | Store(memory=Expr(name=note)) if note == where:
                found.append(statement)
                return map_statement(statement, lambda term: substitute(term, values))
        return statement

    return with_body(mapping, [go(s) for s in mapping.device.program.body], found)


def with_body(mapping: TensorMapping, body: list[Statement], found: list[Statement]) -> TensorMapping:
    """The mapping with another device program, in which something was found that is changed."""
    assert found
    device = mapping.device
    program = Kernel(device.name, body=body)
    return replace(mapping, device=Fragment(device.name, device.ila, device.parameters, device.tensors, program))
