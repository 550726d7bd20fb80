"""What FlexASR's programs of dense and recurrent layers have in common, with sizes left open.

A layer of ``gates`` gates computes, per timestep, 4*no vectors of outputs; PE p computes the vectors p*no and on, for
each vector all gates.  Its matrices are multiplied with the input (ni vectors) and, in recurrent layers, with the
hidden state (4*no vectors).  A PE's input buffer holds input, biases of its matrix, hidden state, biases of its matrix.

Layouts and register contents are those of the published drivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from accel_models.flexasr.config import (
    ACT_MNGR_WORD,
    ACT_VECTOR_WORDS,
    LARGE_MANAGER_WORD,
    MEM_MNGR_WORD,
    RNN_LAYER_SIZING_WORD,
    UNIT_WORD,
)
from accel_models.flexasr.layout import (
    LANES,
    PE_COUNT,
    PE_PARTITION,
    PeRegion,
    Region,
    Start,
    large_axi_address,
    pe_register_address,
    register_address,
    vector_address,
)
from ila_lang import Expr, bv, concat, const, load_bytes, var
from ila_lang.mapping import SizeError

from .buffers import BASE, HOST_X, HOST_Y, T, UnitProgram
from .mapping import flexasr_mapping

NI, NO = var("ni", bv(32)), var("no", bv(32))
"""Vectors of the input, and output vectors of a PE; the output begins at ``BASE`` in the large buffer."""
CELL = (
    (var("cell_t", bv(32)), T),
    (var("cell_pe", bv(32)), const(PE_COUNT, 32)),
    (var("cell_vector", bv(32)), NO),
    (var("cell_lane", bv(32)), const(LANES, 32)),
)
"""Coordinates of an output element: timestep, PE, vector within the PE's share, lane."""
CELL_COLUMN = ((CELL[1][0] * NO + CELL[2][0]) << 4) + CELL[3][0]
layer_mapping = partial(
    flexasr_mapping,
    rows=T,
    columns=NO << 6,
    doc="Configure all PEs, store weights, biases and input, run GBControl, load",
    sample_shapes=((1, 16, 64), (2, 32, 64), (3, 16, 128), (17, 48, 128), (18, 32, 192), (2, 48, 64)),
    shape_parameters=frozenset({"T", "ni", "no"}),
    cell=CELL,
    cell_column=CELL_COLUMN,
)
"""A mapping of a layer to the processing elements."""


@dataclass(frozen=True)
class Matrix:
    """A matrix of all gates, its biases, and the AdaptivFloat biases of weights, operand and layer bias.

    ``operand`` is the number of vectors of what is multiplied.  With a ``table`` of 16 codes weights are clustered:
    indices of four bits.
    """

    name: str
    weights: Expr
    bias: Expr
    operand: Expr
    bias_w: Expr
    bias_x: Expr
    bias_b: Expr
    table: Expr | None = None

    @property
    def rows_in_vector(self) -> int:
        """How many rows of a tile of 16 x 16 weights are a vector of the weight buffer."""
        return 1 if self.table is None else 2

    @property
    def vectors_of_tile(self) -> int:
        """How many vectors of the weight buffer a tile takes."""
        return LANES // self.rows_in_vector


class LayerProgram(UnitProgram):
    """A program of a layer on host tensors of codes, whose features are whole vectors."""

    def x(self, t: Expr, vector: Expr) -> Expr:
        """The 16 codes of a vector of the input."""
        return load_bytes(HOST_X, t * (NI << 4) + (vector << 4), LANES)

    def weights(self, matrix: Matrix, feature: Expr, vector: Expr) -> Expr:
        """The 16 codes of a vector of the weights of a feature, or as many indices of it and of the next one."""
        features = [feature + row for row in range(matrix.rows_in_vector)]
        depth, first = matrix.operand << 4, vector << 4
        return concat(*(load_bytes(matrix.weights, f * depth + first, LANES) for f in reversed(features)))

    def bias(self, matrix: Matrix, feature: Expr) -> Expr:
        """The codes of the biases of 16 features."""
        return load_bytes(matrix.bias, feature, LANES)

    def load_result(self) -> None:
        """Reads the result, a vector at a time."""
        p = self.program
        with p.loop("load_t", T) as t, p.loop("load_pe", const(PE_COUNT, 3)) as pe, p.loop("load_vector", NO) as v:
            column = pe.zext(32) * NO + v
            address = large_axi_address(vector_address(BASE, NO << 2, t, column))
            self.read("load y", address, HOST_Y, t * (NO << 6) + (column << 4))


