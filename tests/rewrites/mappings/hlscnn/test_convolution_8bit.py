"""HLSCNN's convolution with weights of 8 bits: proved for every size and at a shape; no fault of it is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import bmc.prove
from accel_models.hlscnn.config import INPUT_SIZE
from accel_models.hlscnn.layout import Register
from ila_lang import Command, Expr, Kernel, concat
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.hlscnn import convolution as wide
from rewrites.mappings.hlscnn.convolution_8bit import ENTRIES, OPTIONS, narrow_mapping
from smt_encodings.claims import Status
from tests.marks import slow_but
from tests.rewrites.mappings.mapping_checks import edited, require_proved, require_refuted, require_unproved

NARROW = narrow_mapping()


def data(note: str, change: Callable[[Expr], Expr]) -> TensorMapping:
    """The mapping with other data in the commands of that note."""
    word = "top_slave_data_in"
    return edited(NARROW, note, lambda c: Command(tuple((n, change(v) if n == word else v) for n, v in c.inputs), note))


def read_at(change: Callable[[Expr], Expr]) -> TensorMapping:
    """The mapping with other addresses of the outputs, of 24 bits."""

    def moved(address: Expr) -> Expr:
        return concat(address[31:24], change(address[23:0]))

    name = "top_slave_addr_in"
    return edited(
        NARROW, "load y", lambda c: Command(tuple((n, moved(v) if n == name else v) for n, v in c.inputs), c.note)
    )


def register(number: Register, word: Expr) -> TensorMapping:
    """The mapping with another word in a register."""
    scratch = Kernel("scratch")
    wide.write_register(scratch, number, word)
    (command,) = scratch.body
    assert isinstance(command, Command)
    return edited(NARROW, command.note, lambda _: command)


FAULTS: dict[str, tuple[Callable[[], TensorMapping], tuple[int, ...]]] = {
    "the hardware with weights of 16 bits": (
        lambda: narrow_mapping(replace(OPTIONS, weight_bits=16)),
        (1, 1, 1, 1, 1, 1, 1, 1),
    ),
    "taps are cut": (lambda: narrow_mapping(replace(OPTIONS, tap_rounding="truncate")), (1, 1, 1, 1, 1, 1, 1, 1)),
    "sums saturate": (lambda: narrow_mapping(replace(OPTIONS, overflow="saturate")), (1, 1, 1, 1, 1, 1, 1, 1)),
    "coordinates of later branches": (
        lambda: narrow_mapping(replace(OPTIONS, coordinates="valid")),
        (1, 1, 3, 3, 2, 2, 1, 1),
    ),
    "outputs are read a row too early, where old contents leak": (
        lambda: read_at(lambda address: address - (wide.W << 4)[23:0]),
        (1, 1, 3, 1, 3, 1, 1, 1),
    ),
    "outputs are read a row too late, where the bias is missing": (
        lambda: read_at(lambda address: address + (wide.W << 4)[23:0]),
        (1, 1, 3, 1, 3, 1, 1, 1),
    ),
    "taps of an entry exchanged": (
        lambda: data("store weights", lambda d: concat(d[63:0], d[127:64])),
        (1, 1, 1, 1, 1, 1, 1, 1),
    ),
    "channels of a tap in reverse order": (
        lambda: data("store weights", lambda d: concat(*(d[8 * i + 7 : 8 * i] for i in [*range(8, 16), *range(8)]))),
        (1, 1, 1, 1, 1, 1, 1, 1),
    ),
    "bytes of a word exchanged": (
        lambda: data(
            "store weights", lambda d: concat(*(d[8 * (i ^ 1) + 7 : 8 * (i ^ 1)] for i in reversed(range(16))))
        ),
        (1, 1, 1, 1, 1, 1, 1, 1),
    ),
    "the last odd tap is not copied": (
        lambda: register(Register.SOC_MEM_RD_WR_LENGTH, wide.WEIGHTS >> 1),
        (3, 1, 1, 1, 1, 1, 1, 1),
    ),
    "one entry is not copied": (
        lambda: register(Register.SOC_MEM_RD_WR_LENGTH, ENTRIES - 1),
        (1, 1, 1, 1, 1, 1, 1, 1),
    ),
    "a block of channels is left out": (
        lambda: register(
            Register.CONV_INPUT_SIZE_CFG,
            INPUT_SIZE.pack_expr(channels=(wide.C - 8)[11:0], rows=wide.H[9:0], cols=wide.W[9:0]),
        ),
        (1, 9, 1, 1, 1, 1, 1, 1),
    ),
}
QUICK = (
    "taps of an entry exchanged",
    "the last odd tap is not copied",
    "outputs are read a row too early, where old contents leak",
)


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    build, shape = FAULTS[name]
    require_refuted(build(), shapes=[shape], seconds=5.0 if name in QUICK else 60.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    build, _ = FAULTS[name]
    require_unproved(build())


@pytest.mark.slow
def test_the_convolution_is_proved_for_every_size() -> None:
    require_proved(NARROW)


def test_the_convolution_is_proved_at_a_shape() -> None:
    verdict = bmc.prove.prove(NARROW, (2, 9, 3, 3, 2, 2, 1, 2), data="uninterpreted")
    assert verdict.status is Status.PROVED, verdict.reason


def test_weights_of_8_bits_need_half_of_the_room() -> None:
    shape = (255, 56, 9, 9, 3, 3, 1, 1)  # 16,065 taps
    assert NARROW.holds(NARROW.sizes_for(shape))
    with pytest.raises(SizeError, match=r"Weights of shape .* must fill at most 8192 entries of 8 words, not 16065"):
        wide.convolution_mapping().sizes_for(shape)
