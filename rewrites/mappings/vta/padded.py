"""The mapping of a dense layer on zero-padded rows to VTA, whose LOAD writes the zeros.

IR side: ``top`` rows of zeros, x [m, 16*inner] and ``bottom`` rows of zeros are multiplied with weights [16*n,
16*inner]; a bias is added, and results are shifted right and saturated to bytes.  Device side: as in
:mod:`rewrites.mappings.vta.dense`, but only x lies in DRAM; LOAD pads it on its way to the input scratchpad.
"""

from __future__ import annotations

from accel_models.vta.model import vta
from accel_models.vta.options import VtaOptions
from ila_lang import Expr, Fragment, Ila, bv, const, var
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.dense import DENSE_CODE, dense_ir
from ir_semantics.layers.layer import call

from .dense import DENSE, DEPTH, ROOM, SHIFT, layer_fragment, layer_mapping, require_vectors
from .programs import COLUMNS, ROWS, cell_of

TOP, BOTTOM = var("above", bv(32)), var("below", bv(32))
"""Rows of zeros above x, and below."""
TOTAL = ROWS + TOP + BOTTOM
PARAMETERS = {"m": ROWS, "inner": DEPTH, "n": COLUMNS, "above": TOP, "below": BOTTOM, "shift": SHIFT}
PARAMETER_TEXTS = {
    "m": "rows of the input, without padding",
    "inner": "vectors of 16 input channels",
    "n": "vectors of 16 output channels",
    "above": "rows of zeros above the input",
    "below": "rows of zeros below the input",
    "shift": "bits by which sums are shifted right",
}
CELL, CELL_COLUMN = cell_of(TOTAL)
DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("1 <= m <= 2047", (const(1, 32) <= ROWS) & (ROWS <= 2047)),
    ("above <= 15", TOP <= 15),
    ("below <= 15", BOTTOM <= 15),
    ("m + above + below <= 2047 accumulators", TOTAL <= 2047),
    ("1 <= inner <= 1024 tiles", (const(1, 32) <= DEPTH) & (DEPTH <= 1024)),
    ("(m + above + below)*inner <= 2048 input vectors", TOTAL * DEPTH <= 2048),
    ("1 <= n <= 65535", (const(1, 32) <= COLUMNS) & (COLUMNS <= 65535)),
    (
        f"16*n*inner + 4*n + m*inner + (m + above + below)*n <= {ROOM} vectors of DRAM",
        COLUMNS * DEPTH * 16 + COLUMNS * 4 + ROWS * DEPTH + TOTAL * COLUMNS <= ROOM,
    ),
    ("shift <= 15", SHIFT <= 15),
)


def padded_fragment(ila: Ila) -> Fragment:
    """The program of a dense layer on padded rows."""
    return layer_fragment("vta_padded", ila, PARAMETERS, TOTAL, y_pad_0=TOP, y_pad_1=BOTTOM)


def ir_fragment() -> Fragment:
    """One dense instruction on padded rows."""
    operands = {"rows": ROWS, "features_in": DEPTH << 4, "features_out": COLUMNS << 4}
    operands |= {"top": TOP, "bottom": BOTTOM, "shift": SHIFT[3:0]}
    ila = dense_ir(DENSE, padded=True)
    return call("ir_padded", "dense layer on padded rows", DENSE_CODE, ila, PARAMETERS, operands)


SAMPLES = (
    (1, 16, 16, 1, 1),
    (2, 48, 16, 2, 1),
    (3, 32, 32, 1, 3),
    (2, 16, 48, 3, 2),
    (4, 48, 32, 2, 2),
    (3, 64, 16, 1, 2),
)


def sizes_of(rows: int, features_in: int, features_out: int, above: int, below: int) -> dict[str, int]:
    """Sizes for x [rows, features_in] between rows of zeros, and ``features_out`` outputs, shifted by 9 bits.

    Raises SizeError where features are no multiples of 16.
    """
    require_vectors("layer on padded rows", rows, features_in, features_out)
    sizes = {"m": rows, "inner": features_in // 16, "n": features_out // 16, "above": above, "below": below}
    return sizes | {"shift": 9}


def padded_mapping(options: VtaOptions | None = None) -> TensorMapping:
    """The mapping ``vta_padded``; ``options`` select another reading of VTA."""
    return layer_mapping(
        name="vta_padded",
        ir=ir_fragment(),
        device=padded_fragment(vta(options)),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=TOTAL,
        columns=COLUMNS << 4,
        sizes_of=sizes_of,
        statement="VTA's program with a padded LOAD computes the dense layer on x between rows of zeros",
        doc="Write tensors and micro-ops to DRAM; a padded LOAD; GEMM, ALU and STORE for each vector of outputs; read",
        shape_names=("rows", "features_in", "features_out", "above", "below"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset(PARAMETERS) - {"shift"},
        cell=CELL,
        cell_column=CELL_COLUMN,
    )
