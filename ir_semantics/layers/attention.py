"""Attention of one query or several over a row-major tensor, as an instruction of the tensor-IR ILA.

The meaning is one kernel: a score for every row (its product with the query), the softmax of the scores, and the sum
of the rows weighted by it.  What multiplying, exponentials and rounding are is the element type's business
(:class:`AttentionOperator`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from ila_lang import Expr, Function, Ila, Kernel, const

from .layer import Layer, bits

ATTENTION_CODE = 20
"""``func_id`` of the instruction of attention."""


@dataclass(frozen=True)
class AttentionOperator:
    """How elements of one type are weighted.

    ``step(acc, a, b)`` accumulates a product, beginning with 0.  ``score(acc, *parameters)`` makes a score of a sum;
    ``larger(a, b)`` of two scores begins with ``least`` (its bits as a number).  ``add_exponential(total, score,
    largest)`` adds exp(score - largest), beginning with 0, and ``weight(score, largest, total, *parameters)`` is the
    softmax, an element.  ``finish(acc, *parameters)`` narrows a weighted sum to an element.  ``parameters`` are
    operands of the instruction with their widths in bits; ``scoring``, ``weighing`` and ``finishing`` name those that
    the functions take.
    """

    step: Function
    score: Function
    least: int
    larger: Function
    add_exponential: Function
    weight: Function
    finish: Function
    parameters: Mapping[str, int] = field(default_factory=dict)
    scoring: Sequence[str] = ()
    weighing: Sequence[str] = ()
    finishing: Sequence[str] = ()


def attention_ir(operator: AttentionOperator, *, masked: bool = False, several: bool = False) -> Ila:
    """The tensor IR as an ILA with the one instruction ``attention``: y = softmax(x q) x, for x [T, C] and q [C].

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` and ``features`` (32 bits each) and the operator's
    parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x, ``tensor_query`` q,
    ``tensor_scores`` and ``tensor_weights`` [T], and ``tensor_out`` y [C].  ``masked`` attention has the operand
    ``valid`` (32 bits), too: of x only so many rows are read, and the others count as zeros.  Of ``several`` queries,
    all of one x, there are ``queries`` (32 bits); q, y, scores and weights have a row for each.
    """
    element_width, number, totals, sums = (
        bits(f.result) for f in (operator.finish, operator.score, operator.add_exponential, operator.step)
    )
    k = Kernel("attention", "softmax-weighted sum of the rows of a row-major tensor")
    extents = ["rows", "features", *(["valid"] if masked else []), *(["queries"] if several else [])]
    what = "several queries" if several else "one query"
    layer = Layer(f"attention of {what}", ATTENTION_CODE, k, {**dict.fromkeys(extents, 32), **operator.parameters})
    s = layer.states
    x, query, scores, weights, y = (
        layer.tensor(name, width, doc)
        for name, width, doc in (
            ("in", element_width, "input tensor x, row-major"),
            ("query", element_width, "query"),
            ("scores", number, "score of each row"),
            ("weights", element_width, "softmax of the scores"),
            ("out", element_width, "output y"),
        )
    )
    rows, features = s["rows"], s["features"]
    scoring, weighing, finishing = (
        [s[n] for n in names] for names in (operator.scoring, operator.weighing, operator.finishing)
    )

    def element(name: str, row: Expr, column: Expr) -> Expr:
        if not masked:
            return k.load(name, x, row * features + column)
        value = k.let(f"{name}_or_zero", const(0, element_width))
        with k.when(f"{name}_valid", row < s["valid"]):
            k.assign(value, k.load(name, x, row * features + column))
        return value

    with k.loop("per_query", s["queries"]) if several else nullcontext() as q:

        def at(extent: Expr, index: Expr) -> Expr:
            """The place of an element that belongs to the query, in a tensor with a row of this extent for each."""
            return index if q is None else q * extent + index

        with k.loop("scored", rows) as row:
            acc = k.let("product", const(0, sums))
            with k.loop("depth", features) as i:
                a, b = element("element", row, i), k.load("asked", query, at(features, i))
                k.assign(acc, operator.step(acc, a, b))
            k.store(scores, at(rows, row), operator.score(acc, *scoring))
        largest = k.let("largest", const(operator.least, number))
        with k.loop("compared", rows) as row:
            k.assign(largest, operator.larger(largest, k.load("score", scores, at(rows, row))))
        total = k.let("total", const(0, totals))
        with k.loop("summed", rows) as row:
            score = k.load("summand", scores, at(rows, row))
            k.assign(total, operator.add_exponential(total, score, largest))
        with k.loop("weighed", rows) as row:
            weight = operator.weight(k.load("again", scores, at(rows, row)), largest, total, *weighing)
            k.store(weights, at(rows, row), weight)
        with k.loop("feature", features) as feature:
            acc = k.let("sum", const(0, sums))
            with k.loop("row", rows) as row:
                a, b = element("value", row, feature), k.load("weight", weights, at(rows, row))
                k.assign(acc, operator.step(acc, a, b))
            k.store(y, at(features, feature), operator.finish(acc, *finishing))
    return layer.finished()
