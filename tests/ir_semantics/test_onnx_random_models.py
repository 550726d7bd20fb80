"""Random ONNX models: where we differ from onnxruntime or the reference evaluator, the reason is known."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_campaign import compared
from .random_onnx import FAMILIES, random_case

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(("seed", "models"), [(0, 150), pytest.param(0, 600, marks=pytest.mark.slow)])
def test_differences_are_of_known_classes(seed: int, models: int) -> None:
    agreed = 0
    for number in range(models):
        case, words, known = compared(seed, number)
        assert known, (number, case, words)
        agreed += words.startswith("agrees with onnxruntime")
    assert agreed > 0.9 * models  # the classes are exceptions


def test_an_unknown_difference_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from . import onnx_campaign

    monkeypatch.setattr(onnx_campaign, "by_onnxruntime", lambda case, model: [np.zeros(0)])
    reports = [compared(0, number) for number in range(8)]
    assert any(not known and words.startswith("NEW: ") for _, words, known in reports)


def test_every_family_is_drawn() -> None:
    drawn = {random_case(0, number).operator for number in range(400)}
    assert len(drawn) > 50 and len(FAMILIES) > 20
