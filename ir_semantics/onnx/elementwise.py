"""Conversion of element-wise ONNX operators."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from .call import Call, converts
from .dtypes import dtype_of, name_of

_PLAIN = {
    **{n: n.lower() for n in ("Abs", "Exp", "Log", "Sqrt", "Floor", "Ceil", "Round", "Sign", "Neg", "Reciprocal")},
    **{n: n.lower() for n in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh")},
    **{n: n.lower() for n in ("Tanh", "Erf", "Relu", "Sigmoid", "Softplus", "Softsign", "Mish", "Not")},
    "BitwiseNot": "bit_not",
    "IsNaN": "is_nan",
    "HardSwish": "hard_swish",
    "Det": "determinant",
}

_BROADCAST = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or",
    "BitwiseXor": "bit_xor",
    "PRelu": "prelu",
    "Where": "where",
}

_BY_KIND = {"Div": ("int", "quotient", "div"), "Equal": ("bool", "same_truth", "equal")}
"""The operator for elements of one kind, and that for the others."""

_EXCHANGED = {"Greater": "less", "GreaterOrEqual": "less_equal"}

_FOLDED = {"Max": "maximum", "Min": "minimum", "Sum": "add", "Mean": "add"}

_WITH_FLOATS = {
    "Elu": ("elu", {"alpha": 1.0}),
    "Celu": ("celu", {"alpha": 1.0}),
    "Selu": ("selu", {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
    "ThresholdedRelu": ("thresholded_relu", {"alpha": 1.0}),
    "HardSigmoid": ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "Shrink": ("shrink", {"lambd": 0.5, "bias": 0.0}),
    "Swish": ("swish", {"alpha": 1.0}),
}


@converts(*_PLAIN)
def _plain(call: Call) -> int:
    return call.add(_PLAIN[call.operator], *call.all())


@converts(*_BROADCAST)
def _broadcast(call: Call) -> int:
    return call.apply(_BROADCAST[call.operator], *call.all())


@converts(*_BY_KIND)
def _by_kind(call: Call) -> int:
    kind, operator, other = _BY_KIND[call.operator]
    return call.apply(operator if call.kind() == kind else other, *call.all())


@converts(*_EXCHANGED)
def _exchanged(call: Call) -> int:
    return call.apply(_EXCHANGED[call.operator], call.operand(1), call.operand(0))


@converts(*_WITH_FLOATS)
def _with_floats(call: Call) -> int:
    operator, defaults = _WITH_FLOATS[call.operator]
    return call.add(operator, call.operand(0), **{n: call.real(n, d) for n, d in defaults.items()})


@converts("Mod")
def _mod(call: Call) -> int:
    cut = call.integer("fmod", 0)
    if not cut and call.kind() == "float":
        if call.opset < 28:
            raise call.fail("for floats the attribute fmod must be 1 before opset 28; set it")
        return call.apply("float_floor_remainder", call.operand(0), call.operand(1))
    return call.apply("remainder" if cut else "floor_remainder", call.operand(0), call.operand(1))


@converts("Pow")
def _pow(call: Call) -> int:
    x, y = call.operand(0), call.operand(1)
    exponent = call.b.value(y)
    if exponent is not None and not exponent.shape and exponent == 2 and call.kind(0) == "float":
        return call.add("mul", x, x)
    if call.dtype(0) == call.dtype(1):
        return call.apply("pow", x, y)
    if call.kind(1) == "int" and call.kind(0) == "float":
        return call.apply("pow", x, call.cast(y, call.dtype(0)))
    wide = "float64"
    return call.cast(call.apply("pow", call.cast(x, wide), call.cast(y, wide)), call.dtype(0))


@converts(*_FOLDED)
def _folded(call: Call) -> int:
    total = reduce(partial(call.apply, _FOLDED[call.operator]), call.all())
    return call.apply("div", total, call.literal(len(call.operands))) if call.operator == "Mean" else total


@converts("Clip")
def _clip(call: Call) -> int:
    x = call.operand(0)
    if call.opset < 11:
        low, high = (call.literal(call.real(n, 0.0)) if n in call.attributes else None for n in ("min", "max"))
    else:
        low, high = (call.operand(i) if call.has(i) else None for i in (1, 2))
    if low is not None and high is not None:
        return call.apply("clamp", x, low, high)
    if low is not None:
        return call.apply("maximum", x, low)
    return x if high is None else call.apply("minimum", x, high)


@converts("Gelu")
def _gelu(call: Call) -> int:
    approximate = call.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise call.fail(f"the attribute approximate must be none or tanh, not {approximate}")
    return call.add("gelu", call.operand(0), approximate=approximate)


@converts("IsInf")
def _is_inf(call: Call) -> int:
    negative, positive = bool(call.integer("detect_negative", 1)), bool(call.integer("detect_positive", 1))
    if not (negative or positive):
        return call.constant(np.zeros(call.shape(), bool))
    return call.add("is_inf", call.operand(0), negative=negative, positive=positive)


@converts("BitShift")
def _bit_shift(call: Call) -> int:
    direction = call.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise call.fail(f"the attribute direction must be LEFT or RIGHT, not {direction!r}")
    return call.apply(f"shift_{direction.lower()}", call.operand(0), call.operand(1))


@converts("Cast", note="among bool, int8 ... uint64, float16, float32, float64")
def _cast(call: Call) -> int:
    call.ignore("saturate", "round_mode")  # for 8-bit floats, which the IR does not have
    target = dtype_of(call.integer("to"))
    if target is None:
        dtype = name_of(call.integer("to"))
        raise call.fail(f"a cast must be to elements of a type that the IR has, not {dtype}; convert the model")
    return call.cast(call.operand(0), target)


@converts("CastLike", note="as Cast")
def _cast_like(call: Call) -> int:
    call.ignore("saturate", "round_mode")
    return call.cast(call.operand(0), call.dtype(1))


@converts("Identity")
def _identity(call: Call) -> int:
    return call.operand(0)


@converts("Dropout", note="inference only")
def _dropout(call: Call) -> list[int | None]:
    call.ignore("ratio", "seed")
    if call.has(2) and bool(call.static(2, "training_mode").any()):
        raise call.fail("a dropout must not be in training mode, which is random; export the model for inference")
    mask = call.constant(np.ones(call.shape(), bool)) if len(call.outputs) > 1 else None
    return [call.operand(0), mask]
