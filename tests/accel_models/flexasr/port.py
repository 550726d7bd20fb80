"""Commands at FlexASR's port, and replay of recorded programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ila_lang import Ila, Machine

LARGE, SMALL = 0x33500000, 0x33600000


def write(machine: Machine, addr: int, data: int = 0) -> str:
    inputs = {"if_axi_wr": True, "if_axi_rd": False, "addr_in": addr, "data_in": data}
    return machine.step(inputs).name


def read(machine: Machine, addr: int) -> int:
    machine.step({"if_axi_wr": False, "if_axi_rd": True, "addr_in": addr})
    return machine.values["data_out"]


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