def emit_layer(
    writer: LayerProgram,
    matrices: Sequence[Matrix],
    gates: int,
    micro_program: bytes,
    bias_y: Expr,
    states: Sequence[Expr] = (),
) -> None:
    """Appends the whole program of a layer: configuration, data, start, and the result's loads.

    ``states`` are host tensors of what a recurrent layer begins with instead of zeros: the hidden state, and what the
    activation units keep, if they keep anything.
    """
    program, recurrent = writer.program, len(matrices) > 1
    zero_first = int(recurrent and not states)
    in_pe = NO * gates
    bases: list[Expr] = [const(0, 32)]
    for matrix in matrices:
        bases.append(bases[-1] + matrix.operand + in_pe)
    tiles: list[Expr] = [const(0, 32)]
    for matrix in matrices:
        tiles.append(tiles[-1] + in_pe * matrix.operand)
    _configure_cores(writer, matrices, gates, (bases, tiles), zero_first)
    _configure_acts(writer, micro_program, bias_y, zero_first)
    for number, matrix in enumerate(matrices):
        if matrix.table is not None:
            _store_table(writer, matrix.name, matrix.table, number)
        _store_weights(writer, matrix, gates, tiles[number])
        _store_biases(writer, matrix, gates, bases[number] + matrix.operand)
    for name, state, in_core in zip(("hidden", "kept"), states, (True, False), strict=False):
        _store_state(writer, name, state, bases[1] if in_core else None)
    managers = LARGE_MANAGER_WORD.pack_expr(num_vector_0=NI[7:0], num_vector_1=(NO << 2)[7:0], base_large_1=BASE[15:0])
    writer.write("configure managers", register_address(Region.MANAGERS), managers)
    unit = UNIT_WORD.pack_expr(
        is_valid=1,
        is_rnn=int(recurrent),
        memory_index_2=1,
        num_vector_1=NI[7:0],
        num_vector_2=(NO << 2)[7:0],
        num_timestep_1=T[15:0],
    )
    writer.write("configure GBControl", register_address(Region.CONTROL), unit)
    with program.loop("store_t", T) as t, program.loop("store_vector", NI) as v:
        writer.write("store x", large_axi_address(vector_address(const(0, 32), NI, t, v)), writer.x(t, v))
    writer.write("start GBControl", register_address(Region.START, Start.CONTROL), 1)
    writer.load_result()


def _configure_cores(
    writer: UnitProgram,
    matrices: Sequence[Matrix],
    gates: int,
    places: tuple[Sequence[Expr], Sequence[Expr]],
    zero_first: int,
) -> None:
    bases, tiles = places
    sizing = RNN_LAYER_SIZING_WORD.pack_expr(
        is_valid=1,
        is_zero_first=zero_first,
        is_cluster=int(matrices[0].table is not None),
        is_bias=1,
        num_manager=len(matrices),
        num_output=(NO * gates)[7:0],
    )
    for pe in range(PE_COUNT):
        writer.write(f"configure core {pe}", pe_register_address(pe, PeRegion.CORE), sizing)
        for number, matrix in enumerate(matrices):
            manager = MEM_MNGR_WORD.pack_expr(
                zero_active=int(number > 0),
                adpfloat_bias_w=matrix.bias_w[2:0],
                adpfloat_bias_b=matrix.bias_b[2:0],
                adpfloat_bias_i=matrix.bias_x[2:0],
                num_input=matrix.operand[7:0],
                base_weight=(tiles[number] * matrix.vectors_of_tile)[15:0],
                base_bias=(bases[number] + matrix.operand)[15:0],
                base_input=bases[number][15:0],
            )
            address = pe_register_address(pe, PeRegion.CORE, 2 + 2 * number)
            writer.write(f"configure manager {number} of core {pe}", address, manager)


