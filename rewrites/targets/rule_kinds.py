"""The number of rules by kind: ``python -m rewrites.targets.rule_kinds`` writes docs/explanation/chains.md's table.

A rule counts as proved if it is one that must be: that it is, is what ``ilaverify prove --all`` and the tests find.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from chc.tensor_rules.rule import Kind
from rewrites.claims.registry import entries
from rewrites.rules.tensor import catalogue as tensor_rules
from smt_encodings.claims import Status

from .flexasr.backend import BACKEND as FLEXASR
from .hlscnn.backend import BACKEND as HLSCNN
from .vta.backend import BACKEND as VTA

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "chains.md"
_BEGIN, _END = (
    "<!-- rules by kind: written by python -m rewrites.targets.rule_kinds -->",
    "<!-- end of rules by kind -->",
)


@dataclass(frozen=True)
class Count:
    """Rules of one kind: how many are right and how many are known to be wrong, and what their proof is."""

    kind: str
    about: str
    right: int
    wrong: int
    proof: str


def counts() -> list[Count]:
    """All rules, each in one line."""
    return [*_tensors(), _scalars(), _accelerators(), _chains()]


ABOUT: Mapping[str, str] = {
    "pooling": "pooling, and its traps",
    "linear": "convolution, products and softmax: traps and their repairs",
    "convolution": "convolution",
    "products": "products of matrices, sums, softmax",
    "layout": "data movement, and its traps",
    "hardware": "pads as accelerators have them",
    "matching": "forms in which accelerators are matched",
    "windows": "pooling as reductions of pairs of rows",
    "splitting": "operators in parts",
}
"""What the modules of rules on tensors are about."""


def _tensors() -> Iterator[Count]:
    for module in tensor_rules.MODULES:
        wrong = sum(rule.kind is Kind.WRONG for rule in module.RULES)
        about = ABOUT[module.__name__.rpartition(".")[2]]
        yield Count("IR to IR", about, len(module.RULES) - wrong, wrong, "every size, ranks as written")


def _scalars() -> Count:
    rules = {n: e for n, e in entries().items() if e.kind == "rule"}
    tensors = [rule for module in tensor_rules.MODULES for rule in module.RULES]
    wrong = sum(e.expected is Status.REFUTED for e in rules.values()) - sum(r.kind is Kind.WRONG for r in tensors)
    return Count("IR to IR", "scalars", len(rules) - len(tensors) - wrong, wrong, "every operand of the format")


def _accelerators() -> Count:
    proof = "the operator is what it stands for; its mapping's certificate, every size"
    backends = (FLEXASR, HLSCNN, VTA)
    names, rules = ", ".join(b.name for b in backends), sum(len(b.rules) for b in backends)
    return Count("IR to accelerator", names, rules, 0, proof)


def _chains() -> Count:
    proof = "both sides stand for the same; the mapping's certificate, every size"
    return Count("accelerator to accelerator", "transfers and chains on flexasr", len(FLEXASR.chains), 0, proof)


def table(found: list[Count] | None = None) -> list[str]:
    """The lines of the table, with a sum for each kind."""
    rows = counts() if found is None else found
    lines = ["| Kind | About | Right | Known to be wrong | How a right one is proved |", "|---|---|---|---|---|"]
    for kind in dict.fromkeys(row.kind for row in rows):
        of = [row for row in rows if row.kind == kind]
        lines += [f"| {r.kind} | {r.about} | {r.right} | {r.wrong} | {r.proof} |" for r in of]
        if len(of) > 1:
            lines.append(
                f"| **{kind}** | **all** | **{_sum(of, lambda r: r.right)}** | **{_sum(of, lambda r: r.wrong)}** | |"
            )
    return lines


def _sum(rows: list[Count], number: Callable[[Count], int]) -> int:
    return sum(map(number, rows))


def with_table(document: str, lines: list[str]) -> str:
    """The document with its table replaced; raises ValueError where it has no place for one."""
    head, begin, rest = document.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the document must have the lines {_BEGIN!r} and {_END!r} around its table")
    return "\n".join([head + begin, *lines, end + tail])


def main() -> int:
    """Writes the table; returns the exit code."""
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8"), table()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
