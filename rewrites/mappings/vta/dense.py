"""The mapping of a dense layer to VTA: products, bias, and requantisation to bytes.

IR side: one dense instruction on x [m, 16*inner], weights [16*n, 16*inner], int8, and a bias [16*n], int32; results
are shifted right and saturated to bytes.  Device side: x goes to the input scratchpad as a whole.  For each vector of
16 output channels, its tiles of weights are loaded, accumulators are cleared, one GEMM instruction adds all products,
and the ALU adds the bias, shifts and bounds.  Wherever an iteration of GEMM adds to an accumulator, all other rows'
have been updated since the last time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from accel_models.vta.isa import AluOp, MemoryId
from accel_models.vta.model import vta
from accel_models.vta.numerics import multiply
from accel_models.vta.options import VtaOptions
from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.mapping import Reduction, SizeError, TensorMapping
from ir_semantics.layers.dense import DENSE_CODE, DenseOperator, Order, dense_ir
from ir_semantics.layers.layer import call

from .programs import ASSUMPTIONS, COLUMNS, DRAM_VECTORS, HOST_Y, IDLE, ROWS, Program, cell_of, micro_op, vta_mapping

DEPTH, SHIFT = var("inner", bv(32)), var("shift", bv(32))
"""Vectors of 16 input channels, and the number of bits by which sums are shifted right."""
PARAMETERS = {"m": ROWS, "inner": DEPTH, "n": COLUMNS, "shift": SHIFT}
PARAMETER_TEXTS = {
    "m": "rows",
    "inner": "vectors of 16 input features",
    "n": "vectors of 16 output features",
    "shift": "bits by which sums are shifted right",
}
HOST_X, HOST_W, HOST_B = var("host_x", mem(32, 8)), var("host_w", mem(32, 8)), var("host_b", mem(32, 32))
CELL, CELL_COLUMN = cell_of(ROWS)
ROOM = DRAM_VECTORS - 16
DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("1 <= m <= 2047 accumulators", (const(1, 32) <= ROWS) & (ROWS <= 2047)),
    ("1 <= inner <= 1024 tiles", (const(1, 32) <= DEPTH) & (DEPTH <= 1024)),
    ("m*inner <= 2048 input vectors", ROWS * DEPTH <= 2048),
    ("1 <= n <= 65535", (const(1, 32) <= COLUMNS) & (COLUMNS <= 65535)),
    (
        f"16*n*inner + 4*n + m*inner + m*n <= {ROOM} vectors of DRAM",
        COLUMNS * DEPTH * 16 + COLUMNS * 4 + ROWS * DEPTH + ROWS * COLUMNS <= ROOM,
    ),
    ("shift <= 15", SHIFT <= 15),
)


@primitive(bv(32), a=bv(32), b=bv(32))
def accumulate(a: Expr, b: Expr) -> Expr:
    """The sum of two accumulators; wraps at 32 bits, so that the order of a sum does not matter."""
    return a + b


SUMS = (Reduction(accumulate, 0),)
"""The reduction of products and the bias."""


@primitive(bv(32), acc=bv(32), weight=bv(8), x=bv(8))
def multiply_add(acc: Expr, weight: Expr, x: Expr) -> Expr:
    """The accumulator plus the product of two signed bytes; wraps at 32 bits."""
    return acc + multiply(x, weight)


@primitive(bv(8), acc=bv(32), bias=bv(32), shift=bv(4))
def requantise(acc: Expr, bias: Expr, shift: Expr) -> Expr:
    """The sum with the bias, divided by 2^shift, rounded down, and saturated to a signed byte."""
    scaled = (acc + bias).ashr(shift.zext(32))
    low, high = const(-128 & 0xFFFFFFFF, 32), const(127, 32)
    bounded = ite(scaled.slt(low), low, scaled)
    return ite(bounded.slt(high), bounded, high)[7:0]


DENSE = DenseOperator(multiply_add, requantise, {"shift": 4}, accumulate)
"""The IR's element types: int8 operands, int32 sums that wrap around, int8 results."""


STEPS: tuple[tuple[AluOp, Expr | int], ...] = ((AluOp.SHR, SHIFT), (AluOp.MAX, -128), (AluOp.MIN, 127))
"""What the ALU does with a vector's sums."""


def write_operands(program: Program) -> tuple[Expr, Expr, Expr]:
    """Starts a program and writes its operands to DRAM: first the weights, then the bias, then x.

    Returns where the bias lies, in accumulators, and where x and the output lie, in vectors of 16 bytes.
    """
    weights = const(16, 32)  # vectors of 16 bytes, 16 for a tile
    bias = COLUMNS * DEPTH * 4 + 4  # in accumulators, of four vectors each
    x = (bias << 2) + COLUMNS * 4
    program.start()
    program.write_tiles(HOST_W, COLUMNS, DEPTH, weights)
    program.write_words(HOST_B, const(1, 32), COLUMNS, bias << 2)
    program.write_bytes(HOST_X, ROWS, DEPTH, x)
    return bias, x, x + ROWS * DEPTH


