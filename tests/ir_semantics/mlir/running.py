"""MLIR functions on NumPy arrays, by the product's meaning of operators, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.terms import Input, new_terms, number
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.arguments import arguments_of
from ir_semantics.mlir.semantics.function import meaning_of
from ir_semantics.mlir.semantics.program import Reading
from ir_semantics.mlir.semantics.values import Element, Tensor

UNDEFINED = "undefined"
UB = "undefined behaviour"


def run(program: ir.Operation, *inputs: Any, reading: Reading | None = None) -> list[Any]:
    """Results as scalars and nested lists; UNDEFINED for poison, and one UB for undefined behaviour."""
    with new_terms():
        arguments = arguments_of(program, Reading(), {})
        symbols, arrays = {}, {}
        rest = {s.payload.name: s.payload for s in (*arguments.sizes, *arguments.scalars)}
        for name, value, given in zip(arguments.names, arguments.values, inputs, strict=True):
            if isinstance(value, Element):
                symbols[rest[name]] = given
                continue
            array = next(a for a in arguments.arrays if a.name == name)
            data = np.asarray(given)
            symbols |= {rest[f"{name}_dim{k}"]: n for k, n in enumerate(data.shape) if f"{name}_dim{k}" in rest}
            arrays[array] = data
        meaning = meaning_of(program, arguments, reading or Reading())

        def contents(array: Input, at: Sequence[int]) -> Any:
            data = arrays[array]
            return data[tuple(at)].item() if _inside(at, data.shape) else 0

        evaluation = Evaluation(symbols, contents, Budget(10_000_000))
        if not evaluation.truth(meaning.behaves):
            return [UB]
        return [_result(evaluation, r) for r in meaning.results]


def _inside(at: Sequence[int], shape: Sequence[int]) -> bool:
    return all(0 <= i < n for i, n in zip(at, shape, strict=True))


def _result(evaluation: Evaluation, result: Element | Tensor) -> Any:
    if isinstance(result, Element):
        return evaluation.value(result.value) if evaluation.truth(result.defined) else UNDEFINED
    shape = [evaluation.integer(n) for n in result.shape]
    values = np.empty(shape, dtype=object)
    for at in product(*map(range, shape)):
        values[at] = _result(evaluation, result.at([number(i) for i in at]))
    return values.tolist()


def same(a: Any, b: Any) -> bool:
    """Whether two nested lists are the same; NaN is NaN, and zeros have signs."""
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)


def agrees(program: ir.Operation, inputs: Sequence[Any], expected: Any) -> None:
    """Asserts that the one result of a program is the expected array, bit by bit."""
    (result,) = run(program, *inputs)
    wanted = expected.tolist() if isinstance(expected, np.ndarray) else expected
    assert same(result, wanted), (result, wanted)
