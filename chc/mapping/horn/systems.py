"""The loop levels of one proof: which loops run, what is tracked in them, and what the theorem takes from each.

A nest follows from its levels (:mod:`chc.mapping.horn.levels`), each a system whose counters, extents and tracked
iterations are symbols.  So one system per loop serves all cells: its invariant holds for every extent and every
iteration in range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from chc.mapping.arithmetic.exact import equal, less, product
from chc.mapping.program.writes import Loops
from ila_lang import Expr, all_of
from smt_encodings.environment import declarable, plain

from .align import AlignedLevel
from .levels import Event, Hazard, LevelSystem, Side, System
from .names import index_text, symbol_name
from .splits import Counted, SplitSystem

WRITTEN_ONCE = "a cell is written exactly once"
READ_FIRST = "a cell is read before it is overwritten"
ACCUMULATED_ONCE = "an iteration of the fold adds to a cell exactly once"
LOCK_STEP = "both folds are at one iteration, and end, together"
SAME_ITERATIONS = "a split loop runs the same iterations"
"""What the theorem takes from the invariants of loop levels."""


class Names:
    """One SMT-LIB symbol per index term, with the text it stands for."""

    def __init__(self) -> None:
        self._symbols: dict[Expr, str] = {}
        self.texts: dict[str, str] = {}

    def symbol(self, term: Expr, extent_of: str = "") -> str:
        """The symbol of a term; different terms have different symbols even where their texts agree."""
        while term.op == "zext":
            term = term.args[0]
        if term not in self._symbols:
            text = index_text(term)
            if extent_of and len(text) > 16:
                text = f"extent({extent_of})"
            name = base = declarable(symbol_name(text if text[0].isalpha() else f"at_{text}"))
            count = 1
            while name in self.texts:
                count += 1
                name = f"{base}_{count}"
            self._symbols[term], self.texts[name] = name, text if count == 1 else name
        return self._symbols[term]


@dataclass(frozen=True)
class Track:
    """Loops of one side, called ``name`` there, with the iteration of them that is tracked: a term for each loop.

    None where no writing iteration is tracked.
    """

    name: str
    loops: Loops
    at: tuple[Expr, ...] | None

    def only(self, counters: Sequence[Expr]) -> Track:
        """Some of the loops."""
        assert self.at is not None
        kept = [(loop, at) for loop, at in zip(self.loops, self.at, strict=True) if loop[0] in set(counters)]
        return Track(self.name, tuple(loop for loop, _ in kept), tuple(at for _, at in kept))


@dataclass(frozen=True)
class AntiDependence:
    """A cell is read at one iteration of some loops and overwritten at another: components, outermost first.

    ``same_iteration`` says whether both may be in one iteration of all these loops: then the read comes first there.
    """

    reader: tuple[Expr, ...]
    writer: tuple[Expr, ...]
    same_iteration: bool

    @property
    def form(self) -> tuple[int, bool]:
        """Dependences of one form have the same systems but for the iterations' components, which are any."""
        return len(self.reader), self.same_iteration

    def facts(self) -> list[Expr]:
        """For each loop: where the components of all outer ones agree, the read comes no later."""
        pairs = list(zip(self.reader, self.writer, strict=True))
        orders = [~less(w, r) if self._may_agree(k) else less(r, w) for k, (r, w) in enumerate(pairs)]
        return [all_of([equal(*pair) for pair in pairs[:k]]).implies(order) for k, order in enumerate(orders)]

    def hazard(self, names: Names, k: int, name: str) -> Hazard:
        """The hazard in the system of loop ``k``."""
        return Hazard(name, names.symbol(self.reader[k]), names.symbol(self.writer[k]), self._may_agree(k))

    def _may_agree(self, k: int) -> bool:
        return self.same_iteration or k + 1 < len(self.reader)


@dataclass(frozen=True)
class Level:
    """One loop level: its system, what the theorem takes from it, and whether both sides run in it."""

    label: str
    system: System
    takes: tuple[str, ...]
    relational: bool

    @property
    def key(self) -> str:
        """The name of the level in verdicts and certificates."""
        return f"{self.label}: {' with '.join(self.system.counters)}"


@dataclass(eq=False)
class Nest:
    """Loops of one side, perhaps in lock-step with loops of the other one, and what is tracked in them."""

    label: str
    track: Track
    takes: list[str]
    partner: tuple[Sequence[AlignedLevel], Track] | None = None
    """The levels of both sides, and the other side's loops."""
    anti_dependences: list[AntiDependence] = field(default_factory=list)

    def levels(self, names: Names) -> Iterator[Level]:
        """One level per loop, outermost first."""
        for k, (counter, extent) in enumerate(self.track.loops):
            name = declarable(f"{self.track.name}.{plain(counter.name)}")
            limit = names.symbol(extent, name)
            at = () if self.track.at is None else (names.symbol(self.track.at[k]),)
            sides = [Side(name, limit, tuple(Event(f"{self.track.name}!writes", a) for a in at))]
            if self.partner is not None:
                levels, other = self.partner
                events = tuple(Event(f"{other.name}!writes", a) for a in at)
                sides.append(Side(f"{other.name}.{levels[k].name}", limit, events))
            pairs = [p for p in self.anti_dependences if k < len(p.reader)]
            hazards = [p.hazard(names, k, f"operand{i if len(pairs) > 1 else ''}") for i, p in enumerate(pairs)]
            yield Level(self.label, LevelSystem(name, sides, hazards), tuple(self.takes), self.partner is not None)
        if self.partner is not None:
            for number in range(len(self.partner[1].loops)):
                for system in self._splits(names, number):
                    yield Level(self.label, system, (SAME_ITERATIONS,), True)

    def _splits(self, names: Names, number: int) -> Iterator[SplitSystem]:
        """Loop ``number`` of the other side against those of this one that it is split into, two by two."""
        assert self.partner is not None
        levels, other = self.partner
        counter, extent = other.loops[number]
        whole = declarable(f"{other.name}.{plain(counter.name)}")

        def counted(name: str, limit: Expr) -> Counted:
            return Counted(name, int(limit.value) if limit.is_const else names.symbol(limit, name))

        parts = [self.track.loops[level.device] for level in levels if level.ir == number]
        high, *lower = [counted(declarable(f"{self.track.name}.{plain(c.name)}"), e) for c, e in parts]
        for k, low in enumerate(lower, 2):
            last = k == len(parts)
            both = counted(whole, extent) if last else counted(f"{whole}_digits{k}", product(e for _, e in parts[:k]))
            yield SplitSystem(both, high, low)
            high = both


@dataclass
class Levels:
    """The loop nests that a proof speaks of."""

    names: Names = field(default_factory=Names)
    nests: list[Nest] = field(default_factory=list)

    def __iter__(self) -> Iterator[Level]:
        """All levels, with labels that tell them apart."""
        seen: dict[str, int] = {}
        for nest in dict.fromkeys(self.nests):
            for level in nest.levels(self.names):
                seen[level.key] = count = seen.get(level.key, 0) + 1
                yield level if count == 1 else replace(level, label=f"{level.label} ({count})")
