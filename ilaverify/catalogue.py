"""The names that the command line knows: models, mappings and all other claims, built when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from .errors import UsageError

if TYPE_CHECKING:
    from ila_lang import Ila
    from ila_lang.mapping import TensorMapping
    from reports.subjects import Entry, Subject

T = TypeVar("T")

__all__ = [
    "FALSE_CLAIMS",
    "MAPPINGS",
    "MODELS",
    "SHAPED_MAPPINGS",
    "all_entries",
    "find_mapping",
    "find_model",
    "find_subject",
    "mapping_entries",
]


def _pooling(kind: str) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from rewrites.mappings.flexasr.pooling import pooling_mapping

        return pooling_mapping(kind)

    return build


def _chain(kind: str, steps: int, reloaded: bool = False) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from rewrites.mappings.flexasr.chains import chain_mapping

        return chain_mapping(kind, steps, reloaded=reloaded)

    return build


def _reload(what: str) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from rewrites.mappings.flexasr.chains import reload_mapping

        return reload_mapping(what)

    return build


def _linear(activation: str | None) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from rewrites.mappings.flexasr.linear import linear_mapping

        return linear_mapping(activation)

    return build


def _reordered(accelerator: str, order: str) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from ir_semantics.layers.dense import Order
        from rewrites.mappings.flexasr.linear import linear_mapping
        from rewrites.mappings.vta.dense import dense_mapping

        build = linear_mapping if accelerator == "flexasr_linear" else dense_mapping
        return build(order=Order(order))

    return build


def _recurrent(kind: str) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from rewrites.mappings.flexasr.recurrent import recurrent_mapping

        return recurrent_mapping(kind)

    return build


def _padding() -> TensorMapping:
    from rewrites.mappings.flexasr.padding import padding_mapping

    return padding_mapping()


def _layer_norm() -> TensorMapping:
    from rewrites.mappings.flexasr.layer_norm import layer_norm_mapping

    return layer_norm_mapping()


def _vta_elementwise(name: str) -> Callable[[], TensorMapping]:
    def build() -> TensorMapping:
        from rewrites.mappings.vta.elementwise import elementwise_mapping

        return elementwise_mapping(name)

    return build


def _vta_dense() -> TensorMapping:
    from rewrites.mappings.vta.dense import dense_mapping

    return dense_mapping()


def _vta_gemm() -> TensorMapping:
    from rewrites.mappings.vta.gemm import gemm_mapping

    return gemm_mapping()


def _attention() -> TensorMapping:
    from rewrites.mappings.flexasr.attention import attention_mapping

    return attention_mapping()


def _convolution() -> TensorMapping:
    from rewrites.mappings.hlscnn.convolution import convolution_mapping

    return convolution_mapping()


def _narrow_convolution() -> TensorMapping:
    from rewrites.mappings.hlscnn.convolution_8bit import narrow_mapping

    return narrow_mapping()


def _vta_padded() -> TensorMapping:
    from rewrites.mappings.vta.padded import padded_mapping

    return padded_mapping()


def _selection() -> TensorMapping:
    from rewrites.mappings.flexasr.pooling import selection_mapping

    return selection_mapping()


def _flexasr() -> Ila:
    from accel_models.flexasr.model import flexasr

    return flexasr()


def _hlscnn() -> Ila:
    from accel_models.hlscnn.model import hlscnn

    return hlscnn()


def _vta() -> Ila:
    from accel_models.vta.model import vta

    return vta()


def _ir() -> Ila:
    from rewrites.mappings.flexasr.pooling import ir_model

    return ir_model()


MODELS: Mapping[str, tuple[str, Callable[[], Ila]]] = {
    "flexasr": ("FlexASR at its AXI port: global buffer, processing elements and all units", _flexasr),
    "hlscnn": ("HLSCNN at its AXI port: scratchpads, transfers, convolution", _hlscnn),
    "vta": ("VTA at its instruction interface: scratchpads, tokens, LOAD, GEMM, ALU, STORE", _vta),
    "ir": ("the tensor IR, one instruction per operator", _ir),
}
"""Models by name: one line about each, and how to build it."""

MAPPINGS: Mapping[str, tuple[str, Callable[[], TensorMapping]]] = (
    {
        f"flexasr_{kind}pool": (
            f"{kind} pooling, window and stride (2, 1), on FlexASR's LayerReduce",
            _pooling(kind),
        )
        for kind in ("max", "mean", "add")
    }
    | {
        f"flexasr_{kind}pool_x{steps}": (
            f"{kind} pooling, window and stride (2, 1), {steps} times in place on FlexASR's LayerReduce",
            _chain(kind, steps),
        )
        for kind, steps in (("max", 2), ("max", 3), ("max", 4), ("mean", 2))
    }
    | {
        "flexasr_maxpool_x2_reloaded": (
            "max pooling twice on FlexASR, with a transfer to the host and back in between",
            _chain("max", 2, reloaded=True),
        ),
        "flexasr_reload": ("a matrix of FlexASR's buffer, loaded and stored again, is unchanged", _reload("matrix")),
        "flexasr_reload_rest": ("so are the unused rows of the matrix's last tiles", _reload("rest")),
        "flexasr_reload_apart": ("so is what lies outside of the matrix's tiles", _reload("apart")),
    }
    | {
        f"flexasr_linear{suffix}": (f"a dense layer{after}, on FlexASR's processing elements", _linear(activation))
        for suffix, after, activation in (
            ("", "", None),
            ("_relu", " with relu", "relu"),
            ("_sigmoid", " with sigmoid", "sigmoid"),
            ("_tanh", " with tanh", "tanh"),
        )
    }
    | {
        f"flexasr_{kind}": (f"{text} layers from a state of zeros, on FlexASR's processing elements", _recurrent(kind))
        for kind, text in (("rnn", "plain recurrent"), ("gru", "GRU"), ("lstm", "LSTM"))
    }
    | {
        "flexasr_zeropad": ("rows of zeros after a tensor, on FlexASR's ZeroPadding", _padding),
        "flexasr_layernorm": ("layer normalisation of each timestep, on FlexASR's LayerNorm", _layer_norm),
        "flexasr_attention": ("attention of one query, on FlexASR's Attention", _attention),
    }
    | {
        f"vta_{name}": (f"{text}, on VTA's ALU", _vta_elementwise(name))
        for name, text in (
            ("relu", "relu of int32, to bytes"),
            ("min", "the smaller elements of two int32 matrices, to bytes"),
            ("max", "the larger elements of two int32 matrices, to bytes"),
            ("add", "the sum of two int32 matrices, to bytes"),
            ("bias_add", "the sum of an int32 matrix and a row, to bytes"),
            ("min_imm", "an upper bound on int32, to bytes"),
            ("max_imm", "a lower bound on int32, to bytes"),
            ("add_imm", "the sum of int32 and a number, to bytes"),
            ("shift", "arithmetic shift right of int32, to bytes"),
            ("requantise", "shift right and saturation of int32 to bytes"),
        )
    }
    | {
        "vta_dense": ("a dense layer of bytes with bias and requantisation, on VTA's GEMM and ALU", _vta_dense),
        "vta_padded": ("a dense layer on rows between rows of zeros, by a padded LOAD of VTA", _vta_padded),
        "vta_gemm": ("a dense layer of any size, in blocks, on VTA's GEMM and ALU", _vta_gemm),
    }
    | {
        "hlscnn_conv2d": ("convolution with strides, bias and relu, on HLSCNN", _convolution),
        "hlscnn_conv2d_8bit": ("convolution with weights of 8 bits, on HLSCNN", _narrow_convolution),
    }
    | {"flexasr_maxpool_select": ("a false claim, kept as an example: max returns an operand unchanged", _selection)}
)
"""Mappings by name: one line about each, and how to build it."""

SHAPED_MAPPINGS: Mapping[str, tuple[str, Callable[[], TensorMapping], tuple[int, ...]]] = {
    f"{name}_{order}": (f"{text} that the IR sums {how}, at one shape", _reordered(name, order), shape)
    for name, order, text, how, shape in (
        ("flexasr_linear", "backward", "a dense layer on FlexASR", "from the last feature to the first", (2, 32, 64)),
        ("flexasr_linear", "blocked", "a dense layer on FlexASR", "in blocks of 16 features", (2, 32, 64)),
        ("vta_dense", "backward", "a dense layer of bytes on VTA", "from the last feature to the first", (1, 32, 16)),
    )
}
"""Likewise, mappings that no method proves for every size, and the shape that ``prove --all`` proves."""


FALSE_CLAIMS: Mapping[str, str] = {
    "flexasr_maxpool_select": "the 2020 checker assumes it; LayerReduce canonicalises -0",
}
"""Mappings that are false and kept as examples, with a word on why: they are fine if and only if they are REFUTED."""


def mapping_entries(names: Iterable[str] = (*MAPPINGS, *SHAPED_MAPPINGS)) -> dict[str, Entry]:
    """Mappings as claims that can be proved, checked and kept."""
    from functools import partial

    from reports.subjects import Entry
    from rewrites.claims.mapping import MappingSubject, ShapedMappingSubject
    from smt_encodings.claims import Status

    def entry(name: str) -> Entry:
        if name in SHAPED_MAPPINGS:
            summary, build, shape = SHAPED_MAPPINGS[name]
            return Entry(summary, partial(ShapedMappingSubject.at, shape, build), "mapping")
        summary, build = MAPPINGS[name]
        expected = Status.REFUTED if name in FALSE_CLAIMS else Status.PROVED
        return Entry(summary, partial(MappingSubject.built, build), "mapping", expected)

    return {name: entry(name) for name in names}


def all_entries() -> dict[str, Entry]:
    """Every claim: mappings, rules, lemmas, theorems."""
    from rewrites.claims.registry import entries

    return {**mapping_entries(), **entries()}


def find_subject(name: str) -> Subject:
    """The claim of that name; raises UsageError with close names otherwise."""
    known = mapping_entries([name]) if name in MAPPINGS or name in SHAPED_MAPPINGS else all_entries()
    if name not in known:
        close = get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see ilaverify list"
        raise UsageError(f"there is no claim named {name!r:.100} ({hint})")
    return known[name].build()


def find_model(name: str) -> Ila:
    """The model of that name; raises UsageError with the known names otherwise."""
    return _find("model", name, MODELS)


def find_mapping(name: str) -> TensorMapping:
    """The mapping of that name; raises UsageError with the known names otherwise."""
    return _find("mapping", name, {**MAPPINGS, **{n: (s, b) for n, (s, b, _) in SHAPED_MAPPINGS.items()}})


def _find(what: str, name: str, known: Mapping[str, tuple[str, Callable[[], T]]]) -> T:
    if name not in known:
        close = get_close_matches(name, known, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UsageError(f"{what} must be one of {', '.join(known)}, not '{name}'{hint}")
    return known[name][1]()
