"""The verb ``compile``: a model becomes programs of accelerators, by rules and mappings that hold a certificate.

Exit codes: 0 done (what could not be used is said), 64 bad usage, a bad model included; nothing is written then.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import command_line
from ilaverify.catalogue import backends, not_compiled_to
from ilaverify.errors import EXIT_PROVED, UsageError

from .arguments import replaced, require_replaceable, source
from .outcomes import print_json
from .progress import Line

if TYPE_CHECKING:
    from rewrites.compiler.artefact.model import Compiled

RESULT_SCHEMA = "ilaverify-compile-1"
"""Version of the JSON that is printed."""

MOST_REASONS = 12
"""Reasons that are shown; all of them are in the summary that is written."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser = verbs.add_parser(
        "compile",
        help="compile a model, such as one in ONNX, to programs of accelerators, by certified rules and mappings alone",
        description="Writes a directory with programs, memory plan, the chain of rule applications with the digests of "
        "their certificates, and a summary.",
        epilog="exit codes: 0 done, 64 bad usage or a bad model (nothing is written)",
    )
    parser.add_argument("model", type=source, metavar="MODEL")
    parser.add_argument(
        "-o", dest="directory", type=replaced, required=True, metavar="DIR", help="write the compiled model"
    )
    parser.add_argument(
        "--proofs", type=source, default=Path("proofs"), metavar="DIR", help="certificates; default: proofs"
    )
    parser.add_argument(
        "--calibrate", type=source, metavar="X.npz", help="inputs from which number formats are chosen, by name"
    )
    parser.add_argument("--dimension", action="append", default=[], metavar="NAME=N", help="bind a symbolic extent")
    parser.add_argument("--exact", action="store_true", help="no rewriting of the model: exact matching only")
    parser.add_argument("--cost", default="offload", choices=("offload", "movement"), help="default: offload")
    parser.add_argument(
        "--as-published", action="store_true", help="number formats as published drivers choose them, without scaling"
    )
    parser.add_argument(
        "--recheck", action="append", default=[], choices=("cvc5", "z3"), help="put all obligations to a solver again"
    )
    parser.add_argument(
        "--store",
        type=source,
        metavar="FILE",
        help="proof store; default: in the user's cache",
    )
    parser.add_argument("--no-store", action="store_true", help="do not compare with what proofs asked")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_compile)
    parser.late = partial(_add_targets, parser)


def _add_targets(parser: argparse.ArgumentParser) -> None:
    """Adds the targets, and what may be chosen about one of them."""
    known = backends()
    parser.add_argument(
        "--target", required=True, metavar="NAME[,NAME...]", help=f"of {', '.join(known)}; the preferred one first"
    )
    for name, load in known.items():
        for choice in load().choices:
            parser.add_argument(
                f"--{choice.flag}",
                dest=f"{name}.{choice.name}",
                type=int,
                choices=choice.values,
                help=f"{choice.about}; default: {choice.values[0]}",
            )


def targets_of(text: str) -> tuple[str, ...]:
    """Accelerators by name; raises UsageError for others."""
    names = tuple(text.split(","))
    known = backends()
    if not known.keys() >= set(names) or len(set(names)) != len(names):
        choices = ", ".join(known)
        raise UsageError(
            f"--target must be different names of {choices}, separated by commas, not '{text}'{not_compiled_to(names)}"
        )
    return names


def _chosen(options: argparse.Namespace, targets: Sequence[str]) -> dict[str, int]:
    """What was chosen about accelerators; raises UsageError where one of them is no target."""
    chosen = {}
    for name, load in backends().items():
        for choice in load().choices:
            value = getattr(options, f"{name}.{choice.name}")
            if value is not None and name not in targets:
                raise UsageError(f"--{choice.flag} is about {name}, which is not among the targets; leave it out")
            if value is not None:
                chosen[choice.name] = value
    return chosen


def _dimensions(texts: Sequence[str]) -> dict[str, int]:
    extents = {}
    for text in texts:
        name, equals, extent = text.partition("=")
        if not (name and equals and extent.isascii() and extent.isdigit() and len(extent) < 10):
            raise UsageError(f"--dimension must be NAME=N with a natural number N, e.g. batch=1, not '{text}'")
        extents[name] = int(extent)
    return extents


