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
from ila_lang import Expr, Function, Ila, Kernel, const, mem, run_on_arrays, var
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
    """On all arguments where there are at most 2^16 of them, else on many: as NumPy's and as native code."""
    function = PRIMITIVES[name]
    widths = [p.width for p in function.params]
    grids = arguments_of(name, widths)
    scalar, vector = compile_function(function), compile_function(function, vector=True)
    expected = np.array([scalar(*arguments) for arguments in zip(*grids.tolist(), strict=True)])
    assert (np.broadcast_to(vector(*grids), expected.shape) == expected).all()
    size = len(expected)
    bits = (size - 1).bit_length()
    kernel = Kernel("every")
    with kernel.loop("i", const(size, bits + 1)) as i:
        given = [kernel.load(f"x{n}", var(f"m{n}", mem(bits, w)), i[bits - 1 : 0]) for n, w in enumerate(widths)]
        kernel.store(var("out", mem(bits, function.result.width)), i[bits - 1 : 0], function(*given))  # type: ignore[union-attr]
    arrays = {f"m{n}": grid.copy() for n, grid in enumerate(grids)} | {"out": np.zeros(size, np.int64)}
    run_on_arrays(kernel, {}, arrays)
    assert (arrays["out"] == expected).all()
