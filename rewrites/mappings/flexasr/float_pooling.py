"""Poolings of float32 tensors of any size: the host's share and FlexASR's in one mapping.

IR side: every element of x [2^n Y, C] is rounded to a code, pairs of rows are pooled n times, and the codes of the
result [Y, C] are read as float32 numbers.  Device side: the tensor is cut into parts, ``down`` times ``across`` of
them, of H rows of the result and nv vectors of columns each.  Host loops round a part and store it, with zeros where it
ends beyond the tensor, configure and start the poolings, and put what is loaded where it belongs, as float32 numbers.
"""

from __future__ import annotations

import numpy as np

from accel_models.flexasr.floats import EXPONENT_AT_0, EXPONENTS, adpfloat_to_float, float_to_adpfloat
from accel_models.flexasr.layout import LANES, large_axi_address, vector_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Kernel, bv, concat, const, ite, mem, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.conversion import DEQUANTISE_CODE, QUANTISE_CODE, convert, float_tensor, with_conversions
from rewrites.mappings.domain import between

from .buffers import BASE, NV, UnitProgram
from .chains import chain_model, emit_chain
from .mapping import ASSUMPTIONS, flexasr_mapping
from .pooling import KINDS, pooling_lemma

Y, C, H, DOWN, ACROSS, EXPONENT = (var(n, bv(32)) for n in ("Y", "C", "H", "down", "across", "exponent"))
PARAMETERS = {"Y": Y, "C": C, "H": H, "nv": NV, "down": DOWN, "across": ACROSS, "base": BASE, "exponent": EXPONENT}
PARAMETER_TEXTS = {
    "Y": "rows of the result",
    "C": "columns",
    "H": "rows of the result in a part",
    "nv": "vectors of 16 columns in a part",
    "down": "parts one below the other",
    "across": "parts side by side",
    "base": "first vector of a part in the large buffer",
    "exponent": "the codes' exponent field 0 is that of float32",
}
HOST_X, HOST_Y = var("host_x", mem(32, 32)), var("host_y", mem(32, 32))
CELL = tuple(
    (var(f"cell_{name}", bv(32)), extent)
    for name, extent in (("down", DOWN), ("row", H), ("across", ACROSS), ("vector", NV), ("lane", const(LANES, 32)))
)
"""Coordinates of an output element: a part and the row in it; a part, the vector in it and the lane."""


def domain(steps: int) -> tuple[tuple[str, Expr], ...]:
    """The sizes of so many poolings."""
    elements = (Y.zext(64) << steps) * C.zext(64)
    tiles = (((H << steps) + 15) >> 4) * NV
    return (
        between(Y, 1, 1 << 26),
        between(C, 1, 1 << 26),
        (f"{1 << steps}*Y*C < 2^32", elements < 1 << 32),
        between(H, 1, 65535 >> steps),
        between(NV, 1, 255),
        *covering("down", DOWN, H, "Y", Y),
        *covering("across", ACROSS, NV << 4, "C", C),
        ("base <= 65535", BASE <= 65535),
        (f"base + 16*ceil({1 << steps}*H/16)*nv <= 65536 vectors", BASE + tiles * 16 <= 65536),
        between(EXPONENT, EXPONENTS[0], EXPONENTS[-1]),
    )


def covering(name: str, count: Expr, size: Expr, whole: str, extent: Expr) -> tuple[tuple[str, Expr], ...]:
    """That so many parts of one size are as many as an extent needs."""
    parts, each, elements = count.zext(64), size.zext(64), extent.zext(64)
    return (
        (f"1 <= {name} <= {whole}", (const(1, 32) <= count) & (count <= extent)),
        (f"{whole} in {name} parts", (elements <= parts * each) & ((parts - 1) * each < elements)),
    )


def ir_fragment(kind: str, steps: int) -> Fragment:
    """Elements are rounded to codes, poolings follow each other, and the codes of the result are read."""
    conversions = (float_to_adpfloat, adpfloat_to_float)
    ila = with_conversions(chain_model(kind, steps), {"tensor_in": False}, "tensor_out", *conversions)
    program = Kernel(f"ir_float_{kind}pool_{steps}_times")
    convert(program, "round x to codes", QUANTISE_CODE, Y << steps, C, exponent=EXPONENT[7:0])
    emit_chain(program, kind, [Y << (steps - number) for number in range(steps)], C)
    convert(program, "read the codes of y", DEQUANTISE_CODE, Y, C, exponent=EXPONENT[7:0])
    return Fragment(program.name, ila, PARAMETERS, {}, program)


