"""Subjects of claims: the one interface through which mappings, rules, lemmas and theorems are proved and checked.

A subject knows its claim, digests of what the claim is about, how it is proved, which obligations a proof of it needs
as things are now, and how a counterexample is replayed.  Certificates, the store, the checker and all reports know only
subjects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from smt_encodings.claims import Claim, Runs, Status, Verdict
from smt_encodings.discharge import Discharger, Requirement

from .certificate import claim_json

__all__ = ["KINDS", "Entry", "Mutant", "Refutation", "Required", "Subject", "needed_by"]

KINDS: Mapping[str, str] = {
    "mapping": "mappings of the tensor IR to accelerators",
    "joint": "operators of the graph IR and the mappings that execute them, which must be one",
    "rule": "rewrite rules between terms of the tensor IR",
    "lemma": "lemmas on number formats, and rules by which errors compose",
    "theorem": "theorems about accelerators",
    "translation": "functions of MLIR programs, and what they were translated to",
}
"""The kinds of subjects, each in a few words."""


@dataclass(frozen=True)
class Refutation:
    """A replayed counterexample: a short text, data to replay it from, and a device program where it is one.

    ``shown`` is what the text says, as data, where there is such.
    """

    summary: str
    document: str
    program: str = ""
    notes: tuple[str, ...] = ()
    shown: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Required:
    """What a certificate must contain: the claim's words, the obligations, loop levels and enumerations."""

    claim: Claim
    obligations: Sequence[Requirement]
    levels: Mapping[str, Any] = field(default_factory=dict)
    enumerations: Sequence[Mapping[str, Any]] = ()
    derived: bool = False
    """Whether the obligations are those of the certificate's derivation."""


@dataclass(frozen=True)
class Mutant:
    """A claim with one thing changed, in words.

    ``differs`` runs both sides for some seconds and says where they differ, or returns None; ``prove`` is the proof by
    the claim's own method, without any runs that would refute it first.
    """

    what: str
    differs: Callable[[float], str | None]
    prove: Callable[[Discharger], tuple[Status, str]]


class Subject(ABC):
    """The subject of a claim, whose ``name`` the claim has.

    ``kind`` is one of KINDS; ``method`` proves it for all that the claim covers.
    """

    name: str
    kind: str
    method: str

    def place(self) -> tuple[str, int]:
        """File (relative to the source root) and line of its definition; no file where that is unknown."""
        return "", 0

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that its certificates may have."""
        return (self.method,)

    @abstractmethod
    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The functions with which proofs by a method begin; :mod:`reports.method_code` finds its code by them."""

    @abstractmethod
    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim of a proof with these parameters; raises ValueError where there is none."""

    @abstractmethod
    def semantics(self) -> dict[str, str]:
        """Digests (SHA-256) of everything that the claim refers to."""

    @abstractmethod
    def trust(self, claim: Claim) -> str:
        """What the claim rests on besides the solvers, as lines of the trust report."""

    @abstractmethod
    def prove(self, discharger: Discharger) -> Verdict:
        """The verdict of ``method``; its claim has this subject's name."""

    @abstractmethod
    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """What a certificate with these parameters and hints must contain, generated again.

        Raises ValueError where the parameters are not those of a proof.
        """

    def survey(self) -> Runs | None:
        """The concrete runs that a proof survives, made again; None where a check does not repeat them."""
        return None

    @abstractmethod
    def refutation(self, verdict: Verdict) -> Refutation | None:
        """The counterexample of a REFUTED verdict."""

    @abstractmethod
    def replayed(self, document: str) -> Refutation | None:
        """The refutation in a document, None where it no longer replays; raises ValueError for other texts."""

    def words(self) -> Claim:
        """The claim with all that is known before the proof."""
        return self.claim({})

    def question(self) -> dict[str, Any]:
        """The question, as part of the key of an answer in the store."""
        return claim_json(self.words())

    def mutants(self, draw: Random) -> Iterator[Mutant]:
        """Changed claims that the method should not prove, in random order; none where there is no way to make them."""
        return iter(())

    def parameters(self, verdict: Verdict) -> dict[str, Any]:
        """The parameters of a proof, from which :meth:`claim` and :meth:`required` find it again."""
        return {}


@dataclass(frozen=True)
class Entry:
    """A named subject: a line about it, how to build it, and the verdict that it must get."""

    summary: str
    build: Callable[[], Subject]
    kind: str = "mapping"
    expected: Status = Status.PROVED


def needed_by(verdict: Verdict) -> list[Requirement]:
    """The obligations of a verdict as requirements, each exactly as it is: for provers that are run again to check."""
    return [Requirement(o.group, o.name, o.expected, o.smtlib, True, o.meaning) for o in verdict.obligations]
