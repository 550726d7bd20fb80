"""The verbs of the command line, and those that have no module of their own: ``list``, ``show`` and ``mapping``.

Text goes to people; ``--json`` writes one JSON object to standard output for machines.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten
from traceback import print_exception
from typing import TYPE_CHECKING, Any, NoReturn

from ila_lang.extensions import ExtensionError, command_line
from ilaverify.errors import EXIT_BAD_USAGE, EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError, did_you_mean
from ilaverify.modules import use_module
from ilaverify.version import VERSION

from . import check as cli_check
from . import compile as cli_compile
from . import new as cli_new
from . import prove as cli_prove
from . import report as cli_report
from . import rule as cli_rule
from . import run as cli_run
from . import simulate as cli_simulate
from . import tv as cli_tv
from .arguments import place, require_paths_apart, require_writable, seconds
from .campaigns import properties as cli_campaign
from .outcomes import print_json
from .progress import Line

if TYPE_CHECKING:
    from ila_lang import Ila
    from ila_lang.mapping import TensorMapping
    from smt_encodings.claims import Obligation, Verdict


class _Parser(argparse.ArgumentParser):
    late: Callable[[], None] | None = None
    """Adds what is known only once the verb is called, and modules that are named are in use."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.late is not None:
            modules = _Parser(prog=self.prog, add_help=False, allow_abbrev=False)
            modules.add_argument("--module", action="append", default=[])
            for name in modules.parse_known_args(args)[0].module:
                use_module(name)
            self.late()
        parsed = super().parse_known_args(args, namespace)
        require_paths_apart(self._actions, parsed[0])
        if parsed[1] and self._subparsers is None and self.add_help:  # argparse would show the usage of all verbs
            hint = did_you_mean(parsed[1][0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(parsed[1])}{hint}")
        return parsed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += ", and one that begins with - after an equals sign (OPTION=VALUE)"
        raise UsageError(f"{message}\n{self.format_usage().strip()}")

    def print_help(self, file: Any = None) -> None:
        """Writes the help; argparse would leave out in silence what cannot be written."""
        print(self.format_help(), end="", file=file)


def run(arguments: Sequence[str] | None, *, traceback: bool = False) -> int:
    """Runs one command and returns its exit code; an error in its input is reported in one line on standard error.

    With ``traceback`` that follows.
    """
    try:
        options = parser_of_commands().parse_args(arguments)
        for module in options.module:
            use_module(module)
        command: Callable[[argparse.Namespace], int] = options.run
        return command(options)
    except (UsageError, ExtensionError) as error:
        shown = str(error)
        if not shown.replace("\n", "").isprintable():  # it quotes a file
            from rewrites.compiler.artefact.origins import printable

            shown = "\n".join(map(printable, shown.split("\n")))
        print(f"ilaverify: {shown}", file=sys.stderr)
        if traceback:
            print_exception(error)
        return EXIT_BAD_USAGE


def parser_of_commands() -> argparse.ArgumentParser:
    """The parser of all verbs; ``run`` of what it gives runs the verb."""
    parser = _Parser(
        prog="ilaverify",
        description="Proves that accelerator programs compute what tensor-compiler fragments mean.",
        epilog="exit codes: 0 all proved, accepted or done, 1 something refuted or rejected, 2 something unproved, "
        "undecided or broken, 64 bad usage (a file that is named and cannot be read, too), 130 interrupted, 141 the "
        "reader of the output went away before its end",
    )
    parser.add_argument("--version", action="version", version=f"ilaverify {VERSION}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND", parser_class=_Parser)

    listing = verbs.add_parser("list", help="names of models, and of mappings and all other claims")
    listing.add_argument(
        "kind",
        nargs="?",
        choices=("model", "mapping", "joint", "rule", "lemma", "theorem"),
        help="default: models and mappings",
    )
    listing.set_defaults(run=_list)

    show = verbs.add_parser("show", help="print a model: states, instructions, kernels; or a rule on tensors")
    show.add_argument("model", metavar="NAME", help="a model, or with --mlir a rule")
    show.add_argument("--mlir", action="store_true", help="the rule as a pair of MLIR functions, in the generic form")
    show.add_argument("--check", action="store_true", help="check decodes and loops by SMT instead of printing")
    show.set_defaults(run=_show)

    mapping = verbs.add_parser("mapping", help="prove or refute a mapping")
    mapping.add_argument("name", metavar="NAME")
    mapping.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds per question to a solver")
    mapping.add_argument("--full", action="store_true", help="a line for every obligation")
    mapping.add_argument("-o", dest="directory", type=place, metavar="DIR", help="write certificate or counterexample")
    mapping.set_defaults(run=_mapping)
    mapping.late = partial(_add_methods, mapping)

    for module in (
        cli_check, cli_rule, cli_simulate, cli_campaign, cli_prove, cli_report, cli_compile, cli_run, cli_tv, cli_new
    ):  # fmt: skip
        module.add_parser(verbs)

    for verb in verbs.choices.values():
        verb.add_argument(
            "--module",
            action="append",
            default=[],
            metavar="PKG",
            help="use the targets, rules, methods and front ends of a Python module that is not installed, or the "
            "rules of a file FILE.mlir",
        )
    for verb in (listing, mapping):
        verb.add_argument("--json", action="store_true", help="machine-readable output")
    show.add_argument(
        "--json",
        action="store_true",
        help="the model in the exchange format, whose keys python -m pydoc ila_lang.text.portable explains",
    )
    return parser


MOST_OF_SUMMARY = 160
"""Characters of a claim's summary in a list for people; --json has all, and so has the verb that proves the claim."""


# -- list and show ----------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    from ilaverify.catalogue import all_entries, mappings, models

    parts = {
        "mapping": {name: claim.summary for name, claim in mappings().items()},
        "model": {name: model.summary for name, model in models().items()},
    }
    if options.kind is not None:
        for name, entry in all_entries().items():
            note = "" if entry.expected.value == "PROVED" else " (wrong, and refuted)"
            parts.setdefault(entry.kind, {})[name] = entry.summary + note
        parts = {options.kind: parts[options.kind]}
    if options.json:
        print_json({f"{kind}s": summaries for kind, summaries in parts.items()})
        return EXIT_PROVED
    for kind, summaries in parts.items():
        print(f"{kind}s")
        width = max(24, *(len(name) for name in summaries))
        for name, summary in summaries.items():
            print(f"  {name:<{width}} {shorten(summary, MOST_OF_SUMMARY, placeholder=' ...')}")
    if options.kind == "model":
        print("readings of their specifications, for simulate --reading; the first is the default")
        for model in models().values():
            for name, text in model.readings.items():
                print(f"  {model.name + ' ' + name:<{width}} {text}")
    if options.kind is None:
        print("joints, rules, lemmas and theorems: ilaverify list joint, list rule, list lemma, list theorem")
    return EXIT_PROVED


def _show(options: argparse.Namespace) -> int:
    if options.mlir:
        return _show_rule(options)
    from ila_lang import ila_to_json, show_ila
    from ilaverify.catalogue import all_entries, find_model, models

    other = None if options.model in models() else all_entries().get(options.model)
    if other is not None:
        shown = command_line("mapping" if other.kind == "mapping" else "rule", options.model)
        also = ", or --mlir for its functions" if other.kind == "rule" else ""
        raise UsageError(f"{options.model} is a {other.kind}, no model; use {shown}{also}")
    ila = find_model(options.model)
    if options.check:
        return _well_formed(ila, options.json)
    if options.json:
        print_json(ila_to_json(ila))
    else:
        print(show_ila(ila))
    return EXIT_PROVED


def _show_rule(options: argparse.Namespace) -> int:
    """A rule as a pair of functions; the other options are about models."""
    if options.check or options.json:
        raise UsageError("--mlir writes a rule as MLIR; leave --check and --json out")
    from ilaverify.catalogue import find_subject
    from rewrites.claims.subjects.tensor import TensorSubject
    from rewrites.rules.mlir.builder import NoFunction
    from rewrites.rules.mlir.writing import text_of_rule

    subject = find_subject(options.model)
    if not isinstance(subject, TensorSubject):
        raise UsageError(f"--mlir writes rules on tensors, and {options.model} is none; see ilaverify list rule")
    try:
        print(text_of_rule(subject.rule), end="")
    except NoFunction as error:
        raise UsageError(f"{options.model} cannot be written as MLIR: {error}") from error
    return EXIT_PROVED


def _well_formed(ila: Ila, as_json: bool) -> int:
    from smt_encodings.claims import Status
    from smt_encodings.wellformed import check_ila

    findings = check_ila(ila)
    if as_json:
        print_json([{"check": f.check, "status": f.status.value, "witness": f.witness} for f in findings])
    else:
        for finding in findings:
            shown = ", ".join(f"{n} = {v:#x}" for n, v in finding.witness.items())
            print(f"{finding.status.value:<8} {finding.check}" + (f"  [{shown}]" if shown else ""))
    if any(f.status is Status.REFUTED for f in findings):
        return EXIT_REFUTED
    return EXIT_PROVED if all(f.status is Status.PROVED for f in findings) else EXIT_UNPROVED


# -- mapping ----------------------------------------------------------------------------------------


def _mapping(options: argparse.Namespace) -> int:
    from ilaverify.catalogue import all_entries, find_mapping, mappings

    if options.name not in mappings():
        other = all_entries().get(options.name)
        if other is not None:
            raise UsageError(f"{options.name} is a {other.kind}; use {command_line('rule', options.name)}")
    mapping = find_mapping(options.name)

    from ila_lang.mapping import SizeError
    from ilaverify.errors import exit_code
    from ilaverify.text import show_verdict, show_written, verdict_json
    from rewrites.claims.verify import chosen_method, verify
    from smt_encodings.claims import Status

    parameters = {name: text for name in options.parameters if (text := getattr(options, _dest(name))) is not None}
    try:
        chosen, _ = chosen_method(options.method, parameters, len(mapping.shape_names))
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    for parameter in chosen.parameters:
        if parameter.name in parameters:
            try:
                parameters[parameter.name] = parameter.read(parameters[parameter.name])
            except ValueError as error:
                raise UsageError(f"--{parameter.name} {error}") from error
    if options.directory is not None:
        require_writable("-o", options.directory, directory=True)
    line, numbers = Line(), itertools.count(1)

    def progress(obligation: Obligation) -> None:
        line.show(lambda: f"{next(numbers):>4} obligations  {obligation.group[:70]}", often=True)

    try:
        verdict = verify(mapping, chosen.name, timeout=options.timeout, progress=progress, **parameters)
    except SizeError as error:
        raise UsageError(str(error)) from error
    finally:
        line.clear()
    failure: OSError | None = None
    written: list[Path] = []
    try:
        if options.directory is not None or verdict.status is Status.ERROR:
            written = _write(mapping, verdict, options)
    except OSError as error:
        failure = error  # the proof took minutes, so its verdict is shown even if it cannot be written
    if options.json:
        print_json(verdict_json(verdict), written)
    else:
        print(show_verdict(verdict, full=options.full))
        print(show_written(written), end="")
    if failure is not None:
        raise failure
    return exit_code(verdict.status)


def _dest(parameter: str) -> str:
    return f"parameter {parameter}"


def _add_methods(parser: _Parser) -> None:
    """The option for the method, and one for each parameter of any method, also of modules given by --module."""
    from rewrites.claims.method import AUTO, METHODS

    methods = METHODS.all()
    about = "; ".join(f"{method.name}: {method.summary}" for method in methods.values())
    parser.add_argument(
        "--method",
        default=AUTO,
        metavar="|".join([AUTO, *methods]),
        help=f"{about}; default: {AUTO}, which is bmc with --shape, else chc".replace("%", "%%"),
    )
    parameters = {p.name: p for method in methods.values() for p in method.parameters}
    for name, parameter in parameters.items():
        having = " and ".join(m.name for m in methods.values() if name in {p.name for p in m.parameters})
        description = f"{having}: {parameter.meaning}".replace("%", "%%")
        parser.add_argument(f"--{name}", dest=_dest(name), metavar=parameter.example, help=description)
    parser.set_defaults(parameters=tuple(parameters))


def _write(mapping: TensorMapping, verdict: Verdict, options: argparse.Namespace) -> list[Path]:
    """Writes the certificate of a proof, or the data and the program of a counterexample."""
    from ilaverify.identity import certified
    from ilaverify.refutations import write_refutation
    from reports.certificate import write_atomically
    from rewrites.claims.method import METHODS
    from rewrites.claims.subjects.mapping import MappingSubject
    from smt_encodings.claims import Status

    subject = MappingSubject(mapping)
    if verdict.status is Status.PROVED and options.directory is not None:
        parameters: Any = verdict.details["parameters"]
        chosen = [
            parameters[p.name] for p in METHODS.all()[verdict.method].parameters if parameters[p.name] != p.default
        ]
        words = ["x".join(map(str, value)) if isinstance(value, list) else str(value) for value in chosen]
        stem = ".".join([mapping.name, verdict.method, *(re.sub(r"[^\w.+-]", "-", word) for word in words)])
        path = options.directory / f"{stem}.cert.json"
        write_atomically(path, certified(subject, verdict, parameters))
        return [path]
    refuted = subject.refutation(verdict)
    if refuted is None:
        return []
    for note in refuted.notes:
        print(f"ilaverify: {note}", file=sys.stderr)
    return write_refutation(refuted, mapping.name, options.directory)
