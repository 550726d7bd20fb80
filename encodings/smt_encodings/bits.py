"""Expressions as bit-vector terms: the exact meaning, or with chosen functions left uninterpreted.

The translation is one operator to one SMT-LIB operator, so that it can be read against the operator table.
Memories become SMT arrays; :mod:`bmc` resolves them before they get here unless it is asked not to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL as SMT_BOOL
from pysmt.typing import ArrayType, BVType, FunctionType, PySMTType

from ila_lang import BOOL, BvSort, Expr, Function, MemSort, Sort, inline, postorder

__all__ = ["BitEncoding", "function_name", "function_symbol", "sort_of"]

_TRANSCENDENTAL = frozenset(
    {"exp", "sin", "cos", "tan", "csc", "sec", "cot", "arcsin", "arccos", "arctan", "arccsc", "arcsec", "arccot"}
)
"""Functions of the real numbers that cvc5 knows by these names, and lets no other function have."""


def sort_of(sort: Sort) -> PySMTType:
    """The SMT-LIB sort of an expression sort."""
    if isinstance(sort, BvSort):
        return BVType(sort.width)
    if isinstance(sort, MemSort):
        return ArrayType(BVType(sort.addr_width), BVType(sort.data_width))
    return SMT_BOOL


def function_symbol(function: Function) -> FNode:
    """The uninterpreted symbol of a function."""
    kind = FunctionType(sort_of(function.result), [sort_of(p.sort) for p in function.params])
    return smt.Symbol(function_name(function.name), kind)


def function_name(name: str) -> str:
    """The name of a function in scripts; models may call theirs ``exp``, which a solver takes for its own.

    >>> function_name("max"), function_name("exp")
    ('max', 'exp!data')
    """
    return f"{name}!data" if name in _TRANSCENDENTAL else name


class BitEncoding:
    """Translates expressions to terms.

    Functions named in ``keep`` and those without a body stay uninterpreted, others are inlined.
    """

    def __init__(self, keep: frozenset[str] = frozenset()) -> None:
        self.keep = keep
        self._memo: dict[Expr, FNode] = {}
        self._functions: dict[str, Function] = {}

    def term(self, root: Expr) -> FNode:
        """The term of ``root``; raises ValueError where two functions that stay uninterpreted have one name."""
        root = inline(root, self.keep)
        for node in postorder([root]):
            if node not in self._memo:
                self._memo[node] = self._node(node, [self._memo[a] for a in node.args])
        return self._memo[root]

    def _node(self, node: Expr, args: list[FNode]) -> FNode:
        match node.op:
            case "var":
                return smt.Symbol(node.name, sort_of(node.sort))
            case "const":
                return smt.Bool(bool(node.value)) if node.sort == BOOL else smt.BV(node.value, node.width)
            case "apply":
                assert node.func is not None
                if self._functions.setdefault(node.func.name, node.func) is not node.func:
                    # one symbol for two functions would make them equal
                    raise ValueError(f"Uninterpreted functions must have names of their own, not two {node.func.name}")
                return smt.Function(function_symbol(node.func), args)
            case "eq":
                return smt.EqualsOrIff(args[0], args[1])
            case "extract":
                return smt.BVExtract(args[0], int(node.params[1]), int(node.params[0]))
            case "zext":
                return smt.BVZExt(args[0], node.width - node.args[0].width)
            case "sext":
                return smt.BVSExt(args[0], node.width - node.args[0].width)
        return _OPERATORS[node.op](*args)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "not": smt.Not,
    "and": smt.And,
    "or": smt.Or,
    "xor": lambda a, b: smt.Not(smt.Iff(a, b)),
    "ite": smt.Ite,
    "bvnot": smt.BVNot,
    "bvneg": smt.BVNeg,
    "bvadd": smt.BVAdd,
    "bvsub": smt.BVSub,
    "bvmul": smt.BVMul,
    "bvudiv": smt.BVUDiv,
    "bvurem": smt.BVURem,
    "bvand": smt.BVAnd,
    "bvor": smt.BVOr,
    "bvxor": smt.BVXor,
    "bvshl": smt.BVLShl,
    "bvlshr": smt.BVLShr,
    "bvashr": smt.BVAShr,
    "bvult": smt.BVULT,
    "bvule": smt.BVULE,
    "bvslt": smt.BVSLT,
    "bvsle": smt.BVSLE,
    "concat": smt.BVConcat,
    "load": smt.Select,
    "store": smt.Store,
}
