"""The ILA of HLSCNN at its AXI slave port: registers, scratchpads, transfers from SoC memory, the convolution.

One command is one transfer of the port: a write or a read of a word of 128 bits, at an address of which 24 bits count.

* A register takes the four bytes of the word that begin at byte addr[3:0] (the last four if fewer are left, as in the
  published ILA).  Register numbers repeat every 30.
* A write to a scratchpad carries no data: it copies entries from SoC memory to that address on.
* SoC memory is the host's; the published ILA keeps it as a state so that programs are self-contained.  The port's
  writes to it stand for what the host puts there.
* Transfers and the convolution run to completion within the command, as in the published ILA.

What the model leaves out: the datapaths of fully connected layers, reductions and self tests have no public
description, nor have reads of registers and of SoC memory, nor accesses to a memory that are not aligned to an entry.
Such commands are decoded and *reserved*: the simulator refuses them.

Source: the published ILA (hlscnn-ila), whose 16 data bytes are one word of 128 bits here, and whose memories of bytes
are memories of 16-bit words.
"""

from __future__ import annotations

from functools import cache

from ila_lang import BOOL, Expr, Ila, Kernel, any_of, bv, concat, const, ite

from .convolution import convolution
from .layout import CONFIG_BYTES, ENTRY_BYTES, LANES, REGISTERS, SOC_BASE, SPAD0_BASE, SPAD1_BASE, SPAD_BYTES, Register
from .options import HlscnnOptions

_R = Register

# Registers without effect on anything that is modelled are kept as well: software may write them.
_KEPT = {
    _R.SOC_MEM_BASE_ADDR: "SoC address that transfers to a scratchpad read from",
    _R.SOC_MEM_RD_WR_LENGTH: "entries of a transfer",
    _R.SPAD_CFG: "no published effect",
    _R.AXI_ATTR_CFG: "no published effect",
    _R.FC_WEIGHT_BASE: "fully connected layer, not modelled",
    _R.FC_ACT_BASE: "fully connected layer, not modelled",
    _R.FC_SIZE_CFG: "fully connected layer, not modelled: batch - 1 [26:24], rows [23:12], columns [11:0]",
    _R.BIAS_ACT_CFG: "fully connected layer and reduction, not modelled: function [1:0], bias [2], threshold [24:3]",
    _R.CONV_ACT_BASE_ADDR: "address of the activations",
    _R.CONV_WEIGHT_BASE_ADDR: "address of the weights, in SPAD0",
    _R.CONV_OUTPUT_BASE_ADDR: "address of the outputs, in SPAD1",
    _R.CONV_INPUT_SIZE_CFG: "channels [31:20], rows [19:10], columns [9:0]",
    _R.CONV_OUTPUT_SIZE_CFG: "channels [31:20], rows [19:10], columns [9:0]",
    _R.CONV_KERNEL_SIZE_CFG: "row stride [21:19], column stride [18:16], rows [15:8], columns [7:0]",
    _R.CONV_CHANNEL_CFG: "number of filters, switches and bias",
    _R.REDUCTION_INPUT_BASE_ADDR: "reduction, not modelled",
    _R.REDUCTION_OUTPUT_BASE_ADDR: "reduction, not modelled",
    _R.REDUCTION_INPUT_SIZE_CFG: "reduction, not modelled",
    _R.REDUCTION_BIAS_CFG: "reduction, not modelled",
}

_NOT_MODELLED = {
    "FC_START": ((_R.FC_START,), "fully connected layers"),
    "REDUCTION_TRIGGER": ((_R.REDUCTION_TRIGGER,), "reductions"),
    "SELF_TEST": (
        (
            _R.AXI_SELF_TEST_TRIGGER,
            _R.AXI_SELF_TEST_BASE_ADDR,
            _R.ACP_SELF_TEST_TRIGGER,
            _R.ACP_SELF_TEST_BASE_ADDR,
        ),
        "self tests",
    ),
}


def hlscnn(options: HlscnnOptions | None = None) -> Ila:
    """The model of HLSCNN; the same object for equal options.

    Inputs: ``top_slave_if_wr``, ``top_slave_if_rd`` (Boolean), ``top_slave_addr_in`` (32 bits), ``top_slave_data_in``
    (128 bits, byte i in bits 8i+7 .. 8i).  A command is valid with exactly one of write and read.  The output is the
    state ``data_out`` (128 bits): the entry that was read last.
    """
    return _build(options or HlscnnOptions())


def options_of(ila: Ila) -> HlscnnOptions:
    """The options that a model was built with; raises ValueError on another model."""
    if ila not in _MODELS:
        raise ValueError(f"Model must come from hlscnn(), not be another one with the name {ila.name}; build it again")
    return _MODELS[ila]


_MODELS: dict[Ila, HlscnnOptions] = {}


