"""Claims that code may rest on beside mappings: rules of parts by operator, and lemmas of bounds by mapping."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from rewrites.bounds.derivations.operators import OPERATORS
from rewrites.claims.names import bound_name, slug
from rewrites.targets.flexasr.code import linear as flexasr_linear
from rewrites.targets.flexasr.code import pools as flexasr_pools
from rewrites.targets.hlscnn import code as hlscnn
from rewrites.targets.vta import code as vta

__all__ = ["SPLITS", "bound_claims"]

SPLITS: Final[Mapping[str, tuple[str, ...]]] = {
    "flexasr.linear": (*flexasr_linear.RULES, *flexasr_linear.JOINED.values()),
    **{
        name: (flexasr_pools.RULES[pool.kind, "rows"], flexasr_pools.RULES[pool.kind, "columns"])
        for name, pool in flexasr_pools.POOLS.items()
    },
    "hlscnn.conv2d": tuple(hlscnn.RULES.values()),
    "vta.dense": vta.RULES,
}
"""Names of claims.  Operators that are not here are never computed in parts."""

_THEOREMS: Final[Mapping[str, tuple[str, ...]]] = {
    "flexasr_linear": ("FlexASR linear",),
    "flexasr_linear_relu": ("FlexASR linear + relu",),
    "flexasr_linear_sigmoid": ("FlexASR linear + sigmoid",),
    "flexasr_linear_tanh": ("FlexASR linear + tanh",),
    "flexasr_rnn": ("FlexASR RNN step",),
    "flexasr_gru": ("FlexASR GRU step",),
    "flexasr_lstm": ("FlexASR LSTM step, hidden state", "FlexASR LSTM step, cell state"),
    **{
        f"flexasr_{pool.kind}pool" + (f"_x{pool.steps}" if pool.steps > 1 else ""): (f"FlexASR {pool.kind} pooling",)
        for pool in flexasr_pools.POOLS.values()
    },
    "flexasr_layernorm": ("FlexASR layer norm",),
    "hlscnn_conv2d": ("HLSCNN conv2d, weights of 16 bits",),
    "hlscnn_conv2d_8bit": ("HLSCNN conv2d, weights of 8 bits",),
    "vta_gemm": ("VTA dense",),
}
"""By mapping, the operators of ``rewrites.bounds`` whose bounds an implementation's bound is composed of."""


@cache
def bound_claims(mapping: str) -> tuple[str, ...]:
    """The names of the bounds of a mapping's programs, and of the lemmas and laws that these are derived from.

    Raises KeyError for a mapping of which no bound is stated.
    """
    found: list[str] = []
    for name in _THEOREMS[mapping]:
        found.append(bound_name(name))
        found += [f"lemma-{slug(lemma)}" for lemma in OPERATORS[name].lemmas]
        found += [f"error-{slug(rule)}" for rule in OPERATORS[name].rules]
    return tuple(dict.fromkeys(found))
