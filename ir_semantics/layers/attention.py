"""Attention of one query over a row-major tensor, as an instruction of the tensor-IR ILA.

The meaning is one kernel: a score for every row (its product with the query), the softmax of the scores, and the sum
of the rows weighted by it.  What multiplying, exponentials and rounding are is the element type's business
(:class:`AttentionOperator`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ila_lang import BOOL, BvSort, Function, Ila, Kernel, const, mem

__all__ = ["ATTENTION_CODE", "AttentionOperator", "attention_ir"]

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


def attention_ir(operator: AttentionOperator) -> Ila:
    """The tensor IR as an ILA with the one instruction ``attention``: y = softmax(x q) x, for x [T, C] and q [C].

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` and ``features`` (32 bits each) and the operator's
    parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x, ``tensor_query`` q,
    ``tensor_scores`` and ``tensor_weights`` [T], and ``tensor_out`` y [C].
    """
    element, number, total_sort, sums = (
        f.result for f in (operator.finish, operator.score, operator.add_exponential, operator.step)
    )
    assert isinstance(element, BvSort) and isinstance(number, BvSort)
    assert isinstance(total_sort, BvSort) and isinstance(sums, BvSort)
    ila = Ila("ir", "Tensor IR: attention of one query")
    run, func = ila.input("func_run", BOOL), ila.input("func_id", 8)
    widths = {"rows": 32, "features": 32, **operator.parameters}
    inputs = {n: ila.input(f"{n}_in", w) for n, w in widths.items()}
    s = {n: ila.state(n, w, 0, doc="operand of the running instruction") for n, w in widths.items()}
    x, query, scores, weights, y = (
        ila.state(f"tensor_{name}", mem(32, width), doc=doc)
        for name, width, doc in (
            ("in", element.width, "input tensor x, row-major"),
            ("query", element.width, "query"),
            ("scores", number.width, "score of each row"),
            ("weights", element.width, "softmax of the scores"),
            ("out", element.width, "output y"),
        )
    )
    ila.set_valid(run & (func == ATTENTION_CODE))
    k = Kernel("attention", "softmax-weighted sum of the rows of a row-major tensor")
    rows, features = s["rows"], s["features"]
    scoring, weighing, finishing = (
        [s[n] for n in names] for names in (operator.scoring, operator.weighing, operator.finishing)
    )
    with k.loop("scored", rows) as row:
        acc = k.let("product", const(0, sums.width))
        with k.loop("depth", features) as i:
            a, b = k.load("element", x, row * features + i), k.load("asked", query, i)
            k.assign(acc, operator.step(acc, a, b))
        k.store(scores, row, operator.score(acc, *scoring))
    largest = k.let("largest", const(operator.least, number.width))
    with k.loop("compared", rows) as row:
        k.assign(largest, operator.larger(largest, k.load("score", scores, row)))
    total = k.let("total", const(0, total_sort.width))
    with k.loop("summed", rows) as row:
        k.assign(total, operator.add_exponential(total, k.load("summand", scores, row), largest))
    with k.loop("weighed", rows) as row:
        weight = operator.weight(k.load("again", scores, row), largest, total, *weighing)
        k.store(weights, row, weight)
    with k.loop("feature", features) as feature:
        acc = k.let("sum", const(0, sums.width))
        with k.loop("row", rows) as row:
            a, b = k.load("value", x, row * features + feature), k.load("weight", weights, row)
            k.assign(acc, operator.step(acc, a, b))
        k.store(y, feature, operator.finish(acc, *finishing))
    instruction = ila.instruction("attention").set_decode(run & (func == ATTENTION_CODE))
    for name, given in inputs.items():
        instruction.update(s[name], given)
    instruction.start(k)
    return ila
