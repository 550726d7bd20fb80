"""The instructions of the tensor-IR ILA that a mapping's IR side runs, and their operands in terms of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ila_lang import BvSort, Expr, Fragment, Function, Kernel, postorder, substitute
from ila_lang.language.expr import private_var
from ila_lang.language.kernel import Command, Load, Store, walk


class Unread(ValueError):
    """Something that is not read as a tensor term; the message says what."""


def require_functions(readings: Iterable[object]) -> None:
    """Raises Unread where readings are of something else than functions."""
    for key in readings:
        if not isinstance(key, Function):
            raise Unread(f"readings must be of functions, not of {key!r:.60}; take what @primitive makes")


@dataclass(frozen=True)
class Called:
    """A kernel, the memories and operands (states) that it may use, and the operands' values by the mapping's sizes.

    ``names`` are those of the operands as sizes.
    """

    name: str
    kernel: Kernel
    memories: Mapping[str, Expr]
    operands: Mapping[Expr, Expr]
    names: Mapping[Expr, str]

    @cached_property
    def stored(self) -> frozenset[str]:
        """The memories that the kernel stores to."""
        return frozenset(s.memory.name for s in walk(self.kernel.body) if isinstance(s, Store))

    @property
    def output(self) -> str:
        """The one memory that the kernel stores to; raises Unread where there are others."""
        if len(self.stored) != 1:
            names = ", ".join(sorted(self.stored)) or "none"
            raise Unread(f"the kernel {self.kernel.name} must store to one memory, not to {names}")
        return min(self.stored)


def called(fragment: Fragment) -> tuple[Called, ...]:
    """What the commands of a fragment run, one after the other; raises Unread where there is anything but commands.

    Operands of the second command are sizes of the name that they have and ``_2``, and so on.
    """
    if fragment.tensors:
        raise Unread(f"the IR side {fragment.name} must have no tensors of the host, such as {min(fragment.tensors)}")
    calls: list[Called] = []
    for number, statement in enumerate(fragment.program.body, start=1):
        if not isinstance(statement, Command):
            raise Unread(f"the IR side {fragment.name} must consist of commands")
        calls.append(_called(fragment, dict(statement.inputs), f"_{number}" if number > 1 else ""))
    names = [name for each in calls for name in each.names.values()]
    if not calls or len(set(names)) < len(names):
        raise Unread(f"the IR side {fragment.name} must be commands with operands of different names")
    return tuple(calls)


def _called(fragment: Fragment, operands: Mapping[str, Expr], suffix: str) -> Called:
    ila = fragment.ila
    inputs = {ila.inputs[name]: value for name, value in operands.items()}
    # inputs that the command leaves open, which may have names of sizes
    open_ = {variable: private_var(f"{name}!", variable.sort) for name, variable in ila.inputs.items()}

    def input_only(values: Iterable[Expr]) -> bool:
        """Whether they depend on inputs alone; what is put in for these may have names of states."""
        return {n for n in postorder(list(values)) if n.op == "var"} <= set(inputs)

    chosen = []
    for instruction in ila.instructions.values():
        decoded = substitute(ila.valid & instruction.decode, open_ | inputs)
        if not {n for n in postorder([ila.valid, instruction.decode]) if n.op == "var"} <= set(open_) or (
            not decoded.is_const
        ):
            raise Unread(f"whether {fragment.name} runs {instruction.name} must not depend on sizes")
        chosen += [instruction] if decoded.value else []
    if len(chosen) != 1 or chosen[0].kernel is None or not chosen[0].kernel_guard.is_const:
        raise Unread(f"{fragment.name} must run one kernel for each command, whatever the sizes are")
    (instruction,) = chosen
    if not instruction.kernel_guard.value or instruction.reserved:
        raise Unread(f"{instruction.name} must start its kernel, and not be reserved")
    updates = {ila.states[name]: substitute(value, inputs) for name, value in instruction.updates.items()}
    sizes = {n for n in postorder(updates.values()) if n.op == "var"}
    if not input_only(instruction.updates.values()) or not sizes <= set(fragment.parameters.values()):
        raise Unread(f"operands of {instruction.name} must be said by sizes, not by what earlier commands left")
    if not all(isinstance(state.sort, BvSort) for state in updates):
        raise Unread(f"operands of {instruction.name} must be words")
    memories = {name: state for name, state in ila.states.items() if state not in updates}
    assert instruction.kernel is not None
    accessed = [s.memory for s in walk(instruction.kernel.body) if isinstance(s, Load | Store)]
    if not all(memory.op == "var" for memory in accessed):
        raise Unread(f"what {instruction.name} loads and stores must be words of memories, not of expressions")
    names = {state: state.name + suffix for state in updates}
    if not all(name.isascii() and name.isidentifier() for name in names.values()):
        raise Unread(f"operands of {instruction.name} must have names of letters, digits and '_'")
    return Called(instruction.name, instruction.kernel, memories, updates, names)
