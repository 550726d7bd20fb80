"""Conformance with the ONNX backend node tests, and the page that reports it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from docs.onnx_conformance import Outcome, cases, run_case
from docs.onnx_coverage import PAGE, page
from ir_semantics.onnx.call import CONVERTERS

SAMPLE = (
    "conv",
    "convtranspose",
    "gemm",
    "lstm",
    "gru",
    "groupnormalization",
    "quantizelinear",
    "slice",
    "pad",
    "topk",
    "less",
    "less_or_equal",
)


@pytest.mark.parametrize("module", SAMPLE)
def test_cases_of_some_operators_pass(module: str) -> None:
    outcomes = [run_case(case) for case in cases([module])]
    assert outcomes and any(o.status == "passed" for o in outcomes)
    assert [o for o in outcomes if o.status == "failed"] == []
    assert [o for o in outcomes if o.status == "unsupported" and "of a type that the IR has" not in o.reason] == []


@pytest.mark.slow
def test_all_cases_and_the_page() -> None:
    outcomes = [run_case(case) for case in cases()]
    assert [o for o in outcomes if o.status == "failed"] == []
    assert page(outcomes) == PAGE.read_text(encoding="utf-8"), "run: python -m docs.onnx_coverage"


def test_a_wrong_result_fails() -> None:
    (case,) = (c for c in cases(["relu"]) if c.name == "test_relu")
    assert run_case(case).status == "passed"
    (given, expected) = case.data_sets[0]
    wrong = expected[0].copy()
    wrong[0, 0, 0] += 0.01
    spoilt = type(case)(**{**case.__dict__, "data_sets": [(given, [wrong])]})
    assert run_case(spoilt).status == "failed"
    assert re.match(r"^by NumPy functions: y\[0, 0, 0\] must be np.float32\(", run_case(spoilt).reason)
    for other in (expected[0].astype(np.float64), expected[0][:1]):
        spoilt = type(case)(**{**case.__dict__, "data_sets": [(given, [other])]})
        assert run_case(spoilt).status == "failed"


def test_the_page_has_every_converter_and_enough_operators() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (converter|definition) \|", text, re.MULTILINE)
    assert len(rows) >= 110
    # GlobalLpPool has no node test, and those of Not are of opset 1; test_onnx_import has both
    assert set(CONVERTERS) - {name for name, _ in rows} == {"GlobalLpPool", "Not"}
    assert re.search(r"\*\*(\d+) operators\*\* have passing cases", text)[1] == str(len(rows))  # type: ignore[index]
    assert ", 0 fail. " in text


def test_the_page_of_few_outcomes() -> None:
    outcomes = [
        Outcome("test_a", ("Relu",), "passed", operators=("relu",)),
        Outcome("test_b", ("Relu",), "unsupported", "node number 0 (Relu): no | good"),
        Outcome("test_c", ("TopK",), "passed", bound=("k",), operators=("top_k",)),
        Outcome("test_d", ("Scan",), "unsupported", "node number 0 (Scan): not supported"),
        Outcome("test_e", ("Add", "Loop"), "unsupported", "node number 3 (Loop): not supported"),
    ]
    text = page(outcomes)
    assert "**2 operators** have passing cases, 1 of them on the host (TopK)." in text
    assert "| Relu | converter | relu | 1/2 |  |  |" in text
    assert "| TopK | converter | **top_k** | 1/1 | 1 |  |" in text
    assert "| Relu | test_b | no \\| good |" in text
    assert "| Scan | test_d | not supported |" in text
    assert "| test_e | Loop: not supported |" in text
