"""The mapping of a dense layer of any size to VTA, in blocks that fit the scratchpads.

IR side: one dense instruction on x [m, 16*kk], weights [16*n, 16*kk], int8, and a bias [16*n], int32; results are
shifted right, rounded down or to the nearest number, and saturated to bytes; with relu, to those from 0 on.  Device
side: m, n and kk are cut into blocks of ``block_m``, ``block_n`` and
``block_k``.  For each block of the result, accumulators are cleared; for each block of input channels, inputs and
weights are loaded, and a GEMM instruction for each vector of outputs adds their products.  The vector's micro-op comes
from a table that the host writes: it names the first accumulator and the first tile of weights.  At the end the bias
is added to all rows of the block, and the ALU adds half a unit of the shifted result, shifts and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

from accel_models.vta.isa import AluOp, MemoryId
from accel_models.vta.model import vta
from accel_models.vta.options import VtaOptions
from ila_lang import Expr, Fragment, Function, Ila, Kernel, bv, const, ite, primitive, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.dense import DENSE_CODE, DenseOperator, dense_ir
from ir_semantics.layers.layer import call
from rewrites.mappings.domain import between

from .dense import HOST_B, HOST_W, HOST_X, SHIFT, SUMS, accumulate, layer_mapping, multiply_add
from .programs import DRAM_VECTORS, HOST_Y, IDLE, Program, micro_op

M, N, K = (var(name, bv(32)) for name in ("m", "n", "kk"))
"""Rows, vectors of 16 output channels, and vectors of 16 input channels."""
ROWS, OUTPUTS, INPUTS = (var(f"block_{name}", bv(32)) for name in ("m", "n", "k"))
"""The sizes of a block."""
ROW_BLOCKS, OUTPUT_BLOCKS, INPUT_BLOCKS = (var(f"blocks_{name}", bv(32)) for name in ("m", "n", "k"))
"""The numbers of blocks."""
NEAREST = var("nearest", bv(32))
"""Whether results are rounded to the nearest number."""
HALF = ite(NEAREST == 1, (const(1, 32) << SHIFT[3:0].zext(32)) >> 1, const(0, 32))
"""What is added before sums are shifted."""
PARAMETERS = {
    v.name: v for v in (M, N, K, ROWS, OUTPUTS, INPUTS, ROW_BLOCKS, OUTPUT_BLOCKS, INPUT_BLOCKS, SHIFT, NEAREST)
}
PARAMETER_TEXTS = {
    "m": "rows",
    "n": "vectors of 16 output features",
    "kk": "vectors of 16 input features",
    "block_m": "rows of a block",
    "block_n": "output vectors of a block",
    "block_k": "input vectors of a block",
    "blocks_m": "blocks of rows",
    "blocks_n": "blocks of output vectors",
    "blocks_k": "blocks of input vectors",
    "shift": "bits by which sums are shifted right",
    "nearest": "whether shifted sums are rounded to the nearest number (1), or down (0)",
}
WEIGHTS = 2048
"""Where weights begin in DRAM, in vectors of 16 bytes; before are micro-ops, one in each vector."""
ROOM = DRAM_VECTORS - WEIGHTS
CELL = (
    (var("cell_row_block", bv(32)), ROW_BLOCKS),
    (var("cell_row", bv(32)), ROWS),
    (var("cell_block", bv(32)), OUTPUT_BLOCKS),
    (var("cell_vector", bv(32)), OUTPUTS),
    (var("cell_lane", bv(32)), const(16, 32)),
)
"""Coordinates of an output element: block of rows, row in it, block of vectors, vector in it, lane."""
CELL_COLUMN = ((CELL[2][0] * OUTPUTS + CELL[3][0]) << 4) + CELL[4][0]


DOMAIN: tuple[tuple[str, Expr], ...] = (
    *(between(v, 1, 65535) for v in (M, N, K, ROW_BLOCKS, OUTPUT_BLOCKS, INPUT_BLOCKS)),
    *(between(v, 1, most) for v, most in ((ROWS, 2047), (OUTPUTS, 1024), (INPUTS, 1024))),
    ("m = blocks_m*block_m", ROW_BLOCKS * ROWS == M),
    ("n = blocks_n*block_n", OUTPUT_BLOCKS * OUTPUTS == N),
    ("kk = blocks_k*block_k", INPUT_BLOCKS * INPUTS == K),
    ("block_m*block_n + block_n <= 2048 accumulators", ROWS * OUTPUTS + OUTPUTS <= 2048),
    ("block_m*block_k <= 2048 input vectors", ROWS * INPUTS <= 2048),
    ("block_n*block_k <= 1024 tiles of weights", OUTPUTS * INPUTS <= 1024),
    (f"n*kk <= {ROOM >> 4} tiles of DRAM", N * K <= ROOM >> 4),
    (f"m*kk <= {ROOM} vectors of DRAM", M * K <= ROOM),
    (f"m*n <= {ROOM} vectors of DRAM", M * N <= ROOM),
    (f"16*n*kk + 4*n + m*kk + m*n <= {ROOM} vectors of DRAM", N * K * 16 + N * 4 + M * K + M * N <= ROOM),
    ("shift <= 15", SHIFT <= 15),
    ("nearest <= 1", NEAREST <= 1),
)


def _bounded(acc: Expr, bias: Expr, half: Expr, shift: Expr, least: int) -> Expr:
    scaled = (acc + bias + half).ashr(shift.zext(32))
    low, high = const(least & 0xFFFFFFFF, 32), const(127, 32)
    bounded = ite(scaled.slt(low), low, scaled)
    return ite(bounded.slt(high), bounded, high)[7:0]


@primitive(bv(8), acc=bv(32), bias=bv(32), half=bv(32), shift=bv(4))
def requantise_rounded(acc: Expr, bias: Expr, half: Expr, shift: Expr) -> Expr:
    """The sum with the bias, plus ``half``, divided by 2^shift, rounded down, and saturated to a signed byte."""
    return _bounded(acc, bias, half, shift, -128)


@primitive(bv(8), acc=bv(32), bias=bv(32), half=bv(32), shift=bv(4))
def requantise_relu(acc: Expr, bias: Expr, half: Expr, shift: Expr) -> Expr:
    """The same, saturated to 0 .. 127."""
    return _bounded(acc, bias, half, shift, 0)


FINISH: Mapping[str, tuple[Function, int]] = {"none": (requantise_rounded, -128), "relu": (requantise_relu, 0)}
"""By activation: how the IR's results are made of sums, and the least of them."""


