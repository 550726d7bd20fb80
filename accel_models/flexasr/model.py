"""The ILA of FlexASR's global buffer: memories, managers, unit configurations and starts of units.

One command is one transfer of the AXI port: a write or a read of a 128-bit word.  Where the published ILA
and the published hardware source disagree, the model follows the hardware; :class:`FlexAsrOptions`
selects other readings.  Each unit that is modelled has its kernel in a module of its own.

What the model leaves out, and why that is safe:

* A unit runs to completion within the command that starts it.  Hardware ignores configuration writes to a
  unit that runs, and the result of other commands depends on timing; software has to wait for the
  interrupt. :mod:`accel_models.flexasr.program` refuses programs that do not.
* ``top_interrupt_request`` becomes true when an operation finishes and stays so, as in the published ILA.
  In hardware it is a pulse of ten cycles.
* Hardware latches a start request and acts on "is_valid and start".  A start while is_valid is 0 does nothing
  here; whether making the configuration valid later releases the latched request is not modelled.
* Starts of GBControl and Attention are decoded and *reserved*: they set no
  result, and the simulator refuses them.  Writes of their configuration are modelled.

Sources: the FlexASR SystemC design (``GBModule``, ``GBCore``, ``MemoryManager``); names
from the published ILA model (flexasr-sim), whose 16 data bytes are one word of 128 bits here.
"""

from __future__ import annotations

from functools import cache

from ila_lang import BOOL, Expr, Ila, Kernel, any_of, bv, concat, const, true

from .config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD, ConfigWord
from .layer_norm import layer_norm
from .layer_reduce import layer_reduce, layer_reduce_starts
from .layout import GB_PARTITION, LANES, SMALL_VECTORS, Region, Start
from .options import RECORDED_SIMULATOR, FlexAsrOptions
from .zero_padding import zero_padding

__all__ = ["RECORDED_SIMULATOR", "FlexAsrOptions", "flexasr"]


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

    def start(name: str, index: int, unit: str, kernel: Kernel, when: Expr) -> None:
        instruction = ila.instruction(name, f"starts {unit} if its configuration is valid")
        instruction.set_decode(bus.at(Region.START, index)).start(kernel, when=when)

    s = ila.states
    start(
        "GB_LAYER_REDUCE_START",
        Start.LAYER_REDUCE,
        "LayerReduce",
        layer_reduce(ila, options),
        layer_reduce_starts(ila, options),
    )
    start(
        "GB_LAYER_NORM_START",
        Start.LAYER_NORM,
        "LayerNorm",
        layer_norm(ila, options),
        s["gb_layer_norm_is_valid"],
    )
    start(
        "GB_ZEROPADDING_START",
        Start.ZERO_PADDING,
        "ZeroPadding",
        zero_padding(ila, options),
        s["gb_zero_padding_is_valid"],
    )
    for name, (index, unit) in _NOT_MODELLED.items():
        reserved = ila.instruction(name, f"start of {unit}: not modelled").set_decode(bus.at(Region.START, index))
        reserved.reserved = f"the unit {unit} is not modelled"
