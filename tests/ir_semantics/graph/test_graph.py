"""Graphs: types, what is refused, equal nodes, constants, running; composites against independent references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilaverify.models.references import in_double
from ir_semantics.graph import OPERATORS, Builder, Graph, GraphError, TensorType, expansion, meaning, run, steps, words
from ir_semantics.graph.build import MOST_FOLDED
from ir_semantics.graph.types import MOST_ELEMENTS
from ir_semantics.tensors.elements import Reduce
from ir_semantics.tensors.index import Names, index
from ir_semantics.tensors.terms import element_of
from tests.ir_semantics import reference_layers as reference

F = "float32"


def evaluate(operator: str, *operands: Any, by_definition: bool = False, **attributes: Any) -> Any:
    builder = Builder()
    arrays = [np.asarray(o) for o in operands]
    numbers = [builder.input(f"x{i}", TensorType(str(a.dtype), a.shape)) for i, a in enumerate(arrays)]
    graph = builder.graph({"y": builder.add(operator, *numbers, **attributes)})
    return run(graph, {f"x{i}": a for i, a in enumerate(arrays)}, by_definition=by_definition)["y"]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_types_follow_from_operands() -> None:
    builder = Builder()
    x, w = builder.input("x", TensorType(F, (2, 3, 8, 9))), builder.input("w", TensorType(F, (4, 3, 3, 3)))
    window = {"strides": (2, 2), "dilations": (1, 1), "pads": ((1, 1), (1, 1))}
    assert str(builder.type(builder.add("conv", x, w, groups=1, **window))) == "float32[2, 4, 4, 5]"
    assert str(builder.type(builder.add("is_nan", x))) == "bool[2, 3, 8, 9]"
    assert str(builder.type(builder.add("arg_max", x, axis=3, last=False))) == "int64[2, 3, 8]"
    assert str(builder.type(builder.add("cast", x, to="int8"))) == "int8[2, 3, 8, 9]"


def test_what_does_not_fit_is_refused() -> None:
    builder = Builder()
    x, y = builder.input("x", TensorType(F, (2, 3))), builder.input("y", TensorType(F, (4, 3)))
    i = builder.input("i", TensorType("int32", (2, 3)))
    refused = {
        "an operator must be one of": lambda: builder.add("frobnicate", x),
        "matmul must be given operands that fit, not float32[2, 3], float32[4, 3]": lambda: builder.add("matmul", x, y),
        "add must be given 2 operands, not 1": lambda: builder.add("add", x),
        "the operands of add must be of one type, not float32[2, 3], int32[2, 3]": lambda: builder.add("add", x, i),
        "exp must be given elements of kind float, not int32[2, 3]; cast them": lambda: builder.add("exp", i),
        "add must be given operands that fit, not float32[2, 3], float32[4, 3]: their shapes differ": lambda: (
            builder.add("add", x, y)
        ),
        "the attribute axis must be an integer, not 'a'": lambda: builder.add("cumsum", x, axis="a"),
        "the attribute axes must be a list of integers, not ('a',)": lambda: builder.add("reduce_sum", x, axes=("a",)),
        "reshape must be given operands that fit, not float32[2, 3] with shape=(7,)": lambda: builder.add(
            "reshape", x, shape=(7,)
        ),
        "the inputs of a graph must have different names; x occurs twice": lambda: builder.input(
            "x", TensorType(F, ())
        ),
        "indices must be integers, not float32[4, 3]; cast them": lambda: builder.add("gather", x, y, axis=0),
        "the operand x of where must be of Booleans, not float32[2, 3]": lambda: builder.add("where", x, x, x),
        "shapes that are broadcast must have extents that agree or are 1, not [2, 3] and [4, 3]": lambda: words.apply(
            builder, "add", x, y
        ),
    }
    for message, action in refused.items():
        with pytest.raises(GraphError) as caught:
            action()
        assert str(caught.value).startswith(message), str(caught.value)


@pytest.mark.parametrize(
    ("operator", "attributes", "message"),
    [
        ("cumsum", {}, "the attributes of cumsum must be axis; axis is missing"),
        ("cumsum", {"axis": 0, "exclusive": 1}, "the attributes of cumsum must be axis; it has no exclusive"),
        ("exp", {"base": 2.0}, "the attributes of exp must be none; it has no base"),
        (
            "layer_norm",
            {"axis": 1, "epsilon": 1e-5},
            "the attributes of layer_norm must be axes, epsilon; it has no axis and axes is missing",
        ),
        (
            "top_k",
            {"k": 1, "axis": 0, "output": 0},
            "the attributes of top_k must be axis, k, largest, output; largest is missing",
        ),
    ],
)
def test_an_operator_has_its_attributes_and_no_others(operator: str, attributes: dict[str, Any], message: str) -> None:
    builder = Builder()
    with pytest.raises(GraphError) as caught:
        builder.add(operator, builder.input("x", TensorType(F, (2, 3))), **attributes)
    assert str(caught.value) == message


def test_limits_of_types() -> None:
    with pytest.raises(GraphError, match=r"^the elements of a tensor must be of one of the types .*, not complex64"):
        TensorType("complex64", ())
    with pytest.raises(GraphError, match=r"^the extents of a tensor must not be negative, not \[-1\]$"):
        TensorType(F, (-1,))
    with pytest.raises(GraphError, match=r"^a tensor must have at most 32 axes, not 33$"):
        TensorType(F, (1,) * 33)
    with pytest.raises(GraphError, match=rf"^a tensor must have at most {MOST_ELEMENTS} elements, not {2**29} "):
        TensorType(F, (2**29,))


def test_equal_nodes_are_one_and_origins_stay() -> None:
    builder = Builder()
    x = builder.input("x", TensorType(F, (3,)))
    builder.origin = "first"
    a = builder.add("exp", x)
    builder.origin = "second"
    assert builder.add("exp", x) == a
    b = builder.add("add", a, builder.constant(np.ones(3, np.float32)))
    graph = builder.graph({"y": b})
    assert dict(zip([n.operator for n in graph.nodes], graph.origins, strict=True)) == {
        "input": "", "exp": "first", "constant": "second", "add": "second",
    }  # fmt: skip
    assert graph.operators() == {"add": 1, "exp": 1}


def test_attributes_that_python_holds_for_equal_are_not_one() -> None:
    b = Builder()
    x = b.input("x", TensorType("float32", (2,)))
    assert len({b.add("leaky_relu", x, alpha=alpha) for alpha in (0.0, -0.0, 0, 1, 1.0)}) == 5


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_a_composite_of_such_attributes_is_not_the_other_ones(first: float) -> None:
    def normalised(epsilon: float) -> Graph:
        b = Builder()
        x = b.input("x", TensorType(F, (2, 3)))
        statistics = [b.input(name, TensorType(F, (3,))) for name in ("scale", "bias", "mean", "var")]
        return b.graph({"y": b.add("batch_norm", x, *statistics, epsilon=epsilon)})

    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    inputs = {"x": np.ones((2, 3), np.float32), "scale": ones, "bias": zeros, "mean": zeros, "var": -zeros}
    for epsilon in (first, -first):
        with np.errstate(divide="ignore"):
            found = run(normalised(epsilon), inputs)["y"]
        assert (found == np.copysign(np.inf, epsilon)).all()
        node = next(n for n in normalised(epsilon).nodes if n.operator == "batch_norm")
        types = [TensorType(F, i.shape) for i in inputs.values()]
        with np.errstate(divide="ignore"):
            assert (in_double(node, types, list(inputs.values())) == np.copysign(np.inf, epsilon)).all()


def test_constants_are_computed_but_broadcasts_stay() -> None:
    builder = Builder()
    x, c = builder.input("x", TensorType(F, (2, 3))), builder.constant(np.array([1, 4, 9], np.float32))
    root = builder.add("sqrt", c)
    sums = words.apply(builder, "add", x, root)
    graph = builder.graph({"y": sums, "root": root})
    assert graph.operators() == {"add": 1, "broadcast": 1}
    assert graph.constant(graph.outputs["root"]).tolist() == [1, 2, 3]
    results = run(graph, {"x": np.zeros((2, 3), np.float32)})
    assert results["y"].tolist() == [[1, 2, 3], [1, 2, 3]]


def test_large_constants_are_computed_when_the_graph_runs() -> None:
    builder = Builder()
    wide = words.expand(builder, builder.constant(np.ones((), np.int8)), (2, MOST_FOLDED))
    assert builder.value(wide) is None
    graph = builder.graph({"y": builder.add("neg", wide)})
    assert graph.operators() == {"broadcast": 1, "neg": 1}
    assert sum(a.size for a in graph.constants.values()) == 1


def test_inputs_are_checked() -> None:
    builder = Builder()
    graph = builder.graph({"y": builder.add("exp", builder.input("x", TensorType(F, (2,))))})
    with pytest.raises(GraphError, match=r"^the input x must be given, as float32\[2\]; give an array of that name$"):
        run(graph, {})
    with pytest.raises(GraphError, match=r"^the input x must be float32\[2\], not float64\[2\]; convert it$"):
        run(graph, {"x": np.zeros(2)})
    with pytest.raises(GraphError, match=r"^inputs must be those of the graph \(x\), not z$"):
        run(graph, {"x": np.zeros(2, np.float32), "z": np.zeros(1)})


def test_steps_give_every_node_in_order() -> None:
    builder = Builder()
    x = builder.input("x", TensorType(F, (2,)))
    graph = builder.graph({"y": builder.add("neg", builder.add("exp", x))})
    values = dict(steps(graph, {"x": np.zeros(2, np.float32)}))
    assert [graph.nodes[i].operator for i in values] == ["input", "exp", "neg"]
    assert values[2].tolist() == [-1, -1]


def test_meanings_are_the_terms_that_rules_are_about() -> None:
    types = [TensorType(F, (2, 3)), TensorType(F, (3, 4))]
    term = meaning(OPERATORS["matmul"], types, {})
    element = element_of(term, [index(0), index(1)], Names())
    assert isinstance(element, Reduce) and str(element) == "sum(k.1 < 3: mul(x0[0, k.1], x1[k.1, 1]))"
    assert str(element_of(meaning(OPERATORS["relu"], types[:1], {}), [index(0), index(1)], Names())) == (
        "maximum(x0[0, 1], 0)"
    )
    with pytest.raises(GraphError, match=r"^softmax must be an index .* a term; it is a composite operator$"):
        meaning(OPERATORS["softmax"], types[:1], {"axis": 0})


def test_no_operator_is_without_words() -> None:
    for operator in OPERATORS.values():
        assert operator.doc.endswith("."), operator.name
    assert {o.kind for o in OPERATORS.values()} == {"scalar", "tensor", "composite", "host"}


# -- composites against implementations that share nothing with them --------------------------------------
# Both sides compute in binary64, with at most some hundred roundings of 2^-53 each on the way to an element and
# little cancellation; 1e-9 leaves a factor of a thousand, and a wrong gate or axis is off by more than 1e-2.


@pytest.mark.parametrize("by_definition", [False, True])
def test_softmax_and_layer_norm(by_definition: bool) -> None:
    x = random(4, 5) * 100
    found = evaluate("softmax", x, axis=1, by_definition=by_definition)
    # relative error: 2^-53 for each of about 10 operations, times 100 by which exponents are off at most
    np.testing.assert_allclose(found, reference.softmax(x), rtol=1e-12)
    gamma, beta = random(5, seed=1), random(5, seed=2)
    found = evaluate("layer_norm", x, gamma, beta, axes=(1,), epsilon=1e-5, by_definition=by_definition)
    np.testing.assert_allclose(found, reference.layer_norm(x, gamma, beta), rtol=1e-9)


@pytest.mark.parametrize("by_definition", [False, True])
def test_lstm(by_definition: bool) -> None:
    x, h, c = random(3, 2, 4), random(2, 5, seed=4), random(2, 5, seed=5)
    w, r, bias = random(20, 4, seed=1), random(20, 5, seed=2), random(40, seed=3)
    activations = (("sigmoid",), ("tanh",), ("tanh",))
    common = {"activations": activations, "clip": 0.0, "reverse": False, "lengths": False, "input_forget": False}
    operands = (x, w, r, bias, h, c, np.zeros(15))
    hidden, cells = reference.lstm(x, w, r, bias[:20], bias[20:], initial=(h, c), gates="iofg")
    for output, expected in ((0, hidden), (1, hidden[-1]), (2, cells[-1])):
        found = evaluate("lstm", *operands, output=output, by_definition=by_definition, **common)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_gru_and_rnn() -> None:
    x, h = random(3, 2, 4), random(2, 5, seed=4)
    w, r, bias = random(15, 4, seed=1), random(15, 5, seed=2), random(30, seed=3)
    common = {"clip": 0.0, "reverse": False, "lengths": False, "output": 0}
    found = evaluate("gru", x, w, r, bias, h, activations=(("sigmoid",), ("tanh",)), linear_before_reset=True, **common)
    expected = reference.gru(x, w, r, bias[:15], bias[15:], initial=h, gates="zrn")
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = evaluate("rnn", x, w[:5], r[:5], bias[:10], h, activations=(("tanh",),), **common)
    np.testing.assert_allclose(found, reference.rnn(x, w[:5], r[:5], bias[:5], bias[5:10], initial=h), rtol=1e-9)


def test_sequences_end_at_their_lengths() -> None:
    x, h = random(4, 2, 3), random(2, 3, seed=4)
    w, r, bias = random(3, 3, seed=1), random(3, 3, seed=2), random(6, seed=3)
    common = {"activations": (("tanh",),), "clip": 0.0, "reverse": False, "output": 0}
    lengths = np.array([2, 4], np.int32)
    found = evaluate("rnn", x, w, r, bias, h, lengths, lengths=True, **common)
    whole = evaluate("rnn", x, w, r, bias, h, lengths=False, **common)
    np.testing.assert_array_equal(found[:2], whole[:2])
    np.testing.assert_array_equal(found[2:, 0], np.zeros((2, 3)))
    np.testing.assert_array_equal(found[2:, 1], whole[2:, 1])


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 5, 8])
def test_products(extent: int) -> None:
    x = np.arange(2, 2 + 3 * extent, dtype=np.int64).reshape(3, extent) % 7 + 1
    assert evaluate("reduce_prod", x, axes=(1,)).tolist() == np.prod(x, axis=1).tolist()
    if extent:
        assert evaluate("cum_prod", x, axis=1).tolist() == np.cumprod(x, axis=1).tolist()


def test_transposed_convolution_is_the_gradient_of_a_convolution() -> None:
    """Both sides of <conv(x, w), y> = <x, conv_transpose(y, w)> on whole numbers."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-3, 4, (1, 4, 7, 6)), rng.integers(-3, 4, (1, 6, 4, 3))
    w = rng.integers(-3, 4, (6, 2, 3, 2))
    window = {"groups": 2, "strides": (2, 2), "dilations": (1, 1)}
    left = evaluate("conv", x, w, pads=((1, 1), (0, 0)), **window)
    assert left.shape == y.shape
    right = evaluate("conv_transpose", y, w, pads=((1, 1), (0, 0)), **window)
    assert right.shape == x.shape
    assert int((left * y).sum()) == int((right * x).sum())


