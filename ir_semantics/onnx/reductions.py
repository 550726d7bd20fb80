"""Conversion of ONNX operators that reduce: sums, extrema, products of matrices, cumulative sums, Einsum."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ir_semantics.graph import words

from .call import Call, converts

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


@converts(*(f"Reduce{name}" for name in _REDUCTIONS))
def _reduce(call: Call) -> int:
    rank, keep = len(call.shape()), bool(call.integer("keepdims", 1))
    name, x, since = call.operator.removeprefix("Reduce"), call.operand(0), 13 if call.operator == "ReduceSum" else 18
    listed = call.listed("axes", since)
    nothing = call.opset >= since and bool(call.integer("noop_with_empty_axes", 0))
    axes = call.axes(listed, rank) if listed else [] if nothing else list(range(rank))

    def total(operator: str, of: int) -> int:
        return words.reduce(call.b, operator, of, axes, keep)

    if name == "LogSumExp":
        return _log_sum_exp(call, x, axes, keep)
    if name == "Mean" and call.kind() == "int":
        return call.apply("quotient", total("reduce_sum", x), call.literal(prod(call.shape()[a] for a in axes)))
    simple: dict[str, Callable[[], int]] = {
        "Sum": lambda: total("reduce_sum", x),
        "Max": lambda: total("reduce_max", x),
        "Min": lambda: total("reduce_min", x),
        "Mean": lambda: total("mean", x),
        "Prod": lambda: total("reduce_prod", x),
        "L1": lambda: total("reduce_sum", call.add("abs", x)),
        "SumSquare": lambda: total("reduce_sum", call.add("mul", x, x)),
        "L2": lambda: call.add("sqrt", total("reduce_sum", call.add("mul", x, x))),
        "LogSum": lambda: call.add("log", total("reduce_sum", x)),
    }
    return simple[name]()


def _log_sum_exp(call: Call, x: int, axes: list[int], keep: bool) -> int:
    """log(sum(exp(x - m))) + m with m the maximum, where that is finite: exponentials do not overflow."""
    largest = words.reduce(call.b, "reduce_max", x, axes, True)
    infinite = call.add("is_inf", largest, negative=True, positive=True)
    largest = call.apply("where", infinite, call.literal(0), largest)
    total = words.reduce(call.b, "reduce_sum", call.add("exp", call.apply("sub", x, largest)), axes, True)
    result = call.apply("add", call.add("log", total), largest)
    return result if keep else words.reshape(call.b, result, [d for j, d in enumerate(call.shape()) if j not in axes])


@converts("ArgMax", "ArgMin")
def _arg(call: Call) -> int:
    axis = call.axis(call.integer("axis", 0), len(call.shape()))
    last = bool(call.integer("select_last_index", 0))
    indices = call.add(f"arg_{call.operator[3:].lower()}", call.operand(0), axis=axis, last=last)
    if not call.integer("keepdims", 1):
        return indices
    return words.reshape(call.b, indices, [1 if j == axis else d for j, d in enumerate(call.shape())])


@converts("CumSum", "CumProd")
def _cumulative(call: Call) -> int:
    axis = call.axis(int(call.static_number(1, "the axis")), len(call.shape()))
    exclusive, reverse = bool(call.integer("exclusive", 0)), bool(call.integer("reverse", 0))
    x, extent, b = call.operand(0), call.shape()[axis], call.b
    operator, unit = ("cumsum", 0) if call.operator == "CumSum" else ("cum_prod", 1)
    if reverse:
        x = call.add("reverse", x, axes=[axis])
    if exclusive and extent:
        before = [1 if j == axis else 0 for j in range(len(call.shape()))]
        shorter = words.take(b, x, axis, 0, extent - 1)
        x = call.add("pad", shorter, call.literal(unit), before=before, after=[0] * len(before))
    result = call.add(operator, x, axis=axis)
    return call.add("reverse", result, axes=[axis]) if reverse else result


def matmul(call: Call, x: int, y: int) -> int:
    """The product by numpy.matmul's rules: vectors are a row or a column, and other axes are broadcast."""
    b = call.b
    row, column = len(b.shape(x)) == 1, len(b.shape(y)) == 1
    if not b.shape(x) or not b.shape(y):
        raise call.fail("factors must have at least one axis")
    if row:
        x = words.reshape(b, x, [1, *b.shape(x)])
    if column:
        y = words.reshape(b, y, [*b.shape(y), 1])
    batch = words.common_shape([b.shape(x)[:-2], b.shape(y)[:-2]])
    if b.shape(x)[-1] != b.shape(y)[-2]:
        raise call.fail(f"factors must have a common inner extent, not {list(b.shape(x))} and {list(b.shape(y))}")
    if len(batch) and len(b.shape(y)) == 2:  # one right factor for all rows: a single product of matrices
        product = b.add("matmul", words.reshape(b, x, [prod(b.shape(x)[:-1]), b.shape(x)[-1]]), y)
        product = words.reshape(b, product, [*b.shape(x)[:-1], b.shape(y)[-1]])
    else:
        x, y = (words.expand(b, v, [*batch, *b.shape(v)[-2:]]) for v in (x, y))
        product = b.add("matmul", x, y)
    shape = list(b.shape(product))
    if column:
        shape.pop()
    if row:
        shape.pop(-1 if column else -2)
    return words.reshape(b, product, shape)


