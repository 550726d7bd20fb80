"""Rules to FlexASR's operators, and between them: transfers that cancel, and chains that are one program (D2A,
figure 7).

A pooling on FlexASR is a store, a pooling from buffer to buffer, and a load.  Storing what was just loaded changes
nothing, so that of several poolings in a row one store and one load are left; such a chain is one call of the mapping
of the whole chain.  The operators from buffer to buffer serve to find chains: no code is generated for them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rewrites.compiler.codegen import AcceleratorOperator
from rewrites.compiler.offload.chains import ChainRule
from rewrites.compiler.offload.rules import AcceleratorRule, dense_layer_rule
from rewrites.egraph.pattern import Bound, Operator, Pattern, Variable, operator
from rewrites.mappings.flexasr import claims

from .operators import (
    ACTIVATIONS,
    GATES,
    LAYER_NORM,
    LINEAR,
    LOAD,
    POOL_CHAINS,
    POOLS,
    RECURRENT,
    RECURRENT_FROM,
    STORE,
    STORED_POOLS,
    states_of,
)


def _shaped(rank: int, name: str = "shape") -> Bound:
    return Bound(name, lambda value: isinstance(value, tuple) and len(value) == rank)


def _recurrent(kind: str, text: str, given: bool) -> AcceleratorRule:
    """The layer of one sequence from states of zeros, or ``given`` ones, gates put in the order of the tensor IR."""
    order = GATES[kind]

    def ordered(name: str) -> Operator | str:
        if len(order) == 1:
            return name
        parts = (operator("slice", name, attributes=Bound(f"{name}{j}")) for j in range(len(order)))
        return operator("concat", *parts, attributes={"axis": 0})

    zero = operator("constant", attributes=Bound("zero"), type=Bound("scalar"))
    state, weights = (
        operator("broadcast", zero, attributes={"axes": (), "shape": Bound(name)}) for name in ("state", "peepholes")
    )
    row = operator("reshape", "x", attributes={"shape": _shaped(3, "rows")})
    biases = operator("concat", ordered("b"), ordered("d"), attributes={"axis": 0})
    names = states_of(kind)
    states: Sequence[Pattern | str] = names if given else [state for _ in names]
    inner = [row, ordered("w"), ordered("u"), biases, *states, *([weights] if kind == "lstm" else [])]
    layer = operator(kind, *inner, attributes=Bound("attributes"))
    left = operator("reshape", layer, attributes={"shape": _shaped(2, "shape")})
    target = (RECURRENT_FROM if given else RECURRENT)[kind]
    right = operator(target.name, "x", "w", "u", "b", "d", *(names if given else ()), attributes={})
    return AcceleratorRule(f"{text} layer{' from given states' if given else ''} on FlexASR", left, right)


def _on(target: AcceleratorOperator, x: Pattern | str) -> Operator:
    return operator(target.name, x, attributes={})


def _pool(operator_name: str, target: AcceleratorOperator, text: str) -> AcceleratorRule:
    pairs = operator("reshape", "x", attributes={"shape": _shaped(3)})
    left = operator(operator_name, pairs, attributes={"axes": (1,)})
    return AcceleratorRule(f"{text} of pairs of rows on FlexASR", left, _on(target, "x"))


RULES: Final = (
    *(dense_layer_rule(LINEAR.name, activation, "FlexASR") for activation in ACTIVATIONS),
    *(
        _recurrent(kind, text, given)
        for kind, text in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn", "plain recurrent"))
        for given in (False, True)
    ),
    _pool("reduce_max", POOLS["max"], "maximum"),
    _pool("mean", POOLS["mean"], "mean"),
    AcceleratorRule(
        "layer normalisation on FlexASR",
        operator("layer_norm", "x", "gamma", "beta", attributes={"axes": (1,), "epsilon": Bound("epsilon")}),
        operator(LAYER_NORM.name, "x", "gamma", "beta", attributes={"epsilon": Bound("epsilon")}),
    ),
)
"""Rules from the tensor IR."""


def _stored(kind: str, steps: int) -> Operator:
    """A store, poolings from buffer to buffer, and a load."""
    x: Pattern = _on(STORE, "x")
    for _ in range(steps):
        x = _on(STORED_POOLS[kind], x)
    return _on(LOAD, x)


CHAIN_RULES: Final = (
    *(
        ChainRule(
            f"{kind} pooling on FlexASR as store, pooling and load",
            _on(POOLS[kind], "x"),
            _stored(kind, 1),
            claims.POOLS[kind],
        )
        for kind in POOLS
    ),
    ChainRule("store after load on FlexASR", _on(STORE, _on(LOAD, "x")), Variable("x"), claims.RELOAD),
    *(
        ChainRule(
            f"{pool[1]} {pool[0]} poolings on FlexASR as one program",
            _stored(*pool),
            _on(POOL_CHAINS[pool], "x"),
            claims.FLOAT_POOLS[pool],
        )
        for pool in POOL_CHAINS
    ),
)
"""Rules between FlexASR's operators."""
