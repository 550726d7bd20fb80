"""Recorded programs of layers, written again by the mappings' fragments from the tensors that they hold.

The recorded programs begin with states of their own, look weights up in tables, or add no biases, where the fragments
begin with zeros, hold weights as they are, and add biases.  All else is the same, word by word and address by address.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accel_models.flexasr.model import flexasr
from ila_lang import Simulator
from rewrites.mappings.flexasr.claims import LINEAR, RECURRENT
from rewrites.mappings.programs import DeviceProgram, filled
from tests.accel_models.flexasr.port import recorded_programs

Codes = NDArray[np.uint8]
# Those of other kinds have another AdaptivFloat bias in each PE, run backward, or overflow on purpose.
KINDS = re.compile(r"linear_\d+|linear_act_\d+|rnn_.*|gru_.*|lstm_.*")
PROGRAMS = {p["id"]: p for unit in ("linear", "recurrent") for p in recorded_programs(unit) if KINDS.fullmatch(p["id"])}
START = 0x33000010


def bits(word: int, low: int, width: int = 1) -> int:
    return word >> low & ((1 << width) - 1)


class Decoded:
    """The tensors that a program writes, found cell by cell from the description of the hardware."""

    def __init__(self, writes: dict[int, int]) -> None:
        self.writes = writes
        core, control, large = writes[0x34400010], writes[0x33700010], writes[0x33400010]
        self.clustered, self.biased = bits(core, 16), bits(core, 24)
        self.managers, self.in_pe = bits(core, 32, 4), bits(core, 40, 8)
        self.inputs, self.outputs = bits(control, 48, 8), bits(control, 56, 8)
        self.timesteps, self.output_base = bits(control, 64, 16), bits(large, 48, 16)
        self.gates = self.in_pe // (self.outputs // 4)
        self.output_bias = bits(writes[0x34800010], 16, 3)

    def manager(self, m: int, low: int, width: int) -> int:
        return bits(self.writes[0x34400020 + 0x20 * m], low, width)

    def byte(self, base: int, vector: int, lane: int) -> int:
        return self.writes[base + 16 * vector] >> 8 * lane & 255

    def x(self) -> Codes:
        rows = [
            [self.byte(0x33500000, t % 16 + (t // 16 * self.inputs + v) * 16, lane) for v in range(self.inputs)
             for lane in range(16)]
            for t in range(self.timesteps)
        ]  # fmt: skip
        return np.array(rows, np.uint8)

    def weights(self, m: int) -> Codes:
        """[gates, outputs, inputs] in the order of the core's gates."""
        inputs, base = self.manager(m, 32, 8), self.manager(m, 48, 16)
        w = np.zeros((self.gates, 16 * self.outputs, 16 * inputs), np.uint8)
        for gate, row, column in np.ndindex(w.shape):
            pe, vector = divmod(row // 16, self.outputs // 4)
            tile = (vector * self.gates + gate) * inputs + column // 16
            memory, r, c = 0x34500000 + (pe << 24), row % 16, column % 16
            if self.clustered:
                cell = self.byte(memory, base + tile * 8 + r // 2, r % 2 * 8 + c // 2)
                table = self.writes[0x34400030 + 0x20 * m + (pe << 24)]
                w[gate, row, column] = table >> 8 * (cell >> 4 * (c % 2) & 15) & 255
            else:
                w[gate, row, column] = self.byte(memory, base + tile * 16 + r, c)
        return w

    def biases(self, m: int) -> Codes:
        """[gates, outputs]; zeros where none are added."""
        b = np.zeros((self.gates, 16 * self.outputs), np.uint8)
        if self.biased:
            for gate, row in np.ndindex(b.shape):
                pe, vector = divmod(row // 16, self.outputs // 4)
                memory = 0x34600000 + (pe << 24)
                b[gate, row] = self.byte(memory, self.manager(m, 64, 16) + vector * self.gates + gate, row % 16)
        return b


def split(program: dict[str, Any]) -> tuple[dict[int, int], list[int]]:
    """The data that a recorded program writes, by address, without the start, and the addresses it reads."""
    parts = [(c[0], int(c[1:9], 16), int(c[10:] or "0", 16)) for c in program["cmds"]]
    writes = {address: data for mode, address, data in parts if mode == "W" and address != START}
    return writes, [address for mode, address, _ in parts if mode == "R"]


def by_fragment(name: str) -> DeviceProgram[Codes]:
    """The fragment of the recorded program's layer, with its tensors."""
    d, kind = Decoded(split(PROGRAMS[name])[0]), name.split("_")[0]
    sizes = {"T": d.timesteps, "ni": d.inputs, "no": d.outputs // 4, "base": d.output_base}
    sizes |= {"bias_x": d.manager(0, 24, 3), "bias_w": d.manager(0, 8, 3), "bias_b": d.manager(0, 16, 3)}
    tensors = {"host_x": d.x(), "host_w": d.weights(0), "host_b": d.biases(0)}
    if kind == "linear":
        activation = {0x40: "none", 0xC0: "relu", 0xA0: "sigmoid"}[d.writes[0x34800020] >> 8 & 255]
        claim, sizes = LINEAR[activation], sizes | {"bias_y": d.output_bias}
    else:
        claim = RECURRENT[kind]
        sizes |= {"bias_u": d.manager(1, 8, 3), "bias_c": d.manager(1, 16, 3), "bias_h": d.output_bias}
        tensors |= {"host_u": d.weights(1), "host_c": d.biases(1)}
    return filled(claim, sizes, {n: (t, t.shape) for n, t in tensors.items()}, lambda found: found["host_y"])


def comparable(writes: dict[int, int], recorded: Decoded) -> dict[int, int]:
    """What both programs have in common of the data that one of them writes, by address."""
    d, found = recorded, dict(writes)
    for pe in range(4):
        first = 0x34000000 + (pe << 24)
        core, act = first | 0x400010, first | 0x800010
        found[core] &= ~(1 << 8 | 1 << 16 | 1 << 24)  # zeros first, tables, biases
        found[act] &= ~(1 << 8)  # zeros first
        dropped = [first | 0x900000 | v << 4 for v in range(d.outputs // 4)]  # what the activation unit keeps
        for m in range(d.managers):
            manager = first | 0x400020 + 0x20 * m
            found[manager] &= ~1  # no hidden state at the first timestep
            if d.clustered:
                dropped += [manager + 0x10, *(first | 0x500000 | v << 4 for v in range(1 << 13))]
                found[manager] &= ~(0xFFFF << 48)  # where weights begin
            if not d.biased:
                found[manager] &= ~(7 << 16)
                dropped += [first | 0x600000 | v << 4 for v in range(d.inputs, d.inputs + d.in_pe)]
        if d.managers == 2:
            hidden = d.manager(1, 80, 16)
            dropped += [first | 0x600000 | v << 4 for v in range(hidden, hidden + d.outputs)]
        for address in dropped:
            found.pop(address, None)
    return found


def test_there_are_recorded_programs_of_every_kind() -> None:
    kinds = {kind: sum(name.startswith(kind) for name in PROGRAMS) for kind in ("linear", "rnn", "gru", "lstm")}
    assert kinds == {"linear": 28, "rnn": 5, "gru": 5, "lstm": 6}
    decoded = [Decoded(split(p)[0]) for p in PROGRAMS.values()]
    assert (sum(bool(d.clustered) for d in decoded), sum(not d.biased for d in decoded)) == (14, 5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_fragments_write_what_was_recorded(name: str) -> None:
    recorded, reads = split(PROGRAMS[name])
    commands = by_fragment(name).commands
    written = {c["addr_in"]: c["data_in"] for c in commands if c["if_axi_wr"] and c["addr_in"] != START}
    one, other = Decoded(recorded), Decoded(written)
    assert comparable(written, one) == comparable(recorded, one)
    for m in range(one.managers):
        assert np.array_equal(one.weights(m), other.weights(m))
    start = [c["addr_in"] for c in commands].index(START)
    assert [bool(c["if_axi_wr"]) for c in commands] == [True] * (start + 1) + [False] * len(reads)
    assert [c["addr_in"] for c in commands[start + 1 :]] == reads


# those of recurrent layers begin with another hidden state
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("linear")])
def test_fragments_read_what_was_recorded(name: str) -> None:
    found = by_fragment(name).run(Simulator(flexasr())).reshape(-1, 16)
    assert [row[::-1].tobytes().hex() for row in found] == PROGRAMS[name]["reads"]
