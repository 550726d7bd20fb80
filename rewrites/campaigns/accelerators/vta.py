"""VTA's matrix product and elementwise operations: exact integer arithmetic, compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ir_semantics.reference import alu_int32, dense_int8, truncate_int8
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, compare, first_violation, in_range
from rewrites.campaigns.distributions import INTEGERS, draw_integers
from rewrites.mappings.vta.operations import dense, elementwise

from .device import run_vta

_ROWS = {"rows": range(1, 33), "columns": range(1, 65)}
_DISTRIBUTIONS = {name: f"integers: {meaning}" for name, meaning in INTEGERS.items()}


def _compare(result: NDArray[np.int8], ideal: NDArray[np.int8]) -> Outcome:
    violation = first_violation("bit-identical", result != ideal, lambda i: f"{result[i]}, not {ideal[i]}")
    got, expected = result.astype(np.float64), ideal.astype(np.float64)
    margin, _ = compare(got, expected, np.zeros_like(expected), Fraction(0))  # the violation is that of the bytes
    return Outcome(expected, got, None, violation, margin=margin)


def _int32(example: Example, name: str) -> NDArray[np.int32]:
    return in_range(name, example.arrays[name], -(2**31), 2**31 - 1).astype(np.int32)


def make_dense(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    """x [rows, inputs], w [outputs, inputs] of 8 bits, and a bias [outputs] of 32 bits."""
    p = parameters
    return {
        "x": draw_integers(generator, distribution, (p["rows"], p["inputs"]), -128, 127),
        "w": draw_integers(generator, distribution, (p["outputs"], p["inputs"]), -128, 127),
        "b": draw_integers(generator, distribution, (p["outputs"],), -(2**31), 2**31 - 1),
    }


def _run_dense(example: Example) -> Outcome:
    """The product, shifted, cut to 8 bits (or what is left of it: the low 8 bits, where ``cut`` is 0)."""
    x, w = (in_range(n, example.arrays[n], -128, 127).astype(np.int8) for n in "xw")
    b, shift, cut = _int32(example, "b"), example.parameters["shift"], bool(example.parameters["cut"])
    program = dense(x, w, b, shift=shift, saturate=cut)
    ideal = alu_int32("shr", dense_int8(x, w, b), shift)
    if cut:
        ideal = alu_int32("min", alu_int32("max", ideal, -128), 127)
    return _compare(run_vta(program), truncate_int8(ideal))


def _elementwise(
    name: str,
    summary: str,
    ideal: Callable[[NDArray[np.int32], NDArray[np.int32], Mapping[str, int]], NDArray[np.int32]],
    *,
    second: bool = False,
    parameters: Mapping[str, range] | None = None,
) -> Campaign:
    """A campaign of operations on accumulators of 32 bits; ``second`` gives them a second operand."""

    def make(sizes: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
        shape = (sizes["rows"], sizes["columns"])
        names = ("a", "b") if second else ("a",)
        return {n: draw_integers(generator, distribution, shape, -(2**31), 2**31 - 1) for n in names}

    def evaluate(example: Example) -> Outcome:
        a, b = _int32(example, "a"), _int32(example, "b") if second else None
        program = elementwise(name, a, b, imm=example.parameters.get("shift"))
        exact = ideal(a, a if b is None else b, example.parameters)
        return _compare(run_vta(program), truncate_int8(exact))

    return Campaign(
        name=f"vta_{name}",
        summary=summary,
        reference="the operation on 32-bit integers, then the low 8 bits",
        property="the bytes are those of the integer operation, bit for bit",
        parameters={**_ROWS, **(parameters or {})},
        distributions=_DISTRIBUTIONS,
        make=make,
        evaluate=evaluate,
    )


def _binary(operation: Literal["add", "min", "max"]) -> Campaign:
    def ideal(a: NDArray[np.int32], b: NDArray[np.int32], _: Any) -> NDArray[np.int32]:
        return alu_int32(operation, a, b)

    summary = f"VTA {operation} of two matrices of 32 bits, low 8 bits stored"
    return _elementwise(operation, summary, ideal, second=True)


CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        Campaign(
            name="vta_gemm",
            summary="VTA matrix product of 8-bit integers with a bias, shifted and cut",
            reference="x w^T + b in 32 bits with wrap-around, shifted right, cut to 8 bits",
            property="the bytes are those of the integer operation, bit for bit",
            parameters={
                "rows": range(1, 33),
                "inputs": range(1, 65),
                "outputs": range(1, 65),
                "shift": range(16),
                "cut": range(2),
            },
            distributions=_DISTRIBUTIONS,
            make=make_dense,
            evaluate=_run_dense,
        ),
        _binary("add"),
        _binary("min"),
        _binary("max"),
        _elementwise(
            "relu",
            "VTA rectifier on 32 bits, low 8 bits stored",
            lambda a, _, __: alu_int32("max", a, 0),
        ),
        _elementwise(
            "shift",
            "VTA arithmetic shift right of 32 bits by 0 .. 15, low 8 bits stored",
            lambda a, _, p: alu_int32("shr", a, p["shift"]),
            parameters={"shift": range(16)},
        ),
    )
}
