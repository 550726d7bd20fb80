"""Convolutions are cut into as few starts of HLSCNN as the mappings' domains allow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from rewrites.targets.hlscnn.tiling import Shape, Tiling, tile

NARROW, WIDE = (CONVOLUTIONS[bits].mapping for bits in (8, 16))


def test_as_few_starts_as_the_memories_allow() -> None:
    # 16 -> 16 channels, 32 x 32 with padding, 3 x 3: everything fits at once
    assert tile(NARROW, Shape(16, 16, 34, 34, (3, 3), (1, 1))) == Tiling(16, 32)
    # 256 filters exceed the 8 bits of ChannelCfg
    assert tile(NARROW, Shape(256, 8, 3, 3, (1, 1), (1, 1))).group == 255
    # the register for input rows limits a band, too
    assert tile(NARROW, Shape(1, 1, 3000, 1, (1, 1), (1, 1))).rows == 1023


def test_tiles_use_the_memories_to_the_last_entry() -> None:
    assert tile(NARROW, Shape(8, 8, 64, 128, (1, 1), (1, 1))).rows == 64  # 8192 outputs
    assert tile(NARROW, Shape(8, 8, 65, 128, (1, 1), (1, 1))).rows == 64
    assert tile(WIDE, Shape(64, 1024, 1, 1, (1, 1), (1, 1))).group == 64  # 64 * 128 vectors
    assert tile(WIDE, Shape(65, 1024, 1, 1, (1, 1), (1, 1))).group == 64
    assert tile(NARROW, Shape(65, 1024, 1, 1, (1, 1), (1, 1))).group == 65
    # outputs lie in a plane as large as the input, or as the outputs
    strided = Shape(8, 8, 64, 130, (1, 1), (7, 7))
    assert tile(NARROW, strided).rows == 9  # (9 - 1) * 7 + 1 rows of 130 entries
    assert tile(WIDE, strided).rows == 10
    # 145 * 113 vectors of 8 bytes are one more than SPAD0 holds, half an entry
    assert tile(NARROW, Shape(145, 8, 113, 1, (113, 1), (1, 1))).group == 144


@settings(max_examples=60)
@given(
    st.sampled_from([NARROW, WIDE]), st.integers(1, 300), st.integers(1, 600), st.integers(3, 200), st.integers(3, 200),
    st.integers(1, 3), st.integers(1, 3),
)  # fmt: skip
def test_every_part_lies_in_the_domain(
    mapping: TensorMapping, filters: int, channels: int, rows: int, columns: int, kernel: int, stride: int
) -> None:
    shape = Shape(filters, channels, rows, columns, (kernel, kernel), (stride, stride))
    try:
        tiling = tile(mapping, shape)
    except SizeError:
        assert not mapping.holds(shape.sizes(1, 1))
        return
    for group in {tiling.group, filters % tiling.group or tiling.group}:
        for band in {tiling.rows, shape.outputs[0] % tiling.rows or tiling.rows}:
            assert mapping.holds(shape.sizes(group, band))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SizeError, match=r"must satisfy: 1 <= sh <= 7; given k = 1"):
        tile(NARROW, Shape(3, 2, 4, 4, (2, 2), (8, 1)))
    with pytest.raises(SizeError, match=r"must satisfy: .* <= 12288 .entries of SoC memory.;"):
        tile(NARROW, Shape(1, 800, 17, 17, (9, 9), (1, 1)))
