"""Operations on arrays of integers that are congruent to bit-vectors, with the ranges in which they lie.

The operator table (:mod:`ila_lang.language.ops`) cuts every result to its width.  Here a bit-vector of w bits may be
any integer that is *congruent* to it modulo 2^w, and its *range* is kept beside it.  Sums, products, complements,
shifts to the left and bits from the right need no more than congruent operands.  An operator that needs the number
itself, read as unsigned or as signed, gets it: for nothing where the range says that it is that number already, else by
cutting it to the width.

Integers are of 32 bits where the range of a result fits, or where its width does: arithmetic modulo 2^32 is congruent
modulo 2^w for every w up to 32.  All others are of 64 bits, which are enough for the same reason, since no width is
above 62.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

_NAMES = re.compile(r"\b[tv]\d+\b")


class Form(NamedTuple):
    """Integers of ``bits`` bits (32 or 64; 0: Booleans) from ``low`` to ``high``.

    ``raw`` are words of a memory in an array of any integer type.
    """

    bits: int
    low: int
    high: int
    raw: bool = False


class Operand(NamedTuple):
    """Source text of an integer, or of a Boolean; a literal where ``bits`` is None."""

    text: str
    bits: int | None
    low: int
    high: int


def known_form(width: int) -> Form:
    """The form of numbers of ``width`` bits (0: Booleans) as :func:`ila_lang.compile_terms` computes them."""
    return Form(64, 0, (1 << width) - 1) if width else Form(0, 0, 1, True)


def fits(low: int, high: int, bits: int) -> bool:
    """Whether signed integers of ``bits`` bits hold a range."""
    return -1 << bits - 1 <= low and high < 1 << bits - 1


def literal(value: int) -> Operand:
    """An integer that is known."""
    return Operand(f"({value})" if value < 0 else str(value), None, value, value)


def array_text(operand: Operand, bits: int) -> str:
    """The text of an array of integers of ``bits`` bits (0: Booleans)."""
    if operand.bits is None:
        return f"np.array([{operand.text}], {f'np.int{bits}' if bits else 'bool'})"
    return operand.text if operand.bits == bits else f"{operand.text}.astype(np.int{bits})"


def truth(value: bool) -> Operand:
    """A Boolean that is known."""
    return Operand(str(value), None, int(value), int(value))


class Lines:
    """Source text of a function of arrays, with a line for each operation.

    The function's parameters are the ``leaves``; with ``many`` it is for large arrays.
    """

    def __init__(self, leaves: Mapping[str, Form], many: bool) -> None:
        self.leaves = leaves
        self.many = many
        self.names = {name: f"v{i}" for i, name in enumerate(leaves)}
        self.lines: list[tuple[str, str]] = []
        self.namespace: dict[str, Any] = {"np": np}

    def build(self, result: str) -> Callable[..., Any]:
        """The function of the leaves that returns ``result``; arrays do not live longer than needed."""
        needed, used = set(_NAMES.findall(result)), []
        for target, source in reversed(self.lines):
            if target in needed:
                # a name that is met for the first time from behind is used for the last time
                names_used = dict.fromkeys(_NAMES.findall(source))
                dead = [n for n in names_used if n not in needed]
                used.append(f"    {target} = {source}" + (f"; del {', '.join(dead)}" if dead else ""))
                needed.update(names_used)
        head = f"def lowered({', '.join(self.names.values())}):"
        source_lines = [head, *reversed(used), f"    return {result}"]
        exec(compile("\n".join(source_lines), "<lowered terms>", "exec"), self.namespace)
        function: Callable[..., Any] = self.namespace["lowered"]
        return function

    def line(self, text: str, bits: int, low: int, high: int) -> Operand:
        """Emits an assignment; the new operand."""
        name = f"t{len(self.lines)}"
        self.lines.append((name, text))
        return Operand(name, bits, low, high)

    def cut(self, x: Operand, width: int) -> Operand:
        """The number of ``width`` bits, read as unsigned."""
        if x.bits is None:
            return literal(x.low % (1 << width))
        if x.low >= 0 and x.high < 1 << width:
            return x
        mask = (1 << width) - 1
        bits = 32 if x.bits == 32 and width <= 31 else 64
        return self.line(f"{array_text(x, bits)} & {mask}", bits, 0, mask)

    def cut_signed(self, x: Operand, width: int) -> Operand:
        """The number of ``width`` bits, read as signed."""
        sign = 1 << width - 1
        if x.bits is None:
            return literal((x.low + sign) % (2 * sign) - sign)
        if -sign <= x.low and x.high < sign:
            return x
        if x.bits == 64 and width == 32:
            return self.line(f"{x.text}.astype(np.int32)", 32, -sign, sign - 1)
        if x.low >= 0 and x.high < 2 * sign:
            return self.line(f"({x.text} ^ {sign}) - {sign}", x.bits, -sign, sign - 1)
        shift = x.bits - width
        return self.line(f"({x.text} << {shift}) >> {shift}", x.bits, -sign, sign - 1)

    @staticmethod
    def _common(x: Operand, y: Operand) -> int:
        """The number of bits of integers that hold both operands."""
        return 64 if 64 in (x.bits, y.bits) or not all(fits(o.low, o.high, 32) for o in (x, y)) else 32

    def wrapping(self, text: str, x: Operand, y: Operand, low: int, high: int, width: int) -> Operand:
        """An operation whose result lies between ``low`` and ``high``, or wraps around where these do not fit.

        It must be congruent modulo 2 to the number of bits of the integers, which are as many as ``width`` at least.
        """
        bits = self._common(x, y)
        if width > 32 and not fits(low, high, 32):
            bits = 64
        if not fits(low, high, bits):
            low, high = -1 << bits - 1, (1 << bits - 1) - 1
        # one operand is an array of these integers, and NumPy extends the other
        first = x.text if x.bits is None and y.bits is not None else array_text(x, bits)
        second = y.text if x.bits is not None or y.bits is None else array_text(y, bits)
        return self.line(text.format(first, second), bits, low, high)

    def bitwise(self, op: str, x: Operand, y: Operand, width: int) -> Operand:
        """``op`` on the bits of two integers."""
        reach = max(o.bit_length() if o >= 0 else (~o).bit_length() for o in (x.low, x.high, y.low, y.high))
        low, high = -1 << reach, (1 << reach) - 1
        if op == "bvand":
            above = [o.high for o in (x, y) if o.low >= 0]
            if above:
                low, high = 0, min(above)
        elif x.low >= 0 and y.low >= 0:
            low = 0
        sign = {"bvand": "&", "bvor": "|", "bvxor": "^"}[op]
        return self.wrapping(f"{{0}} {sign} {{1}}", x, y, low, high, width)

    def shift(self, op: str, x: Operand, by: Operand, width: int) -> Operand:
        """A shift by a number that is read as unsigned; what is shifted to the right is the number itself."""
        bits = self._common(x, by)
        if op == "bvshl":
            most = min(by.high, bits)
            low, high = min(x.low << most, 0), max(x.high << most, 0)
            if by.high >= bits or not fits(low, high, bits):
                # a shift by the last bit's number at least leaves 0 in the bits before it
                bits = 64 if width > 31 else bits
                low, high = -1 << bits - 1, (1 << bits - 1) - 1
        else:
            least, most = min(by.low, bits), min(by.high, bits)
            low, high = x.low >> (least if x.low < 0 else most), x.high >> (most if x.high < 0 else least)
        if by.high >= bits:
            # beyond the last bit nothing is left, or the sign alone
            by = self.line(f"np.minimum({array_text(by, bits)}, {bits - 1})", bits, min(by.low, bits - 1), bits - 1)
        second = by.text if by.bits is None else array_text(by, bits)
        return self.line(f"{array_text(x, bits)} {'<<' if op == 'bvshl' else '>>'} {second}", bits, low, high)

    def divide(self, op: str, x: Operand, y: Operand, width: int) -> Operand:
        """The quotient or the rest of two unsigned numbers."""
        ones = (1 << width) - 1
        if y.high == 0:
            return literal(ones) if op == "bvudiv" else x
        bits = 64 if y.low == 0 and width > 31 else self._common(x, y)
        first, second = array_text(x, bits), y.text if y.bits is None else array_text(y, bits)
        sign = "//" if op == "bvudiv" else "%"
        high = x.high // max(y.low, 1) if op == "bvudiv" else min(x.high, y.high - 1)
        if y.low > 0:
            return self.line(f"{first} {sign} {second}", bits, 0, high)
        divided = self.line(f"{first} {sign} np.maximum({second}, 1)", bits, 0, high)
        by_zero, most = (f"np.int{bits}({ones})", ones) if op == "bvudiv" else (first, x.high)
        return self.line(f"np.where({second} == 0, {by_zero}, {divided.text})", bits, 0, max(high, most))

    def select(self, test: Operand, x: Operand, y: Operand) -> Operand:
        """``x`` where ``test`` holds, else ``y``."""
        low, high = min(x.low, y.low), max(x.high, y.high)
        bits = self._common(x, y)
        if x.bits is None and y.bits is None:
            step = x.low - y.low
            if not fits(step, step, bits):
                text = f"np.where({test.text}, np.int{bits}({x.low}), np.int{bits}({y.low}))"
                return self.line(text, bits, low, high)
            flag = self.line(f"{test.text}.astype(np.int{bits})", bits, 0, 1)
            if step != 1:
                flag = self.line(f"{flag.text} * {step}", bits, min(step, 0), max(step, 0))
            return self.line(f"{flag.text} + {y.text}", bits, low, high) if y.low else flag
        if self.many and y.bits is None and y.low == 0:
            return self.line(f"{array_text(x, bits)} * {test.text}", bits, low, high)
        if self.many:
            # what does not fit wraps around twice
            first, second = (o.text if o.bits is None else array_text(o, bits) for o in (x, y))
            return self.line(f"({first} - {second}) * {test.text} + {second}", bits, low, high)
        first, second = (f"np.int{bits}({o.text})" if o.bits is None else o.text for o in (x, y))
        return self.line(f"np.where({test.text}, {first}, {second})", bits, low, high)

    def extreme(self, name: str, x: Operand, y: Operand) -> Operand:
        """The ``minimum`` or the ``maximum`` of two numbers."""
        choose = min if name == "minimum" else max
        low, high = choose(x.low, y.low), choose(x.high, y.high)
        bits = self._common(x, y)
        first, second = array_text(x, bits), y.text if y.bits is None else array_text(y, bits)
        return self.line(f"np.{name}({first}, {second})", bits, low, high)
