"""The verb ``run``: a compiled model on the simulators, beside a reference and the proved bounds.

Exit codes: 0 no operator is beyond its bound, 1 one is, 2 an operator got numbers that were cut because calibration
did not foresee them, or an output, or an operator without a bound, is as far from the reference as that is large, 64
bad usage (a damaged directory included).

What is computed here are results, errors and bounds.  Certificates and the equality are what the directory says.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilaverify.errors import EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

from .arguments import count, require_writable, seed

if TYPE_CHECKING:
    from ilaverify.comparison import Comparison
    from ir_semantics.graph.types import Array
    from rewrites.compiler.artefact.model import Compiled
    from rewrites.compiler.codegen import Devices

RESULT_SCHEMA = "ilaverify-run-2"
"""Version of the JSON that a run prints."""

UNCHECKED = "as the directory says, not checked here"


MOST_BYTES = (1 << 31) - 1
"""Bytes of a file of arrays: as many as a model may have."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "run",
        help="run a compiled model on the simulators, and compare it with a reference and with proved bounds",
        description="Runs accelerator operators by their programs on simulators, and the others on the host.",
        epilog="exit codes: 0 no operator is beyond its proved bound, 1 one is, 2 inputs are beyond what calibration "
        "foresaw and numbers were cut, or an output, or an operator without a bound, is as far from the reference as "
        "that is large, 64 bad usage",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="as ilaverify compile writes it")
    parser.add_argument("--input", type=Path, metavar="X.npz", help="an array for each input, by name")
    parser.add_argument(
        "--random", type=seed, metavar="SEED", help="one random input in place of --input, from this seed"
    )
    parser.add_argument("--reference", default="host", choices=("host", "onnxruntime"), help="default: host")
    parser.add_argument(
        "--repeat", type=count, metavar="N", help="run N times more, for the time of a run when simulators are warm"
    )
    parser.add_argument("--output", type=Path, metavar="Y.npz", help="write the outputs")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_run)


def read_arrays(path: Path, what: str) -> dict[str, Array]:
    """The arrays in a file; raises UsageError where it is none."""
    from ila_lang.text.files import FileRefused, read_at_most
    from rewrites.compiler.artefact.arrays import arrays_of
    from rewrites.compiler.artefact.errors import ArtefactError

    try:
        return arrays_of(str(path), read_at_most(path, what, MOST_BYTES))
    except FileRefused as error:
        raise UsageError(str(error)) from error
    except ArtefactError as error:
        raise UsageError(f"{error}; write it with numpy.savez") from error


def _run(options: argparse.Namespace) -> int:
    from ilaverify.comparison import compare
    from ilaverify.loading import load_compiled
    from ilaverify.references import run_onnx
    from ir_semantics.graph.types import GraphError
    from rewrites.compiler.artefact.errors import ArtefactError
    from rewrites.compiler.codegen import Devices
    from rewrites.compiler.codegen.calibration import drawn_inputs

    if (options.input is None) == (options.random is None):
        raise UsageError("run must be given either --input X.npz or --random SEED")
    if options.output is not None:
        require_writable("--output", options.output)
    started = time.perf_counter()
    compiled = load_compiled(options.directory)
    loading = time.perf_counter() - started
    if options.input is not None:
        inputs = read_arrays(options.input, "inputs")
    else:
        (inputs,) = drawn_inputs(compiled.graph, options.random, 1)
    try:
        reference = None if options.reference == "host" else run_onnx(compiled.model.source.as_onnx(), inputs)
        devices = Devices()
        comparison = compare(
            compiled.graph, compiled.implementations, inputs, reference, devices, certified=compiled.proof.certificates
        )
        again = [_seconds(compiled, inputs, devices) for _ in range(options.repeat or 0)]
    except (ArtefactError, GraphError) as error:
        raise UsageError(str(error)) from error
    written = []
    if options.output is not None:
        from reports.certificate import write_atomically
        from rewrites.compiler.artefact.arrays import npz_bytes

        write_atomically(options.output, npz_bytes(comparison.results))
        written.append(str(options.output))
    if options.json:
        document = _json(compiled, comparison, options, loading, again)
        print(json.dumps({**document, "written": written}, indent=2, sort_keys=True))
    else:
        for line in _lines(compiled, comparison, options, loading, again):
            print(line)
        for path in written:
            print(f"written   {path}")
    if comparison.first_outside is not None:
        return EXIT_REFUTED
    return EXIT_UNPROVED if comparison.unrelated or comparison.wrapped or comparison.cut else EXIT_PROVED


