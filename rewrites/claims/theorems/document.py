"""The generated parts of docs/reference/numerics.md: tables of lemmas, rules and operators, and the derivations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

from ila_lang.text.portable import digest
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.kernel.formula import number_text
from rewrites.bounds.kernel.judgements import text_of
from rewrites.bounds.kernel.laws import AXIOMS
from rewrites.bounds.lemmas.real_rules import RULES

from .flexasr import STEPS
from .operators import OPERATORS
from .recurrence import over_time

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "numerics.md"
_SHORT = 110
_STEPS = 6


def _row(*cells: str) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def _lemmas() -> list[str]:
    lines = [_row("lemma", "primitive", "statement", "for", "proved by", "body"), "|---|---|---|---|---|---|"]
    for lemma in LEMMAS.values():
        constants = ", ".join(f"{n} = {number_text(v)} (about {float(v):.3g})" for n, v in lemma.constants.items())
        statement = lemma.statement + (f"; {constants}" if constants else "")
        said = lemma.name, f"`{lemma.function.name}`", statement, lemma.domain
        lines.append(_row(*said, lemma.method, digest(lemma.function)[:12]))
    return lines


def _rules() -> list[str]:
    lines = [_row("law", "statement"), "|---|---|"]
    return lines + [_row(rule.name, rule.statement) for rule in RULES.values()]


def _axioms() -> list[str]:
    return [_row("axiom", "statement"), "|---|---|"] + [_row(name, text) for name, text in AXIOMS.items()]


def _number(value: Fraction | None) -> str:
    return "none" if value is None else f"{float(value):.4g}"


def _operators() -> list[str]:
    head = _row("operator", "against", "bound", "example", "bound there")
    lines = [head, "|---|---|---|---|---|"]
    for o in OPERATORS.values():
        formula = str(o.error)
        shown = f"`{formula}`" if len(formula) <= _SHORT else f"e{len(o.steps)} of its derivation"
        example = ", ".join(f"{n} = {number_text(Fraction(v))}" for n, v in o.example.items())
        lines.append(_row(o.name, o.summary, shown, example, _number(o.bound(o.example).value)))
    return lines


def _growth() -> list[str]:
    lines = [_row("layer", *(f"after {t}" for t in range(1, _STEPS + 1))), "|---" * (_STEPS + 1) + "|"]
    for kind, operators in STEPS.items():
        example = {n: v for n, v in operators[0].example.items() if n not in ("e_h", "e_c", "C")}
        values = [_number(b.value) for b in over_time(kind, example, _STEPS)]
        lines.append(_row(kind.upper(), *(values + ["none"] * (_STEPS - len(values)))))
    return lines


def _derivation(o: Operator) -> list[str]:
    lines = [f"### {o.name}", "", f"{o.summary}. {o.note}".strip(), "", "```text"]
    lines += [f"{name:<4} {meaning}" for name, meaning in o.symbols.items()]
    result = o.theorem.result
    lines += ["", f"device  {text_of(result.device)}", f"real    {text_of(result.real)}", "", *o.derived(), ""]
    lines += [f"needs {c if len(str(c)) <= _SHORT else _shortened(str(c))}: else {c.reason}" for c in o.conditions]
    return [*lines, "```", ""]


def _shortened(condition: str) -> str:
    left, _, right = condition.rpartition(" < ")
    return f"{left[:60]} .. < {right}"


def _derivations() -> list[str]:
    return [line for o in OPERATORS.values() for line in _derivation(o)][:-1]


PARTS: Mapping[str, Callable[[], list[str]]] = {
    "lemmas": _lemmas,
    "rules": _rules,
    "axioms": _axioms,
    "operators": _operators,
    "growth": _growth,
    "derivations": _derivations,
}
"""The generated parts by name; each gives its lines."""


def updated(document: str) -> str:
    """The document with all generated parts renewed; raises ValueError where one has no place."""
    for name, lines in PARTS.items():
        begin, end = f"<!-- {name}: written by python -m rewrites.claims.theorems -->", f"<!-- end of {name} -->"
        head, opened, rest = document.partition(begin)
        _, closed, tail = rest.partition(end)
        if not opened or not closed:
            raise ValueError(f"the document must have the lines {begin!r} and {end!r}")
        document = "\n".join([head + begin, "", *lines(), "", closed + tail])
    return document
