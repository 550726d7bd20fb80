"""The mappings of pooling with window and stride (2, 1) to FlexASR's LayerReduce unit.

IR side: one pooling instruction on a row-major tensor of T rows and 16*nv columns.  Device side: the tensor is stored
into the large buffer's tiles, manager and unit are configured, the unit is started, and the first T/2 rows are loaded.

An odd last row has no partner: the IR's windows leave it out.  Hardware pools it with what lies after the matrix, and
the public simulator does not (``FlexAsrOptions.reduce_odd``); either way that row of results is not loaded.

The layout and the configuration words are the ones the published drivers use (facts: the manager holds base and
num_vector; the unit's num_vector and num_timestep repeat nv and T).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import (
    adpfloat_add,
    adpfloat_max,
    adpfloat_mean,
    adpfloat_pool_add_step,
    adpfloat_pool_finish,
    adpfloat_pool_first,
    adpfloat_pool_max_step,
    adpfloat_pool_mean_finish,
    adpfloat_to_fixed,
)
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Function, Ila, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.mapping import Lemma, SizeError, TensorMapping
from ir_semantics.layers.layer import call
from ir_semantics.layers.pooling import POOL_CODES, PoolOperator, tensor_ir

from .buffers import BASE, ENTRY, ENTRY_TEXT, NV, T, UnitProgram, matrix_domain, matrix_within
from .mapping import flexasr_mapping

PARAMETERS = {"T": T, "nv": NV, "base": BASE, "entry": ENTRY}
PARAMETER_TEXTS = {
    "T": "rows",
    "nv": "vectors of 16 columns",
    "base": "first vector of the data in the large buffer",
    "entry": ENTRY_TEXT,
}
DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("T is a multiple of 2", T[0] == 0),
    ("2 <= T <= 65534", (const(2, 32) <= T) & (T <= 65534)),
    *matrix_domain(T, "T")[1:],
)
ODD_DOMAIN = (("T is odd", T[0] == 1), *matrix_domain(T, "T", least=3))
PAIR = (var("cell_pair", bv(32)), T >> 1)
CELL_COLUMN = ((var("cell_vector", bv(32)), NV), (var("cell_lane", bv(32)), const(LANES, 32)))
"""Coordinates of an output element with their extents: its row, which is a pair of input rows; vector and lane."""
HOST_IN, HOST_OUT = var("host_in", mem(32, 8)), var("host_out", mem(32, 8))

KINDS: dict[str, tuple[str, int, Function, PoolOperator]] = {
    "max": (
        "maxpool2d",
        0,
        adpfloat_max,
        PoolOperator(adpfloat_pool_first, adpfloat_pool_max_step, adpfloat_pool_finish),
    ),
    "mean": (
        "meanpool2d",
        1,
        adpfloat_mean,
        PoolOperator(adpfloat_pool_first, adpfloat_pool_add_step, adpfloat_pool_mean_finish),
    ),
    "add": (
        "addpool2d",
        2,
        adpfloat_add,
        PoolOperator(adpfloat_pool_first, adpfloat_pool_add_step, adpfloat_pool_finish),
    ),
}
"""IR instruction, LayerReduce mode, LayerReduce operator and IR element operator of each kind of pooling."""


@cache
def ir_model() -> Ila:
    """The IR-ILA with pooling over AdaptivFloat<8,3> codes."""
    return tensor_ir({instruction: operator for instruction, _, _, operator in KINDS.values()})


def ir_fragment(kind: str, ila: Ila | None = None) -> Fragment:
    """One pooling instruction with window and stride (2, 1) on the whole tensor; ``ila`` is another IR-ILA."""
    two, one = const(2, 8), const(1, 8)
    operands = {"height": T, "width": NV << 4, "pool_y": two, "pool_x": one, "stride_y": two, "stride_x": one}
    note, code = f"{kind} pooling, window (2, 1), stride (2, 1)", POOL_CODES[KINDS[kind][0]]
    return call(f"ir_{kind}pool", note, code, ila or ir_model(), PARAMETERS, operands)


def pooling_fragment(kind: str, ila: Ila) -> Fragment:
    """The FlexASR program: store, configure, start, load.  ``kind`` is "max", "mean" or "add"."""
    program = Kernel(f"flexasr_{kind}pool")
    host = UnitProgram(program, ila, ENTRY)
    host.store_matrix(T, HOST_IN)
    host.large_manager()
    host.pool(KINDS[kind][1], T)
    host.load_matrix(T >> 1, HOST_OUT)
    return Fragment(program.name, ila, PARAMETERS, {t.name: t for t in (HOST_IN, HOST_OUT)}, program)


def pooling_lemma(kind: str) -> Lemma:
    """LayerReduce's operator on two codes is the IR's pooling of a window of two."""
    _, _, reduce, operator = KINDS[kind]
    a, b = var("a", bv(8)), var("b", bv(8))
    return Lemma(
        f"{reduce.name} is {kind} pooling of two elements",
        reduce(a, b),
        operator.pair(a, b),
        f"LayerReduce's {kind} of two codes is the IR's {kind} pooling of a window of two: widen both exactly, "
        f"{'take the larger' if kind == 'max' else 'add'}, narrow once",
    )


def pooling_mapping(kind: str, options: FlexAsrOptions | None = None, *, odd: bool = False) -> TensorMapping:
    """The mapping ``flexasr_{kind}pool``, or that of an odd number of rows, ``flexasr_{kind}pool_odd``.

    ``options`` select another reading of the hardware.
    """
    _, _, reduce, operator = KINDS[kind]
    return flexasr_mapping(
        name=f"flexasr_{kind}pool{'_odd' if odd else ''}",
        ir=ir_fragment(kind),
        device=pooling_fragment(kind, flexasr(options)),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=ODD_DOMAIN if odd else DOMAIN,
        rows=T >> 1,
        columns=NV << 4,
        cell=(PAIR, *CELL_COLUMN),
        inputs=(("host_in", "tensor_in"),),
        output=("host_out", "tensor_out"),
        lemmas=(pooling_lemma(kind),),
        abstract=frozenset({reduce.name, operator.first.name, operator.step.name, operator.finish.name}),
        sizes_of=partial(sizes_of, odd=odd),
        statement=f"FlexASR's LayerReduce program computes {kind} pooling with window (2, 1) and stride (2, 1)"
        f"{' of an odd number of rows, of which the last one is left out' if odd else ''}",
        doc="Store to the tiled buffer, configure manager and unit, start, load (D2A figure 7a)",
        assumptions=(
            "commands arrive one at a time, and the host waits for the interrupt after the start",
            "the buffer, registers and host memory hold arbitrary values before the program",
        ),
    )


@primitive(bv(8), code=bv(8))
def select_first(code: Expr) -> Expr:
    """The code itself."""
    return code


@primitive(bv(8), acc=bv(8), x=bv(8))
def select_step(acc: Expr, x: Expr) -> Expr:
    """Whichever of two codes has the larger value, unchanged; ``acc`` where they are equal."""
    bias = const(0, 3)
    larger = adpfloat_to_fixed(x, bias).sle(adpfloat_to_fixed(acc, bias))
    return ite(larger, acc, x)


@primitive(bv(8), acc=bv(8), count=bv(16))
def select_finish(acc: Expr, count: Expr) -> Expr:
    """The accumulator itself."""
    return acc


def selection_mapping() -> TensorMapping:
    """The mapping ``flexasr_maxpool_select``, which is **false**: max pooling that returns one of its operands.

    The 2020 checker of the FlexASR mapping assumes it as an axiom.  LayerReduce returns 0x00 where the larger operand
    is the code 0x80 of zero, so the claim fails on 255 pairs of codes.
    """
    proved = pooling_mapping("max")
    operator = PoolOperator(select_first, select_step, select_finish)
    a, b = var("a", bv(8)), var("b", bv(8))
    lemma = Lemma(
        "adpfloat_max returns one of its arguments",
        adpfloat_max(a, b),
        operator.pair(a, b),
        "LayerReduce's max of two codes is the code with the larger value, unchanged",
    )
    return replace(
        proved,
        name="flexasr_maxpool_select",
        ir=ir_fragment("max", tensor_ir({"maxpool2d": operator})),
        lemmas=(lemma,),
        abstract=frozenset({adpfloat_max.name, select_first.name, select_step.name, select_finish.name}),
        statement="FlexASR's max pooling returns the larger of two codes unchanged (false: see -0)",
    )


def sizes_of(rows: int, columns: int, odd: bool = False) -> dict[str, int]:
    """Sizes for an input tensor of ``rows`` x ``columns``, stored at base 0.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{columns} of a FlexASR pooling mapping"
    if rows % 2 != odd:
        raise SizeError(f"Rows of {where} must be {'odd' if odd else 'even'}, not {rows}; pad or split the tensor")
    if columns % LANES or columns < LANES:
        raise SizeError(f"Columns of {where} must be a positive multiple of {LANES}, not {columns}; pad the tensor")
    if not 2 <= rows <= 65535:
        most = 65535 if odd else 65534
        raise SizeError(f"Rows of {where} must be {2 + odd} to {most} (a 16-bit register), not {rows}")
    return {"T": rows, "nv": matrix_within(where, rows, columns), "base": 0, "entry": 0}
