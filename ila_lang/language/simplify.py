"""Local simplification of one operator application whose operands are already simplified.

Every rule is an equivalence for all values of the operands; ``tests/ila_lang`` checks each of them
against the operator table by enumeration at small widths.
"""

from __future__ import annotations

from . import build
from .expr import Expr, Param, bool_const, bv_const
from .sorts import BOOL, BvSort, Sort


def simplify(op: str, args: tuple[Expr, ...], params: tuple[Param, ...], sort: Sort) -> Expr | None:
    """An equivalent simpler expression, or None where the application stays as it is."""
    if op in ("and", "or", "xor", "not"):
        return _boolean(op, args)
    if op == "eq":
        return _equation(*args)
    if op == "ite":
        return _ite(*args)
    if op in ("extract", "zext", "concat", "sext"):
        return _bits(op, args, params, sort)
    if op == "load":
        return _load(*args)
    if op == "store":
        return None
    return _arithmetic(op, args)


def _boolean(op: str, args: tuple[Expr, ...]) -> Expr | None:
    first = args[0]
    if op == "not":
        return first.args[0] if first.op == "not" else None
    second = args[1]
    if first.op == "const":
        first, second = second, first
    if second.op == "const":
        if op == "and":
            return first if second.value else build.false
        if op == "or":
            return build.true if second.value else first
        return ~first if second.value else first
    if first is second:
        return build.false if op == "xor" else first
    if op == "xor":
        return None
    if (first.op == "not" and first.args[0] is second) or (second.op == "not" and second.args[0] is first):
        return bool_const(op == "or")
    return None


def _equation(left: Expr, right: Expr) -> Expr | None:
    if left is right:
        return build.true
    if left.op == "const":
        left, right = right, left
    if right.op != "const":
        return None
    if left.sort == BOOL:
        return left if right.value else ~left
    value = right.value
    if left.op == "concat":
        high, low = left.args
        return (high == bv_const(value >> low.width, high.width)) & (
            low == bv_const(value & ((1 << low.width) - 1), low.width)
        )
    if left.op == "zext":
        inner = left.args[0]
        return inner == bv_const(value, inner.width) if value < 1 << inner.width else build.false
    return None


def _ite(condition: Expr, then: Expr, otherwise: Expr) -> Expr | None:
    if condition.op == "const":
        return then if condition.value else otherwise
    if then is otherwise:
        return then
    if condition.op == "not":
        return build.ite(condition.args[0], otherwise, then)
    if then.sort == BOOL and then.op == "const" and otherwise.op == "const":
        return condition if then.value else ~condition
    return None


def _bits(op: str, args: tuple[Expr, ...], params: tuple[Param, ...], sort: Sort) -> Expr | None:
    value = args[0]
    assert isinstance(sort, BvSort)
    if op == "zext":
        return value.args[0].zext(sort.width) if value.op == "zext" else None
    if op == "sext":
        return None
    if op == "concat":
        return _concat(*args)
    hi, lo = int(params[0]), int(params[1])
    if lo == 0 and hi == value.width - 1:
        return value
    if value.op == "extract":
        base = int(value.params[1])
        return value.args[0][hi + base : lo + base]
    if value.op == "zext":
        inner = value.args[0]
        if lo >= inner.width:
            return bv_const(0, sort.width)
        if hi < inner.width:
            return inner[hi:lo]
        return inner[inner.width - 1 : lo].zext(sort.width)
    if value.op == "concat":
        high, low = value.args
        if hi < low.width:
            return low[hi:lo]
        if lo >= low.width:
            return high[hi - low.width : lo - low.width]
        return build.concat(high[hi - low.width : 0], low[low.width - 1 : lo])
    if value.op == "ite" and (value.args[1].op == "const" or value.args[2].op == "const"):
        return build.ite(value.args[0], value.args[1][hi:lo], value.args[2][hi:lo])
    return None


def _concat(high: Expr, low: Expr) -> Expr | None:
    if high.op == "const" and high.value == 0:
        return low.zext(high.width + low.width)
    if high.op == "concat" and high.args[1].op == "const" and low.op == "const":
        return build.concat(high.args[0], build.concat(high.args[1], low))
    if (
        high.op == "extract"
        and low.op == "extract"
        and high.args[0] is low.args[0]
        and int(high.params[1]) == int(low.params[0]) + 1
    ):
        return high.args[0][int(high.params[0]) : int(low.params[1])]
    if high.op == "ite" and low.op == "ite" and high.args[0] is low.args[0]:
        pairs = list(zip(high.args[1:], low.args[1:], strict=True))
        if any(a.op == "const" and b.op == "const" for a, b in pairs):  # what extractions took apart
            return build.ite(high.args[0], *(build.concat(a, b) for a, b in pairs))
    return None


def _load(memory: Expr, address: Expr) -> Expr | None:
    while memory.op == "store":
        base, stored_at, data = memory.args
        if stored_at is address:
            return data
        if not (stored_at.op == "const" and address.op == "const"):
            return None
        memory = base
        if memory.op != "store":
            return build.load(memory, address)
    return None


def _arithmetic(op: str, args: tuple[Expr, ...]) -> Expr | None:
    if len(args) != 2:
        return None
    left, right = args
    if not isinstance(left.sort, BvSort):
        return None
    width, ones = left.width, (1 << left.width) - 1
    if left.op == "const" and op in ("bvadd", "bvmul", "bvand", "bvor", "bvxor"):
        return build.binary(op, right, left)
    if op in ("bvult", "bvslt", "bvsub", "bvxor", "bvule", "bvsle") and left is right:
        if op in ("bvule", "bvsle"):
            return build.true
        return build.false if op in ("bvult", "bvslt") else bv_const(0, width)
    if right.op != "const":
        return None
    value = right.value
    if value == 0:
        if op in ("bvadd", "bvsub", "bvor", "bvxor", "bvshl", "bvlshr", "bvashr"):
            return left
        if op in ("bvmul", "bvand"):
            return right
        if op == "bvult":
            return build.false
    if op == "bvmul" and value == 1:
        return left
    if op == "bvmul" and value & (value - 1) == 0:
        return left << (value.bit_length() - 1)
    if op == "bvand" and value == ones:
        return left
    if op == "bvand" and value & (value + 1) == 0:
        return left[value.bit_length() - 1 : 0].zext(width)
    if op in ("bvudiv", "bvurem") and value and value & (value - 1) == 0:
        shift = value.bit_length() - 1
        if op == "bvudiv":
            return left >> shift
        return left[shift - 1 : 0].zext(width) if shift else bv_const(0, width)
    if op == "bvlshr":
        return left[width - 1 : value].zext(width) if value < width else bv_const(0, width)
    if op == "bvshl" and value >= width:
        return bv_const(0, width)
    if op == "bvadd" and left.op == "bvsub" and left.args[1] is right:
        return left.args[0]
    if op == "bvadd" and left.op == "bvadd" and left.args[1].op == "const":
        combined = left.args[1].value + value
        return left.args[0] + combined if combined <= ones else None
    if op == "bvult" and left.op == "zext" and value >= 1 << left.args[0].width:
        return build.true
    if op == "bvule" and left.op == "zext" and value >= (1 << left.args[0].width) - 1:
        return build.true
    return None


build.use_simplifier(simplify)
