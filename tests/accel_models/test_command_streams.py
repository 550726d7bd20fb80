"""Streams of commands on real devices: at once, cut in two, and command by command."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings

from accel_models.flexasr.layout import (
    LARGE_BASE,
    SMALL_BASE,
    PeRegion,
    Region,
    Start,
    pe_register_address,
    register_address,
)
from accel_models.flexasr.model import flexasr
from accel_models.vta.isa import encode
from accel_models.vta.model import vta
from ila_lang import CommandError, CommandStream, Ila, Machine
from tests.accel_models.flexasr.words import pack_unit
from tests.accel_models.test_fast_simulation import RANDOMS, Pair, always_native, vta_instruction  # noqa: F401

PE_BUFFERS = [PeRegion.WEIGHT, PeRegion.INPUT, PeRegion.ACT_BUFFER]


def flexasr_commands(random: Random) -> list[dict[str, int]]:
    """Runs of like commands: buffers, managers, LayerReduce and its start; now and then one that is refused."""
    bases = [LARGE_BASE, SMALL_BASE, *(pe_register_address(pe, kind, 0) for pe in (0, 3) for kind in PE_BUFFERS)]
    found: list[dict[str, int]] = []
    for _ in range(random.randint(1, 12)):
        write, times = random.random() < 0.6, random.choice([1, 3, 4, 5, 20])
        base, stride = random.choice(bases), random.choice([0, 16, 16, 16, 48])
        data = random.getrandbits(128)
        match random.randrange(8):
            case 0:
                word = pack_unit(
                    is_valid=random.randint(0, 1), mode=random.randrange(3), num_vector_1=random.randint(0, 2),
                    num_timestep_1=random.randint(0, 3), memory_index_1=random.randrange(4),
                )  # fmt: skip
                listed = [(register_address(Region.LAYER_REDUCE), True, word)] * times
            case 1:
                listed = [(register_address(Region.START, Start.LAYER_REDUCE), True, data)]
            case 2 if random.random() < 0.15:
                listed = [(random.choice([0, 0x33000070, 0x33700000, 0xFFFFFFFF]), write, data)]
            case 3:
                listed = [
                    (register_address(Region.MANAGERS, random.randint(1, 2)), write, data + i) for i in range(times)
                ]
            case _:
                listed = [(base + stride * i, write, data ^ random.getrandbits(8)) for i in range(times)]
        found += [{"if_axi_wr": w, "if_axi_rd": not w, "addr_in": a, "data_in": d % (1 << 128)} for a, w, d in listed]
    if random.random() < 0.1:
        found[random.randrange(len(found))]["if_axi_rd"] = 1
    return found


def vta_commands(random: Random) -> list[dict[str, int]]:
    """The host's accesses in runs, and instructions between them; some with wrong addresses or missing tokens."""
    found: list[dict[str, int]] = []
    for _ in range(random.randint(1, 12)):
        times, base = random.choice([1, 3, 4, 5, 20]), 16 * random.randrange(8)
        stride, data = random.choice([0, 16, 16, 32]), random.getrandbits(128)
        strobe = random.choice([0xFFFF, 0xFFFF, 0x00F1, 0])
        match random.randrange(8):
            case 0 | 1:
                listed = [{"command": 0, "insn": encode(vta_instruction(random), truncate=True)}]
            case 2 if random.random() < 0.2:
                wrong = [{"addr": 8}, {"addr": 1 << 24}, {"command": 0, "insn": data}]
                listed = [{"command": 1, "data": data, "strobe": strobe} | random.choice(wrong)]
            case 3:
                listed = [{"command": 3}] * times
            case 4 | 5:
                listed = [{"command": 2, "addr": base + stride * i} for i in range(times)]
            case _:
                listed = [
                    {"command": 1, "addr": base + stride * i, "data": data ^ i, "strobe": strobe} for i in range(times)
                ]
        found += listed
    return found


def same_stream(ila: Ila, commands: list[dict[str, int]]) -> None:
    """One stream at once, cut in two, and command by command; also what is seen of the port's output."""
    slow = Machine(ila)
    seen: list[tuple[int, int]] = []
    refused = ""
    for number, inputs in enumerate(commands):
        try:
            instruction = slow.step({name: inputs.get(name, 0) for name in ila.inputs})
        except CommandError as error:
            refused = str(error)
            break
        if "data_out" in instruction.updates:
            seen.append((number, slow.values["data_out"]))
    cut = len(commands) // 3
    for parts in ([commands], [commands[:cut], commands[cut:]]):
        pair = Pair(ila)
        pair.slow = slow
        found: list[tuple[int, int]] = []
        said = ""
        try:
            for first, part in zip((0, cut), parts, strict=False):
                words = pair.fast.execute(CommandStream.of(ila, part), ["data_out"])["data_out"]
                found += [(first + n, int.from_bytes(row.tobytes(), "little")) for n, row in words]
        except CommandError as error:
            said = str(error)
        assert said == refused
        if not refused:
            assert found == seen
        pair.compare()


@settings(max_examples=25, deadline=None)
@given(RANDOMS)
def test_streams(random: Random) -> None:
    same_stream(flexasr(), flexasr_commands(random))
    same_stream(vta(), vta_commands(random))
