"""The tables of docs/reference/numerics.md, lemmas, laws and bounds, and the derivations: see :mod:`docs.tables`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from ila_lang.text.portable import digest
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.kernel.formula import number_text
from rewrites.bounds.kernel.judgements import text_of
from rewrites.bounds.kernel.laws import AXIOMS
from rewrites.bounds.lemmas.network_rules import NETWORK_RULES
from rewrites.bounds.lemmas.real_rules import RULES
from rewrites.claims.theorems.flexasr import STEPS
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.claims.theorems.recurrence import over_time

from .markdown_tables import head, row

_SHORT = 110
_STEPS = 6


def _lemmas() -> list[str]:
    lines = head("lemma", "primitive", "statement", "for", "proved by", "body")
    for lemma in LEMMAS.values():
        constants = ", ".join(f"{n} = {number_text(v)} (about {float(v):.3g})" for n, v in lemma.constants.items())
        statement = lemma.statement + (f"; {constants}" if constants else "")
        words = lemma.name, f"`{lemma.function.name}`", statement, lemma.domain
        lines.append(row(*words, lemma.method, digest(lemma.function)[:12]))
    return lines


def _laws() -> list[str]:
    return head("law", "statement") + [row(rule.name, rule.statement) for rule in RULES.values()]


def _network_laws() -> list[str]:
    return head("law", "statement") + [row(rule.name, rule.statement) for rule in NETWORK_RULES.values()]


def _axioms() -> list[str]:
    return head("axiom", "statement") + [row(name, text) for name, text in AXIOMS.items()]


def _number(value: Fraction | None) -> str:
    return "none" if value is None else f"{float(value):.4g}"


def _operators() -> list[str]:
    lines = head("operator", "against", "bound", "example", "bound there")
    for o in OPERATORS.values():
        formula = str(o.error)
        shown = f"`{formula}`" if len(formula) <= _SHORT else f"e{len(o.steps)} of its derivation"
        example = ", ".join(f"{n} = {number_text(Fraction(v))}" for n, v in o.example.items())
        lines.append(row(o.name, o.summary, shown, example, _number(o.bound(o.example).value)))
    return lines


def _growth() -> list[str]:
    lines = head("layer", *(f"after {t}" for t in range(1, _STEPS + 1)))
    for kind, operators in STEPS.items():
        example = {n: v for n, v in operators[0].example.items() if n not in ("e_h", "e_c", "C")}
        values = [_number(b.value) for b in over_time(kind, example, _STEPS)]
        lines.append(row(kind.upper(), *(values + ["none"] * (_STEPS - len(values)))))
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
    "laws": _laws,
    "laws of networks": _network_laws,
    "axioms": _axioms,
    "bounds": _operators,
    "growth of bounds": _growth,
    "derivations": _derivations,
}
"""The generated parts by name; each gives its lines."""
