"""The processing elements (PEs) at FlexASR's port: their memories, configuration registers and buffers.

All four PEs share one memory of each kind here; the PE's number is the top two bits of the address.  What they compute
stands in :mod:`~accel_models.flexasr.units.pe_core` and :mod:`~accel_models.flexasr.units.pe_act`.

Sources: the FlexASR SystemC design (``PEModule``, ``PECore``, ``ActUnit``); names from the published ILA model.  Not
in it are the loads of the weight and input buffers, and the memory-macro tuning.
"""

from __future__ import annotations

from collections.abc import Callable

from accel_models.flexasr.bus import Bus
from accel_models.flexasr.config import ACT_MNGR_WORD, ACT_VECTOR_WORDS, MEM_MNGR_WORD, RNN_LAYER_SIZING_WORD
from accel_models.flexasr.layout import (
    ACT_VECTORS,
    INPUT_VECTORS,
    LANES,
    PE_COUNT,
    PE_PARTITION,
    WEIGHT_VECTORS,
    PeRegion,
)
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.terms import select
from ila_lang import Expr, Ila, concat, const

MANAGERS = ("first", "second")
PORT_BITS = 9  # at most 255 outputs of two managers in a run


def of_pe(ila: Ila, pe: Expr, name: str) -> Expr:
    """The state ``pe{i}_name`` of the PE whose number is ``pe`` (2 bits)."""
    return select(pe, [ila.states[f"pe{i}_{name}"] for i in range(PE_COUNT)])


def of_manager(ila: Ila, pe: Expr, manager: Expr, name: str) -> Expr:
    """A field of a manager (1 bit) of a PE (2 bits)."""
    states = [ila.states[f"pe{i}_mem_mngr_{m}_{name}"] for i in range(PE_COUNT) for m in MANAGERS]
    return select(concat(pe, manager), states)


def pe_memories(ila: Ila, options: FlexAsrOptions) -> None:
    """Declares the memories of all PEs; the PE's number is the top two bits of an address."""
    ila.memory("pe_core_weight_buffer", 22, 8, 0, "per PE 16 banks of 4096 vectors of 16 bytes")
    ila.memory("pe_core_input_buffer", 2 + options.input_buffer + 4, 8, 0, "per PE inputs and layer biases")
    ila.memory("pe_core_cluster_table", 7, 8, 0, "per PE and manager 16 codes of clustered weights")
    ila.memory("pe_core_port", 2 + PORT_BITS + 4, 20, 0, "per PE the vectors that the core gave its activation unit")
    ila.memory("pe_act_buffer", 2 + options.act_buffer_base + 4, 8, 0, "per PE what its activation unit has stored")
    ila.memory("pe_act_regs", 8, 20, 0, "per PE four vector registers of 16 numbers in Q6.14")


def pe_instructions(ila: Ila, bus: Bus, options: FlexAsrOptions) -> None:
    """Declares the registers of all PEs, and the instructions that write registers and move vectors of buffers."""
    for pe in range(PE_COUNT):
        _registers(ila, bus, options, pe)
        _buffers(ila, bus, options, pe)
        if options.unanswered == "ignored":  # the recorded simulator does not know this start
            continue
        start = ila.instruction(f"PE{pe}_START", f"starts PE {pe} alone: not modelled")
        start.set_decode(bus.partition_and_region(PE_PARTITION + pe, PeRegion.START))  # at any index
        start.reserved = (
            "where the output of a PE goes that the control unit of the global buffer did not start is open"
        )


def _registers(ila: Ila, bus: Bus, options: FlexAsrOptions, pe: int) -> None:
    at = _place(bus, pe)
    sizing = ila.instruction(f"PE{pe}_CONFIG_RNN_LAYER_SIZING", f"writes the configuration of the core of PE {pe}")
    sizing.set_decode(at(PeRegion.CORE, 1))
    bus.configuration(sizing, RNN_LAYER_SIZING_WORD, f"pe{pe}_rnn_layer_sizing_")
    for number, name in enumerate(MANAGERS):
        manager = ila.instruction(f"PE{pe}_CONFIG_MEM_MNGR_{name.upper()}", f"writes the {name} manager of PE {pe}")
        manager.set_decode(at(PeRegion.CORE, 2 + 2 * number))
        bus.configuration(manager, MEM_MNGR_WORD, f"pe{pe}_mem_mngr_{name}_")
        memory = table = ila.states["pe_core_cluster_table"]
        for entry in range(LANES):
            code = bus.data[8 * entry + 7 : 8 * entry]
            table = table.store(const(pe << 5 | number << 4 | entry, 7), code)
        ila.instruction(
            f"PE{pe}_CONFIG_CLUSTER_TABLE_{name.upper()}", f"writes the weight table of the {name} manager of PE {pe}"
        ).set_decode(at(PeRegion.CORE, 3 + 2 * number)).update(memory, table)
    act = ila.instruction(f"PE{pe}_CONFIG_ACT_MNGR", f"writes the configuration of the activation unit of PE {pe}")
    act.set_decode(at(PeRegion.ACT, 1))
    others = [name for name in ACT_MNGR_WORD.fields if name != "buffer_addr_base"]
    bus.configuration(act, ACT_MNGR_WORD, f"pe{pe}_act_mngr_", *others)
    base = ila.state(f"pe{pe}_act_mngr_buffer_addr_base", options.act_buffer_base, 0)
    act.update(base, ACT_MNGR_WORD.select(bus.data, "buffer_addr_base")[options.act_buffer_base - 1 : 0])
    for number, (word, name) in enumerate(zip(ACT_VECTOR_WORDS, ("0_15", "16_31"), strict=True)):
        vector = ila.instruction(f"PE{pe}_CONFIG_ACT_VECTOR_{name}", f"writes micro-instructions of PE {pe}")
        vector.set_decode(at(PeRegion.ACT, 2 + number))
        bus.configuration(vector, word, f"pe{pe}_act_vector_")
    sram = ila.state(f"pe{pe}_sram_config", 32, 0, "memory-macro tuning, no functional effect")
    tuning = ila.instruction(f"PE{pe}_CONFIG_SRAM", f"writes the memory-macro tuning of PE {pe}")
    tuning.set_decode(at(PeRegion.SRAM, 1)).update(sram, bus.data[31:0])


def _place(bus: Bus, pe: int) -> Callable[[int, int], Expr]:
    def at(region: int, index: int) -> Expr:
        return bus.at(PE_PARTITION + pe, region, index) & bus.write

    return at


def _buffers(ila: Ila, bus: Bus, options: FlexAsrOptions, pe: int) -> None:
    s = ila.states
    for names, memory, region, vectors in (
        (("CORE_STORE_WEIGHT_BUFFER", "CORE_LOAD_WEIGHT_BUFFER"), s["pe_core_weight_buffer"], PeRegion.WEIGHT,
         WEIGHT_VECTORS),
        (("CORE_STORE_INPUT_BUFFER", "CORE_LOAD_INPUT_BUFFER"), s["pe_core_input_buffer"], PeRegion.INPUT,
         INPUT_VECTORS),
        (("ACT_STORE_BUFFER", "LOAD_ACT_BUFFER"), s["pe_act_buffer"], PeRegion.ACT_BUFFER, ACT_VECTORS),
    ):  # fmt: skip
        store, load = (f"PE{pe}_{name}" for name in names)
        bus.buffer((store, load), memory, (PE_PARTITION + pe, region), vectors, pe, loads=options.pe_loads)
