"""The hash method: a mapping proved at one shape, with sums compared as multisets of summands.

Both fragments are unrolled as for BMC.  Where they add the same summands up in another order, their terms are not the
same and solvers are slow or lost.  Here a sum is a constant of which only this is known: sums whose summands have equal
hashes are equal (:mod:`smt_encodings.reorder`).  The parts of a proof, each an obligation that z3 and cvc5 answer:

1. ``sum laws``: each operator that the mapping declares to be a sum is commutative and associative and has its unit, on
   all bit patterns.  So the order makes no difference to any bit, and what is proved is equality bit by bit;
2. lemmas, classes of output elements, all elements in one script, and health, as in :mod:`bmc.prove`.

Where a law fails, as for sums that saturate, nothing else is asked: the answer is UNKNOWN and says why.  Before a
solver is asked about an element, its terms are run on a few random values, for solvers are slow on sums that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ila_lang import Expr, postorder, substitute
from ila_lang.language.expr import variables_of
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Claim, Interpretation, Obligation, Status, Unsupported, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh, plain
from smt_encodings.reorder import LawFails, Sums, hash_script, prove_laws
from smt_encodings.values import differing_values

from .counterexample import Counterexample
from .prove import TIMEOUT, Attempt
from .unroll import Cell

_TRIES = 4


def prove(
    mapping: TensorMapping,
    sizes: Mapping[str, int] | tuple[int, ...],
    *,
    discharger: Discharger | None = None,
    search_seconds: float = 10.0,
) -> Verdict:
    """Proves or refutes a mapping at one shape, whatever order its declared sums are added up in.

    ``sizes``, ``discharger`` and ``search_seconds`` are those of :func:`bmc.prove.prove`.  UNKNOWN, with the reason,
    where the mapping declares no sum, where no sum occurs, or where an operator is not commutative and associative.

    Raises SizeError where ``sizes`` lie outside the mapping's domain.
    """
    attempt = _attempt(mapping, sizes, discharger or Discharger(timeout=TIMEOUT))
    attempt.runs = search_seconds > 0
    return attempt.verdict(sizes if isinstance(sizes, tuple) else None, search_seconds)


def claim_of(mapping: TensorMapping, shape: tuple[int, ...]) -> Claim:
    """What a PROVED of this method says at a shape; raises SizeError where it is outside of the mapping's domain."""
    return _attempt(mapping, shape, Discharger()).claim(shape)


def _attempt(mapping: TensorMapping, sizes: Mapping[str, int] | tuple[int, ...], discharger: Discharger) -> _Attempt:
    values = dict(mapping.sizes_for(sizes)) if isinstance(sizes, tuple) else dict(sizes)
    mapping.require(values)
    interpretations = [Interpretation.UNINTERPRETED]
    return _Attempt(mapping, values, discharger, "uninterpreted", "resolved", interpretations=interpretations)