def test_an_expansion_is_a_graph_of_other_operators() -> None:
    graph = expansion("softmax", (TensorType(F, (2, 3)),), (("axis", 1),))
    assert set(graph.operators()) == {"broadcast", "div", "exp", "reduce_max", "reduce_sum", "reshape", "sub"}
    assert all(OPERATORS[name].kind in ("scalar", "tensor") for name in graph.operators())


def test_host_operators() -> None:
    x = np.array([[3, 1, 3, 2]], np.int32)
    common = {"k": 2, "axis": 1, "largest": True}
    assert evaluate("top_k", x, output=0, **common).tolist() == [[3, 3]]
    assert evaluate("top_k", x, output=1, **common).tolist() == [[0, 2]]
    assert evaluate("top_k", x, output=1, k=3, axis=1, largest=False).tolist() == [[1, 3, 0]]
    data, at, new = np.zeros(4), np.array([[1], [1]]), np.array([2.0, 3.0])
    assert evaluate("scatter_nd", data, at, new, reduction="add").tolist() == [0, 5, 0, 0]
    with pytest.raises(GraphError, match=r"^top_k must be given k in 0 \.\. 4, the extent of the axis, not 5$"):
        evaluate("top_k", x, output=0, k=5, axis=1, largest=True)
    with pytest.raises(GraphError, match=r"^the indices of scatter_nd must be in -4 \.\. 3"):
        evaluate("scatter_nd", data, np.array([[4], [1]]), new, reduction="none")