def _seconds(compiled: Compiled, inputs: Mapping[str, Array], devices: Devices) -> float:
    """The time of another run, without a reference."""
    from rewrites.compiler.artefact.running import run_compiled

    return sum(ran.seconds for ran in run_compiled(compiled.graph, compiled.implementations, inputs, devices))


def _lines(
    compiled: Compiled, result: Comparison, options: argparse.Namespace, loading: float, again: Sequence[float]
) -> Iterator[str]:
    from ilaverify.comparison import lines_of
    from rewrites.compiler.artefact.origins import printable
    from rewrites.compiler.artefact.summary import CAVEATS, equality_text

    targets = ", ".join(compiled.targets)
    yield f"{printable(compiled.model.name)} on {targets}: {len(result.nodes)} operators on accelerators"
    yield ""
    yield from lines_of(result.nodes)
    yield ""
    yield f"outputs beside {options.reference}"
    for output in result.outputs:
        yield f"  {printable(output.name)}: {output.text}"
    yield f"time      {result.seconds:.2f} s, accelerators {result.device_seconds:.2f} s of it; loading {loading:.2f} s"
    if again:
        yield f"again     {min(again):.2f} s, the fastest of {len(again)} more runs"
    yield ""
    yield f"{UNCHECKED}; ilaverify check {printable(str(options.directory))} does"
    yield f"  equality  {equality_text(compiled.proof.equality)}"
    yield f"  rests on  {len(compiled.proof.certificates)} certificates, by digest"
    for name, c in compiled.proof.certificates.items():
        yield f"    {c.digest[:12]}  {name} ({c.kind}, {c.uses} uses)"
    yield "not claimed"
    yield from (f"  {text}" for text in CAVEATS)
    yield ""
    outside = result.first_outside
    if outside is not None:
        yield f"BEYOND ITS BOUND: node {outside.number} ({outside.operator}) is the first operator that leaves it"
    else:
        within = sum(n.inside is True and not n.cut for n in result.nodes)
        others = sum(n.inside is None for n in result.nodes)
        declared = sum(n.inside is not None and not n.theorem for n in result.nodes)
        yield (
            f"{within} of {len(result.nodes)} operators are within their bounds, computed here; that bounds are proved "
            "rests on the certificates above"
            + (f"; those of {declared} are declared, not proved" if declared else "")
            + (f"; for {others} there is none on these operands" if others else "")
        )
    if result.cut:
        yield (
            f"INPUTS BEYOND CALIBRATION: {len(result.cut)} of {len(result.nodes)} operators got numbers that were cut, "
            f"the first is node {result.cut[0].number}; bounds in the table are about what was left of them; compile "
            "with inputs like these (compile --calibrate)"
        )
    for node in result.wrapped:
        yield (
            f"FAR OFF WITHOUT A BOUND: node {node.number} ({node.operator}) is {node.own:.3g} off on what it got, "
            f"where values are up to {node.scale:.3g}, and no bound holds: {node.reason}; its sums have wrapped, as a "
            "rule; calibrate with inputs like these (compile --calibrate)"
        )
    for output in result.unrelated:
        yield (
            f"UNRELATED TO THE REFERENCE {options.reference}: output {printable(output.name)}: {output.text}; "
            "calibrate with real inputs (compile --calibrate), and check the directory with ilaverify check"
        )


def _json(
    compiled: Compiled, comparison: Comparison, options: argparse.Namespace, loading: float, again: Sequence[float]
) -> Mapping[str, Any]:
    outside = comparison.first_outside
    return {
        "schema": RESULT_SCHEMA,
        "model": compiled.model.name,
        "digest": compiled.digest,
        "targets": list(compiled.targets),
        "reference": options.reference,
        "operators": [n.as_json() for n in comparison.nodes],
        "outputs": [o.as_json() for o in comparison.outputs],
        "first_outside": None if outside is None else outside.number,
        "as_the_directory_says": {
            "note": UNCHECKED,
            "equality": compiled.proof.equality.value,
            "certificates": {name: c.digest for name, c in compiled.proof.certificates.items()},
        },
        "seconds": round(comparison.seconds, 4),
        "accelerator_seconds": round(comparison.device_seconds, 4),
        "loading_seconds": round(loading, 4),
        "again_seconds": [round(seconds, 4) for seconds in again],
    }
