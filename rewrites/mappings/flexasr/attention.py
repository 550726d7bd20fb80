"""The mappings of attention with one query, or several, to FlexASR's Attention unit.

IR side: softmax(x q) x for x [R, 16*nv], R a multiple of 16, with the unit's arithmetic.  Device side: x is stored to
the large buffer and q to the small one, the unit works, and q's place is read.  Several queries of one x, as decoders
of sequences have, take one start each, in a loop of the host; x stays where it is.

What the unit computes is softmax only while the sum of exponentials is below 4, and a score of exactly 0 counts as
-64: its functions :data:`~accel_models.flexasr.functions.divide_q24` and the operator's ``score`` say so, and the claim
is about these.  What that means for real numbers stands in docs/reference/numerics.md.
"""

from __future__ import annotations

from contextlib import nullcontext

from accel_models.flexasr.functions import attention_compress, attention_shift, divide_q24, exp
from accel_models.flexasr.layout import LANES, SMALL_VECTORS, Region, Start
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.units.attention import MASKED, SOFTMAX
from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.attention import ATTENTION_CODE, AttentionOperator, attention_ir
from ir_semantics.layers.layer import call

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
from .linear import multiply_add
from .mapping import ASSUMPTIONS, flexasr_mapping

MOST_TIMESTEPS = 1024
"""Of more, scores overwrite each other: the unit numbers vectors of four scores with 8 bits."""
BASE_QUERY, BASE_SCORES = var("base_query", bv(32)), var("base_scores", bv(32))
ENTRY_QUERY = var("entry_query", bv(32))
BIASES = {n: var(n, bv(32)) for n in ("bias_x", "bias_query", "bias_weights", "bias_y")}
"""AdaptivFloat biases: of x, of the query, of the softmax weights, and of the result."""
PARAMETERS = {
    "T": T,
    "nv": NV,
    "base": BASE,
    "entry": ENTRY,
    "base_query": BASE_QUERY,
    "entry_query": ENTRY_QUERY,
    "base_scores": BASE_SCORES,
    **BIASES,
}
PARAMETER_TEXTS = {
    "T": "timesteps, padded to a multiple of 16 rows",
    "nv": "vectors of 16 columns",
    "base": "first vector of x in the large buffer",
    "entry": ENTRY_TEXT,
    "base_query": "first vector of the query, then of the result, in the small buffer",
    "entry_query": "entry of the small buffer's manager for the query and the result",
    "base_scores": "first vector of the scores in the small buffer",
    "bias_x": "AdaptivFloat bias of x",
    "bias_query": "AdaptivFloat bias of the query",
    "bias_weights": "AdaptivFloat bias of the softmax weights",
    "bias_y": "AdaptivFloat bias of the result",
}
ROWS, SCORES = ((T + 15) >> 4) << 4, ((T + 15) >> 4) << 2
"""Rows with those of padding, and vectors of their scores."""
QUERIES = var("queries", bv(32))
OF_QUERIES = (("1 <= queries <= 65535", (const(1, 32) <= QUERIES) & (QUERIES <= 65535)),)
"""How many queries there may be: a bound of this mapping, whose numbers of elements have 32 bits."""
DOMAIN = (
    ("1 <= T <= 1024", (const(1, 32) <= T) & (T <= MOST_TIMESTEPS)),
    *matrix_domain(T, "T")[1:],
    (
        "base_query <= 1023 and base_scores <= 1023",
        (BASE_QUERY <= SMALL_VECTORS - 1) & (BASE_SCORES <= SMALL_VECTORS - 1),
    ),
    (
        "base_query + nv <= base_scores or base_scores + 4*ceil(T/16) <= base_query",
        (BASE_QUERY + NV <= BASE_SCORES) | (BASE_SCORES + SCORES <= BASE_QUERY),
    ),
    (f"base_query + nv <= {SMALL_VECTORS} vectors", BASE_QUERY + NV <= SMALL_VECTORS),
    (f"base_scores + 4*ceil(T/16) <= {SMALL_VECTORS} vectors", BASE_SCORES + SCORES <= SMALL_VECTORS),
    (f"entry_query <= {SOFTMAX - 1}", ENTRY_QUERY <= SOFTMAX - 1),
    *((f"{n} <= 7", v <= 7) for n, v in BIASES.items()),
)
PADDED_ROWS = "x is padded to a multiple of 16 rows, which count like all others: the score of a row of zeros is -64"
HIDDEN_ROWS = "rows of x from T on, up to a multiple of 16, count as rows of zeros, whose score is -64"
"""What is assumed of the rows beyond the last one."""
HOST_QUERY = var("host_query", mem(32, 8))
ABSTRACT = ("adpfloat_mul", "attention_shift", "exp", "divide_q24", "attention_compress")