def gemm_fragment(ila: Ila, activation: str = "none") -> Fragment:
    """The program of a dense layer in blocks."""
    kernel = Kernel(_name(activation))
    program = Program(kernel, ila)
    weights = const(WEIGHTS, 32)
    bias = N * K * 4 + (WEIGHTS >> 2)  # in accumulators, of four vectors each
    x = (bias << 2) + N * 4
    output = x + M * K
    program.start()
    program.write_tiles(HOST_W, N, K, weights)
    program.write_words(HOST_B, const(1, 32), N, bias << 2)
    program.write_bytes(HOST_X, M, K, x)
    with kernel.loop("column", OUTPUTS) as column:
        program.write("write the table", column + 1, micro_op(dst=column, wgt=column * INPUTS).zext(128))
    program.write_micro_ops(micro_op(), micro_op(src=ROWS * OUTPUTS), sram=1)  # the bias lies behind accumulators

    def columnwise(operation: AluOp, imm: Expr | int | None, uop: int = 1) -> None:
        program.alu(operation, imm, OUTPUTS, uop=uop, iter_out=ROWS, dst_factor_out=OUTPUTS)

    with kernel.loop("row_block", ROW_BLOCKS) as row_block, kernel.loop("block", OUTPUT_BLOCKS) as block:
        program.gemm(uop=1, reset=True, iter_out=ROWS, iter_in=OUTPUTS, dst_factor_out=OUTPUTS, dst_factor_in=1)
        with kernel.loop("round", INPUT_BLOCKS) as k_block:
            inputs = row_block * ROWS * K + k_block * INPUTS
            program.load(MemoryId.INP, dram=x + inputs, columns=INPUTS, y_size=ROWS, x_stride=K)
            tiles = block * OUTPUTS * K + k_block * INPUTS + (WEIGHTS >> 4)
            program.load(MemoryId.WGT, dram=tiles, columns=INPUTS, y_size=OUTPUTS, x_stride=K)
            with kernel.loop("vector", OUTPUTS) as vector:
                program.load(MemoryId.UOP, dram=(vector + 1) << 2, columns=1)
                program.gemm(
                    iter_out=INPUTS,
                    iter_in=ROWS,
                    dst_factor_in=OUTPUTS,
                    src_factor_out=1,
                    src_factor_in=INPUTS,
                    wgt_factor_out=1,
                )
        program.load(MemoryId.ACC, sram=ROWS * OUTPUTS, dram=bias + block * OUTPUTS, columns=OUTPUTS)
        columnwise(AluOp.ADD, None, 2)
        columnwise(AluOp.ADD, HALF)
        columnwise(AluOp.SHR, SHIFT)
        columnwise(AluOp.MAX, FINISH[activation][1])
        columnwise(AluOp.MIN, 127)
        place = output + row_block * ROWS * N + block * OUTPUTS
        program.store(dram=place, columns=OUTPUTS, y_size=ROWS, x_stride=N)
    program.finish()
    program.read(M, N, output)
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_B, HOST_Y)}
    return Fragment(kernel.name, ila, PARAMETERS, tensors, kernel, idle=IDLE)


