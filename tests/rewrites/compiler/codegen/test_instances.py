from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rewrites.compiler.codegen import instances


@pytest.mark.parametrize(
    ("shape", "parts", "told"),
    [
        ((), [()], ""),
        ((), [(), ()], "calls of op must compute every element of y once, not () 2 times"),
        ((4,), [((0, 4),)], ""),
        ((4,), [((0, -1),), ((3, 4),)], "a call of op must compute a part of y (4,), not ((0, -1),)"),
    ],
)
def test_every_element_is_computed_once(shape: tuple[int, ...], parts: list[Any], told: str) -> None:
    """Also the only one of a scalar; and no part is counted from the end."""
    calls = [SimpleNamespace(parts={"y": part}) for part in parts]
    node = SimpleNamespace(type=SimpleNamespace(shape=shape), operator="op")
    made: Any = SimpleNamespace(node=node, calls=calls, held_by=lambda number: None)
    assert instances._not_whole(made) == told
