"""TOSA's element-wise operators, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ir_semantics.elements.operators import apply, both, choose, either, equal, negation, same
from ir_semantics.elements.terms import Term, constant, integer_value, literal, number, truth
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.elementwise import Result, ScalarRule, applied, applied_requirement, require_everywhere
from ir_semantics.mlir.semantics.floats import note_rounding, some_function
from ir_semantics.mlir.semantics.integers import convert, division, less, selected, signed, unsigned
from ir_semantics.mlir.semantics.program import Call, MeaningOfValue, Operator
from ir_semantics.mlir.semantics.values import Element, Tensor, bits_of, number_of, zero
from ir_semantics.scalars.floats import largest
from ir_semantics.scalars.formats import BOOLEAN


def broadcast(call: Call, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors of one shape: sizes of 1, and dimensions that are missing in front, are repeated."""
    rank = max(len(x.shape) for x in tensors)
    padded = [[number(1)] * (rank - len(x.shape)) + list(x.shape) for x in tensors]
    shape = [_common(call, sizes) for sizes in zip(*padded, strict=True)]
    return [_spread(x, own, shape) for x, own in zip(tensors, padded, strict=True)]


def _common(call: Call, sizes: Sequence[Term]) -> Term:
    wide = [n for n in sizes if integer_value(n) != 1]
    if not wide:
        return number(1)
    size = wide[0]
    for n in wide[1:]:
        one = equal(n, number(1)) if call.scope.reading.dynamic_broadcast else truth(False)
        other = equal(size, number(1)) if call.scope.reading.dynamic_broadcast else truth(False)
        call.require(either(equal(size, n), one, other), "sizes must be equal, or 1")
        size = choose(other, n, size)
    return size


def _spread(tensor: Tensor, own: Sequence[Term], shape: Sequence[Term]) -> Tensor:
    missing = len(shape) - len(tensor.shape)

    def element(at: tuple[Term, ...]) -> Element:
        places = []
        for i, n, size in list(zip(at, own, shape, strict=True))[missing:]:
            # where sizes are equal, a subscript inside of one is inside of the other
            places.append(i if n is size else choose(equal(n, number(1)), number(0), i))
        return tensor.at(places)

    return Tensor(tensor.kind, tuple(shape), element)


def elementwise(rule: ScalarRule, operands: int | None = None) -> Operator:
    """A rule on scalars, at each place; only the first ``operands`` take part."""

    def meaning(call: Call) -> Sequence[MeaningOfValue]:
        tensors = broadcast(call, call.tensors()[:operands])
        shape = tensors[0].shape if tensors else ()
        call.shaped(shape)

        def element(at: tuple[Term, ...]) -> Element:
            return applied(call, rule, [x.at(at) for x in tensors], False)

        require_everywhere(call, shape, lambda at: applied_requirement(call, rule, [x.at(at) for x in tensors]))
        return [Tensor(call.result_format(), shape, element)]

    return meaning


def plain(op: str, *, rounded: bool = False) -> ScalarRule:
    """A scalar operator as it is."""

    def rule(call: Call, args: Sequence[Term]) -> Result:
        if rounded:
            note_rounding(call, op)
        return Result(apply(op, *args))

    return rule


def extreme(op: str) -> ScalarRule:
    """The larger or smaller one; of floats NaN where one is, if the mode says so."""

    def rule(call: Call, args: Sequence[Term]) -> Result:
        return Result(extreme_of(call, op, *args))

    return rule


def extreme_of(call: Call, op: str, a: Term, b: Term) -> Term:
    """As :func:`extreme`."""
    if a.kind.family != "float":
        ignores_nan(call)  # known, and of no effect on integers
        return apply(op, a, b)
    call.scope.notes["TOSA takes -0.0 for less than +0.0"] = None
    return apply({"maximum": "maxnum", "minimum": "minnum"}[op] if ignores_nan(call) else op, a, b)


