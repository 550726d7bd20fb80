"""The mapping of padding with rows of zeros to FlexASR's ZeroPadding unit.

IR side: x [T, 16*nv] and rows of zeros after it, P rows in all.  Device side: x is stored to the large buffer, the unit
clears the timesteps T .. P - 1, and P timesteps are read.
"""

from __future__ import annotations

from accel_models.flexasr.layout import LANES, Region, Start
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Fragment, Ila, Kernel, bv, const, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.layer import call
from ir_semantics.layers.padding import PADDING_CODE, padding_ir

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
from .mapping import flexasr_mapping

P = var("P", bv(32))
PARAMETERS = {"T": T, "P": P, "nv": NV, "base": BASE, "entry": ENTRY}
PARAMETER_TEXTS = {
    "T": "rows of x",
    "P": "rows of the result",
    "nv": "vectors of 16 columns",
    "base": "first vector of the data in the large buffer",
    "entry": ENTRY_TEXT,
}
DOMAIN = (("1 <= T < P", (const(1, 32) <= T) & (T < P)), *matrix_domain(P, "P", least=2))
CELL = ((var("cell_t", bv(32)), P), (VECTOR, NV), (LANE, const(LANES, 32)))


def ir_fragment() -> Fragment:
    """One ``pad_rows`` instruction."""
    operands = {"rows": T, "rows_out": P, "features": NV << 4}
    return call("ir_pad_rows", "rows of zeros after x", PADDING_CODE, padding_ir(), PARAMETERS, operands)


def padding_fragment(ila: Ila) -> Fragment:
    """The FlexASR program: configure, store, start, load."""
    program = Kernel("flexasr_zeropad")
    host = UnitProgram(program, ila, ENTRY)
    host.large_manager(NV)  # choices of strides by the entry keep solvers busy here
    host.unit(
        "ZeroPadding",
        Region.ZERO_PADDING,
        memory_index_1=ENTRY[2:0],
        num_vector_1=NV[7:0],
        num_timestep_1=T[15:0],
        num_timestep_2=P[15:0],
    )
    host.store_matrix(T)
    host.start("ZeroPadding", Start.ZERO_PADDING)
    host.load_matrix(P)
    return Fragment("flexasr_zeropad", ila, PARAMETERS, {t.name: t for t in (HOST_X, HOST_Y)}, program)


def padding_mapping(options: FlexAsrOptions | None = None) -> TensorMapping:
    """The mapping ``flexasr_zeropad``; ``options`` select another reading of the hardware."""
    return flexasr_mapping(
        name="flexasr_zeropad",
        ir=ir_fragment(),
        device=padding_fragment(flexasr(options)),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=P,
        columns=NV << 4,
        inputs=(("host_x", "tensor_in"),),
        abstract=frozenset(),
        sizes_of=sizes_of,
        statement="FlexASR's ZeroPadding program appends rows of zeros",
        doc="Configure manager and unit, store to the tiled buffer, start, load",
        assumptions=(
            "commands arrive one at a time, and the host waits for the interrupt after the start",
            "the buffer, registers and host memory hold arbitrary values before the program",
        ),
        shape_names=("rows", "columns", "rows_out"),
        sample_shapes=((1, 16, 2), (2, 32, 5), (3, 48, 18), (15, 32, 17), (17, 16, 35), (18, 48, 20), (2, 80, 3)),
        shape_parameters=frozenset({"T", "P", "nv"}),
        cell=CELL,
        cell_column=(VECTOR << 4) + LANE,
    )


def sizes_of(rows: int, columns: int, rows_out: int) -> dict[str, int]:
    """Sizes for x [rows, columns] and a result of ``rows_out`` rows, stored at base 0.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{columns}x{rows_out} of a FlexASR zero-padding mapping"
    if not 1 <= rows < rows_out:
        raise SizeError(
            f"Rows of {where} must be 1 or more, and fewer than those of the result, not {rows} of {rows_out}: the "
            "unit clears at least one; use no accelerator where nothing is appended"
        )
    return {"T": rows, "P": rows_out, "nv": matrix_within(where, rows_out, columns), "base": 0, "entry": 0}
