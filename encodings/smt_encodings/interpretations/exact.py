"""Exact numbers: the reals and the integers.

Quotients of integers and roundings enter as fresh integers with the two inequalities that define them.  exp and log
are symbols of which instances of true laws are known:

* exp x > 0, exp 0 = 1, exp (y + z) = exp y * exp z, and exp is strictly increasing;
* exp (log x) = x for x > 0;
* sqrt x >= 0 and (sqrt x)^2 = x for x >= 0;
* x^y = exp (y * log x) for x > 0.

Laws of several numbers are instantiated at every argument of exp, every result of log, 0, and the terms that
:meth:`ExactNumbers.observe` is given.  A proof is sound because each instance is true; an answer "sat" refutes nothing
where such a symbol occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from typing import Any

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT, REAL, FunctionType, PySMTType

from smt_encodings.printer import script

from .protocol import CannotInterpret, DataFormat, Literal

_LAWS = {
    "exp": "exp is positive and strictly increasing, exp 0 = 1, and exp (y + z) = exp y * exp z",
    "log": "exp (log x) = x for x > 0",
    "sqrt": "sqrt x >= 0 and (sqrt x)^2 = x for x >= 0",
    "pow": "x^y = exp (y * log x) for x > 0",
}

_OPERATORS: dict[str, Callable[..., Any]] = {
    "not": smt.Not,
    "and": smt.And,
    "or": smt.Or,
    "same": smt.EqualsOrIff,
    "eq": smt.Equals,
    "select": smt.Ite,
    "lt": smt.LT,
    "le": smt.LE,
    "add": smt.Plus,
    "sub": smt.Minus,
    "mul": smt.Times,
    "fma": lambda x, y, z: smt.Plus(smt.Times(x, y), z),
    "maximum": lambda x, y: smt.Ite(smt.LT(x, y), y, x),
    "minimum": lambda x, y: smt.Ite(smt.LT(x, y), x, y),
    "maxnum": lambda x, y: smt.Ite(smt.LT(x, y), y, x),
    "minnum": lambda x, y: smt.Ite(smt.LT(x, y), x, y),
    "unsigned_zero": lambda x: x,
    "is_nan": lambda x: smt.FALSE(),
    "is_finite": lambda x: smt.TRUE(),
}


class ExactNumbers:
    """The encoding of reals and integers without bound."""

    def __init__(self) -> None:
        self._facts: list[FNode] = []
        self._points: dict[FNode, None] = {}
        self._used: dict[str, None] = {}
        self._fresh = 0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The laws of the functions that occur."""
        return tuple(_LAWS[name] for name in _LAWS if name in self._used)

    @property
    def exact(self) -> bool:
        """Whether the terms so far have no symbol of which only laws are known."""
        return not self._used

    def variable(self, name: str, kind: DataFormat) -> FNode:
        """An unknown number."""
        return smt.Symbol(name, _sort(kind))

    def constant(self, value: Literal, kind: DataFormat) -> FNode:
        """An exact number; raises CannotInterpret for infinities, NaN and -0.0."""
        if kind.family == "boolean":
            return smt.Bool(bool(value))
        if not isinstance(value, Fraction):
            raise CannotInterpret(f"an exact number must be finite, and 0 without a sign, not {value!r}")
        if _sort(kind) == REAL:
            return smt.Real(value)
        if value.denominator != 1:
            raise CannotInterpret(f"an integer must be given, not {value}")
        return smt.Int(int(value))

    def apply(self, op: str, kind: DataFormat, kinds: Sequence[DataFormat], args: Sequence[FNode]) -> FNode:
        """The operator's term."""
        whole = kinds[0].family == "int"
        zero = smt.Int(0) if whole else smt.Real(0)
        if op == "div" and not whole:
            return self._quotient(*args)
        if op in ("quotient", "floor_quotient") and whole:
            return self._integer_quotient(op, *args)
        if op == "neg":
            return smt.Minus(zero, args[0])
        if op == "abs":
            return smt.Ite(smt.LT(args[0], zero), smt.Minus(zero, args[0]), args[0])
        if op in ("floor", "ceil", "trunc"):
            return args[0] if whole else smt.ToReal(self._rounded(op, args[0]))
        if op == "cast":
            return self._cast(kind, kinds[0], args[0])
        if op in _LAWS and not whole:
            return self._function(op, args)
        if op not in _OPERATORS:
            raise CannotInterpret(f"exact numbers have no operator {op} on {kinds[0]}")
        return _OPERATORS[op](*args)

    def observe(self, term: FNode) -> None:
        """Adds a real term to those at which laws of several numbers are instantiated."""
        self._points[term] = None

    def script(self, assertions: Sequence[FNode], comment: str = "") -> str:
        """The question, with the facts about fresh symbols and functions."""
        return script([*assertions, *self._facts, *self._exponentials()], comment=comment)

    def _new(self, sort: PySMTType) -> FNode:
        self._fresh += 1
        return smt.Symbol(f"fresh!{self._fresh}", sort)

    def _quotient(self, a: FNode, b: FNode) -> FNode:
        """The number q with q * b = a; any number where b is 0."""
        if b.is_constant() and b.constant_value() != 0:
            return smt.Times(a, smt.Real(1 / Fraction(b.constant_value())))
        quotient = smt.Function(smt.Symbol("real_quotient", FunctionType(REAL, [REAL, REAL])), [a, b])
        self._facts.append(smt.Implies(smt.NotEquals(b, smt.Real(0)), smt.Equals(smt.Times(quotient, b), a)))
        return quotient

    def _rounded(self, op: str, x: FNode) -> FNode:
        down, up = self._new(INT), self._new(INT)
        for n, fits in ((down, (smt.LE, smt.LT)), (up, (smt.LT, smt.LE))):
            low = smt.ToReal(n) if n is down else smt.Minus(smt.ToReal(n), smt.Real(1))
            high = smt.Plus(smt.ToReal(n), smt.Real(1)) if n is down else smt.ToReal(n)
            self._facts += [fits[0](low, x), fits[1](x, high)]
        if op == "trunc":
            return smt.Ite(smt.LT(x, smt.Real(0)), up, down)
        return down if op == "floor" else up

    def _integer_quotient(self, op: str, a: FNode, b: FNode) -> FNode:
        """a = q * b + r, where r has the sign of b (rounding down) or of a (cutting) and |r| < |b|; 0 for b = 0."""
        zero = smt.Int(0)
        q, r = self._new(INT), self._new(INT)
        signed = b if op == "floor_quotient" else a
        size = smt.Ite(smt.LT(b, zero), smt.Minus(zero, b), b)
        fits = smt.And(
            smt.Equals(a, smt.Plus(smt.Times(q, b), r)),
            smt.Or(smt.And(smt.GE(r, zero), smt.GE(signed, zero)), smt.And(smt.LE(r, zero), smt.LE(signed, zero))),
            smt.LT(r, size),
            smt.LT(smt.Minus(zero, size), r),
        )
        self._facts.append(smt.Ite(smt.Equals(b, zero), smt.Equals(q, zero), fits))
        return q

    def _cast(self, kind: DataFormat, source: DataFormat, value: FNode) -> FNode:
        match source.family, kind.family:
            case "int", "real":
                return smt.ToReal(value)
            case "real", "int":
                return self._rounded("floor", value)
            case "boolean", ("real" | "int"):
                one, zero = self.constant(Fraction(1), kind), self.constant(Fraction(0), kind)
                return smt.Ite(value, one, zero)
            case a, b if a == b:
                return value
        raise CannotInterpret(f"exact numbers have no conversion from {source} to {kind}")

    # -- functions known by laws ---------------------------------------------------------------------------

    def _function(self, op: str, args: Sequence[FNode]) -> FNode:
        self._used[op] = None
        zero = smt.Real(0)
        if op == "pow":
            base, exponent = args
            power = _call("pow", args)
            defined = self._function("exp", [smt.Times(exponent, self._function("log", [base]))])
            self._facts.append(smt.Implies(smt.GT(base, zero), smt.Equals(power, defined)))
            return power
        value = _call(op, args)
        if op == "exp":
            self._points[args[0]] = None
        elif op == "log":
            self._used["exp"] = None
            self._points[value] = None
            self._facts.append(smt.Implies(smt.GT(args[0], zero), smt.Equals(_call("exp", [value]), args[0])))
        else:
            root = smt.And(smt.GE(value, zero), smt.Equals(smt.Times(value, value), args[0]))
            self._facts.append(smt.Implies(smt.GE(args[0], zero), root))
        return value

    def _exponentials(self) -> list[FNode]:
        """The laws of exp at all points and all pairs and triples of them."""
        if "exp" not in self._used:
            return []
        zero, one = smt.Real(0), smt.Real(1)
        points = list({zero: None} | self._points)
        values = {p: _call("exp", [p]) for p in points}
        facts = [smt.Equals(values[zero], one)]
        facts += [smt.GT(values[p], zero) for p in points]
        facts += [smt.Iff(smt.LT(p, q), smt.LT(values[p], values[q])) for p, q in permutations(points, 2)]
        for p in points:
            for q, r in combinations_with_replacement([x for x in points if x is not zero], 2):
                product = smt.Equals(values[p], smt.Times(values[q], values[r]))
                facts.append(smt.Implies(smt.Equals(p, smt.Plus(q, r)), product))
        return facts


def _call(name: str, args: Sequence[FNode]) -> FNode:
    return smt.Function(smt.Symbol(f"real_{name}", FunctionType(REAL, [REAL] * len(args))), list(args))


def _sort(kind: DataFormat) -> PySMTType:
    sorts = {"real": REAL, "int": INT, "boolean": BOOL}
    if kind.family not in sorts:
        raise CannotInterpret(f"exact numbers must be reals or integers, not {kind}")
    return sorts[kind.family]
