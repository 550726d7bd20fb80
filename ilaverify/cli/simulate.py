"""The verb ``simulate``: runs a program file on a model, and prints the words that it reads.

Every model has its own program files and its own readings of its specification: named sets of options of the model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilaverify.errors import EXIT_PROVED, UsageError

from .arguments import note_large, require_writable

__all__ = ["add_parser"]

MOST_BYTES = 1 << 28
"""Bytes of a program file."""

Reads = list[tuple[int, int]]


@dataclass(frozen=True)
class _Target:
    """How one accelerator's programs run: ``run(text, reading)`` gives what they read, and whether a unit started."""

    readings: Mapping[str, str]
    run: Callable[[str, str], tuple[Reads, bool]]


def _flexasr(text: str, reading: str) -> tuple[Reads, bool]:
    from accel_models.flexasr.model import RECORDED_SIMULATOR, FlexAsrOptions, flexasr
    from accel_models.flexasr.program import parse_program, run
    from ila_lang import Simulator

    ila = flexasr(RECORDED_SIMULATOR if reading == "recorded" else FlexAsrOptions())
    machine = Simulator(ila)
    reads = run(parse_program(text), machine)
    return reads, bool(machine.values["top_interrupt_request"])


def _hlscnn(text: str, reading: str) -> tuple[Reads, bool]:
    from accel_models.hlscnn.model import hlscnn
    from accel_models.hlscnn.options import PRESETS
    from accel_models.hlscnn.program import parse_program, run
    from ila_lang import Simulator

    # a program without a convolution is an error of its own
    return run(parse_program(text), Simulator(hlscnn(PRESETS[reading]))), True


def _vta(text: str, reading: str) -> tuple[Reads, bool]:
    from accel_models.vta.model import vta
    from accel_models.vta.options import PRESETS
    from accel_models.vta.program import parse_program, run
    from ila_lang import Simulator

    options = PRESETS[reading]
    return run(parse_program(text, options), Simulator(vta(options)), options), True


_TARGETS = {
    "flexasr": _Target({"rtl": "the hardware source", "recorded": "the public simulator"}, _flexasr),
    "hlscnn": _Target(
        {
            "recorded": "what a recording of the hardware's model decides",
            "master": "as recorded, a plane for each filter, as in the published master branch",
            "wgt_16bits": "weights of 16 bits, as in that branch",
        },
        _hlscnn,
    ),
    "vta": _Target(
        {"hls": "HLS", "fsim": "functional simulator", "chisel": "Chisel", "vta-ila": "the published ILA"}, _vta
    ),
}


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    listed = "; ".join(
        f"{model}: {', '.join(f'{n} ({what})' for n, what in target.readings.items())}"
        for model, target in _TARGETS.items()
    )
    parser: argparse.ArgumentParser = verbs.add_parser(
        "simulate",
        help="run a program file on a model",
        description="Prints the address and the word of each read.",
        epilog=f"readings, the first being the default: {listed}",
    )
    parser.add_argument("model", metavar="MODEL", help=", ".join(_TARGETS))
    parser.add_argument("program", type=Path, metavar="PROGRAM")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write the words read to FILE")
    parser.add_argument("--reading", metavar="NAME", help="reading of the model's specification")
    parser.set_defaults(run=_simulate)


def _simulate(options: argparse.Namespace) -> int:
    from accel_models.mmio_program import ProgramError, format_reads
    from ila_lang.text.files import FileRefused, read_at_most
    from reports.certificate import write_atomically

    target = _TARGETS.get(options.model)
    if target is None:
        raise UsageError(f"model to simulate must be one of {', '.join(_TARGETS)}, not '{options.model}'")
    reading = options.reading or next(iter(target.readings))
    if reading not in target.readings:
        raise UsageError(
            f"--reading of {options.model} must be one of {', '.join(target.readings)}, not '{options.reading}'"
        )
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
        reads, started = target.run(text, reading)
    except ProgramError as error:
        raise UsageError(f"{options.program}: {error}") from error
    if not started:
        print(f"ilaverify: {options.program}: note: the program starts no unit", file=sys.stderr)
    if options.output is not None:
        write_atomically(options.output, format_reads(reads))
    else:
        print(format_reads(reads), end="")
    return EXIT_PROVED
