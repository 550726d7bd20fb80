"""The command line.

Exit codes: 0 everything proved (or done), 1 something refuted, 2 something unproved or broken, 64 bad usage.
Text goes to people; ``--json`` writes one JSON object to standard output for machines.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import cli_campaign, cli_prove, cli_report, cli_simulate
from .arguments import seconds
from .errors import EXIT_BAD_USAGE, EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

if TYPE_CHECKING:
    from bmc.counterexample import Counterexample
    from ila_lang import Ila
    from ila_lang.mapping import TensorMapping
    from smt_encodings.claims import Obligation, Verdict

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; never raises on bad input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        options = _parser().parse_args(arguments)
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except UsageError as error:
        print(f"ilaverify: {error}", file=sys.stderr)
        return EXIT_BAD_USAGE
    except BrokenPipeError:
        # the reader of our output has gone; point the interpreter's last flush elsewhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_UNPROVED
    except OSError as error:
        print(f"ilaverify: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return EXIT_UNPROVED
    except KeyboardInterrupt:
        print("ilaverify: interrupted; nothing was written", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ilaverify",
        description="Proves that accelerator programs compute what tensor-compiler fragments mean.",
        epilog="exit codes: 0 all proved, 1 something refuted, 2 something unproved or broken, 64 bad usage",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND", parser_class=_Parser)

    listing = verbs.add_parser("list", help="names of mappings and models")
    listing.set_defaults(run=_list)

    show = verbs.add_parser("show", help="print a model: states, instructions, kernels")
    show.add_argument("model", metavar="MODEL")
    show.add_argument("--check", action="store_true", help="check decodes and loops by SMT instead of printing")
    show.set_defaults(run=_show)

    mapping = verbs.add_parser("mapping", help="prove or refute a mapping")
    mapping.add_argument("name", metavar="NAME")
    mapping.add_argument("--method", default="auto", metavar="chc|bmc|auto", help="default: auto (bmc with --shape)")
    mapping.add_argument("--shape", metavar="ROWSxCOLUMNS", help="input tensor of a bmc proof, e.g. 16x64")
    mapping.add_argument("--data", default="auto", choices=("auto", "uninterpreted", "bits"), help="bmc: data values")
    mapping.add_argument("--memory", default="resolved", choices=("resolved", "arrays"), help="bmc: memory encoding")
    mapping.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds per question to a solver")
    mapping.add_argument("--full", action="store_true", help="a line for every obligation")
    mapping.add_argument("-o", dest="directory", type=Path, metavar="DIR", help="write certificate or counterexample")
    mapping.set_defaults(run=_mapping)

    check = verbs.add_parser("check", help="check proof certificates against the models in use")
    check.add_argument("certificates", nargs="+", type=Path, metavar="CERT")
    check.add_argument("--solver", default="both", choices=("cvc5", "z3", "both"))
    check.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds per obligation")
    check.set_defaults(run=_check)

    cli_simulate.add_parser(verbs)
    cli_campaign.add_parser(verbs)
    cli_prove.add_parser(verbs)
    cli_report.add_parser(verbs)

    for verb in (listing, show, mapping, check):
        verb.add_argument("--json", action="store_true", help="machine-readable output")
    return parser


def _emit_json(value: object) -> None:
    print(json.dumps(value, indent=2, sort_keys=True))


# -- list and show ----------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    from .catalogue import MAPPINGS, MODELS

    if options.json:
        _emit_json(
            {
                "mappings": {n: s for n, (s, _) in MAPPINGS.items()},
                "models": {n: s for n, (s, _) in MODELS.items()},
            }
        )
        return EXIT_PROVED
    for title, known in (("mappings", MAPPINGS), ("models", MODELS)):
        print(title)
        for name, (summary, _) in known.items():
            print(f"  {name:<24} {summary}")
    return EXIT_PROVED


def _show(options: argparse.Namespace) -> int:
    from ila_lang import ila_to_json, show_ila

    from .catalogue import find_model

    ila = find_model(options.model)
    if options.check:
        return _well_formed(ila, options.json)
    if options.json:
        _emit_json(ila_to_json(ila))
    else:
        print(show_ila(ila))
    return EXIT_PROVED


def _well_formed(ila: Ila, as_json: bool) -> int:
    from smt_encodings.claims import Status
    from smt_encodings.wellformed import check_ila

    findings = check_ila(ila)
    if as_json:
        _emit_json([{"check": f.check, "status": f.status.value, "witness": f.witness} for f in findings])
    else:
        for finding in findings:
            shown = ", ".join(f"{n} = {v:#x}" for n, v in finding.witness.items())
            print(f"{finding.status.value:<8} {finding.check}" + (f"  [{shown}]" if shown else ""))
    if any(f.status is Status.REFUTED for f in findings):
        return EXIT_REFUTED
    return EXIT_PROVED if all(f.status is Status.PROVED for f in findings) else EXIT_UNPROVED


# -- mapping ----------------------------------------------------------------------------------------


def _mapping(options: argparse.Namespace) -> int:
    from .catalogue import find_mapping

    mapping = find_mapping(options.name)

    from ila_lang.mapping import SizeError

    from .errors import exit_code
    from .text import show_verdict
    from .verify import METHODS, verify

    if options.method not in METHODS:
        raise UsageError(f"--method must be one of {', '.join(METHODS)}, not '{options.method}'")
    shape = _shape(options.shape)
    if options.method == "bmc" and shape is None:
        raise UsageError("--method bmc must be given a shape, e.g. --shape 16x64")
    if options.method == "chc" and shape is not None:
        raise UsageError("--method chc proves every size; leave --shape out, or use --method bmc")
    if options.directory is not None and options.directory.exists() and not options.directory.is_dir():
        raise UsageError(f"-o must name a directory, not the file {options.directory}")
    progress = _Progress()
    try:
        verdict = verify(
            mapping,
            options.method,
            shape=shape,
            data=options.data,
            memory=options.memory,
            timeout=options.timeout,
            progress=progress,
        )
    except SizeError as error:
        raise UsageError(str(error)) from error
    finally:
        progress.clear()
    failure: OSError | None = None
    written: list[Path] = []
    try:
        written = _write(mapping, verdict, shape, options) if options.directory is not None else []
    except OSError as error:
        failure = error  # the verdict took its time: it is shown all the same
    if options.json:
        _emit_json(_verdict_json(verdict) | {"written": [str(p) for p in written]})
    else:
        print(show_verdict(verdict, full=options.full))
        for path in written:
            print(f"written   {path}")
    if failure is not None:
        raise failure
    return exit_code(verdict.status)


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if re.fullmatch(r"\d{1,9}(x\d{1,9})+", text) is None:
        raise UsageError(f"--shape must be ROWSxCOLUMNS, e.g. 16x64, not '{text}'")
    return tuple(int(part) for part in text.split("x"))


class _Progress:
    """One line on a terminal that says which obligation was just discharged."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty()
        self.count = 0

    def __call__(self, obligation: Obligation) -> None:
        self.count += 1
        if self.on:
            print(
                f"\r\x1b[K{self.count:>4} obligations  {obligation.group[:70]}",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        if self.on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _write(
    mapping: TensorMapping, verdict: Verdict, shape: tuple[int, ...] | None, options: argparse.Namespace
) -> list[Path]:
    """Writes the certificate of a proof, or the program of a counterexample."""
    from bmc.programs import write_program_file
    from reports.certificate import certificate_of, certificate_text, write_atomically
    from smt_encodings.claims import Interpretation, Status

    from . import __version__
    from .verify import counterexample_of

    if verdict.status is Status.PROVED:
        parameters: dict[str, Any] = {}
        stem = f"{mapping.name}.{verdict.method}"
        if shape is not None:
            bits = Interpretation.BITS in verdict.claim.interpretations
            parameters = {
                "shape": list(shape),
                "data": "bits" if bits else "uninterpreted",
                "memory": options.memory,
            }
            stem += f".{shape[0]}x{shape[1]}.{parameters['data']}"
        path = options.directory / f"{stem}.cert.json"
        content = certificate_of(mapping, verdict, parameters, f"ilaverify {__version__}")
        write_atomically(path, certificate_text(content))
        return [path]
    found = counterexample_of(verdict)
    if found is not None:
        try:
            text = write_program_file(mapping, found)
        except ValueError as error:
            print(f"ilaverify: no program file: {error}", file=sys.stderr)
            return []
        path = options.directory / f"{mapping.name}.counterexample.json"
        write_atomically(path, text)
        return [path]
    return []


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    from reports.certificate import claim_json

    from .verify import counterexample_of

    found = counterexample_of(verdict)
    return {
        "status": verdict.status.value,
        "method": verdict.method,
        "seconds": round(verdict.seconds, 3),
        "reason": verdict.reason,
        "claim": claim_json(verdict.claim),
        "obligations": [
            {
                "group": o.group,
                "name": o.name,
                "meaning": o.meaning,
                "expected": o.expected,
                "discharged": o.discharged,
                "answers": [
                    {"solver": a.solver, "status": a.status, "seconds": round(a.seconds, 4)} for a in o.answers
                ],
            }
            for o in verdict.obligations
        ],
        "invariants": verdict.invariants,
        "counterexample": None if found is None else _counterexample_json(found),
    }


def _counterexample_json(found: Counterexample) -> dict[str, Any]:
    return {
        "sizes": found.sizes,
        "shape": found.shape,
        "inputs": {name: {str(i): v for i, v in cells.items()} for name, cells in found.inputs.items()},
        "row": found.row,
        "column": found.column,
        "device": found.device,
        "ir": found.ir,
        "shown": list(found.shown),
        "differing": found.differing,
        "elements": found.elements,
        "error": found.error,
    }


# -- check ------------------------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> int:
    results = [_check_one(path, options) for path in options.certificates]
    if options.json:
        _emit_json(results)
    else:
        for result in results:
            print(f"{'ACCEPTED' if result['accepted'] else 'REJECTED'}  {result['file']}")
            if "claim" in result:
                print(f"  {result['claim']['statement']}: {result['claim']['size_domain']}")
            for line in result["replays"]:
                print(f"  {line}")
            for line in result["problems"]:
                print(f"  {line}")
        accepted = sum(r["accepted"] for r in results)
        print(f"{accepted} accepted, {len(results) - accepted} rejected")
    return EXIT_PROVED if all(r["accepted"] for r in results) else EXIT_UNPROVED


def _check_one(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    from reports.certificate import CertificateError, read_certificate
    from reports.checker import SOLVERS, replay

    from .binding import binding_problems
    from .catalogue import find_mapping

    result: dict[str, Any] = {"file": str(path), "accepted": False, "problems": [], "replays": []}
    try:
        certificate = read_certificate(path)
        mapping = find_mapping(str(certificate["claim"].get("subject")))
    except (CertificateError, UsageError) as error:
        result["problems"].append(str(error))
        return result
    result["claim"] = certificate["claim"]
    problems = binding_problems(certificate, mapping)
    if not problems:
        names = list(SOLVERS) if options.solver == "both" else [options.solver]
        for name in names:
            outcome = replay(certificate, name, options.timeout)
            right = outcome.obligations - len(outcome.problems)
            result["replays"].append(
                f"{outcome.solver}: {right} of {outcome.obligations} obligations hold, {outcome.seconds:.1f} s"
            )
            problems += outcome.problems
    result["problems"] = problems
    result["accepted"] = not problems
    return result


if __name__ == "__main__":
    sys.exit(main())
