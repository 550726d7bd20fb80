"""What the recording of the hardware's model decides, on a convolution small enough to compute by hand.

Activations 1, 3, 5, 6 in a row (units of 2^-7), a kernel of three weights 1/2, 1/4, 3/2, and a bias of 3/4 of a unit.
Output o adds up input i times tap k where o = i - k + 1.  In units of 2^-7 the taps are, before they are rounded:

    output   tap 0 (1/2)   tap 1 (1/4)   tap 2 (3/2)   bias    taps rounded half up, then cut
    0        -             1/4           9/2           3/4     0 + 5 + 3/4     -> 5
    1        1/2           3/4           15/2          3/4     1 + 1 + 8 + 3/4 -> 10
    2        3/2           5/4           9             3/4     2 + 1 + 9 + 3/4 -> 12
    3        5/2           3/2           -             -       3 + 2           -> 5

Like the recording, it has one filter and no negative number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import BY_WEIGHT_BITS, PRESETS, HlscnnOptions
from accel_models.hlscnn.program import parse_program, run
from ila_lang import Machine
from ila_lang.mapping import TensorMapping
from ilaverify.cli import main
from rewrites.campaigns.accelerators.hlscnn import CAMPAIGNS
from rewrites.claims.theorems.machines import OPERATORS
from rewrites.mappings.hlscnn.convolution import convolution_mapping
from rewrites.mappings.hlscnn.convolution_8bit import narrow_mapping

SOC, SPAD0, SPAD1 = 0x32050000, 0x32004000, 0x32024000
PIXELS = (1, 3, 5, 6)
WRITES = [
    *((SOC + 16 * i, code) for i, code in enumerate(PIXELS)),
    (SOC + 0x40, 32 | 16 << 64),  # weights have 6 bits of fraction; an entry holds two taps of eight channels
    (SOC + 0x50, 96),
    (0x32000010, 0x40),
    (0x32000014, 2 << 32),
    (SPAD0, 0),
    (0x32000048, 0),
    (0x3200004C, 0x4000 << 96),
    (0x32000050, 0x24000),
    (0x32000054, (1 << 20 | 1 << 10 | 4) << 32),
    (0x32000058, (1 << 20 | 1 << 10 | 2) << 64),
    (0x3200005C, (1 << 19 | 1 << 16 | 1 << 8 | 3) << 96),
    (0x32000060, 1 << 19 | 1 << 16 | 96),  # the bias has 14 bits of fraction: 96/128 of a unit
    (0x32000044, 0),
]
RECORDED = [5, 10, 12, 5]


def text() -> str:
    writes = [{"mode": "W", "addr": hex(addr), "data": hex(data)} for addr, data in WRITES]
    reads = [{"mode": "R", "addr": hex(SPAD1 + 16 * i), "data": "0x0"} for i in range(4)]
    return json.dumps({"program fragment": writes + reads})


def outputs(options: HlscnnOptions) -> list[int]:
    return [word for _, word in run(parse_program(text()), Machine(hlscnn(options)))]


def test_the_default_computes_what_was_computed_by_hand() -> None:
    assert outputs(HlscnnOptions()) == RECORDED
    assert PRESETS["recorded"] == HlscnnOptions()


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        # 0 + 4, 0 + 0 + 7, 1 + 1 + 9, and 2 + 1
        ({"tap_rounding": "truncate"}, [4, 7, 11, 3]),
        ({"tap_rounding": "toward_zero"}, [4, 7, 11, 3]),
        # 0 + 4, 0 + 1 + 8, 2 + 1 + 9, and 2 + 2
        ({"tap_rounding": "half_even"}, [4, 9, 12, 4]),
        # 3/4 becomes 1
        ({"store_rounding": "half_up"}, [6, 11, 13, 5]),
        ({"store_rounding": "half_even"}, [6, 11, 13, 5]),
        # outputs 1 and 2 alone, from entry 0 on
        ({"coordinates": "valid"}, [10, 12, 0, 0]),
        # an eighth of a unit is left of the tap sums: 0 + 1, 0 + 0 + 1, 0 + 0 + 1, 0 + 0; the bias is 3/32
        ({"output_fraction": 4}, [1, 1, 1, 0]),
    ],
    ids=str,
)
def test_what_the_recording_decides_changes_the_result(choice: dict[str, Any], words: list[int]) -> None:
    assert outputs(HlscnnOptions(**choice)) == words != RECORDED


def test_weights_of_16_bits_are_others() -> None:
    assert outputs(HlscnnOptions(weight_bits=16)) != RECORDED


@pytest.mark.parametrize(
    "choice",
    [
        {"store_rounding": "toward_zero"},
        {"outputs": "per_filter"},
        {"other_lanes": "cleared"},
        {"channel_word": "wide"},
        {"channel_word": "documented"},
        {"kernel_end": "last"},
        {"kernel_start": "unchecked"},
        {"bounds": "unsigned"},
        {"psum_fraction": 15},
        {"psum_fraction": 21, "psum_bits": 37},
        {"overflow": "saturate"},
    ],
    ids=str,
)
def test_what_the_recording_does_not_decide_stays_open(choice: dict[str, Any]) -> None:
    assert outputs(replace(HlscnnOptions(), **choice)) == RECORDED


def test_readings_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.json"
    program.write_text(text(), encoding="utf-8")
    found = {}
    for reading in (None, *PRESETS):
        assert main(["simulate", "hlscnn", str(program), *(["--reading", reading] if reading else [])]) == 0
        found[reading] = [int(line.partition(",")[2], 16) for line in capsys.readouterr().out.split()]
    assert found[None] == found["recorded"] == found["master"] == RECORDED
    assert found["wgt_16bits"] != RECORDED


@pytest.mark.parametrize(
    ("mapping", "bits", "where"),
    [(convolution_mapping, 16, "(input - tap) / stride"), (narrow_mapping, 8, "input - tap + K/2")],
)
def test_mappings_bounds_and_campaigns_name_their_reading(
    mapping: Callable[[], TensorMapping], bits: int, where: str
) -> None:
    claim = mapping()
    bound = next(o for o in OPERATORS if o.name == f"HLSCNN conv2d, weights of {bits} bits")
    for said in (" ".join(claim.assumptions), CAMPAIGNS[claim.name].property, bound.note):
        assert "the sum over 8 channels is rounded half up, what is stored is cut (toward minus infinity)" in said
        assert f"weights of {bits} bits" in said
        assert f"outputs at {where}" in said
    cut = mapping(replace(BY_WEIGHT_BITS[bits], tap_rounding="truncate"))  # type: ignore[call-arg]
    assert "the sum over 8 channels is cut (toward minus infinity)" in " ".join(cut.assumptions)
