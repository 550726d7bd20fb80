"""Terms as few and narrow operations on arrays, by what is known of the ranges of their values.

Nodes of a term become operations of :mod:`ila_lang.arrays.ranges`, each in the form that its users need.  Choices that
are a minimum, a maximum, a magnitude or a shift without loss are recognised.  A part of a term that depends on a single
narrow part is looked up in a table of all its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_terms
from ila_lang.language.build import concat, const
from ila_lang.language.expr import Expr, Function, postorder, rebuild, substitute, var
from ila_lang.language.sorts import BOOL, BvSort, bv

from .ranges import Form, Lines, Operand, array_text, fits, literal, truth

#: Terms are lowered in layers of this depth, so that no recursion is deep.
DEEPEST = 40
#: Parts of a term that depend on at most this many bits may become tables.
KEY_BITS = 10
#: Functions of at most this many argument bits may become tables.
ARGUMENT_BITS = 16
#: Parts of fewer operators are as fast as a look-up.
WORTHWHILE = 5
WORTHWHILE_MANY = 12
#: On arrays of at least this many words arithmetic is faster than a choice between two arrays.
MANY = 4096

_TWIN = {"bvslt": "bvsle", "bvsle": "bvslt", "bvult": "bvule", "bvule": "bvult"}


@dataclass(frozen=True)
class Lowered:
    """A term as a function of arrays, and the form of its result."""

    function: Callable[..., Any]
    form: Form


@lru_cache(maxsize=512)
def lower(root: Expr, leaves: tuple[tuple[str, Form], ...], canonical: bool, many: bool) -> Lowered:
    """The term as a function of arrays for its variables, in the order of ``leaves``.

    The result is congruent to the term's value modulo 2 to its width, and with ``canonical`` it is that value, in 64
    bits (Booleans are Booleans).  It has the shape to which the arrays of the variables that still matter are
    broadcast. With ``many`` it is for large arrays.
    """
    root = _unfolded(root)
    writer = _Writer(root, dict(leaves), many)
    depths: dict[Expr, int] = {}
    for node in postorder([root]):
        depths[node] = 1 + max((depths[a] for a in node.args), default=0)
        if depths[node] % DEEPEST == 0:
            # what is not used is left out later
            (writer.boolean if node.sort == BOOL else writer.free)(node)
    result = writer.boolean(root) if root.sort == BOOL else writer.unsigned(root) if canonical else writer.free(root)
    bits = 64 if canonical and root.sort != BOOL else result.bits
    if bits is None:
        bits = 32 if fits(result.low, result.high, 32) else 64
    return Lowered(writer.build(array_text(result, bits)), Form(bits, result.low, result.high))


def _unfolded(root: Expr) -> Expr:
    """The term without applications of functions, except those that are looked up in tables."""
    done: dict[Expr, Expr] = {}
    for node in postorder([root]):
        new = rebuild(node, tuple(done[a] for a in node.args)) if node.args else node
        if new.op == "apply" and new.func is not None and _table_bits(new) > ARGUMENT_BITS:
            new = _unfolded(new.func.unfold(new.args))
        done[node] = new
    return done[root]


def unfolded_size(root: Expr) -> int:
    """The number of nodes of a term, with those of the functions that it applies."""
    return sum(1 + (_size(n.func) if n.func is not None and n.func.body is not None else 0) for n in postorder([root]))


def _table_bits(node: Expr) -> int:
    """Bits of the index of a table for an application; more than any table has where there should not be one."""
    assert node.func is not None
    if node.func.body is None or not isinstance(node.sort, BvSort) or _size(node.func) < WORTHWHILE:
        return ARGUMENT_BITS + 1
    open_arguments = [a for a in node.args if a.op != "const"]
    if not open_arguments or not all(isinstance(a.sort, BvSort) for a in open_arguments):
        return ARGUMENT_BITS + 1
    return sum(a.width for a in open_arguments)


@cache
def _size(function: Function) -> int:
    assert function.body is not None
    return len(postorder([function.body]))


@lru_cache(maxsize=128)
def _values(root: Expr, parameters: tuple[Expr, ...]) -> tuple[NDArray[Any], int, int]:
    """The term's values, indexed by the parameters side by side; numbers with the sign bit set are negative."""
    below = sum(p.width for p in parameters)
    index = np.arange(1 << below, dtype=np.int64)
    arguments = []
    for parameter in parameters:
        below -= parameter.width
        arguments.append(index >> below & (1 << parameter.width) - 1)
    (found,) = compile_terms(parameters, [root], vector=True)(*arguments)
    values = np.broadcast_to(np.asarray(found), index.shape)
    if root.sort == BOOL:
        return values.astype(bool), 0, 1
    sign = 1 << root.width - 1
    values = (values.astype(np.int64) ^ sign) - sign
    low, high = int(values.min()), int(values.max())
    return values.astype(np.int32 if fits(low, high, 32) else np.int64), low, high


