"""HLSCNN's convolution: proved for every size, at fixed shapes, and faults of which none is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import bmc.prove
from accel_models.hlscnn.config import INPUT_SIZE, KERNEL_SIZE, channel_word
from accel_models.hlscnn.layout import SPAD1_BASE, Register
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import WGT_16BITS
from accel_models.hlscnn.program import parse_program, run
from bmc.programs import write_program_file
from bmc.search import search
from ila_lang import Command, Expr, Kernel, Machine, concat, const, ite
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.hlscnn import convolution as hc
from rewrites.mappings.hlscnn.convolution import convolution_mapping
from smt_encodings.claims import Status
from tests.marks import slow_but
from tests.rewrites.mappings.mapping_checks import edited, require_proved, require_refuted, require_unproved

CONV = convolution_mapping()
Change = Callable[[Command], Command]


def register(number: Register, word: Expr) -> TensorMapping:
    """The mapping with another word in a register."""
    scratch = Kernel("scratch")
    hc.write_register(scratch, number, word)
    (command,) = scratch.body
    assert isinstance(command, Command)
    return edited(CONV, command.note, lambda _: command)


def data(note: str, word: Callable[[Expr], Expr], name: str = "top_slave_data_in") -> TensorMapping:
    """The mapping with other data (or another address) in the commands of that note."""
    return edited(CONV, note, lambda c: Command(tuple((n, word(v) if n == name else v) for n, v in c.inputs), c.note))


def option(**choice: str) -> TensorMapping:
    return convolution_mapping(replace(WGT_16BITS, **choice))  # type: ignore[arg-type]


def channel_cfg(**fields: Expr) -> TensorMapping:
    right = {"filters": hc.K[7:0], "enable_bias": const(1, 1), "enable_relu": hc.RELU[0:0], "bias": hc.BIAS[15:0]}
    return register(Register.CONV_CHANNEL_CFG, channel_word(WGT_16BITS).pack_expr(**(right | fields)))


def kernel_cfg(**fields: Expr) -> TensorMapping:
    right = {"rows": hc.KH[7:0], "cols": hc.KW[7:0], "row_stride": hc.SH[2:0], "col_stride": hc.SW[2:0]}
    return register(Register.CONV_KERNEL_SIZE_CFG, KERNEL_SIZE.pack_expr(**(right | fields)))


def input_cfg(**fields: Expr) -> TensorMapping:
    right = {"channels": hc.C[11:0], "rows": hc.H[9:0], "cols": hc.W[9:0]}
    return register(Register.CONV_INPUT_SIZE_CFG, INPUT_SIZE.pack_expr(**(right | fields)))


FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "the kernel loop ends after the first row not below K - 1": lambda: option(
        kernel_end="last", kernel_start="unchecked"
    ),
    "rows beyond the kernel are used": lambda: option(kernel_start="unchecked"),
    "ChannelCfg as documented": lambda: option(channel_word="documented"),
    "coordinates of the main branch": lambda: option(coordinates="same"),
    "a plane for each filter": lambda: option(outputs="per_filter"),
    "other lanes are cleared": lambda: option(other_lanes="cleared"),
    "sums saturate": lambda: option(overflow="saturate"),
    "taps are cut": lambda: option(tap_rounding="truncate"),
    "stores are rounded": lambda: option(store_rounding="half_up"),
    "strides exchanged": lambda: kernel_cfg(row_stride=hc.SW[2:0], col_stride=hc.SH[2:0]),
    "kernel rows and columns exchanged": lambda: kernel_cfg(rows=hc.KW[7:0], cols=hc.KH[7:0]),
    "input rows and columns exchanged": lambda: input_cfg(rows=hc.W[9:0], cols=hc.H[9:0]),
    "the last block of channels is left out": lambda: input_cfg(channels=(hc.C >> 3 << 3)[11:0]),
    "a filter is left out": lambda: channel_cfg(filters=hc.K[7:0] - 1),
    "the sums begin with what the scratchpad holds": lambda: channel_cfg(enable_accum=const(1, 1)),
    "the bias is not enabled": lambda: channel_cfg(enable_bias=const(0, 1)),
    "relu turned round": lambda: channel_cfg(enable_relu=~hc.RELU[0:0]),
    "outputs one entry further": lambda: register(Register.CONV_OUTPUT_BASE_ADDR, const(SPAD1_BASE + 16, 32)),
    "activations one entry further": lambda: register(Register.CONV_ACT_BASE_ADDR, const(16, 32)),
    "one entry of weights is not copied": lambda: register(Register.SOC_MEM_RD_WR_LENGTH, hc.WEIGHTS - 1),
    "weights are copied from the activations": lambda: register(Register.SOC_MEM_BASE_ADDR, const(0, 32)),
    "weights overwrite the last pixel": lambda: data(
        "store weights", lambda address: address - 16, name="top_slave_addr_in"
    ),
    "lanes in reverse order": lambda: data("store activations", _reversed_lanes),
}
QUICK = (
    "outputs one entry further",
    "the sums begin with what the scratchpad holds",
)


SHAPES = ((1, 1, 1, 1, 1, 1, 1, 1), (2, 1, 1, 1, 1, 1, 1, 1), (9, 1, 1, 1, 1, 1, 1, 1))
AT = {
    "the kernel loop ends after the first row not below K - 1": (1, 1, 4, 1, 2, 1, 2, 1),
    "rows beyond the kernel are used": (1, 1, 3, 2, 1, 1, 2, 1),
    "strides exchanged": (1, 1, 3, 2, 1, 1, 2, 1),
    "kernel rows and columns exchanged": (1, 1, 2, 3, 2, 1, 1, 1),
    "input rows and columns exchanged": (1, 1, 3, 2, 1, 1, 1, 1),
}
"""Shapes at which faults show, where the smallest ones do not show them."""


def _reversed_lanes(word: Expr) -> Expr:
    return concat(*(word[16 * k + 15 : 16 * k] for k in range(8)))


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    shapes = [AT[name]] if name in AT else SHAPES
    require_refuted(FAULTS[name](), shapes=shapes, seconds=3.0 if name in QUICK else 60.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    require_unproved(FAULTS[name]())


def test_weights_of_missing_channels_must_be_zero() -> None:
    """The last block's other lanes are filled with anything instead of zeros."""

    def fill(word: Expr) -> Expr:
        return word | ite(hc.C[2:0] == 1, const(1 << 16, 128), const(0, 128))

    require_refuted(data("store weights", fill), seconds=3.0)


