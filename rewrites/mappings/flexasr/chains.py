"""Mappings of several FlexASR operations in one program, and of data that goes to the host and back.

A *chain* stores a tensor once, pools pairs of rows several times in place, and loads the result once (D2A, figure 7f).
Its IR side pools a tensor as many times, each result being the next one's input, which is not one larger window: for
means and sums, narrowing after every step is part of the meaning.

What removes transfers from a program is proved on both ends.  ``flexasr_reload`` says that a matrix which is loaded to
the host and stored again at the same place is what it was, ``flexasr_reload_rest`` and ``flexasr_reload_apart`` that
so is every other vector: in unused rows of the matrix's last tiles, and outside of its tiles.  The ``..._reloaded``
chain moves the tensor to the host and back between two poolings (figure 7d) and has the IR side of the chain that does
not, so both programs compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from accel_models.flexasr.layout import LANES, vector_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, mem, true, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.copying import COPY_CODE, copy_ir
from ir_semantics.layers.layer import call
from ir_semantics.layers.pooling import POOL_CODES, tensor_ir

from .buffers import BASE, ENTRY, HOST_X, HOST_Y, NV, T, UnitProgram, matrix_domain, matrix_within
from .mapping import flexasr_mapping
from .pooling import CELL_COLUMN, KINDS, PARAMETER_TEXTS, PARAMETERS, pooling_lemma

ROW = var("cell_row", bv(32))
HOST_MID = var("host_mid", mem(32, 8))
"""What the host keeps of a matrix that it loads and stores again."""
ASSUMPTIONS = (
    "commands arrive one at a time, and the host waits for the interrupt after every start",
    "the buffer, registers and host memory hold arbitrary values before the program",
)


def chain_sizes(steps: int, rows: int, columns: int) -> dict[str, int]:
    """Sizes for ``steps`` poolings of an input tensor of ``rows`` x ``columns``, stored at base 0.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{columns} of a chain of {steps} FlexASR poolings"
    if rows % (1 << steps) or rows < 1:
        raise SizeError(
            f"Rows of {where} must be a positive multiple of {1 << steps}, not {rows}; pad the tensor, or pool fewer "
            "times"
        )
    return {"T": rows, "nv": matrix_within(where, rows, columns), "base": 0, "entry": 0}


def chain_model(kind: str, steps: int) -> Ila:
    """A new IR-ILA that pools from ``tensor_in`` through intermediate tensors to ``tensor_out``."""
    instruction, _, _, operator = KINDS[kind]
    between = [f"tensor_{number}" for number in range(1, steps)]
    return tensor_ir({instruction: operator}, ["tensor_in", *between, "tensor_out"])


def ir_chain(kind: str, steps: int) -> Fragment:
    """``steps`` pooling instructions with window and stride (2, 1), each on the result of the one before."""
    program = Kernel(f"ir_{kind}pool_{steps}_times")
    emit_chain(program, kind, [T >> number for number in range(steps)], NV << 4)
    return Fragment(program.name, _kept_model(kind, steps), PARAMETERS, {}, program)


_kept_model = cache(chain_model)


def emit_chain(program: Kernel, kind: str, heights: Sequence[Expr], width: Expr) -> None:
    """Appends these instructions, for the numbers of rows that each of them pools."""
    for number, height in enumerate(heights):
        source = {"source_in": const(number, 8)} if len(heights) > 1 else {}
        program.command(
            f"{kind} pooling {number + 1} of {len(heights)}, window (2, 1), stride (2, 1)",
            func_run=true,
            func_id=const(POOL_CODES[KINDS[kind][0]], 8),
            **source,
            height_in=height,
            width_in=width,
            pool_y_in=const(2, 8),
            pool_x_in=const(1, 8),
            stride_y_in=const(2, 8),
            stride_x_in=const(1, 8),
        )


