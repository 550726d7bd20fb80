"""TOSA's sums, convolutions, products of matrices and poolings: folds in row-major order, channels last."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ir_semantics.elements.binders import every, fold
from ir_semantics.elements.operators import (
    apply,
    at_most,
    below,
    both,
    choose,
    equal,
    inside,
    minus,
    plus,
    quotient,
    times,
)
from ir_semantics.elements.terms import Term, constant, fresh, integer_value, number, truth
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.integers import convert
from ir_semantics.mlir.semantics.program import Call, MeaningOfValue, Operator
from ir_semantics.mlir.semantics.values import Element, Tensor, bits_of, defined, word, zero
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format

from .elementwise import extreme_of, ignores_nan, require_no_zero_points
from .movement import padded

Tap = Callable[[Sequence[Term]], Element]


def start_of_sum(call: Call, kind: Format) -> Term:
    """What a sum starts with; of floats a zero, with the sign that is the reading."""
    if kind.family == "float" and call.scope.reading.sums_start_at_minus_zero:
        return constant(-0.0, kind)
    return zero(kind)


def folded(
    start: Term, extents: Sequence[Term], tap: Tap, combine: Callable[[Term, Term], Term], kept: Tap | None = None
) -> Element:
    """A fold of elements, of which those are left out that ``kept`` says are not there."""
    variables = [fresh(f"k{i}", INTEGERS) for i in range(len(extents))]
    accumulator = fresh("acc", start.kind)
    element = tap(variables)
    step, is_defined = combine(accumulator, element.value), element.defined
    if kept is not None:
        there = kept(variables).value
        step, is_defined = choose(there, step, accumulator), choose(there, is_defined, truth(True))
    value = fold(start, accumulator, list(zip(variables, extents, strict=True)), step)
    return Element(value, every(variables, extents, is_defined))


def _add(a: Term, b: Term) -> Term:
    return apply("add", a, b)


def _product(a: Element, b: Element, kind: Format) -> Element:
    """The product in the format of the accumulator."""
    x, y = (_widened(e.value, kind) for e in (a, b))
    return Element(apply("mul", x, y), both(a.defined, b.defined))


def _widened(value: Term, kind: Format) -> Term:
    if value.kind == kind:
        return value
    return convert(value, kind) if kind.family == "integer" else apply("cast", value, target=kind)


_BFLOAT16, _BINARY32 = Format("float", (8, 8)), Format("float", (8, 24))


def _reduce(combine: str) -> Operator:
    def meaning(call: Call) -> Sequence[MeaningOfValue]:
        source = call.tensor(0)
        axis = call.axis("axis", len(source.shape))
        shape = tuple(number(1) if k == axis else n for k, n in enumerate(source.shape))
        call.shaped(shape)
        kind = _BINARY32 if combine == "add" and source.kind == _BFLOAT16 else source.kind
        if kind != source.kind:
            call.scope.notes["TOSA's sums of bf16 are sums of f32, rounded to bf16 at the end"] = None
        start, step = _reduction(call, combine, kind)

        def element(at: tuple[Term, ...]) -> Element:
            def tap(k: Sequence[Term]) -> Element:
                summand = source.at((*at[:axis], *k, *at[axis + 1 :]))
                return Element(_widened(summand.value, kind), summand.defined)

            total = folded(start, [source.shape[axis]], tap, step)
            return Element(_widened(total.value, source.kind), total.defined)

        return [Tensor(source.kind, shape, element)]

    return meaning


def _reduction(call: Call, combine: str, kind: Format) -> tuple[Term, Callable[[Term, Term], Term]]:
    """What a reduction starts with, and its step."""
    match combine:
        case "add":
            return start_of_sum(call, kind), _add
        case "mul":
            return constant(Fraction(1), kind), lambda a, b: apply("mul", a, b)
        case "all" | "any" if kind == BOOLEAN:
            return constant(int(combine == "all"), BOOLEAN), lambda a, b: apply(
                "and" if combine == "all" else "or", a, b
            )
        case "maximum" | "minimum":
            if kind.family != "float":
                ignores_nan(call)  # known, and of no effect on integers
            return _end(call, kind, combine), lambda a, b: extreme_of(call, combine, a, b)
    raise call.fail(f"a reduction of values of the format {kind} has no meaning here")


def _end(call: Call, kind: Format, op: str) -> Term:
    """What changes no maximum, or minimum; NaN where NaN is passed over, so that of NaNs alone there is NaN."""
    if kind.family == "float" and ignores_nan(call):
        return constant(math.nan, kind)
    if kind.family == "float":
        return constant(-math.inf if op == "maximum" else math.inf, kind)
    top = 1 << (bits_of(kind) - 1)
    return constant(-top if op == "maximum" else top - 1, kind)


# -- convolutions --------------------------------------------------------------------------------------------


def _output(size: Term, pads: Sequence[int], kernel: Term, dilation: int, stride: int) -> Term:
    """The size of a result along a dimension."""
    reach = plus(times(minus(kernel, number(1)), number(dilation)), number(1))
    return plus(quotient(minus(plus(size, number(sum(pads))), reach), number(stride)), number(1))


def _accumulator(call: Call) -> Format:
    """The format of sums, that of the result; raises where the operation states another one."""
    kind, stated = call.result_format(), call.attribute("acc_type")
    if stated is None or (isinstance(stated, ir.TypeAttribute) and call.format(stated.type) == kind):
        return kind
    raise call.fail("a sum in another format than the result's has no meaning here")


def _window(call: Call, image: Tensor, kernel: Sequence[Term]) -> tuple[Tensor, list[Term], list[int], list[int]]:
    """The padded image, sizes of the result, strides and dilations."""
    pads, strides = call.wholes("pad"), call.wholes("stride")
    dilations = call.wholes("dilation", [1, 1])
    if any(n < 0 for n in pads) or any(n < 1 for n in (*strides, *dilations)):
        raise call.wrong("padding must not be negative, strides and dilations must be positive")
    sizes = []
    for k in range(2):
        low, high = pads[2 * k : 2 * k + 2]
        size = _output(image.shape[k + 1], (low, high), kernel[k], dilations[k], strides[k])
        call.require(at_most(number(1), size), "a window must fit into the image")
        sizes.append(size)
    if any(pads):
        call.scope.notes["padding of convolutions is zeros that are multiplied"] = None
        outer = [image.shape[k + 1] for k in range(2)]
        wide = [plus(number(pads[2 * k]), outer[k], number(pads[2 * k + 1])) for k in range(2)]
        neg = call.scope.reading.use_neg_zero and image.kind.family == "float"
        outside = defined(constant(-0.0, image.kind) if neg else zero(image.kind))
        shape = (image.shape[0], *wide, image.shape[3])
        image = padded(image, (0, pads[0], pads[2], 0), shape, outside)
    return image, sizes, strides, dilations


def _conv2d(call: Call) -> Sequence[MeaningOfValue]:
    image, weights, bias = (call.tensor(i) for i in range(3))
    require_no_zero_points(call, 3)
    channels, height, width = weights.shape[0], weights.shape[1], weights.shape[2]
    call.require(equal(weights.shape[3], image.shape[3]), "image and weights must have as many channels")
    image, sizes, strides, dilations = _window(call, image, (height, width))
    kind = _accumulator(call)
    _require_bias(call, bias, channels)
    shape = (image.shape[0], *sizes, channels)
    call.shaped(shape)

    def element(at: tuple[Term, ...]) -> Element:
        n, y, x, o = at

        def tap(k: Sequence[Term]) -> Element:
            places = [
                plus(times(i, number(s)), times(d, number(f)))
                for i, s, d, f in zip((y, x), strides, k[:2], dilations, strict=True)
            ]
            return _product(image.at((n, *places, k[2])), weights.at((o, *k)), kind)

        total = folded(start_of_sum(call, kind), (height, width, weights.shape[3]), tap, _add)
        return _with_bias(total, bias, o)

    return [Tensor(kind, shape, element)]


def _with_bias(total: Element, bias: Tensor, channel: Term) -> Element:
    single = integer_value(bias.shape[0]) == 1
    added = bias.at((number(0) if single else channel,))
    return Element(apply("add", total.value, _widened(added.value, total.kind)), both(total.defined, added.defined))


def _require_bias(call: Call, bias: Tensor, channels: Term) -> None:
    if integer_value(bias.shape[0]) != 1:
        call.require(equal(bias.shape[0], channels), "there must be a bias for each channel")


def _depthwise(call: Call) -> Sequence[MeaningOfValue]:
    image, weights, bias = (call.tensor(i) for i in range(3))
    require_no_zero_points(call, 3)
    height, width, channels, multiplier = weights.shape
    call.require(equal(channels, image.shape[3]), "image and weights must have as many channels")
    image, sizes, strides, dilations = _window(call, image, (height, width))
    kind = _accumulator(call)
    outputs = times(channels, multiplier)
    _require_bias(call, bias, outputs)
    shape = (image.shape[0], *sizes, outputs)
    call.shaped(shape)

    def element(at: tuple[Term, ...]) -> Element:
        n, y, x, o = at
        c = quotient(o, multiplier)
        m = minus(o, times(c, multiplier))

        def tap(k: Sequence[Term]) -> Element:
            places = [
                plus(times(i, number(s)), times(d, number(f)))
                for i, s, d, f in zip((y, x), strides, k, dilations, strict=True)
            ]
            return _product(image.at((n, *places, c)), weights.at((*k, c, m)), kind)

        total = folded(start_of_sum(call, kind), (height, width), tap, _add)
        return _with_bias(total, bias, o)

    return [Tensor(kind, shape, element)]


def _fully_connected(call: Call) -> Sequence[MeaningOfValue]:
    x, weights, bias = (call.tensor(i) for i in range(3))
    require_no_zero_points(call, 3)
    call.require(equal(x.shape[1], weights.shape[1]), "inputs and weights must have as many channels")
    _require_bias(call, bias, weights.shape[0])
    kind, shape = call.result_format(), (x.shape[0], weights.shape[0])
    call.shaped(shape)

    def element(at: tuple[Term, ...]) -> Element:
        n, o = at

        def tap(k: Sequence[Term]) -> Element:
            return _product(x.at((n, *k)), weights.at((o, *k)), kind)

        return _with_bias(folded(start_of_sum(call, kind), x.shape[1:], tap, _add), bias, o)

    return [Tensor(kind, shape, element)]


def _matmul(call: Call) -> Sequence[MeaningOfValue]:
    a, b = call.tensor(0), call.tensor(1)
    require_no_zero_points(call, 2)
    call.require(equal(a.shape[0], b.shape[0]), "batches must be of one size")
    call.require(equal(a.shape[2], b.shape[1]), "rows must be as long as columns")
    kind, shape = call.result_format(), (a.shape[0], a.shape[1], b.shape[2])
    call.shaped(shape)

    def element(at: tuple[Term, ...]) -> Element:
        n, i, j = at

        def tap(k: Sequence[Term]) -> Element:
            return _product(a.at((n, i, *k)), b.at((n, *k, j)), kind)

        return folded(start_of_sum(call, kind), a.shape[2:], tap, _add)

    return [Tensor(kind, shape, element)]


# -- poolings ------------------------------------------------------------------------------------------------


def _pool(average: bool) -> Operator:
    def meaning(call: Call) -> Sequence[MeaningOfValue]:
        image, kernel = call.tensor(0), [number(n) for n in call.wholes("kernel")]
        if average:
            require_no_zero_points(call, 1)
            if image.kind.family != "float":
                raise call.fail("an average of integers has no meaning here")
        pads, strides = call.wholes("pad"), call.wholes("stride")
        if any(n != 1 for n in call.wholes("dilation", [1, 1])):
            raise call.fail("a pooling with dilations has no meaning here")
        sizes = [_output(image.shape[k + 1], pads[2 * k : 2 * k + 2], kernel[k], 1, strides[k]) for k in range(2)]
        for size in sizes:
            call.require(at_most(number(1), size), "a window must fit into the image")
        shape = (image.shape[0], *sizes, image.shape[3])
        call.shaped(shape)
        kind = _accumulator(call) if average else image.kind
        start, step = _reduction(call, "add" if average else "maximum", kind)

        def element(at: tuple[Term, ...]) -> Element:
            n, y, x, c = at

            def places(k: Sequence[Term]) -> list[Term]:
                low = (pads[0], pads[2])
                return [
                    plus(times(i, number(s)), d, number(-p)) for i, s, d, p in zip((y, x), strides, k, low, strict=True)
                ]

            def tap(k: Sequence[Term]) -> Element:
                return image.at((n, *places(k), c))

            def there(k: Sequence[Term]) -> Element:
                within = [inside(i, extent) for i, extent in zip(places(k), image.shape[1:3], strict=True)]
                return defined(both(*within))

            total = folded(start, kernel, tap, step, there if any(pads) else None)
            if not average:
                return total
            count = _count((y, x), strides, pads, kernel, image.shape[1:3])
            number_of_taps = apply("cast", apply("cast", count, target=word(32)), target=kind)
            return Element(apply("div", total.value, number_of_taps), total.defined)

        return [Tensor(kind, shape, element)]

    return meaning


def _count(
    at: Sequence[Term], strides: Sequence[int], pads: Sequence[int], kernel: Sequence[Term], sizes: Sequence[Term]
) -> Term:
    """How many places of a window are inside of the image."""
    count = number(1)
    for i, s, low, k, n in zip(at, strides, pads[::2], kernel, sizes, strict=True):
        if not any(pads):
            count = times(count, k)
            continue
        first = plus(times(i, number(s)), number(-low))
        last = plus(first, k)
        first = choose(below(first, number(0)), number(0), first)
        last = choose(below(n, last), n, last)
        count = times(count, minus(last, first))
    return count


OPERATORS: Mapping[str, Operator] = {
    "tosa.reduce_sum": _reduce("add"),
    "tosa.reduce_prod": _reduce("mul"),
    "tosa.reduce_product": _reduce("mul"),
    "tosa.reduce_max": _reduce("maximum"),
    "tosa.reduce_min": _reduce("minimum"),
    "tosa.reduce_all": _reduce("all"),
    "tosa.reduce_any": _reduce("any"),
    "tosa.conv2d": _conv2d,
    "tosa.depthwise_conv2d": _depthwise,
    "tosa.fully_connected": _fully_connected,
    "tosa.matmul": _matmul,
    "tosa.max_pool2d": _pool(False),
    "tosa.avg_pool2d": _pool(True),
}
"""By name."""
