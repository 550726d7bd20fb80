"""Terms on concrete values: exact rationals, integers, machine numbers and IEEE floats.

A counterexample counts only where this evaluation says that both sides differ.  Machine numbers are evaluated by the
expressions of :mod:`ir_semantics.scalars.machine`, floats by :mod:`ir_semantics.scalars.floats`, reals and integers by
the operators' exact functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from ila_lang import Function, compile_terms, inline

from .floats import decode, encode, float_value, largest, round_to
from .formats import BOOLEAN, INTEGERS, NUMBER, Format, Literal, Value
from .machine import MACHINE_FAMILIES, CodeOperators, MachineExpressions, from_code, to_code, width_of
from .operators import OPERATORS
from .terms import NotInterpreted, Scalar, interpret

_INTEGER_OPERATORS = frozenset({"quotient", "floor_quotient", "shift_left", "shift_right"})


def evaluate(
    term: Scalar,
    values: Mapping[str, Value],
    number: Format = NUMBER,
    codes: Mapping[Format, CodeOperators] | None = None,
) -> Value:
    """The value of a term where variables have the given values and NUMBER is the format ``number``.

    Raises KeyError for a variable without a value, ValueError for a value that its format does not have, and
    NotInterpreted for an operator that a format does not have.

    >>> from ir_semantics.scalars.formats import BINARY16, integer
    >>> from ir_semantics.scalars.terms import variable
    >>> x = variable("x")
    >>> evaluate(x * 2, {"x": 100}, integer(8))
    -56
    >>> evaluate(x * 3, {"x": 30000.0}, BINARY16)
    inf
    """
    return interpret([term], Concrete(values, codes or {}), number)[0]


def same_value(a: Value, b: Value) -> bool:
    """Whether two values of one format are the same: -0 and +0 differ, all NaNs are one."""
    if isinstance(a, float) and isinstance(b, float):
        return bool(float_value("same", NUMBER, [a, b]))
    return a == b


def show_value(value: Value) -> str:
    """A value for people: the shortest text that reads back as the same number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def values_of(kind: Format) -> list[Value]:
    """All values of a small format: Booleans, and words or floats of at most 16 bits (all NaNs as one)."""
    if kind == BOOLEAN:
        return [False, True]
    if kind.family == "float":
        width = sum(int(p) for p in kind.parameters)
        numbers = [decode(bits, kind) for bits in range(1 << _small(width, kind))]
        return [*[x for x in numbers if not math.isnan(x)], math.nan]
    return [from_code(code, kind) for code in range(1 << _small(width_of(kind), kind))]


def _small(width: int, kind: Format) -> int:
    if width > 16:
        raise ValueError(f"values must be enumerated for formats of at most 16 bits, not for {kind}; sample them")
    return width


