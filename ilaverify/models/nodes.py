"""An accelerator operator of a run beside its exact meaning: errors, bounds, and numbers that were cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

DECLARED = "declared"
RESULT = "its result"
"""Stands for an operand's name in a :class:`Cut` of what the accelerator computed."""


@dataclass(frozen=True)
class Cut:
    """Numbers of an operand, or the result, that lay beyond its format, and were cut to its end: ``count`` of ``of``.

    Those of the result (:data:`RESULT`) the accelerator cuts, and states between steps are counted with it.  ``of`` is
    for one sample.  Those of a ``constant`` were cut when the model was compiled, whatever the inputs are.
    """

    operand: str
    count: int
    of: int
    constant: bool


@dataclass(frozen=True)
class Furthest:
    """The largest distance from the exact operator on quantised operands, with its bound, and in which sample it is."""

    error: float
    bound: float | None
    sample: int

    @classmethod
    def from_json(cls, entries: dict[str, Any] | None) -> Furthest | None:
        """What ``asdict`` was given; raises TypeError where it is none."""
        return None if entries is None else cls(**entries)


@dataclass(frozen=True)
class NodeComparison:
    """An accelerator operator in a run; of several samples, in the one that comes nearest to its bound.

    Errors are the largest distances of elements: ``own`` on quantised operands and ``given`` on given ones, each with
    its bound (None where there is none; ``reason`` says why), ``reference`` from the host's run, whose largest
    magnitude is ``scale``.  ``theorem`` is the claim that proves ``own_bound``; without one it is declared, as
    ``given_bound`` always is: what rounding the operands may change is derived by hand.  ``cuts`` are operands with
    numbers beyond their format, and the result, if the accelerator cut numbers of it.  ``furthest`` is the largest own
    error.  It, ``cuts`` and ``seconds`` are of all samples, everything else is of the ``sample``.
    """

    number: int
    operator: str
    origin: str
    calls: int
    mappings: tuple[str, ...]
    own: float
    own_bound: float | None
    given: float
    given_bound: float | None
    reason: str
    reference: float
    scale: float
    cuts: tuple[Cut, ...]
    seconds: float
    theorem: str = ""
    sample: int = 0
    furthest: Furthest | None = None

    @property
    def _severity(self) -> tuple[int, float]:
        """How bad the errors are: beyond a bound, unrelated, without a bound, within; then the nearest to the bound."""
        pairs = [(self.own, self.own_bound), (self.given, self.given_bound)]
        known = [(e, b) for e, b in pairs if b is not None] or [(self.own, self.scale)]
        nearest = max(0.0 if e == 0 else e / b if b > 0 and e == e else np.inf for e, b in known)
        return (3 if self.inside is False else 2 if self.unrelated else int(self.inside is None)), nearest

    def joined(self, later: NodeComparison) -> NodeComparison:
        """The operator in these samples and in later ones."""
        cuts = {cut.operand: cut for cut in self.cuts}
        for cut in later.cuts:
            before = cuts.get(cut.operand)
            cuts[cut.operand] = cut if before is None or cut.constant else replace(cut, count=before.count + cut.count)
        worse = later if later._severity > self._severity else self
        ordered = tuple(sorted(cuts.values(), key=lambda cut: cut.operand))
        one, other = self.largest, later.largest
        furthest = other if other.error > one.error or other.error != other.error else one
        return replace(worse, cuts=ordered, seconds=self.seconds + later.seconds, furthest=furthest)

    @property
    def largest(self) -> Furthest:
        """The largest own error of any sample; NaN is larger than all."""
        return self.furthest or Furthest(self.own, self.own_bound, self.sample)

    @property
    def cut(self) -> bool:
        """Whether numbers that calibration was to foresee were cut: results, and operands that inputs decide."""
        return any(not cut.constant for cut in self.cuts)

    @property
    def known(self) -> str | None:
        """Whether the bound on quantised operands is proved, and by which claim, or declared; None without one."""
        if self.own_bound is None:
            return None
        return f"proved by {self.theorem}" if self.theorem else DECLARED

    @property
    def inside(self) -> bool | None:
        """Whether errors are within their bounds; None where there is no bound.  A NaN is within none."""
        pairs = [(self.own, self.own_bound), (self.given, self.given_bound)]
        known = [error <= bound for error, bound in pairs if bound is not None]
        return all(known) if known else None

    @property
    def unrelated(self) -> bool:
        """Whether no bound is known and the error is as large as the values: numbers have wrapped, as a rule."""
        return self.inside is None and self.own != 0 and not self.own < self.scale  # NaN is neither

    def as_json(self) -> dict[str, Any]:
        """The node's line for machines."""
        return {
            "node": self.number,
            "operator": self.operator,
            "origin": self.origin,
            "programs": self.calls,
            "mappings": list(self.mappings),
            "error_on_quantised_operands": finite(self.own),
            "bound_on_quantised_operands": finite(self.own_bound),
            "error_on_given_operands": finite(self.given),
            "bound_on_given_operands": finite(self.given_bound),
            "bound_on_quantised_operands_is": self.known,
            "bound_on_given_operands_is": None if self.given_bound is None else DECLARED,
            "no_bound": self.reason,
            "error_against_reference": finite(self.reference),
            "largest_of_reference": finite(self.scale),
            "saturated": {cut.operand: cut.count for cut in self.cuts},
            "beyond_calibration": self.cut,
            "inside": self.inside,
            "unrelated": self.unrelated,
            "sample": self.sample,
            "largest_error_on_quantised_operands": {
                "error": finite(self.largest.error),
                "bound": finite(self.largest.bound),
                "sample": self.largest.sample,
            },
            "seconds": round(self.seconds, 4),
        }


def finite(value: float | None) -> float | str | None:
    """A number that JSON has; the text of one that it has not."""
    return value if value is None or np.isfinite(value) else str(value)
