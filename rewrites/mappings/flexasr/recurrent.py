"""The mappings of recurrent layers (RNN, GRU, LSTM) to FlexASR's processing elements.

IR side: one recurrent instruction.  Device side: the program of the published drivers; see
:mod:`rewrites.mappings.flexasr.layers`.  After every timestep GBControl sends the output back to all PEs as the hidden
state; the activation units keep the cells' states.  From states of zeros, cores skip products with the hidden state at
the first timestep; given states are stored where later ones lie, and nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from accel_models.flexasr import micro_programs as programs
from accel_models.flexasr.functions import eadd, emul, onex, pe_add_bias, pe_saturate, pe_shift, sigmoid, tanh
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Ila, Kernel, bv, mem, primitive, var
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.layer import call
from ir_semantics.layers.recurrent import RECURRENT_CODE, RecurrentCell, recurrent_ir

from .buffers import BASE, HOST_X, HOST_Y, T
from .layers import NI, NO, LayerProgram, Matrix, emit_layer, layer_domain, layer_mapping, sizes_within
from .linear import INDEX_WIDTH, SUMS, multiply_add
from .mapping import ASSUMPTIONS

HOST_W, HOST_B, HOST_U, HOST_C = (var(n, mem(32, 8)) for n in ("host_w", "host_b", "host_u", "host_c"))
INDICES_W, INDICES_U = (var(n, mem(32, INDEX_WIDTH)) for n in ("host_w", "host_u"))
TABLE_W, TABLE_U = (var(n, mem(32, 8)) for n in ("host_w_table", "host_u_table"))
"""Clustered weights: indices of 16 codes for each matrix."""
HOST_H0, HOST_C0 = var("host_h0", mem(32, 8)), var("host_c0", mem(32, 8))
"""The first hidden state, and an LSTM's first cell state."""
BIASES = {n: var(n, bv(32)) for n in ("bias_w", "bias_x", "bias_b", "bias_u", "bias_c", "bias_h")}
"""AdaptivFloat biases of W, x and its layer bias, of U and its layer bias, and of hidden and cell states."""
PARAMETERS = {"T": T, "ni": NI, "no": NO, "base": BASE, **BIASES}
PARAMETER_TEXTS = {
    "T": "timesteps",
    "ni": "vectors of 16 input features",
    "no": "vectors of 16 features of the state of each of four processing elements",
    "base": "first vector of the result in the large buffer",
    "bias_w": "AdaptivFloat bias of the weights of x",
    "bias_x": "AdaptivFloat bias of x",
    "bias_b": "AdaptivFloat bias of the layer bias beside x",
    "bias_u": "AdaptivFloat bias of the weights of the state",
    "bias_c": "AdaptivFloat bias of the layer bias beside the state",
    "bias_h": "AdaptivFloat bias of the state and the result",
}
ABSTRACT = ("adpfloat_mul", "pe_shift", "pe_add_bias", "pe_saturate", "fixed_to_adpfloat", "adpfloat_to_fixed",
            "eadd", "emul", "onex", "sigmoid", "tanh")  # fmt: skip


@primitive(bv(20), acc=bv(32), b=bv(8), bias_w=bv(3), bias_x=bv(3), bias_b=bv(3))
def project(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr) -> Expr:
    """A sum of products in Q6.14, plus a layer bias, saturated."""
    return pe_saturate(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_b))


Pairs = Sequence[tuple[Expr, Expr]]


def combine_rnn(pairs: Pairs, state: Expr) -> tuple[Expr, Expr]:
    """h = tanh(W x + U h)."""
    (a, b) = pairs[0]
    h = tanh(eadd(b, a))
    return h, h


def combine_gru(pairs: Pairs, state: Expr) -> tuple[Expr, Expr]:
    """h' = (1 - z) * n + z * h with n = tanh(W_n x + r * U_n h)."""
    (r_x, r_h), (n_x, n_h), (z_x, z_h) = pairs
    r = sigmoid(eadd(r_h, r_x))
    n = tanh(eadd(n_x, emul(n_h, r)))
    z = sigmoid(eadd(z_h, z_x))
    h = eadd(emul(z, state), emul(onex(z), n))
    return h, h


def combine_lstm(pairs: Pairs, state: Expr) -> tuple[Expr, Expr]:
    """c' = f * c + i * g and h = o * tanh(c')."""
    (i_x, i_h), (g_x, g_h), (f_x, f_h), (o_x, o_h) = pairs
    i, g = sigmoid(eadd(i_h, i_x)), tanh(eadd(g_h, g_x))
    f, o = sigmoid(eadd(f_h, f_x)), sigmoid(eadd(o_h, o_x))
    c = eadd(emul(state, f), emul(g, i))
    return c, emul(o, tanh(c))


CELLS = {
    "rnn": (("h",), programs.RNN, combine_rnn, ""),
    "gru": (("r", "n", "z"), programs.GRU, combine_gru, "output"),
    "lstm": (("i", "g", "f", "o"), programs.LSTM, combine_lstm, "state"),
}
"""Gates in the order in which the core computes them, micro-program, meaning, and which state is kept."""