def chain_fragment(kind: str, steps: int, ila: Ila, *, reloaded: bool = False) -> Fragment:
    """The FlexASR program: store, configure and start for every pooling, load.

    With ``reloaded`` the host loads every intermediate result and stores it again at the same place.
    """
    program = Kernel(f"flexasr_{kind}pool_{steps}_times{'_reloaded' if reloaded else ''}")
    host = UnitProgram(program, ila, ENTRY)
    host.store_matrix(T)
    host.large_manager()
    for number in range(steps):
        rows = T >> number
        if reloaded and number > 0:
            host.load_matrix(rows, HOST_MID, f"result_{number}")
            host.store_matrix(rows, HOST_MID, f"result_{number}")
        host.pool(KINDS[kind][1], rows)
    host.load_matrix(T >> steps)
    tensors = (HOST_X, HOST_MID, HOST_Y) if reloaded else (HOST_X, HOST_Y)
    return Fragment(program.name, ila, PARAMETERS, {t.name: t for t in tensors}, program)


def chain_mapping(
    kind: str, steps: int, options: FlexAsrOptions | None = None, *, reloaded: bool = False
) -> TensorMapping:
    """The mapping ``flexasr_{kind}pool_x{steps}``; with ``reloaded``, ``flexasr_{kind}pool_x{steps}_reloaded``.

    ``options`` select another reading of the hardware.
    """
    _, _, reduce, operator = KINDS[kind]
    moved = ", with intermediate results moved to the host and back," if reloaded else ""
    figure = "d" if reloaded else "f"
    return flexasr_mapping(
        name=f"flexasr_{kind}pool_x{steps}{'_reloaded' if reloaded else ''}",
        ir=ir_chain(kind, steps),
        device=chain_fragment(kind, steps, flexasr(options), reloaded=reloaded),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=(
            (f"T is a multiple of {1 << steps}", T[steps - 1 : 0] == 0),
            *matrix_domain(T, "T", least=1 << steps),
        ),
        rows=T >> steps,
        columns=NV << 4,
        cell=((ROW, T >> steps), *CELL_COLUMN),
        inputs=(("host_x", "tensor_in"),),
        lemmas=(pooling_lemma(kind),),
        abstract=frozenset({reduce.name, operator.first.name, operator.step.name, operator.finish.name}),
        sizes_of=lambda rows, columns: chain_sizes(steps, rows, columns),
        statement=f"{steps} starts of FlexASR's LayerReduce in one program{moved} compute {kind} pooling with window "
        f"(2, 1) and stride (2, 1) {steps} times",
        doc=f"Store to the tiled buffer, configure and start {steps} times in place, load (D2A figure 7{figure})",
        assumptions=ASSUMPTIONS,
        sample_shapes=tuple((r << steps, c) for r, c in ((1, 16), (2, 32), (3, 48), (5, 16), (9, 32), (17, 16))),
        shape_parameters=frozenset({"T", "nv"}),
    )


def reload_mapping(what: str = "matrix", options: FlexAsrOptions | None = None) -> TensorMapping:
    """That a matrix which the host loads and stores again leaves the buffer as it was; ``options`` select the hardware.

    ``what`` must not change: the "matrix" itself (the mapping ``flexasr_reload``), any vector in the "rest" of its last
    tiles (``flexasr_reload_rest``), or any vector "apart" from its tiles (``flexasr_reload_apart``).  These are all
    vectors of the buffer.  Raises KeyError for another word.
    """
    part = _PARTS[what]
    program = Kernel(part.name)
    host = UnitProgram(program, flexasr(options), ENTRY)
    if part.place is None:
        host.store_matrix(T)
    else:
        host.store_vector(part.place)
    host.load_matrix(T, HOST_MID, "what_was_there")
    host.store_matrix(T, HOST_MID, "what_was_there")
    if part.place is None:
        host.load_matrix(T)
    else:
        host.load_vector(part.place)
    parameters = PARAMETERS | part.parameters
    tensors = {t.name: t for t in (HOST_X, HOST_MID, HOST_Y)}
    rows, features = (T, NV << 4) if part.place is None else (const(1, 32), const(LANES, 32))
    return flexasr_mapping(
        name=program.name,
        ir=ir_copy(rows, features, parameters),
        device=Fragment(program.name, host.ila, parameters, tensors, program),
        parameters=parameters,
        parameter_texts=PARAMETER_TEXTS | part.texts,
        domain=(*matrix_domain(T, "T"), *part.domain),
        rows=rows,
        columns=features,
        cell=((ROW, T), *CELL_COLUMN) if part.place is None else (),
        inputs=(("host_x", "tensor_in"),),
        abstract=frozenset(),
        sizes_of=part.sizes_of,
        statement=f"{part.statement} in FlexASR's large buffer is what it was after {part.matrix} is loaded to the "
        "host and stored again at the same place",
        doc="Store, load the matrix to the host, store it from there, load (D2A figure 7e)",
        assumptions=ASSUMPTIONS,
        sample_shapes=((1, 16), (2, 32), (5, 48), (17, 16), (18, 32), (30, 32)),
        shape_parameters=frozenset({"T", "nv"}),
    )