def ir_fragment(activation: str = "none") -> Fragment:
    """One dense instruction."""
    operator = DenseOperator(multiply_add, FINISH[activation][0], {"half": 32, "shift": 4}, accumulate)
    operands = {"rows": M, "features_in": K << 4, "features_out": N << 4, "half": HALF, "shift": SHIFT[3:0]}
    return call("ir_gemm", "dense layer", DENSE_CODE, dense_ir(operator), PARAMETERS, operands)


def _name(activation: str) -> str:
    return "vta_gemm" if activation == "none" else f"vta_gemm_{activation}"


SAMPLES = (
    (2, 32, 32, 1, 16, 16),
    (2, 32, 48, 2, 32, 16),
    (3, 48, 32, 1, 16, 32),
    (4, 64, 64, 2, 32, 32),
    (6, 96, 48, 3, 32, 16),
    (4, 96, 96, 2, 48, 32),
    (9, 64, 64, 3, 32, 32),
)


def sizes_of(rows: int, inputs: int, outputs: int, block_rows: int, block_in: int, block_out: int) -> dict[str, int]:
    """Sizes for x [rows, inputs] and ``outputs`` outputs, in blocks of ``block_rows`` x ``block_in`` x ``block_out``.

    Raises SizeError where features are no multiples of 16, or a block does not divide its size.
    """
    shape = f"{rows}x{inputs}x{outputs} in blocks of {block_rows}x{block_in}x{block_out}"
    for what, count in (("Inputs", inputs), ("Outputs", outputs), ("block_in", block_in), ("block_out", block_out)):
        if count % 16:
            raise SizeError(f"{what} of a VTA GEMM of shape {shape} must be a multiple of 16, not {count}; pad them")
    for what, count, part in (
        ("Rows", rows, block_rows),
        ("Inputs", inputs, block_in),
        ("Outputs", outputs, block_out),
    ):
        if part < 1 or count % part:
            raise SizeError(
                f"{what} of a VTA GEMM of shape {shape} must be a multiple of the block's {part}, not {count}; "
                "pad them, or choose another block"
            )
    return {
        "m": rows,
        "n": outputs // 16,
        "kk": inputs // 16,
        "block_m": block_rows,
        "block_n": block_out // 16,
        "block_k": block_in // 16,
        "blocks_m": rows // block_rows,
        "blocks_n": outputs // block_out,
        "blocks_k": inputs // block_in,
        "shift": 9,
        "nearest": 1,
    }


def gemm_mapping(options: VtaOptions | None = None, activation: str = "none") -> TensorMapping:
    """The mapping ``vta_gemm``, or ``vta_gemm_relu``; ``options`` select another reading of VTA."""
    after = "" if activation == "none" else f", then {activation}"
    return layer_mapping(
        name=_name(activation),
        ir=ir_fragment(activation),
        device=gemm_fragment(vta(options), activation),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=M,
        columns=N << 4,
        sizes_of=sizes_of,
        statement=f"VTA's program in blocks computes the dense layer x w^T + b of bytes{after}, shifted and saturated",
        doc="Write tensors and micro-ops to DRAM; LOAD and GEMM for each block; ALU and STORE; read",
        shape_names=("rows", "features_in", "features_out", "block_rows", "block_in", "block_out"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset(PARAMETERS) - {"shift", "nearest"},
        cell=CELL,
        cell_column=CELL_COLUMN,
        row_coordinates=2,
        sums=SUMS,
    )