def cell_of(kind: str) -> RecurrentCell:
    """The IR's cell over AdaptivFloat codes with the accelerator's rounding."""
    gates, _, combine, keeps = CELLS[kind]
    return RecurrentCell(
        name=kind,
        gates=gates,
        step=multiply_add,
        project=project,
        widen=adpfloat_to_fixed,
        narrow=fixed_to_adpfloat,
        combine=combine,
        keeps=keeps,
        inputs=("bias_w", "bias_x", "bias_b"),
        hidden=("bias_u", "bias_h", "bias_c"),
        state="bias_h",
        parameters=dict.fromkeys(BIASES, 3),
    )


def ir_fragment(kind: str, *, given: bool = False, clustered: bool = False) -> Fragment:
    """One recurrent instruction, from states of zeros or ``given`` ones."""
    operands = {"rows": T, "input_features": NI << 4, "features": NO << 6, **{n: v[2:0] for n, v in BIASES.items()}}
    ila = recurrent_ir(cell_of(kind), given=given, index_width=INDEX_WIDTH if clustered else 0)
    return call(f"ir_{kind}", f"{kind} layer", RECURRENT_CODE, ila, PARAMETERS, operands)


def matrices_of(clustered: bool) -> list[Matrix]:
    """The matrices beside the input and beside the hidden state."""
    b = BIASES
    matrices = [
        Matrix("w", HOST_W, HOST_B, NI, b["bias_w"], b["bias_x"], b["bias_b"]),
        Matrix("u", HOST_U, HOST_C, NO << 2, b["bias_u"], b["bias_h"], b["bias_c"]),
    ]
    if clustered:
        tables = ((INDICES_W, TABLE_W), (INDICES_U, TABLE_U))
        matrices = [replace(m, weights=w, table=t) for m, (w, t) in zip(matrices, tables, strict=True)]
    return matrices


def recurrent_fragment(kind: str, ila: Ila, *, given: bool = False, clustered: bool = False) -> Fragment:
    """The FlexASR program of a recurrent layer, from states of zeros or ``given`` ones."""
    gates, micro_program, _, keeps = CELLS[kind]
    program, matrices = Kernel(f"flexasr_{kind}"), matrices_of(clustered)
    kept = {"": (), "output": (HOST_H0,), "state": (HOST_C0,)}[keeps]
    states = (HOST_H0, *kept) if given else ()
    code = programs.assemble(micro_program)
    emit_layer(LayerProgram(program, ila), matrices, len(gates), code, BIASES["bias_h"], states)
    weights = [t for m in matrices for t in (m.weights, m.table, m.bias) if t is not None]
    tensors = {t.name: t for t in (HOST_X, *weights, *states, HOST_Y)}
    return Fragment(program.name, ila, PARAMETERS, tensors, program)


def domain_of(gates: int, vectors_of_tile: int) -> tuple[tuple[str, Expr], ...]:
    """All sizes that FlexASR's registers and buffers admit."""
    inputs = f"ni + {2 * gates + 4}*no <= 256 vectors of a PE's input buffer"
    weights = f"{vectors_of_tile * gates}*no*(ni + 4*no) <= 65536 vectors of a PE's weight buffer"
    buffers = (
        (inputs, NI + NO * (2 * gates + 4) <= 256),
        (weights, (NO * gates) * (NI + NO * 4) * vectors_of_tile <= 65536),
    )
    return layer_domain(min(32, 255 // gates), buffers, BIASES)


def recurrent_mapping(
    kind: str, options: FlexAsrOptions | None = None, *, given: bool = False, clustered: bool = False
) -> TensorMapping:
    """The mapping ``flexasr_{kind}``, "rnn", "gru" or "lstm", or ``flexasr_{kind}_from`` where states are ``given``.

    ``options`` select another reading of the hardware.  Of ``clustered`` weights each is an index of one of 16 codes.
    """
    gates, matrices = CELLS[kind][0], matrices_of(clustered)
    states = (("host_h0", "tensor_first_out"), *((("host_c0", "tensor_first_state"),) if kind == "lstm" else ()))

    def sizes_of(rows: int, features_in: int, features: int) -> dict[str, int]:
        what = f"a FlexASR {kind} mapping"
        return sizes_within(what, rows, features_in, features, len(gates), matrices) | dict.fromkeys(BIASES, 0)

    return layer_mapping(
        name=f"flexasr_{kind}{'_from' if given else ''}{'_clustered' if clustered else ''}",
        ir=ir_fragment(kind, given=given, clustered=clustered),
        device=recurrent_fragment(kind, flexasr(options), given=given, clustered=clustered),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=domain_of(len(gates), matrices[0].vectors_of_tile),
        inputs=(
            ("host_x", "tensor_in"),
            ("host_w", "tensor_weights"),
            ("host_b", "tensor_bias"),
            ("host_u", "tensor_hidden_weights"),
            ("host_c", "tensor_hidden_bias"),
            *((("host_w_table", "tensor_table"), ("host_u_table", "tensor_hidden_table")) if clustered else ()),
            *(states if given else ()),
        ),
        abstract=frozenset(ABSTRACT),
        sizes_of=sizes_of,
        statement=f"FlexASR's {kind} program computes the quantised {kind} layer from "
        f"{'given states' if given else 'a state of zeros'}, every timestep"
        f"{', each weight an index of one of 16 codes' if clustered else ''}",
        assumptions=(
            *ASSUMPTIONS,
            "inputs are padded to 16 features, states to 64 (with weights of zero where padding must have no effect)",
        ),
        shape_names=("rows", "features_in", "features"),
        recurrent=True,
        sums=SUMS,
    )
