"""The mappings of elementwise operators on int32 matrices to VTA's ALU; results are bytes.

IR side: one elementwise instruction on row-major matrices.  Device side: the matrices go to DRAM, and row by row to the
accumulators, where the ALU works on them; the low bytes of the results are stored and read.  The second operand lies
behind the first one: another matrix, or a row (a bias) that is loaded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from accel_models.vta.isa import AluOp, MemoryId
from accel_models.vta.model import vta
from accel_models.vta.options import VtaOptions
from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.elementwise import ELEMENTWISE_CODE, ElementwiseOperator, elementwise_ir
from ir_semantics.layers.layer import call

from .programs import (
    ASSUMPTIONS,
    COLUMNS,
    DRAM_VECTORS,
    HOST_Y,
    IDLE,
    ROWS,
    SHAPE,
    Program,
    cell_of,
    micro_op,
    vta_mapping,
)

HOST_A, HOST_B = var("host_a", mem(32, 32)), var("host_b", mem(32, 32))
IMM = var("imm", bv(32))
CELL, CELL_COLUMN = cell_of(ROWS)

Second = Literal["matrix", "row"] | None
Step = tuple[AluOp, Expr | int | None]
"""An ALU operation, and its immediate; None where the second operand is another accumulator."""


@dataclass(frozen=True)
class Operation:
    """An operator: what it computes, from what, and the device's steps.

    ``combine`` is as in :class:`~ir_semantics.layers.elementwise.ElementwiseOperator`.  ``most`` is the largest value
    of the operator's immediate, the parameter ``imm``, where it has one.
    """

    text: str
    combine: Callable[..., Expr]
    steps: tuple[Step, ...]
    second: Second = None
    bits: int = 0
    most: int = 0

    @property
    def operator(self) -> ElementwiseOperator:
        """The IR's operator."""
        sorts = {"a": bv(32)} | ({"b": bv(32)} if self.second else {}) | ({"imm": bv(self.bits)} if self.bits else {})
        function = primitive(bv(8), name="combine", **sorts)(self.combine)
        return ElementwiseOperator(function, self.second, {"imm": self.bits} if self.bits else {})


def _maximum(a: Expr, b: Expr) -> Expr:
    return ite(a.slt(b), b, a)


def _minimum(a: Expr, b: Expr) -> Expr:
    return ite(a.slt(b), a, b)


def relu(a: Expr) -> Expr:
    """The low byte of a, or 0 where a is negative."""
    return _maximum(a, const(0, 32))[7:0]


def minimum(a: Expr, b: Expr) -> Expr:
    """The low byte of the smaller number."""
    return _minimum(a, b)[7:0]


def maximum(a: Expr, b: Expr) -> Expr:
    """The low byte of the larger number."""
    return _maximum(a, b)[7:0]


def add(a: Expr, b: Expr) -> Expr:
    """The low byte of the sum, which wraps around."""
    return (a + b)[7:0]


def minimum_imm(a: Expr, imm: Expr) -> Expr:
    """The low byte of a, but at most the signed immediate."""
    return _minimum(a, imm.sext(32))[7:0]


def maximum_imm(a: Expr, imm: Expr) -> Expr:
    """The low byte of a, but at least the signed immediate."""
    return _maximum(a, imm.sext(32))[7:0]


def add_imm(a: Expr, imm: Expr) -> Expr:
    """The low byte of the sum with the signed immediate, which wraps around."""
    return (a + imm.sext(32))[7:0]


def shift_right(a: Expr, imm: Expr) -> Expr:
    """The low byte of a divided by 2^imm, rounded down."""
    return a.ashr(imm.zext(32))[7:0]


def requantise(a: Expr, imm: Expr) -> Expr:
    """a divided by 2^imm, rounded down, and saturated to a signed byte."""
    scaled = a.ashr(imm.zext(32))
    return _minimum(_maximum(scaled, const(-128 & 0xFFFFFFFF, 32)), const(127, 32))[7:0]


MOST_SHIFT = 15  # a larger amount shifts left in the HLS design
OPERATIONS: Mapping[str, Operation] = {
    "relu": Operation("relu", relu, ((AluOp.MAX, 0),)),
    "min": Operation("the smaller of two", minimum, ((AluOp.MIN, None),), "matrix"),
    "max": Operation("the larger of two", maximum, ((AluOp.MAX, None),), "matrix"),
    "add": Operation("the sum of two", add, ((AluOp.ADD, None),), "matrix"),
    "bias_add": Operation("the sum with a bias row", add, ((AluOp.ADD, None),), "row"),
    "min_imm": Operation("at most an immediate", minimum_imm, ((AluOp.MIN, IMM),), None, 16, 65535),
    "max_imm": Operation("at least an immediate", maximum_imm, ((AluOp.MAX, IMM),), None, 16, 65535),
    "add_imm": Operation("the sum with an immediate", add_imm, ((AluOp.ADD, IMM),), None, 16, 65535),
    "shift": Operation("arithmetic shift right", shift_right, ((AluOp.SHR, IMM),), None, 4, MOST_SHIFT),
    "requantise": Operation(
        "shift right, then saturation to a byte",
        requantise,
        ((AluOp.SHR, IMM), (AluOp.MAX, -128), (AluOp.MIN, 127)),
        None,
        4,
        MOST_SHIFT,
    ),
}
"""The operators by name; all of them narrow the result to its low byte, as STORE does."""


