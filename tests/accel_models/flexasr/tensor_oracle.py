"""What FlexASR computes for whole tensors of codes, on Python's and NumPy's integers: an oracle for whole programs.

Written from the description of the hardware, without the product's numerics, layouts or micro-programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = Any  # arrays of int64


def wrap(x: Ints, width: int) -> Ints:
    half = 1 << (width - 1)
    return (x + half) % (2 * half) - half


# -- AdaptivFloat -------------------------------------------------------------------------------------


def parts(code: Ints) -> tuple[Ints, Ints, Ints]:
    """Sign (1 or -1), significand (16 .. 31, or 0) and exponent."""
    code = np.asarray(code, np.int64)
    return 1 - 2 * (code >> 7), np.where(code & 0x7F, 16 + (code & 15), 0), code >> 4 & 7


def fixed(code: Ints, bias: int) -> Ints:
    sign, significand, exponent = parts(code)
    return sign * significand << exponent + bias


def products(a: Ints, b: Ints) -> Ints:
    (sign_a, m_a, e_a), (sign_b, m_b, e_b) = parts(a), parts(b)
    return sign_a * sign_b * m_a * m_b << e_a + e_b


def encode(value: int, fraction: int, bias: int) -> int:
    """Round to 1.4 bits with ties toward plus infinity, then check the range."""
    value = int(value)
    if value == 0:
        return 0
    sign, k = int(value < 0), abs(value).bit_length() - 1
    if k > 4:
        step = 1 << k - 4
        value = (value + step // 2) // step * step
        k = abs(value).bit_length() - 1
    exponent = k - fraction - bias + 10
    if exponent < 0:
        return 0
    mantissa = abs(value) * 16 // (1 << k) & 15
    return sign << 7 | (0x7F if exponent > 7 else exponent << 4 | mantissa)


def encoded(values: Ints, fraction: int, bias: int) -> Ints:
    values = np.asarray(values)
    return np.array([encode(v, fraction, bias) for v in values.ravel()], np.uint8).reshape(values.shape)


# -- pooling ------------------------------------------------------------------------------------------


def pool(kind: str, x: Any) -> Ints:
    """Codes [T / 2, F] of "max", "mean" or "add": at bias 0, with one rounding."""

    def pair(left: int, right: int) -> int:
        a, b = (int(fixed(code, 0)) for code in (left, right))
        if kind == "max":
            larger = left if a >= b else right
            return 0 if larger & 0x7F == 0 else larger
        # numbers at bias 0 have 14 fraction bits
        return encode(a + b, 15 if kind == "mean" else 14, 0)

    rows = zip(x.codes[0::2].tolist(), x.codes[1::2].tolist(), strict=True)
    return np.array([[pair(a, b) for a, b in zip(*row, strict=True)] for row in rows], np.uint8)


# -- processing elements ------------------------------------------------------------------------------


def core(x: Ints, w: Ints, biases: tuple[int, int], b: Ints, b_bias: int) -> Ints:
    """Dot products of x [I] with the rows of w [O, I], plus b: the 20-bit numbers for the activation unit."""
    total = wrap(products(w, x).sum(axis=1), 32) >> 14 - sum(biases)
    if b is not None:
        total = wrap(total + fixed(b, b_bias), 32)
    return np.clip(total, -(2**19) + 1, 2**19 - 1)


def sigmoid(x: Ints) -> Ints:
    slopes = np.array([155, 130, 92, 58, 34, 19, 10, 6])
    intercepts = np.array([513, 668, 798, 890, 948, 982, 1001, 1012])
    position = np.abs(x) * 819 >> 13 & 0x3FFF
    segment = position >> 10 & 7
    line = slopes[segment] * (position & 1023) + (intercepts[segment] << 10)
    line = np.where(np.abs(x) >= 5 << 14, 2**20 - 1, line)
    return np.where(x < 0, (2**20 - line) % 2**20, line) >> 6


def tanh(x: Ints) -> Ints:
    slopes = np.array([251, 224, 177, 129, 88, 57, 37, 23, 14, 9, 5, 3])
    intercepts = np.array([1, 252, 476, 653, 783, 871, 928, 965, 988, 1002, 1011, 1016])
    position = np.minimum(np.abs(x), (3 << 14) - 1) >> 2
    line = slopes[position >> 10] * (position & 1023) + (intercepts[position >> 10] << 10)
    line = np.where(np.abs(x) >= 3 << 14, 2**20 - 1, line)
    return np.where(x < 0, -line, line) >> 6


def times(a: Ints, b: Ints) -> Ints:
    return wrap(a * b >> 14, 20)


def plus(a: Ints, b: Ints) -> Ints:
    return wrap(a + b, 20)


ACTIVATIONS = {None: lambda x: x, "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "tanh": tanh}


def linear(x: Any, w: Any, b: Any, output_bias: int, activation: str | None = None) -> Ints:
    """Codes [T, O]; x, w and b have ``codes`` and ``bias`` (b may be None)."""
    bias = (None, 0) if b is None else (b.codes, b.bias)
    rows = [ACTIVATIONS[activation](core(row, w.codes, (w.bias, x.bias), *bias)) for row in x.codes]
    return encoded(np.array(rows), 14, output_bias)


def recurrent(
    kind: str, x: Any, weights: tuple[Any, ...], state_bias: int, initial: tuple[Ints, Ints] | None = None
) -> Ints:
    """Codes [T, H] of "rnn", "gru" (gates r, z, n) or "lstm" (gates i, f, g, o); weights are W, U, b and c."""
    w, u, b, c = weights
    hidden = u.codes.shape[1]
    gates = len(u.codes) // hidden
    h, cell = initial if initial is not None else (np.zeros(hidden, np.uint8),) * 2
    rows = []
    for row in x.codes:
        from_input = core(row, w.codes, (w.bias, x.bias), b.codes, b.bias).reshape(gates, hidden)
        from_hidden = core(h, u.codes, (u.bias, state_bias), c.codes, c.bias).reshape(gates, hidden)
        if kind == "rnn":
            state = tanh(plus(from_input[0], from_hidden[0]))
        elif kind == "gru":
            r, z = (sigmoid(plus(from_input[k], from_hidden[k])) for k in (0, 1))
            n = tanh(plus(times(r, from_hidden[2]), from_input[2]))
            state = plus(times(n, wrap(2**14 - z, 20)), times(fixed(h, state_bias), z))
        else:
            i, f, o = (sigmoid(plus(from_input[k], from_hidden[k])) for k in (0, 1, 3))
            g = tanh(plus(from_input[2], from_hidden[2]))
            content = plus(times(i, g), times(f, fixed(cell, state_bias)))
            cell = encoded(content, 14, state_bias)
            state = times(tanh(content), o)  # of the content before it was rounded
        h = encoded(state, 14, state_bias)
        rows.append(h)
    return np.array(rows)


# -- layer normalisation ------------------------------------------------------------------------------


def inverse_root(x: int) -> int:
    slopes = (-331, -279, -240, -210, -185, -165, -148, -134)
    intercepts = (5789, 5458, 5178, 4938, 4728, 4543, 4378, 4229)
    if x == 0:
        return -1
    zeros = 20 - x.bit_length()
    exponent = 6 - zeros
    position = (((x << zeros) - 2**19) << 4) >> 8
    line = slopes[position >> 12] * (position & 4095) + (intercepts[position >> 12] << 12)
    if exponent % 2:
        line = line * 2896 >> 12
    return int(wrap(line >> 10 + exponent // 2, 20))


def toward_zero(total: int, count: int) -> int:
    return int(wrap(abs(total) // count * (-1 if total < 0 else 1), 20))


def layer_norm(x: Any, gamma: Any, beta: Any) -> Ints:
    """Codes [T, F]."""
    rows = []
    for row in fixed(x.codes, x.bias):
        in_vectors = row.reshape(-1, 16)
        total = wrap(wrap(in_vectors.sum(axis=1), 20).sum(), 24)
        squares = wrap(wrap(times(in_vectors, in_vectors).sum(axis=1), 20).sum(), 24)
        mean = toward_zero(int(total), len(row))
        variance = (toward_zero(int(squares), len(row)) - (mean * mean >> 14)) % 2**20
        y = times(wrap(row - mean, 20), inverse_root(variance))
        y = plus(times(y, fixed(gamma.codes, gamma.bias)), fixed(beta.codes, beta.bias))
        rows.append(encoded(y, 14, x.bias))
    return np.array(rows)


# -- attention ----------------------------------------------------------------------------------------


def shift(x: Ints, amount: int) -> Ints:
    return x >> amount if amount >= 0 else wrap(x << -amount, 32)


def exp(x: int) -> int:
    power = x * 23637 >> 14
    whole, segment, fraction = power >> 20, power >> 18 & 3, power >> 8 & 1023
    line = (194, 230, 273, 325)[segment] * fraction + ((1022, 1216, 1446, 1719)[segment] << 10)
    return line >> -whole if whole < 0 else line << whole


def attention(keys: Any, query: Any, output_bias: int, weight_bias: int) -> Ints:
    """Codes [F]; the rows up to a multiple of 16 take part as zeros."""
    rows = np.zeros((-(-len(keys.codes) // 16) * 16, keys.codes.shape[1]), np.uint8)
    rows[: len(keys.codes)] = keys.codes
    totals = wrap(products(rows, query.codes).sum(axis=1), 32)
    scores = shift(totals, 8 - keys.bias - query.bias)
    scores = np.where(totals == 0, -64 << 20, scores)  # sums of exactly 0, before bits are cut
    powers = [exp(int(s) - int(scores.max())) for s in scores]
    divisor = sum(powers) >> 16 & 63
    quotients = [1023 if divisor == 0 else (p >> 16 & 63) * 256 // divisor % 1024 for p in powers]
    weights = encoded(np.array(quotients) << 12, 20, weight_bias)
    context = shift(wrap(products(rows.T, weights).sum(axis=1), 32), 8 - keys.bias - weight_bias)
    return encoded(wrap(context, 26), 20, output_bias)
