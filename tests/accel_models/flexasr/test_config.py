"""Configuration words and addresses: published words, the tiling's formula, folding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr.config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD, ConfigWord
from accel_models.flexasr.layout import (
    LARGE_BASE,
    Region,
    Start,
    byte_address,
    large_axi_address,
    register_address,
    small_axi_address,
    vector_address,
)
from accel_models.flexasr.model import flexasr
from ila_lang import BOOL, bv, compile_terms, const, substitute, true, var
from tests.accel_models.flexasr.words import pack_large_manager, pack_small_manager, pack_unit

WORDS = [UNIT_WORD, LARGE_MANAGER_WORD, SMALL_MANAGER_WORD]


def test_published_words() -> None:
    # the smallest instance of the public formal check, and its standard test
    small = pack_unit(is_valid=1, num_vector_1=1, num_timestep_1=2, adpbias_1=2)
    assert small == 0x2000000020001000000000001
    assert pack_unit(is_valid=1, num_vector_1=16, num_timestep_1=16, adpbias_1=2) == 0x2000000100010000000000001
    assert pack_large_manager({0: 16}, {}) == 0x10


def test_recorded_words() -> None:
    assert pack_unit(is_valid=1, memory_index_1=2, num_vector_1=2, num_timestep_1=20) == 0x140002000200000001
    word = pack_large_manager(dict.fromkeys(range(4), 2), {0: 432, 1: 272, 2: 848, 3: 208})
    assert word == 0xD00002035000020110000201B00002
    assert pack_small_manager({5: 0x30, 6: 0x40}) == 0x40 << 96 | 0x30 << 80


@pytest.mark.parametrize("word", WORDS, ids=lambda w: w.name)
@given(data=st.data())
def test_packing_agrees_with_unpacking_and_with_expressions(word: ConfigWord, data: st.DataObject) -> None:
    values = {n: data.draw(st.integers(0, (1 << f.width) - 1)) for n, f in word.fields.items()}
    packed = word.pack(**values)
    assert word.unpack(packed) == values
    assert word.pack_expr(**values) is const(packed, 128)


@pytest.mark.parametrize("word", WORDS, ids=lambda w: w.name)
def test_a_packed_field_is_selected_without_residue(word: ConfigWord) -> None:
    values = {n: var(n, bv(f.width)) for n, f in word.fields.items()}
    packed = word.pack_expr(**values)
    assert packed.width == 128
    assert all(word.select(packed, n) is v for n, v in values.items())


def test_a_flag_may_be_boolean() -> None:
    flag = var("flag", BOOL)
    bit = UNIT_WORD.select(UNIT_WORD.pack_expr(is_valid=flag), "is_valid")
    assert [substitute(bit, {flag: f}).value for f in (true, ~true)] == [1, 0]


@pytest.mark.parametrize("pack", [UNIT_WORD.pack, UNIT_WORD.pack_expr])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_timestep_1": 70000}, "num_timestep_1 must fit in 16 bits, not 70000"),
        ({"num_vector_1": -1}, "num_vector_1 must fit in 8 bits, not -1"),
        ({"is_valid": 2}, "is_valid must fit in 1 bit, not 2"),
        (
            {"timesteps": 2},
            "Field of the unit configuration word must be one of is_valid, mode, is_rnn, memory_index_1, "
            "memory_index_2, num_vector_1, num_vector_2, num_timestep_1, num_timestep_2, adpbias_1, "
            "adpbias_2, "
            "adpbias_3, adpbias_4, not timesteps",
        ),
    ],
)
def test_values_beyond_a_field_are_refused(pack: object, values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError) as error:
        pack(**values)  # type: ignore[operator]
    assert str(error.value) == message


def test_an_expression_of_another_width_is_refused() -> None:
    with pytest.raises(TypeError, match="num_timestep_1 must have 16 bits, not 32"):
        UNIT_WORD.pack_expr(num_timestep_1=var("t", bv(32)))


# -- addresses ---------------------------------------------------------------------------------------

BASE, STRIDE, T, V, LANE = (
    var("base", bv(16)), var("stride", bv(8)), var("t", bv(16)), var("v", bv(8)), var("lane", bv(5)),
)  # fmt: skip
BYTE = compile_terms([BASE, STRIDE, T, V, LANE], [byte_address(vector_address(BASE, STRIDE, T, V), LANE)])


@given(st.integers(0, 65535), st.integers(0, 255), st.integers(0, 65535), st.integers(0, 255), st.integers(0, 15))
def test_the_tiling(base: int, stride: int, t: int, v: int, lane: int) -> None:
    expected = 16 * base + t // 16 * 256 * stride + v * 256 + t % 16 * 16 + lane
    assert BYTE(base, stride, t, v, lane) == (expected % (1 << 20),)


def test_a_published_correspondence() -> None:
    # public co-simulation log, 256 columns: element 0x5710 of the row-major tensor is at 0x33505170
    row, column = divmod(0x5710, 256)
    (address,) = BYTE(0, 16, row, column // 16, column % 16)
    assert LARGE_BASE + address == 0x33505170


def test_register_addresses() -> None:
    starts = [
        Start.CONTROL,
        Start.LAYER_REDUCE,
        Start.LAYER_NORM,
        Start.ZERO_PADDING,
        Start.ATTENTION,
    ]
    assert [register_address(Region.START, s) for s in starts] == [0x33000000 + 0x10 * i for i in range(1, 6)]
    assert register_address(Region.MANAGERS, 2) == 0x33400020
    assert register_address(Region.ATTENTION) == 0x33B00010


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (large_axi_address(var("vector", bv(16))), "GB_CORE_STORE_LARGE"),
        (small_axi_address(var("row", bv(10))), "GB_CORE_STORE_SMALL"),
        (const(0x33800010, 32), "CONFIG_GB_LAYER_REDUCE"),
        (const(0x33000020, 32), "GB_LAYER_REDUCE_START"),
    ],
)
def test_decoding_a_symbolic_vector_folds(address: object, name: str) -> None:
    ila = flexasr()
    command = {ila.inputs["addr_in"]: address, ila.inputs["if_axi_wr"]: true, ila.inputs["if_axi_rd"]: ~true}
    decodes = {n: substitute(i.decode, command) for n, i in ila.instructions.items()}
    folded = {n: d for n, d in decodes.items() if not d.is_const}
    assert substitute(ila.valid, command) is true
    if name == "GB_CORE_STORE_SMALL":  # the bound of the small buffer is a comparison
        assert set(folded) <= {name, "GB_RESERVED"}
    else:
        assert not folded
        assert [n for n, d in decodes.items() if d.value] == [name]