def elementwise_program(ila: Ila, operation: Operation) -> Fragment:
    """The program of an operator."""
    kernel = Kernel("vta_elementwise")
    program, second = Program(kernel, ila), operation.second
    first = const(4, 32)  # vectors of 16 bytes; accumulators are aligned to four of these
    behind = first + ROWS * COLUMNS * 4
    output = behind
    program.start()
    program.write_words(HOST_A, ROWS, COLUMNS, first)
    if second is not None:
        rows = ROWS if second == "matrix" else const(1, 32)
        program.write_words(HOST_B, rows, COLUMNS, behind)
        output = behind + rows * COLUMNS * 4
    program.write_micro_ops(micro_op(), *([] if second is None else [micro_op(src=COLUMNS)]))
    if second == "row":
        program.load(MemoryId.ACC, sram=COLUMNS, dram=behind >> 2, columns=COLUMNS)
    with kernel.loop("row", ROWS) as row:
        at = row * COLUMNS
        program.load(MemoryId.ACC, dram=at + 1, columns=COLUMNS)
        if second == "matrix":
            program.load(MemoryId.ACC, sram=COLUMNS, dram=(behind >> 2) + at, columns=COLUMNS)
        for step, imm in operation.steps:
            program.alu(step, imm, COLUMNS, uop=0 if imm is not None else 1)
        program.store(dram=output + at, columns=COLUMNS)
    program.finish()
    program.read(ROWS, COLUMNS, output)
    tensors = {t.name: t for t in (HOST_A, *([HOST_B] if second else []), HOST_Y)}
    return Fragment("vta_elementwise", ila, _parameters(operation), tensors, kernel, idle=IDLE)


PARAMETER_TEXTS = {"m": "rows", "n": "vectors of 16 columns", "imm": "the immediate operand of the ALU"}


def _parameters(operation: Operation) -> dict[str, Expr]:
    return SHAPE | ({"imm": IMM} if operation.bits else {})


def _domain(operation: Operation) -> tuple[tuple[str, Expr], ...]:
    """All sizes whose rows fit the accumulators and whose matrices fit DRAM."""
    widest = 2048 if operation.second is None else 1024
    room = DRAM_VECTORS - 4
    vectors = {None: 5, "matrix": 9, "row": 5}[operation.second]
    most = room // vectors
    conditions = [
        (f"1 <= m <= {most}", (const(1, 32) <= ROWS) & (most >= ROWS)),
        (f"1 <= n <= {widest} vectors of 16 columns", (const(1, 32) <= COLUMNS) & (widest >= COLUMNS)),
    ]
    if operation.second == "row":
        text = f"5*m*n + 4*n <= {room} vectors of DRAM"
        conditions.append((text, room >= ROWS * COLUMNS * 5 + COLUMNS * 4))
    else:
        conditions.append((f"m*n <= {most} vectors of DRAM", most >= ROWS * COLUMNS))
    if operation.bits:
        conditions.append((f"imm <= {operation.most}", operation.most >= IMM))
    return tuple(conditions)


def ir_fragment(operation: Operation) -> Fragment:
    """One elementwise instruction."""
    operands = {"rows": ROWS, "columns": COLUMNS << 4}
    if operation.bits:
        operands["imm"] = IMM[operation.bits - 1 : 0]
    ila = elementwise_ir(operation.operator)
    return call("ir_elementwise", "elementwise", ELEMENTWISE_CODE, ila, _parameters(operation), operands)


SAMPLES = ((1, 16), (1, 48), (2, 32), (3, 16), (3, 64), (4, 48), (5, 80))


def elementwise_mapping(name: str, options: VtaOptions | None = None) -> TensorMapping:
    """The mapping ``vta_{name}`` of an operator of :data:`OPERATIONS`; ``options`` select another reading of VTA."""
    operation = OPERATIONS[name]
    second = (("host_b", "tensor_second"),) if operation.second else ()
    domain = _domain(operation)

    def sizes_of(rows: int, columns: int) -> dict[str, int]:
        if columns % 16:
            raise SizeError(
                f"Columns of shape {rows}x{columns} of mapping vta_{name} must be a multiple of 16, not {columns}; "
                "pad them"
            )
        sizes = {"m": rows, "n": columns // 16} | ({"imm": 0} if operation.bits else {})
        mapping.require(sizes)
        return sizes

    mapping = vta_mapping(
        name=f"vta_{name}",
        ir=ir_fragment(operation),
        device=elementwise_program(vta(options), operation),
        parameters=_parameters(operation),
        parameter_texts={name: PARAMETER_TEXTS[name] for name in _parameters(operation)},
        domain=domain,
        rows=ROWS,
        columns=COLUMNS << 4,
        inputs=(("host_a", "tensor_in"), *second),
        abstract=frozenset(),
        sizes_of=sizes_of,
        statement=f"VTA's program computes, for each element: {operation.text}; results are bytes",
        doc="Write matrices and micro-ops to DRAM; row by row LOAD, ALU, STORE; read",
        assumptions=(*ASSUMPTIONS, "columns are padded to 16; padding may be anything"),
        shape_names=("rows", "columns"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset({"m", "n"}),
        cell=CELL,
        cell_column=CELL_COLUMN,
    )
    return mapping
