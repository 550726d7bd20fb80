"""Operators that reduce: sums and extrema along axes, products of matrices, convolution, pooling, softmax.

Images are [batch, channels, spatial axes ...] and kernels [outputs, inputs, spatial axes ...]; a convolution is the
cross-correlation of the machine-learning frameworks.  Sources: the ONNX operator specification (Conv, MaxPool,
AveragePool with ceil_mode = 0, ReduceSum, CumSum, MatMul, Softmax over the reals).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ir_semantics.scalars.terms import exp, variable

from .conditions import Condition, both, equal, inside, le
from .elements import BINARY, Apply, Choice, Element, IndexValue, Number, Reader, Reduce, literal
from .index import Index, IndexLike, Names, index, index_of, product
from .operators import broadcast, map_
from .terms import Tensor, make, require_axes

ZERO = Number(Fraction(0))
_UNIT = {"sum": ZERO, "max": Number(float("-inf")), "min": Number(float("inf"))}


def reduce(op: str, x: Tensor, axes: Sequence[int], initial: Fraction | int | float | None = None) -> Tensor:
    """The sum, max or min along axes, which disappear; combined with the number ``initial`` where one is given."""
    require_axes(f"the {op}", x, axes)
    kept = [j for j in range(x.rank) if j not in axes]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        bound = [names.fresh("r") for _ in axes]
        inner = [index(0)] * x.rank
        for j, i in zip(kept, at, strict=True):
            inner[j] = i
        for axis, name in zip(axes, bound, strict=True):
            inner[axis] = index_of(name)
        body = _reduce(op, [(name, x.shape[a]) for a, name in zip(axes, bound, strict=True)], of[0](inner))
        return body if initial is None else Apply(BINARY[op], (literal(initial), body))

    dimensions = [x.shape[j] for j in kept]
    return make(f"reduce_{op}", [x], dimensions, rule, axes=list(axes), initial="none" if initial is None else initial)


def _reduce(op: str, bound: Sequence[tuple[str, Index]], body: Element) -> Element:
    for name, extent in reversed(bound):
        body = Reduce(op, name, extent, body)
    return body


def mean(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The sum along axes divided by the number of elements, which must not be 0."""
    total = reduce("sum", x, axes)
    count = product(x.shape[a] for a in axes)
    return make(
        "mean",
        [x],
        total.shape,
        lambda at, of, names: Apply("div", (total.rule(at, of, names), IndexValue(count))),
        requires=[le(1, x.shape[a]) for a in axes],
        axes=list(axes),
    )