def matrix_sizes(rows: int, columns: int) -> dict[str, int]:
    """Sizes for a matrix of ``rows`` x ``columns``, stored at base 0; raises SizeError where it does not fit."""
    where = f"shape {rows}x{columns} of a matrix in FlexASR's large buffer"
    return {"T": rows, "nv": matrix_within(where, rows, columns), "base": 0, "entry": 0}


def rest_sizes(rows: int, columns: int) -> dict[str, int]:
    """As :func:`matrix_sizes`, and the first row after the matrix; raises SizeError where its tiles are full."""
    sizes = matrix_sizes(rows, columns)
    if rows % 16 == 0:
        raise SizeError(
            f"Rows of shape {rows}x{columns} of a matrix with unused rows in its tiles must be no multiple of 16, not "
            f"{rows}: there is no rest; take another number of rows"
        )
    return sizes | {"row_apart": rows, "vector_apart": sizes["nv"] - 1}


def apart_sizes(rows: int, columns: int) -> dict[str, int]:
    """As :func:`matrix_sizes`, and the vector right after the matrix's tiles; raises SizeError where there is none."""
    sizes = matrix_sizes(rows, columns)
    place = -(-rows // 16) * 16 * sizes["nv"]
    if place > 65535:
        raise SizeError(
            f"Tiles of shape {rows}x{columns} of a matrix in FlexASR's large buffer must leave a vector of 65536 free, "
            f"not take {place}; take a smaller one"
        )
    return sizes | {"place": place}


def ir_copy(rows: Expr, features: Expr, parameters: dict[str, Expr]) -> Fragment:
    """One ``copy_rows`` instruction."""
    return call("ir_copy", "copy", COPY_CODE, copy_ir(), parameters, {"rows": rows, "features": features})


@dataclass(frozen=True)
class _Part:
    """A part of the buffer: the matrix, or the vector at ``place``; with parameters of its own and their domain."""

    name: str
    statement: str
    matrix: str
    sizes_of: Callable[[int, int], dict[str, int]]
    place: Expr | None = None
    parameters: dict[str, Expr] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    domain: tuple[tuple[str, Expr], ...] = ()


PLACE, ROW_APART, VECTOR_APART = var("place", bv(32)), var("row_apart", bv(32)), var("vector_apart", bv(32))
_TILES = (T + 15) >> 4
_PARTS = {
    "matrix": _Part("flexasr_reload", "A matrix", "it", matrix_sizes),
    "rest": _Part(
        "flexasr_reload_rest",
        "A vector of an unused row of a matrix's last tiles",
        "the matrix",
        rest_sizes,
        vector_address(BASE, NV, ROW_APART, VECTOR_APART).zext(32),
        {"row_apart": ROW_APART, "vector_apart": VECTOR_APART},
        {"row_apart": "the unused row", "vector_apart": "the vector in it"},
        (
            ("T <= row_apart < 16*ceil(T/16)", (T <= ROW_APART) & (ROW_APART < (_TILES << 4))),
            ("vector_apart < nv", VECTOR_APART < NV),
        ),
    ),
    "apart": _Part(
        "flexasr_reload_apart",
        "A vector outside of a matrix's tiles",
        "the matrix",
        apart_sizes,
        PLACE,
        {"place": PLACE},
        {"place": "the vector of the large buffer"},
        (
            ("place <= 65535", PLACE <= 65535),
            (
                "place < base or base + 16*ceil(T/16)*nv <= place",
                (PLACE < BASE) | (BASE + (_TILES * NV) * 16 <= PLACE),
            ),
        ),
    ),
}
