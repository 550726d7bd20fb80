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
from smt_encodings.environment import symbol_text


def sort_of(sort: Sort) -> PySMTType:
    """The SMT-LIB sort of an expression sort."""
    if isinstance(sort, BvSort):
        return BVType(sort.width)
    if isinstance(sort, MemSort):
        return ArrayType(BVType(sort.addr_width), BVType(sort.data_width))
    return SMT_BOOL


def function_text(function: Function) -> str:
    """The text of a function in scripts; no two functions of a proof have one, whatever they are called."""
    return symbol_text(function, function.name)


def variable_text(variable: Expr) -> str:
    """The text of a variable in scripts that speak of bits; where it is an integer, it is another symbol."""
    return symbol_text((variable, "bits"), variable.name)


class BitEncoding:
    """Translates expressions to terms.

    Functions named in ``keep`` and those without a body stay uninterpreted, others are inlined.
    """

    def __init__(self, keep: frozenset[str] = frozenset()) -> None:
        self.keep = keep
        self._memo: dict[Expr, FNode] = {}

    def term(self, root: Expr) -> FNode:
        """The term of ``root``."""
        root = inline(root, self.keep)
        for node in postorder([root]):
            if node not in self._memo:
                self._memo[node] = self._node(node, [self._memo[a] for a in node.args])
        return self._memo[root]

    def _node(self, node: Expr, args: list[FNode]) -> FNode:
        match node.op:
            case "var":
                return smt.Symbol(variable_text(node), sort_of(node.sort))
            case "const":
                return smt.Bool(bool(node.value)) if node.sort == BOOL else smt.BV(node.value, node.width)
            case "apply":
                assert node.func is not None
                kind = FunctionType(sort_of(node.sort), [sort_of(p.sort) for p in node.func.params])
                return smt.Function(smt.Symbol(function_text(node.func), kind), args)
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
