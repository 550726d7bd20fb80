"""The ILA of FlexASR: the global buffer with its units, and four processing elements (PEs).

One command is one transfer of the AXI port: a write or a read of a 128-bit word.  Where the published ILA
and the published hardware source disagree, the model follows the hardware; :class:`FlexAsrOptions`
selects other readings.  Each unit that is modelled has its kernel in a module of its own.

What the model leaves out, and why that is safe:

* A unit runs to completion within the command that starts it.  Hardware ignores configuration writes to a
  unit that runs, and the result of other commands depends on timing; software has to wait for the
  interrupt. :mod:`accel_models.flexasr.program` refuses programs that do not.
* ``top_interrupt_request`` becomes true when an operation finishes and stays so, as in the published ILA.
  In hardware it is a pulse of ten cycles.
* A start while is_valid is 0 does nothing, as in hardware's source, where the request is taken and dropped.
* A layer that hardware never finishes, because counts of its PEs do not fit together, has no effect here:
  :func:`~accel_models.flexasr.units.gb_control.gb_control_starts`.  Two PEs that send to one address race in hardware;
  here the higher number wins.
* A PE can be started alone.  Its output then goes to a control unit that does not expect it.  Such a start is decoded
  and *reserved*: the simulator refuses it.  So are reads of configuration, which hardware answers.

Sources: the FlexASR SystemC design (``GBModule``, ``GBCore``, ``MemoryManager``, ``PEModule``, ``DataBus``); names
from the published ILA model (flexasr-sim), whose 16 data bytes are one word of 128 bits here.
"""

from __future__ import annotations

from functools import cache

from ila_lang import BOOL, Ila, any_of, bv

from .bus import Bus
from .config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD
from .layout import GB_PARTITION, LARGE_VECTORS, SMALL_VECTORS, Region, Start
from .options import FlexAsrOptions
from .units.attention import attention, attention_starts
from .units.gb_control import gb_control, gb_control_starts
from .units.layer_norm import layer_norm
from .units.layer_reduce import layer_reduce, layer_reduce_starts
from .units.processing_elements import pe_instructions, pe_memories
from .units.zero_padding import zero_padding

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


def flexasr(options: FlexAsrOptions | None = None) -> Ila:
    """The model of FlexASR; the same object for equal options.

    Inputs: ``if_axi_wr``, ``if_axi_rd`` (Boolean), ``addr_in`` (32 bits), ``data_in`` (128 bits, lane i
    in bits 8i+7 .. 8i). A command is valid with exactly one of write and read, at an address
    0x33000000 .. 0x37ffffff. Outputs are the states ``data_out`` (128 bits) and
    ``top_interrupt_request`` (Boolean).
    """
    return _build(options or FlexAsrOptions())


@cache
def _build(options: FlexAsrOptions) -> Ila:
    ila = Ila("flexasr", "FlexASR at its AXI port: the global buffer and four processing elements.")
    bus = Bus(ila, options)
    ila.state("data_out", bv(128), 0, "the word of the last read of a buffer")
    ila.state("top_interrupt_request", BOOL, 0, "an operation has finished")
    ila.memory("gb_core_large_buffer", 20, 8, 0, "16 banks of 4096 vectors of 16 bytes")
    ila.memory("gb_core_small_buffer", 14, 8, 0, "1024 vectors of 16 bytes")
    ila.memory("gb_attention_accum_vector", 4, 32, 0, "sums of products for 16 timesteps, or for 16 lanes of a result")
    ila.memory("gb_attention_softmax_result_vector", 4, 8, 0, "weights of 16 timesteps")
    pe_memories(ila, options)
    _configurations(ila, bus)
    for name, region, vectors in (("LARGE", Region.LARGE, LARGE_VECTORS), ("SMALL", Region.SMALL, SMALL_VECTORS)):
        memory = ila.states[f"gb_core_{name.lower()}_buffer"]
        bus.buffer((f"GB_CORE_STORE_{name}", f"GB_CORE_LOAD_{name}"), memory, (GB_PARTITION, region), vectors)
    pe_instructions(ila, bus, options)
    _starts(ila, bus, options)
    others = any_of([i.decode for i in ila.instructions.values()])
    reserved = ila.instruction("RESERVED", "any other command: no effect").set_decode(~others)
    if options.unanswered == "reserved":
        reserved.reserved = "no register or buffer answers this command"
    return ila


def _configurations(ila: Ila, bus: Bus) -> None:
    """Configuration registers: written as a whole, never read back (the published ILA has no such read)."""
    for unit, (region, fields) in _UNITS.items():
        instruction = ila.instruction(f"CONFIG_GB_{unit.upper()}", f"writes the configuration of {unit}")
        instruction.set_decode(bus.at(GB_PARTITION, region, 1) & bus.write)
        bus.configuration(instruction, UNIT_WORD, f"gb_{unit}_", *fields)
    large = ila.instruction("CONFIG_GB_CORE_MEM_MNGR_LARGE", "writes strides and bases of the large buffer")
    large.set_decode(bus.at(GB_PARTITION, Region.MANAGERS, 1) & bus.write)
    bus.configuration(large, LARGE_MANAGER_WORD, "gb_core_mem_mngr_large_")
    small = ila.instruction("CONFIG_GB_CORE_MEM_MNGR_SMALL", "writes the bases of the small buffer")
    small.set_decode(bus.at(GB_PARTITION, Region.MANAGERS, 2) & bus.write)
    bus.configuration(small, SMALL_MANAGER_WORD, "gb_core_mem_mngr_small_")
    # Not in the published ILA.  A register of the hardware without functional effect.
    sram = ila.state("gb_core_sram_config", 32, 0, "memory-macro tuning, no functional effect")
    ila.instruction("CONFIG_GB_CORE_SRAM", "writes the memory-macro tuning").set_decode(
        bus.at(GB_PARTITION, Region.SRAM, 1) & bus.write
    ).update(sram, bus.data[31:0])


def _starts(ila: Ila, bus: Bus, options: FlexAsrOptions) -> None:
    """Start registers, with the condition under which a start has an effect."""
    valid = {unit: ila.states[f"gb_{unit}_is_valid"] for unit in _UNITS}
    for name, index, unit, kernel, when in (
        ("GB_CONTROL_START", Start.CONTROL, "GBControl", gb_control(ila, options), gb_control_starts(ila)),
        ("GB_LAYER_REDUCE_START", Start.LAYER_REDUCE, "LayerReduce", layer_reduce(ila, options),
         layer_reduce_starts(ila, options)),
        ("GB_LAYER_NORM_START", Start.LAYER_NORM, "LayerNorm", layer_norm(ila, options), valid["layer_norm"]),
        ("GB_ZEROPADDING_START", Start.ZERO_PADDING, "ZeroPadding", zero_padding(ila, options),
         valid["zero_padding"]),
        ("GB_ATTENTION_START", Start.ATTENTION, "Attention", attention(ila, options), attention_starts(ila, options)),
    ):  # fmt: skip
        instruction = ila.instruction(name, f"starts {unit} if its configuration is valid")
        instruction.set_decode(bus.start(GB_PARTITION, Region.START, index)).start(kernel, when=when)
