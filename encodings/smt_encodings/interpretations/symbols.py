"""Operators as symbols: what holds for every function that satisfies the lemmas.

Every format is a sort of its own, every operator an uninterpreted function.  Equality, choice and logic keep their
meaning.  Constants are symbols too; different ones of a format stand for different values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL, FunctionType, PySMTType, Type

from smt_encodings.printer import declarations, term_text

from .protocol import DataFormat, Literal

_LOGIC: dict[str, Callable[..., Any]] = {
    "not": smt.Not,
    "and": smt.And,
    "or": smt.Or,
    "same": smt.EqualsOrIff,
    "select": smt.Ite,
}


class Symbols:
    """The encoding; :meth:`lemma` adds a law that holds for all values of its variables."""

    def __init__(self) -> None:
        self._sorts: dict[str, PySMTType] = {}
        self._names: dict[DataFormat, str] = {}
        self._constants: dict[DataFormat, dict[str, FNode]] = {}
        self._laws: list[FNode] = []
        self._assumptions: list[str] = []

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The laws that were added."""
        return tuple(self._assumptions)

    def variable(self, name: str, kind: DataFormat) -> FNode:
        """An unknown value of the format's sort."""
        return smt.Symbol(name, self._sort(kind))

    def constant(self, value: Literal, kind: DataFormat) -> FNode:
        """A value that differs from those of all other constants of the format."""
        if kind.family == "boolean":
            return smt.Bool(bool(value))
        known = self._constants.setdefault(kind, {})
        text = repr(value)
        if text not in known:
            known[text] = smt.Symbol(f"constant!{self._name(kind)}!{value}", self._sort(kind))
        return known[text]

    def apply(self, op: str, kind: DataFormat, kinds: Sequence[DataFormat], args: Sequence[FNode]) -> FNode:
        """A function symbol named after operator and formats, or logic."""
        if op in _LOGIC:
            return _LOGIC[op](*args)
        name = "!".join([op, *(self._name(k) for k in kinds), self._name(kind)])
        symbol = smt.Symbol(name, FunctionType(self._sort(kind), [self._sort(k) for k in kinds]))
        return smt.Function(symbol, list(args))

    def lemma(self, law: FNode, name: str) -> None:
        """Adds a law, true for all values of its free variables; ``name`` is that of it among the assumptions."""
        bound = [s for s in law.get_free_variables() if not s.symbol_type().is_function_type()]
        bound = [s for s in bound if not s.symbol_name().startswith("constant!")]
        self._laws.append(smt.ForAll(sorted(bound, key=str), law) if bound else law)
        self._assumptions.append(name)

    def script(self, assertions: Sequence[FNode], comment: str = "", beside: Sequence[FNode] = ()) -> str:
        """The question, with the laws, the difference of constants, and further assertions ``beside``."""
        different = [smt.AllDifferent(list(c.values())) for c in self._constants.values() if len(c) > 1]
        terms = [*assertions, *self._laws, *different, *beside]
        lines = [f"; {line}" for line in comment.splitlines()]
        lines.append("(set-logic ALL)")
        lines += [f"(declare-sort {name} 0)" for name in sorted(self._sorts)]
        lines += declarations(terms)
        lines += [f"(assert {term_text(t)})" for t in terms]
        return "\n".join([*lines, "(check-sat)"]) + "\n"

    def _sort(self, kind: DataFormat) -> PySMTType:
        if kind.family == "boolean":
            return BOOL
        name = self._name(kind)
        return self._sorts.setdefault(name, Type(name))

    def _name(self, kind: DataFormat) -> str:
        """A name for a format, which no other format has."""
        if kind not in self._names:
            words = "_".join([kind.family, *(str(p) for p in kind.parameters)])
            name = "".join(c if c.isalnum() else "_" for c in words)
            alike = sum(n.partition("!")[0] == name for n in self._names.values())
            self._names[kind] = f"{name}!{alike + 1}" if alike else name
        return self._names[kind]
