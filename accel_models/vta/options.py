"""Readings of VTA's specification, where the public implementations disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accel_models.choices import require_choices


@dataclass(frozen=True)
class VtaOptions:
    """Readings of the specification; the default is that of the HLS design, which runs on the published boards.

    ``encoding``: the instruction words, see :mod:`accel_models.vta.isa`.

    ``store_source``: STORE copies the memory OUT, which only GEMM and ALU write, so that a LOAD of ACC followed by a
    STORE gives what OUT held before ("out"); or it takes the low bytes of ACC ("acc").  With "acc" there is no OUT.

    ``gemm_reset``: a GEMM with reset_reg clears ACC in any case.  OUT gets 0 ("zero"), the low bytes of what GEMM would
    have accumulated ("zero_out_dot"), or nothing ("zero_no_out").

    ``shr``: SHR shifts right by the 32-bit operand, and left where it is negative ("full"); by its low five bits read
    as signed, so that 16 shifts left by 16 ("signed5"); or right by its low five bits, unless bit 15 of the immediate
    field is set, even if the operand is an accumulator: then left by the operand's negative modulo 32 ("chisel").

    ``immediate_operand``: an operation with an immediate takes the accumulator of the micro-op's "destination" as its
    first operand, or of its "source" (Chisel's pipelined ALU).

    ``mul``: MUL multiplies ("multiplies"), leaves accumulators and outputs as they are ("unchanged"), or is no
    instruction ("rejected").

    ``zero_iterations``: a loop of GEMM or ALU that is configured to run no time runs "nothing", or once ("do_while").
    An empty range of micro-ops is such a loop.

    ``wgt_uop_padding``, ``acc_padding``: the pads of a LOAD of WGT or UOP, and of ACC, are "honoured" or "ignored".
    Where those of UOP are ignored, so are y_size and x_stride: one row is loaded.

    ``empty_load``: a LOAD with x_size = 0 writes "nothing", or its "pads".

    ``padded_rows``: row y of a padded LOAD of INP begins y whole rows, pads included, after the first ("whole"), or
    only y * x_size elements after it ("data", a defect of the published ILA).

    ``index_overflow``: an instruction that reaches beyond a scratchpad is "refused", or addresses are "truncated" to
    the scratchpad's.  "refused" stands for the simulator's abort, and for the undefined access of the HLS design.
    "extra_bit" takes the HLS design at its word: indices of GEMM and ALU have one bit more than the scratchpad needs,
    so that they begin again at twice its depth, and an instruction is refused where such an index is still beyond the
    scratchpad.  That refuses exactly what "refused" does: see docs/explanation/vta.md.

    ``back_to_back``: what happens where a GEMM or ALU instruction reads an accumulator soon after writing it.  An
    *iteration* is one micro-op in one round of the two loops.  Each sees the results of all before it ("sequential");
    or its accumulators as they were before the last ``write_latency`` iterations of the same instruction ("stale");
    or an instruction in which that makes a difference is refused ("refused", and "refused_alu" as Chisel's assertions
    do: an ALU instruction in which an iteration reads what the one before it has written, where with a second
    accumulator only that counts as read; GEMM has a bypass).  "sequential" is right for a pipelined design only where
    no iteration reads what one of the last few has written, which :mod:`accel_models.vta.order.revisits` checks.

    ``write_latency``: how many iterations pass before a result can be read, for "stale" and "refused".  It is a
    property of a synthesised design; the public runtime refuses two micro-ops with one destination among three.

    ``uop_depth``: the number of micro-ops that fit.

    ``tokens``: token queues hold any number ("unbounded"), 8 ("fifo8": a push waits for room), are counters that stay
    at 255 when they are pushed ("saturating8"), or are ignored: instructions execute in order ("none").

    ``acc_8bit``: whether the memory ACC_8BIT can be loaded.
    """

    encoding: Literal["standard", "older"] = "standard"
    store_source: Literal["out", "acc"] = "out"
    gemm_reset: Literal["zero", "zero_out_dot", "zero_no_out"] = "zero_out_dot"
    shr: Literal["full", "signed5", "chisel"] = "signed5"
    immediate_operand: Literal["destination", "source"] = "destination"
    mul: Literal["multiplies", "unchanged", "rejected"] = "unchanged"
    zero_iterations: Literal["nothing", "do_while"] = "nothing"
    wgt_uop_padding: Literal["honoured", "ignored"] = "ignored"
    acc_padding: Literal["honoured", "ignored"] = "ignored"
    empty_load: Literal["nothing", "pads"] = "pads"
    padded_rows: Literal["whole", "data"] = "whole"
    index_overflow: Literal["refused", "truncated", "extra_bit"] = "refused"
    back_to_back: Literal["sequential", "stale", "refused", "refused_alu"] = "sequential"
    write_latency: Literal[1, 2, 3, 4] = 2
    uop_depth: Literal[8192, 2048] = 8192
    tokens: Literal["unbounded", "fifo8", "saturating8", "none"] = "fifo8"
    acc_8bit: bool = False

    def __post_init__(self) -> None:
        require_choices(self)


HLS = VtaOptions()
"""The HLS design (``hardware/xilinx/src/vta.cc``)."""

FSIM = VtaOptions(
    store_source="acc",
    gemm_reset="zero",
    shr="full",
    mul="multiplies",
    wgt_uop_padding="honoured",
    acc_padding="honoured",
    empty_load="nothing",
    tokens="unbounded",
    acc_8bit=True,
)
"""The C++ simulator (``src/sim/sim_driver.cc``)."""

CHISEL = VtaOptions(
    gemm_reset="zero_no_out",
    shr="chisel",
    immediate_operand="source",
    mul="rejected",
    zero_iterations="do_while",
    acc_padding="honoured",
    empty_load="nothing",
    index_overflow="truncated",
    back_to_back="refused_alu",
    uop_depth=2048,
    tokens="saturating8",
)
"""The Chisel design (``hardware/chisel``)."""

VTA_ILA = VtaOptions(
    encoding="older",
    mul="rejected",
    zero_iterations="do_while",
    padded_rows="data",
    tokens="none",
)
"""The published ILA (vta-ila), as far as one instruction at a time can show it."""

PRESETS = {"hls": HLS, "fsim": FSIM, "chisel": CHISEL, "vta-ila": VTA_ILA}
"""The readings of the public implementations, by name."""
