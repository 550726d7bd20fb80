"""Every operator by itself in both kinds of bounds, against exact fractions that follow the operators' definitions.

Windows overlap and have pads, elements are equal, and axes have the extents 1 and 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ir_semantics.graph import Builder, Graph, Node, TensorType
from ir_semantics.graph.build import run_node
from ir_semantics.graph.operator import OPERATORS
from ir_semantics.graph.run import steps
from rewrites.compiler.composition import differences, of_ranges, replay
from rewrites.compiler.composition.differences import Sides, Unbounded, difference
from rewrites.compiler.composition.of_runs import RunBound
from rewrites.compiler.composition.replay import Replay

Exact = dict[tuple[int, ...], Fraction]
Attributes = dict[str, Any]
FLOAT32 = 2.0**-23


def exactly(array: np.ndarray) -> Exact:
    return {at: Fraction(float(array[at])) for at in np.ndindex(array.shape)}


def window(a: Attributes, at: Sequence[int], shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The positions of a window that lie in the image."""
    for tap in itertools.product(*map(range, a["kernel"])):
        spots = [
            i * s + k * d - p
            for i, s, k, d, (p, _) in zip(at[2:], a["strides"], tap, a["dilations"], a["pads"], strict=True)
        ]
        if all(0 <= p < extent for p, extent in zip(spots, shape[2:], strict=True)):
            yield (*at[:2], *spots)


