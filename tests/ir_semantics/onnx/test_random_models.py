"""Random ONNX models: where we differ from onnxruntime or the reference evaluator, the reason is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir_semantics.onnx import onnx_campaign
from tests.ir_semantics.onnx.onnx_campaign import by_reference, compared, ours, same
from tests.ir_semantics.onnx.random_onnx import FAMILIES, pooling, random_case

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
    monkeypatch.setattr(onnx_campaign, "by_onnxruntime", lambda case, model: [np.zeros(0)])
    reports = [compared(0, number) for number in range(8)]
    assert any(not known and words.startswith("NEW: ") for _, words, known in reports)


def test_the_reference_pools_otherwise_exactly_where_the_classes_say() -> None:
    why = (onnx_campaign._pads_misread, onnx_campaign._windows_moved, onnx_campaign._dilations_left_out)
    seen = {(predicate, answer): 0 for predicate in why for answer in (True, False)}
    for number in range(400):
        case = pooling(np.random.default_rng([9, number]))
        a, x = case.attributes, case.inputs["x"]
        if number % 4 == 0:
            a.pop("pads", None)
            a |= {"auto_pad": "VALID", "ceil_mode": 0, "dilations": [2] * len(a["strides"])}
        if np.isnan(x).any() or "SAME" in a.get("auto_pad", "") or (a["ceil_mode"] and "auto_pad" in a):
            continue  # other classes
        model = case.model()
        found, reference = ours(case, model), by_reference(case, model)
        if found is None or reference is None:
            continue
        said = [predicate for predicate in why if predicate(case)]
        said = [p for p in said if (p is onnx_campaign._pads_misread) == (case.operator == "MaxPool")]
        assert same(found, reference) == (not said), (number, case, said)
        for predicate in why:
            seen[predicate, predicate in said] += 1
    assert min(seen.values()) >= 2, seen


def test_every_family_is_drawn() -> None:
    drawn = {random_case(0, number).operator for number in range(400)}
    assert len(drawn) > 50 and len(FAMILIES) > 20