@primitive(bv(32), acc=bv(32), bias_x=bv(3), bias_query=bv(3))
def attention_score(acc: Expr, bias_x: Expr, bias_query: Expr) -> Expr:
    """A sum of products in Q12.20; an exact 0 becomes -64, which masks rows of zeros."""
    return ite(acc == 0, const(MASKED, 32), attention_shift(acc, bias_x, bias_query))


@primitive(bv(32), a=bv(32), b=bv(32))
def larger_score(a: Expr, b: Expr) -> Expr:
    """The larger of two scores."""
    return ite(a.slt(b), b, a)


@primitive(bv(32), total=bv(32), score=bv(32), largest=bv(32))
def add_exponential(total: Expr, score: Expr, largest: Expr) -> Expr:
    """The sum in Q12.20 and exp(score - largest); wraps."""
    return total + exp(score - largest)


@primitive(bv(8), score=bv(32), largest=bv(32), total=bv(32), bias=bv(3))
def softmax_weight(score: Expr, largest: Expr, total: Expr, bias: Expr) -> Expr:
    """The code of exp(score - largest) / total; the divider takes total modulo 4."""
    return attention_compress(divide_q24(exp(score - largest), total), bias)


@primitive(bv(8), acc=bv(32), bias_x=bv(3), bias_weights=bv(3), bias_y=bv(3))
def attention_finish(acc: Expr, bias_x: Expr, bias_weights: Expr, bias_y: Expr) -> Expr:
    """The code of a weighted sum."""
    return attention_compress(attention_shift(acc, bias_x, bias_weights), bias_y)


OPERATOR = AttentionOperator(
    step=multiply_add,
    score=attention_score,
    least=-1 << 30 & 0xFFFFFFFF,  # where hardware's search for the maximum begins
    larger=larger_score,
    add_exponential=add_exponential,
    weight=softmax_weight,
    finish=attention_finish,
    parameters=dict.fromkeys(BIASES, 3),
    scoring=("bias_x", "bias_query"),
    weighing=("bias_weights",),
    finishing=("bias_x", "bias_weights", "bias_y"),
)
"""The IR's element type: AdaptivFloat codes with the accelerator's rounding."""


def parameters_of(several: bool) -> dict[str, Expr]:
    """The mapping's sizes: with ``several`` queries, also how many."""
    return {**({"queries": QUERIES} if several else {}), **PARAMETERS}


def ir_fragment(masked: bool = False, several: bool = False) -> Fragment:
    """One attention instruction, over all rows of x or the first T."""
    operands = {"rows": ROWS, "features": NV << 4, **({"valid": T} if masked else {})}
    operands |= {"queries": QUERIES} if several else {}
    operands |= {n: v[2:0] for n, v in BIASES.items()}
    ila = attention_ir(OPERATOR, masked=masked, several=several)
    return call("ir_attention", "attention", ATTENTION_CODE, ila, parameters_of(several), operands)


def small_entries() -> dict[int, Expr]:
    """Where rows of the small buffer begin: the query at its entry, the scores at theirs."""
    query = {i: ite(const(i, 32) == ENTRY_QUERY, BASE_QUERY, const(0, 32)) for i in range(SOFTMAX)}
    return {**query, SOFTMAX: BASE_SCORES}