@converts("MatMul")
def _matmul(call: Call) -> int:
    return matmul(call, call.operand(0), call.operand(1))


@converts("Gemm")
def _gemm(call: Call) -> int:
    a, b = (
        words.transpose(call.b, call.operand(i), [1, 0]) if call.integer(name, 0) else call.operand(i)
        for i, name in enumerate(("transA", "transB"))
    )
    alpha, beta = call.real("alpha", 1.0), call.real("beta", 1.0)
    product = matmul(call, a, b)
    if alpha != 1:
        product = call.apply("mul", product, call.literal(alpha))
    if not call.has(2) or beta == 0:
        return product
    c = call.operand(2)
    if beta != 1:
        c = call.apply("mul", c, call.literal(beta))
    return call.apply("add", product, words.expand(call.b, c, call.b.shape(product)))


@converts("Einsum")
def _einsum(call: Call) -> int:
    operands, b = call.all(), call.b
    equation = call.text("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise call.fail(f"the equation {equation!r} must have a term for each of {len(operands)} operands")
    spread = max((len(b.shape(x)) - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)), default=0)
    hidden = "".join(chr(0x100 + j) for j in range(spread))  # letters for the axes under an ellipsis
    extents: dict[str, int] = {}
    named = []
    for term, x in zip(terms, operands, strict=True):
        own = len(b.shape(x)) - len(term.replace("...", ""))
        letters = term.replace("...", hidden[spread - own :]) if "..." in term else term
        if len(letters) != len(b.shape(x)):
            raise call.fail(f"the term {term!r} must have a letter for each axis of {list(b.shape(x))}")
        for letter, extent in zip(letters, b.shape(x), strict=True):
            known = extents.setdefault(letter, extent)
            if known != extent and 1 not in (known, extent):
                raise call.fail(f"the letter {letter!r} must stand for one extent, not {known} and {extent}")
            extents[letter] = max(known, extent)
        named.append((letters, x))
    if arrow:
        result = right.replace("...", hidden)
    else:
        result = hidden + "".join(sorted(c for c in set("".join(terms)) - set(".") if left.count(c) == 1))
    if set(result) - set(extents):
        raise call.fail(f"letters of the result {right!r} must occur in the operands")
    order = [*result, *(c for c in extents if c not in result)]
    product = None
    for letters, x in named:
        x, distinct = _diagonal(call, letters, x)
        x = words.transpose(b, x, [distinct.index(c) for c in order if c in distinct])
        x = words.reshape(
            b, x, [b.shape(x)[[d for d in order if d in distinct].index(c)] if c in distinct else 1 for c in order]
        )
        product = x if product is None else call.apply("mul", product, x)
    assert product is not None
    product = words.expand(b, product, [extents[c] for c in order])
    return words.reduce(b, "reduce_sum", product, list(range(len(result), len(order))), False)


def _diagonal(call: Call, letters: str, x: int) -> tuple[int, str]:
    """Axes of one letter become one: the diagonal."""
    b = call.b
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = words.move(b, words.move(b, x, second, len(letters) - 1), first, len(letters) - 2)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
            *rest, n, m = b.shape(x)
            if n != m:
                raise call.fail(f"the letter {letter!r} must stand for one extent, not {n} and {m}")
            x = words.take(b, words.reshape(b, x, [*rest, n * n]), len(rest), 0, n * n, n + 1)
    return x, letters
