"""The mapping of a dense layer to FlexASR's processing elements.

IR side: one dense instruction on x [T, 16*ni], weights [64*no, 16*ni] and a bias [64*no], summing over features in
one of several orders.  Device side: the program of the published drivers.  Cores, activation units and managers of all
four PEs are configured, weights and biases go to the PEs' buffers, x to the large buffer, GBControl runs over all
timesteps, and the result is read.

PE p computes the vectors p*no .. p*no + no - 1 of the output.
"""

from __future__ import annotations

from accel_models.flexasr import micro_programs as programs
from accel_models.flexasr.functions import adpfloat_mul, pe_add_bias, pe_saturate, pe_shift, relu, sigmoid, tanh
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import fixed_to_adpfloat
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Function, Ila, Kernel, bv, mem, primitive, var
from ila_lang.mapping import Reduction, TensorMapping
from ir_semantics.layers.dense import DENSE_CODE, DenseOperator, Order, dense_ir
from ir_semantics.layers.layer import call

from .buffers import BASE, HOST_X, HOST_Y, T
from .layers import NI, NO, LayerProgram, Matrix, emit_layer, layer_domain, layer_mapping, sizes_within
from .mapping import ASSUMPTIONS

BIASES = {name: var(name, bv(32)) for name in ("bias_w", "bias_b", "bias_x", "bias_y")}
PARAMETERS = {"T": T, "ni": NI, "no": NO, "base": BASE, **BIASES}
PARAMETER_TEXTS = {
    "T": "rows",
    "ni": "vectors of 16 input features",
    "no": "vectors of 16 output features of each of four processing elements",
    "base": "first vector of the result in the large buffer",
    "bias_w": "AdaptivFloat bias of the weights",
    "bias_b": "AdaptivFloat bias of the layer bias",
    "bias_x": "AdaptivFloat bias of x",
    "bias_y": "AdaptivFloat bias of the result",
}


def domain_of(vectors_of_tile: int) -> tuple[tuple[str, Expr], ...]:
    """All sizes that FlexASR's registers and buffers admit."""
    weights = f"{vectors_of_tile}*no*ni <= 65536 vectors of a PE's weight buffer"
    buffers = (
        ("ni + no <= 256 vectors of a PE's input buffer", NI + NO <= 256),
        (weights, NO * NI * vectors_of_tile <= 65536),
    )
    return layer_domain(63, buffers, BIASES)


HOST_W, HOST_B = var("host_w", mem(32, 8)), var("host_b", mem(32, 8))
INDEX_WIDTH = 4
HOST_INDICES, HOST_TABLE = var("host_w", mem(32, INDEX_WIDTH)), var("host_table", mem(32, 8))
"""Clustered weights: indices of 16 codes."""
ACTIVATIONS: dict[str | None, Function | None] = {None: None, "relu": relu, "sigmoid": sigmoid, "tanh": tanh}


@primitive(bv(32), a=bv(32), b=bv(32))
def accumulate(a: Expr, b: Expr) -> Expr:
    """The sum of two accumulators; wraps at 32 bits, so that the order of a sum does not matter."""
    return a + b


SUMS = (Reduction(accumulate, 0),)
"""What every sum of products is added up by."""


@primitive(bv(32), acc=bv(32), w=bv(8), x=bv(8))
def multiply_add(acc: Expr, w: Expr, x: Expr) -> Expr:
    """The accumulator plus the exact product of two codes; wraps at 32 bits."""
    return acc + adpfloat_mul(w, x)


def finish_of(activation: str | None) -> Function:
    """The end of a dense layer: shift to Q6.14, add the bias, saturate, activation, encode."""
    function = ACTIVATIONS[activation]

    def finish(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
        """The code of the activation of a sum of products plus the layer's bias."""
        total = pe_saturate(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_b))
        return fixed_to_adpfloat(total if function is None else function(total), bias_y)

    name = f"dense_finish_{activation}" if activation else "dense_finish"
    biases = {n: bv(3) for n in ("bias_w", "bias_x", "bias_b", "bias_y")}
    return primitive(bv(8), name=name, acc=bv(32), b=bv(8), **biases)(finish)


