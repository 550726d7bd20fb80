"""From traced nests to loop-level systems, with the facts about their parameters that have to be proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ila_lang import Expr, all_of, resize

from .align import AlignedLevel
from .levels import Event, Hazard, LevelSystem, Side
from .names import index_text, symbol_name
from .nests import Nest
from .trace import Clobber

__all__ = ["Iteration", "LevelPlan", "Names", "plan_levels"]


class Instance(Protocol):
    """An instance of the statement inside a nest: its iteration, a term for each loop."""

    @property
    def witness(self) -> tuple[Expr, ...]:
        """The iteration."""
        ...


@dataclass(frozen=True)
class Iteration:
    """An iteration of a loop nest."""

    witness: tuple[Expr, ...]


class Names:
    """One SMT-LIB symbol per index term, with the text it stands for."""

    def __init__(self) -> None:
        self._symbols: dict[Expr, str] = {}
        self.texts: dict[str, str] = {}

    def symbol(self, term: Expr, extent_of: str = "") -> str:
        """The symbol of a term; different terms have different symbols even where their texts agree."""
        term = resize(term, 40)
        if term not in self._symbols:
            text = index_text(term)
            if extent_of and len(text) > 16:
                text = f"extent({extent_of})"
            name = base = symbol_name(text if text[0].isalpha() else f"at_{text}")
            count = 1
            while name in self.texts:
                count += 1
                name = f"{base}.{count}"
            self._symbols[term], self.texts[name] = name, text
        return self._symbols[term]


@dataclass
class LevelPlan:
    """A loop level's system and, as conditions over sizes and coordinates, the facts it relies on."""

    system: LevelSystem
    facts: list[tuple[str, Expr]] = field(default_factory=list)


def plan_levels(
    nest: Nest,
    prefix: str,
    demands: Sequence[Instance],
    clobbers: Sequence[Clobber],
    names: Names,
    partner: tuple[Sequence[AlignedLevel], Sequence[Instance]] | None = None,
    partner_prefix: str = "ir",
) -> list[LevelPlan]:
    """One plan per level of ``nest``; with ``partner`` each level runs in lock-step with the other side's loop."""
    plans = []
    for k, (counter, extent) in enumerate(nest.loops):
        name = f"{prefix}.{counter.name}"
        limit = names.symbol(extent, name)
        facts: list[tuple[str, Expr]] = []
        at = list(dict.fromkeys(names.symbol(d.witness[k]) for d in demands))
        events = tuple(Event(_numbered(f"{prefix}.writes", i, len(at)), a) for i, a in enumerate(at))
        sides = [Side(name, limit, events)]
        equal: list[tuple[str, str]] = []
        if partner is not None:
            levels, others = partner
            level = levels[k]
            other_limit = names.symbol(level.extent, f"{partner_prefix}.{level.name}")
            facts.append((f"{name} and {partner_prefix}.{level.name} run equally often", level.equal))
            equal.append((limit, other_limit))
            other_at = []
            for demand, other in zip(demands, others, strict=True):
                assert level.digit is not None, "loops are split by literals here"
                digit = level.digit(demand_component(other, level))
                symbol = names.symbol(digit)
                other_at.append(symbol)
                mine = names.symbol(demand.witness[k])
                if symbol != mine:
                    equal.append((mine, symbol))
                    same = resize(demand.witness[k], 40) == resize(digit, 40)
                    facts.append((f"{name} and {partner_prefix}.{level.name} meet the cell together", same))
            distinct = list(dict.fromkeys(other_at))
            ghosts = tuple(
                Event(_numbered(f"{partner_prefix}.writes", i, len(distinct)), a) for i, a in enumerate(distinct)
            )
            sides.append(Side(f"{partner_prefix}.{level.name}", other_limit, ghosts))
        hazards: list[Hazard] = []
        ordered: list[tuple[str, str]] = []
        for i, clobber in enumerate(clobbers):
            reader, writer = names.symbol(clobber.read.witness[k]), names.symbol(clobber.writer[k])
            hazards.append(Hazard(_numbered("operand", i, len(clobbers)), reader, writer))
            ordered.append((reader, writer))
            outer = [
                resize(r, 40) == resize(w, 40)
                for r, w in zip(clobber.read.witness[:k], clobber.writer[:k], strict=True)
            ]
            before = resize(clobber.read.witness[k], 40) <= resize(clobber.writer[k], 40)
            facts.append(
                (
                    f"operand {i} is read no later than it is overwritten, at {name}",
                    all_of(outer).implies(before),
                )
            )
        plans.append(LevelPlan(LevelSystem(name, sides, hazards, equal, ordered), facts))
    return plans


def demand_component(demand: Instance, level: AlignedLevel) -> Expr:
    """The witness component of the loop that an aligned level stands for."""
    return demand.witness[level.ir]


def _numbered(text: str, index: int, count: int) -> str:
    return text if count == 1 else f"{text}{index}"
