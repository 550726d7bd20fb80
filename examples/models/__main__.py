"""Writes an application, or a network that onnx ships, as a file: ``python -m examples.models resnet20 -o r.onnx``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path


def main() -> None:
    """Parses the command line and writes the file; exits by 64 where onnx is not installed."""
    try:
        from .applications import APPLICATIONS
        from .shipped import SHIPPED, shipped
    except ModuleNotFoundError as error:
        needs = f"needs the package {error.name}, which is not installed; pip install ilaverify[onnx]"
        print(f"python -m examples.models {needs}", file=sys.stderr)
        sys.exit(64)
    parser = argparse.ArgumentParser(prog="python -m examples.models", description=__doc__)
    parser.add_argument("name", choices=[*sorted(APPLICATIONS), *SHIPPED])
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: 0)")
    arguments = parser.parse_args()
    build = APPLICATIONS[arguments.name].build if arguments.name in APPLICATIONS else partial(shipped, arguments.name)
    data = build(arguments.seed).SerializeToString(deterministic=True)
    arguments.output.write_bytes(data)
    print(f"{arguments.output}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
