"""The LayerNorm unit: recorded programs, an independent description of its arithmetic, and its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.functions import inv_sqrt
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import encode, value_of
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from ila_lang import Machine, bv, child_differs, compile_function, compile_terms, run_on_arrays, var
from tests.accel_models.flexasr.port import LARGE, SMALL, read, recorded, replay, write
from tests.accel_models.flexasr.words import pack_large_manager, pack_small_manager, pack_unit

PROGRAMS = recorded("layer_norm")
START = 0x33000030
BIASES = (4, 2, 1)  # matrix, beta, gamma
GAMMA_BASE, BETA_BASE = 40, 1000

_value, _bias = var("value", bv(20)), var("bias", bv(3))
encoded = compile_terms([_value, _bias], [encode(_value, 14, _bias)])
inverse_root = compile_function(inv_sqrt)


@pytest.mark.parametrize("reading", [FlexAsrOptions(), RECORDED_SIMULATOR], ids=["hardware", "recorded"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p["id"])
def test_recorded_words_reproduce(program: dict[str, Any], reading: FlexAsrOptions) -> None:
    assert replay(program, flexasr(reading)) == (program["reads"], program["irq"])


def test_there_are_recorded_programs() -> None:
    assert len(PROGRAMS) == 20


def wrapped(value: int, width: int = 20) -> int:
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


def toward_zero(total: int, count: int) -> int:
    return wrapped(abs(total) // count * (-1 if total < 0 else 1))


def normalised(row: bytes, gamma: bytes, beta: bytes) -> bytes:
    """One timestep by the words of the specification, on Python's integers."""
    bias, bias_beta, bias_gamma = BIASES
    fixed = [int(value_of(code, bias) * 16384) for code in row]
    total = squares = 0
    for v in range(0, len(row), 16):
        part = fixed[v : v + 16]
        total = wrapped(total + wrapped(sum(part)), 24)
        squares = wrapped(squares + wrapped(sum(wrapped(x * x >> 14) for x in part)), 24)
    mean, mean_square = toward_zero(total, len(row)), toward_zero(squares, len(row))
    variance = (mean_square - (mean * mean >> 14)) % (1 << 20)
    inverse = wrapped(inverse_root(variance))
    out = []
    for x, g, b in zip(fixed, gamma, beta, strict=True):
        y = wrapped(wrapped(x - mean) * inverse >> 14)
        y = wrapped(y * int(value_of(g, bias_gamma) * 16384) >> 14)
        y = wrapped(y + int(value_of(b, bias_beta) * 16384))
        out.append(encoded(y % (1 << 20), bias)[0])
    return bytes(out)