class _Writer(Lines):
    """Emits the operations of a term; ``free``, ``unsigned``, ``signed`` and ``boolean`` give operands."""

    def __init__(self, root: Expr, leaves: Mapping[str, Form], many: bool) -> None:
        super().__init__(leaves, many)
        self.memo: dict[tuple[str, Expr], Operand] = {}
        self.keys, self.cones = _keys(root)

    # -- operands ----

    def free(self, node: Expr) -> Operand:
        """An integer that is congruent to the node's value."""
        return self._once("free", node, self._looked_up if self._in_table(node) else self._free)

    def boolean(self, node: Expr) -> Operand:
        """A Boolean; a literal is 0 or 1."""
        return self._once("free", node, self._looked_up if self._in_table(node) else self._boolean)

    def unsigned(self, node: Expr) -> Operand:
        """The node's value."""
        return self._once("unsigned", node, self._unsigned)

    def signed(self, node: Expr) -> Operand:
        """The node's value, read as signed."""
        return self._once("signed", node, self._signed)

    def _once(self, kind: str, node: Expr, make: Callable[[Expr], Operand]) -> Operand:
        found = self.memo.get((kind, node))
        if found is None:
            found = self.memo[kind, node] = make(node)
        return found

    def _unsigned(self, node: Expr) -> Operand:
        return literal(node.value) if node.op == "const" else self.cut(self.free(node), node.width)

    def _signed(self, node: Expr) -> Operand:
        if node.op == "var" and self.leaves[node.name].raw and node.width in (8, 16):
            # the array's own words, read as signed
            sign = 1 << node.width - 1
            return self.line(
                f"{self.names[node.name]}.astype(np.int{node.width}).astype(np.int32)", 32, -sign, sign - 1
            )
        return self.cut_signed(self.free(node), node.width)

    # -- tables ----

    def _in_table(self, node: Expr) -> bool:
        return self.cones.get(node, 0) >= (WORTHWHILE_MANY if self.many else WORTHWHILE)

    def _looked_up(self, node: Expr) -> Operand:
        """A node that depends on a single narrow one, from a table of all its values."""
        key = self.keys[node]
        assert key is not None
        whole, lo, hi = key
        few = var("key", bv(hi - lo + 1))
        # the other bits do not matter
        number = concat(few, const(0, lo)) if lo else few
        table = substitute(node, {whole: number.zext(whole.width)})
        return self._table(table, (few,), [self.unsigned(whole[hi:lo])])

    def _apply(self, node: Expr) -> Operand:
        """A function of few argument bits, from a table."""
        assert node.func is not None
        arguments = [a if a.op == "const" else var(f"argument.{i}", a.sort) for i, a in enumerate(node.args)]
        parameters = tuple(a for a in arguments if a.op != "const")
        indices = [self.unsigned(a) for a in node.args if a.op != "const"]
        return self._table(node.func.unfold(tuple(arguments)), parameters, indices)

    def _table(self, root: Expr, parameters: tuple[Expr, ...], indices: list[Operand]) -> Operand:
        """The value of ``root`` where its parameters have the values ``indices``."""
        values, low, high = _values(root, parameters)
        if all(i.bits is None for i in indices):
            at = 0
            for parameter, index in zip(parameters, indices, strict=True):
                at = at << parameter.width | index.low
            low = high = int(values[at])
        if low == high:
            return truth(bool(low)) if root.sort == BOOL else literal(low)
        place = indices[0].text
        for parameter, index in zip(parameters[1:], indices[1:], strict=True):
            place = f"({place} << {parameter.width} | {index.text})"
        name = f"table{len(self.namespace)}"
        self.namespace[name] = values
        return self.line(f"{name}.take({place})", 0 if root.sort == BOOL else values.dtype.itemsize * 8, low, high)

    # -- integers ----

    def _free(self, node: Expr) -> Operand:
        width = node.width
        match node.op, node.args:
            case "const", _:
                value = node.value
                return literal(value if value < 1 << width - 1 or width == 1 else value - (1 << width))
            case "var", _:
                return self._leaf(node)
            case "apply", _:
                return self._apply(node)
            case "bvadd", (a, b):
                x, y = self.free(a), self.free(b)
                return self.wrapping("{0} + {1}", x, y, x.low + y.low, x.high + y.high, width)
            case "bvsub", (a, b):
                x, y = self.free(a), self.free(b)
                return self.wrapping("{0} - {1}", x, y, x.low - y.high, x.high - y.low, width)
            case "bvneg", (a,):
                x = self.free(a)
                return self.wrapping("{0} - {1}", literal(0), x, -x.high, -x.low, width)
            case "bvnot", (a,):
                x = self.free(a)
                return self.wrapping("{0} ^ {1}", x, literal(-1), -1 - x.high, -1 - x.low, width)
            case "bvmul", (a, b):
                x, y = self.free(a), self.free(b)
                ends = [i * j for i in (x.low, x.high) for j in (y.low, y.high)]
                return self.wrapping("{0} * {1}", x, y, min(ends), max(ends), width)
            case ("bvand" | "bvor" | "bvxor") as op, (a, b):
                x, y = (literal(n.value) if n.op == "const" and op == "bvand" else self.free(n) for n in (a, b))
                return self.bitwise(op, x, y, width)
            case "concat", (a, b):
                x, y = self.free(a), self.unsigned(b)
                shift = b.width
                low, high = (x.low << shift) + y.low, (x.high << shift) + y.high
                return self.wrapping(f"({{0}} << {shift}) | {{1}}", x, y, low, high, width)
            case "extract", (a,):
                return self._extract(a, int(node.params[1]))
            case "zext", (a,):
                return self.unsigned(a)
            case "sext", (a,):
                return self.signed(a)
            case ("bvshl" | "bvlshr" | "bvashr") as op, (a, b):
                number = {"bvshl": self.free, "bvlshr": self.unsigned, "bvashr": self.signed}[op]
                return self.shift(op, number(a), self.unsigned(b), width)
            case ("bvudiv" | "bvurem") as op, (a, b):
                return self.divide(op, self.unsigned(a), self.unsigned(b), width)
            case "ite", _:
                return self._choice(node)
        raise AssertionError(f"{node.describe()} is no operator on arrays")

    def _leaf(self, node: Expr) -> Operand:
        form, name = self.leaves[node.name], self.names[node.name]
        if form.raw:
            if node.width <= 31:
                return self.line(f"{name}.astype(np.int32)", 32, form.low, form.high)
            if node.width == 32:
                return self.line(f"{name}.astype(np.int32)", 32, -1 << 31, (1 << 31) - 1)
            return self.line(f"{name}.astype(np.int64)", 64, form.low, form.high)
        if form.bits == 64 and (fits(form.low, form.high, 32) or node.width <= 32) and self.many:
            low, high = (form.low, form.high) if fits(form.low, form.high, 32) else (-1 << 31, (1 << 31) - 1)
            return self.line(f"{name}.astype(np.int32)", 32, low, high)
        return Operand(name, form.bits, form.low, form.high)

    def _extract(self, value: Expr, from_: int) -> Operand:
        found = self.free(value)
        if from_ == 0 or found.bits is None:
            return literal(found.low >> from_) if found.bits is None else found
        return self.line(f"{found.text} >> {from_}", found.bits, found.low >> from_, found.high >> from_)

    # -- choices ----

    def _choice(self, node: Expr) -> Operand:
        condition, then, otherwise = node.args
        found = self._extreme(node) or self._magnitude(node) or self._moved(node)
        if found is not None:
            return found
        test = self.boolean(condition)
        if test.bits is None:
            return self.free(then if test.low else otherwise)
        return self.select(test, self.free(then), self.free(otherwise))

    def _extreme(self, node: Expr) -> Operand | None:
        """The smaller or the larger of two numbers, or a number between two constants."""
        condition, then, otherwise = node.args
        if condition.op not in ("bvslt", "bvsle", "bvult", "bvule"):
            return None
        left, right = condition.args
        number = self.signed if condition.op in ("bvslt", "bvsle") else self.unsigned
        if _congruent(then, left) and _congruent(otherwise, right):
            return self.extreme("minimum", number(left), number(right))
        if _congruent(then, right) and _congruent(otherwise, left):
            return self.extreme("maximum", number(left), number(right))
        if otherwise.op != "ite" or otherwise.args[0].op not in (condition.op, _TWIN[condition.op]):
            return None
        inner, then_inside, rest = otherwise.args
        first, second = (condition.args, then), (inner.args, then_inside)
        for (high_test, at_high), (low_test, at_low) in ((first, second), (second, first)):
            high, value = high_test
            other, low = low_test
            if not (high.op == low.op == "const" and value is other and number(low).low <= number(high).low):
                continue
            if _congruent(at_high, high) and _congruent(at_low, low) and _congruent(rest, value):
                return self.extreme("minimum", self.extreme("maximum", number(value), number(low)), number(high))
        return None

    def _magnitude(self, node: Expr) -> Operand | None:
        """``-x`` where ``x`` is negative, else ``x``."""
        condition, then, otherwise = node.args
        if then.op != "bvneg" or then.args[0] is not otherwise or not _is_sign(condition, otherwise):
            return None
        x = self.signed(otherwise)
        if x.bits is None or not fits(0, -x.low, x.bits):
            return None
        return self.line(f"np.abs({x.text})", x.bits, 0, max(-x.low, x.high))

    def _moved(self, node: Expr) -> Operand | None:
        """``x << k`` where the first bits of ``x``, at least k, are 0, else ``x``: no bit is lost."""
        condition, then, otherwise = node.args
        if then.op != "bvshl" or then.args[0] is not otherwise or then.args[1].op != "const":
            return None
        width, by = otherwise.width, then.args[1].value
        if condition.op != "eq" or condition.args[0].op != "extract" or condition.args[1].op != "const":
            return None
        bits_tested, zero = condition.args
        hi, lo = (int(p) for p in bits_tested.params)
        if bits_tested.args[0] is not otherwise or zero.value or hi != width - 1 or width - lo < by:
            return None
        x = self.unsigned(otherwise)
        if x.bits is None or width >= x.bits:
            return None
        test = self.boolean(condition)
        if test.bits is None:
            return None
        if self.many:
            return self.line(f"{x.text} << ({test.text}.astype(np.int{x.bits}) * {by})", x.bits, 0, (1 << width) - 1)
        return self.line(f"np.where({test.text}, {x.text} << {by}, {x.text})", x.bits, 0, (1 << width) - 1)

    # -- Booleans ----

    def _boolean(self, node: Expr) -> Operand:
        match node.op, node.args:
            case "const", _:
                return Operand(str(bool(node.value)), None, node.value, node.value)
            case "var", _:
                name, form = self.names[node.name], self.leaves[node.name]
                return self.line(f"{name}.astype(bool)", 0, 0, 1) if form.raw or form.bits else Operand(name, 0, 0, 1)
            case "not", (a,):
                x = self.boolean(a)
                return truth(not x.low) if x.bits is None else self.line(f"~{x.text}", 0, 0, 1)
            case ("and" | "or" | "xor") as op, (a, b):
                x, y = self.boolean(a), self.boolean(b)
                if x.bits is None or y.bits is None:
                    literal, other = (x, y) if x.bits is None else (y, x)
                    if op != "xor":
                        return other if bool(literal.low) == (op == "and") else literal
                    if other.bits is None:
                        return truth(x.low != y.low)
                    return self.line(f"~{other.text}", 0, 0, 1) if literal.low else other
                return self.line(f"{x.text} {({'and': '&', 'or': '|', 'xor': '^'})[op]} {y.text}", 0, 0, 1)
            case "ite", (c, a, b):
                test, x, y = self.boolean(c), self.boolean(a), self.boolean(b)
                if test.bits is None:
                    return x if test.low else y
                return self.line(f"np.where({test.text}, {x.text}, {y.text})", 0, 0, 1)
            case "apply", _:
                return self._apply(node)
            case "eq", (a, b):
                return self._equal(a, b)
            case ("bvult" | "bvule" | "bvslt" | "bvsle") as op, (a, b):
                number = self.unsigned if op in ("bvult", "bvule") else self.signed
                x, y = number(a), number(b)
                strict = op in ("bvult", "bvslt")
                if x.high < y.low or (x.high == y.low and not strict):
                    return truth(True)
                if x.low > y.high or (x.low == y.high and strict):
                    return truth(False)
                return self.line(f"{x.text} {'<' if strict else '<='} {y.text}", 0, 0, 1)
        raise AssertionError(f"{node.describe()} is no Boolean operator on arrays")

    def _equal(self, a: Expr, b: Expr) -> Operand:
        if a.op == "const":
            a, b = b, a
        if a.sort == BOOL:
            x, y = self.boolean(a), self.boolean(b)
            if x.bits is None and y.bits is None:
                return truth(x.low == y.low)
            return self.line(f"{x.text} == {y.text}", 0, 0, 1)
        if b.op == "const" and a.op == "extract":
            found = self._bits_are(a, b.value)
            if found is not None:
                return found
        x, y = self.signed(a), self.signed(b)
        if not (self._is_signed(a) and (b.op == "const" or self._is_signed(b))):
            x, y = self.unsigned(a), self.unsigned(b)
        if x.high < y.low or y.high < x.low:
            return truth(False)
        if x.bits is None and y.bits is None:
            return truth(True)
        return self.line(f"{x.text} == {y.text}", 0, 0, 1)

    def _is_signed(self, node: Expr) -> bool:
        """Whether the integer for the node is its value, read as signed."""
        found, sign = self.free(node), 1 << node.width - 1
        return -sign <= found.low and found.high < sign

    def _bits_are(self, node: Expr, value: int) -> Operand | None:
        """Whether some bits of a number are ``value``, without moving them."""
        (whole,) = node.args
        hi, lo = (int(p) for p in node.params)
        x = self.free(whole)
        if x.bits is None:
            return truth((x.low >> lo) % (1 << node.width) == value)
        if hi == whole.width - 1:
            if x.low >= 0 and x.high < 1 << whole.width and value == 0:
                return truth(True) if x.high < 1 << lo else self.line(f"{x.text} < {1 << lo}", 0, 0, 1)
            if lo == hi and self._is_signed(whole):
                return self.line(f"{x.text} {'<' if value else '>='} 0", 0, 0, 1)
        mask = (1 << node.width) - 1 << lo
        if not fits(0, mask, x.bits):
            return None
        return self.line(f"({x.text} & {mask}) == {value << lo}", 0, 0, 1)