@cache
def _build(options: HlscnnOptions) -> Ila:
    ila = Ila("hlscnn", "HLSCNN at its AXI slave port.")
    bus = _Bus(ila)
    ila.state("data_out", bv(128), 0, "the entry of the last read of a scratchpad")
    ila.memory("scratch_pad_0", 16, 16, 0, "8192 entries of 8 words: weights")
    ila.memory("scratch_pad_1", 16, 16, 0, "8192 entries of 8 words: outputs and partial sums")
    ila.memory("virtual_soc_memory", 17, 16, 0, "12288 entries of 8 words: the host's memory")
    _registers(ila, bus)
    for number, base in enumerate((SPAD0_BASE, SPAD1_BASE)):
        _scratchpad(ila, bus, number, base)
    _soc_memory(ila, bus)
    trigger = ila.instruction("ACCEL_CONV_TRIGGER", "runs the convolution that the registers describe")
    trigger.set_decode(bus.register(_R.CONV_TRIGGER)).start(convolution(ila, options))
    for name, (registers, what) in _NOT_MODELLED.items():
        decode = any_of([bus.register(register) for register in registers])
        ila.instruction(name, f"{what}: not modelled").set_decode(
            decode
        ).reserved = f"{what} have no public description"
    others = any_of([i.decode for i in ila.instructions.values()])
    rest = ila.instruction("HLSCNN_RESERVED", "any other command: no published answer").set_decode(~others)
    rest.reserved = "no published description says what answers this command"
    _MODELS[ila] = options
    return ila


class _Bus:
    """The inputs, and the parts of the address."""

    def __init__(self, ila: Ila) -> None:
        self.write = ila.input("top_slave_if_wr", BOOL)
        self.read = ila.input("top_slave_if_rd", BOOL)
        self.address = ila.input("top_slave_addr_in", 32)
        self.data = ila.input("top_slave_data_in", 128)
        self.offset = self.address[23:0]
        ila.set_valid(self.write ^ self.read)

    def register(self, register: Register) -> Expr:
        """The condition under which a command writes a register."""
        return self.write & (self.offset < CONFIG_BYTES) & (self.offset[13:2] % REGISTERS == int(register))

    def register_data(self) -> Expr:
        """The four bytes that a register takes."""
        start = self.address[3:0]
        value = self.data[127:96]
        for byte in reversed(range(12)):
            value = ite(start == byte, self.data[8 * byte + 31 : 8 * byte], value)
        return value

    def entry_in(self, base: int, size: int) -> Expr:
        """The condition under which the address is that of a whole entry in a range of bytes."""
        return (self.offset >= base) & (self.offset < base + size) & (self.offset[3:0] == 0)

    def entry(self, base: int, bits: int) -> Expr:
        """The entry's number from a base on."""
        return (self.offset[23:4] - base // ENTRY_BYTES)[bits - 1 : 0]


def _registers(ila: Ila, bus: _Bus) -> None:
    data = bus.register_data()
    for register, doc in _KEPT.items():
        state = ila.state(f"cfg_reg_{register.name.lower()}", 32, 0, doc)
        ila.instruction(f"CFG_WR_{register.name}", f"writes register {int(register)}").set_decode(
            bus.register(register)
        ).update(state, data)


def _scratchpad(ila: Ila, bus: _Bus, number: int, base: int) -> None:
    memory = ila.states[f"scratch_pad_{number}"]
    here = bus.entry_in(base, SPAD_BYTES)
    target = ila.state(f"spad_{number}_wr_entry", 13, 0, f"where the last transfer to SPAD{number} began")
    ila.instruction(f"SPAD{number}_DATA_WR", f"copies entries from SoC memory to SPAD{number}").set_decode(
        here & bus.write
    ).update(target, bus.entry(base, 13)).start(_transfer(ila, number, memory, target))
    entry = bus.entry(base, 13)
    word = concat(*(memory.load(concat(entry, const(lane, 3))) for lane in reversed(range(LANES))))
    ila.instruction(f"SPAD{number}_DATA_RD", f"reads an entry of SPAD{number}").set_decode(here & bus.read).update(
        ila.states["data_out"], word
    )


def _transfer(ila: Ila, number: int, memory: Expr, target: Expr) -> Kernel:
    """Copies as many entries as RdWrLength says, from SocMemBase on.

    Beyond the end of a memory addresses wrap around, and SocMemBase is rounded down to an entry; neither is published,
    and :mod:`accel_models.hlscnn.program` refuses both.
    """
    s = ila.states
    kernel = Kernel(f"spad_{number}_transfer", f"copies entries from SoC memory to SPAD{number}")
    source = s["cfg_reg_soc_mem_base_addr"][17:4]
    with (
        kernel.loop("beat", s["cfg_reg_soc_mem_rd_wr_length"]) as beat,
        kernel.loop("lane", const(LANES, 4)) as lane,
    ):
        word = kernel.load("word", s["virtual_soc_memory"], concat(source + beat[13:0], lane[2:0]))
        kernel.store(memory, concat(target + beat[12:0], lane[2:0]), word)
    return kernel


def _soc_memory(ila: Ila, bus: _Bus) -> None:
    memory = stored = ila.states["virtual_soc_memory"]
    entry = bus.entry(SOC_BASE, 14)
    for lane in range(LANES):
        stored = stored.store(concat(entry, const(lane, 3)), bus.data[16 * lane + 15 : 16 * lane])
    ila.instruction("VIR_MEM_WR", "the host writes an entry of SoC memory").set_decode(
        bus.entry_in(SOC_BASE, 0x30000) & bus.write
    ).update(memory, stored)
