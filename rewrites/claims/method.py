"""The door for proof methods of mappings: what a package says of one, under the entry points ``ilaverify.methods``.

A method is trusted as the package that it comes from is, and so are the obligations that it says a proof needs.  What
is not left to it: concrete runs of both sides before PROVED is said, the replay of a counterexample before REFUTED is,
and solvers' answers to the obligations (:mod:`rewrites.claims.verify`, :mod:`reports.checker`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from ila_lang.errors import InputError
from ila_lang.extensions import Door

if TYPE_CHECKING:
    from ila_lang.mapping import TensorMapping
    from smt_encodings.claims import Claim, Verdict
    from smt_encodings.discharge import Discharger

__all__ = ["AUTO", "METHODS", "SHAPE", "Invariants", "Method", "Parameter", "Parameters", "shape_of"]

Parameters = Mapping[str, Any]
"""Values of a method's parameters by name, as they stand in certificates: JSON."""
Invariants = Mapping[str, Sequence[str]]
"""Conjuncts as SMT-LIB text, by loop level."""


AUTO = "auto"
"""In the place of a method: BMC where a shape is given, else CHC."""

_OPTIONS = ("full", "help", "json", "module")


def _require_word(what: str, name: str, *taken: str) -> None:
    if name in taken or re.fullmatch("[a-z][a-z0-9_]*", name) is None:
        raise ValueError(f"the name of {what} must be free, and of a-z, 0-9 and _, not {name!r:.60}")


@dataclass(frozen=True)
class Parameter:
    """What a method must be told; an option of ``ilaverify mapping`` has its name.

    ``example`` is shown as the option's value, ``read`` makes its value (JSON) of the option's text and raises
    ValueError with what must hold.  Without a ``default`` it must be given.
    """

    name: str
    example: str
    meaning: str
    read: Callable[[str], Any] = str
    default: Any = None

    def __post_init__(self) -> None:
        _require_word("a parameter", self.name, "mapping", "method", "discharger", "timeout", "progress", *_OPTIONS)

    @classmethod
    def choice(cls, name: str, meaning: str, *values: str) -> Parameter:
        """One of these texts, by default the first."""

        def read(text: str) -> str:
            if text not in values:
                raise ValueError(f"must be one of {', '.join(values)}, not '{text}'")
            return text

        return cls(name, "|".join(values), f"{meaning}; default: {values[0]}", read, values[0])


@dataclass(frozen=True)
class Method:
    """A way to prove a mapping.

    ``summary`` says in a line what a PROVED by it rests on, ``unsaid`` what it leaves open.  The functions are of the
    package's own modules, for a certificate names the digest of these.

    * ``claim(mapping, parameters)``: what a PROVED says.
    * ``prove(mapping, parameters, discharger)``: the verdict.  Its detail "parameters" are those of the certificate
      where they are not the given ones.  REFUTED has a :class:`~bmc.counterexample.Counterexample` as the detail
      "counterexample"; where UNKNOWN is said of every size, sizes in the detail "suspects" are searched for one.
    * ``regenerate(mapping, parameters, invariants, discharger)``: likewise, with no search for a counterexample, and
      with the invariants of a certificate, which are nothing but hints (None: there is no certificate).  To check one,
      the discharger only notes what it is asked; at the end the proof must call its ``conclude``.

    One with a parameter ``shape`` (:data:`SHAPE`) proves one shape, others every size.
    """

    name: str
    summary: str
    unsaid: str
    claim: Callable[[TensorMapping, Parameters], Claim]
    prove: Callable[[TensorMapping, Parameters, Discharger], Verdict]
    regenerate: Callable[[TensorMapping, Parameters, Invariants | None, Discharger], Verdict]
    parameters: tuple[Parameter, ...] = ()

    def __post_init__(self) -> None:
        _require_word("a method", self.name, AUTO)
        for function in self.functions:
            if not isinstance(function, FunctionType):  # of other things it is not known which module they are of
                raise ValueError(f"method {self.name} must consist of functions, not {function!r:.60}")

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """What a proof by the method, and the check of one, begin with."""
        return self.claim, self.prove, self.regenerate

    def completed(self, values: Parameters, extents: int = 2) -> dict[str, Any]:
        """The values of all parameters; raises ValueError where one is missing, or is none of this method.

        The example of a shape that is missing has as many ``extents``.
        """
        known = {p.name for p in self.parameters}
        for name in values:
            if name not in known:
                others = [m.name for m in METHODS.all().values() if name in {p.name for p in m.parameters}]
                hint = f", or use method {' or '.join(others)}" if others else ""
                raise InputError(f"method {self.name} has no parameter {name}; leave it out{hint}")
        for p in self.parameters:
            if p.name not in values and p.default is None:
                example = "x".join(["16"] * (extents - 1) + ["64"]) if p.name == "shape" else p.example
                raise InputError(f"method {self.name} must be given a {p.name}, e.g. {example}")
        return {p.name: values.get(p.name, p.default) for p in self.parameters}


EXTENT_DIGITS = 9


def _extents(text: str) -> list[int]:
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    if re.fullmatch(r"[0-9]+(x[0-9]+)*", text) is None:
        raise ValueError(f"must be extents with x in between, e.g. 16, 16x64 or 1x32x16, not '{shown}'")
    if any(len(part) > EXTENT_DIGITS for part in text.split("x")):
        raise ValueError(f"must have extents of at most {EXTENT_DIGITS} digits, not '{shown}'")
    return [int(part) for part in text.split("x")]


SHAPE: Final = Parameter(
    "shape",
    "16x64",
    "the shape; 16x64 (rows, columns) of a pooling, 1x32x16 (rows, inputs, outputs) of a dense layer; the message "
    "about a wrong one names its extents",
    _extents,
)
"""The one shape that a proof is of."""


def shape_of(parameters: Parameters) -> tuple[int, ...]:
    """The shape among parameters, which a certificate may say anything of; raises ValueError where it is none."""
    value = parameters["shape"]
    if not isinstance(value, list) or not all(type(n) is int for n in value):
        raise InputError(f"a shape must be a list of integers, not {value!r:.60}")
    return tuple(value)


METHODS: Final = Door("ilaverify.methods", Method)
"""All methods that are installed."""
