"""The adversary that chooses roundings and slopes of relu, against all choices there are."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.adversary import Errors


def largest_of_all(first: np.ndarray, second: np.ndarray, last: np.ndarray, limits: tuple[float, float]) -> float:
    """Over all corners: last D2 (second D1 first e + f), D of 0 and 1, and e and f at their limits with any signs."""
    most, size = 0.0, len(first)
    for d1, d2 in product(list(product([0.0, 1.0], repeat=size)), repeat=2):
        weights = (last * np.array(d2)) @ second
        inner = (weights * np.array(d1)) @ first
        most = max(most, float((np.abs(inner) * limits[0]).sum() + (np.abs(last * np.array(d2)) * limits[1]).sum()))
    return most


def test_the_adversary_reaches_the_largest_error_of_small_networks_and_never_more() -> None:
    draw, reached, limits = np.random.default_rng(0), list[float](), (1.0, 0.25)
    for _ in range(20):
        first, second, last = draw.normal(size=(3, 2)), draw.normal(size=(3, 3)), draw.normal(size=3)
        errors = Errors()
        e = errors.free(2, limits[0])
        d1 = errors.relu({e: first}, 3)
        f = errors.free(3, limits[1])
        d2 = errors.relu({d1: second, f: np.eye(3)}, 3)
        reached.append(errors.largest({d2: last[None]}) / largest_of_all(first, second, last, limits))
    assert max(reached) <= 1 + 1e-12
    assert np.median(reached) >= 1 - 1e-12
    assert min(reached) > 0.5
