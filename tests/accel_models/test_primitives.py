"""Every primitive of the three accelerators on arrays, against the scalar interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import MASTER
from accel_models.vta.model import vta
from accel_models.vta.options import PRESETS
from ila_lang import Expr, Function, Ila, const, var
from ila_lang.arrays.lowering import lower
from ila_lang.arrays.products import factors
from ila_lang.arrays.ranges import Form
from ila_lang.interpreter.compile import compile_function
from ila_lang.language.expr import postorder
from ila_lang.language.kernel import terms, walk


def primitives(ila: Ila) -> dict[str, Function]:
    """All functions with a body that the model uses, by name."""
    found: dict[str, Function] = {}

    def visit(roots: Iterable[Expr]) -> None:
        for node in postorder(roots):
            if node.func is not None and node.func.body is not None and node.func.name not in found:
                found[node.func.name] = node.func
                visit([node.func.body])

    for instruction in ila.instructions.values():
        visit(instruction.updates.values())
        if instruction.kernel is not None:
            visit(t for s in walk(instruction.kernel.body) for t in terms(s))
    return found


MODELS = [
    flexasr(), flexasr(FlexAsrOptions(saturation="pre2022", sigmoid="B")), hlscnn(), hlscnn(MASTER), vta(),
    *(vta(options) for name, options in PRESETS.items() if name != "hls"),
]  # fmt: skip
PRIMITIVES = {name: function for model in MODELS for name, function in primitives(model).items()}


def arguments_of(name: str, widths: list[int]) -> Any:
    """All arguments where there are at most 2^16 of them, else many, one row for each parameter."""
    if sum(widths) <= 16:
        return np.indices([1 << w for w in widths]).reshape(len(widths), -1)
    random = np.random.default_rng(len(name))
    return np.array([
        np.concatenate([
            random.integers(0, 1 << width, 3000),
            random.choice([0, 1, 2, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1], 3000),
            random.integers(0, 1 << width, 3000) >> random.integers(0, width, 3000),
        ])
        for width in widths
    ])  # fmt: skip


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_primitives_on_arrays(name: str) -> None:
    """On all arguments where there are at most 2^16 of them, else on many; and as factors where these exist."""
    function = PRIMITIVES[name]
    widths = [p.width for p in function.params]
    grids = arguments_of(name, widths)
    scalar, vector = compile_function(function), compile_function(function, vector=True)
    expected = np.array([scalar(*arguments) for arguments in zip(*grids.tolist(), strict=True)])
    assert (np.broadcast_to(vector(*grids), expected.shape) == expected).all()
    if len(widths) == 2:
        # the same on a grid, where each argument has an axis of its own
        some = [np.unique(grid)[-40:] for grid in grids]
        values = vector(some[0].reshape(-1, 1), some[1].reshape(1, -1))
        assert values.tolist() == [[scalar(a, b) for b in some[1].tolist()] for a in some[0].tolist()]
        found = factors(function)
        if found is not None:
            sign = 1 << function.body.width - 1  # type: ignore[union-attr]
            product = found[0][grids[0]] * found[1][grids[1]]
            assert (product == (expected ^ sign) - sign).all()


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_primitives_with_few_and_narrow_operations(name: str) -> None:
    """As recorded runs compute them: on words of a memory, on signed integers, and with parameters that are known."""
    function = PRIMITIVES[name]
    assert function.body is not None
    widths = [p.width for p in function.params]
    grids = arguments_of(name, widths)[:, ::7]
    scalar = compile_function(function)
    for known in (0, 1, 2):
        # the last parameters are often configuration
        grid = grids.copy()
        for row in grid[len(widths) - known :] if known else ():
            row[:] = row[len(name) % len(row)]
        expected = [scalar(*arguments) for arguments in zip(*grid.tolist(), strict=True)]
        arguments: list[Expr] = []
        forms: list[tuple[str, Form]] = []
        arrays = []
        for i, (width, row) in enumerate(zip(widths, grid, strict=True)):
            if i >= len(widths) - known:
                arguments.append(const(int(row[0]), width))
                continue
            arguments.append(var(f"a{i}", function.params[i].sort))
            sign, bits = 1 << width - 1, 32 if width <= 32 else 64
            raw = (i + known) % 2 == 0
            forms.append((f"a{i}", Form(64, 0, 2 * sign - 1, True) if raw else Form(bits, -sign, sign - 1)))
            arrays.append(row if raw else ((row ^ sign) - sign).astype(f"int{bits}"))
        if not arrays:
            continue
        for many in (False, True):
            lowered = lower(function(*arguments), tuple(forms), True, many)
            found = np.broadcast_to(lowered.function(*arrays), len(expected))
            assert found.tolist() == expected, (known, many)


def test_which_primitives_are_products() -> None:
    """Sums of these become matrix products; a number of AdaptivFloat is a product of its code's and its bias's."""
    found = {name for name, function in PRIMITIVES.items() if factors(function) is not None}
    assert found == {"adpfloat_mul", "adpfloat_to_fixed", "multiply"}
