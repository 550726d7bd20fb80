"""Terms on float64, for comparisons with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ir_semantics.scalars.formats import Literal
from ir_semantics.tensors.numbers import Undefined


class Floats:
    """float64, each operation rounded to nearest; for comparisons with NumPy, no claim rests on it."""

    def literal(self, value: Literal) -> float:
        """The nearest float."""
        return float(value)

    def integer(self, value: int) -> float:
        """The nearest float."""
        return float(value)

    def apply(self, op: str, args: Sequence[Any]) -> Any:
        """The operator on floats, by Python's own arithmetic; raises Undefined where Python does not define it."""
        if op == "select":
            return args[1] if args[0] else args[2]
        if op == "exp":
            return math.exp(args[0])
        simple: dict[str, Callable[..., Any]] = {
            "lt": lambda a, b: a < b,
            "le": lambda a, b: a <= b,
            "neg": lambda a: -a,
            "abs": abs,
        }
        simple |= {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}
        simple |= {"div": lambda a, b: a / b, "maximum": max, "minimum": min}
        if op not in simple:
            raise Undefined(f"{op} is not evaluated on floats here")
        return simple[op](*args)