WITH_AXES: dict[str, tuple[int, dict[str, object]]] = {
    **dict.fromkeys(("softmax", "log_softmax", "hardmax", "cumsum"), (1, {"axis": 0})),
    **dict.fromkeys(("reverse", "mean", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), (1, {"axes": (0,)})),
    **dict.fromkeys(("concat", "gather", "gather_elements"), (2, {"axis": 0})),
    **dict.fromkeys(("layer_norm", "rms_norm"), (1, {"axes": (0,), "epsilon": 1.0})),
    "arg_max": (1, {"axis": 0, "last": False}),
    "top_k": (1, {"axis": 0, "k": 1, "largest": True, "output": 0}),
    "scatter_elements": (3, {"axis": 0, "reduction": "none"}),
}


@pytest.mark.parametrize("operator", WITH_AXES)
def test_axes_of_any_operator_are_axes_of_its_operand(operator: str) -> None:
    count, attributes = WITH_AXES[operator]
    builder = Builder()
    operands = [builder.input(f"x{i}", TensorType("int64" if i == 1 else "float32", (2, 3))) for i in range(count)]
    many = "axes" in attributes
    for wrong, told in (((-1,), "-1"), ((2,), "2"), *([((1, 1), "1, 1")] if many else [])):
        given: Any = {**attributes, ("axes" if many else "axis"): wrong if many else wrong[0]}
        with pytest.raises(GraphError) as error:
            builder.add(operator, *operands, **given)
        assert str(error.value) == (
            f"the axes of {operator} must be different numbers from 0 to 1 where its operand is float32[2, 3], "
            f"not {told}"
        )
    scalar: Any = {**attributes, ("axes" if many else "axis"): (0,) if many else 0}
    operands = [builder.input(f"s{i}", TensorType("float32", ())) for i in range(count)]
    with pytest.raises(GraphError) as error:
        builder.add(operator, *operands, **scalar)
    assert str(error.value) == f"the axes of {operator} must be none where its operand is float32[], not 0"
