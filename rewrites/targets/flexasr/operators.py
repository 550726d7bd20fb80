"""Accelerator operators as operators of the graph IR, each with an exact meaning: the graph that it stands for.

Over the real numbers an accelerator operator *is* its graph of tensor IR operators, so that rules about it are
equalities like all others.  How such a node is executed is another matter: by programs of an accelerator whose proved
mapping says that they compute the quantised operator, and whose proved theorem says how far that is from the exact one.

All tensors are float32.  Importing this module registers the operators.  Shapes, with T rows, I input and O output
features, a state of H, images [N, C, height, width] and F filters:

==================  =============================================================  ==========================
operator            operands                                                       result
==================  =============================================================  ==========================
flexasr.linear      x [T, I], w [O, I], b [O]; ``activation``                      [T, O]
flexasr.lstm        x [T, I], w [4H, I], u [4H, H], b [4H], d [4H]                 [T, H]
flexasr.gru         x [T, I], w [3H, I], u [3H, H], b [3H], d [3H]                 [T, H]
flexasr.rnn         x [T, I], w [H, I], u [H, H], b [H], d [H]                     [T, H]
flexasr.max_pool    x [2T, F]                                                      [T, F]
flexasr.mean_pool   x [2T, F]                                                      [T, F]
flexasr.layer_norm  x [T, F], gamma [F], beta [F]; ``epsilon``                     [T, F]
flexasr.store       x [T, F]                                                       x, in FlexASR's buffer
flexasr.load        x [T, F] in FlexASR's buffer                                   x, on the host
hlscnn.conv2d       x [N, C, H, W], w [F, C, kh, kw]; ``stride_h``, ``stride_w``   [N, F, OH, OW]
vta.dense           x [M, K], w [N, K]                                             [M, N]
==================  =============================================================  ==========================

``flexasr.stored_max_pool`` and ``flexasr.stored_mean_pool`` are the poolings from buffer to buffer, and
``flexasr.max_pool_x2``, ``_x3``, ``_x4`` and ``flexasr.mean_pool_x2`` as many of them between one store and one load.

Gates are stacked in the order i, f, g, o (lstm) and r, z, n (gru), which is PyTorch's; states are zero at first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ir_semantics.graph.ir import Attributes, integer_of
from ir_semantics.graph.operator import Assembly, Operator, composite
from ir_semantics.graph.types import GraphError
from ir_semantics.graph.words import expand, literal, reshape, take, transpose

__all__ = [
    "ACCELERATOR_OPERATORS",
    "ACTIVATIONS",
    "GATES",
    "LAYER_OPTIONS",
    "TARGETS",
    "AcceleratorOperator",
    "mappings_of",
]

TARGETS: Final = ("flexasr", "hlscnn", "vta")
"""The accelerators."""

ACTIVATIONS: Final = ("none", "relu", "sigmoid", "tanh")
"""What ``flexasr.linear`` may apply to its result."""

CHAINS: Final[tuple[tuple[Literal["max", "mean"], int], ...]] = (("max", 2), ("max", 3), ("max", 4), ("mean", 2))
"""Poolings of pairs of rows that FlexASR does several times in one program: their kind and number."""

GATES: Final[Mapping[str, tuple[int, ...]]] = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""For each gate of the tensor IR's recurrent layer (ONNX's order), its place among the accelerator operator's."""


_PLAIN: Final[Attributes] = {"clip": 0.0, "lengths": False, "output": 0, "reverse": False}
LAYER_OPTIONS: Final[Mapping[str, Attributes]] = {
    "lstm": {"activations": (("sigmoid",), ("tanh",), ("tanh",)), "input_forget": False, **_PLAIN},
    "gru": {"activations": (("sigmoid",), ("tanh",)), "linear_before_reset": True, **_PLAIN},
    "rnn": {"activations": (("tanh",),), **_PLAIN},
}
"""The tensor IR's recurrent layers that FlexASR has: their attributes."""


def _given(b: Assembly, name: str, of: Sequence[int], *ranks: int) -> list[tuple[int, ...]]:
    """The shapes of operands; raises GraphError where their ranks or elements are not those of the operator."""
    types = [b.type(x) for x in of]
    if any(t.dtype != "float32" or t.rank != rank for t, rank in zip(types, ranks, strict=True)):
        wanted = ", ".join(map(str, ranks))
        raise GraphError(f"{name} must be given float32 tensors with {wanted} axes, not {', '.join(map(str, types))}")
    return [t.shape for t in types]


