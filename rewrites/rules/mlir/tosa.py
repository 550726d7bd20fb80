"""TOSA's operations as tensor terms.

Where a size of 1 may meet another one, only sizes that are known to be 1 are broadcast; all others must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ir_semantics.mlir.semantics.tosa.elementwise import EXTREMES, PLAIN, ignores_nan
from ir_semantics.scalars.terms import Scalar, apply, maximum, minimum, variable
from ir_semantics.tensors.index import Index, index, product
from ir_semantics.tensors.operators import broadcast, concat, pad, reshape, reverse, slice_, transpose
from ir_semantics.tensors.reductions import matmul, reduce
from ir_semantics.tensors.terms import Tensor

from .operators import Operator, constant_of, mapped
from .steps import Step, Value, filled, number_in

_X, _Y = variable("x0"), variable("x1")


def _elementwise(term: Callable[[Step], Scalar], count: int) -> Operator:
    def read(step: Step) -> Value:
        tensors = [step.tensor(k) for k in range(count)]
        rank = max(t.rank for t in tensors)
        if any(t.rank != rank for t in tensors):
            raise step.fail("operands must have one rank")
        shape = [_common([t.shape[k] for t in tensors]) for k in range(rank)]
        operands = {f"x{k}": _spread(t, shape) for k, t in enumerate(tensors)}
        return mapped(step, term(step), operands, tuple(shape))

    return read


def _common(sizes: Sequence[Index]) -> Index:
    return next((n for n in sizes if n.constant != 1), index(1))


def _spread(x: Tensor, shape: Sequence[Index]) -> Tensor:
    kept = [k for k, (n, size) in enumerate(zip(x.shape, shape, strict=True)) if n.constant != 1 or size.constant == 1]
    if len(kept) == x.rank:
        return x
    number = number_in(x)
    if number is not None:
        return filled(number, [*shape])
    return broadcast(reshape(x, *(x.shape[k] for k in kept)), list(shape), kept)


def _plain(name: str) -> Operator:
    count = 2 if name in ("add", "sub", "pow", *EXTREMES) else 1

    def term(step: Step) -> Scalar:
        if name in EXTREMES and ignores_nan(step.call):
            raise step.fail("NaNs must not be passed over")
        return apply(name, *(_X, _Y)[:count])

    return _elementwise(term, count)


def _multiply(step: Step) -> Scalar:
    _require_zeros(step, 2)
    return _X * _Y


def _negate(step: Step) -> Scalar:
    _require_zeros(step, 1)
    return -_X


def _require_zeros(step: Step, first: int) -> None:
    for k in range(first, len(step.operands)):
        number = number_in(step.operands[k])
        if (number if number is not None else any(step.numbers(k))) != 0:
            raise step.fail("shifts and zero points must be 0")


def _clamp(step: Step) -> Scalar:
    low, high = (step.number(step.call.attribute(f"{end}_val", f"{end}_fp")) for end in ("min", "max"))
    for other in ("min_int", "max_int"):
        step.call.attribute(other)
    if ignores_nan(step.call):
        raise step.fail("NaNs must not be passed over")
    return minimum(maximum(_X, low), high)


def _reshape(step: Step) -> Value:
    x, stated = step.tensor(0), step.numbers_of("new_shape", 1)
    known = product(n for n in stated if n >= 0)
    open_sizes = [k for k, n in enumerate(stated) if n < 0]
    if len(open_sizes) > 1 or (open_sizes and known.constant == 0):
        raise step.fail("only one size may be left open")
    return reshape(x, *(product(x.shape) // known if n < 0 else index(n) for n in stated))


def _concat(step: Step) -> Value:
    parts = [step.tensor(k) for k in range(len(step.operands))]
    return concat(step.call.axis("axis", parts[0].rank), *parts)


def _slice(step: Step) -> Value:
    x, starts, sizes = step.tensor(0), step.numbers_of("start", 1), step.numbers_of("size", 2)
    stops = [n if m < 0 else index(s + m) for s, m, n in zip(starts, sizes, x.shape, strict=True)]
    return slice_(x, starts, stops)


def _pad(step: Step) -> Value:
    x, amounts = step.tensor(0), step.numbers_of("padding", 1)
    value = step.literal(2) if len(step.operands) == 3 else None
    if value is None:
        raise step.fail("what is around the tensor must be a constant")
    return pad(x, amounts[::2], amounts[1::2], value)


def _reduce(op: str) -> Operator:
    def read(step: Step) -> Value:
        x = step.tensor(0)
        axis = step.call.axis("axis", x.rank)
        if op != "sum" and ignores_nan(step.call):
            raise step.fail("NaNs must not be passed over")
        return reshape(reduce(op, x, [axis]), *(index(1) if k == axis else n for k, n in enumerate(x.shape)))

    return read


def _matmul(step: Step) -> Value:
    _require_zeros(step, 2)
    return matmul(step.tensor(0), step.tensor(1))


OPERATORS: Mapping[str, Operator] = {
    **{f"tosa.{name}": _plain(name) for name in (*PLAIN, *EXTREMES)},
    "tosa.mul": _elementwise(_multiply, 2),
    "tosa.negate": _elementwise(_negate, 1),
    "tosa.clamp": _elementwise(_clamp, 1),
    "tosa.reciprocal": _elementwise(lambda step: 1 / _X, 1),
    "tosa.const": constant_of,
    "tosa.const_shape": constant_of,
    "tosa.identity": lambda step: step.operands[0],
    "tosa.reshape": _reshape,
    "tosa.transpose": lambda step: transpose(step.tensor(0), step.numbers_of("perms", 1)),
    "tosa.reverse": lambda step: reverse(step.tensor(0), step.call.axis("axis", step.tensor(0).rank)),
    "tosa.concat": _concat,
    "tosa.slice": _slice,
    "tosa.pad": _pad,
    "tosa.matmul": _matmul,
    **{f"tosa.reduce_{op}": _reduce(op) for op in ("sum", "max", "min")},
}
"""By name."""
