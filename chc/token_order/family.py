"""Token order of blocked matrix products with any number of blocks, by an inductive invariant.

The blocked product of :mod:`~accel_models.vta.products` has *rounds* (loads of operands, then products) and
*blocks* (one or more rounds, then steps and a STORE).  Its tokens follow :class:`TokenRules`: round r or block b pops
or pushes if its number is in given spans.  Here the three modules run as they like, with the numbers of rounds and
blocks left open, and how rounds are grouped into blocks as well.  A module's work on a round or block has a beginning,
where it pops, and an end, where it pushes; anything may happen in between, so that it does not matter how many
instructions it is, nor whether they take time.

What each queue holds is the number of pushes so far less that of pops so far, in closed form; that it is not negative,
with the ranges of the counters, is the invariant.  It is read off the rules, and proved: it holds at the start, is kept
by every step, and excludes every bad state: two that touch one half of a scratchpad at the same time or in the wrong
order, a deadlock, more than eight tokens in a queue, tokens or work left after FINISH.
"""

from __future__ import annotations

from dataclasses import dataclass

import pysmt.shortcuts as smt
from pysmt.environment import get_env
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT

from smt_encodings.printer import term_text

Bound = tuple[str, int]
"""A number: that of "rounds" or "blocks", or 0 where the name is empty, plus a constant."""

Moves = tuple[tuple[str, FNode], ...]
"""Queues, each with the condition under which it loses or gets a token."""

MOST_HALVES = 2  # parts of a scratchpad for which footprints are proved (chc.token_order.blocks)
MOST = 8  # tokens that a queue holds in the HLS design, the least of all readings


@dataclass(frozen=True)
class Span:
    """Numbers from ``low`` up to, but not including, ``high``.

    Raises ValueError where a bound counts from something else than "rounds" or "blocks".
    """

    low: Bound
    high: Bound

    def __post_init__(self) -> None:
        for name, _ in (self.low, self.high):
            if name not in ("", "rounds", "blocks"):
                raise ValueError(f"a bound of a span must count from rounds, blocks or nothing, not {name!r}")

    def holds(self, number: int, sizes: dict[str, int]) -> bool:
        """Whether a number is in the span."""
        low, high = (sizes.get(name, 0) + plus for name, plus in (self.low, self.high))
        return low <= number < high


Rule = tuple[Span, ...]


def between(name: str, low: int = 0, high: int = 0) -> Rule:
    """Rounds or blocks (``name``) from ``low`` on, but not the last ``high``."""
    return (Span(("", low), (name, -high)),)


@dataclass(frozen=True)
class TokenRules:
    """Which rounds and blocks pop a token when they begin, and push one when they end.

    ``halves`` is in how many parts the scratchpads are used: round r uses part r modulo ``halves`` of INP and WGT,
    block b part b modulo ``halves`` of ACC and OUT.  Loads pop g2l and push l2g by round; products pop l2g and push g2l
    by round; blocks pop s2g and push g2s; STOREs pop g2s and push s2g by block; FINISH pops ``finish`` tokens of s2g.

    Raises ValueError unless there are 1 or 2 halves, and FINISH pops 0 or 1 tokens.
    """

    halves: int
    load_pops: Rule
    load_pushes: Rule
    product_pops: Rule
    product_pushes: Rule
    block_pops: Rule
    block_pushes: Rule
    store_pops: Rule
    store_pushes: Rule
    finish: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.halves <= MOST_HALVES:
            raise ValueError(
                f"token rules must use a scratchpad as a whole or in {MOST_HALVES} halves, not in {self.halves} parts, "
                "for which it is not proved what instructions access; set halves to 1 or 2"
            )
        if self.finish not in (0, 1):
            raise ValueError(f"FINISH must pop 0 or 1 tokens, not {self.finish}: an instruction pops one of a queue")


def _rules(halves: int) -> TokenRules:
    return TokenRules(
        halves=halves,
        load_pops=between("rounds", halves),
        load_pushes=between("rounds"),
        product_pops=between("rounds"),
        product_pushes=between("rounds", 0, halves),
        block_pops=between("blocks", halves),
        block_pushes=between("blocks"),
        store_pops=between("blocks"),
        store_pushes=(
            *between("blocks", 0, halves),
            # the last one is for FINISH
            Span(("blocks", -1), ("blocks", 0)),
        ),
    )