def ignores_nan(call: Call) -> bool:
    """Whether a NaN is passed over."""
    match call.attribute("nan_mode"):
        case None | ir.OpaqueAttribute(text="tosa.nan_mode<PROPAGATE>") | ir.StringAttribute(value="PROPAGATE"):
            return False
        case ir.OpaqueAttribute(text="tosa.nan_mode<IGNORE>") | ir.StringAttribute(value="IGNORE"):
            return True
    raise call.wrong("the mode of NaN must be PROPAGATE or IGNORE")


def _negate(call: Call, args: Sequence[Term]) -> Result:
    require_no_zero_points(call, 1)
    (x,), negative = args, apply("neg", args[0])
    if x.kind.family == "float":
        return Result(negative)
    if len(call.operands) == 1:  # before TOSA 1.0
        call.scope.notes["tosa.negate of integers without zero points wraps"] = None
        return Result(negative)
    least = 1 << (bits_of(x.kind) - 1)
    return Result(choose(same(x, constant(-least, x.kind)), constant(least - 1, x.kind), negative))


def require_no_zero_points(call: Call, first: int) -> None:
    """Raises unless zero points, attributes or operands from ``first`` on, are 0."""
    if call.attribute("quantization_info") is not None:
        raise call.fail("zero points have no meaning here")
    for k in range(first, len(call.operands)):
        tensor = call.tensor(k)
        if literal(tensor.at([number(0)] * len(tensor.shape)).value) != 0:
            raise call.fail("zero points other than 0 have no meaning here")


def _multiply(call: Call, args: Sequence[Term]) -> Result:
    shift = call.attribute("shift")
    if shift is not None and not (isinstance(shift, ir.IntegerAttribute) and shift.value == 0):
        raise call.fail("a product that is shifted has no meaning here")
    if len(call.operands) == 3:
        require_no_zero_points(call, 2)
    kind = call.result_format()
    a, b = (convert(x, kind) if x.kind != kind and kind.family == "integer" else x for x in args)
    return Result(apply("mul", a, b))


def _clamp(call: Call, args: Sequence[Term]) -> Result:
    (x,) = args
    pairs = [[call.attribute(f"{end}_{kind}") for end in ("min", "max")] for kind in ("val", "fp", "int")]
    both_ends, of_floats, of_integers = pairs  # the last two from before TOSA 1.0, which has both
    old = of_floats if x.kind.family == "float" else of_integers
    ends = [_number(call, end, x) for end in (old if None in both_ends else both_ends)]
    return Result(extreme_of(call, "minimum", extreme_of(call, "maximum", x, ends[0]), ends[1]))


def _number(call: Call, value: ir.Attribute | None, x: Term) -> Term:
    match value:
        case ir.FloatAttribute(bits=bits, type=type_):
            return apply("cast", constant(number_of(bits, type_), call.format(type_)), target=x.kind)
        case ir.IntegerAttribute(value=n):
            width = bits_of(x.kind)
            return constant(max(-(1 << (width - 1)), min(n, (1 << (width - 1)) - 1)), x.kind)
    raise call.wrong("the ends must be numbers")


def _reciprocal(call: Call, args: Sequence[Term]) -> Result:
    return Result(apply("div", constant(Fraction(1), args[0].kind), args[0]))


def _sigmoid(call: Call, args: Sequence[Term]) -> Result:
    note_rounding(call, "exp")
    call.scope.notes["sigmoid is 1 / (1 + exp(-x)), rounded at each step"] = None
    one = constant(Fraction(1), args[0].kind)
    return Result(apply("div", one, apply("add", one, apply("exp", apply("neg", args[0])))))


def _some(name: str) -> ScalarRule:
    return lambda call, args: Result(some_function(call, name, args))


def _shift(op: str, is_signed: bool) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        rounds = call.attribute("round")
        if rounds is not None and not (isinstance(rounds, ir.IntegerAttribute) and rounds.value == 0):
            raise call.fail("a shift that rounds has no meaning here")
        if a.kind.family != "integer":
            raise call.fail(f"a shift of {a.kind} has no meaning here")
        amount = unsigned(b)
        fits = apply("lt", amount, constant(bits_of(a.kind), amount.kind))
        if op == "shift_left" or is_signed:
            return Result(apply(op, a, b), fits)
        return Result(signed(apply(op, unsigned(a), amount)), fits)

    return rule


