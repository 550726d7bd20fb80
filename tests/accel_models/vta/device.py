"""Machines of the VTA model with contents, and their memories as arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from accel_models.vta.assembly import parse_instruction
from accel_models.vta.isa import ENCODINGS, Instruction, Uop, encode, encode_uop
from accel_models.vta.model import vta
from accel_models.vta.options import HLS, VtaOptions
from ila_lang import Instruction as IlaInstruction
from ila_lang import Machine

SHAPES = {
    "uop": ((-1,), np.uint32), "inp": ((2048, 16), np.int8), "wgt": ((1024, 16, 16), np.int8),
    "acc": ((2048, 16), np.int32), "out": ((2048, 16), np.int8),
}  # fmt: skip


def fill(machine: Machine, name: str, array: np.ndarray) -> None:
    """Sets a whole memory."""
    unsigned = np.ascontiguousarray(array).view(f"u{array.itemsize}").ravel()
    machine.memories[name].update({i: int(v) for i, v in enumerate(unsigned) if v})


def contents(machine: Machine, name: str) -> np.ndarray:
    """A scratchpad as an array of elements, or DRAM's bytes."""
    memory = machine.memories[name]
    size = 1 << machine.ila.states[name].sort.addr_width  # type: ignore[union-attr]
    shape, kind = SHAPES.get(name, ((-1,), np.uint8))
    flat = np.zeros(size, f"u{np.dtype(kind).itemsize}")
    for address, word in memory.items():
        flat[address] = word
    return flat.view(kind).reshape(shape)


def issue(machine: Machine, instruction: Instruction | str, options: VtaOptions = HLS) -> IlaInstruction:
    """Executes one instruction, given as such or as assembly text."""
    if isinstance(instruction, str):
        instruction = parse_instruction(instruction)
    return machine.step({"command": 0, "insn": encode(instruction, ENCODINGS[options.encoding])})


def machine_with(options: VtaOptions = HLS, uops: Iterable[Uop] = (), **memories: dict[int, int]) -> Machine:
    """A machine with micro-ops from 0 on and words of other memories."""
    machine = Machine(vta(options))
    machine.memories["uop"].update(enumerate(map(encode_uop, uops)))
    for name, words in memories.items():
        machine.memories[name].update(words)
    return machine