DOUBLE, SINGLE = _rules(2), _rules(1)
"""The programs' rules with scratchpads in two halves, and as a whole."""


@dataclass(frozen=True)
class Transition:
    """A step of one module: its condition, and the counters' next values (others stay)."""

    name: str
    guard: FNode
    updates: dict[FNode, FNode]


class System:
    """The three modules on rounds and blocks of any number, with the invariant read off the rules."""

    def __init__(self, rules: TokenRules) -> None:
        self.rules = rules
        get_env().enable_infix_notation = True  # of the present table of symbols only
        integers = ("rounds", "blocks", "loaded", "computed", "phase", "ended", "stored", "l2g", "g2l", "g2s", "s2g")
        flags = ("bias", "loading", "fresh", "storing", "finished")
        self.symbols = {n: smt.Symbol(n, INT) for n in integers} | {n: smt.Symbol(n, BOOL) for n in flags}
        self.zero, self.one, self.halves = smt.Int(0), smt.Int(1), smt.Int(rules.halves)
        n = self.symbols
        # begun and ended by each module, so far
        self.loads_begun = n["loaded"] + self._bit(n["loading"])
        self.products_begun = n["computed"] + self._bit(
            smt.Or(n["phase"] >= 2, smt.And(self._at(1), smt.Not(n["bias"])))
        )
        self.products_ended = n["computed"] + self._bit(self._at(3))
        self.blocks_begun = n["ended"] + self._bit(smt.Or(n["phase"] >= 1, smt.Not(n["fresh"])))
        self.stores_begun = n["stored"] + self._bit(n["storing"])
        self.domain = smt.And(n["blocks"] >= 1, n["rounds"] >= n["blocks"])
        self.init = smt.And(
            self.domain,
            *(smt.Equals(n[name], self.zero) for name in integers[2:]),
            *(smt.Not(n[name]) for name in ("loading", "storing", "finished")),
            n["fresh"],
        )
        self.transitions = self._transitions()

    def _bit(self, condition: FNode) -> FNode:
        return smt.Ite(condition, self.one, self.zero)

    def _at(self, phase: int) -> FNode:
        return smt.Equals(self.symbols["phase"], smt.Int(phase))

    # -- rules as terms ------------------------------------------------------------------------------------------

    def _bound(self, bound: Bound) -> FNode:
        name, plus = bound
        if not name:
            return smt.Int(plus)
        return self.symbols[name] + plus if plus else self.symbols[name]

    def holds(self, rule: Rule, number: FNode) -> FNode:
        """Whether round or block ``number`` follows the rule."""
        spans = [smt.And(self._bound(s.low) <= number, number < self._bound(s.high)) for s in rule]
        return smt.Or(spans) if spans else smt.FALSE()

    def count(self, rule: Rule, number: FNode) -> FNode:
        """How many of the first ``number`` rounds or blocks follow the rule; spans must not overlap."""
        total = self.zero
        for span in rule:
            low, high = self._bound(span.low), self._bound(span.high)
            if not low.is_int_constant() or low.constant_value() < 0:
                low = smt.Ite(low < 0, self.zero, low)
            reached = smt.Ite(number < high, number, high)
            total = total + smt.Ite(reached > low, reached - low, self.zero)
        return total

    def text(self) -> list[str]:
        """The invariant's equations for tokens, in words; the other conjuncts are ranges."""
        parts = (
            ("l2g", "rounds loaded", "load_pushes", "rounds whose products have begun", "product_pops"),
            ("g2l", "rounds whose products have ended", "product_pushes", "rounds whose loads have begun", "load_pops"),
            ("g2s", "blocks ended", "block_pushes", "blocks whose STORE has begun", "store_pops"),
            ("s2g", "blocks stored", "store_pushes", "blocks begun, and FINISH", "block_pops"),
        )
        return [
            f"0 <= {queue} = number of {pushing} in {_show(getattr(self.rules, pushes))}"
            f" - number of {popping} in {_show(getattr(self.rules, pops))}"
            for queue, pushing, pushes, popping, pops in parts
        ]

    # -- the modules ---------------------------------------------------------------------------------------------

    def _transitions(self) -> list[Transition]:
        n, r = self.symbols, self.rules
        transitions = []

        def step(name: str, *conditions: FNode, pops: Moves = (), pushes: Moves = (), **values: FNode) -> None:
            updates = {n[k]: v for k, v in values.items()}
            guard = list(conditions)
            for queue, when in pops:
                guard.append(smt.Implies(when, n[queue] >= 1))
                updates[n[queue]] = n[queue] - self._bit(when)
            for queue, when in pushes:
                updates[n[queue]] = updates.get(n[queue], n[queue]) + self._bit(when)
            transitions.append(Transition(name, smt.And(guard), updates))

        idle, working = self._at(0), n["ended"] < n["blocks"]
        step("load begins", smt.Not(n["loading"]), n["loaded"] < n["rounds"],
             pops=(("g2l", self.holds(r.load_pops, n["loaded"])),), loading=smt.TRUE())  # fmt: skip
        step("load ends", n["loading"],
             pushes=(("l2g", self.holds(r.load_pushes, n["loaded"])),),
             loading=smt.FALSE(), loaded=n["loaded"] + 1)  # fmt: skip
        products = self.holds(r.product_pops, n["computed"])
        step("block begins", idle, working, n["fresh"],
             pops=(("l2g", smt.And(products, smt.Not(n["bias"]))), ("s2g", self.holds(r.block_pops, n["ended"]))),
             phase=self.one)  # fmt: skip
        step("first products begin", self._at(1), pops=(("l2g", smt.And(products, n["bias"])),), phase=smt.Int(2))
        step("products begin", idle, working, smt.Not(n["fresh"]), pops=(("l2g", products),), phase=smt.Int(2))
        step("products end", self._at(2),
             pushes=(("g2l", self.holds(r.product_pushes, n["computed"])),), phase=smt.Int(3))  # fmt: skip
        after, left = n["rounds"] - n["computed"] - 1, n["blocks"] - n["ended"]
        # any grouping of rounds into blocks, as long as each block left has a round left, and the last takes the rest
        step("block ends", self._at(3), after >= left - 1,
             smt.Implies(smt.Equals(left, self.one), smt.Equals(after, self.zero)),
             pushes=(("g2s", self.holds(r.block_pushes, n["ended"])),),
             phase=self.zero, computed=n["computed"] + 1, ended=n["ended"] + 1, fresh=smt.TRUE())  # fmt: skip
        step("block goes on", self._at(3), after >= left,
             phase=self.zero, computed=n["computed"] + 1, fresh=smt.FALSE())  # fmt: skip
        step("store begins", smt.Not(n["storing"]), n["stored"] < n["blocks"],
             pops=(("g2s", self.holds(r.store_pops, n["stored"])),), storing=smt.TRUE())  # fmt: skip
        step("store ends", n["storing"],
             pushes=(("s2g", self.holds(r.store_pushes, n["stored"])),),
             storing=smt.FALSE(), stored=n["stored"] + 1)  # fmt: skip
        step("finish", idle, smt.Not(working), smt.Not(n["finished"]),
             pops=(("s2g", smt.TRUE()),) if r.finish else (), finished=smt.TRUE())  # fmt: skip
        return transitions

    # -- what must not happen ------------------------------------------------------------------------------------

    def bad(self) -> dict[str, FNode]:
        """The bad states by name."""
        n, before = self.symbols, self.halves
        block_open = smt.And(smt.Or(n["phase"] >= 1, smt.Not(n["fresh"])), n["ended"] < n["blocks"])
        uses_inputs = smt.Or(self._at(2), smt.And(self._at(1), smt.Not(n["bias"])))
        queues = [n[q] for q in ("l2g", "g2l", "g2s", "s2g")]
        all_done = smt.And(
            smt.Equals(n["loaded"], n["rounds"]), smt.Not(n["loading"]), smt.Equals(n["ended"], n["blocks"]),
            smt.Equals(n["stored"], n["blocks"]), smt.Not(n["storing"]),
        )  # fmt: skip
        return {
            "inputs overwritten while they are used": smt.And(
                n["loading"], n["loaded"] >= before, self.products_ended <= n["loaded"] - before
            ),
            "inputs used before they are loaded": smt.And(uses_inputs, n["loaded"] <= n["computed"]),
            "outputs stored before they are computed": smt.And(n["storing"], n["ended"] <= n["stored"]),
            "outputs overwritten before they are stored": smt.And(
                block_open, n["ended"] >= before, n["stored"] <= n["ended"] - before
            ),
            "finished before the work is": smt.And(n["finished"], smt.Not(all_done)),
            "tokens left over": smt.And(n["finished"], smt.Not(smt.And([smt.Equals(q, self.zero) for q in queues]))),
            "more tokens than a queue holds": smt.Or([q > MOST for q in queues]),
            "deadlock": smt.And(smt.Not(n["finished"]), *(smt.Not(t.guard) for t in self.transitions)),
        }

    def not_negative(self, queue: str) -> FNode:
        """That a queue holds no less than no tokens."""
        return self.symbols[queue] >= 0

    def invariant(self) -> list[FNode]:
        """The candidate invariant: tokens are pushes less pops, and counters are in their ranges."""
        n, r = self.symbols, self.rules
        finish = self._bit(n["finished"]) if r.finish else self.zero
        held = {
            "l2g": self.count(r.load_pushes, n["loaded"]) - self.count(r.product_pops, self.products_begun),
            "g2l": self.count(r.product_pushes, self.products_ended) - self.count(r.load_pops, self.loads_begun),
            "g2s": self.count(r.block_pushes, n["ended"]) - self.count(r.store_pops, self.stores_begun),
            "s2g": self.count(r.store_pushes, n["stored"]) - self.count(r.block_pops, self.blocks_begun) - finish,
        }
        parts = [self.domain]
        for queue, number in held.items():
            parts += [smt.Equals(n[queue], number), self.not_negative(queue)]
        for counter, most in (("loaded", "rounds"), ("computed", "rounds"), ("ended", "blocks"), ("stored", "blocks")):
            parts += [n[counter] >= 0, n[counter] <= n[most]]
        parts += [
            n["phase"] >= 0,
            n["phase"] <= 3,
            smt.Implies(n["loading"], n["loaded"] < n["rounds"]),
            smt.Implies(n["storing"], n["stored"] < n["blocks"]),
            smt.Implies(smt.Or(n["phase"] >= 1, smt.Not(n["fresh"])), n["ended"] < n["blocks"]),
            smt.Implies(self._at(1), n["fresh"]),
            n["rounds"] - n["computed"] >= n["blocks"] - n["ended"],
            smt.Implies(smt.Equals(n["ended"], n["blocks"]), smt.Equals(n["computed"], n["rounds"])),
            smt.Implies(n["finished"], smt.Equals(n["ended"], n["blocks"])),
        ]
        return parts

    # -- obligations ---------------------------------------------------------------------------------------------

    def conditions(self, invariant: FNode) -> dict[str, list[FNode]]:
        """What must be unsatisfiable for the invariant to prove the system."""
        conditions = {"holds at the start": [self.init, smt.Not(invariant)]}
        for transition in self.transitions:
            moved = invariant.substitute(transition.updates)
            conditions[f"kept when {transition.name}"] = [invariant, transition.guard, smt.Not(moved)]
        for name, states in self.bad().items():
            conditions[f"excludes: {name}"] = [invariant, states]
        return conditions

    def horn(self) -> str:
        """The system as Horn clauses, in SMT-LIB."""
        symbols = list(self.symbols.values())
        sorts = " ".join(str(s.symbol_type()) for s in symbols)
        bound = " ".join(f"({s.symbol_name()} {s.symbol_type()})" for s in symbols)
        here = f"(Inv {' '.join(s.symbol_name() for s in symbols)})"
        lines = ["(set-logic HORN)", f"(declare-fun Inv ({sorts}) Bool)"]
        lines.append(f"(assert (forall ({bound}) (=> {term_text(self.init)} {here})))")
        for t in self.transitions:
            there = f"(Inv {' '.join(term_text(t.updates.get(s, s)) for s in symbols)})"
            lines.append(f"(assert (forall ({bound}) (=> (and {here} {term_text(t.guard)}) {there})))")
        lines += [f"(assert (forall ({bound}) (=> (and {here} {term_text(b)}) false)))" for b in self.bad().values()]
        return "\n".join([*lines, "(check-sat)", ""])


def _show(rule: Rule) -> str:
    def bound(of: Bound, less: int) -> str:
        name, plus = of[0], of[1] - less
        return f"{name} {'-' if plus < 0 else '+'} {abs(plus)}" if name and plus else name or str(plus)

    return " and ".join(f"{bound(s.low, 0)} .. {bound(s.high, 1)}" for s in rule) or "none"