def cumsum(x: Tensor, axis: int) -> Tensor:
    """The sum of all elements up to and including this one along ``axis``."""
    require_axes("cumsum", x, [axis])

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        name = names.fresh("r")
        return Reduce("sum", name, at[axis] + 1, of[0]([*at[:axis], index_of(name), *at[axis + 1 :]]))

    return make("cumsum", [x], x.shape, rule, axis=axis)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices, for every index of the axes before the last two (those must agree)."""
    if a.rank != b.rank or a.rank < 2:
        raise ValueError(f"matmul must be given tensors of one rank of at least 2, not {a.rank} and {b.rank}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        k = names.fresh("k")
        batch, row, column = list(at[:-2]), at[-2], at[-1]
        left, right = of[0]([*batch, row, index_of(k)]), of[1]([*batch, index_of(k), column])
        return Reduce("sum", k, a.shape[-1], Apply("mul", (left, right)))

    alike = [equal(p, q) for p, q in zip((*a.shape[:-2], a.shape[-1]), (*b.shape[:-2], b.shape[-2]), strict=True)]
    return make("matmul", [a, b], [*a.shape[:-1], b.shape[-1]], rule, requires=alike)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if (a.rank, b.rank) != (2, 1):
        raise ValueError(f"dot must be given a matrix and a vector, not tensors of rank {a.rank} and {b.rank}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        k = names.fresh("k")
        return Reduce("sum", k, a.shape[1], Apply("mul", (of[0]([at[0], index_of(k)]), of[1]([index_of(k)]))))

    return make("dot", [a, b], [a.shape[0]], rule, requires=[equal(a.shape[1], b.shape[0])])


class _Windows:
    """Sliding windows over the spatial axes of an image: extents, conditions and positions."""

    def __init__(
        self,
        x: Tensor,
        kernel: Sequence[IndexLike],
        strides: Sequence[IndexLike] | None,
        pads: Sequence[tuple[IndexLike, IndexLike]] | None,
        dilations: Sequence[IndexLike] | None = None,
    ) -> None:
        rank = x.rank - 2
        self.dilations = [index(d) for d in dilations] if dilations is not None else [index(1)] * rank
        self.kernel = [index(k) for k in kernel]
        self.strides = [index(s) for s in strides] if strides is not None else [index(1)] * rank
        self.pads = [(index(b), index(a)) for b, a in pads] if pads is not None else [(index(0), index(0))] * rank
        if rank < 1 or not len(self.kernel) == len(self.strides) == len(self.pads) == len(self.dilations) == rank:
            raise ValueError(
                f"windows must be given a size, a stride, two pads and a dilation for each spatial axis of {x} (its "
                f"axes after the first two), not {len(self.kernel)}, {len(self.strides)}, {len(self.pads)} and "
                f"{len(self.dilations)}"
            )
        self.extents = list(x.shape[2:])
        self.requires: list[Condition] = []
        self.shape: list[Index] = []
        for d, k, s, (b, a), e in zip(self.extents, self.kernel, self.strides, self.pads, self.dilations, strict=True):
            span = (k - 1) * e + 1
            self.requires += [le(1, k), le(1, s), le(0, b), le(0, a), le(1, e), le(span, d + b + a)]
            self.shape.append((d + b + a - span) // s + 1)

    def positions(self, at: Sequence[Index], bound: Sequence[str]) -> list[Index]:
        """Where the taps ``bound`` of the windows at ``at`` lie in the image."""
        return [
            i * s + index_of(k) * e - b
            for i, s, k, (b, _), e in zip(at, self.strides, bound, self.pads, self.dilations, strict=True)
        ]

    def attributes(self) -> dict[str, object]:
        """What the term shows."""
        shown = {"kernel": self.kernel, "strides": self.strides, "pads": [list(p) for p in self.pads]}
        return shown if all(d == index(1) for d in self.dilations) else shown | {"dilations": self.dilations}

    def padded(self, positions: Sequence[Index], element: Element, outside: Element) -> Element:
        """``element`` where all positions lie in the image."""
        return Choice(both(*(inside(p, d) for p, d in zip(positions, self.extents, strict=True))), element, outside)

    def over(self, op: str, bound: Sequence[str], body: Element) -> Element:
        """The reduction over all taps."""
        return _reduce(op, list(zip(bound, self.kernel, strict=True)), body)


def conv(
    x: Tensor,
    w: Tensor,
    *,
    strides: Sequence[IndexLike] | None = None,
    pads: Sequence[tuple[IndexLike, IndexLike]] | None = None,
    dilations: Sequence[IndexLike] | None = None,
    groups: IndexLike = 1,
    correlate: bool = True,
) -> Tensor:
    """Convolution of images with kernels, zeros outside the image; with ``correlate`` False the kernel is reversed.

    With ``groups`` g, outputs and channels are cut into g equal parts, and part j of the outputs sees part j of the
    channels only; kernels have as many inputs as a part has channels.  Raises ValueError unless image and kernel have
    one rank of at least 3.
    """
    if x.rank != w.rank:
        raise ValueError(f"an image and a kernel must have one rank, not {x.rank} and {w.rank}")
    windows = _Windows(x, w.shape[2:], strides, pads, dilations)
    channels, parts = w.shape[1], index(groups)
    outputs = w.shape[0] // parts

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        c = names.fresh("c")
        taps = [names.fresh("k") for _ in windows.kernel]
        positions = windows.positions(at[2:], taps)
        weights = [index_of(t) if correlate else k - 1 - index_of(t) for t, k in zip(taps, windows.kernel, strict=True)]
        first = index(0) if parts == index(1) else at[1] // outputs * channels
        value = windows.padded(positions, of[0]([at[0], first + index_of(c), *positions]), ZERO)
        body = Apply("mul", (value, of[1]([at[1], index_of(c), *weights])))
        return Reduce("sum", c, channels, windows.over("sum", taps, body))

    shown = windows.attributes() | {"dilations": windows.dilations, "groups": parts}
    requires = [equal(x.shape[1], parts * channels), equal(w.shape[0], parts * outputs), *windows.requires]
    if parts != index(1):
        requires += [le(1, parts), le(1, outputs)]
    dimensions = [x.shape[0], w.shape[0], *windows.shape]
    return make("conv", [x, w], dimensions, rule, requires=requires, **shown, correlate=correlate)


def max_pool(
    x: Tensor,
    kernel: Sequence[IndexLike],
    *,
    strides: Sequence[IndexLike] | None = None,
    pads: Sequence[tuple[IndexLike, IndexLike]] | None = None,
    dilations: Sequence[IndexLike] | None = None,
    outside: Fraction | int | None = None,
) -> Tensor:
    """The maximum of every window; outside the image stands ``outside``, or nothing where it is None."""
    windows = _Windows(x, kernel, strides, pads, dilations)
    filler = _UNIT["max"] if outside is None else Number(Fraction(outside))

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        taps = [names.fresh("k") for _ in windows.kernel]
        positions = windows.positions(at[2:], taps)
        value = windows.padded(positions, of[0]([at[0], at[1], *positions]), filler)
        return windows.over("max", taps, value)

    shown = windows.attributes() | ({} if outside is None else {"outside": outside})
    return make("max_pool", [x], [*x.shape[:2], *windows.shape], rule, requires=windows.requires, **shown)


def avg_pool(
    x: Tensor,
    kernel: Sequence[IndexLike],
    *,
    strides: Sequence[IndexLike] | None = None,
    pads: Sequence[tuple[IndexLike, IndexLike]] | None = None,
    dilations: Sequence[IndexLike] | None = None,
    count_include_pad: bool = False,
) -> Tensor:
    """The mean of every window; elements outside the image count (as zeros) only with ``count_include_pad``.

    A window without any element of the image divides by 0 unless ``count_include_pad``.
    """
    windows = _Windows(x, kernel, strides, pads, dilations)

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        taps = [names.fresh("k") for _ in windows.kernel]
        positions = windows.positions(at[2:], taps)
        value = windows.padded(positions, of[0]([at[0], at[1], *positions]), ZERO)
        total = windows.over("sum", taps, value)
        if count_include_pad:
            return Apply("div", (total, IndexValue(product(windows.kernel))))
        others = [names.fresh("k") for _ in windows.kernel]
        ones = windows.padded(windows.positions(at[2:], others), Number(Fraction(1)), ZERO)
        return Apply("div", (total, windows.over("sum", others, ones)))

    shown = windows.attributes() | {"count_include_pad": count_include_pad}
    return make("avg_pool", [x], [*x.shape[:2], *windows.shape], rule, requires=windows.requires, **shown)


def patches(
    x: Tensor,
    kernel: Sequence[IndexLike],
    *,
    strides: Sequence[IndexLike] | None = None,
    pads: Sequence[tuple[IndexLike, IndexLike]] | None = None,
    dilations: Sequence[IndexLike] | None = None,
) -> Tensor:
    """Every window of an image, zeros outside: [batch, channels, kernel axes ..., output axes ...].

    Reshaped to [batch, channels * kernel, output], this is im2col.
    """
    windows = _Windows(x, kernel, strides, pads, dilations)
    rank = len(windows.kernel)

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        taps, outputs = at[2 : 2 + rank], at[2 + rank :]
        positions = [
            o * s + k * e - b
            for o, s, k, e, (b, _) in zip(outputs, windows.strides, taps, windows.dilations, windows.pads, strict=True)
        ]
        return windows.padded(positions, of[0]([at[0], at[1], *positions]), ZERO)

    dimensions = [*x.shape[:2], *windows.kernel, *windows.shape]
    return make("patches", [x], dimensions, rule, requires=windows.requires, **windows.attributes())


def softmax(x: Tensor, axis: int) -> Tensor:
    """exp(x) divided by its sum along ``axis``: the function on real numbers, apart from how floats compute it."""
    require_axes("softmax", x, [axis])
    powers = map_(exp(variable("x")), x=x)
    others = [j for j in range(x.rank) if j != axis]
    total = broadcast(reduce("sum", powers, [axis]), x.shape, others)
    return map_(variable("x") / variable("y"), x=powers, y=total)
