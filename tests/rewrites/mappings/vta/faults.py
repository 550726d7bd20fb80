"""Faulty twins of VTA's mappings: programs whose host gives other instructions than the proved one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from accel_models.vta.isa import Opcode
from ila_lang import Expr, Ila, Kernel, concat, const
from ila_lang.mapping import TensorMapping
from rewrites.mappings.vta.programs import Program

Change = Callable[["Faulty", Callable[..., None], dict[str, Any]], None]
"""What is done in the place of a command: the program, what issues the command, and its fields."""


class Faulty(Program):
    """A program with changes by the note of a command ("load INP", "GEMM"), or by its first word.

    The extent of a loop is changed by its counter's name, and ``counters`` has the counters of all loops.
    """

    def __init__(self, changes: Mapping[str, Change], extents: Mapping[str, Expr], kernel: Kernel, ila: Ila) -> None:
        super().__init__(kernel, ila)
        self.changes, self.counters = changes, dict[str, Expr]()
        loop = kernel.loop

        def noted(name: str, extent: Expr, *width: int) -> Any:
            opened = loop(name, extents.get(name, extent), *width)
            enter = opened.__enter__
            return _Opened(lambda: self.counters.setdefault(name, enter()), opened.__exit__)

        kernel.loop = noted  # type: ignore[method-assign]

    def _issue(self, note: str, opcode: Opcode, **fields: Any) -> None:
        change = self.changes.get(note) or self.changes.get(note.split()[0], _unchanged)
        change(self, partial(super()._issue, note, opcode), fields)

    def write(self, note: str, vector: Expr, data: Expr) -> None:
        """Writes a vector, unless it is changed."""
        change = self.changes.get(note, _unchanged)
        change(self, partial(super().write, note), {"vector": vector, "data": data})

    def clear(self, **fields: Any) -> None:
        """A GEMM that clears, whatever is changed of others."""
        Program._issue(self, "clear accumulators", Opcode.GEMM, reset_reg=1, **fields)


class _Opened:
    """An open loop."""

    def __init__(self, enter: Callable[[], Expr], leave: Callable[..., Any]) -> None:
        self.enter, self.leave = enter, leave

    def __enter__(self) -> Expr:
        return self.enter()

    def __exit__(self, *error: Any) -> Any:
        return self.leave(*error)


def _unchanged(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    issue(**fields)


def left_out(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    """Nothing is issued."""


def twice(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    """The command is issued, and issued again."""
    issue(**fields)
    issue(**fields)


def given(**other: Any) -> Change:
    """Other fields; a function makes a field of what it was."""

    def change(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
        issue(**fields | {name: new(fields[name]) if callable(new) else new for name, new in other.items()})

    return change


def where(condition: Callable[[dict[str, Any]], bool], change: Change) -> Change:
    """A change of those commands only for whose fields a condition holds."""
    return lambda program, issue, fields: (change if condition(fields) else _unchanged)(program, issue, fields)


def micro_ops(*words: Expr) -> Change:
    """Other micro-ops."""
    return given(data=concat(*reversed([*words, *([const(0, 32)] * (4 - len(words)))])))


def faulty(
    build: Callable[[], TensorMapping], module: ModuleType, changes: Mapping[str, Change], **extents: Expr
) -> TensorMapping:
    """The mapping that a function of a module builds, with these changes of its program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Program", partial(Faulty, changes, extents))
        return build()
