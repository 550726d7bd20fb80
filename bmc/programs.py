"""Concrete device programs of a mapping: the commands that a driver sends, and program files that replay outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ila_lang import Machine, run_fragment
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import TensorMapping

from .counterexample import Counterexample
from .runner import Initial
from .unroll import Cell, owners


def program_of(
    mapping: TensorMapping,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Mapping[int, int]],
    initial: Initial | None = None,
) -> list[Mapping[str, int]]:
    """The commands of the device fragment at these sizes, in issue order, each with a value for every input.

    ``tensors`` gives the elements of host tensors by row-major index (others are 0); ``initial`` the initial
    contents of the device (others are at reset), on which a program may depend that reads before it writes.
    Raises SizeError outside the domain and CommandError where the model does not accept a command.
    """
    mapping.require(sizes)
    commands: list[Mapping[str, int]] = []
    inputs = mapping.device.ila.inputs

    def note(command: Mapping[str, int], _: str) -> None:
        commands.append({name: int(command.get(name, 0)) for name in inputs})

    _execute(mapping, sizes, tensors, initial or {}, note)
    return commands


def write_program_file(mapping: TensorMapping, counterexample: Counterexample) -> str:
    """A program file that shows the counterexample's device outputs on a device after reset.

    Leading commands set up the registers and memory words that the counterexample depends on.  Raises
    ValueError if the mapping has no file form, or if no commands bring about this initial state (on this very
    model, so a fault in how it stores counts, too).
    """
    if mapping.program_file is None:
        raise ValueError(f"Mapping {mapping.name} must have a program_file to be written as one; its device has none")
    if counterexample.error:
        raise ValueError(f"A program that the model refuses has no replay: {counterexample.error}")
    registers = {c.owner: v for c, v in counterexample.initial.items() if c.side == "device" and c.address is None}
    memories: dict[str, dict[int, int]] = {}
    for cell, value in counterexample.initial.items():
        if cell.side == "device" and cell.address is not None:
            memories.setdefault(cell.owner, {})[cell.address] = value
    leading: list[Mapping[str, int]] = []
    if registers or memories:
        if mapping.setup_commands is None:
            raise ValueError(
                f"{mapping.name} must have setup_commands, for this run begins in a state that is not that after a "
                "reset; give its TensorMapping a function that returns the commands which set registers and memories"
            )
        leading = mapping.setup_commands(registers, memories)
    device = {c: v for c, v in counterexample.initial.items() if c.side == "device"}
    machine = Machine(mapping.device.ila)
    for command in leading:
        machine.step(command)
    for cell, value in device.items():
        held = machine.values[cell.owner] if cell.address is None else machine.memories[cell.owner][cell.address]
        if held != value:
            raise ValueError(f"No command sets {cell.owner} of {mapping.device.ila.name} to {value:#x} on this model")
    tensors = _tensors(mapping, counterexample)
    expected = _outputs(mapping, counterexample.sizes, tensors, device, None)
    if _outputs(mapping, counterexample.sizes, tensors, device, machine) != expected:
        raise ValueError(f"The outputs of this counterexample of {mapping.name} need state that commands cannot set")
    commands = program_of(mapping, counterexample.sizes, tensors, device)
    return mapping.program_file([*leading, *commands])


def _tensors(mapping: TensorMapping, counterexample: Counterexample) -> dict[str, dict[int, int]]:
    """The inputs, and what the device's other host tensors hold at first."""
    tensors = counterexample.inputs
    names = {cell: name for name, cell in owners(mapping, "device")[1].items() if cell.side != "input"}
    for cell, value in counterexample.initial.items():
        name = names.get(replace(cell, address=None))
        if name is not None and cell.address is not None:
            tensors.setdefault(name, {})[cell.address] = value
    return tensors


def _outputs(
    mapping: TensorMapping,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Mapping[int, int]],
    initial: Initial,
    machine: Machine | None,
) -> list[int]:
    memories = _execute(mapping, sizes, tensors, initial, lambda *_: None, machine)
    rows, columns = mapping.output_extents(sizes)
    return [memories[mapping.output[0]][i] for i in range(rows * columns)]


def _execute(
    mapping: TensorMapping,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Mapping[int, int]],
    initial: Initial,
    note: Callable[[Mapping[str, int], str], None],
    machine: Machine | None = None,
) -> dict[str, Memory]:
    """Runs the device fragment, on ``machine`` or on a new one in the initial state; returns the host tensors."""
    if machine is None:
        machine = Machine(mapping.device.ila)
        for cell, value in initial.items():
            _set(machine, cell, value)
        for name, value in mapping.device.idle.items():
            if name in machine.memories:
                machine.memories[name] = Memory(value)
            else:
                machine.values[name] = value
    fragment = mapping.device
    host = {name: Memory(0, tensors.get(name, {})) for name in fragment.tensors}
    resident = {name: words for name, words in tensors.items() if name not in fragment.tensors}
    for name, words in resident.items():  # inputs that lie in the device's memories
        machine.memories[name].update(words)
    run_fragment(fragment, {name: sizes[name] for name in fragment.parameters}, host, machine, note)
    return machine.memories | host


def _set(machine: Machine, cell: Cell, value: int) -> None:
    if cell.side != "device":
        return
    if cell.address is None:
        machine.values[cell.owner] = value
    else:
        machine.memories[cell.owner][cell.address] = value
