"""FlexASR's mappings by name."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from accel_models.flexasr.floats import EXPONENTS, adpfloat_to_float, float_to_adpfloat
from ir_semantics.layers.dense import Order
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import reading, rounding

from .attention import attention_mapping
from .chains import chain_mapping, reload_mapping
from .float_pooling import float_pooling_mapping
from .layer_norm import layer_norm_mapping
from .linear import linear_mapping
from .padding import padding_mapping
from .pooling import pooling_mapping, selection_mapping
from .recurrent import recurrent_mapping

POOLS: Final = {
    kind: MappingClaim(
        f"flexasr_{kind}pool",
        f"{kind} pooling, window and stride (2, 1), on FlexASR's LayerReduce",
        partial(pooling_mapping, kind),
    )
    for kind in ("max", "mean", "add")
}
"""Poolings of pairs of rows, by kind."""

_CHAINS: Final[tuple[tuple[Literal["max", "mean"], int], ...]] = (("max", 2), ("max", 3), ("max", 4), ("mean", 2))
CHAINS: Final = {
    (kind, steps): MappingClaim(
        f"flexasr_{kind}pool_x{steps}",
        f"{kind} pooling, window and stride (2, 1), {steps} times in place on FlexASR's LayerReduce",
        partial(chain_mapping, kind, steps),
    )
    for kind, steps in _CHAINS
}
"""Poolings that are done several times in one program, by kind and number."""

_POOLINGS: Final[tuple[tuple[Literal["max", "mean"], int], ...]] = (("max", 1), ("mean", 1), *_CHAINS)
FLOAT_POOLS: Final = {
    (kind, steps): MappingClaim(
        f"flexasr_float_{kind}pool{f'_x{steps}' if steps > 1 else ''}",
        f"{kind} pooling, window and stride (2, 1){f', {steps} times' if steps > 1 else ''}, of float32 tensors of any "
        "size, by the host and FlexASR",
        partial(float_pooling_mapping, kind, steps),
    )
    for kind, steps in _POOLINGS
}
"""Poolings of float32 tensors, rounded, cut and padded by the host, by kind and number."""

ROUND: Final = rounding("flexasr", "AdaptivFloat codes", float_to_adpfloat, EXPONENTS)
READ: Final = reading("flexasr", "AdaptivFloat codes", adpfloat_to_float, EXPONENTS)

RELOAD: Final = MappingClaim(
    "flexasr_reload",
    "a matrix of FlexASR's buffer, loaded and stored again, is unchanged",
    partial(reload_mapping, "matrix"),
)

_AFTER = {None: "", "relu": " with relu", "sigmoid": " with sigmoid", "tanh": " with tanh"}
LINEAR: Final = {
    activation or "none": MappingClaim(
        "flexasr_linear" + (f"_{activation}" if activation else ""),
        f"a dense layer{after}, on FlexASR's processing elements",
        partial(linear_mapping, activation),
    )
    for activation, after in _AFTER.items()
}
"""Dense layers, by activation."""

RECURRENT: Final = {
    kind: MappingClaim(
        f"flexasr_{kind}",
        f"{text} layers from a state of zeros, on FlexASR's processing elements",
        partial(recurrent_mapping, kind),
    )
    for kind, text in (("rnn", "plain recurrent"), ("gru", "GRU"), ("lstm", "LSTM"))
}
"""Recurrent layers, by kind."""

RECURRENT_FROM: Final = {
    kind: MappingClaim(
        f"{claim.name}_from",
        claim.summary.replace("a state of zeros", "given states"),
        partial(recurrent_mapping, kind, given=True),
    )
    for kind, claim in RECURRENT.items()
}
"""Those from given states, by kind."""

CLUSTERED: Final = (
    MappingClaim(
        "flexasr_linear_clustered",
        f"{LINEAR['none'].summary}, each weight an index of one of 16 codes",
        partial(linear_mapping, clustered=True),
    ),
    *(
        MappingClaim(
            f"{claim.name}_clustered",
            f"{claim.summary}, each weight an index of one of 16 codes",
            partial(recurrent_mapping, kind, clustered=True),
        )
        for kind, claim in RECURRENT.items()
    ),
)
"""Layers whose weights are indices."""

LAYER_NORM: Final = MappingClaim(
    "flexasr_layernorm", "layer normalisation of each timestep, on FlexASR's LayerNorm", layer_norm_mapping
)

ATTENTION: Final = MappingClaim(
    "flexasr_attention", "attention of one query, on FlexASR's Attention", attention_mapping
)

MASKED_ATTENTION: Final = MappingClaim(
    "flexasr_attention_masked",
    "attention of one query over the first rows, the others hidden, on FlexASR's Attention",
    partial(attention_mapping, masked=True),
)
ATTENTION_OF_QUERIES: Final = tuple(
    MappingClaim(
        f"{claim.name}_queries",
        claim.summary.replace("one query", "several queries"),
        partial(attention_mapping, masked=masked, several=True),
    )
    for claim, masked in ((ATTENTION, False), (MASKED_ATTENTION, True))
)
"""Of several queries of one tensor."""

CLAIMS: Final = (
    *POOLS.values(),
    *(
        MappingClaim(
            f"{claim.name}_odd",
            f"{claim.summary}, of an odd number of rows without the last one",
            partial(pooling_mapping, kind, odd=True),
        )
        for kind, claim in POOLS.items()
    ),
    *CHAINS.values(),
    *FLOAT_POOLS.values(),
    MappingClaim(
        "flexasr_maxpool_x2_reloaded",
        "max pooling twice on FlexASR, with a transfer to the host and back in between",
        partial(chain_mapping, "max", 2, reloaded=True),
    ),
    RELOAD,
    MappingClaim(
        "flexasr_reload_rest", "so are the unused rows of the matrix's last tiles", partial(reload_mapping, "rest")
    ),
    MappingClaim(
        "flexasr_reload_apart", "so is what lies outside of the matrix's tiles", partial(reload_mapping, "apart")
    ),
    ROUND,
    READ,
    *LINEAR.values(),
    *RECURRENT.values(),
    *RECURRENT_FROM.values(),
    *CLUSTERED,
    MappingClaim("flexasr_zeropad", "rows of zeros after a tensor, on FlexASR's ZeroPadding", padding_mapping),
    LAYER_NORM,
    ATTENTION,
    MASKED_ATTENTION,
    *ATTENTION_OF_QUERIES,
    MappingClaim(
        "flexasr_maxpool_select",
        "a false claim, kept as an example: max returns an operand unchanged",
        selection_mapping,
        false="the 2020 checker assumes it; LayerReduce canonicalises -0",
    ),
    *(
        MappingClaim(
            f"flexasr_linear_{order.value}",
            f"a dense layer on FlexASR that the IR sums {how}",
            partial(linear_mapping, order=order),
        )
        for order, how in (
            (Order.BACKWARD, "from the last feature to the first"),
            (Order.BLOCKED, "in blocks of 16 features"),
        )
    ),
)
"""All of them."""