def _configure_acts(writer: UnitProgram, micro_program: bytes, bias_y: Expr, zero_first: int) -> None:
    for pe in range(PE_COUNT):
        act = ACT_MNGR_WORD.pack_expr(
            is_valid=1,
            is_zero_first=zero_first,
            adpfloat_bias=bias_y[2:0],
            num_inst=len(micro_program),
            num_output=NO[7:0],
            output_addr_base=(NO * pe)[7:0],
        )
        writer.write(f"configure activation unit {pe}", pe_register_address(pe, PeRegion.ACT), act)
        for index, word in enumerate(ACT_VECTOR_WORDS[: -(-len(micro_program) // LANES)]):
            part = micro_program[LANES * index : LANES * (index + 1)]
            packed = word.pack(**dict(zip(word.fields, part, strict=False)))
            writer.write(
                f"micro-program of activation unit {pe}, word {index}",
                pe_register_address(pe, PeRegion.ACT, 2 + index),
                packed,
            )


def _store_table(writer: LayerProgram, name: str, table: Expr, number: int) -> None:
    """The codes of clustered weights to the table of every PE's manager with that number."""
    with writer.program.loop(f"{name}_table_pe", const(PE_COUNT, 3)) as pe:
        address = _pe_address(pe, PeRegion.CORE, const(3 + 2 * number, 16))
        writer.write(f"store table {name}", address, load_bytes(table, const(0, 32), LANES))


def _store_weights(writer: LayerProgram, matrix: Matrix, gates: int, first: Expr) -> None:
    """Tiles of 16 x 16 weights, for each PE by output vector, gate and vector of the operand."""
    p, name = writer.program, matrix.name
    with (
        p.loop(f"{name}_pe", const(PE_COUNT, 3)) as pe,
        p.loop(f"{name}_output", NO) as o,
        p.loop(f"{name}_gate", const(gates, 3)) as gate,
        p.loop(f"{name}_input", matrix.operand) as i,
        p.loop(f"{name}_row", const(matrix.vectors_of_tile, 5)) as row,
    ):
        feature = (((gate.zext(32) * PE_COUNT + pe.zext(32)) * NO + o) << 4) + row.zext(32) * matrix.rows_in_vector
        tile = first + (o * gates + gate.zext(32)) * matrix.operand + i
        address = _pe_address(pe, PeRegion.WEIGHT, (tile * matrix.vectors_of_tile + row.zext(32))[15:0])
        writer.write(f"store weights {name}", address, writer.weights(matrix, feature, i))


def _store_biases(writer: LayerProgram, matrix: Matrix, gates: int, first: Expr) -> None:
    p, name = writer.program, matrix.name
    with (
        p.loop(f"{name}_bias_pe", const(PE_COUNT, 3)) as pe,
        p.loop(f"{name}_bias_output", NO) as o,
        p.loop(f"{name}_bias_gate", const(gates, 3)) as gate,
    ):
        feature = ((gate.zext(32) * PE_COUNT + pe.zext(32)) * NO + o) << 4
        vector = first + o * gates + gate.zext(32)
        address = _pe_address(pe, PeRegion.INPUT, vector[7:0])
        writer.write(f"store biases {name}", address, writer.bias(matrix, feature))


def _store_state(writer: UnitProgram, name: str, state: Expr, first: Expr | None) -> None:
    """All of a state to every PE's input buffer from ``first`` on, or each PE's share to its activation unit."""
    p = writer.program
    vectors = NO if first is None else NO << 2
    with p.loop(f"{name}_pe", const(PE_COUNT, 3)) as pe, p.loop(f"{name}_vector", vectors) as v:
        if first is None:
            address, column = _pe_address(pe, PeRegion.ACT_BUFFER, v[4:0]), pe.zext(32) * NO + v
        else:
            address, column = _pe_address(pe, PeRegion.INPUT, (first + v)[7:0]), v
        writer.write(f"store {name} state", address, load_bytes(state, column << 4, LANES))


def _pe_address(pe: Expr, region: int, vector: Expr) -> Expr:
    """The AXI address (32 bits) of a vector of a PE's buffer; the PE is the low two bits of the partition."""
    return concat(const(PE_PARTITION >> 2, 6), pe[1:0], const(region, 4), vector.zext(16), const(0, 4))


def layer_domain(
    most: int, buffers: Iterable[tuple[str, Expr]], biases: Mapping[str, Expr]
) -> tuple[tuple[str, Expr], ...]:
    """All sizes that FlexASR's registers and ``buffers`` of PEs admit, with at most ``most`` output vectors of a PE."""
    return (
        ("1 <= T <= 65535", (const(1, 32) <= T) & (T <= 65535)),
        ("1 <= ni <= 255", (const(1, 32) <= NI) & (NI <= 255)),
        (f"1 <= no <= {most}", (const(1, 32) <= NO) & (most >= NO)),
        *buffers,
        ("base <= 65535", BASE <= 65535),
        ("16*ceil(T/16)*ni <= base", ((T + 15) >> 4) * NI * 16 <= BASE),
        ("base + 64*ceil(T/16)*no <= 65536 vectors", BASE + (((T + 15) >> 4) * NO) * 64 <= 65536),
        *((f"{n} <= 7", v <= 7) for n, v in biases.items()),
    )


def sizes_within(
    what: str, rows: int, features_in: int, features_out: int, gates: int, matrices: Sequence[Matrix]
) -> dict[str, int]:
    """T, ni, no and base for a layer on x [rows, features_in]; the result follows the input in the large buffer.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{features_in}x{features_out} of {what}"
    if features_in % LANES or not LANES <= features_in <= 255 * LANES:
        raise SizeError(
            f"Input features of {where} must be a multiple of 16 up to 4080, not {features_in}; pad or cut them"
        )
    if features_out % 64 or not 64 <= features_out <= 63 * 64:
        raise SizeError(
            f"Output features of {where} must be a multiple of 64 up to 4032, not {features_out}; pad or cut them"
        )
    if not 1 <= rows <= 65535:
        raise SizeError(f"Rows of {where} must be 1 to 65535 (a 16-bit register), not {rows}")
    groups, ni, no = -(-rows // 16), features_in // LANES, features_out // 64
    recurrent = len(matrices) > 1
    operands = ni + (4 * no if recurrent else 0)
    limits: Mapping[str, tuple[int, int]] = {
        "Vectors that a PE computes in a timestep": (gates * no, 255),
        "State vectors of a PE": (no if recurrent else 0, 32),
        "Input, state and bias vectors": (operands + len(matrices) * gates * no, 256),
        "Weight vectors of a PE": (matrices[0].vectors_of_tile * operands * gates * no, 65536),
        "Vectors of input and output": (16 * groups * (ni + 4 * no), 65536),
    }
    for name, (used, room) in limits.items():
        if used > room:
            raise SizeError(f"{name} of {where} must be at most {room}, not {used}; split the layer")
    return {"T": rows, "ni": ni, "no": no, "base": 16 * groups * ni}
