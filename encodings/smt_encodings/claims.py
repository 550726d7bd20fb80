"""What provers answer: verdicts, claims and obligations.

A verdict is never a Boolean.  ``bool(verdict)`` raises, so that no caller can mistake UNKNOWN for PROVED.  PROVED is
said last, by :func:`conclude`, of what was discharged; every verdict passes it when it is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn

__all__ = [
    "Answer",
    "Claim",
    "Equality",
    "Interpretation",
    "Obligation",
    "Runs",
    "Status",
    "Unsupported",
    "Verdict",
    "conclude",
]


class Unsupported(Exception):
    """What a method does not cover, the one base class for it: the attempt ends UNKNOWN, and the message says why."""


class Status(Enum):
    """The five possible answers of a proof attempt."""

    PROVED = "PROVED"
    """Every obligation was discharged, and a second solver agreed; where there is none, the reason says why."""
    REFUTED = "REFUTED"
    """A counterexample exists and was replayed on the interpreter."""
    UNKNOWN = "UNKNOWN"
    """Neither proof nor counterexample; the reason is given."""
    VACUOUS = "VACUOUS"
    """No size satisfies the precondition: the claim says nothing."""
    ERROR = "ERROR"
    """The attempt itself failed."""

    def __bool__(self) -> NoReturn:
        raise TypeError("A verdict has no truth value; compare its status, e.g. `status is Status.PROVED`")


class Equality(Enum):
    """The sense in which both sides of a claim are equal."""

    BIT_EXACT = "bit_exact"
    OVER_REALS = "over_reals"
    UP_TO_REDUCTION_ORDER = "up_to_reduction_order"
    WITHIN = "within"
    REFINES = "refines"
    """Wherever the first program is defined, the second is, with the same values (all NaNs are one)."""


class Interpretation(Enum):
    """How data operations are understood in a proof."""

    UNINTERPRETED = "uninterpreted"
    """Data functions are symbols; the result holds for every choice of them that satisfies the lemmas.

    Where sums are compared in another order, the functions that they add up by are the ones that are given: that
    their order is free, and what their results are between, is proved of their bodies.  So it is of iterations that are
    left out because they change nothing on all bits.
    """
    BITS = "bits"
    """Data functions are their closed forms on bit-vectors."""
    REALS = "reals"
    """Data are real numbers, without rounding or bound."""
    INTEGERS = "integers"
    """Data are integers without bound."""
    ABSTRACT_FLOAT = "abstract_float"
    """Data are floats of which order, signs and special values are exact, and arithmetic is known by a few laws."""
    IEEE = "ieee"
    """Data are IEEE 754 floats, with the solvers' arithmetic."""


@dataclass(frozen=True)
class Answer:
    """One solver's answer: ``status`` is "sat", "unsat" or "unknown"; ``model`` maps symbols to values."""

    status: str
    seconds: float
    solver: str
    reason: str = ""
    model: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Obligation:
    """A closed SMT-LIB question whose answer is part of a proof.

    ``smtlib`` is a complete script up to and including ``(check-sat)``; ``expected`` is "unsat" for a theorem
    (its negation has no model) and "sat" for a health check.
    """

    name: str
    group: str
    smtlib: str
    expected: str
    meaning: str
    answers: tuple[Answer, ...] = ()

    @property
    def discharged(self) -> bool:
        """Whether solvers were asked, and all of them gave the expected answer."""
        return bool(self.answers) and all(a.status == self.expected for a in self.answers)


@dataclass(frozen=True)
class Claim:
    """What is claimed, in full; printed next to every verdict."""

    subject: str
    statement: str
    size_domain: str
    equality: Equality
    interpretations: tuple[Interpretation, ...]
    assumptions: tuple[str, ...]
    compared: str = ""
    """Of a mapping: which elements of which tensors are equal, given which equal inputs."""


@dataclass(frozen=True)
class Runs:
    """Concrete runs of both sides: how many, at which sizes or operands (in words), and how many seconds they took.

    ``difference`` is the first that was found, as a counterexample in the form of the claim's kind, and ``shown`` it in
    a line.  ``notes`` say what could not be run, and what other code said.
    """

    count: int
    at: tuple[str, ...]
    notes: tuple[str, ...] = ()
    difference: object | None = None
    shown: str = ""
    seconds: float = 0.0


_GROUNDS = ("enumerations", "derivation", "decided_by")


def conclude(obligations: Sequence[Obligation], decided_by: object = "") -> tuple[Status, str]:
    """PROVED, where that may be said: the only place where it is.

    ``decided_by`` names what decided the claim without a solver: an enumeration, a normal form, a derivation.  The
    answer is ERROR, with the reason, where there is neither that nor an obligation, where one is not discharged, or two
    have one name: a certificate is compared by names.
    """
    failed = next((o for o in obligations if not o.discharged), None)
    if failed is not None:
        answers = ", ".join(f"{a.solver}: {a.status}" for a in failed.answers) or "nobody was asked"
        which = f"'{failed.name}' ({failed.group}) needs the answer {failed.expected}"
        return Status.ERROR, f"PROVED needs every obligation discharged; {which}; {answers}"
    named = Counter((o.group, o.name) for o in obligations)
    if twice := next((n for n, count in named.items() if count > 1), None):
        return (
            Status.ERROR,
            f"PROVED needs obligations with names of their own; two are called '{twice[1]}' ({twice[0]})",
        )
    if not obligations and not decided_by:
        return Status.ERROR, "PROVED needs an obligation, an enumeration or a derivation; this attempt has none"
    return Status.PROVED, ""


@dataclass
class Verdict:
    """The outcome of a proof attempt.

    One that is made PROVED without grounds (:func:`conclude`) is an ERROR, and none becomes PROVED afterwards.  Grounds
    without a solver are the details "enumerations", "derivation" and "decided_by".  ``runs`` are those that a PROVED
    survived (:func:`smt_encodings.runs.surviving`), or that made it an ERROR.
    """

    status: Status
    claim: Claim
    method: str
    seconds: float
    reason: str = ""
    obligations: list[Obligation] = field(default_factory=list)
    invariants: dict[str, list[str]] = field(default_factory=dict)
    details: dict[str, object] = field(default_factory=dict)
    runs: Runs | None = None

    def __post_init__(self) -> None:
        if self.status is Status.PROVED:
            status, problem = conclude(self.obligations, next(filter(None, map(self.details.get, _GROUNDS)), ""))
            if status is not Status.PROVED:
                self.status, self.reason = status, problem

    def __setattr__(self, name: str, value: object) -> None:
        if name == "status" and value is Status.PROVED and hasattr(self, "details"):
            raise TypeError("A verdict is PROVED when it is made or never; make a new one of the obligations")
        super().__setattr__(name, value)

    def __bool__(self) -> NoReturn:
        raise TypeError("A verdict has no truth value; compare its status, e.g. `verdict.status is Status.PROVED`")
