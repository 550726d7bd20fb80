"""Constructors of expressions: sort checks first, then local simplification.

Every constructor raises TypeError or ValueError where widths or sorts do not fit, naming the
operator and both operands.  The simplifications are the ones symbolic execution lives on: constant
folding, selection from concatenations, and loads that meet the store they read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .expr import Expr, Function, Operand, Param, _algebra, bool_const, bv_const
from .ops import fold_constants
from .sorts import BOOL, BvSort, MemSort, Sort, bv

COMPARISONS = frozenset({"eq", "bvult", "bvule", "bvslt", "bvsle"})
SHIFTS = frozenset({"bvshl", "bvlshr", "bvashr"})
BOOLEAN = frozenset({"and", "or", "xor"})

true = bool_const(True)
false = bool_const(False)


def const(value: int, width: int) -> Expr:
    """The bit-vector literal ``value`` of ``width`` bits.

    >>> const(10, 8)
    0xa
    """
    return bv_const(value, width)


def coerce(value: Operand, sort: Sort, op: str) -> Expr:
    """``value`` as an expression of ``sort``: integers become literals of the needed width."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool) and sort == BOOL:
        return bool_const(value)
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(sort, BvSort):
        return bv_const(value, sort.width)
    raise TypeError(f"Operand of '{op}' must be an expression of sort {sort}, not {value!r}")


def binary(op: str, left: Expr, right: Operand) -> Expr:
    """``left op right`` for every two-place operator."""
    right = coerce(right, left.sort, op)
    if left.sort != right.sort:
        raise TypeError(
            f"Operands of '{op}' must have the same sort, not {left.sort} ({left.describe()}) "
            f"and {right.sort} ({right.describe()})"
        )
    required = BOOL if op in BOOLEAN else None
    words = isinstance(left.sort, BvSort) or (op == "eq" and left.sort == BOOL)
    if (required and left.sort != required) or (op not in BOOLEAN and not words):
        kind = "Booleans" if required else "bit-vectors"
        raise TypeError(f"Operands of '{op}' must be {kind}, not {left.sort} ({left.describe()})")
    return apply_op(op, (left, right), (), BOOL if op in COMPARISONS or op in BOOLEAN else left.sort)


def invert(value: Expr) -> Expr:
    """Boolean negation or bitwise complement."""
    return apply_op("not" if value.sort == BOOL else "bvnot", (value,), (), value.sort)


def negate(value: Expr) -> Expr:
    """Two's complement negation."""
    return apply_op("bvneg", (value,), (), bv(value.width))


def extract(value: Expr, hi: int, lo: int) -> Expr:
    """Bits ``hi`` down to ``lo`` of ``value``."""
    if not 0 <= lo <= hi < value.width:
        raise ValueError(
            f"Bits [{hi}:{lo}] must satisfy 0 <= lo <= hi < {value.width}, the width of {value.describe()}"
        )
    return apply_op("extract", (value,), (hi, lo), bv(hi - lo + 1))


def extend(op: str, value: Expr, width: int) -> Expr:
    """Zero or sign extension to ``width`` bits."""
    if width < value.width:
        raise ValueError(f"Extension of {value.describe()} must reach at least {value.width} bits, not {width}")
    return value if width == value.width else apply_op(op, (value,), (width,), bv(width))


def concat(*parts: Expr) -> Expr:
    """The parts side by side, the first one most significant.

    >>> concat(const(0xA, 4), const(0xB, 4))
    0xab
    """
    if not parts:
        raise ValueError("concat must be given at least one part")
    result = parts[0]
    for part in parts[1:]:
        result = apply_op("concat", (result, part), (), bv(result.width + part.width))
    return result


