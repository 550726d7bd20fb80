"""The Attention unit: one decoder vector's softmax-weighted sum of the timesteps of a matrix.

Source: ``Attention`` of the FlexASR SystemC design.
"""

from __future__ import annotations

from accel_models.flexasr.functions import (
    adpfloat_mul,
    attention_compress,
    attention_compress_pre2022,
    attention_shift,
    divide_q24,
    exp,
)
from accel_models.flexasr.layout import LANES
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Ila, Kernel, concat, const, ite

from .matrix import Matrix, Row, at_least_one

SOFTMAX = 7  # entry of the small buffer's manager: scores, and then weights
MASKED = -64 << 20 & 0xFFFFFFFF  # -64.0 in Q12.20, in place of a score of exactly 0
_LEAST = -1 << 30 & 0xFFFFFFFF  # where the search for the maximum begins


def attention_starts(ila: Ila, options: FlexAsrOptions) -> Expr:
    """The condition under which a start has an effect."""
    valid = ila.states["gb_attention_is_valid"]
    if options.attention_end == "rtl":
        return valid
    # The simulator's 16-bit t + 16 wraps before it reaches such an N; no interrupt comes.
    return valid & (ila.states["gb_attention_num_timestep_1"] <= 65520)


def attention(ila: Ila, options: FlexAsrOptions) -> Kernel:
    """scores = E * q; weights = softmax(scores); q := weights * E.

    E is the matrix that memory_index_1 names, one row per timestep, and q the row of the small buffer that
    memory_index_2 names; both have num_vector_1 vectors.  adpbias_1 is the bias of E, 2 of q, 3 of the weights, 4 of
    the result, which overwrites q.  Scores are in Q12.20.  All rows up to the next multiple of 16 timesteps take part:
    rows beyond the last timestep drop out only where their score is exactly 0, because such a score becomes -64.0, in
    any row.  (Hardware skips vectors of q, or of weights, that are all 0x00; they add nothing to the sums.)

    Scores go to the small buffer at entry 7, four words of 32 bits per vector, least significant byte first; then
    weights, one code per timestep, overwrite them from the first vector on.  Requests to the small buffer have
    eight bits for the number of a vector: the scores of more than 1024 timesteps overwrite each other.  The unit
    keeps 16 sums of products, and 16 weights, in registers before it writes their scores, results or weights, so that
    what overlaps in memory behaves as in hardware.
    """
    s = ila.states
    matrix, query, softmax = (
        Matrix(ila, "attention", options.attention_stride),
        Row(ila, s["gb_attention_memory_index_2"]),
        Row(ila, SOFTMAX),
    )
    sums, weights = s["gb_attention_accum_vector"], s["gb_attention_softmax_result_vector"]
    bias_matrix, bias_query, bias_softmax, bias_out = (s[f"gb_attention_adpbias_{i}"] for i in (1, 2, 3, 4))
    compress = attention_compress if options.saturation == "2022" else attention_compress_pre2022
    vectors = at_least_one(matrix.vectors)
    count = s["gb_attention_num_timestep_1"]
    # the end is tested after a block, as "t >= N - 16" on signed numbers
    blocks = ite(count == 0, const(1, 13), (count.zext(17) + 15)[16:4])
    k = Kernel("attention", "softmax-weighted sum of timesteps")

    def score_byte(block: Expr, lane: Expr, byte: int) -> Expr:
        """The address of a byte of the score of timestep 16 * block + lane."""
        return softmax.address(concat(block[5:0], lane[3:2]), concat(lane[1:0], const(byte, 2)))

    def load_score(name: str, block: Expr, lane: Expr) -> Expr:
        loaded = [k.load(f"{name}_{byte}", softmax.memory, score_byte(block, lane, byte)) for byte in range(4)]
        return concat(*reversed(loaded))

    def timestep(block: Expr, lane: Expr) -> Expr:
        return concat(block[11:0], lane[3:0])

    largest = k.let("largest", const(_LEAST, 32))
    with k.loop("block", blocks) as block:
        with k.loop("timestep", const(LANES, 5)) as row:
            acc = k.let("score_acc", const(0, 32))
            with k.loop("vector", vectors) as vector, k.loop("lane", const(LANES, 5)) as lane:
                e = k.load("e", matrix.memory, matrix.address(timestep(block, row), vector, lane))
                q = k.load("q", query.memory, query.address(vector, lane))
                k.assign(acc, acc + adpfloat_mul(e, q))
            k.store(sums, row[3:0], acc)
        with k.loop("score_timestep", const(LANES, 5)) as row:
            products = k.load("products", sums, row[3:0])
            shifted = attention_shift(products, bias_matrix, bias_query)
            score = k.let("score", ite(products == 0, const(MASKED, 32), shifted))
            k.assign(largest, ite(largest.slt(score), score, largest))
            for byte in range(4):
                k.store(softmax.memory, score_byte(block, row, byte), score[8 * byte + 7 : 8 * byte])
    total = k.let("total", const(0, 32))
    with k.loop("sum_block", blocks) as block, k.loop("sum_timestep", const(LANES, 5)) as row:
        k.assign(total, total + exp(load_score("summed", block, row) - largest))
    with k.loop("weight_block", blocks) as block:
        with k.loop("weight_timestep", const(LANES, 5)) as row:
            weight = divide_q24(exp(load_score("weighed", block, row) - largest), total)
            k.store(weights, row[3:0], compress(weight, bias_softmax))
        with k.loop("weight_lane", const(LANES, 5)) as lane:
            word = k.load("weight", weights, lane[3:0])
            k.store(softmax.memory, softmax.address(block[7:0], lane), word)
    with k.loop("out_vector", vectors) as vector:
        with k.loop("out_column", const(LANES, 5)) as column:
            out = k.let("out_acc", const(0, 32))
            with k.loop("out_block", blocks) as block, k.loop("out_timestep", const(LANES, 5)) as row:
                e = k.load("out_e", matrix.memory, matrix.address(timestep(block, row), vector, column))
                p = k.load("out_weight", softmax.memory, softmax.address(block[7:0], row))
                k.assign(out, out + adpfloat_mul(e, p))
            k.store(sums, column[3:0], out)
        with k.loop("out_lane", const(LANES, 5)) as lane:
            word = attention_shift(k.load("out", sums, lane[3:0]), bias_matrix, bias_softmax)
            k.store(query.memory, query.address(vector, lane), compress(word, bias_out))
    k.done(s["top_interrupt_request"], True)
    return k
