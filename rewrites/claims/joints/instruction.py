"""The one instruction of the tensor-IR ILA that a mapping's IR side runs, and its operands in terms of sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ila_lang import Expr, Fragment, Kernel, substitute
from ila_lang.language.kernel import Command


class Unread(ValueError):
    """Something that is not read as a tensor term; the message says what."""


@dataclass(frozen=True)
class Called:
    """A kernel, the memories and operands (states) that it may use, and the operands' values by the mapping's sizes."""

    name: str
    kernel: Kernel
    memories: Mapping[str, Expr]
    operands: Mapping[Expr, Expr]


def called(fragment: Fragment) -> Called:
    """What a fragment of one command runs; raises Unread where it is another fragment."""
    ila = fragment.ila
    match fragment.program.body:
        case [Command(inputs=given)]:
            inputs = {ila.inputs[name]: value for name, value in given}
        case _:
            raise Unread(f"the IR side {fragment.name} must be one command")
    chosen = []
    for instruction in ila.instructions.values():
        decoded = substitute(ila.valid & instruction.decode, inputs)
        if not decoded.is_const:
            raise Unread(f"whether {fragment.name} runs {instruction.name} must not depend on sizes")
        chosen += [instruction] if decoded.value else []
    if len(chosen) != 1 or chosen[0].kernel is None or not chosen[0].kernel_guard.is_const:
        raise Unread(f"{fragment.name} must run one kernel, whatever the sizes are")
    (instruction,) = chosen
    if not instruction.kernel_guard.value:
        raise Unread(f"{instruction.name} must start its kernel")
    updates = {ila.states[name]: substitute(value, inputs) for name, value in instruction.updates.items()}
    memories = {name: state for name, state in ila.states.items() if state not in updates}
    assert instruction.kernel is not None
    return Called(instruction.name, instruction.kernel, memories, updates)