def ite(condition: Expr, then: Operand, otherwise: Operand) -> Expr:
    """``then`` where ``condition`` holds, else ``otherwise``; at least one must be an expression."""
    if not isinstance(condition, Expr) or condition.sort != BOOL:
        raise TypeError(f"Condition of 'ite' must be a Boolean, not {condition!r}")
    if isinstance(then, Expr):
        otherwise = coerce(otherwise, then.sort, "ite")
    elif isinstance(otherwise, Expr):
        then = coerce(then, otherwise.sort, "ite")
    else:
        raise TypeError(f"Branches of 'ite' must include an expression, not {then!r} and {otherwise!r}")
    assert isinstance(then, Expr)
    if then.sort != otherwise.sort:
        raise TypeError(f"Branches of 'ite' must have the same sort, not {then.sort} and {otherwise.sort}")
    return apply_op("ite", (condition, then, otherwise), (), then.sort)


def all_of(conditions: Sequence[Expr]) -> Expr:
    """Conjunction; true when empty."""
    result = true
    for condition in conditions:
        result = result & condition
    return result


def any_of(conditions: Sequence[Expr]) -> Expr:
    """Disjunction; false when empty."""
    result = false
    for condition in conditions:
        result = result | condition
    return result


def load(memory: Expr, address: Operand) -> Expr:
    """The word of ``memory`` at ``address``."""
    sort = _memory_sort(memory, "load")
    return apply_op("load", (memory, _address(sort, address, "load")), (), bv(sort.data_width))


def store(memory: Expr, address: Operand, data: Operand) -> Expr:
    """``memory`` with the word at ``address`` replaced by ``data``."""
    sort = _memory_sort(memory, "store")
    data = coerce(data, bv(sort.data_width), "store")
    if data.sort != bv(sort.data_width):
        raise TypeError(f"Data of 'store' must have sort bv{sort.data_width}, not {data.sort}")
    return apply_op("store", (memory, _address(sort, address, "store"), data), (), sort)


def load_bytes(memory: Expr, address: Expr, count: int) -> Expr:
    """``count`` consecutive words from ``address`` on, the word at the lowest address least significant."""
    return concat(*(load(memory, address + i) for i in reversed(range(count))))


def store_bytes(memory: Expr, address: Expr, count: int, data: Expr) -> Expr:
    """``memory`` with ``count`` consecutive words from ``address`` on replaced by ``data``, lowest first."""
    word = _memory_sort(memory, "store").data_width
    if data.width != word * count:
        raise TypeError(f"Data of {count} words must have sort bv{word * count}, not {data.sort}")
    for i in range(count):
        memory = store(memory, address + i, data[word * i + word - 1 : word * i])
    return memory


def _memory_sort(memory: Expr, op: str) -> MemSort:
    if not isinstance(memory.sort, MemSort):
        raise TypeError(f"'{op}' must be given a memory, not {memory.describe()} of sort {memory.sort}")
    return memory.sort


def _address(sort: MemSort, address: Operand, op: str) -> Expr:
    address = coerce(address, bv(sort.addr_width), op)
    if address.sort != bv(sort.addr_width):
        raise TypeError(f"Address of '{op}' must have sort bv{sort.addr_width}, not {address.sort}")
    return address


def apply_op(
    op: str,
    args: tuple[Expr, ...],
    params: tuple[Param, ...],
    sort: Sort,
    func: Function | None = None,
) -> Expr:
    """The simplified application of a checked operator to checked operands."""
    if op not in ("load", "store", "apply") and args and all(a.op == "const" for a in args):
        value = fold_constants(op, [a.value for a in args], params, args[0].sort, sort)
        return bool_const(bool(value)) if sort == BOOL else Expr._make("const", (), (value,), sort)
    simpler = _simplifier[0](op, args, params, sort) if _simplifier else None
    return simpler if simpler is not None else Expr._make(op, args, params, sort, func)


Simplifier = Callable[[str, tuple[Expr, ...], tuple[Param, ...], Sort], Expr | None]

_simplifier: list[Simplifier] = []


def use_simplifier(simplifier: Simplifier) -> None:
    """Makes constructors simplify with a function that stands above this module (:mod:`ila_lang.language.simplify`)."""
    _simplifier[:] = [simplifier]


_algebra.register(
    binary=binary,
    coerce=coerce,
    invert=invert,
    negate=negate,
    extract=extract,
    extend=extend,
    load=load,
    store=store,
    apply_op=apply_op,
)
