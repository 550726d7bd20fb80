"""The symbols of one proof.

Whatever a proof speaks of is an object: a size, a register, a counter, a function.  People call several of them by one
name, and solvers know symbols by nothing but their names.  So each object gets a text of its own here, the first one
the name that people gave it and further ones that name with ``!2``, ``!3``, ...; ``!`` is in no identifier of users
(:func:`ila_lang.var`).  Variables that a proof makes up have such names from the start.  Texts follow from the order in
which objects enter a proof, so it has the same ones whenever it is made.

Each proof has symbols of its own: two proofs may use one name for different things.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pysmt.environment import Environment, get_env, pop_env, push_env

from ila_lang import Expr, Sort
from ila_lang.language.expr import private_var

_NUMBER = re.compile(r"![0-9]+")

# Names that z3 5.4.0 or cvc5 1.3 refuse to declare, or read as built-in functions (tried one by one).
_WORDS = (
    "_ as let par match exists forall lambda choice true false not and or xor ite distinct div mod rem abs exp sin cos "
    "tan csc sec cot arcsin arccos arctan arccsc arcsec arccot sqrt to_int to_real is_int select store concat bvnot "
    "bvneg bvand bvor bvxor bvnand bvnor bvxnor bvadd bvsub bvmul bvudiv bvurem bvsdiv bvsrem bvsmod bvshl bvlshr "
    "bvashr bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge bvcomp bvredor bvredand bvnego bvuaddo bvsaddo bvumulo "
    "bvsmulo bvusubo bvssubo bvsdivo bvite bv2nat ubv_to_int sbv_to_int piand eqrange fp RNE RNA RTP RTN RTZ "
    "roundNearestTiesToEven roundNearestTiesToAway roundTowardPositive roundTowardNegative roundTowardZero tuple bag "
    "sep pto wand sinh cosh tanh asin acos atan asinh acosh atanh ext_rotate_left ext_rotate_right bvsmod_i bvudiv_i "
    "bvurem_i bvsdiv_i bvsrem_i bvumul_noovfl bvsmul_noovfl bvsmul_noudfl mkbv bv2int div0 mod0 bvudiv0 bvurem0 "
    "bvsdiv0 bvsrem0 bvsmod0"
)
_SOLVERS_OWN = frozenset(_WORDS.split())
_SOLVERS_FAMILIES = frozenset(
    ("bag", "ff", "fp", "int", "nullable", "re", "real", "rel", "sep", "seq", "set", "str", "table", "tuple")
)
"""The prefixes, before the dot, of built-in functions such as ``fp.add``."""


class _Texts:
    """Texts that are taken, and by what."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.texts: dict[Hashable, str] = {}
        self.numbers: dict[str, int] = {}

    def of(self, key: Hashable, name: str) -> str:
        """The text of an object that people call ``name``."""
        if key not in self.texts:
            base = text = plain(name)
            while text in self.taken or is_solvers_own(text):
                self.numbers[base] = number = self.numbers.get(base, 1) + 1
                text = f"{base}!{number}"
            self.taken.add(text)
            self.texts[key] = text
        return self.texts[key]


def is_solvers_own(text: str) -> bool:
    """Whether a text is a name built into a solver, which no symbol may have."""
    return text in _SOLVERS_OWN or ("." in text and text.partition(".")[0] in _SOLVERS_FAMILIES and "!" not in text)


class _Symbols:
    """How many fresh variables each name has, and the texts by which solvers know objects."""

    def __init__(self) -> None:
        self.users: set[str] = set()
        self.fresh_counts: dict[str, int] = {}
        self.solvers = _Texts()


_SYMBOLS: WeakKeyDictionary[Environment, _Symbols] = WeakKeyDictionary()


def _symbols() -> _Symbols:
    environment = get_env()
    if environment not in _SYMBOLS:
        _SYMBOLS[environment] = _Symbols()
    return _SYMBOLS[environment]


@contextmanager
def fresh_symbols() -> Iterator[None]:
    """Runs a block with symbols of its own, pySMT's among them; terms made inside must not be used outside."""
    push_env()
    try:
        yield
    finally:
        pop_env()


def fresh(name: str, sort: Sort) -> Expr:
    """A variable different from all others of the proof and of its users; its name begins with ``name``."""
    base, counts = plain(name), _symbols().fresh_counts
    counts[base] = counts.get(base, 0) + 1
    return private_var(f"{base}!{counts[base]}", sort)


def entering(variable: Expr) -> Expr:
    """The variable of its own of something that users named: the first one of a name keeps it."""
    users = _symbols().users
    if variable.name in users:
        return fresh(variable.name, variable.sort)
    users.add(variable.name)
    return variable


def plain(name: str) -> str:
    """What a variable of a proof was called before it got a name of its own."""
    return _NUMBER.sub("", name)


def declarable(name: str) -> str:
    """``name``, or a name derived from it that is free where solvers have a symbol of that name.

    >>> declarable("rows"), declarable("true")
    ('rows', 'true!2')
    """
    return f"{name}!2" if is_solvers_own(name) else name


def symbol_text(key: Hashable, name: str) -> str:
    """The text, unique in the proof, by which solvers know what ``key`` identifies and people call ``name``.

    >>> with fresh_symbols():
    ...     symbol_text(1, "max"), symbol_text(2, "max"), symbol_text(1, "max"), symbol_text(3, "exp")
    ('max', 'max!2', 'max', 'exp!2')
    """
    return _symbols().solvers.of(key, name)
