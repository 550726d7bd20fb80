"""Commands at FlexASR's port, and replay of recorded programs."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from ila_lang import Ila, Machine

LARGE, SMALL = 0x33500000, 0x33600000
FIRST, LAST = 0x33000000, 0x37FFFFFF


def write(machine: Machine, addr: int, data: int = 0) -> str:
    inputs = {"if_axi_wr": True, "if_axi_rd": False, "addr_in": addr, "data_in": data}
    return machine.step(inputs).name


def read(machine: Machine, addr: int) -> int:
    machine.step({"if_axi_wr": False, "if_axi_rd": True, "addr_in": addr})
    return machine.values["data_out"]


_machines: dict[Ila, Machine] = {}


def reset(ila: Ila) -> Machine:
    """A machine in its reset state; the same for equal models, because compiling its kernels takes longest."""
    if ila not in _machines:
        _machines[ila] = Machine(ila)
    machine = _machines[ila]
    for memory in machine.memories.values():
        memory.clear()
    machine.values.update({name: ila.inits[name] for name in machine.values})
    return machine


@cache
def _packed() -> dict[str, Any]:
    packed: dict[str, Any] = json.loads(gzip.decompress((Path(__file__).parent / "recorded_pe.json.gz").read_bytes()))
    return packed


def recorded_programs(unit: str) -> list[dict[str, Any]]:
    """The programs of ``pack_recorded.py``."""
    programs: list[dict[str, Any]] = _packed()["programs"][unit]
    return programs


def recorded_functions() -> dict[str, list[list[int]]]:
    """Arguments and results of the simulator's numeric functions."""
    functions: dict[str, list[list[int]]] = _packed()["functions"]
    return functions


def execute(program: dict[str, Any], ila: Ila) -> tuple[list[str], int]:
    """As :func:`replay`; commands outside FlexASR's addresses do not reach it, and a read then gives the last word."""
    machine = reset(ila)
    words = []
    for command in program["cmds"]:
        address, _, data = command[1:].partition(" ")
        at = int(address, 16)
        if FIRST <= at <= LAST:
            inputs = {"if_axi_wr": command[0] == "W", "if_axi_rd": command[0] == "R", "addr_in": at}
            machine.step(inputs | {"data_in": int(data or "0", 16)})
        if command[0] == "R":
            words.append(f"{machine.values['data_out']:032x}")
    return words, int(machine.values["top_interrupt_request"])


def recorded(unit: str) -> list[dict[str, Any]]:
    """The programs of one unit that the ILA-generated simulator has run."""
    text = (Path(__file__).parent / f"recorded_{unit}.json").read_text()
    programs: list[dict[str, Any]] = json.loads(text)["programs"]
    return programs


def replay(program: dict[str, Any], ila: Ila) -> tuple[list[str], int]:
    """The words that a recorded program reads on a model, and the interrupt flag at its end."""
    machine = Machine(ila)
    words = []
    for command in program["commands"]:
        address, _, data = command[1:].partition(" ")
        if command[0] == "W":
            write(machine, int(address, 16), int(data, 16))
        else:
            words.append(f"{read(machine, int(address, 16)):032x}")
    return words, int(machine.values["top_interrupt_request"])
