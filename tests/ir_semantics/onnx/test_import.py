"""Import of ONNX models: what is built, what must be bound, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ir_semantics.graph import GraphError, run
from ir_semantics.onnx import NeedsConstant, Unsupported, import_model
from tests.ir_semantics.onnx.onnx_models import convolutional, model, node, tensor

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def test_a_model_becomes_a_graph() -> None:
    graph = import_model(convolutional())
    assert graph.operators() == {"conv": 1, "gather": 1, "max_pool": 1, "relu": 1, "reshape": 1, "softmax": 1}
    origins = {n.operator: o for n, o in zip(graph.nodes, graph.origins, strict=True)}
    assert origins["conv"] == "node conv (Conv)" and origins["relu"] == "node number 1 (Relu)"
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    fast, exact = (run(graph, {"x": x}, by_definition=d)["z"] for d in (False, True))
    # a sum of 27 products in two orders, then softmax, whose relative error is that of its argument in units of 1
    np.testing.assert_allclose(fast, exact, rtol=4 * 27 * 2.0**-24 * 32)


def test_shapes_agree_with_onnx_shape_inference() -> None:
    proto = onnx.load(LIGHT / "light_shufflenet.onnx")
    inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True)
    wanted = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in inferred.graph.value_info}
    computed = {o for n in proto.graph.node if n.op_type != "ConstantOfShape" for o in n.output if o in wanted}
    del proto.graph.output[:]
    proto.graph.output.extend(v for v in inferred.graph.value_info if v.name in computed)
    graph = import_model(proto)
    assert len(computed) > 150
    for name in computed:
        assert graph.nodes[graph.outputs[name]].type.shape == wanted[name], name


def test_outputs_are_what_the_model_declares() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, {"y": ["n", 4]})
    with pytest.raises(GraphError) as caught:
        import_model(proto, dimensions={"n": 2})
    assert str(caught.value) == (
        "the output y must be float32[any, 4], as the model declares, not float32[2, 3]; correct the model"
    )
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT8, [None, 3]))
    with pytest.raises(GraphError, match=r"^the output y must be int8\[any, 3\], as the model declares"):
        import_model(proto, dimensions={"n": 2})


def test_symbolic_extents_are_bound_or_refused() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": ["batch", 3]}, {"y": ["batch", 3]})
    with pytest.raises(GraphError) as caught:
        import_model(proto)
    assert str(caught.value) == (
        "the input x must have a static shape, but its axis 0 has the symbolic extent batch; bind it when importing "
        "(dimensions; compile --dimension batch=N)"
    )
    with pytest.raises(GraphError) as caught:
        import_model(proto, dimensions={"batch": 5, "foo": 3})
    assert str(caught.value) == (
        "dimensions must be symbolic extents of the model's inputs (batch), not foo; correct the names, or leave them "
        "out"
    )
    with pytest.raises(GraphError, match=r"axis 0 has the unknown extent; write its extent into the model$"):
        import_model(model([node("Relu", ["x"], ["y"])], {"x": [None, 3]}, {"y": [None, 3]}))
    assert import_model(proto, dimensions={"batch": 5}).nodes[0].type.shape == (5, 3)
    assert import_model(proto, shapes={"x": [2, 3]}).nodes[0].type.shape == (2, 3)
    with pytest.raises(GraphError, match=r"^the input x: the extents of a tensor must not be negative, not \[-1, 3\]$"):
        import_model(proto, dimensions={"batch": -1})


def test_values_that_decide_shapes_are_asked_for() -> None:
    proto = model([node("Reshape", ["x", "s"], ["y"])], {"x": [6]}, {"y": ["a", "b"]})
    proto.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, [2]))
    with pytest.raises(NeedsConstant) as caught:
        import_model(proto)
    assert caught.value.inputs == ("s",)
    assert str(caught.value) == (
        "node number 0 (Reshape): the shape must be constant and of moderate size, since shapes are static; "
        "it depends on the input s: give its value when importing"
    )
    graph = import_model(proto, values={"s": np.array([2, -1])})
    assert list(graph.inputs) == ["x"] and graph.nodes[graph.outputs["y"]].type.shape == (2, 3)
    with pytest.raises(
        GraphError, match=r"^values must be given for inputs of the model, not for t; correct the names$"
    ):
        import_model(proto, values={"s": np.array([2, -1]), "t": np.array(0)})
    with pytest.raises(
        GraphError, match=r"^the value of the input s must be of the type int64, not float64; convert it$"
    ):
        import_model(proto, values={"s": np.array([2.0, 3.0])})


@pytest.mark.parametrize("opset", [6, 29])
def test_other_opsets_are_refused(opset: int) -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": [1]}, {"y": [1]})
    proto.opset_import[0].version = opset
    with pytest.raises(GraphError) as caught:
        import_model(proto)
    assert str(caught.value) == (
        f"the model must use a version of the ONNX operator set in 7 .. 28, not {opset}; "
        "convert it with onnx.version_converter.convert_version"
    )


def refused(nodes: list[onnx.NodeProto], *, opset: int = 17, outputs: int = 1, **inputs: list[int]) -> str:
    results = {f"y{i}": ["n"] for i in range(outputs)}
    proto = model(nodes, dict(inputs), results, opset=opset)
    with pytest.raises(Unsupported) as caught:
        import_model(proto)
    return str(caught.value)


def test_what_is_not_supported_is_named() -> None:
    x = [1, 1, 4, 4]
    assert refused([node("GridSample", ["x", "g"], ["y0"], name="warp")], x=x, g=[1, 4, 4, 2]) == (
        "node warp (GridSample): the operator is not supported; replace it, or cut the model before it"
    )
    pool = node("MaxPool", ["x"], ["y0", "y1"], kernel_shape=[2, 2])
    assert refused([pool], x=x, outputs=2) == (
        "node number 0 (MaxPool): the output Indices is not supported; leave it out"
    )
    norm = node("BatchNormalization", ["x", *"abcd"], ["y0"], training_mode=1)
    vectors = {n: [1] for n in "abcd"}
    assert refused([norm], x=x, **vectors) == (
        "node number 0 (BatchNormalization): batch normalisation must not be in training mode; "
        "export the model for inference"
    )


def test_an_unknown_attribute_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker would find it too; the importer must not depend on that."""
    monkeypatch.setattr("ir_semantics.onnx.importer.check_structure", lambda proto: None)
    assert refused([node("Relu", ["x"], ["y0"], slope=2.0)], x=[2]) == (
        "node number 0 (Relu): the attribute slope is not supported; leave it out"
    )


