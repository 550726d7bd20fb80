"""The mapping of layer normalisation to FlexASR's LayerNorm unit.

IR side: each row of x [T, 16*nv] to mean 0 and variance 1, times gamma, plus beta, with the unit's arithmetic: numbers
in Q6.14, sums of 16 features that are added to the sum of a row, no epsilon.  Device side: x is stored to the large
buffer, gamma and beta to the small one, the unit works in place, and x's place is read.
"""

from __future__ import annotations

from accel_models.flexasr.functions import eadd, emul, inv_sqrt, norm_divide
from accel_models.flexasr.layout import LANES, SMALL_VECTORS, Region, Start
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.units.layer_norm import BETA, GAMMA
from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, mem, primitive, var
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.layer import call
from ir_semantics.layers.normalisation import NORM_CODE, NormOperator, layer_norm_ir

from .buffers import (
    BASE,
    ENTRY,
    ENTRY_TEXT,
    HOST_X,
    HOST_Y,
    LANE,
    NV,
    VECTOR,
    T,
    UnitProgram,
    matrix_domain,
    matrix_within,
)
from .mapping import ASSUMPTIONS, flexasr_mapping

BASE_GAMMA, BASE_BETA = var("base_gamma", bv(32)), var("base_beta", bv(32))
BIASES = {n: var(n, bv(32)) for n in ("bias_x", "bias_beta", "bias_gamma")}
"""AdaptivFloat biases: of x and the result, of beta, and of gamma."""
PARAMETERS = {
    "T": T,
    "nv": NV,
    "base": BASE,
    "entry": ENTRY,
    "base_gamma": BASE_GAMMA,
    "base_beta": BASE_BETA,
    **BIASES,
}
PARAMETER_TEXTS = {
    "T": "rows",
    "nv": "vectors of 16 columns",
    "base": "first vector of the data in the large buffer",
    "entry": ENTRY_TEXT,
    "base_gamma": "first vector of gamma in the small buffer",
    "base_beta": "first vector of beta in the small buffer",
    "bias_x": "AdaptivFloat bias of x and the result",
    "bias_beta": "AdaptivFloat bias of beta",
    "bias_gamma": "AdaptivFloat bias of gamma",
}
DOMAIN = (
    *matrix_domain(T, "T"),
    ("base_gamma <= 1023 and base_beta <= 1023", (BASE_GAMMA <= SMALL_VECTORS - 1) & (BASE_BETA <= SMALL_VECTORS - 1)),
    (
        "base_gamma + nv <= base_beta or base_beta + nv <= base_gamma",
        (BASE_GAMMA + NV <= BASE_BETA) | (BASE_BETA + NV <= BASE_GAMMA),
    ),
    (f"base_gamma + nv <= {SMALL_VECTORS} vectors", BASE_GAMMA + NV <= SMALL_VECTORS),
    (f"base_beta + nv <= {SMALL_VECTORS} vectors", BASE_BETA + NV <= SMALL_VECTORS),
    *((f"{n} <= 7", v <= 7) for n, v in BIASES.items()),
)
HOST_GAMMA, HOST_BETA = var("host_gamma", mem(32, 8)), var("host_beta", mem(32, 8))
CELL = ((var("cell_t", bv(32)), T), (VECTOR, NV), (LANE, const(LANES, 32)))
ABSTRACT = ("adpfloat_to_fixed", "eadd", "emul", "norm_divide", "inv_sqrt", "fixed_to_adpfloat")


@primitive(bv(20), acc=bv(20), x=bv(20))
def add_square(acc: Expr, x: Expr) -> Expr:
    """The sum in Q6.14 and the square of a number, rounded down; wraps."""
    return eadd(acc, emul(x, x))


@primitive(bv(24), total=bv(24), part=bv(20))
def join(total: Expr, part: Expr) -> Expr:
    """The sum of a row in Q10.14 and that of 16 features; wraps at 24 bits."""
    return total + part.sext(24)


@primitive(bv(20), total=bv(24), total_squares=bv(24), count=bv(24))
def inverse_deviation(total: Expr, total_squares: Expr, count: Expr) -> Expr:
    """1 / sqrt(mean of squares - square of the mean) in Q6.14; see :data:`~accel_models.flexasr.functions.inv_sqrt`."""
    mean = norm_divide(total, count)
    return inv_sqrt(norm_divide(total_squares, count) - emul(mean, mean))


