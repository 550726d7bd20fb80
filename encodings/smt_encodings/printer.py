"""pySMT terms as SMT-LIB 2.6 scripts: the term printer that provers and certificates share."""

from __future__ import annotations

from collections.abc import Iterable

from pysmt.fnode import FNode
from pysmt.smtlib.printers import to_smtlib
from pysmt.typing import PySMTType

__all__ = ["declarations", "script", "sort_text", "term_text"]


def term_text(term: FNode) -> str:
    """One term; shared subterms become ``let``."""
    return str(to_smtlib(term, daggify=True))


def sort_text(sort: PySMTType) -> str:
    """A sort as SMT-LIB text."""
    return str(sort.as_smtlib(funstyle=False))


def declarations(terms: Iterable[FNode]) -> list[str]:
    """``declare-fun`` lines for the symbols of ``terms``, sorted by name."""
    symbols = {s for t in terms for s in t.get_free_variables()}
    return [
        f"(declare-fun {_quoted(s)} {s.symbol_type().as_smtlib(funstyle=True)})"
        for s in sorted(symbols, key=lambda s: str(s.symbol_name()))
    ]


def _logic(terms: Iterable[FNode]) -> str:
    """QF_BV where only bit-vectors and Booleans occur (solvers then use their bit-vector engines), else ALL."""
    kinds = [s.symbol_type() for t in terms for s in t.get_free_variables()]
    return "QF_BV" if kinds and all(k.is_bv_type() for k in kinds) else "ALL"


def _quoted(symbol: FNode) -> str:
    return str(to_smtlib(symbol, daggify=False)) if not symbol.symbol_type().is_function_type() else _name(symbol)


def _name(symbol: FNode) -> str:
    from pysmt.utils import quote

    return str(quote(symbol.symbol_name()))


def script(assertions: Iterable[FNode], *, comment: str = "", definitions: Iterable[str] = ()) -> str:
    """A complete script: declarations, one assertion per line, ``(check-sat)``.

    ``definitions`` are extra lines put between declarations and assertions.
    """
    terms = list(assertions)
    lines = [f"; {line}" for line in comment.splitlines()]
    lines.append(f"(set-logic {_logic(terms)})")
    lines += declarations(terms)
    lines += definitions
    lines += [f"(assert {term_text(t)})" for t in terms]
    lines.append("(check-sat)")
    return "\n".join(lines) + "\n"
