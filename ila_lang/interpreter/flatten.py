"""The flat form of a kernel: a child-ILA of micro-instructions, as ILAng users write them by hand.

The loops of an instruction's kernel become counters, limit registers and the state of a finite-state machine
(FSM).  The child's states are the parent's, and for a kernel ``k``

* ``k_valid``: set by the instruction that starts the kernel, cleared by the last micro-instruction;
* ``k_state``: which micro-instruction is next;
* ``k_<register>`` for each counter and local register, and ``k_<counter>_limit`` for each loop.

Its inputs are the parent's and the Boolean ``step``.  With ``step`` low a command is the parent's: the start
instruction, accepted while ``k_valid`` is low.  With ``step`` high, accepted while ``k_valid`` is high, no
command is present and one micro-instruction executes:

* ``<counter>_enter`` reads the extent into the limit register and skips the loop if it is 0;
* ``segment_<n>`` is a straight run of loads, stores and assignments as one simultaneous update, in which a
  load sees the stores before it;
* ``<counter>_next`` and ``<counter>_leave`` advance or leave a loop;
* ``done`` applies the kernel's final values and clears ``k_valid``.

Exactly one instruction decodes each valid command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ila_lang.language.build import const, false, ite, true
from ila_lang.language.expr import Expr, substitute
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store, walk
from ila_lang.language.model import Ila, Instruction
from ila_lang.language.sorts import BOOL, MemSort

from .machine import Machine


@dataclass(frozen=True)
class _Segment:
    """Straight-line statements between two loop boundaries."""

    number: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class _Enter:
    """The entry of a loop; ``leave`` is the position of its :class:`_Advance`."""

    loop: For
    leave: int


@dataclass(frozen=True)
class _Advance:
    """The end of a loop's body; ``enter`` is the position of its :class:`_Enter`."""

    loop: For
    enter: int


_Step = _Segment | _Enter | _Advance


def child_ila(ila: Ila, instruction_name: str) -> Ila:
    """The child-ILA of one instruction: its start and the micro-instructions of its kernel.

    Raises ValueError if the instruction is unknown, starts no kernel, if the kernel issues commands or stores
    to anything but a memory state, or if a name of the child is already taken in ``ila``.
    """
    parent = ila.instructions.get(instruction_name)
    if parent is None:
        raise ValueError(f"{ila.name} has no instruction {instruction_name}")
    if parent.kernel is None:
        raise ValueError(f"Instruction {instruction_name} must start a kernel to have a child-ILA")
    return _Child(ila, parent, parent.kernel).build()


