"""The test suite of mlir-tv (github.com/aqjune/mlir-tv), pair by pair: verdict, expected verdict, seconds.

    python -m benchmarks.mlir_tv CHECKOUT [--converted DIR] [--mlir-opt PROGRAM] [--json FILE] [--record NAME]

``CHECKOUT`` is a checkout of that project; nothing of it is part of this one.  A pair is ``X.src.mlir`` and
``X.tgt.mlir``; a comment in it says what mlir-tv's own runner expects:

* ``VERIFY``: PROVED, or VACUOUS where the source is always undefined, which counts apart;
* ``VERIFY-INCORRECT``: REFUTED, with inputs that were evaluated;
* ``EXPECT: "correct (source is always undefined)"``: VACUOUS, or PROVED;
* neither: anything, for the test is about a message, or unsupported there.

Programs are read as mlir-tv reads them: TOSA's sums start at -0.0, and dynamic sizes are not broadcast.  Of tests with
``--associative`` REFUTED is no wrong verdict: in floats their sides differ.

A few tests are *read otherwise* here (READINGS says why); each of their verdicts is explained, and counts apart.

Each side is also compared with itself, as mlir-tv's runner does: REFUTED is wrong there.  A verdict is *wrong* where
PROVED and REFUTED are taken for each other, *as expected* where it is the expected one, and else *open*.

Files are converted by an ``mlir-opt`` once and kept in ``--converted``; times are of reading and proving, in a process
for each pair.  Times on a busy machine mean little.  Release 19 reads 799 of the 808 files, release 22 fewer.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from chc.translation.refine import Options, refines
from ilaverify.mlir.translation import functions
from ilaverify.proving.workers import Task
from ir_semantics.mlir.convert import ConverterError, find_converter, load
from ir_semantics.mlir.scanner import MlirError
from ir_semantics.mlir.semantics.program import Reading
from rewrites.claims.subjects.translation import Program
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

from .mlir_runs import ends_of, write
from .mlir_runs import parser as parser_of_runs

ALWAYS_UNDEFINED = "source is always undefined"
ASSOCIATIVE, NEGATIVE_ZERO, APART = "associative", "use-neg-zero", "memref-inputs-simple"
_MAXIMUM = (
    "a maximum starts at the lowest finite number there, and at minus infinity here, of which windows may consist"
)
_CALLS = "its option --use-fn-argument-dims gives results of a call the sizes of its arguments; here they may be any"
READINGS = {
    "litmus/func-ops/fn_arg_dims": ("REFUTED", _CALLS),
    "litmus/func-ops/fn_arg_dims_multiple": ("REFUTED", _CALLS),
    "litmus/tosa-ops/maxpool2d": ("REFUTED", _MAXIMUM),
    "litmus/tosa-ops/maxpool2d_memref": ("REFUTED", _MAXIMUM),
    "litmus/arith-ops/shli_index_ub": ("REFUTED", "index has 32 bits there, and as many as fit here"),
    "litmus/memref-ops/subview_inbounds-noub": (
        "VACUOUS",
        "a view that reaches beyond its buffer is undefined behaviour, as MLIR's documentation says since release 21",
    ),
    "litmus/tosa-ops/gather-uninit": (
        "REFUTED",
        "to read an element that was never written is undefined behaviour there; here that element alone has no value",
    ),
}
"""Tests with another verdict than expected because MLIR is read otherwise: the verdict, and why."""
SOURCE, TARGET = ".src.mlir", ".tgt.mlir"
TITLE = "The test suite of mlir-tv"


@dataclass(frozen=True)
class Pair:
    """A pair: its name, what is expected ("" for anything), and mlir-tv's options that change what is claimed."""

    name: str
    source: Path
    target: Path
    expected: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A test's result; ``selves`` are verdicts of each side against itself."""

    name: str
    expected: str
    options: tuple[str, ...]
    verdict: str
    seconds: float
    reason: str
    selves: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``as expected``, ``wrong``, ``open`` or ``read otherwise``; nothing where anything is expected."""
        if self.verdict == READINGS.get(self.name, ("",))[0] and "REFUTED" not in self.selves:
            return "read otherwise"
        if "REFUTED" in self.selves or {self.verdict, self.expected} == {"PROVED", "REFUTED"}:
            is_of_floats = ASSOCIATIVE in self.options and self.verdict == "REFUTED" and "REFUTED" not in self.selves
            return "open" if is_of_floats else "wrong"
        if not self.expected:
            return ""
        accepted = {"PROVED", "VACUOUS"} if self.expected in ("PROVED", "VACUOUS") else {self.expected}
        return "as expected" if self.verdict in accepted else "open"


def pairs_of(checkout: Path) -> list[Pair]:
    """All pairs of a checkout, in the order of their names."""
    root = checkout / "tests" if (checkout / "tests").is_dir() else checkout
    found = []
    for source in sorted(root.rglob(f"*{SOURCE}")):
        target = source.with_name(source.name.removesuffix(SOURCE) + TARGET)
        if target.exists():
            words = source.read_text(encoding="utf-8") + target.read_text(encoding="utf-8")
            name = str(source.relative_to(root)).removesuffix(SOURCE)
            options = [
                option for option in (ASSOCIATIVE, NEGATIVE_ZERO, APART) if re.search(rf"// ARGS:.*-{option}\b", words)
            ]
            found.append(Pair(name, source, target, _expected(words), tuple(options)))
    return found


def _expected(words: str) -> str:
    if ALWAYS_UNDEFINED in words:
        return "VACUOUS"
    if re.search(r"^// VERIFY-INCORRECT", words, re.MULTILINE):
        return "REFUTED"
    return "PROVED" if re.search(r"^// VERIFY\b", words, re.MULTILINE) else ""


def respelled(text: str) -> str:
    """A program of an older release in words of release 19; its meaning is the same.

    Loops of the kind ``window`` are reductions, and ``tensor.expand_shape`` names the sizes of its result, which the
    type has where they are static.
    """

    def with_sizes(match: re.Match[str]) -> str:
        sizes = match[3].split("x")[:-1]
        static = all(s.isdigit() for s in sizes)
        return f"{match[1]} output_shape [{', '.join(sizes)}]{match[2]}{match[3]}" if static else match[0]

    text = re.sub('"window"', '"reduction"', text)
    return re.sub(
        r"(tensor\.expand_shape %\w+ \[(?:\[[\d, ]+\](?:, )?)*\])( : tensor<\S+> into tensor<)(\w+)", with_sizes, text
    )


def converted(path: Path, name: str, mlir_opt: str | None, folder: Path) -> Path:
    """The file in the generic form, or a file with the complaint about it, made once."""
    kept, complaint = (folder / f"{name.replace('/', '__')}{suffix}" for suffix in (".mlir", ".complaint"))
    if not kept.exists() and not complaint.exists():
        try:
            kept.write_text(_generic(path, mlir_opt), encoding="utf-8")
        except (MlirError, ConverterError) as error:
            complaint.write_text(str(error), encoding="utf-8")
    return kept if kept.exists() else complaint


def _generic(path: Path, mlir_opt: str | None) -> str:
    """The text in the generic form, with the words of an older release changed where it is not read as it is."""
    try:
        return load(path, mlir_opt).text
    except (MlirError, ConverterError):
        text, converter = path.read_text(encoding="utf-8"), find_converter(mlir_opt)
        if converter is None or respelled(text) == text:
            raise
        return converter.generic(respelled(text)).text


def judged(source: Path, target: Path, options: Options, seconds: float) -> tuple[str, str]:
    """The verdict on all functions of a pair, and the reason of the first that is not proved."""
    for path in (source, target):
        if path.suffix == ".complaint":
            return "NOT READ", path.read_text(encoding="utf-8")
    programs = [Program(path.read_text(encoding="utf-8"), "converted") for path in (source, target)]
    before, after = (functions(program, path.name) for program, path in zip(programs, (source, target), strict=True))
    verdicts, reasons = [], []
    for symbol in before:
        if symbol not in after:
            return "UNKNOWN", f"@{symbol} is gone"
        try:
            modules = [program.module for program in programs]
            verdict = refines(before[symbol], after[symbol], options, Discharger(timeout=seconds), modules)
        except ValueError as error:
            return "UNKNOWN", str(error)
        verdicts.append(verdict.status)
        reasons += [verdict.reason] if verdict.status is not Status.PROVED else []
    for status in (Status.REFUTED, Status.ERROR, Status.UNKNOWN, Status.PROVED, Status.VACUOUS):
        if status in verdicts:
            return status.value, next(iter(reasons), "")
    return "UNKNOWN", "there is no function"


def run(test: Pair, source: Path, target: Path, seconds: float) -> str:
    """In a process: a row as JSON."""
    own = Reading(NEGATIVE_ZERO in test.options, True, False, APART in test.options, False)
    options = Options(own, ASSOCIATIVE in test.options)
    start = time.perf_counter()
    verdict, reason = judged(source, target, options, seconds)
    taken = time.perf_counter() - start
    selves = () if verdict == "NOT READ" else tuple(judged(p, p, options, seconds)[0] for p in (source, target))
    return json.dumps(asdict(Row(test.name, test.expected, test.options, verdict, taken, reason, selves)))


def rows_of(tests: Sequence[Pair], files: Sequence[tuple[Path, Path]], options: argparse.Namespace) -> list[Row]:
    """Results in the order of the tests."""
    rows: dict[str, Row] = {}
    tasks = [
        Task(test.name, partial(run, test, *pair, options.seconds)) for test, pair in zip(tests, files, strict=True)
    ]
    known = {test.name: test for test in tests}
    for end in ends_of(tasks, options):
        test = known[end.name]
        if end.text is None:
            rows[end.name] = Row(test.name, test.expected, test.options, "ERROR", end.seconds, end.failure)
        else:
            content = json.loads(end.text)
            rows[end.name] = Row(**content | {k: tuple(content[k]) for k in ("options", "selves")})
    return [rows[test.name] for test in tests]


def table(rows: Sequence[Row]) -> str:
    """Markdown: a row for each test, then counts, then those that are not as expected with the reason."""
    lines = [
        "| test | verdict | expected | s | each side and itself | reason |",
        "| --- | --- | --- | ---: | --- | --- |",
    ]
    for row in rows:
        mark = {"wrong": " **WRONG**", "open": " (open)", "read otherwise": " (read otherwise)"}.get(row.kind, "")
        reason = _cell(row.reason) if row.verdict != "PROVED" else ""
        selves = ", ".join(row.selves)
        lines.append(
            f"| {row.name} | {row.verdict}{mark} | {row.expected or 'any'} | {row.seconds:.2f} | {selves} | {reason} |"
        )
    return "\n".join([*lines, "", *counts(rows), "", *remaining(rows)])


def remaining(rows: Sequence[Row]) -> list[str]:
    """Markdown: the tests that are not as expected, or not read, and why."""
    some = [row for row in rows if row.kind not in ("as expected", "") or row.verdict == "NOT READ"]
    lines = ["| not as expected | verdict | expected | why |", "| --- | --- | --- | --- |"] if some else []
    for row in some:
        why = READINGS[row.name][1] if row.kind == "read otherwise" else row.reason
        lines.append(f"| {row.name} | {row.verdict} | {row.expected or 'any'} | {_cell(why)} |")
    return [*lines, ""] if some else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:160]


def counts(rows: Sequence[Row]) -> list[str]:
    """What the table comes to."""
    lines = []
    for expected in ("PROVED", "REFUTED", "VACUOUS", ""):
        some = [row for row in rows if row.expected == expected]
        verdicts = Counter(row.verdict for row in some)
        shown = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        lines.append(f"* expected {expected or 'anything'}: {len(some)} pairs: {shown}")
    kinds = Counter(row.kind for row in rows)
    lines.append(
        f"* {kinds['as expected']} as expected, {kinds['open']} open, {kinds['wrong']} wrong, "
        f"{kinds['read otherwise']} read otherwise"
    )
    selves = Counter(verdict for row in rows for verdict in row.selves)
    shown = ", ".join(f"{count} {verdict}" for verdict, count in sorted(selves.items()))
    lines.append(f"* each side against itself: {shown}")
    times = [row.seconds for row in rows if row.verdict != "NOT READ"]
    if times:
        lines.append(
            f"* pairs: {sum(times):.1f} s in sum, median {statistics.median(times):.3f} s, most {max(times):.1f} s"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a verdict is wrong, else 0."""
    parser = parser_of_runs("benchmarks.mlir_tv", __doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT")
    parser.add_argument("--converted", type=Path, metavar="DIR", help="keep converted files here")
    parser.add_argument("--only", metavar="TEXT", help="tests whose names contain this")
    options = parser.parse_args(arguments)
    found = pairs_of(options.checkout)
    tests = [t for t in found if options.only is None or options.only in t.name]
    if not found:
        parser.error(f"{options.checkout} must hold pairs *{SOURCE} and *{TARGET}, and it holds none")
    if not tests:
        parser.error(f"--only must be in the name of a test, such as {found[0].name}, and {options.only!r} is in none")
    try:
        converter = find_converter(options.mlir_opt)
    except ConverterError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.converted or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = [
            (
                converted(t.source, f"{t.name}.src", options.mlir_opt, folder),
                converted(t.target, f"{t.name}.tgt", options.mlir_opt, folder),
            )
            for t in tests
        ]
        start = time.perf_counter()
        rows = rows_of(tests, files, options)
        elapsed = time.perf_counter() - start
    release = "no mlir-opt" if converter is None else converter.release
    whole = f"* {len(rows)} pairs and both sides with themselves: {elapsed:.0f} s of wall time, {release}"
    text = f"{table(rows)}{whole}"
    print(text)
    content = {"title": TITLE, "release": release, "seconds": elapsed, "rows": [asdict(row) for row in rows]}
    write(options, content, __doc__, text)
    return int(any(row.kind == "wrong" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
