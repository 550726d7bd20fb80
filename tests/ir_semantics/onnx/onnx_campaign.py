"""Random ONNX models, run by us, by onnxruntime and by onnx's reference evaluator: each difference is of a known class.

``python -m tests.ir_semantics.onnx.onnx_campaign --models 10000`` prints a table.  Where we differ from one of the
others (or refuse what it runs), the difference must be in ``KNOWN`` with its reason, or it is reported as new.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from ir_semantics.graph import GraphError, run
from ir_semantics.onnx import import_model
from tests.ir_semantics.onnx.random_onnx import Case, random_case

Results = list[NDArray[Any]] | None
"""Outputs; None where there was an error."""

TOLERANCE = 2.0**-15
"""Of the largest magnitude: three implementations round sums of up to 400 binary32 terms, and the functions in them, in
orders of their own (400 * 2^-24 is 2^-15.4)."""


@dataclass(frozen=True)
class Class:
    """A known kind of difference: operators, from whom we differ, when, and why."""

    operators: tuple[str, ...]
    others: frozenset[str]
    reason: str
    when: Callable[[Case], bool] = lambda case: True

    def holds(self, case: Case, others: frozenset[str]) -> bool:
        return case.operator in self.operators and others <= self.others and self.when(case)


def _same_with_gaps(case: Case) -> bool:
    a = case.attributes
    gaps = any(d > 1 for d in a.get("dilations", [1]))
    far = any(s > k for s, k in zip(a["strides"], a["kernel_shape"], strict=True))
    return str(a.get("auto_pad", "")).startswith("SAME") and (gaps or far)


@dataclass(frozen=True)
class Axis:
    """How windows lie along one spatial axis with explicit pads or auto_pad VALID."""

    extent: int
    before: int
    after: int
    kernel: int
    reach: int
    """From the first to the last element of a window, dilations included."""
    stride: int

    def windows(self, ceil: bool) -> int:
        """The specification's number of windows, those that begin in the pad at the end included."""
        room = self.extent + self.before + self.after - self.reach
        return (-(-room // self.stride) if ceil else room // self.stride) + 1

    def behind(self, window: int) -> bool:
        """Whether a window begins behind the data and its first pad."""
        return window * self.stride >= self.extent + self.before


def _axes(case: Case) -> list[Axis]:
    a, extents = case.attributes, case.inputs["x"].shape[2:]
    rank = len(extents)
    pads = a.get("pads", [0] * 2 * rank)
    gaps = a.get("dilations", [1] * rank)
    return [
        Axis(extents[i], pads[i], pads[i + rank], kernel, (kernel - 1) * gaps[i] + 1, a["strides"][i])
        for i, kernel in enumerate(a["kernel_shape"])
    ]


def _window_behind(case: Case) -> bool:
    """Whether, by the formula for ceil_mode, the last window of an axis begins behind the data and its first pad."""
    if not case.attributes["ceil_mode"] or case.attributes.get("auto_pad", "VALID") != "VALID":
        return False
    return any(axis.behind(axis.windows(ceil=True) - 1) for axis in _axes(case))


def _pads_misread(case: Case) -> bool:
    """Whether CommonPool of onnx/reference/ops/_op_common_pool.py, which MaxPool takes for strides and dilations of 1,
    goes wrong: it takes four pads for both ends of one axis and then of the other, does not pad a single axis, and
    with ceil_mode adds pads to an extent that has them already.
    """
    a = case.attributes
    if {*a["strides"], *a.get("dilations", [1])} != {1} or not any(pads := a.get("pads", [])):
        return False
    return len(pads) == 2 or pads[1] != pads[2] or a["ceil_mode"] == 1


def _windows_moved(case: Case) -> bool:
    """Whether get_output_shape_explicit_padding of onnx/reference/ops/op_pool_common.py, which divides what ceil_mode
    adds between both ends of an axis, moves windows: where that is two elements or more.
    """
    if not case.attributes["ceil_mode"] or "auto_pad" in case.attributes:
        return False
    for axis in _axes(case):
        last = axis.windows(ceil=True) - 1
        last -= axis.behind(last)
        if last * axis.stride + axis.reach - (axis.extent + axis.before + axis.after) >= 2:
            return True
    return False


def _dilations_left_out(case: Case) -> bool:
    """Whether the number of windows with auto_pad VALID is another one without the dilations."""
    if case.attributes.get("auto_pad") != "VALID":
        return False
    return any(axis.windows(ceil=False) != (axis.extent - axis.kernel) // axis.stride + 1 for axis in _axes(case))


def _before_the_first(case: Case) -> bool:
    x, values = case.inputs["x"], [case.inputs[name].tolist() for name in ("axes", "starts", "steps")]
    return any(step < 0 and start < -x.shape[axis] for axis, start, step in zip(*values, strict=True))


def _fraction(case: Case) -> bool:
    return "scales" in case.inputs and case.attributes["coordinate_transformation_mode"] == "align_corners"


BOTH = frozenset({"onnxruntime", "reference"})
ORT, REFERENCE = frozenset({"onnxruntime"}), frozenset({"reference"})

KNOWN = (
    Class(("MaxPool", "GlobalMaxPool"), BOTH, "a maximum with NaN is NaN here; the specification is silent",
          lambda c: bool(np.isnan(c.inputs["x"]).any())),
    Class(("Conv", "MaxPool", "AveragePool"), BOTH,
          "auto_pad SAME with dilations or strides above the kernel: others fail or leave dilations out",
          _same_with_gaps),
    Class(("LSTM", "GRU", "RNN"), BOTH, "clip is of the activations' inputs; the reference has none, ORT another one",
          lambda c: "clip" in c.attributes),
    Class(("Resize",), ORT, "align_corners with a fractional scale: the specification leaves the divisor open",
          _fraction),
    Class(("Resize",), REFERENCE, "the reference takes -0.5 for the one element of pytorch_half_pixel",
          lambda c: c.attributes["coordinate_transformation_mode"] == "pytorch_half_pixel"),
    Class(("MaxPool", "AveragePool"), REFERENCE,
          "auto_pad SAME: the reference has not the ceil(extent / stride) windows of the specification",
          lambda c: str(c.attributes.get("auto_pad", "")).startswith("SAME")),
    Class(("MaxPool",), REFERENCE,
          "strides of 1: the reference takes pads in another order, and not at all on one axis", _pads_misread),
    Class(("AveragePool",), REFERENCE,
          "the reference adds half of what ceil_mode needs at the beginning, where all of it belongs to the end",
          _windows_moved),
    Class(("AveragePool",), REFERENCE,
          "auto_pad VALID: the reference's shape leaves dilations out (https://github.com/onnx/onnx/issues/4849, "
          "explained in https://github.com/onnx/onnx/pull/8174)", _dilations_left_out),
    Class(("AveragePool",), REFERENCE, "the reference takes NaN for a pad",
          lambda c: bool(np.isnan(c.inputs["x"]).any())),
    Class(("Slice",), REFERENCE, "the reference takes Python's slices, which differ for steps below 0",
          _before_the_first),
    Class(("Resize",), ORT, "onnxruntime computes positions in binary32, and takes the floor or ceiling of what is "
          "nearly whole", lambda c: c.attributes.get("nearest_mode") is not None),
    Class(("LRN",), REFERENCE, "the reference normalises as many channels as the batch has images, and no others",
          lambda c: c.inputs["x"].shape[0] < c.inputs["x"].shape[1]),
    Class(("MaxPool", "AveragePool"), REFERENCE, "ceil_mode with auto_pad VALID: the specification's formula, and the "
          "reference, have a window fewer than ONNX's shape inference, onnxruntime and we",
          lambda c: c.attributes["ceil_mode"] == 1 and c.attributes.get("auto_pad") == "VALID"),
    Class(("MaxPool", "AveragePool"), BOTH,
          "refused: ONNX's shape inference declares a window that begins behind the data, which nobody has",
          _window_behind),
    Class(("ReduceSum", "ReduceSumSquare", "ReduceProd", "ReduceL1"), REFERENCE,
          "the reference returns int64 for int32", lambda c: c.inputs["x"].dtype == np.int32),
    Class(("DynamicQuantizeLinear",), BOTH, "the scale of zeros is 0 here, 1 or 1/255 elsewhere",
          lambda c: not c.inputs["x"].any()),
    Class(("Mod",), ORT, "fmod of integers goes through floats", lambda c: c.attributes.get("fmod") == 1),
)  # fmt: skip


def ours(case: Case, model: onnx.ModelProto, by_definition: bool = False) -> Results:
    try:
        graph = import_model(model)
    except GraphError:
        return None
    found = run(graph, case.data(), by_definition=by_definition)
    return [found[output.name] for output in model.graph.output]


def by_onnxruntime(case: Case, model: onnx.ModelProto) -> Results:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(y) for y in session.run(None, case.data())]
    except Exception:  # the runtime's errors have no common class
        return None


def by_reference(case: Case, model: onnx.ModelProto) -> Results:
    try:
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, case.data())]
    except Exception:  # whatever the evaluator fails by
        return None