def fibres(a: Attributes, at: Sequence[int], shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The positions along axes."""
    for inner in itertools.product(*(range(shape[axis]) for axis in a["axes"])):
        rest, along = iter(at), dict(zip(a["axes"], inner, strict=True))
        yield tuple(along[j] if j in along else next(rest) for j in range(len(shape)))


def pooled(of: Callable[[list[Fraction], Attributes], Fraction], members: Any) -> Callable[..., Exact]:
    def meaning(result: Sequence[int], shapes: Any, a: Attributes, x: Exact) -> Exact:
        return {at: of([x[p] for p in members(a, at, shapes[0])], a) for at in np.ndindex(*result)}

    return meaning


def average(values: list[Fraction], a: Attributes) -> Fraction:
    return sum(values, Fraction(0)) / (int(np.prod(a["kernel"])) if a["count_include_pad"] else len(values))


def each(of: Callable[..., Fraction]) -> Callable[..., Exact]:
    return lambda result, shapes, a, *xs: {at: of(*(x[at] for x in xs)) for at in np.ndindex(*result)}


def cumulated(result: Any, shapes: Any, a: Attributes, x: Exact) -> Exact:
    axis = a["axis"]

    def before(at: tuple[int, ...]) -> Iterator[Fraction]:
        return (x[(*at[:axis], k, *at[axis + 1 :])] for k in range(at[axis] + 1))

    return {at: sum(before(at), Fraction(0)) for at in np.ndindex(*result)}


def matrices(result: Any, shapes: Any, a: Attributes, x: Exact, y: Exact) -> Exact:
    terms = range(shapes[0][-1])
    return {(i, j): sum((x[i, k] * y[k, j] for k in terms), Fraction(0)) for i, j in np.ndindex(*result)}


def convolved(result: Any, shapes: Any, a: Attributes, x: Exact, w: Exact) -> Exact:
    (_, channels, *kernel), per = shapes[1], shapes[1][0] // a["groups"]
    made: Exact = {}
    for n, o, *at in np.ndindex(*result):
        total = Fraction(0)
        for c, *tap in np.ndindex(channels, *kernel):
            one = {**a, "kernel": [1] * len(kernel), "pads": [
                (p - k * d, 0) for k, d, (p, _) in zip(tap, a["dilations"], a["pads"], strict=True)
            ]}  # fmt: skip
            for spot in window(one, (n, o // per * channels + c, *at), shapes[0]):
                total += x[spot] * w[(o, c, *tap)]
        made[n, o, *at] = total
    return made


def moved(index: Callable[[np.ndarray, Attributes], np.ndarray]) -> Callable[..., Exact]:
    """Elements that go where NumPy puts their numbers; -1 is a zero."""

    def meaning(result: Any, shapes: Any, a: Attributes, x: Exact) -> Exact:
        sources = index(np.arange(int(np.prod(shapes[0]))).reshape(shapes[0]), a)
        flat = list(x.values())
        return {at: flat[sources[at]] if sources[at] >= 0 else Fraction(0) for at in np.ndindex(*result)}

    return meaning


def patched(numbers: np.ndarray, a: Attributes) -> np.ndarray:
    assert set(a["dilations"]) == {1} == set(a["strides"])
    filled = np.pad(numbers, [(0, 0), (0, 0), *a["pads"]], constant_values=-1)
    views = np.lib.stride_tricks.sliding_window_view(filled, a["kernel"], axis=(2, 3))
    return np.transpose(views, (0, 1, 4, 5, 2, 3))


@dataclass
class Case:
    operator: str
    shapes: list[tuple[int, ...]]
    attributes: Attributes
    meaning: Callable[..., Exact]
    fixed: tuple[int, ...] = ()  # operands that are constants


def windows(kernel: Sequence[int], pads: Sequence[tuple[int, int]], **more: Any) -> Attributes:
    ones = (1,) * len(kernel)
    return {"strides": ones, "dilations": ones, "kernel": tuple(kernel), "pads": tuple(pads), **more}


CONV = {name: v for name, v in windows((3, 2), [(1, 1), (1, 0)], groups=2).items() if name != "kernel"}
LARGEST, LEAST = pooled(lambda v, a: max(v), fibres), pooled(lambda v, a: min(v), fibres)
TOTAL = pooled(lambda v, a: sum(v, Fraction(0)), fibres)
MEAN = pooled(lambda v, a: sum(v, Fraction(0)) / len(v), fibres)
OVERLAP = [((1, 3), [(0, 0), (1, 1)]), ((3, 3), [(1, 1), (1, 1)]), ((2, 1), [(0, 1), (0, 0)])]
CASES = [
    *(
        Case("max_pool", [(1, 2, 3, 5)], windows(k, p), pooled(lambda v, a: max(v), window))
        for k, p in OVERLAP
    ),
    *(
        Case("avg_pool", [(1, 1, 4, 5)], windows(k, p, count_include_pad=c), pooled(average, window))
        for (k, p), c in itertools.product([*OVERLAP, ((4, 5), [(3, 3), (4, 4)])], (False, True))
    ),
    *(Case("reduce_max", [shape], {"axes": axes}, LARGEST) for shape, axes in (((3, 4), (1,)), ((1, 1), (0, 1)))),
    *(Case("reduce_min", [shape], {"axes": axes}, LEAST) for shape, axes in (((3, 4), (0,)), ((1, 3), (0,)))),
    *(
        Case("reduce_sum", [shape], {"axes": axes}, TOTAL)
        for shape, axes in (((64, 3), (0,)), ((0, 3), (0,)), ((3, 0), (0,)))
    ),
    *(Case("mean", [shape], {"axes": axes}, MEAN) for shape, axes in (((64, 3), (0,)), ((1, 1), (0, 1)))),
    Case("cumsum", [(2, 40)], {"axis": 1}, cumulated),
    Case("add", [(3, 4)] * 2, {}, each(lambda x, y: x + y)),
    Case("sub", [(3, 4)] * 2, {}, each(lambda x, y: x - y)),
    Case("relu", [(3, 4)], {}, each(lambda x: max(x, Fraction(0)))),
    Case("neg", [(3, 4)], {}, each(lambda x: -x)),
    Case("abs", [(3, 4)], {}, each(abs)),
    Case("maximum", [(3, 4)] * 2, {}, each(max)),
    Case("minimum", [(1, 1)] * 2, {}, each(min)),
    Case("clamp", [(3, 4)] * 3, {}, each(lambda x, low, high: min(max(x, low), high))),
    Case("mul", [(3, 4)] * 2, {}, each(lambda x, y: x * y), (1,)),
    Case("matmul", [(2, 9), (9, 3)], {}, matrices, (1,)),
    Case("matmul", [(2, 9), (9, 3)], {}, matrices, (0,)),
    Case("matmul", [(2, 0), (0, 3)], {}, matrices, (1,)),
    Case("conv", [(1, 2, 3, 4), (2, 1, 3, 2)], CONV, convolved, (1,)),
    Case("patches", [(1, 2, 3, 4)], windows((3, 2), [(1, 1), (1, 0)]), moved(patched)),
    Case("broadcast", [(3,)], {"shape": (2, 3), "axes": (1,)}, moved(lambda n, a: np.broadcast_to(n, (2, 3)))),
    Case("reshape", [(2, 3)], {"shape": (3, 2)}, moved(lambda n, a: n.reshape(3, 2))),
    Case("transpose", [(3, 3)], {"permutation": (1, 0)}, moved(lambda n, a: n.T)),
    Case("slice", [(1, 5)], {"start": (0, 1), "stop": (1, 5), "stride": (1, 2)}, moved(lambda n, a: n[:, 1:5:2])),
    Case("reverse", [(2, 3)], {"axes": (0,)}, moved(lambda n, a: n[::-1])),
    Case("concat", [(2, 3)], {"axis": 0}, moved(lambda n, a: n)),
]  # fmt: skip


def name_of(case: Case) -> str:
    return f"{case.operator} {case.shapes[0]} {case.attributes.get('kernel', '')}"


def made(case: Case) -> tuple[Node, list[TensorType]]:
    builder = Builder()
    types = [TensorType("float32", shape) for shape in case.shapes]
    operands = [builder.input(f"x{i}", t) for i, t in enumerate(types)]
    return builder.node(builder.add(case.operator, *operands, **case.attributes)), types


def drawn(case: Case, seed: int, changed: bool = False) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """References of few values, so that many are equal, or of many; what the run has is off by up to their errors.

    So are constants if they are ``changed``.
    """
    draw = np.random.default_rng(seed)
    few = seed % 2 == 0
    scale = draw.choice([1e-22, 1.0, 1e6])
    references = [(np.round(draw.normal(size=s) * 2) / 2 if few else draw.normal(size=s)) * scale for s in case.shapes]
    references = [r.astype(np.float32) for r in references]
    errors = [
        scale * draw.choice([0.0, 0.25, 1.0], size=s) * (changed or place not in case.fixed)
        for place, s in enumerate(case.shapes)
    ]
    signs = [draw.choice([-1, 1], size=s) for s in case.shapes]
    actual = [(r + e * s).astype(np.float32) for r, e, s in zip(references, errors, signs, strict=True)]
    return references, actual


def beyond(given: Exact, expected: Exact, bound: np.ndarray) -> bool:
    return any(abs(given[at] - expected[at]) > Fraction(float(bound[at])) for at in given)


def exceeded_in_ranges(case: Case, seed: int) -> bool:
    """Whether an error is beyond the bound of one who writes steps, or of those who replay them."""
    node, types = made(case)
    references, actual = drawn(case, seed, changed=seed % 3 > 0)
    known, judged = [], []
    again = Replay(Builder().graph({}), {}, {}, {})
    for place, (r, a) in enumerate(zip(references, actual, strict=True)):
        off, wide = a.astype(np.float64) - r, np.abs(a).astype(np.float64)
        constant, change = (r.astype(np.float64), off) if place in case.fixed else (None, None)
        known.append(of_ranges._Known(np.abs(off), wide, constant, None, change))
        slip = None if change is None else np.zeros(off.shape)
        form = again._fresh(np.abs(off)) if seed % 2 else None
        judged.append(replay._Judgement((place,), np.abs(off), wide, form, constant, change, slip))
    bound = of_ranges._passed(node, types, known, FLOAT32, of_ranges._Writer([])).bounds.elements * of_ranges.UPWARD
    of = replay._Applied(node, types, judged)
    replayed = again._settled(again._rounded(again._applied(of, (0,)), node, types), (0,)).error
    given = exactly(run_node(node, actual))
    expected = case.meaning(node.type.shape, case.shapes, case.attributes, *map(exactly, references))
    return beyond(given, expected, bound) or beyond(given, expected, replayed)


def exceeded_of_run(case: Case, seed: int) -> bool:
    """Whether weighted differences of results and of operands, both exact, differ by more than float64's roundings."""
    node, types = made(case)
    references, actual = drawn(case, seed)
    sides = Sides(node, types, [a.astype(np.float64) for a in actual], [r.astype(np.float64) for r in references])
    weights = np.random.default_rng(seed).integers(-8, 9, (1, *node.type.shape)).astype(np.float64)
    a, r = map(list, (map(exactly, actual), map(exactly, references)))
    after, before = (case.meaning(node.type.shape, case.shapes, case.attributes, *of) for of in (a, r))
    products = [Fraction(float(weights[(0, *at)])) * v for side in (after, before) for at, v in side.items()]
    off = sum(products[: len(after)], Fraction(0)) - sum(products[len(after) :], Fraction(0))
    for part, x, y in zip(difference(sides).pull(weights), a, r, strict=True):
        if part is not None:
            some = [Fraction(float(part[(0, *at)])) * v for side in (x, y) for at, v in side.items()]
            off -= sum(some[: len(x)], Fraction(0)) - sum(some[len(x) :], Fraction(0))
            products += some
    return abs(off) > sum(map(abs, products), Fraction(0)) / 2**45  # at most 2^8 roundings of 2^-53


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_error_is_beyond_the_bounds(case: Case) -> None:
    for seed in range(6):
        assert not exceeded_in_ranges(case, seed), "in ranges"
        assert not exceeded_of_run(case, seed), "on a run"


def test_every_operator_has_one_rule_or_none_on_purpose() -> None:
    ours = {name: o.kind for name, o in OPERATORS.items() if "." not in name}
    host = {name for name, kind in ours.items() if kind == "host"}
    choices = {"arg_max", "arg_min"}
    tensor = {name for name, kind in ours.items() if kind == "tensor"}
    assert differences._RULES.keys() == tensor - choices
    curved = {
        *[
            "exp",
            "log",
            "sqrt",
            "sinh",
            "cosh",
            "asinh",
            "acosh",
            "atanh",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "erf",
            "reciprocal",
            "div",
            "pow",
        ],
        *[
            "softplus",
            "softsign",
            "mish",
            "elu",
            "selu",
            "celu",
            "gelu",
            "swish",
            "hard_sigmoid",
            "hard_swish",
            "leaky_relu",
            "prelu",
        ],
    }
    jumps = {
        *[
            "floor",
            "ceil",
            "round",
            "sign",
            "shrink",
            "thresholded_relu",
            "remainder",
            "float_floor_remainder",
            "where",
            "cast",
        ]
    }
    words = {
        *["is_nan", "is_inf", "not", "bit_not", "equal", "less", "less_equal", "and", "or", "xor", "same_truth"],
        *["bit_and", "bit_or", "bit_xor", "shift_left", "shift_right", "quotient", "floor_remainder"],
    }
    unbounded = curved | jumps | words | choices | host
    computed = {name for name, kind in ours.items() if kind != "composite"}
    assert not unbounded & of_ranges._RULES.keys()
    assert of_ranges._RULES.keys() | unbounded == computed, "a new operator gets a rule, or stands here"
    tested = {case.operator for case in CASES} | {"pad", "gather", "gather_elements", "sigmoid", "tanh"}
    assert of_ranges._RULES.keys() == tested


def on_sigmoid(then: Callable[[Builder, int], int], shape: tuple[int, ...]) -> Graph:
    builder = Builder()
    return builder.graph({"y": then(builder, builder.add("sigmoid", builder.input("x", TensorType("float32", shape))))})


def test_roundings_of_overlapping_windows_are_counted_by_window() -> None:
    """63 x 63 equal elements, summed up in float32 with every rounding in one direction."""
    a = windows((63, 63), [(31, 31), (31, 31)], count_include_pad=False)
    graph = on_sigmoid(lambda b, y: b.add("avg_pool", y, **a), (1, 1, 64, 64))
    (bound,) = of_ranges.in_ranges(graph, {}, {})
    worst = 0.0
    for value in (0.1, 0.7, 0.93):
        given = np.full((1, 1, 64, 64), value, np.float32)
        result = run_node(graph.nodes[graph.outputs["y"]], [given])
        worst = max(worst, float(np.abs(result.astype(np.float64) - given[0, 0, 0, 0]).max()))
    assert bound.bound is not None and 1e-6 < worst <= bound.bound


def scaled(by: float, times: int) -> Graph:
    def then(builder: Builder, y: int) -> int:
        for _ in range(times):
            y = builder.add("mul", y, builder.constant(np.full((4,), by, np.float32)))
        return y

    return on_sigmoid(then, (4,))


def test_products_below_the_normal_numbers_are_off_by_the_least_number() -> None:
    (bound,) = of_ranges.in_ranges(scaled(1e-30, 2), {}, {})
    assert bound.bound is not None and bound.bound >= 1e-60


def test_what_leaves_float32_has_no_bound() -> None:
    (bound,) = of_ranges.in_ranges(scaled(1e30, 2), {}, {})
    assert bound.bound is None and bound.reason.endswith("mul may leave the range of float32 on the host")


@pytest.mark.parametrize("operator", ["reduce_max", "reduce_min"])
def test_extrema_of_nothing_have_no_bound(operator: str) -> None:
    def then(builder: Builder, y: int) -> int:
        nothing = builder.add("slice", y, start=(0,), stop=(0,), stride=(1,))
        return builder.add(
            "add", builder.add(operator, nothing, axes=(0,)), builder.constant(np.float32(1).reshape(()))
        )

    (bound,) = of_ranges.in_ranges(on_sigmoid(then, (4,)), {}, {})
    assert bound.bound is None and bound.reason.endswith(f"{operator} has elements of which no finite error is known")


def test_other_floats_than_those_whose_rounding_is_known_have_no_bound() -> None:
    case = Case("add", [(2,)] * 2, {}, each(lambda x, y: x + y))
    node, types = made(case)
    half = Node(node.operator, node.operands, node.attributes, TensorType("float16", (2,)))
    known = of_ranges._Known(np.zeros(2), np.ones(2))
    with pytest.raises(Unbounded, match="no rule says how the host rounds add of float16"):
        of_ranges._passed(half, types, [known, known], FLOAT32, of_ranges._Writer([]))


FLAT = windows((3, 3), [(1, 1), (1, 1)])
IMAGE = (1, 1, 4, 4)
PIECES = [
    Case("max_pool", [IMAGE], FLAT, pooled(lambda v, a: max(v), window)),
    Case("avg_pool", [IMAGE], {**FLAT, "count_include_pad": False}, pooled(average, window)),
    Case("conv", [IMAGE, (1, 1, 3, 3)], {**{n: FLAT[n] for n in ("strides", "dilations", "pads")}, "groups": 1},
         convolved, (1,)),
    Case("cumsum", [IMAGE], {"axis": 3}, cumulated),
    Case("reverse", [IMAGE], {"axes": (2,)}, moved(lambda n, a: n[:, :, ::-1])),
    *(
        replace(case, shapes=[IMAGE] * len(case.shapes))
        for case in CASES
        if case.operator in ("add", "sub", "relu", "neg", "abs", "maximum", "minimum", "mul")
    ),
]  # fmt: skip


def test_no_error_of_random_graphs_is_beyond_the_bounds() -> None:
    """Of eight operators, one behind the other or beside each other; the input is off by up to a quarter."""
    for seed in range(40):
        draw, builder = np.random.default_rng(seed), Builder()
        x = builder.input("x", TensorType("float32", IMAGE))
        numbers = [x]
        for _ in range(8):
            case = PIECES[draw.integers(len(PIECES))]
            of = [numbers[draw.integers(max(0, len(numbers) - 3), len(numbers))] for _ in case.shapes]
            values = [draw.normal(size=s).astype(np.float32) for s in case.shapes]
            of = [builder.constant(values[k]) if k in case.fixed else i for k, i in enumerate(of)]
            numbers.append(builder.add(case.operator, *of, **case.attributes))
        graph = builder.graph({"y": numbers[-1]})
        given = (np.round(draw.normal(size=IMAGE) * 2) / 2).astype(np.float32)
        for off in (0.0, 0.25):
            moved_by = np.float32(off) * draw.choice([-1, 1], IMAGE).astype(np.float32)
            assert not exceeded_in_graph(graph, given, given + moved_by), (seed, off)


def exceeded_in_graph(graph: Graph, reference: np.ndarray, actual: np.ndarray) -> bool:
    """Whether an output is beyond its bound in ranges, or, where inputs are the same, beyond that of the run."""
    meanings = {case.operator: case.meaning for case in PIECES}
    known, exact = dict[int, of_ranges._Known](), dict[int, Exact]()
    run, written = RunBound(graph, {}), of_ranges._Writer([])
    for number, value in steps(graph, {"x": actual}):
        node = graph.nodes[number]
        run.take(number, value, None, None)
        if node.operator == "constant":
            known[number], exact[number] = of_ranges._constant(value), exactly(value)
        elif node.operator == "input":
            wide = actual.astype(np.float64)
            known[number] = of_ranges._Known(np.abs(wide - reference), np.abs(wide))
            exact[number] = exactly(reference)
        else:
            types = [graph.nodes[i].type for i in node.operands]
            known[number] = of_ranges._passed(node, types, [known[i] for i in node.operands], FLOAT32, written)
            of = [exact[i] for i in node.operands]
            shapes = [t.shape for t in types]
            exact[number] = meanings[node.operator](node.type.shape, shapes, dict(node.attributes), *of)
    number = graph.outputs["y"]
    errors = {at: abs(v - exact[number][at]) for at, v in exactly(run.values[number]).items()}
    bound = known[number].bounds.elements * of_ranges.UPWARD
    if any(error > Fraction(float(bound[at])) for at, error in errors.items()):
        return True
    (composed,) = run.composed()
    assert composed.bound is not None
    # the run's reference is the graph in float64, which is off by itself
    reference_of_run = exactly(run.steps[number].difference.reference)
    drift = max(abs(reference_of_run[at] - v) for at, v in exact[number].items())
    if not np.array_equal(actual, reference):
        return False
    assert drift < Fraction(1, 2**30) * Fraction(float(max(k.most.max() for k in known.values())))
    return max(errors.values()) > Fraction(composed.bound) + drift
