"""Bounds of networks on runs, beside measured errors: how many times the largest error the largest bound is.

Each input is run on the simulators, and its bound composed from those of the operators
(docs/explanation/codegen.md).  *Error* is the largest distance of an output from the reference in float64, *bound* the
largest bound of any input, and *factor* is how many times the error that is.  *Happened* takes in the place of
operators' bounds the magnitudes of the errors that elements really had, with the worst signs: a bound above it is due
to operators' bounds, one below it to signs that are known.  *In ranges* is the bound for all inputs that keep to the
calibrated ranges times the headroom (none where an accelerator states none), and *found* the largest error that a
search by evolution finds among these, where one was made (``--search``).  *Free* is the error of an adversary that
chooses roundings and slopes of relu (``benchmarks/adversary.py``; none where a layer has more than 1,024 elements): no
bound is below it that knows no more of them than their limits.  *Values* is the largest output.

Digits are images held out, in their order; inputs of ResNet-20, whose weights are random, are drawn, and so are the 16
that its formats are chosen by.  Seconds are CPU seconds of an input on a busy machine: for running it, and for
composing its bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.adversary import largest_error
from benchmarks.digits import TOGETHER, prove
from benchmarks.record import page, recorded, write
from examples.digits import as_input, load
from examples.digits.train import FILE
from examples.models.applications import APPLICATIONS
from ilaverify.catalogue import all_entries
from ilaverify.models.compilation import Request, compile_model
from rewrites.compiler.artefact.model import Compiled
from rewrites.compiler.artefact.running import run_compiled, run_samples
from rewrites.compiler.codegen import Devices, Options
from rewrites.compiler.composition.of_ranges import in_ranges, outside, ranges_of
from rewrites.compiler.composition.of_runs import Composed, RunBound

CALIBRATION = 16
"""Inputs that formats of ResNet-20 are chosen by."""
_KEPT = 16
"""Inputs from which a search goes on."""


@dataclass(frozen=True)
class Row:
    """A network, how it is compiled, and how many inputs are run."""

    label: str
    network: str
    targets: tuple[str, ...]
    inputs: int
    options: Options = field(default_factory=Options)


_WIDE = Options(chosen={"weight_bits": 16})
ROWS: Mapping[str, Row] = {
    "digits-hlscnn": Row("digits, HLSCNN (weights of 8 bits) and FlexASR", "digits", ("hlscnn", "flexasr"), 450),
    "digits-hlscnn-16": Row("digits, HLSCNN (16 bits) and FlexASR", "digits", ("hlscnn", "flexasr"), 450, _WIDE),
    "digits-flexasr": Row("digits, FlexASR", "digits", ("flexasr",), 450),
    "digits-vta": Row("digits, VTA", "digits", ("vta",), 450),
    "resnet20-hlscnn": Row("ResNet-20, HLSCNN (8 bits) and FlexASR", "resnet20", ("hlscnn", "flexasr"), 64),
    "resnet20-hlscnn-16": Row("ResNet-20, HLSCNN (16 bits) and FlexASR", "resnet20", ("hlscnn", "flexasr"), 16, _WIDE),
    "resnet20-vta": Row("ResNet-20, VTA", "resnet20", ("vta",), 16),
}
"""Rows by name, in the order of the table."""


def compiled_for(row: Row, proofs: Path, place: Path) -> tuple[Compiled, NDArray[np.float32]]:
    """The compiled network and the inputs that are run."""
    if row.network == "digits":
        digits = load()
        calibration = {"image": as_input(digits.calibration_images)[:, None]}
        request = Request(FILE, row.targets, proofs, {"batch": 1}, calibration, options=row.options)
        return compile_model(request, all_entries()), as_input(digits.test_images)[: row.inputs, None]
    model = place / "resnet20.onnx"
    onnx.save(APPLICATIONS["resnet20"].build(0), model)
    drawn = np.random.default_rng(1).normal(size=(CALIBRATION + row.inputs, 1, 3, 32, 32)).astype(np.float32)
    request = Request(model, row.targets, proofs, {}, {"image": drawn[:CALIBRATION]}, options=row.options)
    return compile_model(request, all_entries()), drawn[CALIBRATION:]


def composed(
    compiled: Compiled, image: NDArray[np.float32], devices: Devices
) -> tuple[Composed, Composed, list[float]]:
    """The bound on an input, what really happened in its place, and seconds of the run and of the bound."""
    bound = RunBound(compiled.graph, compiled.implementations)
    start = time.process_time()
    run = list(run_compiled(compiled.graph, compiled.implementations, {"image": image}, devices))
    running = time.process_time() - start
    for ran in run:
        own = None if ran.executed is None else compiled.implementations[ran.number].bounds(ran.executed)
        bound.take(ran.number, ran.value, ran.executed, own)
    (found,) = bound.composed()
    composing = time.process_time() - start - running
    if found.bound is None:
        raise SystemExit(f"there is no bound: {found.reason}")
    for number in compiled.implementations:
        step = bound.steps[number]
        step.own, step.centre = np.abs(bound.values[number] - step.exact), None
    return found, bound.composed()[0], [running, composing]


def searched(compiled: Compiled, images: NDArray[np.float32], runs: int) -> float:
    """The largest error of the images and of so many other runs, of those that leave no range.

    Evolution: of so many inputs the ``_KEPT`` with the largest errors are kept, crossed and changed, by a little or
    anywhere in the range.
    """
    draw, devices, output = np.random.default_rng(0), Devices(), next(iter(compiled.graph.outputs.values()))
    ranges = {i: ranges_of(compiled.calibrated[i], of) for i, of in compiled.implementations.items()}
    limit = float(np.abs(images).max()) * max(of.options.margin for of in compiled.implementations.values())

    def evaluated(batch: NDArray[np.float32], least: float) -> list[tuple[float, NDArray[np.float32]]]:
        """Errors against float32, of inputs that leave no range and have larger ones than the least."""
        ran = list(run_samples(compiled.graph, compiled.implementations, {"image": batch}, devices))
        *_, host = (r.value for r in run_samples(compiled.graph, {}, {"image": batch}, devices) if r.number == output)
        (value,) = (r.value for r in ran if r.number == output)
        errors = np.abs(value.astype(np.float64) - host).reshape(len(batch), -1).max(axis=1)
        executed = [(r.executed, r.number) for r in ran if r.executed is not None]
        return [
            (float(errors[k]), batch[k])
            for k in np.flatnonzero(errors > least)
            if not any(outside(compiled.implementations[i], e.sample(k), ranges[i]) for e, i in executed)
        ]

    def child() -> NDArray[np.float32]:
        one, other = (kept[draw.integers(len(kept))][1] for _ in range(2))
        one = np.where(draw.random(one.shape) < draw.choice([0.0, 0.5], p=[0.7, 0.3]), other, one)
        if draw.random() < 0.3:
            values = draw.choice([-limit, 0.0, limit], size=one.shape)
        else:
            values = one + draw.normal(size=one.shape) * draw.choice([0.006, 0.04, 0.2, 0.8, 2.0]) * limit
        changed = draw.random(one.shape) < draw.choice([0.015, 0.05, 0.15, 0.4])
        return np.clip(np.where(changed, values, one), -limit, limit).astype(np.float32)

    kept = list[tuple[float, NDArray[np.float32]]]()
    for first in range(0, len(images), TOGETHER):
        kept += evaluated(images[first : first + TOGETHER], 0.0)
    for done in range(0, runs, TOGETHER):
        kept = sorted(kept, key=lambda entry: -entry[0])[:_KEPT]
        if not kept:
            return 0.0
        kept += evaluated(np.stack([child() for _ in range(min(TOGETHER, runs - done))]), kept[-1][0])
    worst = max(kept, key=lambda entry: entry[0])[1]
    return composed(compiled, worst, devices)[0].error or 0.0


def measure(name: str, proofs: Path, runs: int = 0) -> dict[str, Any]:
    """A row of the table; ``runs`` are those of a search, if there is one."""
    row, devices = ROWS[name], Devices()
    with tempfile.TemporaryDirectory() as place:
        compiled, images = compiled_for(row, proofs, Path(place))
    if not compiled.implementations:
        reasons = dict.fromkeys(host.reason for host in compiled.host)
        raise SystemExit(f"{name}: no operator runs on an accelerator: {'; '.join(reasons)}")
    found = [composed(compiled, image, devices) for image in images]
    errors, bounds, happened = (
        np.array(each, np.float64)
        for each in (
            [bound.error for bound, *_ in found],
            [bound.bound for bound, *_ in found],
            [actual.bound for _, actual, _ in found],
        )
    )
    (always,) = in_ranges(compiled.graph, compiled.implementations, compiled.calibrated)
    largest, free = searched(compiled, images, runs) if runs else None, largest_error(compiled)
    if always.bound is not None and max(largest or 0.0, free or 0.0) > always.bound:
        raise SystemExit(f"{name}: errors of {largest} and {free} are beyond the bound in ranges, {always.bound}")
    output = next(iter(compiled.graph.outputs.values()))
    values = [list(run_compiled(compiled.graph, {}, {"image": image}, devices))[output].value for image in images]
    running, composing = np.mean([seconds for *_, seconds in found], axis=0)
    return {
        "row": name,
        "inputs": len(images),
        "nodes": len(compiled.implementations),
        "error": float(f"{errors.max():.3g}"),
        "bound": float(f"{bounds.max():.3g}"),
        "factor": float(f"{bounds.max() / errors.max():.3g}"),
        "happened": float(f"{happened.max():.3g}"),
        "happened_factor": float(f"{happened.max() / errors.max():.3g}"),
        "median_factor_of_an_input": float(f"{np.median(bounds / errors):.3g}"),
        "inside": all(bound.inside for bound, *_ in found),
        "in_ranges": None if always.bound is None else float(f"{always.bound:.3g}"),
        "found": None if largest is None else float(f"{largest:.3g}"),
        "free": None if free is None else float(f"{free:.3g}"),
        "declared": sorted({name for bound, *_ in found for name in bound.declared}),
        "largest_output": float(f"{max(float(np.abs(v).max()) for v in values):.3g}"),
        "run_s": float(f"{running:.2g}"),
        "compose_s": float(f"{composing:.2g}"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures rows, and writes JSON and Markdown to ``benchmarks/results``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--proofs", type=Path, metavar="DIR", help="certificates, as ilaverify prove -o writes them")
    parser.add_argument("--row", action="append", choices=ROWS, help="measure this row, keep the others; default: all")
    parser.add_argument("--search", type=int, default=0, metavar="RUNS", help="search for the largest error, so long")
    options = parser.parse_args(arguments)
    rows = {row["row"]: row for row in recorded("bounds")["rows"]}
    with tempfile.TemporaryDirectory() as temporary:
        proofs = options.proofs
        if proofs is None:
            proofs = Path(temporary)
            prove(proofs, ["hlscnn-flexasr", "vta"])
        for name in options.row or ROWS:
            rows[name] = measure(name, proofs, options.search)
            print(rows[name], flush=True)
            kept = [rows[name] for name in ROWS if name in rows]
            write(
                "bounds", {"rows": kept}, page("bounds", "Bounds of networks on runs", __doc__, table(kept)), ["onnx"]
            )
    return 0


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results as a table."""
    keys = ["inputs", "nodes", "error", "bound", "factor", "happened", "happened_factor", "in_ranges"]
    keys += ["found", "free", "largest_output", "run_s", "compose_s"]
    head = ["network", "inputs", "nodes", "error", "bound", "factor", "happened", "its factor", "in ranges"]
    head += ["found", "free", "values", "run, s", "bound, s"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    lines += [
        f"| {ROWS[r['row']].label} | {' | '.join('none' if r.get(key) is None else str(r[key]) for key in keys)} |"
        for r in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
