"""The verb ``simulate``: runs a program file on a model, and prints the words that it reads.

Every model has its own program files and its own readings of its specification: named sets of options of the model.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ilaverify.errors import EXIT_PROVED, UsageError

from .arguments import note_large, place, require_writable, source

MOST_BYTES = 1 << 28
"""Bytes of a program file."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "simulate",
        help="run a program file on a model",
        description="Prints the address and the word of each read. A model without a form of its own takes a list of "
        "values of its inputs, and prints the states that it names (python -m pydoc accel_models.command_program).",
        epilog="ilaverify list model shows the readings of each model; the first is the default",
    )
    parser.add_argument("model", metavar="MODEL", help="flexasr, hlscnn, vta, or one of another package")
    parser.add_argument("program", type=source, metavar="PROGRAM")
    parser.add_argument("-o", dest="output", type=place, metavar="FILE", help="write the words read to FILE")
    parser.add_argument("--reading", metavar="NAME", help="reading of the model's specification")
    parser.set_defaults(run=_simulate)


def _simulate(options: argparse.Namespace) -> int:
    from accel_models.mmio_program import ProgramError
    from ila_lang.text.files import FileRefused, read_at_most
    from ilaverify.catalogue import find_simulator
    from reports.certificate import write_atomically

    simulate = find_simulator(options.model, options.reading)
    if options.output is not None:
        require_writable("-o", options.output)
    note_large(options.program)
    try:
        text = read_at_most(options.program, "a program", MOST_BYTES).decode()
    except FileRefused as error:
        raise UsageError(str(error)) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{options.program}: a program must be UTF-8 text: {error}") from error
    try:
        done = simulate(text)
    except ProgramError as error:
        raise UsageError(f"{options.program}: {error}") from error
    for note in done.notes:
        print(f"ilaverify: {options.program}: note: {note}", file=sys.stderr)
    if options.output is not None:
        write_atomically(options.output, done.reads)
        print(f"written   {options.output}")
    else:
        print(done.reads, end="")
    return EXIT_PROVED