def operator_of(activation: str | None) -> DenseOperator:
    """The IR's element type: AdaptivFloat codes with the accelerator's rounding."""
    parameters = dict.fromkeys(("bias_w", "bias_x", "bias_b", "bias_y"), 3)
    return DenseOperator(multiply_add, finish_of(activation), parameters, accumulate)


def ir_fragment(activation: str | None, order: Order = Order.FORWARD, *, clustered: bool = False) -> Fragment:
    """One dense instruction, of an IR that sums in this order."""
    operands = {"rows": T, "features_in": NI << 4, "features_out": NO << 6, **{n: v[2:0] for n, v in BIASES.items()}}
    ila = dense_ir(operator_of(activation), order, index_width=INDEX_WIDTH if clustered else 0)
    return call("ir_dense", "dense layer", DENSE_CODE, ila, PARAMETERS, operands)


def matrix_of(clustered: bool) -> Matrix:
    """The layer's matrix."""
    weights, table = (HOST_INDICES, HOST_TABLE) if clustered else (HOST_W, None)
    return Matrix("weights", weights, HOST_B, NI, BIASES["bias_w"], BIASES["bias_x"], BIASES["bias_b"], table)


def linear_fragment(activation: str | None, ila: Ila, *, clustered: bool = False) -> Fragment:
    """The FlexASR program of a dense layer."""
    program, matrix = Kernel("flexasr_linear"), matrix_of(clustered)
    micro_program = programs.assemble(programs.linear_program(activation))
    emit_layer(LayerProgram(program, ila), [matrix], 1, micro_program, BIASES["bias_y"])
    table = () if matrix.table is None else (matrix.table,)
    tensors = {t.name: t for t in (HOST_X, matrix.weights, *table, HOST_B, HOST_Y)}
    return Fragment("flexasr_linear", ila, PARAMETERS, tensors, program)


def linear_mapping(
    activation: str | None = None,
    options: FlexAsrOptions | None = None,
    order: Order = Order.FORWARD,
    *,
    clustered: bool = False,
) -> TensorMapping:
    """The mapping ``flexasr_linear``, with ``activation`` None, "relu", "sigmoid" or "tanh" after it.

    ``options`` select another reading of the hardware, and ``order`` that of the IR's sums.  The processing elements
    sum from the first feature to the last.  Of ``clustered`` weights each is an index of one of 16 codes.
    """
    function, matrix = ACTIVATIONS[activation], matrix_of(clustered)
    functions = [adpfloat_mul, pe_shift, pe_add_bias, pe_saturate, fixed_to_adpfloat, *([function] if function else [])]
    suffix = f"_{activation}" if activation else ""
    after = f", then {activation}" if activation else ""
    if order is not Order.FORWARD:
        suffix, after = f"{suffix}_{order.value}", f"{after}, the IR summing {order.words}"
    if clustered:
        suffix, after = f"{suffix}_clustered", f"{after}, each weight an index of one of 16 codes"

    def sizes_of(rows: int, features_in: int, features_out: int) -> dict[str, int]:
        what = "a FlexASR linear mapping"
        return sizes_within(what, rows, features_in, features_out, 1, [matrix]) | dict.fromkeys(BIASES, 0)

    return layer_mapping(
        name=f"flexasr_linear{suffix}",
        ir=ir_fragment(activation, order, clustered=clustered),
        device=linear_fragment(activation, flexasr(options), clustered=clustered),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=domain_of(matrix.vectors_of_tile),
        inputs=(
            ("host_x", "tensor_in"),
            ("host_w", "tensor_weights"),
            *((("host_table", "tensor_table"),) if clustered else ()),
            ("host_b", "tensor_bias"),
        ),
        abstract=frozenset(f.name for f in functions),
        sizes_of=sizes_of,
        statement=f"FlexASR's linear program computes the quantised dense layer x w^T + b{after}",
        assumptions=(
            *ASSUMPTIONS,
            "inputs are padded to 16 features and outputs to 64; weights of padding may be anything",
        ),
        shape_names=("rows", "features_in", "features_out"),
        sums=SUMS,
    )