def test_other_domains_are_refused_but_functions_of_the_model_are_taken() -> None:
    double = helper.make_function(
        "own", "Scale", ["a"], ["b"], [node("Mul", ["a", "c"], ["b"])], [helper.make_opsetid("", 17)], ["factor"]
    )
    constant = node("Constant", [], ["c"])
    constant.attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="factor", type=1))
    double.node.insert(0, constant)
    call = node("Scale", ["x"], ["y"], domain="own", factor=2.5)
    proto = model([call], {"x": [2]}, {"y": [2]}, functions=[double])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    assert run(import_model(proto), {"x": np.array([1, 2], np.float32)})["y"].tolist() == [2.5, 5]
    del proto.functions[:]
    with pytest.raises(GraphError, match="the operator must be of the default domain, not of own"):
        import_model(proto)


def test_a_branch_is_taken_where_its_condition_is_constant() -> None:
    sides = [
        helper.make_graph([node(op, ["x"], ["r"])], op, [], [helper.make_tensor_value_info("r", 1, [2])])
        for op in ("Neg", "Exp")
    ]
    proto = model([node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])], {"x": [2]}, {"y": [2]})
    proto.graph.initializer.append(tensor("c", True))
    assert import_model(proto).operators() == {"neg": 1}
    proto.graph.initializer[0].CopyFrom(tensor("c", False))
    assert import_model(proto).operators() == {"exp": 1}
    del proto.graph.initializer[:]
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    with pytest.raises(NeedsConstant, match="the condition must be constant; it depends on the input c"):
        import_model(proto)


def test_axes_before_and_after_they_became_inputs() -> None:
    old = model([node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)], {"x": [2, 3]}, {"y": [2]}, opset=11)
    new = model([node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"x": [2, 3]}, {"y": [2]}, [tensor("a", [1])])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert run(import_model(old), {"x": x})["y"].tolist() == run(import_model(new), {"x": x})["y"].tolist() == [3, 12]


def test_softmax_flattened_until_opset_12() -> None:
    x = np.log(np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2))
    shape = {"x": [2, 2, 2]}, {"y": [2, 2, 2]}
    old = run(import_model(model([node("Softmax", ["x"], ["y"], axis=1)], *shape, opset=11)), {"x": x})["y"]
    new = run(import_model(model([node("Softmax", ["x"], ["y"], axis=1)], *shape, opset=13)), {"x": x})["y"]
    assert np.round(old.reshape(2, 4).sum(axis=1), 5).tolist() == [1, 1]
    assert np.round(new.sum(axis=1), 5).tolist() == [[1, 1], [1, 1]]


def test_initializers_may_be_inputs_that_are_bound() -> None:
    proto = model([node("Add", ["x", "k"], ["y"])], {"x": [2], "k": [2]}, {"y": [2]}, [tensor("k", [1, 2], "float32")])
    x = np.zeros(2, np.float32)
    assert run(import_model(proto), {"x": x})["y"].tolist() == [1, 2]
    assert run(import_model(proto, values={"k": np.array([5, 6], np.float32)}), {"x": x})["y"].tolist() == [5, 6]


def test_a_window_that_begins_in_the_padding_is_not_taken() -> None:
    pool = node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[2], ceil_mode=1)
    graph = import_model(model([pool], {"x": [1, 1, 2]}, {"y": [1, 1, 1]}))
    assert run(graph, {"x": np.array([[[3, 4]]], np.float32)})["y"].tolist() == [[[3]]]
    pool = node("MaxPool", ["x"], ["y"], kernel_shape=[3], strides=[2], ceil_mode=1)
    graph = import_model(model([pool], {"x": [1, 1, 4]}, {"y": [1, 1, 2]}))
    assert run(graph, {"x": np.array([[[1, 2, 3, 7]]], np.float32)})["y"].tolist() == [[[3, 7]]]


def test_operators_that_the_backend_tests_do_not_reach() -> None:
    proto = model([node("GlobalLpPool", ["x"], ["y"], p=2)], {"x": [1, 2, 1, 2]}, {"y": [1, 2, 1, 1]})
    x = np.array([3, 4, 5, 12], np.float32).reshape(1, 2, 1, 2)
    assert run(import_model(proto), {"x": x})["y"].reshape(-1).tolist() == [5, 13]
    proto = model([node("Not", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, dtype=TensorProto.BOOL)
    assert run(import_model(proto), {"x": np.array([True, False])})["y"].tolist() == [False, True]


def test_half_precision_sums_in_single_precision() -> None:
    shape = {"x": [1, 2050]}, {"y": [1, 1]}
    proto = model([node("MatMul", ["x", "w"], ["y"])], *shape, [tensor("w", np.ones((2050, 1)), "float16")], dtype=10)
    x = np.ones((1, 2050), np.float16)
    # in binary16, 2048 + 1 = 2048
    assert run(import_model(proto), {"x": x}, by_definition=True)["y"].tolist() == [[2050]]
