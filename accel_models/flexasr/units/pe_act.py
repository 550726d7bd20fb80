"""The activation unit of a processing element (PE): a program of micro-instructions on vectors of 20-bit numbers.

A micro-instruction of 8 bits is an operation (bits 7..4), a destination register A2 (3..2) and a source register A1
(1..0).  There are four registers of 16 numbers in Q6.14, which keep their contents between runs.

Source: ``ActUnit`` of the FlexASR SystemC design.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from accel_models.flexasr.functions import eadd, emul, onex, relu, sigmoid, sigmoid_b, tanh
from accel_models.flexasr.layout import LANES, PE_COUNT
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat, fixed_to_adpfloat_pre2022
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.terms import select
from ila_lang import Expr, Function, Ila, Kernel, all_of, concat, const, ite

from .processing_elements import PORT_BITS, of_pe

INSTRUCTIONS = 32  # places for micro-instructions


class MicroOp:
    """Operations of micro-instructions.  Those without a name here (5, 6, 14, 15) do nothing, as 0 does."""

    NOP = 0x0
    LOAD = 0x1  # A2 := what the buffer holds for this output; zeros in a first run with is_zero_first
    STORE = 0x2  # buffer := code of A2
    INPE = 0x3  # A2 := the next vector of the core
    OUTGB = 0x4  # code of A2 to the global buffer
    COPY = 0x7  # A2 := A1
    EADD = 0x8  # A2 := A2 + A1
    EMUL = 0x9  # A2 := A2 * A1
    SIGM = 0xA  # A2 := sigmoid(A2)
    TANH = 0xB  # A2 := tanh(A2)
    RELU = 0xC  # A2 := max(A2, 0)
    ONEX = 0xD  # A2 := 1 - A2


def compress(options: FlexAsrOptions) -> Function:
    """The conversion from Q6.14 to AdaptivFloat."""
    return fixed_to_adpfloat if options.saturation == "2022" else fixed_to_adpfloat_pre2022


def act_pops(ila: Ila, pe: int) -> Expr:
    """The number of vectors (14 bits) that an activation unit takes from its core in a run."""
    s, prefix = ila.states, f"pe{pe}_act_"
    per_output = const(0, 6)
    for number in range(INSTRUCTIONS):
        takes = (s[f"{prefix}vector_Inst{number}"][7:4] == MicroOp.INPE) & (s[prefix + "mngr_num_inst"] > number)
        per_output = per_output + ite(takes, const(1, 6), const(0, 6))
    return s[prefix + "mngr_num_output"].zext(14) * per_output.zext(14)


def act_ends(ila: Ila, pe: int) -> Expr:
    """Whether a run of an activation unit ends, if the core gives it the vectors that it takes.

    Hardware tests for equality with the count less one, with a counter of five bits for micro-instructions.
    """
    prefix = f"pe{pe}_act_mngr_"
    count = ila.states[prefix + "num_inst"]
    return all_of(
        [
            ila.states[prefix + "is_valid"],
            count != 0,
            count <= INSTRUCTIONS,
            ila.states[prefix + "num_output"] != 0,
        ]
    )


def pe_acts(
    kernel: Kernel,
    ila: Ila,
    options: FlexAsrOptions,
    first: Expr,
    emit: Callable[[str, Expr, Expr, Expr], None],
) -> None:
    """Appends a run of the activation units of all PEs to a kernel; ``first`` (Boolean) marks the first run.

    For each output o the whole program runs once.  ``emit(name, logical, lane, code)`` appends what happens to a code
    that leaves for the global buffer, at a logical vector address of 8 bits; ``name`` begins new names.  PEs run one
    after the other here and at once in hardware: two that send to the same address race there, and here the higher
    number wins.
    """
    s = ila.states
    registers, buffer, port = s["pe_act_regs"], s["pe_act_buffer"], s["pe_core_port"]
    to_code = compress(options)
    k = kernel

    def configured(name: str) -> Expr:
        return of_pe(ila, pe, f"act_mngr_{name}")

    def address(register: Expr, lane: Expr) -> Expr:
        return concat(pe, register, lane[3:0])

    def lanes(name: str) -> AbstractContextManager[Expr]:
        return k.loop(name, const(LANES, 5))

    with k.loop("act_pe", const(PE_COUNT, 3)) as counter:
        pe = counter[1:0]
        zero_first = k.let("act_zero_first", ite(configured("is_zero_first") & first, const(1, 1), const(0, 1)))
        bias = k.let("act_bias", configured("adpfloat_bias"))
        base, base_out = k.let("act_base", configured("buffer_addr_base")), configured("output_addr_base")
        base_out = k.let("act_base_out", base_out)
        count = k.let("act_count", configured("num_inst"))
        per_output = k.let("act_pops", const(0, PORT_BITS))
        with k.loop("act_counted", count) as number:
            counted = k.let("act_counted_op", _instruction(ila, pe, number)[7:4])
            k.assign(per_output, per_output + ite(counted == MicroOp.INPE, const(1, PORT_BITS), const(0, PORT_BITS)))
        if options.act_registers == "cleared":
            with k.loop("act_register", const(4, 3)) as register, lanes("act_register_lane") as lane:
                k.store(registers, address(register[1:0], lane), 0)
        with k.loop("act_output", configured("num_output")) as output:
            taken = k.let("act_taken", output.zext(PORT_BITS) * per_output)
            with k.loop("act_number", count) as number:
                instruction = k.let("act_inst", _instruction(ila, pe, number))
                op, a2, a1 = instruction[7:4], instruction[3:2], instruction[1:0]
                slot = output.zext(max(8, base.width))[base.width - 1 : 0] + base
                with k.when("load_zero", (op == MicroOp.LOAD) & (zero_first == 1)), lanes("load_zero_lane") as lane:
                    k.store(registers, address(a2, lane), 0)
                with k.when("load", (op == MicroOp.LOAD) & (zero_first == 0)), lanes("load_lane") as lane:
                    code = k.load("load_code", buffer, concat(pe, slot, lane[3:0]))
                    k.store(registers, address(a2, lane), adpfloat_to_fixed(code, bias))
                with k.when("store", op == MicroOp.STORE), lanes("store_lane") as lane:
                    word = k.load("store_word", registers, address(a2, lane))
                    k.store(buffer, concat(pe, slot, lane[3:0]), to_code(word, bias))
                with k.when("inpe", op == MicroOp.INPE):
                    with lanes("inpe_lane") as lane:
                        word = k.load("inpe_word", port, concat(pe, taken, lane[3:0]))
                        k.store(registers, address(a2, lane), word)
                    k.assign(taken, taken + 1)
                with k.when("outgb", op == MicroOp.OUTGB), lanes("outgb_lane") as lane:
                    word = k.load("outgb_word", registers, address(a2, lane))
                    code = k.let("outgb_code", to_code(word, bias))
                    emit("outgb", output + base_out, lane, code)
                with k.when("copy", op == MicroOp.COPY), lanes("copy_lane") as lane:
                    k.store(registers, address(a2, lane), k.load("copy_word", registers, address(a1, lane)))
                for name, code_of, function in (("eadd", MicroOp.EADD, eadd), ("emul", MicroOp.EMUL, emul)):
                    with k.when(name, op == code_of), lanes(f"{name}_lane") as lane:
                        left = k.load(f"{name}_a1", registers, address(a1, lane))
                        right = k.load(f"{name}_a2", registers, address(a2, lane))
                        k.store(registers, address(a2, lane), function(left, right))
                for name, code_of, function in (
                    ("sigm", MicroOp.SIGM, sigmoid if options.sigmoid == "A" else sigmoid_b),
                    ("tanh", MicroOp.TANH, tanh),
                    ("relu", MicroOp.RELU, relu),
                    ("onex", MicroOp.ONEX, onex),
                ):
                    with k.when(name, op == code_of), lanes(f"{name}_lane") as lane:
                        word = k.load(f"{name}_word", registers, address(a2, lane))
                        k.store(registers, address(a2, lane), function(word))


def _instruction(ila: Ila, pe: Expr, number: Expr) -> Expr:
    states = [ila.states[f"pe{i}_act_vector_Inst{n}"] for i in range(PE_COUNT) for n in range(INSTRUCTIONS)]
    return select(concat(pe, number[4:0]), states)
