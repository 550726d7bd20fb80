"""The tables in documents that are made from the code: ``python -m docs.tables [--write] [NAME ...]``.

A document has each table between two marks with its name; with ``--write`` it is put there.  Rules stand in their
tables with their verdicts, so that all of them are decided; the exit code is 1 where a wrong rule is not refuted or
another one not proved.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chc.scalar_rules.prove import prove_rule
from chc.scalar_rules.rule import RuleRow, ScalarRule
from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import Kind
from ir_semantics.mlir.semantics.function import OPERATORS
from rewrites.claims.registry import LAYER_RULES, entries
from rewrites.rules.scalar.catalogue import ROWS
from rewrites.rules.tensor.catalogue import MODULES, RULES
from rewrites.targets.flexasr.backend import BACKEND as FLEXASR
from rewrites.targets.hlscnn.backend import BACKEND as HLSCNN
from rewrites.targets.vta.backend import BACKEND as VTA
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger

from .markdown_tables import head, row, with_table
from .numerics import PARTS

DOCS = Path(__file__).parent


# -- rules with their verdicts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A rule: what is claimed, over which numbers or sizes, and how to decide it."""

    row: str
    wrong: bool
    rule: str
    domain: str
    prove: Callable[[Discharger], Verdict]
    note: str = ""

    @property
    def expected(self) -> Status:
        """The verdict that it must get."""
        return Status.REFUTED if self.wrong else Status.PROVED

    def line(self, verdict: Verdict) -> str:
        """Its line of the table."""
        if verdict.status is Status.REFUTED:
            evidence = f"`{verdict.details['counterexample']}`"
        elif verdict.status is Status.PROVED:
            ways = ", ".join(i.value.replace("_", " ") for i in verdict.claim.interpretations)
            assumed = "; ".join(verdict.claim.assumptions)
            evidence = ways + (f"; assumed: {assumed}" if assumed else "")
        else:
            evidence = verdict.reason
        note = f". {self.note}" if self.note else ""
        return row(self.row, f"`{self.rule}`", self.domain, verdict.status.value, evidence + note)


def scalar_entries() -> list[Entry]:
    """All rules on scalars, wrong ones first within a row."""
    return [entry for of in ROWS for entry in _of_row(of)]


def _of_row(of: RuleRow) -> Iterator[Entry]:
    wrong = [*([of.wrong] if of.wrong else []), *of.still_wrong]
    for number, rule in enumerate([*wrong, *of.repaired]):
        yield Entry(
            of.row, number < len(wrong), rule.text, str(rule.number), partial(prove_rule, rule), _note(of, rule, number)
        )


def _note(of: RuleRow, rule: ScalarRule, number: int) -> str:
    """Where the rule was published, and on the row's first line its note."""
    return " ".join(
        [*([f"From {rule.source}."] if rule.source else []), *([of.note] if of.note and not number else [])]
    )


def tensor_entries() -> list[Entry]:
    """All rules on tensors, those of known rows first."""
    ordered = sorted(RULES, key=lambda rule: (not rule.row, rule.row.startswith("6"), rule.row))
    return [
        Entry(
            rule.row,
            rule.kind is Kind.WRONG,
            rule.statement,
            f"tensors of every size, {rule.equality.value}",
            partial(decide_tensor_rule, rule),
            rule.note,
        )
        for rule in ordered
    ]


def decided(entries: Sequence[Entry], timeout: float) -> tuple[list[str], int]:
    """The table of rules, and how many of them have another verdict than expected."""
    lines, unexpected = head("Row", "Rule", "Over", "Verdict", "Counterexample, or how it is proved"), 0
    for entry in entries:
        verdict = entry.prove(Discharger(timeout=timeout))
        lines.append(entry.line(verdict))
        unexpected += verdict.status is not entry.expected
        print(f"{verdict.status.value:8} {verdict.seconds:6.2f} s  {entry.row}: {entry.rule}", flush=True)
    print(f"{len(entries)} rules, {unexpected} with another verdict than expected")
    return lines, unexpected