@dataclass
class Concrete:
    """The domain of concrete values; ``values`` are the variables', ``codes`` the primitives of code formats."""

    values: Mapping[str, Value]
    codes: Mapping[Format, CodeOperators] = field(default_factory=dict)

    def variable(self, name: str, kind: Format) -> Value:
        """The given value, as the format has it."""
        return self.constant(_literal(self.values[name]), kind)

    def constant(self, value: Literal, kind: Format) -> Value:
        """A number as a value of the format; floats must have the number exactly."""
        if kind == BOOLEAN:
            return bool(value)
        if kind.family != "float" and isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"a number of the format {kind} must be finite, not {value}")
        match kind.family:
            case "float":
                return decode(encode(_exact_float(value, kind), kind), kind)
            case "real" | "int":
                exact = Fraction(value)
                if kind.family == "int" and exact.denominator != 1:
                    raise ValueError(f"an integer must be given, not {value}")
                return int(exact) if kind.family == "int" else exact
            case "integer" | "fixed" | "code":
                return from_code(to_code(value, kind), kind)
        raise NotInterpreted(f"terms over the format {kind} must be given a format of numbers to be evaluated")

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Value]) -> Value:
        """The operator's value."""
        if op == "select":
            return args[1] if args[0] else args[2]
        families = {kind.family, *(k.family for k in kinds)}
        if op == "cast" and kinds[0] == BOOLEAN:
            return self.constant(Fraction(int(args[0])), kind)
        if families <= MACHINE_FAMILIES:
            return self._machine(op, kind, kinds, args)
        if op == "cast":
            return self._cast(kind, kinds[0], args[0])
        if kinds[0].family == "float":
            try:
                return float_value(op, kinds[0], [float(a) for a in args])
            except KeyError:
                raise NotInterpreted(f"the format {kinds[0]} has no operator {op}") from None
        return _exactly(op, kind, kinds[0], args)

    def _machine(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Value]) -> Value:
        owner = next((k for k in (*kinds, kind) if k.family == "code"), kind)
        run = _compiled(op, kind, tuple(kinds), tuple(self.codes.get(owner, {}).items()))
        result = run(*(bool(a) if k == BOOLEAN else to_code(a, k) for a, k in zip(args, kinds, strict=True)))
        return bool(result) if kind == BOOLEAN else from_code(int(result), kind)

    def _cast(self, kind: Format, source: Format, value: Value) -> Value:
        """A conversion of which one side is a real, an integer without bound, or a float."""
        if "code" in (kind.family, source.family):
            raise NotInterpreted(f"{source} cannot be converted to {kind}")
        if kind.family == "float":
            if isinstance(value, float):
                if not math.isfinite(value) or value == 0:
                    return value
                return math.copysign(round_to(Fraction(value), kind), value)
            return round_to(Fraction(value), kind)
        if isinstance(value, float) and kind.family == "integer":
            return self._saturated(value, kind)
        if source == INTEGERS and kind.family == "integer" and kind.parameters[2] == "wrap":
            return from_code(int(value) & ((1 << width_of(kind)) - 1), kind)
        if isinstance(value, float) and not math.isfinite(value):
            raise NotInterpreted(f"{value} has no value in the format {kind}")
        exact = Fraction(value)
        if kind.family == "real":
            return exact
        if kind.family == "int":
            return math.trunc(exact) if source.family == "float" else math.floor(exact)
        raise NotInterpreted(f"{source} cannot be converted to {kind}")

    def _saturated(self, value: float, kind: Format) -> int:
        """A float cut toward zero, saturated to a machine integer; NaN is 0."""
        if math.isnan(value):
            return 0
        width, signed = width_of(kind), kind.parameters[1] == "signed"
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        return low if value <= low else high if value >= high else math.trunc(value)


def _literal(value: Value) -> Literal:
    return value if isinstance(value, float) else Fraction(value)


def _exact_float(value: Literal, kind: Format) -> float:
    """A literal as a Python float; raises ValueError where no float of the format is this number."""
    if isinstance(value, float):
        return value
    if abs(value) > Fraction(largest(kind)) or Fraction(float(value)) != value:
        raise ValueError(f"{value} is not representable in {kind}; choose one that it has, or round it")
    return float(value)


@cache
def _compiled(
    op: str, kind: Format, kinds: tuple[Format, ...], primitives: tuple[tuple[str, Function], ...]
) -> Callable[..., Any]:
    """A machine operator's expression as a Python function on codes."""
    domain = MachineExpressions({k: dict(primitives) for k in (*kinds, kind) if k.family == "code"})
    operands = [domain.variable(f"a{i}", k) for i, k in enumerate(kinds)]
    run = compile_terms(operands, [inline(domain.apply(op, kind, kinds, operands))])
    return lambda *codes: run(*codes)[0]


def _exactly(op: str, kind: Format, source: Format, args: Sequence[Value]) -> Value:
    """An operator on reals, integers or Booleans beside them."""
    exact = OPERATORS[op].exact
    whole = source.family == "int"
    if exact is None or (op in _INTEGER_OPERATORS) > whole or (op == "div" and whole) or op.startswith("shift"):
        raise NotInterpreted(f"{op} has no exact value over {source}")
    numbers = [Fraction(a) for a in args]
    if op in ("div", "quotient", "floor_quotient", "remainder") and numbers[1] == 0:
        if not whole:
            raise NotInterpreted("a real number divided by 0 has no value")
        return int(numbers[0]) if op == "remainder" else 0
    result = exact(*numbers)
    if isinstance(result, bool):
        return result
    return int(result) if kind.family == "int" else Fraction(result)