def _compile(options: argparse.Namespace) -> int:
    targets, dimensions = targets_of(options.target), _dimensions(options.dimension)

    from rewrites.compiler.artefact.directory import may_write
    from rewrites.compiler.artefact.errors import ArtefactError

    try:
        may_write(options.directory)
    except ArtefactError as error:
        raise UsageError(f"-o: {error}") from error
    require_replaceable("-o", options.directory)
    if options.store is not None and options.no_store:
        raise UsageError("--store and --no-store exclude each other; leave one of them out")

    from ilaverify.catalogue import all_entries
    from ilaverify.models.compilation import Request, compile_model
    from ilaverify.models.datasets import read_arrays
    from ir_semantics.graph.types import GraphError
    from reports.store import ProofStore, StoreError, default_store
    from rewrites.compiler.artefact.model import write_compiled
    from rewrites.compiler.artefact.summary import summary_text
    from rewrites.compiler.codegen import Options

    request = Request(
        options.model,
        targets,
        options.proofs,
        dimensions,
        None if options.calibrate is None else read_arrays(options.calibrate, "calibration data")[0],
        options.exact,
        options.cost,
        Options(as_published=options.as_published, chosen=_chosen(options, targets)),
        tuple(dict.fromkeys(options.recheck)),
        None if options.no_store else ProofStore(options.store or default_store()),
    )
    started, line = time.perf_counter(), Line(10.0)

    def progress(step: str) -> None:
        line.clear()
        print(f"ilaverify: {time.perf_counter() - started:6.1f} s  {step}", file=sys.stderr, flush=True)

    try:
        compiled = compile_model(request, all_entries(), progress, lambda part: line.show(lambda: part))
        progress(f"writing {options.directory}")
        digest = write_compiled(options.directory, compiled, summary_text(compiled))
    except ImportError as error:
        raise UsageError(
            f"compile needs the package {error.name}, which is not installed; pip install ilaverify[onnx]"
        ) from error
    except StoreError as error:
        raise UsageError(f"{error}; or use --no-store") from error
    except (ArtefactError, GraphError) as error:
        named = str(error).startswith(f"the model {options.model} ")
        raise UsageError(str(error) if named else f"{options.model}: {error}") from error
    finally:
        line.clear()
    if options.json:
        print_json(_json(compiled, digest, options.directory))
    else:
        _show(compiled, digest, options.directory)
        if len(compiled.proof.left_out) > 1:
            store = () if options.store is None else ("--store", options.store)
            prove = command_line("prove", "--target", ",".join(compiled.targets), "-o", options.proofs, *store)
            print(f"next      {prove} proves all that was left out; then compile again")
    return EXIT_PROVED


def _show(compiled: Compiled, digest: str, directory: Path) -> None:
    from reports.outcomes import counted
    from rewrites.compiler.artefact.summary import calibration_text, equality_text
    from rewrites.compiler.codegen import declared
    from rewrites.compiler.offload.reasons import MOVEMENT_REASON

    on_device: dict[str, int] = {}
    for number in compiled.implementations:
        name = compiled.graph.nodes[number].operator
        on_device[name] = on_device.get(name, 0) + 1
    calls = sum(len(i.calls) for i in compiled.implementations.values())
    print(f"{compiled.model.name} for {', '.join(compiled.targets)}")
    counts = ", ".join(f"{n} {name}" for name, n in sorted(on_device.items())) or "none"
    print(f"  accelerators  {counts}; {counted(calls, 'program')}")
    if not on_device:
        print("  NOTHING       runs on an accelerator; the compiled model is the host's alone, for these reasons:")
    reasons = [h for h in compiled.host if h.reason != MOVEMENT_REASON]
    left, computing = sum(h.count for h in compiled.host), sum(h.count for h in reasons)
    parts = f", {left - computing} of them data movement, {counted(computing, 'other')}" if left else ""
    print(f"  host          {counted(left, 'operator')}{parts}{':' if reasons else ''}")
    for host in reasons[:MOST_REASONS]:
        print(f"                {host.count} {host.operator}: {host.reason}")
    if len(reasons) > MOST_REASONS:
        more = reasons[MOST_REASONS:]
        print(f"                {sum(h.count for h in more)} more, for {len(more)} other reasons: see SUMMARY.md")
    print(f"  equality      {equality_text(compiled.proof.equality)}")
    certificates = compiled.proof.certificates
    print(f"  rests on      {counted(len(certificates), 'certificate')}: {', '.join(certificates) or 'none'}")
    for name, package in _guests(compiled).items():
        print(f"  trusts        {package}: for what it says of {name}")
    for what, reason in declared(compiled.implementations.values()).items():
        print(f"  declared      {what}, not proved: {reason}")
    for name, reason in compiled.proof.left_out.items():
        print(f"  left out      {name}: {reason}")
    print(f"  formats       {calibration_text(compiled)}")
    print(f"written   {directory} ({digest[:12]})")


def _guests(compiled: Compiled) -> dict[str, str]:
    """The targets that other packages offer, with these."""
    from rewrites.targets.target import TARGETS

    return {name: package for name in compiled.targets if (package := TARGETS.guest(name))}


def _json(compiled: Compiled, digest: str, directory: Path) -> dict[str, Any]:
    from rewrites.compiler.artefact.origins import origin_text
    from rewrites.compiler.codegen import declared

    return {
        "schema": RESULT_SCHEMA,
        "trusted": _guests(compiled),
        "declared": declared(compiled.implementations.values()),
        "model": compiled.model.name,
        "targets": list(compiled.targets),
        "digest": digest,
        "directory": str(directory),
        "accelerated": [
            {
                "node": number,
                "operator": compiled.graph.nodes[number].operator,
                "origin": origin_text(compiled.graph, number),
                "mappings": [mapping.name for mapping in implementation.mappings],
                "programs": len(implementation.calls),
            }
            for number, implementation in compiled.implementations.items()
        ],
        "host": [{"operator": h.operator, "count": h.count, "reason": h.reason} for h in compiled.host],
        "equality": compiled.proof.equality.value,
        "certificates": {name: c.digest for name, c in compiled.proof.certificates.items()},
        "left_out": dict(compiled.proof.left_out),
        "calibrated": bool(compiled.choices.calibration.get("given")),
    }
