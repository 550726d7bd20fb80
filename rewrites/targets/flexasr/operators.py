"""FlexASR's operators, each with an exact meaning: the graph that it stands for.

All tensors are float32.  Shapes, with T rows, I input and O output features, and a state of H:

==================  =============================================================  ==========================
operator            operands                                                       result
==================  =============================================================  ==========================
flexasr.linear      x [T, I], w [O, I], b [O]; ``activation``                      [T, O]
flexasr.lstm        x [T, I], w [4H, I], u [4H, H], b [4H], d [4H]                 [T, H]
flexasr.gru         x [T, I], w [3H, I], u [3H, H], b [3H], d [3H]                 [T, H]
flexasr.rnn         x [T, I], w [H, I], u [H, H], b [H], d [H]                     [T, H]
flexasr.lstm_from   those of flexasr.lstm, h [1, H] and c [1, H]                   [T, H]
flexasr.gru_from    those of flexasr.gru, and h [1, H]; likewise flexasr.rnn_from  [T, H]
flexasr.max_pool    x [2T, F]                                                      [T, F]
flexasr.mean_pool   x [2T, F]                                                      [T, F]
flexasr.layer_norm  x [T, F], gamma [F], beta [F]; ``epsilon``                     [T, F]
flexasr.store       x [T, F]                                                       x, in FlexASR's buffer
flexasr.load        x [T, F] in FlexASR's buffer                                   x, on the host
==================  =============================================================  ==========================

``flexasr.stored_max_pool`` and ``flexasr.stored_mean_pool`` are the poolings from buffer to buffer, and
``flexasr.max_pool_x2``, ``_x3``, ``_x4`` and ``flexasr.mean_pool_x2`` as many of them between one store and one load.

Gates are stacked in the order i, f, g, o (lstm) and r, z, n (gru), which is PyTorch's; states are zero at first, or h
and c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly
from ir_semantics.graph.words import expand, literal, reshape, take
from ir_semantics.tensors.conditions import both, equal, le
from ir_semantics.tensors.index import IndexLike, size
from ir_semantics.tensors.operators import concat, slice_
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.layers import LAYER_OPTIONS
from rewrites.claims.joints.zeros import ZEROS
from rewrites.claims.theorems import flexasr as bounds
from rewrites.compiler.codegen.operators import AcceleratorOperator, by_activation, dense_layer, require_fit, shapes_of
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr import claims
from rewrites.mappings.flexasr.operations import GATES as IN_CORE
from rewrites.rules.tensor.boxes import DENSE_IN_BOXES

from .code import linear, pools
from .code.recurrent import LstmFrom, Recurrent, RecurrentFrom
from .code.rows import LayerNorm

ACTIVATIONS: Final = tuple(claims.LINEAR)
"""What ``flexasr.linear`` may apply to its result."""

GATES: Final[Mapping[str, tuple[int, ...]]] = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""For each gate of the tensor IR's recurrent layer (ONNX's order), its place among the accelerator operator's."""


def states_of(kind: str) -> tuple[str, ...]:
    """The operands that a layer begins with, if it does not with zeros."""
    return ("h", "c") if kind == "lstm" else ("h",)