def dense_fragment(ila: Ila, steps: Sequence[tuple[AluOp, Expr | int]] = STEPS) -> Fragment:
    """The program of a dense layer."""
    return layer_fragment("vta_dense", ila, PARAMETERS, ROWS, steps)


def layer_fragment(
    name: str,
    ila: Ila,
    parameters: dict[str, Expr],
    rows: Expr,
    steps: Sequence[tuple[AluOp, Expr | int]] = STEPS,
    **pads: Expr,
) -> Fragment:
    """The program of a dense layer on ``rows`` rows: those of x and, with ``pads``, those of zeros around it."""
    kernel = Kernel(name)
    program = Program(kernel, ila)
    bias, x, output = write_operands(program)
    program.write_micro_ops(micro_op(), micro_op(src=rows))
    program.load(MemoryId.INP, dram=x, columns=DEPTH, y_size=ROWS, x_stride=DEPTH, **pads)
    with kernel.loop("vector", COLUMNS) as vector:
        program.load(MemoryId.WGT, dram=vector * DEPTH + 1, columns=DEPTH)
        program.gemm(reset=True, iter_out=1, iter_in=rows, dst_factor_in=1)
        program.gemm(iter_out=DEPTH, iter_in=rows, dst_factor_in=1, src_factor_out=1, src_factor_in=DEPTH,
                     wgt_factor_out=1)  # fmt: skip
        program.load(MemoryId.ACC, sram=rows, dram=bias + vector, columns=1)
        program.alu(AluOp.ADD, None, rows, uop=1, src_factor_in=0)
        for operation, imm in steps:
            program.alu(operation, imm, rows)
        program.store(dram=output + vector, columns=1, y_size=rows, x_stride=COLUMNS)
    program.finish()
    program.read(rows, COLUMNS, output)
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_B, HOST_Y)}
    return Fragment(name, ila, parameters, tensors, kernel, idle=IDLE)


def ir_fragment(order: Order = Order.FORWARD) -> Fragment:
    """One dense instruction, of an IR that sums in this order."""
    operands = {"rows": ROWS, "features_in": DEPTH << 4, "features_out": COLUMNS << 4, "shift": SHIFT[3:0]}
    return call("ir_dense", "dense layer", DENSE_CODE, dense_ir(DENSE, order), PARAMETERS, operands)


layer_mapping = partial(
    vta_mapping,
    inputs=(("host_x", "tensor_in"), ("host_w", "tensor_weights"), ("host_b", "tensor_bias")),
    assumptions=(*ASSUMPTIONS, "features are padded to 16; padding of x or of the weights must be 0"),
)
"""A mapping of a dense layer to VTA."""

SAMPLES = ((1, 16, 16), (1, 48, 16), (2, 32, 32), (3, 16, 48), (4, 48, 32), (5, 64, 16), (3, 32, 64))


def require_vectors(what: str, rows: int, features_in: int, features_out: int) -> None:
    """Raises SizeError where features of this shape of VTA's ``what`` are no multiples of 16."""
    for side, count in (("Input", features_in), ("Output", features_out)):
        if count % 16:
            raise SizeError(
                f"{side} features of shape {rows}x{features_in}x{features_out} of a VTA {what} must be a "
                f"multiple of 16, not {count}; pad them"
            )


def sizes_of(rows: int, features_in: int, features_out: int) -> dict[str, int]:
    """Sizes for x [rows, features_in] and ``features_out`` outputs, shifted by 9 bits.

    Raises SizeError where features are no multiples of 16.
    """
    require_vectors("dense mapping", rows, features_in, features_out)
    return {"m": rows, "inner": features_in // 16, "n": features_out // 16, "shift": 9}


def dense_mapping(
    options: VtaOptions | None = None,
    order: Order = Order.FORWARD,
    steps: Sequence[tuple[AluOp, Expr | int]] = STEPS,
) -> TensorMapping:
    """The mapping ``vta_dense``; ``options`` select another reading of VTA, and ``order`` that of the IR's sums."""
    after = "" if order is Order.FORWARD else f", the IR summing {order.words}"
    return layer_mapping(
        name="vta_dense" if order is Order.FORWARD else f"vta_dense_{order.value}",
        ir=ir_fragment(order),
        device=dense_fragment(vta(options), steps),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=ROWS,
        columns=COLUMNS << 4,
        sizes_of=sizes_of,
        statement=(
            f"VTA's program computes the dense layer x w^T + b of bytes, shifted right and saturated to bytes{after}"
        ),
        doc="Write tensors and micro-ops to DRAM; LOAD, GEMM, ALU and STORE for each vector of outputs; read",
        shape_names=("rows", "features_in", "features_out"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset({"m", "inner", "n"}),
        cell=CELL,
        cell_column=CELL_COLUMN,
        sums=SUMS,
    )
