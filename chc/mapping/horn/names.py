"""Readable names for index terms: what invariants and obligations are printed with."""

from __future__ import annotations

import re

from ila_lang import Expr, show_expr
from smt_encodings.environment import plain


def index_text(term: Expr) -> str:
    """An index term as arithmetic over the integers, e.g. ``2*row + 1`` or ``column mod 16``.

    The text is for people; proofs use the term itself.
    """
    return _text(term, top=True)


def _text(term: Expr, top: bool = False) -> str:
    args = term.args
    match term.op:
        case "var":
            return plain(term.name)
        case "const":
            return str(term.value)
        case "zext":
            return _text(args[0], top)
        case "extract":
            hi, lo = int(term.params[0]), int(term.params[1])
            inner = _text(args[0])
            if lo:
                inner = f"{inner} div {1 << lo}"
            if hi < args[0].width - 1 and (lo or hi < 31) and hi - lo + 1 <= 8:
                inner = f"{inner} mod {1 << (hi - lo + 1)}"
            return inner if top or " " not in inner else f"({inner})"
        case "bvshl" if args[1].is_const:
            return f"{1 << args[1].value}*{_text(args[0])}"
        case "bvadd" | "bvsub" | "bvmul":
            op = {"bvadd": "+", "bvsub": "-", "bvmul": "*"}[term.op]
            text = f"{_text(args[0])} {op} {_text(args[1])}"
            return text if top else f"({text})"
        case "concat" if args[1].is_const and args[1].value == 0:
            return f"{1 << args[1].width}*{_text(args[0])}"
    return show_expr(term)


def symbol_name(text: str) -> str:
    """``text`` as an SMT-LIB symbol that needs no quotes."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "term"