@primitive(
    bv(8),
    x=bv(20), mean=bv(20), inverse=bv(20), gamma=bv(8), beta=bv(8), bias_x=bv(3), bias_gamma=bv(3), bias_beta=bv(3),
)  # fmt: skip
def norm_finish(
    x: Expr, mean: Expr, inverse: Expr, gamma: Expr, beta: Expr, bias_x: Expr, bias_gamma: Expr, bias_beta: Expr
) -> Expr:
    """The code of (x - mean) * inverse * gamma + beta, every product rounded down."""
    scaled = emul(emul(x - mean, inverse), adpfloat_to_fixed(gamma, bias_gamma))
    return fixed_to_adpfloat(eadd(scaled, adpfloat_to_fixed(beta, bias_beta)), bias_x)


OPERATOR = NormOperator(
    block=LANES,
    widen=adpfloat_to_fixed,
    add=eadd,
    add_square=add_square,
    join=join,
    centre=norm_divide,
    scale=inverse_deviation,
    finish=norm_finish,
    count_width=24,
    parameters=dict.fromkeys(BIASES, 3),
    widening=("bias_x",),
    finishing=("bias_x", "bias_gamma", "bias_beta"),
)
"""The IR's element type: AdaptivFloat codes with the accelerator's rounding."""


def ir_fragment() -> Fragment:
    """One layer normalisation."""
    operands = {"rows": T, "blocks": NV, **{n: v[2:0] for n, v in BIASES.items()}}
    return call("ir_layer_norm", "layer normalisation", NORM_CODE, layer_norm_ir(OPERATOR), PARAMETERS, operands)


def layer_norm_fragment(ila: Ila) -> Fragment:
    """The FlexASR program: configure, store, start, load."""
    program = Kernel("flexasr_layernorm")
    host = UnitProgram(program, ila, ENTRY)
    host.large_manager()
    host.small_manager({GAMMA: BASE_GAMMA, BETA: BASE_BETA})
    host.unit(
        "LayerNorm",
        Region.LAYER_NORM,
        memory_index_1=ENTRY[2:0],
        num_vector_1=NV[7:0],
        num_timestep_1=T[15:0],
        adpbias_1=BIASES["bias_x"][2:0],
        adpbias_3=BIASES["bias_beta"][2:0],
        adpbias_4=BIASES["bias_gamma"][2:0],
    )
    host.store_row("gamma", HOST_GAMMA, BASE_GAMMA)
    host.store_row("beta", HOST_BETA, BASE_BETA)
    host.store_matrix(T)
    host.start("LayerNorm", Start.LAYER_NORM)
    host.load_matrix(T)
    tensors = {t.name: t for t in (HOST_X, HOST_GAMMA, HOST_BETA, HOST_Y)}
    return Fragment("flexasr_layernorm", ila, PARAMETERS, tensors, program)


def layer_norm_mapping(options: FlexAsrOptions | None = None) -> TensorMapping:
    """The mapping ``flexasr_layernorm``; ``options`` select another reading of the hardware."""
    return flexasr_mapping(
        name="flexasr_layernorm",
        ir=ir_fragment(),
        device=layer_norm_fragment(flexasr(options)),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=T,
        columns=NV << 4,
        inputs=(("host_x", "tensor_in"), ("host_gamma", "tensor_gamma"), ("host_beta", "tensor_beta")),
        abstract=frozenset(ABSTRACT),
        sizes_of=sizes_of,
        statement="FlexASR's LayerNorm program computes the quantised layer normalisation of each timestep",
        doc="Configure managers and unit, store gamma, beta and the tiled matrix, start, load",
        assumptions=ASSUMPTIONS,
        sample_shapes=((1, 16), (2, 32), (3, 48), (17, 32), (18, 48), (5, 80), (33, 16)),
        shape_parameters=frozenset({"T", "nv"}),
        cell=CELL,
        cell_column=(VECTOR << 4) + LANE,
    )


def sizes_of(rows: int, columns: int) -> dict[str, int]:
    """Sizes for x [rows, columns] at base 0, gamma and beta one after the other; AdaptivFloat biases are 0.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    vectors = matrix_within(f"shape {rows}x{columns} of a FlexASR layer-norm mapping", rows, columns)
    sizes = {"T": rows, "nv": vectors, "base": 0, "entry": 0, "base_gamma": 0, "base_beta": vectors}
    return sizes | dict.fromkeys(BIASES, 0)