def vector_at(t: int, v: int, stride: int, base: int) -> int:
    return LARGE + 16 * ((base + t % 16 + (t // 16 * stride + v) * 16) % 65536)


def run(
    rows: list[bytes],
    gamma: bytes,
    beta: bytes,
    options: FlexAsrOptions | None = None,
    stride: int | None = None,
    **config: int,
) -> tuple[Machine, list[bytes]]:
    """The machine after a run on the rows, and the rows it holds then."""
    machine = Machine(flexasr(options))
    vectors = len(gamma) // 16
    stride = stride or vectors
    index, base = 2, 0xFFE0
    write(machine, 0x33400010, pack_large_manager({index: stride, 1: 9}, {index: base, 1: 77}))
    write(machine, 0x33400020, pack_small_manager({5: GAMMA_BASE, 6: BETA_BASE, 4: 3, 7: 5}))
    values = {
        "is_valid": 1, "memory_index_1": index, "num_vector_1": vectors, "num_timestep_1": len(rows),
        "adpbias_1": BIASES[0], "adpbias_2": 7, "adpbias_3": BIASES[1], "adpbias_4": BIASES[2],
    }  # fmt: skip
    write(machine, 0x33900010, pack_unit(**values | config))
    for v in range(vectors):
        for first, words in ((GAMMA_BASE, gamma), (BETA_BASE, beta)):
            write(machine, SMALL + 16 * (first + v), int.from_bytes(words[16 * v : 16 * v + 16], "little"))
        for t, row in enumerate(rows):
            word = int.from_bytes(row[16 * v : 16 * v + 16], "little")
            write(machine, vector_at(t, v, stride, base), word)
    assert write(machine, START) == "GB_LAYER_NORM_START"
    result = [
        b"".join(read(machine, vector_at(t, v, stride, base)).to_bytes(16, "little") for v in range(vectors))
        for t in range(len(rows))
    ]
    return machine, result


def codes(seed: int, count: int, top: int = 256) -> bytes:
    return np.random.default_rng(seed).integers(0, top, count).astype(np.uint8).tobytes()


@settings(max_examples=40)
@given(st.integers(1, 18), st.integers(1, 4), st.integers(0, 2), st.integers(0, 1000))
def test_the_arithmetic_of_a_timestep(timesteps: int, vectors: int, more: int, seed: int) -> None:
    width = 16 * vectors
    gamma, beta = codes(seed, width), codes(seed + 1, width)
    rows = [codes(seed + 2 + t, width) for t in range(timesteps)]
    machine, result = run(rows, gamma, beta, stride=vectors + more)
    assert result == [normalised(row, gamma, beta) for row in rows]
    assert machine.values["top_interrupt_request"] == 1


def test_the_stride_is_the_managers_in_hardware_and_the_units_in_the_published_ila() -> None:
    gamma, beta = codes(1, 16), codes(2, 16)
    rows = [codes(3 + t, 16) for t in range(17)]
    wanted = [normalised(row, gamma, beta) for row in rows]
    assert run(rows, gamma, beta, stride=2)[1] == wanted
    other = run(rows, gamma, beta, FlexAsrOptions(norm_stride="unit"), stride=2)[1]
    assert other[:16] == wanted[:16]
    assert other[16] == rows[16]  # never reached


def test_negative_saturation_gave_the_largest_positive_code_before_2022() -> None:
    gamma, beta, row = codes(1, 32), codes(2, 32), codes(3, 32)
    config = {"adpbias_1": 0, "adpbias_3": 7}  # codes of bias 0 end below most values of beta
    new = run([row], gamma, beta, **config)[1][0]
    old = run([row], gamma, beta, FlexAsrOptions(saturation="pre2022"), **config)[1][0]
    assert 0xFF in new
    assert old == new.replace(b"\xff", b"\x7f")


def test_no_timesteps_behave_as_one() -> None:
    gamma, beta, row = codes(1, 16), codes(2, 16), codes(3, 16)
    assert run([row], gamma, beta, num_timestep_1=0)[1] == [normalised(row, gamma, beta)]


def test_a_start_without_valid_configuration_does_nothing() -> None:
    row = codes(3, 16)
    machine, result = run([row], codes(1, 16), codes(2, 16), is_valid=0)
    assert (result, machine.values["top_interrupt_request"]) == ([row], 0)


def test_a_normal_timestep_is_near_what_it_should_be() -> None:
    row = bytes(0x80 * (i % 2) | 0x40 + i for i in range(32))
    _, [result] = run([row], bytes([0x70] * 32), bytes(32), adpbias_4=3)  # gamma is 1
    x = np.array([float(value_of(code, BIASES[0])) for code in row])
    y = np.array([float(value_of(code, BIASES[0])) for code in result])
    assert np.abs(y - (x - x.mean()) / x.std()).max() < 0.05


def test_a_constant_timestep_loses_its_scale() -> None:
    # variance 0: the inverse of the deviation is -2^-14, and only beta remains
    beta = codes(2, 16, 0x50)
    assert normalised(b"\x55" * 16, codes(1, 16), beta) == run([b"\x55" * 16], codes(1, 16), beta)[1][0]
    assert inverse_root(0) == (1 << 20) - 1


def test_parameters_wrap_around_the_small_buffer() -> None:
    # a base beyond the buffer, whose low ten bits are 1023: vectors 1023, 0, 1 and 2
    gamma, beta = codes(1, 64), codes(2, 64)
    machine, _ = run([codes(3, 64)], gamma, beta)
    write(machine, 0x33400020, pack_small_manager({5: GAMMA_BASE, 6: 1023 + 1024 * 3}))
    rows = [read(machine, SMALL + 16 * ((1023 + v) % 1024)).to_bytes(16, "little") for v in range(4)]
    row = b"".join(read(machine, vector_at(0, v, 4, 0xFFE0)).to_bytes(16, "little") for v in range(4))
    write(machine, START)
    after = b"".join(read(machine, vector_at(0, v, 4, 0xFFE0)).to_bytes(16, "little") for v in range(4))
    assert after == normalised(row, gamma, b"".join(rows))


# -- other interpretations -----------------------------------------------------------------------------


@pytest.mark.parametrize(("timesteps", "vectors"), [(3, 2), (17, 1)])
def test_flat_and_vectorised_forms_agree(timesteps: int, vectors: int) -> None:
    ila = flexasr()
    values = {
        "gb_layer_norm_is_valid": 1,
        "gb_layer_norm_num_vector_1": vectors,
        "gb_layer_norm_num_timestep_1": timesteps,
        "gb_layer_norm_adpbias_1": 4,
        "gb_layer_norm_adpbias_4": 3,
        "gb_core_mem_mngr_large_num_vector_0": vectors,
        "gb_core_mem_mngr_small_base_small_5": 0,
        "gb_core_mem_mngr_small_base_small_6": vectors,
    }
    arrays = {
        "gb_core_large_buffer": np.frombuffer(codes(5, 1 << 20), np.uint8).copy(),
        "gb_core_small_buffer": np.frombuffer(codes(6, 1 << 14), np.uint8).copy(),
    }
    contents = {name: dict(enumerate(array[:16384].tolist())) for name, array in arrays.items()}
    inputs = {"if_axi_wr": 1, "addr_in": START}
    assert child_differs(ila, "GB_LAYER_NORM_START", inputs, values, contents) is None
    machine = Machine(ila)
    machine.values.update(values)
    for name, words in contents.items():
        machine.memories[name].update(words)
    run_on_arrays(ila.kernels["layer_norm"], machine.values, arrays)
    machine.step(inputs)
    large = machine.memories["gb_core_large_buffer"]
    assert [large[a] for a in range(16384)] == arrays["gb_core_large_buffer"][:16384].tolist()
