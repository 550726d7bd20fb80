"""Runs the ONNX node tests and writes docs/reference/onnx_coverage.md: ``python -m ir_semantics.onnx [-o FILE]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .conformance import cases, run_case
from .coverage import page


def main() -> int:
    """Writes the page; 1 where a case fails."""
    parser = argparse.ArgumentParser(prog="python -m ir_semantics.onnx", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("docs/reference/onnx_coverage.md"), help="the file to write"
    )
    arguments = parser.parse_args()
    outcomes = []
    tests = cases()
    for number, case in enumerate(tests, start=1):
        outcomes.append(run_case(case))
        if number % 100 == 0:
            print(f"{number} of {len(tests)} cases", file=sys.stderr)
    failed = [o for o in outcomes if o.status == "failed"]
    for outcome in failed:
        print(f"FAILED {outcome.name}: {outcome.reason}", file=sys.stderr)
    arguments.output.write_text(page(outcomes), encoding="utf-8")
    print(f"{sum(o.status == 'passed' for o in outcomes)} of {len(outcomes)} cases pass; {arguments.output} is written")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
