"""The Attention unit: an independent description of its arithmetic, its limits, and readings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr import functions
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.units.attention import attention_starts
from ila_lang import Machine, Simulator, child_differs, compile_function, compile_terms
from tests.accel_models.flexasr.port import LARGE, SMALL, read, reset, write
from tests.accel_models.flexasr.words import pack_large_manager, pack_small_manager, pack_unit

START = 0x33000050
BIASES = (1, 2, 0, 3)  # matrix, query, weights, result
BASE, STRIDE = 300, 3
product = compile_function(functions.adpfloat_mul)
exp, divide = compile_function(functions.exp), compile_function(functions.divide_q24)
compress = compile_function(functions.attention_compress)


def signed(value: int, bits: int = 32) -> int:
    value %= 1 << bits
    return value - (value >> (bits - 1) << bits)


def shifted(total: int, right: int) -> int:
    total = signed(total)
    return signed(total >> right if right >= 0 else total << -right)


def attended(
    rows: list[bytes], query: bytes, biases: tuple[int, int, int, int] = BIASES
) -> tuple[list[int], bytes, bytes]:
    """Scores, weights and result by the words of the specification; ``rows`` is padded to a multiple of 16."""
    matrix_bias, query_bias, weight_bias, result_bias = biases
    scores = []
    for row in rows:
        total = sum(signed(product(e, q)) for e, q in zip(row, query, strict=True))
        masked = signed(total) == 0
        scores.append(-64 << 20 if masked else shifted(total, 8 - matrix_bias - query_bias))
    largest = max(scores)
    powers = [exp((s - largest) % (1 << 32)) for s in scores]
    total = sum(powers) % (1 << 32)
    weights = bytes(compress(divide(p, total), weight_bias) for p in powers)
    result = []
    for column in range(len(query)):
        out = sum(signed(product(row[column], w)) for row, w in zip(rows, weights, strict=True))
        result.append(compress(shifted(out, 8 - matrix_bias - weight_bias) % (1 << 32), result_bias))
    return scores, weights, bytes(result)


def prepared(
    rows: list[bytes],
    query: bytes,
    options: FlexAsrOptions | None = None,
    softmax: int = 8,
    at: int = 900,
    **config: int,
) -> Machine:
    """A machine with a matrix, a query at vector ``at`` of the small buffer, and scores to go to vector ``softmax``."""
    machine = reset(flexasr(options))
    vectors = len(query) // 16
    write(machine, 0x33400010, pack_large_manager({2: STRIDE, 0: 1}, {2: BASE}))
    write(machine, 0x33400020, pack_small_manager({5: at, 7: softmax}))
    values = {"is_valid": 1, "memory_index_1": 2, "memory_index_2": 5, "num_vector_1": vectors,
              "num_timestep_1": len(rows)}  # fmt: skip
    values |= {f"adpbias_{i}": bias for i, bias in enumerate(BIASES, 1)}
    write(machine, 0x33B00010, pack_unit(**values | config))
    for v in range(vectors):
        write(machine, SMALL + 16 * (at + v), int.from_bytes(query[16 * v : 16 * v + 16], "little"))
        for t, row in enumerate(rows):
            place = BASE + t % 16 + 16 * (t // 16 * STRIDE + v)
            write(machine, LARGE + 16 * place, int.from_bytes(row[16 * v : 16 * v + 16], "little"))
    return machine


def small(machine: Machine, vector: int, count: int) -> bytes:
    return b"".join(read(machine, SMALL + 16 * (vector + v)).to_bytes(16, "little") for v in range(count))


def codes(seed: int, count: int, top: int = 256) -> bytes:
    return np.random.default_rng(seed).integers(0, top, count).astype(np.uint8).tobytes()


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 3), st.sampled_from([256, 0x60]), st.integers(0, 1000), st.data())
def test_the_arithmetic(timesteps: int, vectors: int, top: int, seed: int, data: st.DataObject) -> None:
    width = 16 * vectors
    biases = tuple(data.draw(st.integers(0, 7)) for _ in range(4))
    rows, query = [codes(seed + t, width, top) for t in range(timesteps)], codes(seed - 1 & 0xFFFF, width, top)
    machine = prepared(rows, query, **{f"adpbias_{i}": bias for i, bias in enumerate(biases, 1)})
    assert write(machine, START) == "GB_ATTENTION_START"
    blocks = -(-timesteps // 16)
    padded = rows + [bytes(width)] * (16 * blocks - timesteps)
    scores, weights, result = attended(padded, query, biases)  # type: ignore[arg-type]
    assert small(machine, 900, vectors) == result
    left = b"".join((s % (1 << 32)).to_bytes(4, "little") for s in scores)
    assert small(machine, 8, 4 * blocks) == weights + left[len(weights) :]
    assert machine.values["top_interrupt_request"] == 1


def test_rows_beyond_the_last_timestep_count_unless_their_score_is_0() -> None:
    rows, query = [codes(t, 16, 0x40) for t in range(16)], codes(99, 16, 0x40)
    machine = prepared(rows, query, num_timestep_1=3)
    write(machine, START)
    assert small(machine, 900, 1) == attended(rows, query)[2]
    assert small(machine, 900, 1) != attended(rows[:3] + [bytes(16)] * 13, query)[2]


def test_a_genuine_score_of_0_is_masked() -> None:
    query = b"\x30" + bytes(15)
    rows = [b"\x30" + bytes(15)] + [bytes(16)] * 15
    scores, weights, _ = attended(rows, query)
    assert scores[1] == -64 << 20
    assert weights[1] == 0
    machine = prepared(rows, query)
    write(machine, START)
    assert small(machine, 8, 1) == weights


def test_zero_vectors_add_nothing() -> None:
    # hardware skips the products of a vector of q, or of weights, that is all 0x00
    assert all(product(code, 0) == product(0, code) == 0 for code in range(256))


def test_the_sum_of_exponentials_wraps_at_4() -> None:
    # five equal scores give weights of 1 each, not of 1/5
    rows, query = [b"\x30" * 16] * 5 + [bytes(16)] * 11, b"\x30" * 16
    machine = prepared(rows, query, adpbias_3=3)
    write(machine, START)
    weights = small(machine, 8, 1)
    assert weights == bytes([0x70] * 5 + [0] * 11)  # 0x70 at bias 3 is 1.0


def test_scores_and_results_may_overwrite_what_they_come_from() -> None:
    # q lies where the scores and the weights go: all 16 scores, and all 16 results, are complete before the first is
    # written
    rows, query = [codes(t, 16, 0x60) for t in range(16)], codes(50, 16, 0x60)
    machine = prepared(rows, query, softmax=900)
    write(machine, START)
    assert small(machine, 900, 1) == attended(rows, query)[2]


def test_the_scores_of_more_than_1024_timesteps_overwrite_each_other() -> None:
    # equal scores, and lanes other than the first in the last block only: its weights decide there
    blocks, query = 129, b"\x30" + bytes(15)
    rows = [b"\x30" + bytes([0x7F if t >= 2048 else 0]) * 15 for t in range(16 * blocks)]
    machine = prepared([], query, softmax=8, num_timestep_1=16 * blocks)
    write(machine, 0x33400010, pack_large_manager({2: 1}, {2: BASE}))
    for t, row in enumerate(rows):
        write(machine, LARGE + 16 * (BASE + t), int.from_bytes(row, "little"))
    write(machine, START)
    # 256 vectors hold what was written last; blocks of weights are written one after the other
    buffer = bytearray(4096)
    scores = attended(rows, query)[0]
    for t, score in enumerate(scores):
        buffer[4 * t % 4096 : 4 * t % 4096 + 4] = (score % (1 << 32)).to_bytes(4, "little")

    def powers(block: int) -> list[int]:
        words = [int.from_bytes(buffer[4 * t % 4096 : 4 * t % 4096 + 4], "little") for t in steps(block)]
        return [exp((word - max(scores)) % (1 << 32)) for word in words]

    def steps(block: int) -> range:
        return range(16 * block, 16 * block + 16)

    total = sum(sum(powers(block)) for block in range(blocks)) % (1 << 32)
    for block in range(blocks):
        buffer[16 * block : 16 * block + 16] = bytes(compress(divide(p, total), BIASES[2]) for p in powers(block))
    assert small(machine, 8, 256) == bytes(buffer)
    out = [sum(signed(product(row[i], w)) for row, w in zip(rows, buffer, strict=False)) for i in range(16)]
    result = [compress(shifted(x, 8 - BIASES[0] - BIASES[2]) % (1 << 32), BIASES[3]) for x in out]
    assert small(machine, 900, 1) == bytes(result)


def test_no_timesteps_and_no_vectors_behave_as_one() -> None:
    rows, query = [codes(1, 16, 0x50)], codes(2, 16, 0x50)
    machine = prepared(rows, query, num_timestep_1=0, num_vector_1=0)
    write(machine, START)
    assert small(machine, 900, 1) == attended(rows + [bytes(16)] * 15, query)[2]


def test_a_start_without_valid_configuration_does_nothing() -> None:
    rows, query = [codes(1, 16)], codes(2, 16)
    machine = prepared(rows, query, is_valid=0)
    write(machine, START)
    assert (small(machine, 900, 1), machine.values["top_interrupt_request"]) == (query, 0)


# -- readings -----------------------------------------------------------------------------------------


def test_the_stride_is_the_managers_in_hardware_and_the_units_in_the_published_ila() -> None:
    rows, query = [codes(t, 16, 0x60) for t in range(17)], codes(40, 16, 0x60)
    padded = [*rows, *[bytes(16)] * 15]
    results = []
    for stride in ("manager", "unit"):
        machine = prepared(rows, query, FlexAsrOptions(attention_stride=stride))  # type: ignore[arg-type]
        write(machine, START)
        results.append(small(machine, 900, 1))
    # with the unit's stride, timestep 16 is looked for where nothing has been written
    assert results == [attended(padded, query)[2], attended([*rows[:16], *[bytes(16)] * 16], query)[2]]
    assert results[0] != results[1]


def test_saturation() -> None:
    rows, query = [b"\xff" * 16], b"\x40" * 16
    signs = []
    for saturation in ("2022", "pre2022"):
        machine = prepared(rows, query, FlexAsrOptions(saturation=saturation), adpbias_1=7, adpbias_4=0)  # type: ignore[arg-type]
        write(machine, START)
        signs.append(small(machine, 900, 1)[0])
    assert signs == [0xFF, 0x7F]


@pytest.mark.parametrize(("reading", "last"), [("rtl", 65535), ("recorded", 65520)])
def test_which_numbers_of_timesteps_end(reading: str, last: int) -> None:
    options = FlexAsrOptions(attention_end=reading)  # type: ignore[arg-type]
    ila = flexasr(options)
    states = [ila.states["gb_attention_is_valid"], ila.states["gb_attention_num_timestep_1"]]
    run = compile_terms(states, [attention_starts(ila, options)])
    assert [run(1, n)[0] for n in (0, 16, 65520, 65521, 65535)] == [True, True, True, last > 65520, last > 65520]
    assert not run(0, 16)[0]


def test_the_number_of_blocks() -> None:
    extent = flexasr().kernels["attention"].body[1].extent  # type: ignore[union-attr]
    run = compile_terms([flexasr().states["gb_attention_num_timestep_1"]], [extent], vector=True)
    (blocks,) = run(np.arange(65536))
    assert np.array_equal(blocks, np.maximum(-(-np.arange(65536) // 16), 1))


# -- other interpretations -----------------------------------------------------------------------------


def test_runs_on_arrays_agree() -> None:
    rows, query = [codes(t, 32, 0x60) for t in range(20)], codes(40, 32, 0x60)
    machine = prepared(rows, query, softmax=897)  # scores, weights and results overlap
    simulator = Simulator(machine.ila)
    simulator.values.update(machine.values)
    for name, memory in machine.memories.items():
        simulator.memories[name].update(memory)
    for model in (machine, simulator):
        model.step({"if_axi_wr": True, "addr_in": START})
    words = simulator.memories["gb_core_small_buffer"]
    assert [words[a] for a in range(1 << 14)] == [machine.memories["gb_core_small_buffer"][a] for a in range(1 << 14)]


@pytest.mark.slow
def test_the_flat_form_agrees() -> None:
    machine = prepared([codes(t, 16, 0x60) for t in range(18)], codes(40, 16, 0x60))
    contents = {name: dict(memory) for name, memory in machine.memories.items()}
    inputs = {"if_axi_wr": 1, "addr_in": START}
    assert child_differs(machine.ila, "GB_ATTENTION_START", inputs, dict(machine.values), contents) is None
