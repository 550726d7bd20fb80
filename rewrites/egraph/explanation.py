"""Explanations: why two terms are equal, as data.

An explanation has *lines*. A line says that two terms are equal, either because a rule says so, or because their
operands are equal by chains of earlier lines (congruence). A chain is a sequence of lines, each read forwards or
backwards, in which every line starts with the term that the one before ended with. An explanation shares lines like a
network shares values, so it stays small where the same equality is used many times; ``steps`` writes it out as
rewriting of one place at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from .terms import EGraphError, Term, term

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Substitution(Generic[T]):
    """What a rule's variables stand for, sorted by name.

    ``operands`` are terms in explanations and numbers of e-nodes in the e-graph; ``values`` are attributes and types.
    """

    operands: tuple[tuple[str, T], ...]
    values: tuple[tuple[str, Hashable], ...] = ()

    @classmethod
    def of(cls, operands: Mapping[str, T], values: Mapping[str, Hashable]) -> Substitution[T]:
        """The substitution of these mappings."""
        return cls(
            tuple(sorted(operands.items(), key=lambda item: item[0])),
            tuple(sorted(values.items(), key=lambda item: item[0])),
        )

    def moved(self, to: Callable[[T], U]) -> Substitution[U]:
        """The same with other operands."""
        return Substitution(tuple((name, to(value)) for name, value in self.operands), self.values)


@dataclass(frozen=True)
class Rule:
    """A rule by its name and the digest of the certificate that it was proved with."""

    name: str
    certificate: str


@dataclass(frozen=True)
class RuleApplication:
    """The reason of a line: the two sides of a rule, under a substitution, are the line's terms."""

    rule: Rule
    substitution: Substitution[Term]


Chain: TypeAlias = "tuple[tuple[int, bool], ...]"
"""Numbers of lines; True if read forwards."""


@dataclass(frozen=True)
class Congruence:
    """The reason of a line: both terms have one symbol, and their operands are equal by these chains."""

    operands: tuple[Chain, ...]


@dataclass(frozen=True)
class Line:
    """Two equal terms and why."""

    before: Term
    after: Term
    reason: RuleApplication | Congruence


@dataclass(frozen=True)
class Step:
    """One application of a rule at one place of a term.

    ``position`` has the numbers of the operands that lead from the term to the place. ``forwards`` says whether the
    place changes from the rule's left side to its right side. ``before`` and ``after`` are the whole terms.
    """

    rule: Rule
    substitution: Substitution[Term]
    forwards: bool
    position: tuple[int, ...]
    before: Term
    after: Term

    def __str__(self) -> str:
        place = ".".join(map(str, self.position)) or "top"
        return f"{self.rule.name} {'forwards' if self.forwards else 'backwards'} at {place}"


@dataclass(frozen=True)
class Explanation:
    """Why the terms ``start`` and ``end`` are equal: lines, and the chain of them that leads from one to the other."""

    start: Term
    end: Term
    lines: tuple[Line, ...]
    chain: Chain

    def rules(self) -> dict[Rule, int]:
        """The rules that it rests on, with the number of lines that apply each."""
        counts: dict[Rule, int] = {}
        for line in self.lines:
            if isinstance(line.reason, RuleApplication):
                counts[line.reason.rule] = counts.get(line.reason.rule, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (item[0].name, item[0].certificate)))

    def length(self) -> int:
        """The number of steps when written out; it can be exponential in the number of lines."""
        counts: list[int] = []
        for line in self.lines:
            if isinstance(line.reason, RuleApplication):
                counts.append(1)
            else:
                counts.append(sum(counts[number] for chain in line.reason.operands for number, _ in chain))
        return sum(counts[number] for number, _ in self.chain)

    def steps(self, most: int = 100_000) -> Iterator[Step]:
        """The explanation written out, a rule at a place at a time.

        Raises EGraphError at once where there are more than ``most`` steps.
        """
        length = self.length()
        if length > most:
            raise EGraphError(
                f"an explanation can be written out in at most {most} steps, not {length}; "
                "check its lines, or raise the limit"
            )
        return self._steps()

    def _steps(self) -> Iterator[Step]:
        now = self.start
        pending = [(number, forwards, ()) for number, forwards in reversed(self.chain)]
        stack: list[tuple[int, bool, tuple[int, ...]]] = list(pending)
        while stack:
            number, forwards, position = stack.pop()
            line = self.lines[number]
            if isinstance(line.reason, Congruence):
                stack += reversed(
                    [
                        (inner, direction == forwards, (*position, place))
                        for place, chain in enumerate(line.reason.operands)
                        for inner, direction in (chain if forwards else reversed(chain))
                    ]
                )
            else:
                after = _replaced(now, position, line.after if forwards else line.before)
                yield Step(line.reason.rule, line.reason.substitution, forwards, position, now, after)
                now = after


def _replaced(whole: Term, position: tuple[int, ...], new: Term) -> Term:
    """The term with the place replaced."""
    above = []
    for place in position:
        above.append((whole, place))
        whole = whole.operands[place]
    for outer, place in reversed(above):
        new = term(outer.symbol, (*outer.operands[:place], new, *outer.operands[place + 1 :]))
    return new
