"""pySMT terms as SMT-LIB 2.6 scripts: the term printer that provers and certificates share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from io import StringIO

from pysmt.environment import Environment, get_env
from pysmt.fnode import FNode
from pysmt.smtlib.printers import SmtPrinter, to_smtlib
from pysmt.utils import quote

from .caching import cached_with_symbols

SMALL = 300
"""Terms up to this many nodes, written as trees, are printed without ``let``."""


@cached_with_symbols(100_000)
def term_text(term: FNode) -> str:
    """One term; shared subterms of large terms become ``let``."""
    if _tree_size(term, SMALL) > SMALL:
        return str(to_smtlib(term))
    printer, stream = _tree_printer(get_env()), StringIO()
    printer.stream, printer.write = stream, stream.write
    printer.printer(term)
    return stream.getvalue()


@lru_cache(maxsize=1)
def _tree_printer(_: Environment) -> SmtPrinter:
    """pySMT's printer of trees; to make one takes longer than to print a small term."""
    return SmtPrinter(StringIO())


def _tree_size(term: FNode, limit: int) -> int:
    """Number of nodes of the term as a tree, or something beyond ``limit``."""
    count, stack = 0, [term]
    while stack and count <= limit:
        count += 1
        stack.extend(stack.pop().args())
    return count


def declarations(terms: Iterable[FNode]) -> list[str]:
    """``declare-fun`` lines for the symbols of ``terms``, sorted by name."""
    symbols = {s for t in terms for s in t.get_free_variables()}
    return [_declaration(s) for s in sorted(symbols, key=lambda s: str(s.symbol_name()))]


@cached_with_symbols(100_000)
def _declaration(symbol: FNode) -> str:
    return f"(declare-fun {quote(symbol.symbol_name())} {symbol.symbol_type().as_smtlib(funstyle=True)})"


def _logic(terms: Iterable[FNode]) -> str:
    """QF_BV where only bit-vectors and Booleans occur (solvers then use their bit-vector engines), else ALL."""
    kinds = [s.symbol_type() for t in terms for s in t.get_free_variables()]
    return "QF_BV" if kinds and all(k.is_bv_type() for k in kinds) else "ALL"


def script(assertions: Iterable[FNode], *, comment: str = "") -> str:
    """A complete script: declarations, one assertion per line, ``(check-sat)``."""
    terms = list(assertions)
    lines = [f"; {line}" for line in comment.splitlines()]
    lines.append(f"(set-logic {_logic(terms)})")
    lines += declarations(terms)
    lines += [f"(assert {term_text(t)})" for t in terms]
    lines.append("(check-sat)")
    return "\n".join(lines) + "\n"
