"""Writes an application as an ONNX file: ``python -m examples.models resnet20 -o resnet20.onnx``."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import APPLICATIONS


def main() -> None:
    """Parses the command line and writes the file."""
    parser = argparse.ArgumentParser(prog="python -m examples.models", description=__doc__)
    parser.add_argument("name", choices=sorted(APPLICATIONS))
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: 0)")
    arguments = parser.parse_args()
    data = APPLICATIONS[arguments.name].build(arguments.seed).SerializeToString(deterministic=True)
    arguments.output.write_bytes(data)
    print(f"{arguments.output}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