# -- how many rules there are -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """Rules of one kind: how many are right and how many are known to be wrong, and what their proof is.

    A rule counts as right if it must be proved.
    """

    kind: str
    about: str
    right: int
    wrong: int
    proof: str


ABOUT: Mapping[str, str] = {
    "pooling": "pooling, and its traps",
    "convolution": "convolution, and its traps",
    "groups": "convolutions in groups",
    "products": "products of matrices, sums, softmax, and their traps",
    "layout": "data movement, and its traps",
    "hardware": "pads as accelerators have them",
    "matching": "forms in which accelerators are matched",
    "windows": "pooling as reductions of pairs of rows",
    "means": "means and sums as products and as reductions of rows",
    "normalisation": "layer normalisation of rank 2 to 4, and as graphs write it",
    "splitting": "operators in parts",
    "boxes": "boxes of results, of boxes of operands",
    "scales": "scales of operands that cancel out",
}
"""What the modules of rules on tensors are about."""


def counts() -> list[Count]:
    """All rules, each in one line."""
    layers = Count("IR to IR", "recurrent layers", len(LAYER_RULES), 0, "every size, by induction over timesteps")
    return [*_tensors(), layers, _scalars(), _accelerators(), _chains()]


def _tensors() -> Iterator[Count]:
    for module in MODULES:
        wrong = sum(rule.kind is Kind.WRONG for rule in module.RULES)
        about = ABOUT[module.__name__.rpartition(".")[2]]
        yield Count("IR to IR", about, len(module.RULES) - wrong, wrong, "every size, ranks as written")


def _scalars() -> Count:
    rules = [entry for entry in entries().values() if entry.kind == "rule"]
    wrong = sum(e.expected is Status.REFUTED for e in rules) - sum(rule.kind is Kind.WRONG for rule in RULES)
    return Count(
        "IR to IR", "scalars", len(rules) - len(RULES) - len(LAYER_RULES) - wrong, wrong, "every operand of the format"
    )


def _accelerators() -> Count:
    proof = "the operator is what it stands for; its mapping's certificate, every size"
    backends = (FLEXASR, HLSCNN, VTA)
    names, number = ", ".join(b.name for b in backends), sum(len(b.rules) for b in backends)
    return Count("IR to accelerator", names, number, 0, proof)


def _chains() -> Count:
    proof = "both sides stand for the same; the mapping's certificate, every size"
    return Count("accelerator to accelerator", "transfers and chains on flexasr", len(FLEXASR.chains), 0, proof)


def by_kind(numbers: Sequence[Count]) -> list[str]:
    """The table of numbers, with a sum for each kind."""
    lines = head("Kind", "About", "Right", "Known to be wrong", "How a right one is proved")
    for kind in dict.fromkeys(count.kind for count in numbers):
        of = [count for count in numbers if count.kind == kind]
        lines += [row(c.kind, c.about, c.right, c.wrong, c.proof) for c in of]
        if len(of) > 1:
            right, wrong = sum(c.right for c in of), sum(c.wrong for c in of)
            lines.append(f"| **{kind}** | **all** | **{right}** | **{wrong}** | |")
    return lines


# -- operators of MLIR --------------------------------------------------------------------------------------


def mlir_operators() -> list[str]:
    """The table of operators that have a meaning, by dialect."""
    names = sorted(OPERATORS)
    dialects = sorted({name.partition(".")[0] for name in names})
    lines = head("Dialect", "Number", "Operators")
    for dialect in dialects:
        own = [name.partition(".")[2] for name in names if name.partition(".")[0] == dialect]
        lines.append(row(dialect, len(own), ", ".join(f"`{name}`" for name in own)))
    return [*lines, row("**all**", f"**{len(names)}**", "")]


# -- the command --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table: its document, and what makes its lines, and counts what is not as expected, from a timeout."""

    document: Path
    make: Callable[[float], tuple[list[str], int]]


RULES_PAGE, CHAINS_PAGE = DOCS / "reference" / "rules.md", DOCS / "explanation" / "chains.md"
NUMERICS_PAGE = DOCS / "reference" / "numerics.md"
MLIR_PAGE = DOCS / "reference" / "mlir_operators.md"
TABLES: dict[str, Table] = {
    "rules by kind": Table(CHAINS_PAGE, lambda _: (by_kind(counts()), 0)),
    "rules on scalars": Table(RULES_PAGE, lambda timeout: decided(scalar_entries(), timeout)),
    "rules on tensors": Table(RULES_PAGE, lambda timeout: decided(tensor_entries(), timeout)),
    "operators of MLIR": Table(MLIR_PAGE, lambda _: (mlir_operators(), 0)),
    **{name: Table(NUMERICS_PAGE, lambda _, lines=lines: (["", *lines(), ""], 0)) for name, lines in PARTS.items()},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.tables", description="Makes the tables of documents.")
    parser.add_argument("--write", action="store_true", help="write the tables into their documents")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per solver and question")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLES)}; all by default")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in TABLES]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(TABLES)}, not {unknown[0]!r}")
    failed = False
    for name in options.names or TABLES:
        table = TABLES[name]
        lines, unexpected = table.make(options.timeout)
        failed |= unexpected > 0
        if options.write:
            text = with_table(table.document.read_text(encoding="utf-8"), name, lines)
            table.document.write_text(text, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
