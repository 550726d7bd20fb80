"""Packs recorded programs for the tests: ``python pack_recorded.py FOLDER`` writes ``recorded_pe.json.gz`` beside it.

FOLDER holds JSON lines, a program each, made with the public ILA-generated simulator (flexasr-sim, November 2021) and
its numerics in closed form: ``cmds`` (``W`` or ``R``, address, data), ``reads`` (the words that came back), ``irq``,
``reads_pre2022`` where the older saturation changes the words, and ``tags`` that name departures from hardware.
``functions_scalar.jsonl`` has samples of its numeric functions: arguments and, last, the result.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

UNITS = ("linear", "act", "recurrent", "attention", "mem", "probes")
KEYS = ("id", "cmds", "reads", "irq", "tags", "reads_pre2022", "ila_insns")


def main(folder: Path) -> None:
    programs: dict[str, list[dict[str, Any]]] = {}
    for unit in UNITS:
        lines = (folder / f"{unit}.jsonl").read_text().splitlines()
        programs[unit] = [{k: v for k, v in json.loads(line).items() if k in KEYS} for line in lines]
    lines = (folder / "functions_scalar.jsonl").read_text().splitlines()
    functions = [json.loads(line) for line in lines]
    samples = {f["function"].split()[0]: f["samples_args_out"] for f in functions if "samples_args_out" in f}
    text = json.dumps({"programs": programs, "functions": samples}, separators=(",", ":")).encode()
    target = Path(__file__).parent / "recorded_pe.json.gz"
    target.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{target}: {sum(map(len, programs.values()))} programs, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
