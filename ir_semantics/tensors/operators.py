"""Operators that move data, and elementwise ones.

Subscripts count from 0, axes too; a shape is row-major where that matters (reshape).  Every function raises ValueError
where ranks or numbers of parameters do not fit; conditions on symbolic sizes become part of the term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from ir_semantics.scalars.terms import Scalar, variables

from .conditions import Condition, equal, inside, le, lt, variables_of
from .elements import Choice, Element, IndexValue, Reader, apply_scalar, literal
from .index import Index, IndexLike, Names, index, product, size
from .terms import Tensor, make, require_axes

Value = Tensor | Fraction | int | float


def fill(value: Fraction | int | float, *dimensions: IndexLike) -> Tensor:
    """A literal in every element."""
    constant = literal(value)
    return make("fill", (), dimensions, lambda at, of, names: constant, value=value, shape=tuple(dimensions))


def number(value: IndexLike) -> Tensor:
    """A size as a scalar."""
    return make("number", (), (), lambda at, of, names: IndexValue(index(value)), value=index(value))


def map_(term: Scalar, **operands: Tensor) -> Tensor:
    """A scalar term on every element; each of its variables names an operand, all of one shape.

    Raises ValueError where the names differ from the term's variables or ranks differ.
    """
    if set(variables(term)) != set(operands) or not operands:
        raise ValueError(f"the operands of {term} must be named {sorted(variables(term))}, not {sorted(operands)}")
    first = next(iter(operands.values()))
    if any(t.rank != first.rank for t in operands.values()):
        raise ValueError(f"the operands of {term} must have one rank, not {[t.rank for t in operands.values()]}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return apply_scalar(term, {name: read(at) for name, read in zip(operands, of, strict=True)})

    alike = [equal(a, b) for t in operands.values() for a, b in zip(t.shape, first.shape, strict=True)]
    return make("map", list(operands.values()), first.shape, rule, requires=alike, term=term, names=list(operands))


def broadcast(x: Tensor, dimensions: Sequence[IndexLike], axes: Sequence[int]) -> Tensor:
    """Repeats ``x`` along new axes: its axis number j becomes axis ``axes[j]`` of the result.

    ``dimensions`` are the extents of all axes of the result.  Raises ValueError where the axes do not fit.
    """
    if len(axes) != x.rank or list(axes) != sorted(set(axes)) or any(not 0 <= a < len(dimensions) for a in axes):
        raise ValueError(
            f"the axes of a broadcast must be {x.rank} increasing axes of the result, which has {len(dimensions)} "
            f"(dimensions are those of the result), not {list(axes)}"
        )
    fits = [equal(x.shape[j], dimensions[a]) for j, a in enumerate(axes)]
    return make(
        "broadcast",
        [x],
        dimensions,
        lambda at, of, names: of[0]([at[a] for a in axes]),
        requires=fits,
        shape=tuple(dimensions),
        axes=list(axes),
    )


def expand_scalar(x: Tensor, like: Tensor) -> Tensor:
    """A scalar in every element of a tensor with the shape of ``like``."""
    return broadcast(x, like.shape, [])


def pad(x: Tensor, before: Sequence[IndexLike], after: Sequence[IndexLike], value: Value = 0) -> Tensor:
    """``before[a]`` and ``after[a]`` elements around every axis, equal to ``value`` (a number or a scalar tensor).

    Amounts must not be negative.
    """
    _count("pad", x, before, after)
    low = [index(b) for b in before]
    operands = [x, value] if isinstance(value, Tensor) else [x]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        inner = [i - b for i, b in zip(at, low, strict=True)]
        outside = of[1]([]) if isinstance(value, Tensor) else literal(value)
        return _guarded(inner, x.shape, of[0], outside)

    dimensions = [b + d + index(a) for b, d, a in zip(low, x.shape, after, strict=True)]
    amounts = [le(0, amount) for amount in (*before, *after)]
    shown = {} if isinstance(value, Tensor) else {"value": value}
    return make("pad", operands, dimensions, rule, requires=amounts, before=before, after=after, **shown)


def _guarded(at: Sequence[Index], extents: Sequence[Index], read: Reader, outside: Element) -> Element:
    """The element at subscripts that may lie outside a tensor."""
    element = read(at)
    for i, extent in reversed(list(zip(at, extents, strict=True))):
        element = Choice(inside(i, extent), element, outside)
    return element


def _count(what: str, x: Tensor, *parameters: Sequence[object]) -> None:
    for items in parameters:
        if len(items) != x.rank:
            raise ValueError(f"{what} must be given one number for each of the {x.rank} axes of {x}, not {len(items)}")


def slice_(
    x: Tensor, start: Sequence[IndexLike], stop: Sequence[IndexLike], stride: Sequence[IndexLike] | None = None
) -> Tensor:
    """Elements start, start + stride, ... before stop, along every axis; 0 <= start <= stop <= the dimension."""
    steps = list(stride) if stride is not None else [1] * x.rank
    _count("slice", x, start, stop, steps)
    dimensions = [(index(e) - s + t - 1) // index(t) for s, e, t in zip(start, stop, steps, strict=True)]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return of[0]([index(s) + i * t for s, i, t in zip(start, at, steps, strict=True)])

    fits = [le(1, t) for t in steps]
    for s, e, d in zip(start, stop, x.shape, strict=True):
        fits += [le(0, s), le(s, e), le(e, d)]
    return make("slice", [x], dimensions, rule, requires=fits, start=list(start), stop=list(stop), stride=steps)


def concat(axis: int, *parts: Tensor) -> Tensor:
    """The parts one after the other along ``axis``; other dimensions must agree."""
    if not parts or any(p.rank != parts[0].rank for p in parts):
        raise ValueError(f"concat must be given tensors of one rank, not {[str(p) for p in parts]}")
    require_axes("concat", parts[0], [axis])
    ends = [parts[0].shape[axis]]
    for part in parts[1:]:
        ends.append(ends[-1] + part.shape[axis])

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        starts = [index(0), *ends]
        element = of[-1](_with(at, axis, at[axis] - starts[len(parts) - 1]))
        for j in range(len(parts) - 2, -1, -1):
            element = Choice(lt(at[axis], ends[j]), of[j](_with(at, axis, at[axis] - starts[j])), element)
        return element

    alike = [
        equal(a, b)
        for part in parts[1:]
        for j, (a, b) in enumerate(zip(part.shape, parts[0].shape, strict=True))
        if j != axis
    ]
    return make("concat", parts, _with(parts[0].shape, axis, ends[-1]), rule, requires=alike, axis=axis)


def _with(at: Sequence[Index], axis: int, value: Index) -> list[Index]:
    return [*at[:axis], value, *at[axis + 1 :]]


def reshape(x: Tensor, *dimensions: IndexLike) -> Tensor:
    """The same elements in row-major order under other dimensions; no dimension of ``x`` but the first may be 0.

    Subscripts are the digits of the position in mixed radix.
    """
    new = [index(d) for d in dimensions]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        position = index(0)
        for i, d in zip(at, new, strict=True):
            position = position * d + i
        digits: list[Index] = []
        for j in range(x.rank):
            below = product(x.shape[j + 1 :])
            digit = position // below
            digits.append(digit % x.shape[j] if j else digit)
        return of[0](digits)

    fits = [equal(product(new), product(x.shape)), *(le(1, d) for d in x.shape[1:])]
    return make("reshape", [x], new, rule, requires=fits, shape=new)


def transpose(x: Tensor, permutation: Sequence[int]) -> Tensor:
    """Axis number j of the result is axis ``permutation[j]`` of ``x``."""
    if sorted(permutation) != list(range(x.rank)):
        raise ValueError(f"a permutation of {x.rank} axes must have each axis once, not {list(permutation)}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        inner = [index(0)] * x.rank
        for j, axis in enumerate(permutation):
            inner[axis] = at[j]
        return of[0](inner)

    return make("transpose", [x], [x.shape[p] for p in permutation], rule, permutation=list(permutation))


def reverse(x: Tensor, *axes: int) -> Tensor:
    """The elements in opposite order along the axes, which are given one by one."""
    require_axes("reverse", x, axes)
    return make(
        "reverse",
        [x],
        x.shape,
        lambda at, of, names: of[0]([x.shape[j] - 1 - i if j in axes else i for j, i in enumerate(at)]),
        axes=list(axes),
    )


def upsample(x: Tensor, factors: Sequence[IndexLike]) -> Tensor:
    """Every element repeated ``factors[a]`` times along every axis (nearest neighbour)."""
    _count("upsample", x, factors)
    return make(
        "upsample",
        [x],
        [d * f for d, f in zip(x.shape, factors, strict=True)],
        lambda at, of, names: of[0]([i // f for i, f in zip(at, factors, strict=True)]),
        requires=[le(1, f) for f in factors],
        factors=list(factors),
    )


def where(condition: Callable[..., Condition], x: Tensor, y: Tensor) -> Tensor:
    """``x`` where a condition on the subscripts holds, else ``y``."""
    if x.rank != y.rank:
        raise ValueError(f"both tensors of a choice must have one rank, not {x.rank} and {y.rank}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return Choice(condition(*at), of[0](at), of[1](at))

    subscripts = [f"i{j}" for j in range(x.rank)]
    apart = variables_of(condition(*(Index({(f"{i}.",): 1}) for i in subscripts))) & set(subscripts)
    if apart:
        raise ValueError(f"the size {min(apart)} must have another name: that of a subscript in this choice; rename it")
    shown = condition(*map(size, subscripts))
    alike = [equal(a, b) for a, b in zip(x.shape, y.shape, strict=True)]
    return make("where", [x, y], x.shape, rule, requires=alike, condition=shown)
