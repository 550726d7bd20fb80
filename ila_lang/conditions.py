"""Conditions on sizes as mathematics for people: ``2 <= T <= 65534``, ``base + 16*nv*ceil(T/16) <= 65536``.

The text is made from the condition, so it says what the condition says.  It is arithmetic over the integers: it means
the condition wherever no operation leaves its width, which provers for all sizes prove of a size domain.
"""

from __future__ import annotations

from .language.build import const
from .language.expr import Expr, postorder
from .text.listing import show_expr

_SUM, _PRODUCT, _ATOM = 1, 2, 3
"""How tightly a text holds together: what is below _PRODUCT needs parentheses in a product."""
_RELATIONS = {"bvule": "<=", "bvult": "<", "eq": "="}
_NEGATED = {"bvule": "<", "bvult": "<="}
_Text = tuple[str, int]


def condition_text(condition: Expr) -> str:
    """A condition on sizes in words; what is no arithmetic on sizes looks as :func:`show_expr` shows it.

    >>> from ila_lang import bv, var
    >>> n = var("n", bv(32))
    >>> condition_text((n >= 1) & (n <= 341)), condition_text(((n + 7)[31:3].zext(32) << 4) < 900)
    ('1 <= n <= 341', '16*ceil(n/8) < 900')
    """
    if condition.op == "and":
        left, right = (condition_text(part) for part in condition.args)
        shared = _larger_side(condition.args[0])
        if shared is not None and shared is _smaller_side(condition.args[1]):
            return left + right.removeprefix(size_text(shared))
        return f"{left} and {right}"
    if condition.op == "or":
        return " or ".join(f"({t})" if " and " in t else t for t in map(condition_text, condition.args))
    negated = condition.op == "not"
    inner = condition.args[0] if negated else condition
    if (
        inner.op == "eq"
        and inner.args[0].op in ("extract", "bvurem")
        and inner.args[1] is const(0, inner.args[1].width)
    ):
        dividend, _, divisor = size_text(inner.args[0]).rpartition(" mod ")
        if dividend and divisor.isalnum():
            return f"{dividend} is {'no' if negated else 'a'} multiple of {divisor}"
    if inner.op not in _RELATIONS or inner.args[0].sort == condition.sort:
        return show_expr(condition)
    left, right = map(size_text, inner.args)
    if inner.op == "eq" and inner.args[1].op == "var":
        left, right = right, left
    if not negated:
        return f"{left} {_RELATIONS[inner.op]} {right}"
    return f"{left} != {right}" if inner.op == "eq" else f"{right} {_NEGATED[inner.op]} {left}"


def _smaller_side(comparison: Expr) -> Expr | None:
    if comparison.op == "not" and comparison.args[0].op in _NEGATED:
        return comparison.args[0].args[1]
    return comparison.args[0] if comparison.op in _NEGATED else None


def _larger_side(comparison: Expr) -> Expr | None:
    if comparison.op == "not" and comparison.args[0].op in _NEGATED:
        return comparison.args[0].args[0]
    return comparison.args[1] if comparison.op in _NEGATED else None


def size_text(root: Expr) -> str:
    """A term over sizes in words.

    >>> from ila_lang import bv, var
    >>> size_text(var("n", bv(16)).zext(32) * 2 + 1)
    '2*n + 1'
    """
    texts: dict[Expr, _Text] = {}
    for node in postorder([root]):
        texts[node] = _node(node, texts)
    return texts[root][0]


def _node(node: Expr, texts: dict[Expr, _Text]) -> _Text:
    args = node.args
    match node.op:
        case "var":
            return node.name, _ATOM
        case "const":
            return str(node.value), _ATOM
        case "zext":
            return texts[args[0]]
        case "bvadd" | "bvsub":
            right = _at_least(texts[args[1]], _SUM if node.op == "bvadd" else _PRODUCT)
            return f"{texts[args[0]][0]} {'+' if node.op == 'bvadd' else '-'} {right}", _SUM
        case "bvmul" | "bvshl" if node.op == "bvmul" or args[1].is_const:
            number, factors = _factors(node)
            parts = [_at_least(texts[f], _PRODUCT) for f in factors]
            return "*".join([str(number)] * (number != 1 or not parts) + parts), _PRODUCT
        case "bvudiv":
            return _quotient(args[0], _at_least(texts[args[1]], _ATOM), texts), _ATOM
        case "bvurem":
            return f"{_at_least(texts[args[0]], _ATOM)} mod {_at_least(texts[args[1]], _ATOM)}", _SUM
        case "bvlshr" if args[1].is_const:
            return _quotient(args[0], str(1 << args[1].value), texts), _ATOM
        case "extract":
            high, low = int(node.params[0]), int(node.params[1])
            shifted = (_quotient(args[0], str(1 << low), texts), _ATOM) if low else texts[args[0]]
            if high == args[0].width - 1:
                return shifted
            return f"{_at_least(shifted, _ATOM)} mod {1 << (high - low + 1)}", _SUM
    return show_expr(node), _SUM


def _at_least(text: _Text, level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"


def _factors(node: Expr) -> tuple[int, list[Expr]]:
    """A product as a number and other factors, by their order."""
    if node.is_const:
        return node.value, []
    if node.op == "zext":
        return _factors(node.args[0])
    if node.op == "bvshl" and node.args[1].is_const:
        number, factors = _factors(node.args[0])
        return number << node.args[1].value, factors
    if node.op == "bvmul":
        (a, left), (b, right) = map(_factors, node.args)
        return a * b, [*left, *right]
    return 1, [node]


def _quotient(dividend: Expr, divisor: str, texts: dict[Expr, _Text]) -> str:
    """A quotient, rounded up where the dividend is a number plus the divisor minus 1."""
    if dividend.op == "bvadd" and dividend.args[1].is_const and divisor == str(dividend.args[1].value + 1):
        return f"ceil({_at_least(texts[dividend.args[0]], _PRODUCT)}/{divisor})"
    return f"floor({_at_least(texts[dividend], _PRODUCT)}/{divisor})"