class _Child:
    """Builds one child-ILA."""

    def __init__(self, parent: Ila, instruction: Instruction, kernel: Kernel) -> None:
        self.instruction = instruction
        self.kernel = kernel
        self.steps: list[_Step] = []
        self._lay_out(tuple(kernel.body))

        name = kernel.name
        self.child = child = Ila(f"{parent.name}.{name}", f"Micro-instructions of {instruction.name}.")
        for n, v in parent.inputs.items():
            child.input(n, v.sort)
        for n, v in parent.states.items():
            child.state(n, v.sort, parent.inits.get(n), parent.state_docs[n])
        self.step = child.input("step", BOOL)
        self.flag = child.state(f"{name}_valid", BOOL, 0, f"{name} runs")
        self.state_width = max(1, len(self.steps).bit_length())
        self.fsm = child.state(f"{name}_state", self.state_width, 0, f"next micro-instruction of {name}")
        # what the kernel calls a register is this state of the child
        self.registers: dict[Expr, Expr] = {}
        self.limits: dict[Expr, Expr] = {}
        for statement in walk(kernel.body):
            match statement:
                case For(counter=counter, extent=extent):
                    self._register(counter, f"counter of loop {counter.name}")
                    self.limits[counter] = child.state(
                        f"{name}_{counter.name}_limit", extent.sort, doc=f"extent of loop {counter.name}"
                    )
                case Let(target=target) | Load(target=target):
                    self._register(target, f"local register {target.name}")
                case Command():
                    raise ValueError(f"Kernel {name} must not issue commands to have a child-ILA")
                case Store(memory=memory):
                    if memory.op != "var":
                        raise ValueError(f"Kernel {name} must store to memory states only, not to {memory!r}")

    def _register(self, variable: Expr, doc: str) -> None:
        if variable not in self.registers:
            name = f"{self.kernel.name}_{variable.name}"
            self.registers[variable] = self.child.state(name, variable.sort, doc=doc)

    def _lay_out(self, body: tuple[Statement, ...]) -> None:
        """Appends the steps of ``body``: after the step at p comes that at p + 1 unless a loop turns back."""
        straight: list[Statement] = []

        def close() -> None:
            if straight:
                number = sum(isinstance(s, _Segment) for s in self.steps)
                self.steps.append(_Segment(number, tuple(straight)))
                straight.clear()

        for statement in body:
            if isinstance(statement, For):
                close()
                at = len(self.steps)
                self.steps.append(_Enter(statement, at))
                self._lay_out(statement.body)
                self.steps[at] = _Enter(statement, len(self.steps))
                self.steps.append(_Advance(statement, at))
            else:
                straight.append(statement)
        close()

    def build(self) -> Ila:
        self._start()
        for position, step in enumerate(self.steps):
            match step:
                case _Enter(loop=loop, leave=leave):
                    self._enter(position, loop, leave)
                case _Segment(number=number, body=body):
                    self._segment(position, number, body)
                case _Advance(loop=loop, enter=enter):
                    self._advance(position, loop, enter)
        self._done(len(self.steps))
        return self.child

    def _start(self) -> None:
        child, parent = self.child, self.instruction
        # beyond the last state nothing decodes; such a state is never reached
        running = self.step & self.flag & (self.fsm <= len(self.steps))
        child.set_valid(running | (~self.step & ~self.flag & parent.ila.valid & parent.decode))
        start = child.instruction(parent.name, parent.doc).set_decode(~self.step)
        for name, term in parent.updates.items():
            start.update(child.states[name], term)
        # the start condition holds for the state after the updates
        after = {parent.ila.states[name]: term for name, term in parent.updates.items()}
        start.update(self.flag, substitute(parent.kernel_guard, after))
        start.update(self.fsm, 0)

    def _micro(self, position: int, name: str, when: Expr = true) -> Instruction:
        decode = self.step & (self.fsm == position) & when
        return self.child.instruction(name).set_decode(decode)

    def _enter(self, position: int, loop: For, leave: int) -> None:
        extent = substitute(loop.extent, self.registers)
        micro = self._micro(position, f"{loop.counter.name}_enter")
        micro.update(self.limits[loop.counter], extent)
        micro.update(self.registers[loop.counter], 0)
        micro.update(self.fsm, ite(extent == 0, self._at(leave + 1), self._at(position + 1)))

    def _advance(self, position: int, loop: For, enter: int) -> None:
        counter, limit = self.registers[loop.counter], self.limits[loop.counter]
        # compared at the wider width, and with limit - 1: counter + 1 may not fit the counter
        width = max(counter.width, limit.width)
        last = counter.zext(width) == limit.zext(width) - 1
        onward = self._micro(position, f"{loop.counter.name}_next", ~last)
        onward.update(counter, counter + 1)
        onward.update(self.fsm, self._at(enter + 1))
        self._micro(position, f"{loop.counter.name}_leave", last).update(self.fsm, self._at(position + 1))

    def _segment(self, position: int, number: int, body: tuple[Statement, ...]) -> None:
        """Composes statements in sequence into one simultaneous update, by substitution."""
        now: dict[Expr, Expr] = dict(self.registers)
        changed: dict[Expr, None] = {}
        for statement in body:
            match statement:
                case Let(target=target, value=value):
                    now[target] = substitute(value, now)
                    changed[target] = None
                case Load(target=target, memory=memory, address=address):
                    now[target] = substitute(memory.load(address), now)
                    changed[target] = None
                case Store(memory=memory, address=address, value=value):
                    new = substitute(memory, now).store(substitute(address, now), substitute(value, now))
                    now[memory] = new
                    changed[memory] = None
        micro = self._micro(position, f"segment_{number}")
        for variable in changed:
            micro.update(self.registers.get(variable, variable), now[variable])
        micro.update(self.fsm, self._at(position + 1))

    def _done(self, position: int) -> None:
        micro = self._micro(position, "done")
        for name, term in self.kernel.on_done.items():
            micro.update(self.child.states[name], substitute(term, self.registers))
        micro.update(self.flag, false)
        micro.update(self.fsm, 0)

    def _at(self, position: int) -> Expr:
        return const(position, self.state_width)


def run_child(machine: Machine, kernel_name: str, inputs: Mapping[str, int], limit: int = 1_000_000) -> int:
    """Starts the kernel of a child-ILA's machine with the parent's ``inputs`` and steps it to its end.

    Returns the number of micro-instructions executed.  Raises RuntimeError after ``limit`` of them, and
    :class:`~ila_lang.interpreter.machine.CommandError` if the start is not accepted.
    """
    machine.step({**inputs, "step": 0})
    count = 0
    while machine.values[f"{kernel_name}_valid"]:
        if count >= limit:
            raise RuntimeError(f"Kernel {kernel_name} did not end within {limit} micro-instructions")
        machine.step({"step": 1})
        count += 1
    return count


def child_differs(
    ila: Ila,
    instruction_name: str,
    inputs: Mapping[str, int],
    values: Mapping[str, int] | None = None,
    memories: Mapping[str, Mapping[int, int]] | None = None,
    limit: int = 1_000_000,
) -> str | None:
    """The first state that the child-ILA leaves other than the structured kernel does, or None.

    Both start from the reset state overwritten with ``values`` and ``memories`` and execute the instruction
    with ``inputs``.  The answer names the state (with the address in a memory) and both values.
    """
    child = child_ila(ila, instruction_name)
    kernel = ila.instructions[instruction_name].kernel
    assert kernel is not None  # child_ila has checked it
    structured, flat = Machine(ila), Machine(child)
    for machine in (structured, flat):
        machine.values.update(values or {})
        for name, contents in (memories or {}).items():
            machine.memories[name].update(contents)
    structured.step(inputs)
    run_child(flat, kernel.name, inputs, limit)
    for name, state in ila.states.items():
        if isinstance(state.sort, MemSort):
            left, right = structured.memories[name], flat.memories[name]
            for address in sorted(left.keys() | right.keys()):
                if left[address] != right[address]:
                    return f"{name}[{address:#x}]: kernel {left[address]:#x}, child {right[address]:#x}"
        elif structured.values[name] != flat.values[name]:
            return f"{name}: kernel {structured.values[name]:#x}, child {flat.values[name]:#x}"
    return None