def _agree(b: Assembly, name: str, of: Sequence[int], fits: bool, wanted: str) -> None:
    if not fits:
        told = ", ".join(str(b.type(x)) for x in of)
        raise GraphError(f"{name} must be given {wanted}, not {told}")


def _linear(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """activation(x w^T + b)."""
    (rows, features), (outputs, inner), bias = _given(b, "flexasr.linear", of, 2, 2, 1)
    _agree(b, "flexasr.linear", of, inner == features and bias == (outputs,), "x [T, I], w [O, I] and b [O]")
    activation = a.get("activation")
    if activation not in ACTIVATIONS:
        raise GraphError(
            f"the activation of flexasr.linear must be one of {', '.join(ACTIVATIONS)}, not {activation!r}"
        )
    product = b.add("matmul", of[0], transpose(b, of[1], [1, 0]))
    total = b.add("add", product, b.add("broadcast", of[2], axes=(1,), shape=(rows, outputs)))
    return total if activation == "none" else b.add(str(activation), total)


def _recurrent(kind: str) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The layer of the tensor IR with one sequence, gates in its order, and states of zeros."""
    order, name = GATES[kind], f"flexasr.{kind}"

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        (rows, features), w, u, bias, other = _given(b, name, of, 2, 2, 2, 1, 1)
        stacked, hidden = u
        fits = stacked == len(order) * hidden and w == (stacked, features) and bias == other == (stacked,)
        gates = f"{len(order)}H" if len(order) > 1 else "H"
        wanted = f"x [T, I], w [{gates}, I], u [{gates}, H], b [{gates}] and d [{gates}]"
        _agree(b, name, of, fits, wanted)

        def reordered(x: int) -> int:
            parts = [take(b, x, 0, j * hidden, (j + 1) * hidden) for j in order]
            return b.add("concat", *parts, axis=0) if len(parts) > 1 else x

        zero = literal(b, 0, "float32")
        state = expand(b, zero, (1, hidden))
        both = b.add("concat", reordered(of[3]), reordered(of[4]), axis=0)
        operands = [reshape(b, of[0], (rows, 1, features)), reordered(of[1]), reordered(of[2]), both, state]
        if kind == "lstm":
            operands += [state, expand(b, zero, (3 * hidden,))]
        layer = b.add(kind, *operands, **LAYER_OPTIONS[kind])
        return reshape(b, layer, (rows, hidden))

    return build


def _pool(operator: str, name: str) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The rows 2 t and 2 t + 1, reduced to row t."""

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        ((rows, features),) = _given(b, name, of, 2)
        _agree(b, name, of, rows % 2 == 0, "an even number of rows")
        return b.add(operator, b.add("reshape", of[0], shape=(rows // 2, 2, features)), axes=(1,))

    return build


def _moved(name: str) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The operand itself, in another place."""

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        _given(b, name, of, 2)
        return of[0]

    return build


def _pools(operator: str, name: str, steps: int) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """The pooling of pairs of rows, ``steps`` times."""
    pool = _pool(operator, name)

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        ((rows, _),) = _given(b, name, of, 2)
        _agree(b, name, of, rows % (1 << steps) == 0, f"a multiple of {1 << steps} rows")
        x = of[0]
        for _ in range(steps):
            x = pool(b, [x], a)
        return x

    return build


def _layer_norm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """Every row with mean 0 and variance 1, times gamma, plus beta."""
    (_, features), gamma, beta = _given(b, "flexasr.layer_norm", of, 2, 1, 1)
    _agree(b, "flexasr.layer_norm", of, gamma == beta == (features,), "x [T, F], gamma [F] and beta [F]")
    return b.add("layer_norm", *of, axes=(1,), epsilon=a["epsilon"])


def _conv2d(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """Cross-correlation of images with filters, without pads, dilations, groups and bias."""
    (_, channels, _, _), w = _given(b, "hlscnn.conv2d", of, 4, 4)
    _agree(b, "hlscnn.conv2d", of, w[1] == channels, "x [N, C, H, W] and w [F, C, kh, kw]")
    strides = (integer_of(a, "stride_h"), integer_of(a, "stride_w"))
    return b.add("conv", *of, strides=strides, pads=((0, 0), (0, 0)), dilations=(1, 1), groups=1)


def _dense(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """x w^T."""
    x, w = _given(b, "vta.dense", of, 2, 2)
    _agree(b, "vta.dense", of, x[1] == w[1], "x [M, K] and w [N, K]")
    return b.add("matmul", of[0], transpose(b, of[1], [1, 0]))


@dataclass(frozen=True)
class AcceleratorOperator:
    """An accelerator operator: which accelerator, the operator of the graph IR, and the mappings that may execute it.

    ``mappings`` are names of claims.  With an ``activation`` the mapping is the one for it, by its value; otherwise
    any of them executes the operator (they differ in sizes and formats), and one of them must hold a certificate.
    Operands and result of a ``resident`` operator stay in the accelerator's memory.
    """

    target: str
    operator: Operator
    mappings: tuple[str, ...]
    by_activation: bool = False
    resident: bool = False

    @property
    def name(self) -> str:
        """The operator's name in graphs."""
        return self.operator.name


_REDUCTIONS = {"max": "reduce_max", "mean": "mean"}
_LINEAR = tuple("flexasr_linear" + ("" if a == "none" else f"_{a}") for a in ACTIVATIONS)

ACCELERATOR_OPERATORS: Final[Mapping[str, AcceleratorOperator]] = {
    o.name: o
    for o in (
        AcceleratorOperator(
            "flexasr",
            composite(
                "flexasr.linear",
                _linear,
                arity=3,
                attributes="activation",
                doc="FlexASR's dense layer: activation(x w^T + b).",
            ),
            _LINEAR,
            by_activation=True,
        ),
        *(
            AcceleratorOperator(
                "flexasr",
                composite(
                    f"flexasr.{kind}", _recurrent(kind), arity=5, doc=f"FlexASR's {text} layer from a state of zeros."
                ),
                (f"flexasr_{kind}",),
            )
            for kind, text in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn", "plain recurrent"))
        ),
        *(
            AcceleratorOperator(
                "flexasr",
                composite(
                    f"flexasr.{kind}_pool",
                    _pool(operator, f"flexasr.{kind}_pool"),
                    doc=f"FlexASR's {kind} pooling: the {text} of the rows 2 t and 2 t + 1.",
                ),
                (f"flexasr_{kind}pool",),
            )
            for kind, operator, text in (("max", "reduce_max", "maximum"), ("mean", "mean", "mean"))
        ),
        *(
            AcceleratorOperator(
                "flexasr",
                composite(f"flexasr.{name}", _moved(f"flexasr.{name}"), doc=f"FlexASR's buffer: {text}."),
                ("flexasr_reload",),
            )
            for name, text in (("store", "a matrix put there"), ("load", "a matrix taken from there"))
        ),
        *(
            AcceleratorOperator(
                "flexasr",
                composite(
                    f"flexasr.stored_{kind}_pool",
                    _pool(operator, f"flexasr.stored_{kind}_pool"),
                    doc=f"FlexASR's {kind} pooling from buffer to buffer.",
                ),
                (f"flexasr_{kind}pool",),
                resident=True,
            )
            for kind, operator in _REDUCTIONS.items()
        ),
        *(
            AcceleratorOperator(
                "flexasr",
                composite(
                    f"flexasr.{kind}_pool_x{steps}",
                    _pools(_REDUCTIONS[kind], f"flexasr.{kind}_pool_x{steps}", steps),
                    doc=f"FlexASR's {kind} pooling {steps} times, between one store and one load.",
                ),
                (f"flexasr_{kind}pool_x{steps}",),
            )
            for kind, steps in CHAINS
        ),
        AcceleratorOperator(
            "flexasr",
            composite(
                "flexasr.layer_norm",
                _layer_norm,
                arity=3,
                attributes="epsilon",
                doc="FlexASR's layer normalisation: rows with mean 0 and variance 1, times gamma, plus beta.",
            ),
            ("flexasr_layernorm",),
        ),
        AcceleratorOperator(
            "hlscnn",
            composite(
                "hlscnn.conv2d",
                _conv2d,
                arity=2,
                attributes="stride_h stride_w",
                doc="HLSCNN's convolution, without pads and bias.",
            ),
            ("hlscnn_conv2d_8bit", "hlscnn_conv2d"),
        ),
        AcceleratorOperator(
            "vta",
            composite("vta.dense", _dense, arity=2, doc="VTA's dense layer: x w^T."),
            ("vta_gemm", "vta_dense"),
        ),
    )
}
"""All accelerator operators, by name."""


def mappings_of(operator: str, attributes: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the mappings that may execute a node; raises KeyError for what is no accelerator operator."""
    found = ACCELERATOR_OPERATORS[operator]
    if not found.by_activation:
        return found.mappings
    return (found.mappings[ACTIVATIONS.index(str(attributes["activation"]))],)
