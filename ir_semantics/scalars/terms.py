"""The language of scalars: number formats, operators and terms, apart from any interpretation.

A term says *what* is computed; an interpretation says on which values (:func:`interpret`).  An operator's meaning is
one sentence in :data:`OPERATORS`: the exact function of the operands' values, then the rounding and overflow of the
result's format.  Concrete values stand in :mod:`ir_semantics.scalars.concrete`, SMT terms in
``smt_encodings.interpretations``.

Most terms are written over the format :data:`NUMBER`, which stands for any one format; an interpretation, or the
claim that a term is part of, chooses it.  Terms that convert between formats name them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from .formats import BOOLEAN, NUMBER, Format, Literal
from .operators import OPERATORS


class NotInterpreted(ValueError):
    """An operator that a format or an interpretation gives no meaning."""


class Scalar:
    """A term: a variable, a constant or an operator applied to terms; immutable, and one object for equal terms.

    ``+ - * /`` and unary ``-`` build terms, ``< <= > >=`` Boolean terms, as do :meth:`equals` and :meth:`same`; the
    operators ``&``, ``|``, ``~`` act on Booleans.  ``==`` compares terms, not what they denote.  Python numbers are
    taken as constants of the other operand's format.
    """

    __slots__ = ("__weakref__", "args", "format", "op", "payload")

    op: str
    args: tuple[Scalar, ...]
    format: Format
    payload: str | Literal | None

    def __init__(self) -> None:
        raise TypeError("a scalar must be made by variable(), constant() or an operator")

    def __add__(self, other: Operand) -> Scalar:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> Scalar:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> Scalar:
        return apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Scalar:
        return apply("sub", other, self)

    def __mul__(self, other: Operand) -> Scalar:
        return apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Scalar:
        return apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Scalar:
        return apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Scalar:
        return apply("div", other, self)

    def __lshift__(self, other: Operand) -> Scalar:
        return apply("shift_left", self, other)

    def __rshift__(self, other: Operand) -> Scalar:
        return apply("shift_right", self, other)

    def __neg__(self) -> Scalar:
        return apply("neg", self)

    def __lt__(self, other: Operand) -> Scalar:
        return apply("lt", self, other)

    def __le__(self, other: Operand) -> Scalar:
        return apply("le", self, other)

    def __gt__(self, other: Operand) -> Scalar:
        return apply("lt", other, self)

    def __ge__(self, other: Operand) -> Scalar:
        return apply("le", other, self)

    def __and__(self, other: Operand) -> Scalar:
        return apply("and", self, other)

    def __or__(self, other: Operand) -> Scalar:
        return apply("or", self, other)

    def __invert__(self) -> Scalar:
        return apply("not", self)

    def equals(self, other: Operand) -> Scalar:
        """Whether both are the same number: -0 = +0, and NaN equals nothing."""
        return apply("eq", self, other)

    def same(self, other: Operand) -> Scalar:
        """Whether both are the same value: -0 and +0 differ, all NaNs are one; on Booleans, equivalence."""
        return apply("same", self, other)

    def __bool__(self) -> bool:
        raise TypeError(f"the scalar {self} has no truth value; combine scalars with &, | and ~")

    def __repr__(self) -> str:
        return f"<Scalar {self}>"

    def __str__(self) -> str:
        return text_of(self, lambda name, _: name)


Operand = Scalar | Fraction | float | int | bool

_TERMS: WeakValueDictionary[object, Scalar] = WeakValueDictionary()


def _make(op: str, args: tuple[Scalar, ...], kind: Format, payload: str | Literal | None = None) -> Scalar:
    distinguished = repr(payload) if isinstance(payload, float) else payload  # -0.0 == 0.0, and nan != nan
    key = (op, args, kind, distinguished)
    term = _TERMS.get(key)
    if term is None:
        term = object.__new__(Scalar)
        term.op, term.args, term.format, term.payload = op, args, kind, payload
        _TERMS[key] = term
    return term


def variable(name: str, kind: Format = NUMBER) -> Scalar:
    """The variable ``name`` of a format; names are letters, digits and ``_``, and begin with a letter.

    >>> x = variable("x")
    >>> print(x * 2 + 1)
    x * 2 + 1
    """
    if not (name.isascii() and name[:1].isalpha() and name.replace("_", "a").isalnum()):
        raise ValueError(f"a variable's name must be letters, digits and '_' after a letter, not {name!r}; rename it")
    return _make("variable", (), kind, name)


def constant(value: Fraction | float | int | bool, kind: Format = NUMBER) -> Scalar:
    """A constant of a format; a float is taken at its exact value, with -0.0, infinities and NaN as themselves."""
    if isinstance(value, bool):
        return _make("constant", (), BOOLEAN, Fraction(int(value)))
    if isinstance(value, float) and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return _make("constant", (), kind, value)
    return _make("constant", (), kind, Fraction(value))


TRUE = constant(True)
FALSE = constant(False)


def apply(name: str, *operands: Operand, target: Format | None = None) -> Scalar:
    """An operator applied to operands, one of which at least is a term; ``target`` is the format of a cast.

    Raises TypeError where the number of operands or their formats do not fit.
    """
    op = OPERATORS[name]
    if len(operands) != op.arity:
        raise TypeError(f"{name} must be given {op.arity} operands, not {len(operands)}")
    numbers = operands[1:] if name == "select" else operands
    kinds = {o.format: None for o in numbers if isinstance(o, Scalar)}
    if not kinds and all(isinstance(o, bool) for o in numbers):
        kinds = {BOOLEAN: None}
    if not kinds:
        kinds = {NUMBER: None}
    if len(kinds) > 1:
        raise TypeError(
            f"operands of {name} must have one format, not {' and '.join(map(str, kinds))}; cast one of them"
        )
    (kind,) = kinds
    args = tuple(_operand(o, BOOLEAN if name == "select" and i == 0 else kind, name) for i, o in enumerate(operands))
    if name in ("not", "and", "or") and kind != BOOLEAN:
        raise TypeError(f"operands of {name} must be Booleans, not of the format {kind}")
    if kind == BOOLEAN and name not in ("not", "and", "or", "select", "same", "cast"):
        raise TypeError(f"operands of {name} must be numbers, not Booleans; use select() to make numbers of them")
    if (op.result == "target") != (target is not None):
        raise TypeError(f"a target format must be given for casts, and only for them, not for {name}")
    return _make(name, args, target or (BOOLEAN if op.result == "boolean" else kind))


def _operand(operand: Operand, kind: Format, name: str) -> Scalar:
    term = operand if isinstance(operand, Scalar) else constant(operand, kind)
    if term.format != kind:
        raise TypeError(f"an operand of {name} must have the format {kind}, not {term.format} ({term})")
    return term


def select(condition: Operand, yes: Operand, no: Operand) -> Scalar:
    """``yes`` where ``condition`` is true, else ``no``."""
    return apply("select", condition, yes, no)


def _unary(name: str) -> Callable[[Operand], Scalar]:
    def build(x: Operand) -> Scalar:
        return apply(name, x)

    build.__doc__ = OPERATORS[name].doc
    return build


def _binary(name: str) -> Callable[[Operand, Operand], Scalar]:
    def build(x: Operand, y: Operand) -> Scalar:
        return apply(name, x, y)

    build.__doc__ = OPERATORS[name].doc
    return build


abs_, exp, log, sqrt = _unary("abs"), _unary("exp"), _unary("log"), _unary("sqrt")
floor, ceil, trunc, unsigned_zero = _unary("floor"), _unary("ceil"), _unary("trunc"), _unary("unsigned_zero")
is_nan, is_finite, not_ = _unary("is_nan"), _unary("is_finite"), _unary("not")
maximum, minimum, maxnum, minnum = _binary("maximum"), _binary("minimum"), _binary("maxnum"), _binary("minnum")
pow_, divide_toward_zero, divide_floor = _binary("pow"), _binary("quotient"), _binary("floor_quotient")


def fma(x: Operand, y: Operand, z: Operand) -> Scalar:
    """x * y + z, rounded once."""
    return apply("fma", x, y, z)


def cast(x: Operand, target: Format) -> Scalar:
    """The value of ``x`` in another format; see the operator ``cast``."""
    return apply("cast", x, target=target)


def relu(x: Scalar) -> Scalar:
    """maximum(x, 0)."""
    return maximum(x, 0)


def clamp(x: Operand, low: Operand, high: Operand) -> Scalar:
    """minimum(maximum(x, low), high)."""
    return minimum(maximum(x, low), high)


def all_of(terms: Iterable[Scalar]) -> Scalar:
    """The conjunction of Booleans; true for none."""
    conjuncts = list(terms)
    return reduce(partial(apply, "and"), conjuncts) if conjuncts else TRUE


# -- walking ---------------------------------------------------------------------------------------------


def postorder(roots: Iterable[Scalar]) -> Iterator[Scalar]:
    """Every subterm once, operands first."""
    seen: set[Scalar] = set()
    stack = [(root, False) for root in list(roots)[::-1]]
    while stack:
        term, ready = stack.pop()
        if ready:
            yield term
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack.extend((a, False) for a in reversed(term.args) if a not in seen)


def operations_in(*roots: Scalar) -> int:
    """How many operations and leaves terms have when they are written out: parts that are shared count each time."""
    written: dict[Scalar, int] = {}
    for term in postorder(roots):
        written[term] = 1 + sum(written[a] for a in term.args)
    return sum(written[root] for root in roots)


def variables(*roots: Scalar) -> dict[str, Format]:
    """The variables of terms by name; raises TypeError where one name has two formats."""
    formats: dict[str, Format] = {}
    for term in postorder(roots):
        if term.op == "variable":
            name = str(term.payload)
            if formats.setdefault(name, term.format) != term.format:
                raise TypeError(f"the variable {name} must have one format, not {formats[name]} and {term.format}")
    return formats


def substitute(root: Scalar, replacements: Mapping[Scalar, Scalar]) -> Scalar:
    """``root`` with terms replaced, the largest ones first; formats must agree."""
    done: dict[Scalar, Scalar] = {}
    for old, new in replacements.items():
        if old.format != new.format:
            raise TypeError(f"what replaces {old} must have the format {old.format}, not {new.format}")
        done[old] = new
    for term in postorder([root]):
        if term not in done:
            args = tuple(done[a] for a in term.args)
            done[term] = _make(term.op, args, term.format, term.payload)
    return done[root]


V = TypeVar("V")


class Domain(Protocol[V]):
    """An interpretation: what stands for variables, constants and operators.

    ``kind`` is the format of the result and ``kinds`` the formats of the operands, with NUMBER already replaced.
    A domain raises NotInterpreted (or another ValueError) for an operator that has no meaning in it.
    """

    def variable(self, name: str, kind: Format) -> V:
        """The value of a variable."""

    def constant(self, value: Literal, kind: Format) -> V:
        """The value of a constant."""

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[V]) -> V:
        """The value of an operator (not a variable or constant) on values."""


def interpret(roots: Sequence[Scalar], domain: Domain[V], number: Format = NUMBER, prefix: str = "") -> list[V]:
    """The values of terms over ``domain``, where ``number`` takes the place of NUMBER.

    The domain gets the names of variables with ``prefix`` before them.
    """

    def kind_of(term: Scalar) -> Format:
        return number if term.format == NUMBER else term.format

    values: dict[Scalar, V] = {}
    for term in postorder(roots):
        kind = kind_of(term)
        if term.op == "variable":
            values[term] = domain.variable(f"{prefix}{term.payload}", kind)
        elif term.op == "constant":
            assert isinstance(term.payload, Fraction | float)
            values[term] = domain.constant(term.payload, kind)
        else:
            values[term] = domain.apply(term.op, kind, [kind_of(a) for a in term.args], [values[a] for a in term.args])
    return [values[r] for r in roots]


# -- text ------------------------------------------------------------------------------------------------

_INFIX = {
    "or": ("or", 1),
    "and": ("and", 2),
    "lt": ("<", 3),
    "le": ("<=", 3),
    "eq": ("=", 3),
    "same": ("==", 3),
    "shift_left": ("<<", 4),
    "shift_right": (">>", 4),
    "add": ("+", 5),
    "sub": ("-", 5),
    "mul": ("*", 6),
    "div": ("/", 6),
    "quotient": ("sdiv", 6),
    "floor_quotient": ("div", 6),
}


def text_of(term: Scalar, variable: Callable[[str, int], str], above: int = 0) -> str:
    """A term as people write it, for a place with the precedence ``above``; what stands for a variable there is given.

    Operators bind from 1 (or) to 6 (products); what must not have an operator outside of parentheses has a place of 7.
    """

    def of(term: Scalar, above: int = 0) -> str:
        return text_of(term, variable, above)

    if term.op == "variable":
        return variable(str(term.payload), above)
    if term.op == "constant":
        if term.format == BOOLEAN:
            return "true" if term.payload else "false"
        text = str(term.payload)
        if "/" in text:
            as_float = repr(float(Fraction(text)))
            text = as_float if len(as_float) <= 8 and Fraction(as_float) == Fraction(text) else text
        return f"({text})" if above > 4 and (text.startswith("-") or "/" in text) else text
    if term.op in _INFIX:
        symbol, level = _INFIX[term.op]
        shift = symbol in ("<<", ">>")
        left, right = (of(a, 7 if shift else level + i) for i, a in enumerate(term.args))
        text = f"{left} {symbol} {right}"
        return f"({text})" if level < above else text
    if term.op == "neg":
        return f"-{of(term.args[0], 7)}"
    if term.op == "not":
        return f"not {of(term.args[0], 7)}"
    if term.op == "select":
        condition, yes, no = (of(a, 1) for a in term.args)
        text = f"if {condition} then {yes} else {no}"
        return f"({text})" if above else text
    inner = ", ".join(of(a) for a in term.args)
    return f"{term.format}({inner})" if term.op == "cast" else f"{term.op}({inner})"
