"""FlexASR's numerics: the sign that saturation lost before 2022, and the softmax denominator that wraps."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.functions import divide_q24, exp
from accel_models.flexasr.layout import LANES
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import (
    adpfloat_to_fixed,
    describe_code,
    fixed_to_adpfloat,
    fixed_to_adpfloat_pre2022,
    value_of,
)
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.quantise import Quantised, quantise
from ila_lang import Expr, Function, Machine, Simulator, bv, compile_function, const, ite, var
from ir_semantics import reference
from rewrites.mappings.flexasr.operations import attention, recurrent

from .finding import Finding, require, table
from .queries import prove, smallest_counterexample

Reals = NDArray[np.float64]

TODAY, BEFORE = FlexAsrOptions(), FlexAsrOptions(saturation="pre2022")

# -- the sign of saturated numbers ----------------------------------------------------------------------

_V, _W, _BIAS = var("v", bv(20)), var("w", bv(20)), var("bias", bv(3))


def keeps_sign(convert: Function) -> Expr:
    """The claim that a non-zero code has the sign of the number that it encodes."""
    code = convert(_V, _BIAS)
    return (code[6:0] == 0) | (code[7] == _V[19])


def is_monotone(convert: Function) -> Expr:
    """The claim that a larger number does not get a code of smaller value."""
    left, right = (adpfloat_to_fixed(convert(x, _BIAS), _BIAS) for x in (_V, _W))
    return ~_V.sle(_W) | left.sle(right)


def affected_inputs() -> list[int]:
    """How many of the 2^20 inputs get another code by the rule before 2022, for each bias; all are tried."""
    values = np.arange(1 << 20, dtype=np.int64)
    today, before = (compile_function(f, vector=True) for f in (fixed_to_adpfloat, fixed_to_adpfloat_pre2022))
    return [int((today(values, np.int64(b)) != before(values, np.int64(b))).sum()) for b in range(8)]


@cache
def saturation_sign() -> Finding:
    """The conversion before 2022 turned large negative numbers into the largest positive code."""
    magnitude = ite(_V[19] == 1, -_V, _V)
    sign = smallest_counterexample("keeps sign", keeps_sign(fixed_to_adpfloat_pre2022), [_BIAS, magnitude])
    pair = smallest_counterexample("is monotone", is_monotone(fixed_to_adpfloat_pre2022), [_BIAS, _W - _V])
    prove("keeps sign", keeps_sign(fixed_to_adpfloat))
    prove("is monotone", is_monotone(fixed_to_adpfloat))
    errors = lstm_errors()
    worse = [row for row in errors if max(row[2]) > max(row[1])]
    require(bool(worse), "no LSTM has a larger error with the conversion before 2022")
    counts = affected_inputs()

    def converted(value: int, bias: int, convert: Function = fixed_to_adpfloat_pre2022) -> str:
        return describe_code(compile_function(convert)(value, bias), bias)

    number, bias = _signed(sign["v"], 20), sign["bias"]
    left, right = _signed(pair["v"], 20), _signed(pair["w"], 20)
    return Finding(
        name="flexasr_sign",
        title="FlexASR: saturation lost the sign of negative numbers until 2022",
        claim="encoding a Q6.14 number as an AdaptivFloat code keeps its sign and is monotone (conversion before 2022)",
        method="z3 and cvc5 on the body of `fixed_to_adpfloat_pre2022`, all 2^20 numbers and 8 biases at once.",
        counterexample=(
            f"bias {bias}, {number} · 2^-14 = {number / 2**14:.6g} becomes {converted(sign['v'], bias)}; not "
            f"monotone: {left} becomes {converted(pair['v'], pair['bias'])}, the next number, {right}, "
            f"{converted(pair['w'], pair['bias'])}"
        ),
        holds=(
            "with the conversion of 2022 (`fixed_to_adpfloat`) both claims are proved, for every number and bias; the "
            f"first number becomes {converted(sign['v'], bias, fixed_to_adpfloat)}"
        ),
        status="REFUTED by z3 and cvc5, replayed; repaired form PROVED by z3 and cvc5",
        limits=(
            "layers whose numbers stay within the range of the biases that they are encoded with were never "
            "affected: the errors of both conversions are then equal. Nor is a larger bias always better: it loses "
            "small numbers. LayerReduce was never affected. The layers of the table are random ones, no trained "
            "model."
        ),
        evidence=(
            "Inputs of 20 bits that the old rule changes, all tried:",
            table(["bias", *range(8)], [["inputs", *counts], ["of 2^20", *(f"{c / 2**20:.1%}" for c in counts)]]),
            _LSTM_TEXT,
            table(
                ["weights", "state bias", "2022, by seed", "before 2022, by seed", "changed of 128, by seed"],
                [
                    [f"±{scale / 4:g}", f"{state_bias}", _percent(now), _percent(old), ", ".join(map(str, changed))]
                    for (scale, state_bias), now, old, changed in errors
                ],
            ),
            "`ilaverify campaign flexasr_lstm_pre2022` searches for such layers at random and shrinks the first one.",
        ),
    )


_LSTM_TEXT = f"""\
Effect on an LSTM with 16 inputs and 16 hidden units over 8 timesteps: the error of the hidden states (relative
Frobenius norm against float64 on the quantised inputs) with either conversion, for seeds 0, 1, 2. Inputs are uniform in
[-1, 1), weights and biases uniform in the range given. At a state bias of 2, with which published drivers keep the cell
state, the largest number is {float(value_of(0x7F, 2))}; cell states below its negative became positive."""


def lstm_errors(seeds: range = range(3)) -> list[tuple[tuple[float, int], list[float], list[float], list[int]]]:
    """The error of an LSTM today and before 2022, and the hidden states that differ, by seed.

    The first component gives the scale of the weights, in units of 1/4, and the AdaptivFloat bias of the state.
    """
    errors = []
    replays: list[Quantised] = []  # of the first layer that differs
    for scale, state_bias in ((1.0, 2), (2.0, 2), (4.0, 2), (8.0, 2), (8.0, 4)):
        now: list[float] = []
        old: list[float] = []
        changed: list[int] = []
        for seed in seeds:
            inputs = lstm_inputs(scale, seed)
            ideal = reference.lstm(*(q.values for q in inputs))[0]
            program = recurrent("lstm", inputs, state_bias=state_bias)
            results = [program.run(Simulator(flexasr(options))) for options in (TODAY, BEFORE)]
            if changed == [] and (results[0].codes != results[1].codes).any() and not replays:
                replays.append(program.run(Machine(flexasr(BEFORE))))
                require(
                    bool((replays[0].codes == results[1].codes).all()), "the LSTM does not replay on the interpreter"
                )
            now.append(_error(results[0], ideal))
            old.append(_error(results[1], ideal))
            changed.append(int((results[0].codes != results[1].codes).sum()))
        errors.append(((scale, state_bias), now, old, changed))
    return errors


def lstm_inputs(scale: float, seed: int, timesteps: int = 8, size: int = 16) -> list[Quantised]:
    """The quantised x, weights and biases of an LSTM; weights are uniform in +-``scale`` / 4."""
    generator = np.random.Generator(np.random.PCG64(seed))
    shapes = ((4 * size, size), (4 * size, size), (4 * size,), (4 * size,))
    x = generator.uniform(-1, 1, (timesteps, size))
    return [quantise(x), *(quantise(generator.uniform(-scale / 4, scale / 4, shape)) for shape in shapes)]


def _error(result: Quantised, ideal: Reals) -> float:
    return float(np.linalg.norm(result.values - ideal) / np.linalg.norm(ideal))


def _percent(errors: list[float]) -> str:
    return ", ".join(f"{100 * e:.1f} %" for e in errors)


def _signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


# -- the denominator of softmax ---------------------------------------------------------------------------

_E, _SUM = var("e", bv(32)), var("sum", bv(32))
_UNIT = 1 << 20  # 1.0 in Q12.20


def quotient_at_most_1(least: int) -> Expr:
    """The claim that e / sum is at most 1 for e <= sum, for sums of at least ``least``."""
    return ~((const(least, 32) <= _SUM) & (_E <= _SUM)) | (divide_q24(_E, _SUM) <= _UNIT)


@cache
def attention_wraps() -> Finding:
    """The divider of softmax takes its operands modulo 4."""
    # the largest score adds exp(0), so that no sum is smaller
    least = compile_function(exp)(0)
    claim = quotient_at_most_1(least)
    values = smallest_counterexample("quotient at most 1", claim, [_SUM, _E])
    prove("quotient at most 1, sum below 4", claim | ~(_SUM < 4 * _UNIT))
    quotient = compile_function(divide_q24)(values["e"], values["sum"])
    sums = {}
    for count in range(1, LANES + 1):
        sums[count] = weights_of_equal_scores(count)
    limit = most_weight(least / _UNIT)
    wrong = [count for count, weights in sums.items() if sum(weights) > limit]
    require(bool(wrong), "the weights of up to 16 equal scores sum up to about 1")
    first = wrong[0]
    return Finding(
        name="flexasr_attention",
        title="FlexASR: the denominator of softmax wraps modulo 4",
        claim="in Attention's softmax the quotient of a term and of a sum that is not smaller is at most 1",
        method=(
            "z3 and cvc5 on the body of `divide_q24`, for all e ≤ sum with sum ≥ exp(0); then Attention with one row "
            "after the other of equal scores, on the interpreter."
        ),
        counterexample=(
            f"e = {values['e'] / _UNIT:g}, sum = {values['sum'] / _UNIT:g}: quotient {quotient / _UNIT:.6g}; as a "
            f"program: {first} equal scores, whose weights sum up to {sum(sums[first]):g}"
        ),
        holds=(
            f"proved for every e ≤ sum with exp(0) = {least / _UNIT:.6g} ≤ sum < 4; so in every layer in which the "
            "exponentials of the scores, less the largest one, sum up to less than 4"
        ),
        status="REFUTED by z3 and cvc5, replayed; restricted form PROVED by z3 and cvc5",
        limits=(
            "it is a limit of the published design, not of this model, and attention with a few clearly largest "
            "scores is not affected. A sum below 4 does not make the weights exact: the divider cuts operands to "
            f"1/16 and the quotient to 1/256, so that the weights may sum up to less than 1, or to {limit:.4f} at "
            "most."
        ),
        evidence=(
            "Attention over 16 rows of which the first n have the same score, and the others drop out:",
            table(
                ["n", "each weight", "sum of the n weights"], [[n, f"{w[0]:g}", f"{sum(w):g}"] for n, w in sums.items()]
            ),
        ),
    )


def most_weight(least: float) -> float:
    """The largest sum of weights while their denominator does not wrap and is at least ``least``.

    Dividends sum up to the sum S at most; the divisor is above S - 1/16.  Rounding a weight to a code of four mantissa
    bits raises it by a factor of 33/32 at most.
    """
    return least / (least - 1 / 16) * 33 / 32


def weights_of_equal_scores(count: int, code: int = 0x40) -> list[float]:
    """The softmax weights that Attention gives the first ``count`` of 16 rows, which all have the same score.

    It is a score other than 0; that of the other rows is 0, which the unit takes as -64.  Runs on the interpreter.
    """
    keys = np.zeros((LANES, LANES), np.uint8)
    keys[:count, 0] = code
    query = np.zeros(LANES, np.uint8)
    query[0] = code
    weight_bias = 3
    program = attention(Quantised(keys, 4), Quantised(query, 4), output_bias=4, weight_bias=weight_bias)
    machine = Machine(flexasr())
    program.run(machine)
    small = machine.memories["gb_core_small_buffer"]
    first = LANES * program.program.sizes["base_scores"]  # which the weights replace
    return [float(value_of(small[first + row], weight_bias)) for row in range(count)]