def _recurrent(kind: str, given: bool) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The layer of the tensor IR with one sequence, gates in its order, and states of zeros or ``given`` ones."""
    order, name = GATES[kind], f"flexasr.{kind}{'_from' if given else ''}"
    names = states_of(kind) if given else ()

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        (rows, features), w, u, bias, other, *first = shapes_of(b, name, of, 2, 2, 2, 1, 1, *(2 for _ in names))
        stacked, hidden = u
        fits = stacked == len(order) * hidden and w == (stacked, features) and bias == other == (stacked,)
        fits = fits and all(state == (1, hidden) for state in first)
        gates = f"{len(order)}H" if len(order) > 1 else "H"
        shapes = [f"x [T, I], w [{gates}, I], u [{gates}, H], b [{gates}]", f"d [{gates}]"]
        *others, last = [*shapes, *(f"{state} [1, H]" for state in names)]
        require_fit(b, name, of, fits, f"{', '.join(others)} and {last}")

        def reordered(x: int) -> int:
            parts = [take(b, x, 0, j * hidden, (j + 1) * hidden) for j in order]
            return b.add("concat", *parts, axis=0) if len(parts) > 1 else x

        zero = literal(b, 0, "float32")
        states = [*of[5:]] if given else [expand(b, zero, (1, hidden))] * len(states_of(kind))
        both = b.add("concat", reordered(of[3]), reordered(of[4]), axis=0)
        operands = [reshape(b, of[0], (rows, 1, features)), reordered(of[1]), reordered(of[2]), both, *states]
        if kind == "lstm":
            operands.append(expand(b, zero, (3 * hidden,)))
        layer = b.add(kind, *operands, **LAYER_OPTIONS[kind])
        return reshape(b, layer, (rows, hidden))

    return build


def _pool(operator: str, name: str) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The rows 2 t and 2 t + 1, reduced to row t."""

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        ((rows, features),) = shapes_of(b, name, of, 2)
        require_fit(b, name, of, rows % 2 == 0, "an even number of rows")
        return b.add(operator, b.add("reshape", of[0], shape=(rows // 2, 2, features)), axes=(1,))

    return build


def _moved(name: str) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The operand itself, in another place."""

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        shapes_of(b, name, of, 2)
        return of[0]

    return build


def _pools(operator: str, name: str, steps: int) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The pooling of pairs of rows, ``steps`` times."""
    pool = _pool(operator, name)

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        ((rows, _),) = shapes_of(b, name, of, 2)
        require_fit(b, name, of, rows % (1 << steps) == 0, f"a multiple of {1 << steps} rows")
        x = of[0]
        for _ in range(steps):
            x = pool(b, [x], a)
        return x

    return build


def _layer_norm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """Every row with mean 0 and variance 1, times gamma, plus beta."""
    (_, features), gamma, beta = shapes_of(b, "flexasr.layer_norm", of, 2, 1, 1)
    require_fit(b, "flexasr.layer_norm", of, gamma == beta == (features,), "x [T, F], gamma [F] and beta [F]")
    return b.add("layer_norm", *of, axes=(1,), epsilon=a["epsilon"])


# -- the operators ---------------------------------------------------------------------------------------------------


_ROWS, _INPUTS, _OUTPUTS = map(size, ("rows", "features_in", "features_out"))
_X, _W, _B = input_("x", _ROWS, _INPUTS), input_("w", _OUTPUTS, _INPUTS), input_("b", _OUTPUTS)
_EXPONENTS = {f"host_{n}": size(f"bias_{n}") for n in ("x", "w", "b", "y")}


def _pool_joint(mapping: MappingClaim, steps: int) -> Joint:
    """That elements are rounded, pairs of rows pooled so many times, each time half as many, and codes read."""
    height, width, exponent = size("rounded_rows"), size("rounded_columns"), size("exponent")
    rows, last = height // (1 << steps), steps + 2
    x = input_("x", rows * (1 << steps), width)
    given: dict[str, IndexLike] = {f"height_{n + 2}": height // (1 << n) for n in range(steps)}
    given |= {f"width_{n + 2}": width for n in range(steps)}
    given |= {f"rounded_rows_{last}": rows, f"rounded_columns_{last}": width, f"exponent_{last}": exponent}
    domain = both(equal(height, rows * (1 << steps)), le(1 << steps, height))
    return Joint(mapping, (x,), {"host_x": x}, given, domain=domain)


def _recurrent_joint(kind: str, given: bool) -> Joint:
    """That gates are put in the order of the core, and that each timestep stores its states."""
    order = IN_CORE[kind]
    steps, inputs, features = map(size, ("rows", "input_features", "features"))
    stacked = features * len(order)
    x, w, u = input_("x", steps, inputs), input_("w", stacked, inputs), input_("u", stacked, features)
    b, d = input_("b", stacked), input_("d", stacked)

    def ordered(operand: Tensor) -> Tensor:
        rest = operand.shape[1:]
        parts = (slice_(operand, [features * j, *(0 for _ in rest)], [features * (j + 1), *rest]) for j in order)
        return concat(0, *parts)

    laid = {"host_w": ordered(w), "host_u": ordered(u), "host_b": ordered(b), "host_c": ordered(d)}
    exponents = {f"host_{name}": size(f"bias_{name}") for name in ("x", "w", "b", "u", "c")}
    kept = ("tensor_out", "tensor_state")[: len(states_of(kind))]
    first = {f"host_{name}0": input_(f"{name}0", 1, features) for name in (states_of(kind) if given else ())}
    exponents |= dict.fromkeys(first, size("bias_h"))
    return Joint(
        (claims.RECURRENT_FROM if given else claims.RECURRENT)[kind],
        (x, w, u, b, d, *first.values()),
        {"host_x": x, **laid, **first},
        exponents={**exponents, **dict.fromkeys(kept, size("bias_h"))},
        states={memory: input_(name, steps, features) for memory, name in zip(kept, "hc", strict=False)},
    )


LINEAR: Final = AcceleratorOperator(
    "flexasr.linear",
    "FlexASR's dense layer: activation(x w^T + b).",
    range(3, 4),
    expand=dense_layer("flexasr.linear", ACTIVATIONS, ("T", "I", "O")),
    attributes=frozenset({"activation"}),
    mappings=tuple(claims.LINEAR.values()),
    selected=by_activation(claims.LINEAR),
    code=linear.Linear,
    bounds={claims.LINEAR[a]: (bounds.LINEAR[a],) for a in ACTIVATIONS},
    splits=tuple(DENSE_IN_BOXES.values()),
    joints=tuple(
        Joint(
            mapping,
            (_X, _W, _B),
            {"host_x": _X, "host_w": _W, "host_b": _B},
            attributes={"activation": activation},
            exponents=_EXPONENTS,
        )
        for activation, mapping in claims.LINEAR.items()
    ),
)

_LAYERS: Final = {"lstm": "LSTM", "gru": "GRU", "rnn": "plain recurrent"}

RECURRENT: Final = {
    kind: AcceleratorOperator(
        f"flexasr.{kind}",
        f"FlexASR's {text} layer from a state of zeros.",
        range(5, 6),
        expand=_recurrent(kind, given=False),
        mappings=(claims.RECURRENT[kind],),
        code=Recurrent,
        bounds={claims.RECURRENT[kind]: bounds.STEPS[kind]},
        splits=(ZEROS[kind],),
        joints=(_recurrent_joint(kind, given=False),),
    )
    for kind, text in _LAYERS.items()
}
"""Recurrent layers, by kind."""

RECURRENT_FROM: Final = {
    kind: AcceleratorOperator(
        f"flexasr.{kind}_from",
        f"FlexASR's {text} layer from given states.",
        range(5 + len(states_of(kind)), 6 + len(states_of(kind))),
        expand=_recurrent(kind, given=True),
        mappings=(claims.RECURRENT_FROM[kind],),
        code=LstmFrom if kind == "lstm" else RecurrentFrom,
        bounds={claims.RECURRENT_FROM[kind]: bounds.STEPS_FROM[kind]},
        splits=(ZEROS[kind],),
        joints=(_recurrent_joint(kind, given=True),),
    )
    for kind, text in _LAYERS.items()
}
"""Those from given states, by kind."""

_REDUCTIONS: Final = {"max": "reduce_max", "mean": "mean"}


def _pool_operator(
    name: str, doc: str, expand: Callable[[Assembly, Sequence[int], Attributes], int], steps: int = 1
) -> AcceleratorOperator:
    program = pools.POOLS[name]
    return AcceleratorOperator(
        name,
        doc,
        range(1, 2),
        expand=expand,
        mappings=(program.mapping,),
        code=pools.Pool,
        bounds={program.mapping: (bounds.POOLINGS[program.kind],)},
        joints=(_pool_joint(program.mapping, steps),),
    )


POOLS: Final = {
    kind: _pool_operator(
        f"flexasr.{kind}_pool",
        f"FlexASR's {kind} pooling: the {text} of the rows 2 t and 2 t + 1.",
        _pool(_REDUCTIONS[kind], f"flexasr.{kind}_pool"),
    )
    for kind, text in (("max", "maximum"), ("mean", "mean"))
}
"""Poolings of pairs of rows, by kind."""

STORE, LOAD = (
    AcceleratorOperator(
        f"flexasr.{name}",
        f"FlexASR's buffer: {text}.",
        range(1, 2),
        expand=_moved(f"flexasr.{name}"),
        mappings=(claims.RELOAD,),
    )
    for name, text in (("store", "a matrix put there"), ("load", "a matrix taken from there"))
)

STORED_POOLS: Final = {
    kind: AcceleratorOperator(
        f"flexasr.stored_{kind}_pool",
        f"FlexASR's {kind} pooling from buffer to buffer.",
        range(1, 2),
        expand=_pool(operator, f"flexasr.stored_{kind}_pool"),
        mappings=(claims.POOLS[kind],),
        resident=True,
    )
    for kind, operator in _REDUCTIONS.items()
}
"""Poolings from buffer to buffer, by kind."""

POOL_CHAINS: Final = {
    (kind, steps): _pool_operator(
        f"flexasr.{kind}_pool_x{steps}",
        f"FlexASR's {kind} pooling {steps} times, between one store and one load.",
        _pools(_REDUCTIONS[kind], f"flexasr.{kind}_pool_x{steps}", steps),
        steps,
    )
    for kind, steps in claims.CHAINS
}
"""Poolings that are done several times in one program, by kind and number."""

_FEATURES = 16 * size("blocks")
_NORMALISED, _GAMMA, _BETA = input_("x", _ROWS, _FEATURES), input_("gamma", _FEATURES), input_("beta", _FEATURES)
_NORM_CODES: Final = {"x": "x", "gamma": "gamma", "beta": "beta", "y": "x"}
"""Whose bias the codes of each tensor have."""

LAYER_NORM: Final = AcceleratorOperator(
    "flexasr.layer_norm",
    "FlexASR's layer normalisation: rows with mean 0 and variance 1, times gamma, plus beta.",
    range(3, 4),
    expand=_layer_norm,
    attributes=frozenset({"epsilon"}),
    mappings=(claims.LAYER_NORM,),
    code=LayerNorm,
    bounds={claims.LAYER_NORM: (bounds.LAYER_NORM,)},
    joints=(
        Joint(
            claims.LAYER_NORM,
            (_NORMALISED, _GAMMA, _BETA),
            {"host_x": _NORMALISED, "host_gamma": _GAMMA, "host_beta": _BETA},
            numbers=frozenset({"epsilon"}),
            exponents={f"host_{name}": size(f"bias_{code}") for name, code in _NORM_CODES.items()},
            bound=bounds.LAYER_NORM,
        ),
    ),
)

OPERATORS: Final = (
    LINEAR,
    *RECURRENT.values(),
    *RECURRENT_FROM.values(),
    *POOLS.values(),
    STORE,
    LOAD,
    *STORED_POOLS.values(),
    *POOL_CHAINS.values(),
    LAYER_NORM,
)
"""All of them."""
