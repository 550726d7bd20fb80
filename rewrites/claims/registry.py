"""Every rule, lemma and theorem by the name under which the command line, certificates and the compiler know it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from chc.scalar_rules.rule import ScalarRule
from chc.tensor_rules.rule import Kind
from chc.token_order.family import DOUBLE, SINGLE
from ila_lang.extensions import ExtensionError
from reports.subjects import Entry, Subject
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.lemmas.network_rules import NETWORK_RULES
from rewrites.bounds.lemmas.real_rules import RULES as ERROR_RULES
from rewrites.claims.joints.scaled import SCALES
from rewrites.claims.joints.sequences import SEQUENCES
from rewrites.claims.joints.zeros import ZEROS
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.rules.rule_set import RULE_SETS, RuleSet
from smt_encodings.claims import Status

from .names import bound_name, slug
from .subjects.bounds import BoundSubject
from .subjects.layers import LayerSubject
from .subjects.numerics import ErrorRuleSubject, LemmaSubject
from .subjects.scalar import ScalarSubject
from .subjects.tensor import TensorSubject
from .subjects.tokens import TokenSubject

LAYER_RULES: Final = (*SEQUENCES.values(), *ZEROS.values(), *SCALES.values())
"""All rules on layers."""


def entries() -> Mapping[str, Entry]:
    """Rules of all rule sets and on layers, lemmas, theorems; raises ExtensionError where two have one name.

    A wrong rule must be refuted; a wrong rule on scalars has the name of its row, its repairs are numbered.
    """
    known: dict[str, tuple[str, Entry]] = {}
    of_sets = ((s.name, c) for s in RULE_SETS.all().values() for c in (*_scalars(s), *_tensors(s)))
    own = (("", c) for c in (*_layers(), *_lemmas(), *_theorems()))
    for rules, (name, entry) in (*of_sets, *own):
        if not name:
            where = _file(rules, entry)
            raise ExtensionError(f"a rule of {where} must have a name with letters or digits of ASCII: {entry.summary}")
        if name in known:
            files = [_file(*known[name]), _file(rules, entry)]
            where = f"both in {files[0]}" if files[0] == files[1] else f"in {files[0]} and in {files[1]}"
            raise ExtensionError(f"two claims have the name {name}, {where}; rename one of them")
        known[name] = rules, entry
    return {name: entry for name, (_, entry) in known.items()}


def _file(rules: str, entry: Entry) -> str:
    """The file that has a claim, of a rule set where it has a name; the distribution of another package."""
    guest = RULE_SETS.guest(rules) if rules else ""
    if not guest.startswith("module "):
        return guest or entry.build().place()[0]
    module = guest.removeprefix("module ")  # a file of rules in MLIR is none of Python's
    return getattr(sys.modules.get(module), "__file__", None) or module


def _entry(kind: str, summary: str, build: Callable[[], Subject], wrong: bool = False) -> Entry:
    return Entry(summary, build, kind, Status.REFUTED if wrong else Status.PROVED)


def _scalars(of: RuleSet) -> Iterator[tuple[str, Entry]]:
    for row in of.scalar:
        base = slug(row.row)
        groups: list[tuple[str, bool, tuple[ScalarRule, ...]]] = [
            ("", True, (row.wrong,) if row.wrong is not None else ()),
            ("-repaired" if row.wrong is not None else "", False, row.repaired),
            ("-still-wrong", True, row.still_wrong),
        ]
        for suffix, wrong, rules in groups:
            for number, rule in enumerate(rules, 1):
                name = f"{base}{suffix}" + (f"-{number}" if len(rules) > 1 else "")
                yield name, _entry("rule", rule.text, partial(ScalarSubject, name, rule), wrong)


def _tensors(of: RuleSet) -> Iterator[tuple[str, Entry]]:
    for rule in of.tensor:
        name = slug(rule.name)
        yield name, _entry("rule", rule.statement, partial(TensorSubject, name, rule), rule.kind is Kind.WRONG)


def _layers() -> Iterator[tuple[str, Entry]]:
    for rule in LAYER_RULES:
        name = slug(rule.name)
        left, right = rule.sides
        yield name, _entry("rule", f"{left} = {right}", partial(LayerSubject, name, rule))


def _lemmas() -> Iterator[tuple[str, Entry]]:
    for lemma in LEMMAS.values():
        name = f"lemma-{slug(lemma.name)}"
        yield name, _entry("lemma", lemma.statement, partial(LemmaSubject, name, lemma))
    for rule in (*ERROR_RULES.values(), *NETWORK_RULES.values()):
        name = f"error-{slug(rule.name)}"
        yield name, _entry("lemma", rule.statement, partial(ErrorRuleSubject, name, rule))


def _theorems() -> Iterator[tuple[str, Entry]]:
    for name, rules, buffers in (
        ("vta_token_order", DOUBLE, "double buffering"),
        ("vta_token_order_single", SINGLE, "one buffer"),
    ):
        summary = f"VTA's tokens order a blocked matrix product with {buffers} as its sequential order"
        yield name, _entry("theorem", summary, partial(TokenSubject, name, rules))
    for operator in OPERATORS.values():
        name = bound_name(operator.name)
        summary = f"how far {operator.name} lies from {operator.summary}"
        yield name, _entry("theorem", summary, partial(BoundSubject, name, operator))