@pytest.mark.slow
def test_the_convolution_is_proved_for_every_size() -> None:
    verdict = require_proved(CONV)
    assert {o.group for o in verdict.obligations} >= {"hlscnn: accumulation", "lemmas", "values", "health"}


@pytest.mark.parametrize(
    "shape",
    [(2, 3, 3, 4, 2, 2, 1, 2), pytest.param((9, 9, 4, 4, 3, 2, 2, 1), marks=pytest.mark.slow)],
    ids=str,
)
def test_the_convolution_is_proved_at_a_shape(shape: tuple[int, ...]) -> None:
    verdict = bmc.prove.prove(CONV, shape, data="uninterpreted")
    assert verdict.status is Status.PROVED, verdict.reason


def test_shapes_that_do_not_fit_are_refused() -> None:
    for shape, message in (
        ((256, 1, 1, 1, 1, 1, 1, 1), "Filters of shape 256x1x1x1x1x1x1x1 of an HLSCNN conv2d mapping must be 1 to 255"),
        ((1, 1, 2, 2, 3, 1, 1, 1), "Kernel height of shape 1x1x2x2x3x1x1x1 of an HLSCNN conv2d mapping must be 1 to 2"),
        ((1, 1, 9, 9, 1, 1, 8, 1), "Vertical stride of shape .* must be 1 to 7, not 8; split the layer"),
        (
            (255, 64, 9, 9, 3, 3, 1, 1),
            "Weights of shape .* must fill at most 8192 entries of 8 words, not 18360; split",
        ),
        ((1, 1, 100, 100, 1, 1, 1, 1), "Outputs of shape .* must fill at most 8192 entries of 8 words, not 10000"),
        (
            (1, 800, 15, 9, 5, 5, 1, 1),
            "Activations and weights of shape .* must fill at most 12288 entries .*, not 16000",
        ),
    ):
        with pytest.raises(SizeError, match=message):
            CONV.sizes_for(shape)


def test_a_counterexample_is_written_as_a_program_that_runs() -> None:
    mapping = FAULTS["the sums begin with what the scratchpad holds"]()
    found = search(mapping, budget_seconds=3.0)
    assert found is not None
    program = parse_program(write_program_file(mapping, found))
    reads = run(program, Machine(hlscnn(WGT_16BITS)))
    row, column = found.row, found.column
    groups = -(-found.sizes["k"] // 8)
    pixels = found.sizes["oh"] * found.sizes["ow"]
    entry = reads[-groups * pixels :][row // 8 * pixels + column][1]
    assert entry >> 16 * (row % 8) & 0xFFFF == found.device
