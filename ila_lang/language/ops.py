"""The operators' meaning on integers, written once.

A bit-vector is represented by the integer it denotes unsigned, a Boolean by a Python or NumPy bool.
Each entry is Python source with ``{0}``, ``{1}``, ... for the operands and ``{w}``, ``{m}``, ``{s}``
for the width of the first operand, its all-ones mask and its sign bit.  The same source folds constants,
runs scalar programs and (with :data:`VECTOR`, for the few operators that branch) runs on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .sorts import BvSort, Sort

SCALAR: dict[str, str] = {
    "not": "(not {0})",
    "and": "({0} and {1})",
    "or": "({0} or {1})",
    "xor": "({0} != {1})",
    "eq": "({0} == {1})",
    "ite": "({1} if {0} else {2})",
    "bvnot": "({0} ^ {m})",
    "bvneg": "(-{0} & {m})",
    "bvadd": "(({0} + {1}) & {m})",
    "bvsub": "(({0} - {1}) & {m})",
    "bvmul": "(({0} * {1}) & {m})",
    "bvudiv": "({0} // {1} if {1} else {m})",
    "bvurem": "({0} % {1} if {1} else {0})",
    "bvand": "({0} & {1})",
    "bvor": "({0} | {1})",
    "bvxor": "({0} ^ {1})",
    "bvshl": "((({0} << {1}) & {m}) if {1} < {w} else 0)",
    "bvlshr": "(({0} >> {1}) if {1} < {w} else 0)",
    "bvashr": "(((({0} ^ {s}) - {s}) >> min({1}, {w})) & {m})",
    "bvult": "({0} < {1})",
    "bvule": "({0} <= {1})",
    "bvslt": "(({0} ^ {s}) < ({1} ^ {s}))",
    "bvsle": "(({0} ^ {s}) <= ({1} ^ {s}))",
    "concat": "(({0} << {w1}) | {1})",
    "extract": "(({0} >> {p1}) & {pm})",
    "zext": "({0})",
    "sext": "((({0} ^ {s}) - {s}) & {rm})",
}

WIDEST = 62
"""The widest number in an array of int64 on which the operators of :data:`VECTOR` are right."""

VECTOR: dict[str, str] = SCALAR | {
    "not": "np.logical_not({0})",
    "and": "np.logical_and({0}, {1})",
    "or": "np.logical_or({0}, {1})",
    "ite": "np.where({0}, {1}, {2})",
    "bvudiv": "np.where(np.equal({1}, 0), {m}, {0} // np.maximum({1}, 1))",
    "bvurem": "np.where(np.equal({1}, 0), {0}, {0} % np.maximum({1}, 1))",
    "bvshl": "np.where(np.less({1}, {w}), ({0} << np.minimum({1}, {w})) & {m}, 0)",
    "bvlshr": "({0} >> np.minimum({1}, {w}))",
    "bvashr": "(((({0} ^ {s}) - {s}) >> np.minimum({1}, {w})) & {m})",
}


def template(
    table: dict[str, str],
    op: str,
    operands: Sequence[str],
    params: Sequence[int | str],
    widths: Sequence[int],
    result_width: int,
) -> str:
    """Python source of ``op`` applied to operand sources of the given widths (0 for a Boolean)."""
    width = widths[0] if widths else 0
    fields = {
        "w": str(width),
        "m": str((1 << width) - 1),
        "s": str(1 << (width - 1)) if width else "0",
        "w1": str(widths[1]) if len(widths) > 1 else "0",
        "rm": str((1 << result_width) - 1),
    }
    if op == "extract":
        hi, lo = int(params[0]), int(params[1])
        fields |= {"p1": str(lo), "pm": str((1 << (hi - lo + 1)) - 1)}
    return table[op].format(*operands, **fields)


@cache
def operator(
    vector: bool, op: str, params: tuple[int | str, ...], widths: tuple[int, ...], result: int
) -> Callable[..., Any]:
    """The operator as a function of operands of these widths (0 for a Boolean), on numbers or on arrays."""
    names = [f"a{i}" for i in range(len(widths))]
    source = template(VECTOR if vector else SCALAR, op, names, params, widths, result)
    function: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {source}", {"np": np})
    return function


def fold_constants(op: str, values: Sequence[int], params: tuple[int | str, ...], first: Sort, result: Sort) -> int:
    """Value of ``op`` on literal operands; ``first`` is the first operand's sort."""
    width = first.width if isinstance(first, BvSort) else 0
    result_width = result.width if isinstance(result, BvSort) else 0
    widths = [width] * len(values)
    if op == "concat":
        widths[1] = result_width - width
    return int(operator(False, op, params, tuple(widths), result_width)(*values))
