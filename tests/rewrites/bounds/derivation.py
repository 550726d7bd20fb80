"""Derivations written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rewrites.bounds.kernel.judgements import Step


@dataclass
class Derivation:
    """Collects steps; methods return the number of the step that they add."""

    steps: list[Step] = field(default_factory=list)

    def __call__(self, law: str, *of: int, names: Sequence[str] = (), lemmas: Sequence[str] = ()) -> int:
        """A step by a law."""
        self.steps.append(Step(law, of, tuple(lemmas), tuple(names)))
        return len(self.steps)

    def lemma(self, name: str, of: int, *names: str) -> int:
        """The primitive of a lemma in the place of the operation."""
        return self("lemma", of, lemmas=[name], names=names)

    def named(self, of: int, name: str) -> int:
        """The same value, whose magnitude is a range's."""
        return self("range", of, names=[name])


def plus(d: Derivation, a: int, b: int) -> int:
    """The sum in Q6.14."""
    return d.lemma("sum", d("sum", a, b))


def times(d: Derivation, a: int, b: int) -> int:
    """The product in Q6.14, rounded down."""
    return d.lemma("product", d("product", a, b))