def _logical(rule: Callable[..., Term]) -> ScalarRule:
    return lambda call, args: Result(rule(*args))


def _bitwise(op: str) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        if args[0].kind.family != "integer":
            raise call.fail(f"bits of {args[0].kind} have no meaning here")
        return Result(apply(op, *args))

    return rule


def _less(call: Call, a: Term, b: Term, or_equal: bool) -> Term:
    if a.kind.family == "float":
        return apply("le" if or_equal else "lt", a, b)
    return negation(less(b, a, True)) if or_equal else less(a, b, True)


def _equal(call: Call, args: Sequence[Term]) -> Result:
    a, b = args
    return Result(apply("eq", a, b) if a.kind.family == "float" else same(a, b))


def _select(call: Call) -> Sequence[MeaningOfValue]:
    condition, yes, no = broadcast(call, call.tensors())
    call.shaped(condition.shape)
    return [Tensor(yes.kind, condition.shape, lambda at: selected(condition.at(at), yes.at(at), no.at(at)))]


def _cast(call: Call, args: Sequence[Term]) -> Result:
    (x,), kind = args, call.result_format()
    if x.kind.family == "float" and kind.family == "integer":
        if Fraction(1 << (bits_of(kind) - 1)) > Fraction(largest(x.kind)):
            raise call.fail(f"a conversion of {x.kind} to {kind} has no meaning here")
        call.scope.notes["tosa.cast of NaN to an integer may give any integer"] = None
        return Result(apply("cast", apply("round", x), target=kind), negation(apply("is_nan", x)))
    if x.kind.family == "float" and kind == BOOLEAN:
        return Result(negation(apply("eq", x, zero(x.kind))))
    if x.kind.family == "integer" and kind == BOOLEAN:
        return Result(negation(same(x, zero(x.kind))))
    return Result(convert(x, kind, x.kind != BOOLEAN) if x.kind.family != "float" else apply("cast", x, target=kind))


PLAIN = ("add", "sub", "abs", "exp", "log", "pow", "ceil", "floor")
EXTREMES = ("maximum", "minimum")
"""Operators that are the operator on scalars of their name; extrema may pass over NaNs instead."""
_RULES: dict[str, ScalarRule] = {
    **{name: plain(name, rounded=name in ("exp", "log", "pow")) for name in PLAIN},
    **{name: extreme(name) for name in EXTREMES},
    "clamp": _clamp,
    "reciprocal": _reciprocal,
    "sigmoid": _sigmoid,
    **{name: _some(name) for name in ("tanh", "rsqrt", "erf", "sin", "cos")},
    "bitwise_and": _bitwise("bit_and"),
    "bitwise_or": _bitwise("bit_or"),
    "bitwise_xor": _bitwise("bit_xor"),
    "bitwise_not": _bitwise("bit_not"),
    "logical_and": _logical(both),
    "logical_or": _logical(either),
    "logical_xor": _logical(lambda a, b: negation(same(a, b))),
    "logical_not": _logical(negation),
    "logical_left_shift": _shift("shift_left", True),
    "logical_right_shift": _shift("shift_right", False),
    "arithmetic_right_shift": _shift("shift_right", True),
    "greater": lambda call, args: Result(_less(call, args[1], args[0], False)),
    "greater_equal": lambda call, args: Result(_less(call, args[1], args[0], True)),
    "equal": _equal,
    "intdiv": division("quotient", True),
    "int_div": division("quotient", True),
    "cast": _cast,
}

OPERATORS: Mapping[str, Operator] = {
    **{f"tosa.{name}": elementwise(rule) for name, rule in _RULES.items()},
    "tosa.negate": elementwise(_negate, 1),
    "tosa.mul": elementwise(_multiply, 2),
    "tosa.select": _select,
}
"""By name."""
