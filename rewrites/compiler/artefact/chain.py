"""Chains of rule applications as JSON: explanations of every output, all that their checker needs.

Terms are a table in which operands come first; lines and substitutions refer to terms by their numbers.  What is read
is a claim and nothing more: it counts once :func:`rewrites.egraph.graph_checker.check_graphs` has accepted it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ir_semantics.graph.types import TensorType
from rewrites.egraph import Explanation, Rule, RuleApplication, Substitution, Symbol, Term, term
from rewrites.egraph.explanation import Chain, Congruence, Line

from .errors import ArtefactError, field, items, natural, parts, record, text
from .graphs import attribute_json, attribute_value, attributes_json, attributes_value, type_json, type_value

MOST_TERMS = 1 << 22
"""Terms, and lines, of a chain that is read; a bound of this implementation."""


class _Table:
    """Terms, rules and their numbers; each once."""

    def __init__(self) -> None:
        self.terms: list[list[Any]] = []
        self.numbers: dict[Term, int] = {}
        self.rules: list[list[str]] = []
        self.rule_numbers: dict[Rule, int] = {}

    def term(self, whole: Term) -> int:
        if whole not in self.numbers:
            for at in whole.below():
                if at not in self.numbers:
                    self.numbers[at] = len(self.terms)
                    self.terms.append(self._entry(at))
        return self.numbers[whole]

    def _entry(self, at: Term) -> list[Any]:
        symbol = at.symbol
        if not isinstance(symbol.type, TensorType):
            raise ArtefactError(f"terms of a chain must have types of the tensor IR, not {symbol.type!r:.60}")
        operands = [self.numbers[o] for o in at.operands]
        return [symbol.operator, attributes_json(symbol.attributes), type_json(symbol.type), operands]

    def rule(self, rule: Rule) -> int:
        if rule not in self.rule_numbers:
            self.rule_numbers[rule] = len(self.rules)
            self.rules.append([rule.name, rule.certificate])
        return self.rule_numbers[rule]


def chain_json(explanations: Mapping[str, Explanation]) -> dict[str, Any]:
    """Explanations by output, as JSON.

    Lines that several outputs share are written once for each of them.
    """
    table = _Table()
    outputs = {}
    for name, explanation in explanations.items():
        outputs[name] = {
            "start": table.term(explanation.start),
            "end": table.term(explanation.end),
            "lines": [_line_json(table, line) for line in explanation.lines],
            "chain": _links_json(explanation.chain),
        }
    return {"terms": table.terms, "rules": table.rules, "outputs": outputs}


def _line_json(table: _Table, line: Line) -> dict[str, Any]:
    ends: dict[str, Any] = {"before": table.term(line.before), "after": table.term(line.after)}
    if isinstance(line.reason, Congruence):
        return ends | {"operands": [_links_json(chain) for chain in line.reason.operands]}
    substitution = line.reason.substitution
    return ends | {
        "rule": table.rule(line.reason.rule),
        "given": {name: table.term(operand) for name, operand in substitution.operands},
        "values": {name: _value_json(value) for name, value in substitution.values},
    }


def _value_json(value: object) -> Any:
    return {"type": type_json(value)} if isinstance(value, TensorType) else attribute_json(value)


def _links_json(chain: Chain) -> list[list[Any]]:
    return [[number, forwards] for number, forwards in chain]


def chain_value(where: str, value: object) -> dict[str, Explanation]:
    """Explanations by output from JSON; raises ArtefactError for a document of another form."""
    content = record(where, value, ("terms", "rules", "outputs"))
    terms = _terms(f"{where}: terms", content["terms"])
    rules = []
    for item in items(f"{where}: rules", content["rules"]):
        name, certificate = parts(f"{where}: a rule", item, 2, "have a name and a certificate")
        rules.append(Rule(text(f"{where}: a rule", name), text(f"{where}: a certificate", certificate)))
    explanations = {}
    for name, document in field(f"{where}: outputs", content["outputs"], dict, "an object").items():
        place = f"{where}: output {name}"
        explained = record(place, document, ("start", "end", "lines", "chain"))
        lines = items(f"{place}: lines", explained["lines"])
        if len(lines) > MOST_TERMS:
            raise ArtefactError(f"{place} must have at most {MOST_TERMS} lines, not {len(lines)}")
        explanations[name] = Explanation(
            terms[natural(place, explained["start"], len(terms))],
            terms[natural(place, explained["end"], len(terms))],
            tuple(_line(f"{place}: line {k}", line, terms, rules) for k, line in enumerate(lines)),
            _links(f"{place}: chain", explained["chain"], len(lines)),
        )
    return explanations


def _terms(where: str, value: object) -> list[Term]:
    entries = items(where, value)
    if len(entries) > MOST_TERMS:
        raise ArtefactError(f"{where} must be at most {MOST_TERMS}, not {len(entries)}")
    terms: list[Term] = []
    for number, item in enumerate(entries):
        place = f"{where}: {number}"
        operator, attributes, of, operands = parts(place, item, 4, "be operator, attributes, type and operands")
        symbol = Symbol(text(place, operator), attributes_value(place, attributes), type_value(place, of))
        below = [terms[natural(f"{place}: an operand", o, number)] for o in items(place, operands)]
        terms.append(term(symbol, below))
    return terms


def _line(where: str, value: object, terms: list[Term], rules: list[Rule]) -> Line:
    content = field(where, value, dict, "an object")
    if "operands" in content:
        content = record(where, content, ("before", "after", "operands"))
        chains = items(where, content["operands"])
        reason: RuleApplication | Congruence = Congruence(tuple(_links(where, c, MOST_TERMS) for c in chains))
    else:
        content = record(where, content, ("before", "after", "rule", "given", "values"))
        operands = field(f"{where}: given", content["given"], dict, "an object of terms")
        values = field(f"{where}: values", content["values"], dict, "an object of values")
        reason = RuleApplication(
            rules[natural(f"{where}: rule", content["rule"], len(rules))],
            Substitution.of(
                {name: terms[natural(f"{where}: {name}", t, len(terms))] for name, t in operands.items()},
                {name: _value(f"{where}: {name}", v) for name, v in values.items()},
            ),
        )
    before, after = (terms[natural(f"{where}: {end}", content[end], len(terms))] for end in ("before", "after"))
    return Line(before, after, reason)


def _value(where: str, value: object) -> Any:
    if isinstance(value, dict) and set(value) == {"type"}:
        return type_value(where, value["type"])
    return attribute_value(where, value)


def _links(where: str, value: object, below: int) -> Chain:
    links = []
    for item in items(where, value):
        line, forwards = parts(where, item, 2, "be of lines and directions")
        links.append((natural(where, line, below), field(where, forwards, bool, "a direction, true or false")))
    return tuple(links)
