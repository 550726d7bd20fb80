"""What the parts of one proof attempt share: both sides on their way through the method, and how theorems are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from ila_lang import Expr, Fragment
from ila_lang.mapping import TensorMapping
from smt_encodings.discharge import Discharger, decide
from smt_encodings.integers import IntegerEncoding, NotLinearizable

from .boxes import Box
from .nests import Nest
from .systems import Names
from .trace import Trace

__all__ = ["Proof", "Side"]


@dataclass
class Side:
    """One fragment on its way through the method."""

    prefix: str
    fragment: Fragment
    nests: list[Nest]
    trace: Trace
    boxes: dict[int, Box] = field(default_factory=dict)
    """Per nest, an iteration within the bounds of everything that matters (overwrites beyond the loops included)."""
    readers: dict[int, Box] = field(default_factory=dict)
    """Per nest, an iteration within the loops."""


@dataclass
class Proof:
    """Shared context of one proof attempt."""

    mapping: TensorMapping
    discharger: Discharger
    horn_timeout: float
    given: Mapping[str, Sequence[str]] | None
    base: IntegerEncoding = field(default_factory=lambda: IntegerEncoding(decide, "size"))
    names: Names = field(default_factory=Names)
    invariants: dict[str, list[str]] = field(default_factory=dict)
    levels: dict[str, dict[str, object]] = field(default_factory=dict)
    fits_seen: set[tuple[object, ...]] = field(default_factory=set)

    def theorem(self, group: str, name: str, goal: Expr, meaning: str, given: Sequence[Expr] = ()) -> None:
        """Proves ``goal`` over the integers for all sizes and coordinates, under extra range conditions ``given``."""
        encoding = self.base.fork("goal")
        for condition in given:
            encoding.assume(condition)
        term = encoding.term(goal)
        self.fits(encoding, name)
        self.discharger.follows(group, name, encoding.hypotheses, term, meaning)

    def fits(self, encoding: IntegerEncoding, name: str) -> None:
        """Adds the obligations that the operations translated by ``encoding`` stay within their widths."""
        new: dict[tuple[FNode, ...], list[FNode]] = {}
        for assumed, condition in encoding.fits:
            key = (assumed, condition, encoding.meaning(condition))
            if key not in self.fits_seen:
                self.fits_seen.add(key)
                new.setdefault(assumed, []).append(condition)
        for number, (assumed, conditions) in enumerate(new.items(), 1):
            count = "1 operation" if len(conditions) == 1 else f"{len(conditions)} operations"
            self.discharger.follows(
                "no overflow",
                f"{name} ({number}: {count})",
                [*encoding.definitions, *assumed],
                smt.And(conditions),
                "exact results fit their bit widths, and branches are decided, so integer arithmetic is exact here",
            )

    def proves(self, condition: Expr) -> bool:
        """Whether a condition over sizes is a theorem (used to choose an alignment; not recorded)."""
        encoding = self.base.fork("goal")
        try:
            term = encoding.term(condition)
            return decide(encoding.hypotheses, term)
        except NotLinearizable:
            return False
