"""Abstract floats: sign and magnitude codes that keep the order of numbers and forget the rest (mlir-tv, CAV 2022).

A code is a sign bit and ``v`` magnitude bits: 0 is zero, all ones NaN (of which there is one, without a sign), the
code below it infinity, and the others finite numbers in their order.  Comparisons, signs, maxima and choices are exact.
Arithmetic is a symbol for each operator and format, of which this much is known: NaN, infinities, zeros and their
signs, 1 as unit, commutativity, the sign of the result, and some of the fact that rounding keeps the order.

What is proved holds for IEEE 754.  Take any floats on which a claim fails.  Its evaluation meets finitely many
magnitudes: those of the variables, the constants, 0, infinity, NaN, and one for each application of a symbol.  With at
least as many codes there is a numbering of these magnitudes that keeps their order; let each symbol give the code of
what IEEE arithmetic gives.  Every operator here then gives the code of the IEEE result, so the claim fails on codes
too.  The converse is false: a model of codes is only a hint, as nothing relates, say, sums to products.

Floats of all formats share one numbering, so a widening conversion changes nothing, and a narrowing one is a symbol
that leaves the numbers of its format unchanged.  (mlir-tv splits the magnitude into limit, truncated and precision bits
instead.)

Everything is an ``ila_lang`` expression, so the same text is tested on numbers: :attr:`AbstractFloats.symbols` lists
the symbols to be given a meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Generic

from pysmt.fnode import FNode

from ila_lang import BvSort, Expr, Function, any_of, bv, concat, const, ite, uninterpreted, var
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script

from .protocol import CannotInterpret, DataFormat, K, Literal, MachineDomain, require_representable

_CONSTANT = "constant_magnitude_"
_CORRECT = "{} is correctly rounded; used: the special cases of IEEE 754, the result's sign"


@dataclass
class AbstractFloats(Generic[K]):
    """The encoding, with codes of 1 + ``magnitude_bits`` bits; ``machine`` gives machine numbers their meaning.

    Build the terms once with any width, read :attr:`bits_needed`, and build them again with at least as many:
    :meth:`script` raises ValueError where there are too few.
    """

    machine: MachineDomain[K]
    magnitude_bits: int = 16
    symbols: dict[str, Function] = field(default_factory=dict)
    constants: dict[Fraction, Expr] = field(default_factory=dict)
    _magnitudes: dict[Expr, tuple[int, int]] = field(default_factory=dict)
    _narrow: dict[tuple[int, int], None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.magnitude_bits < 2:
            raise ValueError(f"abstract floats must have at least 2 magnitude bits, not {self.magnitude_bits}")

    @property
    def bits_needed(self) -> int:
        """Magnitude bits that give every number of the terms so far, and 0, infinity and NaN, a code."""
        return max(2, math.ceil(math.log2(3 + len(self._magnitudes))))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That functions without a definition in IEEE 754's arithmetic are correctly rounded."""
        names = {name.partition("_")[0] for name in self.symbols}
        return tuple(_CORRECT.format(n) for n in ("exp", "log", "pow") if n in names)

    # -- the domain ----------------------------------------------------------------------------------------

    def variable(self, name: str, kind: K) -> Expr:
        """Any number, NaN without a sign."""
        if kind.family != "float":
            return self.machine.variable(name, kind)
        code = self._canonical(var(name, bv(self.magnitude_bits + 1)))
        self._meet(kind, self._magnitude(code))
        return code

    def constant(self, value: Literal, kind: K) -> Expr:
        """A number; the magnitude of a finite one other than 0 is a variable, in order with those of the others."""
        if kind.family != "float":
            return self.machine.constant(value, kind)
        require_representable(value, kind)
        if isinstance(value, float):
            if math.isnan(value):
                return self._nan
            magnitude = self._zero_magnitude if value == 0 else self._infinite_magnitude
            return self._join(const(int(math.copysign(1, value) < 0), 1), magnitude)
        if value == 0:
            return self._join(const(0, 1), self._zero_magnitude)
        return self._join(const(int(value < 0), 1), self._constant(abs(value), kind))

    def apply(self, op: str, kind: K, kinds: Sequence[K], args: Sequence[Expr]) -> Expr:
        """The operator on codes."""
        if op == "select":
            return ite(args[0], args[1], args[2])
        if op == "same":
            return args[0] == args[1]
        if op == "cast":
            return self._cast(kind, kinds[0], args[0])
        if kinds[0].family != "float":
            return self.machine.apply(op, kind, kinds, args)
        if op in _RELATIONS:
            return _RELATIONS[op](self, *args)
        if op in _OPERATORS:
            return _OPERATORS[op](self, kind, *args)
        raise CannotInterpret(f"abstract floats have no operator {op}")

    def facts(self) -> list[Expr]:
        """What holds of constants and narrowing conversions."""
        ordered = [self._zero_magnitude, *(self.constants[c] for c in sorted(self.constants)), self._infinite_magnitude]
        facts = [a < b for a, b in pairwise(ordered)]
        for size in self._narrow:
            fixed = [m for m, own in self._magnitudes.items() if own[0] <= size[0] and own[1] <= size[1]]
            ends = [self._zero_magnitude, self._infinite_magnitude, self._nan_magnitude]
            facts += [self._narrowed(size, m) == m for m in [*ends, *fixed]]
        return facts

    def script(self, assertions: Sequence[Expr], comment: str = "", beside: Sequence[FNode] = ()) -> str:
        """The question, with further assertions ``beside``; raises ValueError where the codes are too few."""
        facts = self.facts()
        if self.magnitude_bits < self.bits_needed:
            raise ValueError(f"codes must have {self.bits_needed} magnitude bits, not {self.magnitude_bits}")
        encoding = BitEncoding(frozenset(self.symbols))
        return script([*(encoding.term(t) for t in [*assertions, *facts]), *beside], comment=comment)

    # -- codes -----------------------------------------------------------------------------------------------

    @property
    def _zero_magnitude(self) -> Expr:
        return const(0, self.magnitude_bits)

    @property
    def _nan_magnitude(self) -> Expr:
        return const((1 << self.magnitude_bits) - 1, self.magnitude_bits)

    @property
    def _infinite_magnitude(self) -> Expr:
        return const((1 << self.magnitude_bits) - 2, self.magnitude_bits)

    @property
    def _nan(self) -> Expr:
        return self._join(const(0, 1), self._nan_magnitude)

    def _join(self, sign: Expr, magnitude: Expr) -> Expr:
        return concat(sign, magnitude)

    def _sign(self, code: Expr) -> Expr:
        return code[self.magnitude_bits]

    def _magnitude(self, code: Expr) -> Expr:
        return code[self.magnitude_bits - 1 : 0]

    def _is_nan(self, *codes: Expr) -> Expr:
        return any_of([self._magnitude(c) == self._nan_magnitude for c in codes])

    def _is_infinite(self, code: Expr) -> Expr:
        return self._magnitude(code) == self._infinite_magnitude

    def _is_zero(self, code: Expr) -> Expr:
        return self._magnitude(code) == 0

    def _canonical(self, code: Expr) -> Expr:
        return ite(self._is_nan(code), self._nan, code)

    def _meet(self, kind: DataFormat, magnitude: Expr) -> Expr:
        """Notes a magnitude that may be a number of its own."""
        if not magnitude.is_const:
            self._magnitudes.setdefault(magnitude, _size(kind))
        return magnitude

    def _constant(self, value: Fraction, kind: DataFormat) -> Expr:
        """The magnitude of a positive constant."""
        if value not in self.constants:
            self.constants[value] = var(f"{_CONSTANT}{value.numerator}_{value.denominator}", bv(self.magnitude_bits))
        return self._meet(kind, self.constants[value])

    def _one(self, kind: DataFormat) -> Expr:
        return self._constant(Fraction(1), kind)

    # -- symbols ---------------------------------------------------------------------------------------------

    def _symbol(self, name: str, kind: DataFormat, result: int, args: Sequence[Expr]) -> Expr:
        label = f"{name}_{'_'.join(str(p) for p in kind.parameters)}"
        if label not in self.symbols:
            sorts = {f"x{i}": a.sort for i, a in enumerate(args)}
            self.symbols[label] = uninterpreted(label, bv(result), **sorts)
        return self.symbols[label](*args)

    def _some_magnitude(self, name: str, kind: DataFormat, *args: Expr, commutes: bool = False) -> Expr:
        """The finite or infinite magnitude that a symbol gives; of two operands, in either order the same one."""
        magnitude = self._symbol(name, kind, self.magnitude_bits, args)
        if commutes:
            magnitude = magnitude & self._symbol(name, kind, self.magnitude_bits, [args[1], args[0], *args[2:]])
        self._meet(kind, magnitude)
        return ite(magnitude == self._nan_magnitude, self._infinite_magnitude, magnitude)

    def _narrowed(self, size: tuple[int, int], magnitude: Expr) -> Expr:
        name = f"round_{size[0]}_{size[1]}"
        if name not in self.symbols:
            self.symbols[name] = uninterpreted(name, bv(self.magnitude_bits), x0=bv(self.magnitude_bits))
        return self.symbols[name](magnitude)

    # -- operators -------------------------------------------------------------------------------------------

    def _less(self, x: Expr, y: Expr) -> Expr:
        """x < y, for numbers."""
        a, b = self._magnitude(x), self._magnitude(y)
        minus_x, minus_y = self._sign(x) == 1, self._sign(y) == 1
        return ite(minus_x, ite(minus_y, b < a, (a != 0) | (b != 0)), ~minus_y & (a < b))

    def lt(self, x: Expr, y: Expr) -> Expr:
        """x < y."""
        return ~self._is_nan(x, y) & self._less(x, y)

    def eq(self, x: Expr, y: Expr) -> Expr:
        """x = y as numbers."""
        return ~self._is_nan(x, y) & ((x == y) | (self._is_zero(x) & self._is_zero(y)))

    def neg(self, kind: DataFormat, x: Expr) -> Expr:
        """-x."""
        return self._canonical(self._join(~self._sign(x), self._magnitude(x)))

    def _larger(self, x: Expr, y: Expr) -> Expr:
        zeros = self._is_zero(x) & self._is_zero(y)
        return ite(zeros, ite(self._sign(x) == 1, y, x), ite(self._less(y, x), x, y))

    def maximum(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """The larger one, or NaN."""
        return ite(self._is_nan(x, y), self._nan, self._larger(x, y))

    def maxnum(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """The larger one, or the one that is not NaN."""
        return ite(self._is_nan(x), y, ite(self._is_nan(y), x, self._larger(x, y)))

    def negated(self, chosen: Callable[[DataFormat, Expr, Expr], Expr], kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """A choice between negated operands, negated: minima from maxima."""
        return self.neg(kind, chosen(kind, self.neg(kind, x), self.neg(kind, y)))

    def add(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """x + y: of equal signs at least the larger magnitude, of different ones at most, and never 0 by rounding.

        The magnitude depends on those of x and y and on whether the signs are equal: rounding to nearest is symmetric.
        """
        a, b = self._magnitude(x), self._magnitude(y)
        larger, alike = ite(a < b, b, a), self._sign(x) == self._sign(y)
        some = self._some_magnitude("add", kind, a, b, ite(alike, const(1, 1), const(0, 1)), commutes=True)
        magnitude = ite(alike, ite(some < larger, larger, some), ite((some == 0) | (larger < some), larger, some))
        finite = self._join(ite(a < b, self._sign(y), self._sign(x)), magnitude)
        finite = ite(~alike & (a == b), self._join(const(0, 1), self._zero_magnitude), finite)
        finite = ite(self._is_zero(x), y, ite(self._is_zero(y), x, finite))
        zeros = self._is_zero(x) & self._is_zero(y)
        finite = ite(zeros, self._join(self._sign(x) & self._sign(y), self._zero_magnitude), finite)
        clash = self._is_infinite(x) & self._is_infinite(y) & ~alike
        sums = ite(self._is_infinite(x), x, ite(self._is_infinite(y), y, finite))
        return ite(self._is_nan(x, y) | clash, self._nan, sums)

    def sub(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """x + (-y), which is x - y in IEEE 754."""
        return self.add(kind, x, self.neg(kind, y))

    def mul(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """x * y: the sign is the product of the signs; compared with 1, a factor says whether the other one grows."""
        a, b, one = self._magnitude(x), self._magnitude(y), self._one(kind)
        magnitude = self._some_magnitude("mul", kind, a, b, commutes=True)
        for factor, other in ((a, b), (b, a)):  # a factor of at most 1 makes nothing larger, one of at least 1 smaller
            magnitude = ite((factor <= one) & (other < magnitude), other, magnitude)
            magnitude = ite((one <= factor) & (magnitude < other), other, magnitude)
        magnitude = ite(self._is_zero(x) | self._is_zero(y), self._zero_magnitude, magnitude)
        magnitude = ite(self._is_infinite(x) | self._is_infinite(y), self._infinite_magnitude, magnitude)
        clash = (self._is_infinite(x) & self._is_zero(y)) | (self._is_zero(x) & self._is_infinite(y))
        return ite(self._is_nan(x, y) | clash, self._nan, self._join(self._sign(x) ^ self._sign(y), magnitude))

    def div(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """x / y: division by 1 changes nothing, equal magnitudes give 1."""
        a, b, one = self._magnitude(x), self._magnitude(y), self._one(kind)
        magnitude = self._some_magnitude("div", kind, a, b)
        magnitude = ite(b == one, a, ite(a == b, one, magnitude))
        magnitude = ite(self._is_infinite(x) | self._is_zero(y), self._infinite_magnitude, magnitude)
        magnitude = ite(self._is_zero(x) | self._is_infinite(y), self._zero_magnitude, magnitude)
        clash = (self._is_infinite(x) & self._is_infinite(y)) | (self._is_zero(x) & self._is_zero(y))
        return ite(self._is_nan(x, y) | clash, self._nan, self._join(self._sign(x) ^ self._sign(y), magnitude))

    def fma(self, kind: DataFormat, x: Expr, y: Expr, z: Expr) -> Expr:
        """x * y + z: NaN of NaN, and the factors commute."""
        width = self.magnitude_bits + 1
        result = self._symbol("fma", kind, width, [x, y, z]) & self._symbol("fma", kind, width, [y, x, z])
        self._meet(kind, self._magnitude(result))
        clash = (self._is_infinite(x) & self._is_zero(y)) | (self._is_zero(x) & self._is_infinite(y))
        return ite(self._is_nan(x, y, z) | clash, self._nan, self._canonical(result))

    def rounded(self, kind: DataFormat, x: Expr, op: str) -> Expr:
        """floor, ceil or trunc: the magnitude is rounded up or down, the sign stays.

        Finite numbers are rounded up to infinity only where the format's largest number is no integer.
        """
        exponent_bits, significand_bits = _size(kind)
        a = self._magnitude(x)
        down, up = self._some_magnitude("down", kind, a), self._some_magnitude("up", kind, a)
        down = ite(a < down, a, down)
        up = ite(up < a, a, up)
        if significand_bits <= 1 << exponent_bits - 1:
            up = ite(up == self._infinite_magnitude, a, up)
        minus = self._sign(x) == 1
        magnitude = {"trunc": down, "floor": ite(minus, up, down), "ceil": ite(minus, down, up)}[op]
        return ite(self._is_nan(x) | self._is_infinite(x) | self._is_zero(x), x, self._join(self._sign(x), magnitude))

    def sqrt(self, kind: DataFormat, x: Expr) -> Expr:
        """The square root; 0, 1 and infinity are their own."""
        a = self._magnitude(x)
        kept = self._is_zero(x) | self._is_infinite(x) | (a == self._one(kind))
        root = self._join(const(0, 1), ite(kept, a, self._some_magnitude("sqrt", kind, a)))
        return ite(self._is_zero(x), x, ite(self._is_nan(x) | (self._sign(x) == 1), self._nan, root))

    def exp(self, kind: DataFormat, x: Expr) -> Expr:
        """e^x: at least 1 for x >= 0, at most 1 for x <= 0."""
        one, minus = self._one(kind), self._sign(x) == 1
        some = self._some_magnitude("exp", kind, x)
        magnitude = ite(minus, ite(one < some, one, some), ite(some < one, one, some))
        ends = ite(minus, self._zero_magnitude, self._infinite_magnitude)
        magnitude = ite(self._is_infinite(x), ends, ite(self._is_zero(x), one, magnitude))
        return ite(self._is_nan(x), self._nan, self._join(const(0, 1), magnitude))

    def log(self, kind: DataFormat, x: Expr) -> Expr:
        """The natural logarithm: negative below 1, +0 at 1."""
        one, a = self._one(kind), self._magnitude(x)
        sign = ite(a < one, const(1, 1), const(0, 1))
        magnitude = ite(
            self._is_zero(x) | self._is_infinite(x), self._infinite_magnitude, self._some_magnitude("log", kind, a)
        )
        result = self._join(sign, ite(a == one, self._zero_magnitude, magnitude))
        return ite(self._is_nan(x) | ((self._sign(x) == 1) & ~self._is_zero(x)), self._nan, result)

    def pow(self, kind: DataFormat, x: Expr, y: Expr) -> Expr:
        """x^y: 1 for y = 0 or x = 1, else NaN of NaN, and not negative for x >= +0."""
        one = self._join(const(0, 1), self._one(kind))
        result = self._symbol("pow", kind, self.magnitude_bits + 1, [x, y])
        self._meet(kind, self._magnitude(result))
        some = self._magnitude(result)
        positive = self._join(const(0, 1), ite(some == self._nan_magnitude, self._infinite_magnitude, some))
        value = ite(self._sign(x) == 0, positive, self._canonical(result))
        return ite(self._is_zero(y) | (x == one), one, ite(self._is_nan(x, y), self._nan, value))

    # -- conversions -------------------------------------------------------------------------------------------

    def _cast(self, kind: K, source: K, x: Expr) -> Expr:
        if "float" not in (kind.family, source.family):
            return self.machine.apply("cast", kind, [source], [x])
        if source.family == "boolean":
            zero = self._join(const(0, 1), self._zero_magnitude)
            return ite(x, self._join(const(0, 1), self._one(kind)), zero)
        if source.family == "integer":
            words = "_".join(str(p) for p in source.parameters)
            assert isinstance(x.sort, BvSort)
            signed = source.parameters[1] == "signed"
            sign = x[x.width - 1] if signed else const(0, 1)
            some = self._some_magnitude(f"of_{words}", kind, x)
            return ite(x == 0, const(0, self.magnitude_bits + 1), self._join(sign, some))
        if source.family != "float" or kind.family not in ("float", "integer"):
            raise CannotInterpret(f"abstract floats have no conversion from {source} to {kind}")
        if kind.family == "integer":
            words, width = "_".join(str(p) for p in kind.parameters), int(kind.parameters[0])
            some = self._symbol(f"to_{words}", source, width, [x])
            return ite(self._is_nan(x) | self._is_zero(x), const(0, width), some)
        own, size = _size(source), _size(kind)
        if own[0] <= size[0] and own[1] <= size[1]:
            return x
        self._narrow[size] = None
        narrow = self._meet(kind, self._narrowed(size, self._magnitude(x)))
        narrow = ite(narrow == self._nan_magnitude, self._infinite_magnitude, narrow)
        return ite(self._is_nan(x), self._nan, self._join(self._sign(x), narrow))


def _size(kind: DataFormat) -> tuple[int, int]:
    exponent_bits, significand_bits = kind.parameters
    return int(exponent_bits), int(significand_bits)


_Floats = AbstractFloats

_RELATIONS: dict[str, Callable[..., Expr]] = {
    "lt": _Floats.lt,
    "le": lambda f, x, y: f.lt(x, y) | f.eq(x, y),
    "eq": _Floats.eq,
    "is_nan": lambda f, x: f._is_nan(x),
    "is_finite": lambda f, x: f._magnitude(x) < f._infinite_magnitude,
}

_OPERATORS: dict[str, Callable[..., Expr]] = {
    "neg": _Floats.neg,
    "abs": lambda f, kind, x: f._join(const(0, 1), f._magnitude(x)),
    "unsigned_zero": lambda f, kind, x: ite(f._is_zero(x), const(0, f.magnitude_bits + 1), x),
    "maximum": _Floats.maximum,
    "maxnum": _Floats.maxnum,
    "minimum": lambda f, kind, x, y: f.negated(f.maximum, kind, x, y),
    "minnum": lambda f, kind, x, y: f.negated(f.maxnum, kind, x, y),
    "add": _Floats.add,
    "sub": _Floats.sub,
    "mul": _Floats.mul,
    "div": _Floats.div,
    "fma": _Floats.fma,
    "floor": lambda f, kind, x: f.rounded(kind, x, "floor"),
    "ceil": lambda f, kind, x: f.rounded(kind, x, "ceil"),
    "trunc": lambda f, kind, x: f.rounded(kind, x, "trunc"),
    "sqrt": _Floats.sqrt,
    "exp": _Floats.exp,
    "log": _Floats.log,
    "pow": _Floats.pow,
}
