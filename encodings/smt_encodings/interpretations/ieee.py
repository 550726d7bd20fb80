"""IEEE 754 floats by the SMT-LIB theory of floating-point numbers; machine integers beside them as bit-vectors.

A variable is declared as its bits, so that models are read as integers; all NaNs are one value.  exp, log and pow are
symbols of which instances of the standard's special cases are known, and the order of their results around 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic

from pysmt.fnode import FNode

from ila_lang import Expr, bv
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.expressions.direct import sort_name
from smt_encodings.printer import declarations, term_text

from .protocol import CannotInterpret, DataFormat, K, Literal, MachineDomain, require_representable

BOTH_SOLVERS = ((8, 24), (11, 53))
"""The formats that z3 and cvc5 both support; cvc5 calls its support of others experimental."""

_DIRECT = {
    "neg": "(fp.neg {0})",
    "abs": "(fp.abs {0})",
    "add": "(fp.add RNE {0} {1})",
    "sub": "(fp.sub RNE {0} {1})",
    "mul": "(fp.mul RNE {0} {1})",
    "div": "(fp.div RNE {0} {1})",
    "fma": "(fp.fma RNE {0} {1} {2})",
    "sqrt": "(fp.sqrt RNE {0})",
    "floor": "(fp.roundToIntegral RTN {0})",
    "ceil": "(fp.roundToIntegral RTP {0})",
    "trunc": "(fp.roundToIntegral RTZ {0})",
    "round": "(fp.roundToIntegral RNE {0})",
    "lt": "(fp.lt {0} {1})",
    "le": "(fp.leq {0} {1})",
    "eq": "(fp.eq {0} {1})",
    "is_nan": "(fp.isNaN {0})",
    "is_finite": "(not (or (fp.isNaN {0}) (fp.isInfinite {0})))",
    "unsigned_zero": "(ite (fp.isZero {0}) (_ +zero {e} {s}) {0})",
}

# fp.max and fp.min leave open which zero they give; these do not.
_LARGER = "(ite (and (fp.isZero {0}) (fp.isZero {1})) (ite (fp.isNegative {0}) {1} {0}) (ite (fp.gt {0} {1}) {0} {1}))"
_SMALLER = "(ite (and (fp.isZero {0}) (fp.isZero {1})) (ite (fp.isNegative {0}) {0} {1}) (ite (fp.lt {0} {1}) {0} {1}))"
_NAN = "(ite (or (fp.isNaN {0}) (fp.isNaN {1})) (_ NaN {e} {s}) "
_OTHER = "(ite (fp.isNaN {0}) {1} (ite (fp.isNaN {1}) {0} "
_CHOICES = {
    "maximum": f"{_NAN}{_LARGER})",
    "minimum": f"{_NAN}{_SMALLER})",
    "maxnum": f"{_OTHER}{_LARGER}))",
    "minnum": f"{_OTHER}{_SMALLER}))",
}

# {0}, {1}: the arguments; {r}: the result; {one}: the number 1
_SPECIAL_CASES = {
    "exp": [
        "(=> (fp.isNaN {0}) (fp.isNaN {r}))",
        "(=> (not (fp.isNaN {0})) (fp.isPositive {r}))",
        "(=> (= {0} (_ +oo {e} {s})) (= {r} (_ +oo {e} {s})))",
        "(=> (= {0} (_ -oo {e} {s})) (= {r} (_ +zero {e} {s})))",
        "(=> (fp.isZero {0}) (= {r} {one}))",
        "(=> (fp.isPositive {0}) (fp.geq {r} {one}))",
        "(=> (fp.isNegative {0}) (fp.leq {r} {one}))",
    ],
    "log": [
        "(=> (or (fp.isNaN {0}) (and (fp.isNegative {0}) (not (fp.isZero {0})))) (fp.isNaN {r}))",
        "(=> (fp.isZero {0}) (= {r} (_ -oo {e} {s})))",
        "(=> (= {0} (_ +oo {e} {s})) (= {r} (_ +oo {e} {s})))",
        "(=> (= {0} {one}) (= {r} (_ +zero {e} {s})))",
        "(=> (fp.gt {0} {one}) (fp.isPositive {r}))",
        "(=> (and (fp.lt {0} {one}) (fp.isPositive {0})) (fp.isNegative {r}))",
    ],
    "pow": [
        "(=> (or (fp.isZero {1}) (= {0} {one})) (= {r} {one}))",
        "(=> (and (fp.isNaN {0}) (not (fp.isZero {1}))) (fp.isNaN {r}))",
        "(=> (and (fp.isNaN {1}) (not (= {0} {one}))) (fp.isNaN {r}))",
        "(=> (and (fp.isPositive {0}) (not (fp.isNaN {1}))) (fp.isPositive {r}))",
    ],
}


@dataclass
class IeeeFloats(Generic[K]):
    """The encoding of floats, written as text: every subterm is one definition.

    ``machine`` gives machine integers their meaning.  With ``experimental``, formats other than binary32 and binary64
    are written too; only z3 supports them without an option.
    """

    machine: MachineDomain[K]
    experimental: bool = False
    _lines: list[str] = field(default_factory=list)
    _known: dict[str, str] = field(default_factory=dict)
    _functions: dict[str, None] = field(default_factory=dict)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That functions without a meaning in SMT-LIB have IEEE 754's special cases."""
        names = sorted({f.partition("_")[0] for f in self._functions})
        return tuple(f"{n} is correctly rounded; used: the special cases of IEEE 754, the result's sign" for n in names)

    @property
    def exact(self) -> bool:
        """Whether the terms so far have no symbol of which only special cases are known."""
        return not self._functions

    def variable(self, name: str, kind: K) -> str:
        """A number, declared as its bits."""
        if kind.family != "float":
            symbol = self.machine.variable(name, kind)
            self._once(f"(declare-fun {name} () {sort_name(symbol.sort)})")
            return name
        e, s = self._float(kind)
        self._once(f"(declare-fun {name} () (_ BitVec {e + s}))")
        return self._define(_sort((e, s)), f"((_ to_fp {e} {s}) {name})")

    def constant(self, value: Literal, kind: K) -> str:
        """A literal; numbers are written exactly and must be representable."""
        if kind.family != "float":
            return self._machine_term(self.machine.constant(value, kind), {})
        e, s = self._float(kind)
        require_representable(value, kind)
        if isinstance(value, float):
            name = "NaN" if math.isnan(value) else "-zero" if value == 0 else "+oo" if value > 0 else "-oo"
            return f"(_ {name} {e} {s})"
        return f"((_ to_fp {e} {s}) RNE {_real(value)})" if value else f"(_ +zero {e} {s})"

    def apply(self, op: str, kind: K, kinds: Sequence[K], args: Sequence[str]) -> str:
        """The operator's term, as the name of its definition."""
        if op == "select":
            return self._define(self._sort_of(kind), f"(ite {' '.join(args)})")
        if op == "cast":
            return self._cast(kind, kinds[0], args[0])
        if kinds[0].family != "float":
            return self._machine(op, kind, kinds, args)
        if op == "same":
            return self._define("Bool", f"(= {args[0]} {args[1]})")
        e, s = self._float(kinds[0])
        if op in _SPECIAL_CASES:
            return self._function(op, e, s, args)
        template = _DIRECT.get(op) or _CHOICES.get(op)
        if template is None:
            raise CannotInterpret(f"floats have no operator {op}")
        return self._define(self._sort_of(kind), template.format(*args, e=e, s=s))

    def script(self, assertions: Sequence[str], comment: str = "", beside: Sequence[FNode] = ()) -> str:
        """The question, with further assertions ``beside``, which may share Booleans with these."""
        lines = [f"; {line}" for line in comment.splitlines()]
        lines += ["(set-logic ALL)", *self._lines, *(d for d in declarations(beside) if d not in self._lines)]
        lines += [*(f"(assert {a})" for a in assertions), *(f"(assert {term_text(t)})" for t in beside), "(check-sat)"]
        return "\n".join(lines) + "\n"

    def _float(self, kind: DataFormat) -> tuple[int, int]:
        if kind.family != "float":
            raise CannotInterpret(f"the theory of floats must be given floats and machine numbers, not {kind}")
        e, s = (int(p) for p in kind.parameters)
        if (e, s) not in BOTH_SOLVERS and not self.experimental:
            raise CannotInterpret(f"the theory of floats must be given binary32 or binary64, not {kind}")
        return e, s

    def _once(self, line: str) -> None:
        if line not in self._lines:
            self._lines.append(line)

    def _define(self, sort: str, text: str) -> str:
        key = f"{sort} {text}"
        if key not in self._known:
            name = f"term!{len(self._known)}"
            self._known[key] = name
            self._lines.append(f"(define-fun {name} () {sort} {text})")
        return self._known[key]

    def _sort_of(self, kind: K) -> str:
        if kind.family == "float":
            return _sort(self._float(kind))
        return sort_name(self.machine.variable("x", kind).sort)

    def _machine(self, op: str, kind: K, kinds: Sequence[K], args: Sequence[str]) -> str:
        """A machine operator on terms: its expression over variables in their place."""
        sorts = [sort_name(self.machine.variable("x", k).sort) for k in kinds]
        places = {f"place_{i}_{s.strip('()').split()[-1]}": a for i, (a, s) in enumerate(zip(args, sorts, strict=True))}
        operands = [self.machine.variable(p, k) for p, k in zip(places, kinds, strict=True)]
        return self._machine_term(self.machine.apply(op, kind, kinds, operands), places)

    def _machine_term(self, term: Expr, places: dict[str, str]) -> str:
        text = term_text(BitEncoding().term(term))
        if not places:
            return self._define(sort_name(term.sort), text)
        bindings = " ".join(f"({p} {a})" for p, a in places.items())
        return self._define(sort_name(term.sort), f"(let ({bindings}) {text})")

    def _function(self, op: str, e: int, s: int, args: Sequence[str]) -> str:
        """An application of a function without a meaning, with its special cases."""
        name = f"{op}_{e}_{s}"
        if name not in self._functions:
            self._functions[name] = None
            self._lines.append(f"(declare-fun {name} ({' '.join([_sort((e, s))] * len(args))}) {_sort((e, s))})")
        result = self._define(_sort((e, s)), f"({name} {' '.join(args)})")
        one = f"((_ to_fp {e} {s}) RNE 1.0)"
        for case in _SPECIAL_CASES[op]:
            self._once(f"(assert {case.format(*args, r=result, one=one, e=e, s=s)})")
        return result

    def _cast(self, kind: K, source: K, value: str) -> str:
        if "float" not in (kind.family, source.family):
            return self._machine("cast", kind, [source], [value])
        if source.family == "boolean":
            one, zero = self.constant(Fraction(1), kind), self.constant(Fraction(0), kind)
            return self._define(self._sort_of(kind), f"(ite {value} {one} {zero})")
        if kind.family == "float":
            e, s = self._float(kind)
            if source.family == "float":
                return self._define(_sort((e, s)), f"((_ to_fp {e} {s}) RNE {value})")
            if source.family == "integer":
                name = "to_fp" if source.parameters[1] == "signed" else "to_fp_unsigned"
                return self._define(_sort((e, s)), f"((_ {name} {e} {s}) RNE {value})")
        elif kind.family == "integer":
            return self._to_integer(kind, source, value)
        raise CannotInterpret(f"the theory of floats has no conversion from {source} to {kind}")

    def _to_integer(self, kind: K, source: K, value: str) -> str:
        """Cut toward zero and saturated; NaN is 0."""
        e, s = self._float(source)
        width, signed = int(kind.parameters[0]), kind.parameters[1] == "signed"
        low, high = (-(1 << (width - 1)), 1 << (width - 1)) if signed else (0, 1 << width)
        bounds = [f"((_ to_fp {e} {s}) RNE {_real(Fraction(b))})" for b in (low, high)]
        codes = [f"(_ bv{b & ((1 << width) - 1)} {width})" for b in (0, low, high - 1)]
        cut = f"((_ {'fp.to_sbv' if signed else 'fp.to_ubv'} {width}) RTZ {value})"
        text = (
            f"(ite (fp.isNaN {value}) {codes[0]} (ite (fp.leq {value} {bounds[0]}) {codes[1]} "
            f"(ite (fp.leq {bounds[1]} {value}) {codes[2]} {cut})))"
        )
        return self._define(sort_name(bv(width)), text)


def _sort(size: tuple[int, int]) -> str:
    return f"(_ FloatingPoint {size[0]} {size[1]})"


def _real(value: Fraction) -> str:
    """An exact real literal."""
    text = f"{abs(value.numerator)}.0"
    if value.denominator != 1:
        text = f"(/ {text} {value.denominator}.0)"
    return f"(- {text})" if value < 0 else text
