"""What the benchmarks of MLIR have in common: options, runs in processes of their own, and where rows are written."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ilaverify.proving.workers import Ended, Task, run_tasks

from . import record


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Options of every run."""
    result = argparse.ArgumentParser(
        prog=f"python -m {name}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--mlir-opt", metavar="PROGRAM", help="default: the first that is found")
    result.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    result.add_argument("--seconds", type=float, default=10.0, help="for each question to a solver; default: 10")
    result.add_argument("--timeout", type=float, default=120.0, help="for each process; default: 120")
    result.add_argument("--memory", type=int, default=4096, help="MB for each process")
    result.add_argument("--json", type=Path, metavar="FILE", help="write the rows here, too")
    result.add_argument("--record", metavar="NAME", help="write rows and tables to benchmarks/results under this name")
    return result


def ends_of(tasks: Sequence[Task], options: argparse.Namespace) -> Iterator[Ended]:
    """How tasks end, with a line of progress."""
    with closing(run_tasks(tasks, jobs=options.jobs, timeout=options.timeout, memory=options.memory)) as ends:
        for count, end in enumerate(ends, 1):
            print(f"\r{count} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            yield end
    print(file=sys.stderr)


def write(options: argparse.Namespace, content: Mapping[str, Any], note: str | None, tables: str) -> None:
    """Writes what a run measured where its options say."""
    if options.json is not None:
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if options.record is not None:
        record.write(options.record, content, record.page(options.record, content["title"], note, tables))