def same(one: Results, other: Results) -> bool:
    """Whether two answers are the same, up to TOLERANCE for floats."""
    if one is None or other is None or len(one) != len(other):
        return one is other
    return all(_same(a, b) for a, b in zip(one, other, strict=True))


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    numbers = np.abs(b[np.isfinite(b)])
    return bool(np.allclose(a, b, TOLERANCE, TOLERANCE * float(numbers.max(initial=0.0)), equal_nan=True))


def compared(seed: int, number: int) -> tuple[Case, str, bool]:
    """A case, how it came out in words, and whether that is known."""
    case = random_case(seed, number)
    try:
        model = case.model()
    except onnx.shape_inference.InferenceError:
        return case, "no model: ONNX's shape inference refuses it", True
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = ours(case, model)
        defined = ours(case, model, by_definition=True)
        others = {"onnxruntime": by_onnxruntime(case, model), "reference": by_reference(case, model)}
    if not same(found, defined):
        return case, "NEW: the definition and NumPy's functions differ", False
    ran = {name: results for name, results in others.items() if results is not None}
    if found is None and not ran:
        return case, "refused by all", True
    apart = frozenset(name for name, results in ran.items() if not same(found, results))
    if not apart:
        return case, f"agrees with {' and '.join(ran) or 'nobody: the others fail'}", True
    for known in KNOWN:
        if known.holds(case, apart):
            return case, f"known: {known.reason}", True
    what = "refused, unlike" if found is None else "differs from"
    return case, f"NEW: {case.operator} {what} {' and '.join(sorted(apart))}", False


def outcomes(seed: int, models: int) -> Iterator[tuple[int, Case, str, bool]]:
    for number in range(models):
        yield number, *compared(seed, number)


def main(arguments: list[str] | None = None) -> int:
    """Prints how many models came out in which way; 1 where a difference is of no known class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    examples: dict[str, tuple[int, Case]] = {}
    new = 0
    for number, case, words, known in outcomes(options.seed, options.models):
        counts[words] += 1
        examples.setdefault(words, (number, case))
        new += not known
    for words, count in counts.most_common():
        print(f"{count:>7}  {words}  (first: {examples[words][0]})")
    for words, (number, case) in examples.items():
        if words.startswith("NEW"):
            shapes = {name: f"{a.dtype}{list(a.shape)}" for name, a in case.inputs.items()}
            constants = {name: case.inputs[name].tolist() for name in case.constant}
            print(f"model {number}: {case.operator} {case.attributes} {shapes} {constants}")
    print(f"{options.models} models, seed {options.seed}: {new} of no known class")
    return int(new > 0)


if __name__ == "__main__":
    sys.exit(main())
