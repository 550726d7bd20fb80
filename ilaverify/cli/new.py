"""The verb ``new``: writes a package of one's own, which the verbs know once it is installed."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from ilaverify.errors import EXIT_PROVED

from .arguments import place, require_replaceable


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "new",
        help="write a package of your own: an accelerator, to start from",
        description="Writes a Python package with an accelerator that multiplies matrices of bytes: a model, a mapping "
        "with its proof, rules, a campaign, and what the compiler needs. It works as it comes; change it into yours.",
    )
    parser.add_argument("kind", choices=("accelerator",), help="what the package is about")
    parser.add_argument("name", metavar="NAME", help="of the package, the target and the model, such as my_gemm")
    parser.add_argument(
        "-o", dest="directory", type=place, metavar="DIR", help="a new or empty folder; default: NAME, in this folder"
    )
    parser.set_defaults(run=_new)


def _new(options: argparse.Namespace) -> int:
    from ilaverify.new import write_accelerator

    directory = options.directory or Path(options.name)
    require_replaceable("NAME" if options.directory is None else "-o", directory)
    for path in write_accelerator(options.name, directory):
        print(f"written   {path}")
    install = shlex.join(["pip", "install", "-e", str(directory)])
    print(f"next      {install}, then ilaverify prove --target {options.name} -o proofs")
    return EXIT_PROVED
