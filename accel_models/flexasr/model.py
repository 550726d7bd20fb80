"""The ILA of FlexASR's global buffer: memories, managers, unit configurations and the LayerReduce unit.

One command is one transfer of the AXI port: a write or a read of a 128-bit word.  Where the published ILA
and the published hardware source disagree, the model follows the hardware; :class:`FlexAsrOptions`
selects other readings.

What the model leaves out, and why that is safe:

* A unit runs to completion within the command that starts it.  Hardware ignores configuration writes to a
  unit that runs, and the result of other commands depends on timing; software has to wait for the
  interrupt. :mod:`accel_models.flexasr.program` refuses programs that do not.
* ``top_interrupt_request`` becomes true when an operation finishes and stays so, as in the published ILA.
  In hardware it is a pulse of ten cycles.
* Hardware latches a start request and acts on "is_valid and start".  A start while is_valid is 0 does nothing
  here; whether making the configuration valid later releases the latched request is not modelled.
* Starts of GBControl, LayerNorm, ZeroPadding and Attention are decoded and *reserved*: they set no
  result, and the simulator refuses them.  Writes of their configuration are modelled.

Sources: the FlexASR SystemC design (``GBModule``, ``GBCore``, ``LayerReduce``, ``MemoryManager``); names
from the published ILA model (flexasr-sim), whose 16 data bytes are one word of 128 bits here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from ila_lang import BOOL, Expr, Ila, Kernel, any_of, bv, concat, const, ite, true

from .config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD, ConfigWord
from .layout import (
    GB_PARTITION,
    LANES,
    SMALL_VECTORS,
    Region,
    Start,
    byte_address,
    vector_address,
)
from .numerics import adpfloat_add, adpfloat_max, adpfloat_mean

__all__ = ["RECORDED_SIMULATOR", "FlexAsrOptions", "flexasr"]


@dataclass(frozen=True)
class FlexAsrOptions:
    """Readings of the specification; the default follows the hardware source.

    ``reduce_odd``: with an odd number N of timesteps LayerReduce processes ceil(N/2) pairs ("rtl"; the
    last pair reads one timestep beyond the matrix), or floor(N/2) ("recorded", the ILA-generated
    simulator). The recorded simulator never finishes for N < 2, so under "recorded" such a start has no
    effect.

    ``reduce_stride``: the distance between timestep groups comes from the memory manager's num_vector
    ("manager", hardware) or from the unit's own num_vector_1 ("unit", the published ILA).
    """

    reduce_odd: Literal["rtl", "recorded"] = "rtl"
    reduce_stride: Literal["manager", "unit"] = "manager"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("reduce_odd", self.reduce_odd, ("rtl", "recorded")),
            ("reduce_stride", self.reduce_stride, ("manager", "unit")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be {' or '.join(allowed)}, not {value!r}")


RECORDED_SIMULATOR = FlexAsrOptions(reduce_odd="recorded", reduce_stride="unit")
"""The readings of the public ILA-generated simulator (flexasr-sim, November 2021)."""

# State of each unit: the fields of the configuration word that the published ILA keeps for it.
_UNITS: dict[str, tuple[int, tuple[str, ...]]] = {
    "control": (
        Region.CONTROL,
        ("is_valid", "mode", "is_rnn", "memory_index_1", "memory_index_2", "num_vector_1", "num_vector_2",
         "num_timestep_1"),
    ),
    "layer_reduce": (
        Region.LAYER_REDUCE,
        ("is_valid", "mode", "memory_index_1", "num_vector_1", "num_timestep_1"),
    ),
    "layer_norm": (
        Region.LAYER_NORM,
        ("is_valid", "mode", "memory_index_1", "num_vector_1", "num_timestep_1", "adpbias_1", "adpbias_3",
         "adpbias_4"),
    ),
    "zero_padding": (
        Region.ZERO_PADDING,
        ("is_valid", "memory_index_1", "num_vector_1", "num_timestep_1", "num_timestep_2"),
    ),
    "attention": (
        Region.ATTENTION,
        ("is_valid", "memory_index_1", "memory_index_2", "num_vector_1", "num_timestep_1", "adpbias_1",
         "adpbias_2", "adpbias_3", "adpbias_4"),
    ),
}  # fmt: skip
_FLAGS = frozenset({"is_valid", "is_rnn"})

_NOT_MODELLED = {
    "GB_CONTROL_START": (Start.CONTROL, "GBControl (linear and recurrent layers)"),
    "GB_LAYER_NORM_START": (Start.LAYER_NORM, "LayerNorm"),
    "GB_ZEROPADDING_START": (Start.ZERO_PADDING, "ZeroPadding"),
    "GB_ATTENTION_START": (Start.ATTENTION, "Attention"),
}


def flexasr(options: FlexAsrOptions | None = None) -> Ila:
    """The model of the global buffer; the same object for equal options.

    Inputs: ``if_axi_wr``, ``if_axi_rd`` (Boolean), ``addr_in`` (32 bits), ``data_in`` (128 bits, lane i
    in bits 8i+7 .. 8i). A command is valid with exactly one of write and read, at an address of the
    global buffer's partition. Outputs are the states ``data_out`` (128 bits) and
    ``top_interrupt_request`` (Boolean).
    """
    return _build(options or FlexAsrOptions())


@cache
def _build(options: FlexAsrOptions) -> Ila:
    ila = Ila("flexasr", "The global buffer of FlexASR at its AXI port.")
    bus = _Bus(ila)
    ila.state("data_out", bv(128), 0, "the word of the last read of a buffer")
    ila.state("top_interrupt_request", BOOL, 0, "an operation has finished")
    ila.memory("gb_core_large_buffer", 20, 8, 0, "16 banks of 4096 vectors of 16 bytes")
    ila.memory("gb_core_small_buffer", 14, 8, 0, "1024 vectors of 16 bytes")
    _configurations(ila, bus)
    _buffer(ila, bus, "LARGE", Region.LARGE, true)
    # What hardware answers beyond the small buffer's 1024 vectors is not documented: such commands are
    # reserved.
    _buffer(ila, bus, "SMALL", Region.SMALL, bus.index < SMALL_VECTORS)
    _starts(ila, bus, options)
    others = any_of([i.decode for i in ila.instructions.values()])
    reserved = ila.instruction("GB_RESERVED", "any other command in the partition: no effect").set_decode(~others)
    reserved.reserved = "no register or buffer of the global buffer answers this command"
    return ila


class _Bus:
    """The inputs, and the parts of the address."""

    def __init__(self, ila: Ila) -> None:
        self.write = ila.input("if_axi_wr", BOOL)
        self.read = ila.input("if_axi_rd", BOOL)
        self.address = ila.input("addr_in", 32)
        self.data = ila.input("data_in", 128)
        # Hardware routes by addr[23:20] and addr[19:4] and ignores addr[3:0]: a command always moves one
        # aligned vector.  The published ILA compares whole addresses and lets buffers be accessed at any
        # byte.
        self.region = self.address[23:20]
        self.index = self.address[19:4]
        ila.set_valid((self.write ^ self.read) & (self.address[31:24] == GB_PARTITION))

    def at(self, region: int, index: int) -> Expr:
        return (self.region == region) & (self.index == index)


def _configurations(ila: Ila, bus: _Bus) -> None:
    """Configuration registers: written as a whole, never read back (the published ILA has no such read)."""
    for unit, (region, fields) in _UNITS.items():
        instruction = ila.instruction(f"CONFIG_GB_{unit.upper()}", f"writes the configuration of {unit}")
        instruction.set_decode(bus.at(region, 1) & bus.write)
        for name in fields:
            _field(ila, bus, instruction.name, UNIT_WORD, name, f"gb_{unit}_{name}")
    large = ila.instruction("CONFIG_GB_CORE_MEM_MNGR_LARGE", "writes strides and bases of the large buffer")
    large.set_decode(bus.at(Region.MANAGERS, 1) & bus.write)
    for name in LARGE_MANAGER_WORD.fields:
        _field(ila, bus, large.name, LARGE_MANAGER_WORD, name, f"gb_core_mem_mngr_large_{name}")
    small = ila.instruction("CONFIG_GB_CORE_MEM_MNGR_SMALL", "writes the bases of the small buffer")
    small.set_decode(bus.at(Region.MANAGERS, 2) & bus.write)
    for name in SMALL_MANAGER_WORD.fields:
        _field(ila, bus, small.name, SMALL_MANAGER_WORD, name, f"gb_core_mem_mngr_small_{name}")
    # Not in the published ILA.  A register of the hardware without functional effect.
    sram = ila.state("gb_core_sram_config", 32, 0, "memory-macro tuning, no functional effect")
    ila.instruction("CONFIG_GB_CORE_SRAM", "writes the memory-macro tuning").set_decode(
        bus.at(Region.SRAM, 1) & bus.write
    ).update(sram, bus.data[31:0])


def _field(ila: Ila, bus: _Bus, instruction: str, word: ConfigWord, name: str, state_name: str) -> None:
    field = word.fields[name]
    value = word.select(bus.data, name)
    if name in _FLAGS:
        ila.instructions[instruction].update(ila.state(state_name, BOOL, field.reset), value == 1)
    else:
        ila.instructions[instruction].update(ila.state(state_name, field.width, field.reset), value)


def _buffer(ila: Ila, bus: _Bus, name: str, region: int, within: Expr) -> None:
    """Stores and loads of one vector."""
    memory = ila.states[f"gb_core_{name.lower()}_buffer"]
    here = (bus.region == region) & within
    bits = 16 if name == "LARGE" else 10
    vector = bus.index[bits - 1 : 0]
    # Each lane's address is a concatenation, so that two lanes are told apart without arithmetic.
    lanes = [concat(vector, const(lane, 4)) for lane in range(LANES)]
    stored = memory
    for lane, address in enumerate(lanes):
        stored = stored.store(address, bus.data[8 * lane + 7 : 8 * lane])
    ila.instruction(f"GB_CORE_STORE_{name}", f"writes a vector of the {name.lower()} buffer").set_decode(
        here & bus.write
    ).update(memory, stored)
    word = concat(*(memory.load(address) for address in reversed(lanes)))
    ila.instruction(f"GB_CORE_LOAD_{name}", f"reads a vector of the {name.lower()} buffer").set_decode(
        here & bus.read
    ).update(ila.states["data_out"], word)


def _starts(ila: Ila, bus: _Bus, options: FlexAsrOptions) -> None:
    """Start registers.

    Hardware accepts a write or a read of a start register; the published ILA decodes a write only.
    """
    valid = ila.states["gb_layer_reduce_is_valid"]
    guard = valid
    if options.reduce_odd == "recorded":
        # The simulator's 16-bit N - 2 wraps for N < 2, its end test then never holds and no interrupt comes.
        guard = valid & ~(ila.states["gb_layer_reduce_num_timestep_1"] < 2)
    ila.instruction("GB_LAYER_REDUCE_START", "starts LayerReduce if its configuration is valid").set_decode(
        bus.at(Region.START, Start.LAYER_REDUCE)
    ).start(_layer_reduce(ila, options), when=guard)
    for name, (index, unit) in _NOT_MODELLED.items():
        start = ila.instruction(name, f"start of {unit}: not modelled").set_decode(bus.at(Region.START, index))
        start.reserved = f"the unit {unit} is not modelled"


def _layer_reduce(ila: Ila, options: FlexAsrOptions) -> Kernel:
    """Pooling over pairs of timesteps, in place: row t of the result overwrites row t of the matrix.

    Pair p is read from rows 2p and 2p + 1 and written to row p <= 2p, so no row is overwritten before it
    is read (row 0 of the first pair is read lane by lane before it is written).  Rows from ceil(N/2) on
    keep their contents.
    """
    s = ila.states
    memory = s["gb_core_large_buffer"]
    count, vectors = s["gb_layer_reduce_num_timestep_1"], s["gb_layer_reduce_num_vector_1"]
    # The configuration has three bits of memory index; the port of the large buffer has two.
    index = s["gb_layer_reduce_memory_index_1"][1:0]
    base = _select(index, [s[f"gb_core_mem_mngr_large_base_large_{i}"] for i in range(4)])
    # Hardware strides by the manager's num_vector and loops over the unit's; the published ILA uses the
    # unit's for both. They agree where software sets both alike, as published drivers do.
    stride = _select(index, [s[f"gb_core_mem_mngr_large_num_vector_{i}"] for i in range(4)])
    if options.reduce_stride == "unit":
        stride = vectors
    # Hardware tests the end after the body, "t >= N - 2" and "v >= nv - 1" on signed numbers: every body
    # runs at least once, and an odd N takes one more pair, whose second row lies beyond the matrix. The
    # recorded simulator drops the last row of an odd N.  17 bits, because N + 1 may be 2^16; half of it
    # fits 16 again.
    if options.reduce_odd == "rtl":
        halves = (count.zext(17) + 1)[16:1]
        pairs = ite(count == 0, const(1, 16), halves)
    else:
        pairs = count >> 1
    mode = s["gb_layer_reduce_mode"]
    kernel = Kernel("layer_reduce", "max (mode 0), mean (1) or sum (other) of timesteps 2p and 2p + 1, to timestep p")
    with (
        kernel.loop("pair", pairs) as pair,
        kernel.loop("vector", ite(vectors == 0, const(1, 8), vectors)) as vector,
        kernel.loop("lane", const(LANES, 5)) as lane,
    ):
        t = pair * 2  # at most 65534: row t + 1 still has a 16-bit number
        a = kernel.load("a", memory, byte_address(vector_address(base, stride, t, vector), lane))
        b = kernel.load("b", memory, byte_address(vector_address(base, stride, t + 1, vector), lane))
        # All biases are ignored: codes are combined as if the bias were 0.
        result = ite(mode == 0, adpfloat_max(a, b), ite(mode == 1, adpfloat_mean(a, b), adpfloat_add(a, b)))
        kernel.store(memory, byte_address(vector_address(base, stride, pair, vector), lane), result)
    kernel.done(s["top_interrupt_request"], True)
    return kernel


def _select(index: Expr, entries: list[Expr]) -> Expr:
    """The entry (of four) that a 2-bit index names."""
    low = [ite(index[0] == 1, entries[i + 1], entries[i]) for i in (0, 2)]
    return ite(index[1] == 1, low[1], low[0])
