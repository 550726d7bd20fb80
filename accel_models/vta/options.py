"""Readings of VTA's specification, where the public implementations disagree."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args, get_type_hints

__all__ = ["CHISEL", "FSIM", "HLS", "PRESETS", "VTA_ILA", "VtaOptions"]


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

    ``uop_depth``: the number of micro-ops that fit.

    ``tokens``: token queues hold any number ("unbounded"), 8 ("fifo8": a push waits for room), are counters that stay
    at 255 when they are pushed ("saturating8"), or are ignored: instructions execute in order ("none").

    ``acc_8bit``: whether the memory ACC_8BIT can be loaded.
    """

    encoding: Literal["standard", "older"] = "standard"
    store_source: Literal["out", "acc"] = "out"
    gemm_reset: Literal["zero", "zero_out_dot", "zero_no_out"] = "zero_out_dot"
    shr: Literal["full", "signed5", "chisel"] = "signed5"
    mul: Literal["multiplies", "unchanged", "rejected"] = "unchanged"
    zero_iterations: Literal["nothing", "do_while"] = "nothing"
    wgt_uop_padding: Literal["honoured", "ignored"] = "ignored"
    acc_padding: Literal["honoured", "ignored"] = "ignored"
    empty_load: Literal["nothing", "pads"] = "pads"
    padded_rows: Literal["whole", "data"] = "whole"
    index_overflow: Literal["refused", "truncated"] = "refused"
    uop_depth: Literal[8192, 2048] = 8192
    tokens: Literal["unbounded", "fifo8", "saturating8", "none"] = "fifo8"
    acc_8bit: bool = False

    def __post_init__(self) -> None:
        hints = get_type_hints(VtaOptions)
        for field in fields(self):
            allowed = get_args(hints[field.name]) or (False, True)
            if getattr(self, field.name) not in allowed:
                choices = " or ".join(map(str, allowed))
                raise ValueError(f"{field.name} must be {choices}, not {getattr(self, field.name)!r}")


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
    mul="rejected",
    zero_iterations="do_while",
    acc_padding="honoured",
    empty_load="nothing",
    index_overflow="truncated",
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
