"""The operators of arith and math on floats.

Source: the MLIR documentation of the dialects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir_semantics.elements.operators import apply, both, either, negation
from ir_semantics.elements.terms import Term, function, truth
from ir_semantics.mlir import ir

from .elementwise import Result, ScalarRule, elementwise
from .program import Call, Operator


def require_exact_floats(call: Call) -> None:
    """Raises where flags permit other results than those of IEEE 754."""
    value = call.attribute("fastmath")
    if value is not None and not (isinstance(value, ir.OpaqueAttribute) and value.text == "arith.fastmath<none>"):
        raise call.fail(f"the flags {getattr(value, 'text', value)} have no meaning here")
    rounding = call.attribute("roundingmode")
    if rounding is not None and not (isinstance(rounding, ir.OpaqueAttribute) and "to_nearest_even" in rounding.text):
        raise call.fail("a rounding other than to the nearest even has no meaning here")


def _floating(op: str, *, correct: bool = True) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        require_exact_floats(call)
        if not correct:
            note_rounding(call, op)
        return Result(apply(op, *args))

    return rule


def note_rounding(call: Call, op: str) -> None:
    """Notes that a function is taken to be correctly rounded."""
    call.scope.notes[f"{op} is correctly rounded"] = None


def _number_extreme(op: str) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        require_exact_floats(call)
        call.scope.notes[f"{call.name} takes -0.0 for less than +0.0"] = None
        return Result(apply(op, *args))

    return rule


def _float_conversion(call: Call, args: Sequence[Term]) -> Result:
    require_exact_floats(call)
    return Result(apply("cast", args[0], target=call.result_format()))


def unordered(a: Term, b: Term) -> Term:
    """Whether one of two floats is NaN."""
    return either(apply("is_nan", a), apply("is_nan", b))


def _ordered(relation: str, a: Term, b: Term) -> Term:
    match relation:
        case "eq":
            return apply("eq", a, b)
        case "gt":
            return apply("lt", b, a)
        case "ge":
            return apply("le", b, a)
        case "lt":
            return apply("lt", a, b)
        case "le":
            return apply("le", a, b)
    return both(negation(unordered(a, b)), negation(apply("eq", a, b)))


_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


def _cmpf(call: Call, args: Sequence[Term]) -> Result:
    require_exact_floats(call)
    predicate = _PREDICATES[call.whole("predicate")]
    a, b = args
    match predicate:
        case "false" | "true":
            return Result(truth(predicate == "true"))
        case "ord" | "uno":
            return Result(unordered(a, b) if predicate == "uno" else negation(unordered(a, b)))
        case "une":
            return Result(negation(apply("eq", a, b)))
    ordered = _ordered(predicate[1:], a, b)
    return Result(ordered if predicate[0] == "o" else either(unordered(a, b), ordered))


def _unknown(call: Call, args: Sequence[Term]) -> Result:
    require_exact_floats(call)
    return Result(some_function(call, call.name.partition(".")[2], args))


def some_function(call: Call, name: str, args: Sequence[Term]) -> Term:
    """A function of which nothing is known, by its name in the dialect math."""
    call.scope.notes[f"{name} is some function, the same one on both sides"] = None
    return function(name, call.result_format(), *args)


SCALAR_OPERATORS: Mapping[str, str] = {
    "arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul", "arith.divf": "div", "arith.remf": "remainder",
    "arith.negf": "neg", "arith.maximumf": "maximum", "arith.minimumf": "minimum", "math.absf": "abs",
    "math.floor": "floor", "math.ceil": "ceil", "math.trunc": "trunc", "math.roundeven": "round", "math.sqrt": "sqrt",
    "math.fma": "fma", "math.exp": "exp", "math.log": "log", "math.powf": "pow",
}  # fmt: skip
"""Operators that are one operator on scalars, on floats of one format, by name."""
_ROUNDED = ("exp", "log", "pow")
_UNKNOWN = (
    "tanh", "sinh", "cosh", "asinh", "acosh", "atanh", "sin", "cos", "tan", "asin", "acos", "atan", "erf", "atan2",
    "cbrt", "copysign", "exp2", "expm1", "log10", "log1p", "log2", "round", "rsqrt", "erfc",
    "ctlz", "cttz", "ctpop", "ipowi", "fpowi",
)  # fmt: skip


_RULES: dict[str, ScalarRule] = {
    **{name: _floating(op, correct=op not in _ROUNDED) for name, op in SCALAR_OPERATORS.items()},
    "arith.maxnumf": _number_extreme("maxnum"),
    "arith.minnumf": _number_extreme("minnum"),
    "arith.extf": _float_conversion,
    "arith.truncf": _float_conversion,
    "arith.cmpf": _cmpf,
    **{f"math.{name}": _unknown for name in _UNKNOWN},
}

OPERATORS: Mapping[str, Operator] = {name: elementwise(rule) for name, rule in _RULES.items()}
"""By name."""