@dataclass
class _Attempt(Attempt):
    """As BMC's, with sums in the place of chains of additions."""

    method: ClassVar[str] = "hash"
    runs: bool = True
    refused: bool = False
    differing: dict[Cell, int] | None = None
    sums: Sums = field(init=False)

    def __post_init__(self) -> None:
        self.sums = Sums(self.mapping.sums)

    def claim(self, shape: tuple[int, ...] | None) -> Claim:
        """BMC's claim, and that the order of sums was left open."""
        claim = super().claim(shape)
        if not self.mapping.sums:
            return claim
        names = ", ".join(r.operator.name for r in self.mapping.sums)
        order = f"sums by {names} may be added up in any order, which changes no bit (proved: sum laws)"
        return replace(claim, statement=f"{claim.statement}; {order}")

    def run(self) -> tuple[Status, str]:
        """The laws of the sums, then what BMC asks."""
        if not self.mapping.sums:
            self.refused = True
            return Status.UNKNOWN, (
                f"Mapping {self.mapping.name} must declare by which operators it adds up; it declares none, so method "
                "hash has nothing to reorder; use --method bmc or chc"
            )
        try:
            prove_laws(self.discharger, self.mapping.sums)
        except LawFails as error:
            self.refused = True
            return Status.UNKNOWN, str(error)
        return super().run()

    def undecided(self, error: NotDischarged) -> tuple[Status, str]:
        """As BMC's, and what stands between additions."""
        status, reason = super().undecided(error)
        between = self.between() if error.obligation.group == "elements" else []
        if between:
            reason += (
                f"; {', '.join(between)} stands between additions of one sum, and no summand can be moved past it: "
                "use --method bmc or chc, which keep the order"
            )
        return status, reason

    def between(self) -> list[str]:
        """Operations that are applied to a sum before it is added to another sum by the same operator."""
        names: dict[str, None] = {}
        for total in self.sums.values([t for pair in self.pairs(True) for t in pair]):
            for summand in self.sums.summands(total):
                if any(self.sums.of(node) is self.sums.of(total) for node in postorder([summand])):
                    names[summand.func.name if summand.func is not None else summand.op] = None
        return list(names)

    def kept(self) -> frozenset[str]:
        """BMC's, and operators that are recognised by name."""
        return super().kept() | self.sums.keep

    def ask_classes(self, abstract: bool) -> None:
        """As BMC's, if there is a sum."""
        if not self.sums.values([t for pair in self.pairs(abstract) for t in pair]):
            raise Unsupported(
                f"A sum by {', '.join(r.operator.name for r in self.mapping.sums)} must occur at this shape for method "
                "hash; none does, so use --method bmc or chc"
            )
        super().ask_classes(abstract)

    def ask(
        self,
        group: str,
        name: str,
        pairs: Sequence[tuple[Expr, Expr]],
        meaning: str,
        abstract: bool,
        expected: str = "unsat",
    ) -> None:
        """As BMC's, after a few runs of the terms."""
        for left, right in pairs if self.runs else ():
            self.run_terms(left, right)
        super().ask(group, name, pairs, meaning, abstract, expected)

    def health(self) -> None:
        """BMC's question, and that the encoding tells sums apart: another summand makes a difference to it."""
        super().health()
        for left, right in self.pairs(True):
            right_variables = set(variables_of(right))
            totals = self.sums.values([left, right])
            inside = variables_of(*[s for total in totals for s in self.sums.summands(total)])
            both = right_variables & set(variables_of(left))
            first = next((v for v in inside if v in both), None)
            if first is not None:
                break
        else:
            raise Unsupported("A summand must depend on an input that both sides have; none does")
        meaning = f"with {plain(first.name)} replaced by an unrelated value in one side's sums, their hashes can differ"
        changed = substitute(left, {first: fresh("unrelated", first.sort)})
        text = self.script("health: sums are told apart", [(changed, right)], meaning, True)
        self.discharger.ask_text(Obligation("sums are told apart", "health", text, "sat", meaning))

    def run_terms(self, left: Expr, right: Expr) -> None:
        """Both terms on a few random values; raises Unsupported where they differ, and keeps the values."""
        assert self.unrolled is not None
        values = differing_values(left, right, _TRIES)
        if values:
            self.differing = {self.unrolled.cells[v]: x for v, x in values.items()}
            raise Unsupported("the terms of an output element differ on values that were tried")

    def script(self, title: str, pairs: Sequence[tuple[Expr, Expr]], meaning: str, abstract: bool) -> str:
        """The text of a question, with hashes of sums."""
        return hash_script(
            pairs, self.sums, keep=self.mapping.abstract, lemmas=self.mapping.lemmas, comment=f"{title}\n{meaning}"
        )

    # -- refutation -----------------------------------------------------------------------------------

    def refute(self, shape: tuple[int, ...] | None, seconds: float) -> Counterexample | None:
        """As BMC's; where the method does not apply, no counterexample is searched for."""
        return None if self.refused else super().refute(shape, seconds)

    def models(self, seconds: float) -> list[dict[Cell, int]]:
        """The values at which terms differed, else as BMC's."""
        return [self.differing] if self.differing is not None else super().models(seconds)