def attention_fragment(ila: Ila, masked: bool = False, several: bool = False) -> Fragment:
    """The FlexASR program: configure, store, start, load; of ``several`` queries, from their store on for each."""
    program = Kernel("flexasr_attention")
    host = UnitProgram(program, ila, ENTRY)
    host.large_manager()
    host.small_manager(small_entries())
    host.unit(
        "Attention",
        Region.ATTENTION,
        memory_index_1=ENTRY[2:0],
        memory_index_2=ENTRY_QUERY[2:0],
        num_vector_1=NV[7:0],
        num_timestep_1=T[15:0],
        adpbias_1=BIASES["bias_x"][2:0],
        adpbias_2=BIASES["bias_query"][2:0],
        adpbias_3=BIASES["bias_weights"][2:0],
        adpbias_4=BIASES["bias_y"][2:0],
    )
    host.store_matrix(ROWS, valid=T if masked else None)
    with program.loop("query", QUERIES) if several else nullcontext() as q:
        host.store_row("query", HOST_QUERY, BASE_QUERY, q)
        host.start("Attention", Start.ATTENTION)
        host.load_row(BASE_QUERY, q)
    tensors = {t.name: t for t in (HOST_X, HOST_QUERY, HOST_Y)}
    return Fragment("flexasr_attention", ila, parameters_of(several), tensors, program)


def attention_mapping(
    options: FlexAsrOptions | None = None, *, masked: bool = False, several: bool = False
) -> TensorMapping:
    """The mapping ``flexasr_attention``, or with rows from T on ``masked``, ``flexasr_attention_masked``.

    With ``several`` queries these are ``flexasr_attention_queries`` and ``flexasr_attention_masked_queries``.
    ``options`` select another reading of the hardware.
    """
    shapes = ((1, 16), (2, 32), (17, 48), (33, 16), (20, 32), (50, 16))
    queries = QUERIES if several else const(1, 32)
    return flexasr_mapping(
        name=f"flexasr_attention{'_masked' if masked else ''}{'_queries' if several else ''}",
        ir=ir_fragment(masked, several),
        device=attention_fragment(flexasr(options), masked, several),
        parameters=parameters_of(several),
        parameter_texts={**({"queries": "queries"} if several else {}), **PARAMETER_TEXTS},
        domain=(*(OF_QUERIES if several else ()), *DOMAIN),
        rows=queries,
        columns=NV << 4,
        inputs=(("host_x", "tensor_in"), ("host_query", "tensor_query")),
        abstract=frozenset(ABSTRACT),
        sizes_of=sizes_of_several if several else sizes_of,
        statement="FlexASR's Attention program computes the quantised softmax(x q) x for "
        f"{'each of several queries' if several else 'one query'} q"
        f"{', rows from T on hidden' if masked else ''}",
        doc="Configure managers and unit, store the tiled matrix and the query, start, load",
        assumptions=(
            *ASSUMPTIONS,
            HIDDEN_ROWS if masked else PADDED_ROWS,
        ),
        sample_shapes=tuple((1 + k % 3, *shape) for k, shape in enumerate(shapes)) if several else shapes,
        shape_parameters=frozenset({"T", "nv", *(["queries"] if several else [])}),
        cell=((var("cell_row", bv(32)), queries), (VECTOR, NV), (LANE, const(LANES, 32))),
        cell_column=(VECTOR << 4) + LANE,
        shape_names=("queries", "rows", "columns") if several else ("rows", "columns"),
    )


def sizes_of(rows: int, columns: int) -> dict[str, int]:
    """Sizes for x [rows, columns] at base 0, the query and the scores one after the other.

    AdaptivFloat biases are 0, but for that of the weights, 3, the smallest that reaches 1.
    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{columns} of a FlexASR attention mapping"
    vectors = matrix_within(where, rows, columns)
    if rows > MOST_TIMESTEPS:
        raise SizeError(f"Rows of {where} must be at most {MOST_TIMESTEPS}, not {rows}; shorten the sequence")
    sizes = {"T": rows, "nv": vectors, "base": 0, "entry": 0, "base_query": 0, "entry_query": 0, "base_scores": vectors}
    return sizes | dict.fromkeys(BIASES, 0) | {"bias_weights": 3}


def sizes_of_several(queries: int, rows: int, columns: int) -> dict[str, int]:
    """As :func:`sizes_of`, with as many queries; raises SizeError where there are none or too many, too."""
    if not 1 <= queries <= 65535:
        raise SizeError(f"Queries of a FlexASR attention mapping must be 1 to 65535, not {queries}; cut them")
    return {"queries": queries, **sizes_of(rows, columns)}
