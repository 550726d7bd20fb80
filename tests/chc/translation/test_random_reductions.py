"""Random ways to add up a tensor of any size, judged by NumPy: equal ones are not refuted, others not proved."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ir_semantics.mlir import ir
from smt_encodings.claims import Status

from .reduction_programs import Program
from .verdicts import status

Step = tuple[Any, ...]
SIZES = (0, 1, 2, 3, 4)
COPY = '^bb0(%p: i32, %r: i32):\n"linalg.yield"(%p) : (i32) -> ()'
FIRST = '^bb0(%p: i32, %q: i32, %r: i32):\n"linalg.yield"(%p) : (i32) -> ()'


def steps_to_a_number(rank: int, draw: random.Random, *, may_be_wrong: bool) -> list[Step]:
    """Steps that leave a number: axes are reversed, exchanged, put together, summed; wrong ones start sums at 1, or
    read the first element of an axis everywhere."""
    steps: list[Step] = []
    while rank:
        kind = draw.choice(("reverse", "sum", "sum", *(("transpose", "collapse") if rank > 1 else ())))
        if may_be_wrong and draw.random() < 0.15:
            kind = "first"
        match kind:
            case "transpose":
                steps.append((kind, tuple(draw.sample(range(rank), rank))))
            case "collapse":
                rank -= 1
                steps.append((kind, draw.randrange(rank)))
            case "sum":
                steps.append((kind, draw.randrange(rank), int(may_be_wrong and draw.random() < 0.15)))
                rank -= 1
            case _:
                steps.append((kind, draw.randrange(rank)))
    return steps


def computed(a: np.ndarray, steps: Sequence[Step]) -> int:
    """What steps give, in words of 32 bits."""
    for kind, axis, *start in steps:
        match kind:
            case "reverse":
                a = np.flip(a, axis)
            case "transpose":
                a = np.transpose(a, axis)
            case "collapse":
                a = np.ascontiguousarray(a).reshape(
                    *a.shape[:axis], a.shape[axis] * a.shape[axis + 1], *a.shape[axis + 2 :]
                )
            case "sum":
                a = np.add(np.sum(a, axis=axis, dtype=np.uint32), np.uint32(start[0]), dtype=np.uint32)
            case "first" if a.shape[axis]:
                a = np.broadcast_to(np.take(a, [0], axis), a.shape)
    return int(a)


def program(shape: Sequence[int | str], steps: Sequence[Step]) -> ir.Operation:
    """The steps as a function."""
    p = Program("i32")
    x, sizes = p.argument(*shape), list(shape)
    for kind, axis, *start in steps:
        names = [f"d{k}" for k in range(len(sizes))]
        loops = f"({', '.join(names)})"
        known = [p.size(x, k) if n == "?" else int(n) for k, n in enumerate(sizes)]
        match kind:
            case "reverse":
                x = p.reverse(x, axis)
            case "transpose":
                maps = [f"{loops} -> {loops}", f"{loops} -> ({', '.join(names[k] for k in axis)})"]
                x = p.loops(maps, "p" * len(names), x, p.filled([known[k] for k in axis]), region=COPY)
                sizes = [sizes[k] for k in axis]
            case "collapse":
                groups = [*([k] for k in range(axis)), [axis, axis + 1], *([k] for k in range(axis + 2, len(sizes)))]
                two = sizes[axis : axis + 2]
                sizes[axis : axis + 2] = ["?" if "?" in two else int(two[0]) * int(two[1])]
                x = p.collapse(x, str(groups), *sizes)
            case "sum":
                rest = [k for k in range(len(sizes)) if k != axis]
                maps = [f"{loops} -> {loops}", f"{loops} -> ({', '.join(names[k] for k in rest)})"]
                kinds = "".join("r" if k == axis else "p" for k in range(len(sizes)))
                x = p.loops(maps, kinds, x, p.filled([known[k] for k in rest], str(start[0])))
                sizes = [sizes[k] for k in rest]
            case "first":
                place = ", ".join("0" if k == axis else n for k, n in enumerate(names))
                maps = [f"{loops} -> ({place})", *[f"{loops} -> {loops}"] * 2]
                x = p.loops(maps, "p" * len(names), x, x, p.filled(known), region=FIRST)
    return p.done(x)


def are_the_same(shape: Sequence[int | str], one: Sequence[Step], other: Sequence[Step]) -> bool:
    """Whether both ways give the same numbers, at many sizes."""
    draw = np.random.default_rng(0)
    for _ in range(80):
        real = [int(draw.choice(SIZES)) if n == "?" else int(n) for n in shape]
        a = draw.integers(0, 1 << 32, real, dtype=np.uint32)
        if computed(a, one) != computed(a, other):
            return False
    return True


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 12))])
def test_random_ways_to_add_up(seed: int) -> None:
    draw = random.Random(seed)
    proved = equal = 0
    for _ in range(8):
        shape = [draw.choice(("?", "?", 3, 5)) for _ in range(draw.choice((1, 2, 2, 3)))]
        ways = [steps_to_a_number(len(shape), draw, may_be_wrong=draw.random() < 0.4) for _ in range(2)]
        outcome = status(*(program(shape, way) for way in ways))
        if are_the_same(shape, *ways):
            equal += 1
            proved += outcome is Status.PROVED
            assert outcome in (Status.PROVED, Status.UNKNOWN), (shape, ways)
        else:
            assert outcome is Status.REFUTED, (shape, ways)
    assert proved >= 0.8 * equal > 0