def device_fragment(kind: str, steps: int, options: FlexAsrOptions | None = None) -> Fragment:
    """For each part: store, configure and start for every pooling, load."""
    program = Kernel(f"flexasr_float_{kind}pool_{steps}_times")
    host = UnitProgram(program, flexasr(options))
    with program.loop("down_part", DOWN) as down, program.loop("across_part", ACROSS) as across:
        with program.loop("store_t", H << steps) as t, program.loop("store_vector", NV) as v:
            row, first = down * (H << steps) + t, (across * NV + v) << 4
            lanes = [ite((row < (Y << steps)) & (first + k < C), rounded(row, first + k), 0) for k in range(LANES)]
            host.write("store x", large_axi_address(vector_address(BASE, NV, t, v)), concat(*reversed(lanes)))
        host.large_manager()
        for number in range(steps):
            host.pool(KINDS[kind][1], H << (steps - number))
        with program.loop("load_t", H) as t, program.loop("load_vector", NV) as v:
            row, first = down * H + t, (across * NV + v) << 4
            codes = host.load("load y", large_axi_address(vector_address(BASE, NV, t, v)))
            for lane, code in enumerate(codes):
                with program.when(f"inside_{lane}", (row < Y) & (first + lane < C)):
                    program.store(HOST_Y, row * C + first + lane, adpfloat_to_float(code, EXPONENT[7:0]))
    return Fragment(program.name, host.ila, PARAMETERS, {t.name: t for t in (HOST_X, HOST_Y)}, program)


def rounded(row: Expr, column: Expr) -> Expr:
    """The code of an element of x."""
    return float_to_adpfloat(HOST_X.load(row * C + column), EXPONENT[7:0])


def float_pooling_mapping(kind: str, steps: int, options: FlexAsrOptions | None = None) -> TensorMapping:
    """The mapping ``flexasr_float_{kind}pool_x{steps}``, without the end where ``steps`` is 1.

    ``options`` select another reading of the hardware.
    """
    _, _, reduce, operator = KINDS[kind]
    conversions = (float_to_adpfloat, adpfloat_to_float)
    functions = (reduce, operator.first, operator.step, operator.finish, *conversions)
    times = "" if steps == 1 else f" {steps} times"
    return flexasr_mapping(
        name=f"flexasr_float_{kind}pool{f'_x{steps}' if steps > 1 else ''}",
        ir=ir_fragment(kind, steps),
        device=device_fragment(kind, steps, options),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=domain(steps),
        rows=Y,
        columns=C,
        cell=CELL,
        row_coordinates=2,
        cell_beyond=True,
        inputs=(("host_x", float_tensor("tensor_in")),),
        output=("host_y", float_tensor("tensor_out")),
        lemmas=(pooling_lemma(kind),),
        abstract=frozenset(f.name for f in functions),
        sizes_of=lambda *shape: sizes_of(steps, *shape),
        statement=f"the host's loops and FlexASR's LayerReduce compute {kind} pooling with window (2, 1) and stride "
        f"(2, 1){times} of a float32 tensor, its elements rounded to codes of an exponent, and the result's codes read "
        "as float32 with this exponent",
        doc="For each part of the tensor: round and store, configure and start, load and convert",
        assumptions=ASSUMPTIONS,
        shape_names=("rows", "columns", "part_rows", "part_vectors"),
        sample_shapes=tuple((rows << steps, columns, h << steps, nv) for rows, columns, h, nv in SAMPLES),
        shape_parameters=frozenset(PARAMETERS) - {"base", "exponent"},
        show_element=lambda word: str(np.uint32(word).view(np.float32)),
    )


SAMPLES = ((1, 3, 1, 1), (2, 20, 1, 1), (3, 40, 2, 1), (5, 33, 2, 2), (4, 70, 1, 2), (7, 50, 3, 1), (9, 90, 2, 3))


def sizes_of(steps: int, rows: int, columns: int, part_rows: int, part_vectors: int) -> dict[str, int]:
    """Sizes for x [rows, columns] in parts of so many of its rows, and vectors of 16 columns, stored at base 0.

    Codes are those of bias 0.  Raises SizeError where rows cannot be pooled.
    """
    for what, count in (("Rows", rows), ("Rows of a part", part_rows)):
        if count % (1 << steps) or count < 1:
            raise SizeError(
                f"{what} of {steps} FlexASR poolings of a float32 tensor must be a positive multiple of {1 << steps}, "
                f"not {count}; pad the tensor, or pool fewer times"
            )
    if part_vectors < 1:
        raise SizeError(f"Vectors of a part must be at least one, not {part_vectors}; give some")
    down, across = -(-rows // part_rows), -(-columns // (LANES * part_vectors))
    parts = {"H": part_rows >> steps, "nv": part_vectors, "down": down, "across": across}
    return {"Y": rows >> steps, "C": columns, **parts, "base": 0, "exponent": EXPONENT_AT_0}
