"""Whole-process times of the commands that users run most, beside what they are meant to reach on 2 cores."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.record import takes_nothing, write
from benchmarks.table3 import measure

Row = tuple[str, list[str], float]


def rows(certificates: Path) -> Iterator[Row]:
    """Label, arguments of ``ilaverify`` and target in seconds; proofs come before the checks that need them."""
    kinds = ("max", "mean", "add")
    for kind in kinds:
        yield f"{kind}, chc", ["mapping", f"flexasr_{kind}pool", "--method", "chc", "-o", str(certificates)], 10
    for kind in kinds:
        certificate = str(certificates / f"flexasr_{kind}pool.chc.cert.json")
        for solver in ("z3", "cvc5"):
            yield f"{kind}, check with {solver}", ["check", "--solver", solver, certificate], 10
    for shape, data, target in (("16x64", "uninterpreted", 2), ("64x256", "uninterpreted", 30), ("16x64", "bits", 30)):
        for kind in kinds:
            arguments = ["mapping", f"flexasr_{kind}pool", "--method", "bmc", "--shape", shape, "--data", data]
            yield f"{kind}, bmc {shape} {data}", arguments, target


def main() -> int:
    """Measures every row once and writes JSON and Markdown to ``benchmarks/results``."""
    record = []
    with tempfile.TemporaryDirectory() as directory:
        for label, arguments, target in rows(Path(directory)):
            result = measure([sys.executable, "-m", "ilaverify", *arguments], 300)
            record.append({"what": label, "target": target} | result)
            print(f"{label:<36} {result['answer']:<9} {result['seconds']:>7.2f} s   (target {target} s)", flush=True)
    lines = ["| command | answer | seconds | target |", "| --- | --- | --- | --- |"]
    lines += [f"| {r['what']} | {r['answer']} | {r['seconds']:.2f} | {r['target']} |" for r in record]
    note = "Seconds, whole process, one run each.  Machine and versions: targets.json."
    write("targets", {"rows": record}, "\n".join(["# Targets", "", note, "", *lines]))
    return 0


if __name__ == "__main__":
    takes_nothing("benchmarks.targets", __doc__)
    sys.exit(main())
