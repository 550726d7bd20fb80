"""The verb ``run``: a compiled model on the simulators, beside a reference and the proved bounds.

Exit codes: 0 no operator or output is beyond its bound, 1 one is, 2 numbers that an operator got or computed were cut
because calibration did not foresee them, or an output, or an operator without a bound, is as far from the reference
as that is large, or samples have no result, 64 bad usage (a damaged directory included), 130 interrupted (what there
is is shown and written).

What is computed here are results, errors and bounds.  Certificates and the equality are what the directory says.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import command_line
from ilaverify.errors import EXIT_INTERRUPTED, EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

from .arguments import add_cluster, cluster_of, count, place, require_writable, seed, source
from .outcomes import print_json
from .progress import Line

if TYPE_CHECKING:
    from ilaverify.models.comparison import Comparison
    from ilaverify.models.nodes import NodeComparison
    from ilaverify.proving.cluster import Cluster
    from ilaverify.proving.dataset_runs import Work
    from rewrites.compiler.artefact.model import Compiled

RESULT_SCHEMA = "ilaverify-run-3"
"""Version of the JSON that a run prints."""

UNCHECKED = "as the directory says, not checked here"

IF_CHECKED = "proved, if ilaverify check accepts the model"
"""Of bounds: that calls are what is proved of them, check looks at."""

_PROGRESS_SECONDS = 30.0
"""Without a terminal, how often a line says how far a run is."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "run",
        help="run a compiled model on the simulators, and compare it with a reference and with proved bounds",
        description="Runs accelerator operators by their programs on simulators, and the others on the host, on one "
        "sample or on many.",
        epilog="exit codes: 0 no operator or output is beyond its bound, 1 one is, 2 inputs are beyond what "
        "calibration foresaw and numbers were cut, or an output, or an operator without a bound, is as far from the "
        "reference as that is large, or samples have no result, 64 bad usage, 130 interrupted (what there is is shown "
        "and written)",
    )
    parser.add_argument("directory", type=source, metavar="DIR", help="as ilaverify compile writes it")
    parser.add_argument(
        "--inputs",
        type=source,
        metavar="X.npz",
        help="an array for each input, by name, or X.npy for the only one; of one sample, or of samples along a first "
        "axis; labels may be in an array of that name",
    )
    parser.add_argument("--labels", type=source, metavar="Y.npy", help="the right answers of samples, as integers")
    parser.add_argument("--random", type=count, metavar="N", help="N random samples in place of --inputs")
    parser.add_argument("--seed", type=seed, metavar="S", help="of --random; default: 0")
    parser.add_argument("--reference", default="host", choices=("host", "onnxruntime"), help="default: host")
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, metavar="N", help="default: processors")
    add_cluster(parser)
    parser.add_argument("--output", type=place, metavar="Y.npz", help="write the outputs")
    parser.add_argument(
        "--commands",
        type=place,
        metavar="NEW",
        help="write what a driver sends for the first sample: a directory of columns by input of the device, "
        "NODE-CALL.npz for each program",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if (options.inputs is None) == (options.random is None):
        raise UsageError("run must be given either --inputs X.npz or --random N")
    if options.seed is not None and options.random is None:
        raise UsageError("--seed draws inputs; give --random N as well, or leave --seed out")
    if options.output is not None:
        require_writable("--output", options.output)
    if options.commands is not None:
        if options.commands.exists():
            raise UsageError(f"--commands {options.commands} must be a new directory, but it exists; name another")
        require_writable("--commands", options.commands)
    with cluster_of(options) as cluster:
        return _run_on(cluster, options)


def _run_on(cluster: Cluster | None, options: argparse.Namespace) -> int:
    from ilaverify.proving.dataset_runs import Source, load, parts, whole
    from ilaverify.proving.workers import MachinesError

    def named(path: Path) -> str:
        return str(path if cluster is None else path.absolute())

    inputs, labels = (path and named(path) for path in (options.inputs, options.labels))
    source = Source(named(options.directory), inputs, labels, options.random or 0, options.seed or 0, options.reference)
    started = time.perf_counter()
    work = load(source)
    loaded = time.perf_counter()
    if options.output is not None:
        _require_names("--output", work)
    line = Line(_PROGRESS_SECONDS)
    comparisons: dict[int, Comparison] = {}
    stopped: BaseException | None = None
    try:
        with closing(parts(work, options.jobs, cluster, results=options.output is not None)) as run:
            for first, part in run:
                comparisons[first] = part
                line.show(lambda: f"{sum(p.samples for p in comparisons.values())} of {work.dataset.count} samples")
    except (KeyboardInterrupt, MachinesError) as error:
        if not comparisons:
            raise
        stopped = error
    finally:
        line.clear()
    result = whole(work, comparisons)
    loading, running = loaded - started, time.perf_counter() - loaded
    summary = _Summary(options, work.compiled, result, work.dataset.count, loading, running)
    written = []
    if options.output is not None:
        from reports.certificate import write_atomically
        from rewrites.compiler.artefact.arrays import npz_bytes

        write_atomically(options.output, npz_bytes(result.results))
        written.append(str(options.output))
    if options.commands is not None:
        written.append(_write_commands(options.commands, work))
    if options.json:
        print_json(_json(summary), written)
    else:
        for text in _lines(summary):
            print(text)
        for path in written:
            print(f"written   {path}")
    if stopped is not None:
        interrupted = isinstance(stopped, KeyboardInterrupt)
        reason = "interrupted" if interrupted else stopped
        print(f"ilaverify: {reason}; {result.samples} of {work.dataset.count} samples are shown", file=sys.stderr)
        return EXIT_INTERRUPTED if interrupted else EXIT_UNPROVED
    if result.first_outside is not None or result.beyond or result.beyond_in_ranges:
        return EXIT_REFUTED
    return EXIT_UNPROVED if result.unrelated or result.wrapped or result.cut else EXIT_PROVED


def _require_names(option: str, work: Work) -> None:
    """Raises UsageError where an output cannot be in a file under its name."""
    from rewrites.compiler.artefact.arrays import MOST_NAME, is_name

    for name in work.compiled.graph.outputs:
        if not is_name(name):
            raise UsageError(
                f"{option} can have outputs whose names have no NUL, and {MOST_NAME:,} bytes or less, not "
                f"{name!r:.60}; leave {option} out, or give the output another name"
            )


def _write_commands(directory: Path, work: Work) -> str:
    from rewrites.compiler.artefact.arrays import npz_bytes
    from rewrites.compiler.artefact.running import commands

    directory.mkdir()
    compiled = work.compiled
    for name, columns in commands(compiled.graph, compiled.implementations, work.dataset.sample(0), work.devices):
        (directory / f"{name}.npz").write_bytes(npz_bytes(columns))
    return str(directory)


@dataclass(frozen=True)
class _Summary:
    """What is shown: a result of some samples ``of`` all, and seconds of loading and of running on the clock."""

    options: argparse.Namespace
    compiled: Compiled
    result: Comparison
    of: int
    loading: float
    running: float


def _lines(summary: _Summary) -> Iterator[str]:
    from reports.outcomes import counted
    from rewrites.compiler.artefact.origins import printable
    from rewrites.compiler.artefact.summary import caveats, equality_text

    options, compiled, result, running = summary.options, summary.compiled, summary.result, summary.running
    targets, many = ", ".join(compiled.targets), summary.of > 1
    samples = f", {result.samples} of {summary.of} samples" if many else ""
    operators = counted(len(result.nodes), "operator")
    yield f"{printable(compiled.model.name)} on {targets}: {operators} on accelerators{samples}"
    yield ""
    yield from lines_of(result.nodes, result.samples) if result.nodes else ("nothing ran on an accelerator",)
    yield ""
    yield f"outputs beside {options.reference}"
    for output in result.outputs:
        yield f"  {printable(output.name)}: {output.text}"
    for answers in result.answers:
        yield f"  {printable(answers.output)}: {answers.text(options.reference)}"
    if result.network:
        yield "bounds of the network on these inputs, beside the reference in float64"
        yield from (f"  {printable(line)}" for line in network_lines(result))
    yield (
        f"time      {result.seconds:.2f} s, accelerators {result.device_seconds:.2f} s of it; "
        f"loading {summary.loading:.2f} s"
        + (f"; the fastest sample {result.fastest:.3f} s; all, with references, {running:.2f} s" if many else "")
    )
    yield ""
    yield f"{UNCHECKED}; {printable(command_line('check', options.directory))} does"
    yield f"  equality  {equality_text(compiled.proof.equality)}"
    yield f"  rests on  {counted(len(compiled.proof.certificates), 'certificate')}, by digest"
    for name, c in compiled.proof.certificates.items():
        yield f"    {c.digest[:12]}  {name} ({c.kind}, {counted(c.uses, 'use')})"
    yield "not claimed"
    yield from (f"  {text}" for text in caveats(compiled))
    yield ""
    outside = result.first_outside
    if outside is not None:
        where = f", in sample {outside.sample} most" if many else ""
        beyond = f"node {outside.number} ({outside.operator}) is the first operator that leaves it"
        yield f"BEYOND ITS BOUND: {beyond}{where}"
    elif result.beyond:
        yield (
            f"BEYOND THE NETWORK'S BOUND: output {printable(result.beyond[0].output)}, though every operator is within "
            "its own; this is a fault of ilaverify: please report it"
        )
    elif result.beyond_in_ranges:
        yield (
            f"BEYOND ITS BOUND: output {printable(result.beyond_in_ranges[0].output)} is further off than the bound "
            "for all inputs in the calibrated ranges, though none left them and every operator is within its own; "
            "this is a fault of ilaverify: please report it"
        )
    else:
        some = f"in {result.samples} of {summary.of} samples, " if result.samples < summary.of else ""
        within = sum(n.inside is True and not n.cut for n in result.nodes)
        others = sum(n.inside is None for n in result.nodes)
        declared = sum(n.inside is not None and not n.theorem for n in result.nodes)
        if not result.nodes:
            yield "nothing ran on an accelerator, so that there are no bounds"
        elif others == len(result.nodes):
            yield "no operator has a bound on these operands"
        else:
            yield (
                f"{some}{within} of {operators} {'is' if within == 1 else 'are'} within "
                f"{'its bound' if within == 1 else 'their bounds'}, computed here; that bounds "
                "are proved rests on the certificates above, and on calls that ilaverify check looks at"
                + (f"; those of {declared} are declared, not proved" if declared else "")
                + (f"; for {others} there is none on these operands" if others else "")
            )
    if result.cut:
        yield (
            f"INPUTS BEYOND CALIBRATION: {len(result.cut)} of {operators} got or computed numbers that were cut, "
            f"the first is node {result.cut[0].number}; bounds in the table are about what was left of operands, and "
            "include the cut of results; compile with inputs like these (compile --calibrate)"
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
            "calibrate with real inputs (compile --calibrate), check the directory with ilaverify check, and look at "
            "the code of targets of your own, which is trusted"
        )


def network_lines(result: Comparison) -> Iterator[str]:
    """The composed bounds for people."""
    from reports.outcomes import counted

    operators = {node.number: node.operator for node in result.nodes}
    for output in result.network:
        if output.bound is None:
            yield f"{output.output}: none; {output.reason}"
            continue
        factor = "" if output.factor is None else f", {output.factor:.3g} times the error"
        error_at, at = (f" in sample {s}" if result.samples > 1 else "" for s in (output.error_sample, output.sample))
        yield f"{output.output}: largest error {output.error:.3g}{error_at}, bound {output.bound:.3g}{at}{factor}"
        parts = [f"{part.size:.3g} node {part.node} ({operators[part.node]})" for part in output.own[:3]]
        rest = sum(part.size for part in output.own[3:])
        parts += [f"{rest:.3g} from {counted(len(output.own) - 3, 'other')}"] if len(output.own) > 3 else []
        most = sum(part.most for part in output.own)
        missed = f", and {output.missed:.3g} what weights may miss" if output.missed else ""
        yield f"  of it {abs(output.known):.3g} is known with its sign, {most:.3g} what operators may add{missed}"
        yield f"  operators, with what of them is known and may cancel: {', '.join(parts) or 'nothing'}"
        if output.declared:
            where = ", in at least one sample" if result.samples > 1 else ""
            yield f"  declared{where}: {', '.join(output.declared)}"
    of_samples = f"{result.outside} of {counted(result.samples, 'sample')}" if result.outside else ""
    for always in result.in_ranges:
        scale = next(output.scale for output in result.outputs if output.name == always.output)
        error = next((output.error for output in result.network if output.output == always.output), None)
        if always.bound is None:
            yield f"{always.output}, for all inputs in the calibrated ranges: none; {always.reason}"
        else:
            nothing = "" if always.bound < scale else f", which says nothing: values are up to {scale:.3g}"
            factor = f", {always.bound / error:.3g} times the error" if error and not of_samples else ""
            left = f"; {of_samples} left them" if of_samples else ""
            told = f"bound {always.bound:.3g}{factor}{nothing}{left}"
            yield f"{always.output}, for all inputs in the calibrated ranges: {told}"
            yield f"  declared: {', '.join(always.declared)}" if always.declared else f"  {IF_CHECKED}"


def lines_of(nodes: Sequence[NodeComparison], samples: int = 1) -> list[str]:
    """A table of accelerator operators for people."""
    from ilaverify.models.nodes import DECLARED, RESULT

    names = ("error", "bound", "vs host", "of", *(["sample"] if samples > 1 else []))
    lines = [
        f"{'node':>5}  {'operator':<20}{'programs':>8}  " + "  ".join(f"{n:>9}" for n in names) + f"  {'s':>7}  from"
    ]
    for n in nodes:
        bound = "none" if n.own_bound is None else f"{n.own_bound:.3g}"
        known = f"; bound {n.known}" if n.known else ""
        mark = {True: known, False: f"{known}: BEYOND ITS BOUND", None: f": no bound: {n.reason}"}[n.inside]
        lines.append(
            f"{n.number:>5}  {n.operator:<20}{n.calls:>8}  {n.own:>9.3g}  {bound:>9}  {n.reference:>9.3g}  "
            f"{n.scale:>9.3g}  {f'{n.sample:>9}  ' if samples > 1 else ''}{n.seconds:>7.3f}  {n.origin}{mark}"
        )
        if n.largest.sample != n.sample:
            bound = "no bound" if n.largest.bound is None else f"the bound {n.largest.bound:.3g}"
            lines.append(
                f"{'':>7}its largest error is {n.largest.error:.3g}, with {bound}, in sample {n.largest.sample}"
            )
        for cut in n.cuts:
            when = ", when the model was compiled" if cut.constant else ""
            of = cut.of if cut.constant else cut.of * samples
            lines.append(
                f"{'':>7}{cut.count} of {of} numbers of {cut.operand} were cut to the range of their format{when}"
            )
        if any(cut.operand == RESULT for cut in n.cuts) and n.own_bound is not None:
            why = "" if n.theorem else "; no theorem counts for it (VTA's is not about results that are cut to -128)"
            lines.append(f"{'':>7}the bound includes what that changes in the result{why}")
        if any(cut.operand != RESULT for cut in n.cuts):
            bound = "no bound" if n.given_bound is None else f"the bound {n.given_bound:.3g}, {DECLARED}"
            lines.append(f"{'':>7}on the operands as they were given, the error is {n.given:.3g}, and there is {bound}")
    lines.append("error and bound are on the operands as the accelerator got them, rounded and cut to its formats")
    if samples > 1:
        lines.append("errors are those of the sample in which an operator comes nearest to its bound; s is of all")
    return lines


def _json(summary: _Summary) -> Mapping[str, Any]:
    compiled, result = summary.compiled, summary.result
    outside = result.first_outside
    return {
        "schema": RESULT_SCHEMA,
        "model": compiled.model.name,
        "digest": compiled.digest,
        "targets": list(compiled.targets),
        "reference": summary.options.reference,
        "samples": {"number": summary.of, "done": result.samples},
        "operators": [n.as_json() for n in result.nodes],
        "outputs": [o.as_json() for o in result.outputs],
        "answers": [asdict(a) for a in result.answers],
        "network_bounds": [{**asdict(n), "factor": n.factor} for n in result.network],
        "bounds_in_ranges": {"outside": result.outside, "outputs": [asdict(r) for r in result.in_ranges]},
        "first_outside": None if outside is None else outside.number,
        "as_the_directory_says": {
            "note": UNCHECKED,
            "equality": compiled.proof.equality.value,
            "certificates": {name: c.digest for name, c in compiled.proof.certificates.items()},
        },
        "seconds": round(result.seconds, 4),
        "accelerator_seconds": round(result.device_seconds, 4),
        "fastest_seconds": round(result.fastest, 4),
        "loading_seconds": round(summary.loading, 4),
        "running_seconds": round(summary.running, 4),
    }
