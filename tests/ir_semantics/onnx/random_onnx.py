"""Random ONNX models of one operator, with attributes, shapes and data drawn to reach corners.

Numbers are small and whole where sums are taken, so that every order of additions gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Draw = np.random.Generator


@dataclass
class Case:
    """A node, its inputs in order (those named in ``constant`` are initializers), and the number of its outputs."""

    operator: str
    inputs: dict[str, NDArray[Any]]
    attributes: dict[str, Any] = field(default_factory=dict)
    constant: tuple[str, ...] = ()
    outputs: int = 1
    left_out: int = 0  # optional inputs between the first one and the others
    opset: int = 17

    def model(self) -> onnx.ModelProto:
        """The model; its outputs have no declared shapes."""
        names = list(self.inputs)
        operands = [*names[:1], *[""] * self.left_out, *names[1:]]
        results = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.operator, operands, results, "node", **self.attributes)
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in self.inputs.items()
            if name not in self.constant
        ]
        graph = helper.make_graph(
            [node],
            "random",
            given,
            [onnx.ValueInfoProto(name=name) for name in results],
            [numpy_helper.from_array(self.inputs[name], name) for name in self.constant],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    def data(self) -> dict[str, NDArray[Any]]:
        return {name: a for name, a in self.inputs.items() if name not in self.constant}


def whole(draw: Draw, *shape: int, most: int = 3, dtype: str = "float32") -> NDArray[Any]:
    return np.asarray(draw.integers(-most, most + 1, shape)).astype(dtype)


def extents(draw: Draw, rank: int, most: int = 5) -> list[int]:
    return [int(d) for d in draw.integers(1, most + 1, rank)]


def pick(draw: Draw, *choices: Any) -> Any:
    return choices[int(draw.integers(len(choices)))]


def windows(draw: Draw, rank: int) -> dict[str, Any]:
    """Attributes of windows; pads are smaller than the kernel, which runtimes ask for."""
    kernel = extents(draw, rank, 3)
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": extents(draw, rank, 3)}
    if draw.random() < 0.4:
        found["auto_pad"] = pick(draw, "SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        found["pads"] = [int(draw.integers(0, k)) for k in kernel * 2]
    if draw.random() < 0.3:
        found["dilations"] = extents(draw, rank, 2)
    return found


def convolution(draw: Draw) -> Case:
    rank, groups = pick(draw, 1, 2), pick(draw, 1, 1, 2)
    attributes = windows(draw, rank) | {"group": groups}
    inputs, outputs = groups * int(draw.integers(1, 3)), groups * int(draw.integers(1, 3))
    x = whole(draw, 1, inputs, *[d + 6 for d in extents(draw, rank, 4)])
    w = whole(draw, outputs, inputs // groups, *attributes["kernel_shape"])
    more = {"b": whole(draw, outputs)} if draw.random() < 0.5 else {}
    return Case("Conv", {"x": x, "w": w, **more}, attributes)


def transposed_convolution(draw: Draw) -> Case:
    attributes = windows(draw, 2)
    attributes.pop("auto_pad", None)
    attributes["output_padding"] = [int(draw.integers(0, s)) for s in attributes["strides"]]
    x = whole(draw, 1, 2, *[d + 3 for d in extents(draw, 2, 3)])
    return Case("ConvTranspose", {"x": x, "w": whole(draw, 2, 3, *attributes["kernel_shape"])}, attributes)


def pooling(draw: Draw) -> Case:
    rank = pick(draw, 1, 2)
    attributes = windows(draw, rank)
    operator = pick(draw, "MaxPool", "AveragePool", "MaxPool")
    attributes["ceil_mode"] = int(draw.random() < 0.3)
    opset = 19
    if operator == "AveragePool":
        attributes["count_include_pad"] = int(draw.random() < 0.5)
    x = whole(draw, 1, 2, *[d + 6 for d in extents(draw, rank, 4)], most=9)
    if draw.random() < 0.1:
        x.flat[int(draw.integers(x.size))] = np.nan
    return Case(operator, {"x": x}, attributes, opset=opset)


def global_pooling(draw: Draw) -> Case:
    return Case(pick(draw, "GlobalMaxPool", "GlobalAveragePool"), {"x": whole(draw, 2, 3, *extents(draw, 2))})


def slicing(draw: Draw) -> Case:
    shape = extents(draw, 3, 6)
    axes = sorted(draw.choice(3, int(draw.integers(1, 4)), replace=False).tolist())
    bounds = {name: draw.integers(-9, 10, len(axes)) for name in ("starts", "ends")}
    steps = np.array([pick(draw, 1, 2, -1, -2, 3) for _ in axes], np.int64)
    x = whole(draw, *shape, dtype=pick(draw, "float32", "int64"))
    given = {"x": x, **bounds, "axes": np.array(axes, np.int64), "steps": steps}
    return Case("Slice", given, constant=("starts", "ends", "axes", "steps"))


def padding(draw: Draw) -> Case:
    shape = [d + 2 for d in extents(draw, 2, 4)]
    mode = pick(draw, "constant", "reflect", "edge", "constant")
    least = -1 if mode == "constant" else 0
    pads = np.array([draw.integers(least, min(shape) - 1) for _ in range(4)], np.int64)
    more = {"value": np.float32(7)} if mode == "constant" and draw.random() < 0.5 else {}
    inputs = {"x": whole(draw, *shape), "pads": pads, **{k: np.asarray(v) for k, v in more.items()}}
    return Case("Pad", inputs, {"mode": mode}, tuple(inputs)[1:])


def resizing(draw: Draw) -> Case:
    mode = pick(draw, "nearest", "linear", "cubic")
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": pick(
            draw, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"
        ),
    }
    if mode == "nearest":
        attributes["nearest_mode"] = pick(draw, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    x = whole(draw, 1, 1, *[d + 1 for d in extents(draw, 2, 4)], most=9)
    if draw.random() < 0.5:
        sizes = np.array([1, 1, *extents(draw, 2, 7)], np.int64)
        return Case("Resize", {"x": x, "sizes": sizes}, attributes, ("sizes",), left_out=2, opset=19)
    scales = np.array([1, 1, *[pick(draw, 0.5, 1.0, 2.0, 1.5, 3.0) for _ in range(2)]], np.float32)
    return Case("Resize", {"x": x, "scales": scales}, attributes, ("scales",), left_out=1, opset=19)


def reduction(draw: Draw) -> Case:
    operator = pick(
        draw, "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
    )  # fmt: skip
    dtype = "float32" if "Log" in operator or "L2" in operator or "Mean" in operator else pick(draw, "float32", "int32")
    x = whole(draw, *extents(draw, 3, 4), dtype=dtype)
    x = np.abs(x) + x.dtype.type(1) if operator == "ReduceLogSum" else x
    axes = np.array(sorted(draw.choice(3, int(draw.integers(1, 4)), replace=False)), np.int64)
    return Case(operator, {"x": x, "axes": axes}, {"keepdims": int(draw.integers(2))}, ("axes",), opset=18)


def normalised(draw: Draw) -> Case:
    operator = pick(draw, "Softmax", "LogSoftmax", "Hardmax")
    return Case(operator, {"x": whole(draw, *extents(draw, 3))}, {"axis": int(draw.integers(-3, 3))})


def layer_normalisation(draw: Draw) -> Case:
    shape = [*extents(draw, 2), int(draw.integers(2, 9))]
    x = whole(draw, *shape, most=9) + np.linspace(0, 1, shape[-1], dtype=np.float32)  # no variance is 0
    scale, bias = whole(draw, shape[-1]), whole(draw, shape[-1])
    return Case("LayerNormalization", {"x": x, "s": scale, "b": bias}, {"axis": -1, "epsilon": 1e-3})


def local_normalisation(draw: Draw) -> Case:
    attributes = {"size": int(draw.integers(1, 6)), "alpha": 0.5, "beta": 0.75, "bias": 1.0}
    return Case("LRN", {"x": whole(draw, 1, int(draw.integers(3, 7)), *extents(draw, 2))}, attributes)


def product(draw: Draw) -> Case:
    m, k, n = extents(draw, 3, 6)
    if draw.random() < 0.5:
        front = pick(draw, [], [2], [2, 1])
        return Case("MatMul", {"a": whole(draw, *front, m, k), "b": whole(draw, k, n)})
    ta, tb = (int(draw.integers(2)) for _ in range(2))
    a, b = whole(draw, *((k, m) if ta else (m, k))), whole(draw, *((n, k) if tb else (k, n)))
    c = whole(draw, *pick(draw, (n,), (1,), (m, n), (m, 1)))
    factors = {"alpha": pick(draw, 1.0, 0.5, -2.0), "beta": pick(draw, 1.0, 0.0, 3.0)}
    return Case("Gemm", {"a": a, "b": b, "c": c}, {"transA": ta, "transB": tb, **factors})


def binary(draw: Draw) -> Case:
    operator = pick(
        draw, "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod", "Equal", "Less", "GreaterOrEqual", "PRelu"
    )
    dtype = "float32" if operator in ("Pow", "PRelu") else pick(draw, "float32", "int32", "int64")
    shape = extents(draw, 3, 4)
    other = [d if draw.random() < 0.6 else 1 for d in shape]
    a, b = whole(draw, *shape, most=9, dtype=dtype), whole(draw, *other, most=5, dtype=dtype)
    if operator in ("Div", "Mod"):
        b[b == 0] = 3
    if operator == "Pow":
        a, b = np.abs(a) + np.float32(1), b / np.float32(2)
    mod = {"fmod": int(dtype == "float32" or draw.random() < 0.5)} if operator == "Mod" else {}
    return Case(operator, {"a": a, "b": b.astype(dtype)}, mod)


def unary(draw: Draw) -> Case:
    operator, attributes = pick(
        draw, ("Relu", {}), ("LeakyRelu", {"alpha": 0.25}), ("Elu", {"alpha": 2.0}), ("Selu", {}), ("Sigmoid", {}),
        ("HardSigmoid", {"alpha": 0.25}), ("Softplus", {}), ("Softsign", {}), ("Tanh", {}), ("Exp", {}), ("Erf", {}),
        ("Floor", {}), ("Ceil", {}), ("Round", {}), ("Sign", {}), ("Neg", {}), ("Abs", {}), ("Reciprocal", {}),
        ("HardSwish", {}), ("Celu", {"alpha": 0.5}), ("ThresholdedRelu", {"alpha": 0.5}), ("Mish", {}),
    )  # fmt: skip
    x = whole(draw, *extents(draw, 3), most=12) / np.float32(2)
    x = np.where(x == 0, np.float32(1), x) if operator == "Reciprocal" else x
    return Case(operator, {"x": x}, attributes, opset=18)


def movement(draw: Draw) -> Case:
    shape = extents(draw, 3)
    x = whole(draw, *shape)
    match pick(draw, "Transpose", "Concat", "Split", "Tile", "Expand", "Gather", "DepthToSpace", "SpaceToDepth"):
        case "Transpose":
            return Case("Transpose", {"x": x}, {"perm": draw.permutation(3).tolist()})
        case "Concat":
            axis = int(draw.integers(-3, 3))
            other = [d + 1 if i == axis % 3 else d for i, d in enumerate(shape)]
            return Case("Concat", {"x": x, "z": whole(draw, *other)}, {"axis": axis})
        case "Split":
            axis = int(draw.integers(3))
            cut = int(draw.integers(0, shape[axis] + 1))
            sizes = np.array([cut, shape[axis] - cut], np.int64)
            return Case("Split", {"x": x, "sizes": sizes}, {"axis": axis}, ("sizes",), outputs=2)
        case "Tile":
            return Case("Tile", {"x": x, "times": np.array(extents(draw, 3, 3), np.int64)}, constant=("times",))
        case "Expand":
            wanted = np.array([2, *[pick(draw, 1, d) for d in shape]], np.int64)
            return Case("Expand", {"x": x, "shape": wanted}, constant=("shape",))
        case "Gather":
            axis = int(draw.integers(-3, 3))
            extent = shape[axis]
            places = draw.integers(-extent, extent, extents(draw, pick(draw, 1, 2), 3)).astype(np.int64)
            return Case("Gather", {"x": x, "i": places}, {"axis": axis})
        case "DepthToSpace":
            return Case(
                "DepthToSpace", {"x": whole(draw, 1, 8, 2, 3)}, {"blocksize": 2, "mode": pick(draw, "DCR", "CRD")}
            )
    return Case("SpaceToDepth", {"x": whole(draw, 1, 2, 4, 6)}, {"blocksize": 2})


def indices(draw: Draw) -> Case:
    x = whole(draw, *extents(draw, 3, 4))
    match pick(draw, "ArgMax", "ArgMin", "CumSum", "TopK", "OneHot"):
        case "CumSum":
            axis = np.asarray(draw.integers(-3, 3), np.int64)
            ways = {name: int(draw.integers(2)) for name in ("exclusive", "reverse")}
            return Case("CumSum", {"x": x, "axis": axis}, ways, ("axis",))
        case "TopK":
            axis = int(draw.integers(-3, 3))
            x = draw.permutation(x.size).reshape(x.shape).astype(np.float32)  # no two are equal
            count = np.array([draw.integers(1, x.shape[axis] + 1)], np.int64)
            return Case("TopK", {"x": x, "k": count}, {"axis": axis, "largest": int(draw.integers(2))}, ("k",), 2)
        case "OneHot":
            depth, values = np.asarray(5, np.int64), np.array([0, 1], np.float32)
            places = draw.integers(-5, 5, extents(draw, 2, 3)).astype(np.int64)
            inputs = {"i": places, "depth": depth, "values": values}
            return Case("OneHot", inputs, {"axis": int(draw.integers(-3, 3))}, ("depth",))
        case name:
            attributes = {"axis": int(draw.integers(-3, 3)), "keepdims": int(draw.integers(2))}
            return Case(name, {"x": x}, attributes | {"select_last_index": int(draw.integers(2))})


def recurrent(draw: Draw) -> Case:
    operator, gates = pick(draw, ("LSTM", 4), ("GRU", 3), ("RNN", 1))
    steps, batch, inputs, hidden = extents(draw, 4, 3)
    direction = pick(draw, "forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    given = {
        "x": whole(draw, steps, batch, inputs) / np.float32(4),
        "w": whole(draw, count, gates * hidden, inputs) / np.float32(4),
        "r": whole(draw, count, gates * hidden, hidden) / np.float32(4),
    }
    if draw.random() < 0.5:
        given["b"] = whole(draw, count, 2 * gates * hidden) / np.float32(4)
    attributes = {"hidden_size": hidden, "direction": direction}
    if operator == "GRU":
        attributes["linear_before_reset"] = int(draw.integers(2))
    if draw.random() < 0.2:
        attributes["clip"] = 0.25
    return Case(operator, given, attributes, outputs=2)


def quantised(draw: Draw) -> Case:
    match pick(draw, "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"):
        case "QuantizeLinear":
            zero = np.asarray(draw.integers(0, 9), pick(draw, "uint8", "int8"))
            inputs = {"x": whole(draw, 3, 4, most=99) / np.float32(2), "s": np.float32(0.5), "z": zero}
            return Case("QuantizeLinear", {k: np.asarray(v) for k, v in inputs.items()})
        case "DequantizeLinear":
            x = draw.integers(0, 100, (3, 4)).astype("uint8")
            return Case("DequantizeLinear", {"x": x, "s": np.asarray(np.float32(0.25)), "z": np.asarray(3, "uint8")})
    return Case("DynamicQuantizeLinear", {"x": whole(draw, 2, 5, most=pick(draw, 0, 9))}, outputs=3)


FAMILIES: tuple[Callable[[Draw], Case], ...] = (
    convolution, transposed_convolution, pooling, pooling, global_pooling, slicing, slicing, padding, resizing,
    resizing, reduction, normalised, layer_normalisation, local_normalisation, product, binary, binary, unary,
    movement, indices, recurrent, quantised,
)  # fmt: skip


def random_case(seed: int, number: int) -> Case:
    """The case of this number; the same for the same seed."""
    draw = np.random.default_rng([seed, number])
    return pick(draw, *FAMILIES)(draw)
