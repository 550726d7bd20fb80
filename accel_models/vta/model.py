"""The ILA of VTA: instructions, scratchpads, DRAM and token counters.

A command is one instruction that its module executes to completion, or one of three virtual commands of the host:
write or read 16 bytes of DRAM, and start another program.  Which module's next instruction comes first is decided
outside, by :mod:`accel_models.vta.order.schedule`; the ILA says what an instruction does when it executes, and refuses
to execute it before the tokens that it pops are there.

The fields of an instruction are latched in states (``transfer_*``, ``loops_*``) by its updates, and its kernel reads
them from there.  A GEMM with ``reset_reg`` and an ALU operation with an immediate are instructions of their own, so
that every kernel is a plain nest of loops.

Reserved are: unknown instructions, instructions whose tokens are missing or have no room (VTA_BLOCKED), transfers
beyond a memory and ranges of micro-ops beyond theirs (VTA_OUT_OF_RANGE), everything after FINISH until the host
starts another program (VTA_FINISHED), and every instruction after a GEMM or ALU whose indices went beyond a scratchpad
or, where the reading refuses that, which read an accumulator too soon after writing it (VTA_FAULTED; what that
instruction did is not described).  The state ``fault`` says so right after the instruction.

Sources: the public VTA repository (apache/tvm-vta: ``vta.cc``, ``sim_driver.cc``, the Chisel core) and the published
ILA (vta-ila); where they disagree see :class:`~accel_models.vta.options.VtaOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache

from ila_lang import BOOL, Expr, Ila, Instruction, any_of, concat, const, ite, true

from .compute import alu_kernel, gemm_kernel, uops_fit
from .isa import ENCODINGS, AluOp, MemoryId, Opcode, Unit, token_queues
from .options import VtaOptions
from .scratchpads import DRAM_BITS, SCRATCHPADS
from .transfers import load_kernel, scratchpad, store_kernel, transfer_fits, transfer_starts

QUEUES = ("l2g", "g2l", "g2s", "s2g")
HOST_BYTES = 16


class CommandKind(IntEnum):
    """The input ``command``: an instruction, or what the host does."""

    ISSUE = 0
    WRITE = 1
    READ = 2
    START = 3


# Bits of a token counter, and the tokens that a queue holds at most.
CAPACITY: Mapping[str, tuple[int, int]] = {
    "unbounded": (32, (1 << 32) - 1),
    "fifo8": (4, 8),
    "saturating8": (8, 255),
    "none": (1, 0),
}


def vta(options: VtaOptions | None = None) -> Ila:
    """The model of VTA; the same object for equal options.

    Inputs: ``command`` (2 bits, :class:`CommandKind`), ``insn`` (128 bits), and for the host ``addr`` (32 bits, a
    multiple of 16 below 2^24), ``data`` (128 bits, lowest byte first) and ``strobe`` (16 bits: which bytes to write).
    The output is the state ``data_out``, the 16 bytes of the last read.
    """
    return _build(options or VtaOptions())


@cache
def _build(options: VtaOptions) -> Ila:
    ila = Ila("vta", "VTA at its instruction queues and its DRAM.")
    builder = _Builder(ila, options)
    builder.states()
    builder.transfers()
    builder.computations()
    builder.finish()
    builder.reserved()
    builder.host()
    return ila


class _Builder:
    """Declares the states and instructions."""

    def __init__(self, ila: Ila, options: VtaOptions) -> None:
        self.ila, self.options = ila, options
        self.encoding = ENCODINGS[options.encoding]
        self.command = ila.input("command", 2)
        self.insn = ila.input("insn", 128)
        self.addr, self.data, self.strobe = ila.input("addr", 32), ila.input("data", 128), ila.input("strobe", 16)
        self.known: list[tuple[Expr, Expr, Expr]] = []  # (decode, tokens are there, in range) of each instruction

    def states(self) -> None:
        """All states; everything is 0 after reset."""
        ila = self.ila
        ila.state("data_out", 128, 0, "the bytes of the host's last read, lowest address first")
        ila.state("finished", BOOL, 0, "FINISH has executed")
        ila.memory("fault", 1, 1, 0, "an instruction went beyond a scratchpad (word 0), read too soon (word 1)")
        ila.memory("dram", DRAM_BITS, 8, 0, "bytes")
        for memory, pad in SCRATCHPADS.items():
            if memory == MemoryId.ACC_8BIT or (memory == MemoryId.OUT and self.options.store_source == "acc"):
                continue
            pad = scratchpad(memory, self.options)
            ila.memory(pad.name, pad.index_bits + pad.lane_bits, pad.word_bits, 0, _describe(pad.depth, pad.lanes))
        bits, _ = CAPACITY[self.options.tokens]
        if self.options.tokens != "none":
            for queue in QUEUES:
                ila.state(queue, bits, 0, f"tokens from {_MODULES[queue[0]]} to {_MODULES[queue[2]]}")
        for name, field in self.encoding.transfer.items():
            if name not in _HEADER and name != "memory":
                ila.state(f"transfer_{name}", field.width, 0, "of the last LOAD or STORE")
        for name, field in (dict(self.encoding.gemm) | dict(self.encoding.alu)).items():
            if name not in _HEADER and name not in ("reset_reg", "alu_opcode", "use_imm"):
                ila.state(f"loops_{name}", field.width, 0, "of the last GEMM or ALU with this field")

    def field(self, name: str, opcode: Opcode) -> Expr:
        """A field of the instruction input."""
        field = self.encoding.of(opcode)[name]
        return self.insn[field.low + field.width - 1 : field.low]

    @property
    def live(self) -> Expr:
        """Whether the command is an instruction that may execute."""
        return (self.command == CommandKind.ISSUE) & ~self.ila.states["finished"] & ~self.fault

    @property
    def fault(self) -> Expr:
        """Whether an instruction was found to be undefined in this reading while it executed."""
        fault = self.ila.states["fault"]
        beyond = fault.load(0) == 1
        return beyond | (fault.load(1) == 1) if self.options.back_to_back.startswith("refused") else beyond

    def declare(self, name: str, doc: str, unit: Unit, opcode: Opcode, select: Expr, in_range: Expr) -> Instruction:
        """An instruction that executes when its tokens are there; latches its fields and moves its tokens."""
        decode = (self.field("opcode", opcode) == opcode) & select
        ready = true
        declared = self.ila.instruction(name, doc)
        _, most = CAPACITY[self.options.tokens]
        for flag, queue in token_queues(unit).items():
            if self.options.tokens == "none":
                continue
            is_set, tokens = self.field(flag, opcode) == 1, self.ila.states[queue]
            if flag.startswith("pop"):
                ready = ready & is_set.implies(~(tokens == 0))
                declared.update(tokens, ite(is_set, tokens - 1, tokens))
            else:
                if self.options.tokens != "saturating8":
                    ready = ready & is_set.implies(tokens < most)
                # where the queue may be full, a push leaves it so
                declared.update(tokens, ite(is_set & ~(tokens == most), tokens + 1, tokens))
        self.known.append((decode, ready, in_range))
        declared.set_decode(self.live & decode & ready & in_range)
        prefix = "transfer" if opcode in (Opcode.LOAD, Opcode.STORE) else "loops"
        for field in self.encoding.of(opcode):
            if f"{prefix}_{field}" in self.ila.states:
                declared.update(self.ila.states[f"{prefix}_{field}"], self.field(field, opcode))
        return declared

    def transfers(self) -> None:
        """LOAD of each memory, and STORE."""
        ila, options = self.ila, self.options
        number = self.field("memory", Opcode.LOAD)

        def fits(memory: MemoryId) -> Expr:
            within, in_dram = transfer_fits(lambda name: self.field(name, Opcode.LOAD), memory, options)
            return within & in_dram

        for memory in MemoryId:
            if (
                memory == MemoryId.OUT
                or memory >> number.width
                or (memory == MemoryId.ACC_8BIT and not options.acc_8bit)
            ):
                continue
            unit = Unit.LOAD if memory in (MemoryId.INP, MemoryId.WGT) else Unit.COMPUTE
            doc = f"copies elements from DRAM to {SCRATCHPADS[memory].name}"
            load = self.declare(f"LOAD_{memory.name}", doc, unit, Opcode.LOAD, number == memory, fits(memory))
            load.start(load_kernel(ila, memory, options), when=transfer_starts(ila, options))
        out = MemoryId.OUT & (1 << number.width) - 1
        store = self.declare(
            "STORE", "copies output bytes to DRAM", Unit.STORE, Opcode.STORE, number == out, fits(MemoryId.OUT)
        )
        store.start(store_kernel(ila, options))

    def computations(self) -> None:
        """GEMM and ALU operations."""
        ila, options = self.ila, self.options
        reset = self.field("reset_reg", Opcode.GEMM) == 1
        fits = uops_fit(lambda name: self.field(name, Opcode.GEMM), options)
        gemm = self.declare("GEMM", "adds products of input vectors and weight tiles to accumulators",
                            Unit.COMPUTE, Opcode.GEMM, ~reset, fits)  # fmt: skip
        gemm.start(gemm_kernel(ila, options, reset=False))
        clear = self.declare("GEMM_RESET", "clears accumulators", Unit.COMPUTE, Opcode.GEMM, reset, fits)
        clear.start(gemm_kernel(ila, options, reset=True))
        number, immediate = self.field("alu_opcode", Opcode.ALU), self.field("use_imm", Opcode.ALU) == 1
        for operation in AluOp:
            if operation >> number.width or (operation == AluOp.MUL and options.mul == "rejected"):
                continue
            for suffix, with_imm in (("", False), ("_IMM", True)):
                second = "the immediate" if with_imm else "another"
                select = (number == operation) & (immediate if with_imm else ~immediate)
                alu = self.declare(f"ALU_{operation.name}{suffix}", f"{operation.name} of an accumulator and {second}",
                                   Unit.COMPUTE, Opcode.ALU, select, fits)  # fmt: skip
                alu.start(alu_kernel(ila, operation, options, immediate=with_imm))

    def finish(self) -> None:
        """FINISH."""
        end = self.declare("FINISH", "ends the program", Unit.COMPUTE, Opcode.FINISH, true, true)
        end.update(self.ila.states["finished"], True)

    def reserved(self) -> None:
        """Instructions that do not execute, so that every command is decoded."""
        issue = self.command == CommandKind.ISSUE
        finished = self.ila.states["finished"]

        def reserve(name: str, condition: Expr, reason: str) -> None:
            self.ila.instruction(name, reason).set_decode(condition).reserved = reason

        reserve("VTA_FAULTED", issue & self.fault, "an instruction before it was undefined in this reading")
        reserve("VTA_FINISHED", issue & finished & ~self.fault, "the program has finished")
        decoded = any_of([decode for decode, _, _ in self.known])
        ready = any_of([decode & tokens for decode, tokens, _ in self.known])
        in_range = any_of([decode & within for decode, _, within in self.known])
        reserve("VTA_UNKNOWN", self.live & ~decoded, "no instruction has this opcode, memory or operation")
        reserve("VTA_BLOCKED", self.live & decoded & ~ready, "a token is missing, or has no room")
        reserve(
            "VTA_OUT_OF_RANGE",
            self.live & decoded & ready & ~in_range,
            "it goes beyond a scratchpad, beyond DRAM or beyond the micro-ops",
        )

    def host(self) -> None:
        """The host's commands.

        Writes of 16 bytes are an instruction of their own: what they do does not depend on what was there.
        """
        ila, dram = self.ila, self.ila.states["dram"]
        answers = (self.addr[31:DRAM_BITS] == 0) & (self.addr[3:0] == 0)
        write, read = self.command == CommandKind.WRITE, self.command == CommandKind.READ
        places = [concat(self.addr[DRAM_BITS - 1 : 4], const(i, 4)) for i in range(HOST_BYTES)]
        whole = self.strobe == (1 << HOST_BYTES) - 1
        after = some = dram
        for i, place in enumerate(places):
            byte = self.data[8 * i + 7 : 8 * i]
            after = after.store(place, byte)
            some = some.store(place, ite(self.strobe[i] == 1, byte, dram.load(place)))
        ila.instruction("HOST_WRITE", "writes 16 bytes of DRAM").set_decode(write & answers & whole).update(dram, after)
        part = ila.instruction("HOST_WRITE_PART", "writes those of 16 bytes of DRAM that strobe names")
        part.set_decode(write & answers & ~whole).update(dram, some)
        word = concat(*(dram.load(place) for place in reversed(places)))
        ila.instruction("HOST_READ", "reads 16 bytes of DRAM").set_decode(read & answers).update(
            ila.states["data_out"], word
        )
        beyond = ila.instruction("HOST_OUT_OF_RANGE", "an access of the host that is not described")
        beyond.set_decode((write | read) & ~answers)
        beyond.reserved = "addr must be a multiple of 16 below 2^24"
        start = ila.instruction("HOST_START", "another program may run: tokens and memories stay")
        start.set_decode(self.command == CommandKind.START).update(ila.states["finished"], False)


_MODULES = {"l": "load", "g": "compute", "s": "store"}
_HEADER = ("opcode", "pop_prev", "pop_next", "push_prev", "push_next")


def _describe(depth: int, lanes: int) -> str:
    return f"{depth} elements of {lanes} lanes" if lanes > 1 else f"{depth} words"