def _congruent(branch: Expr, number: Expr) -> bool:
    """Whether a branch of a choice is ``number``, or its last bits."""
    if branch is number:
        return True
    if branch.op == "const" and number.op == "const":
        return branch.width <= number.width and branch.value == number.value % (1 << branch.width)
    return branch.op == "extract" and int(branch.params[1]) == 0 and branch.args[0] is number


def _is_sign(condition: Expr, number: Expr) -> bool:
    """Whether the condition says that a number is negative."""
    if condition.op == "bvslt":
        return condition.args[0] is number and condition.args[1].op == "const" and condition.args[1].value == 0
    if condition.op != "eq" or condition.args[0].op != "extract" or condition.args[1].op != "const":
        return False
    bit, one = condition.args
    return bit.args[0] is number and bit.params == (number.width - 1, number.width - 1) and one.value == 1


#: Bits ``lo`` to ``hi`` of a node, as (node, lo, hi).
Bits = tuple[Expr, int, int]


def _keys(root: Expr) -> tuple[dict[Expr, Bits | None], dict[Expr, int]]:
    """For each node the few bits of one node that alone decide it, if any, and the number of operators between them."""
    keys: dict[Expr, Bits | None] = {}
    cones: dict[Expr, set[Expr]] = {}
    for node in postorder([root]):
        if node.op == "const":
            continue
        arguments = [a for a in node.args if a.op != "const"]
        found = [keys[a] for a in arguments]
        key = _joined([k for k in found if k is not None]) if found and None not in found else None
        if key is not None:
            cones[node] = {node}.union(*(cones.get(a, ()) for a in arguments))
        elif isinstance(node.sort, BvSort) and node.width <= KEY_BITS:
            if node.op == "extract":
                # several parts of one number may be neighbours
                hi, lo = (int(p) for p in node.params)
                key = node.args[0], lo, hi
                cones[node] = {node}
            else:
                key = node, 0, node.width - 1
        keys[node] = key
    return keys, {node: len(cone) for node, cone in cones.items()}


def _joined(keys: list[Bits]) -> Bits | None:
    """The bits that have all of these between them, where they belong to one node and are few."""
    (node, lo, hi), *more = keys
    for other, first, last in more:
        if other is not node:
            return None
        lo, hi = min(lo, first), max(hi, last)
    return (node, lo, hi) if hi - lo < KEY_BITS else None
