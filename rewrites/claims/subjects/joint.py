"""Joints as subjects: that an operator of the graph IR and the IR side of a mapping that executes it are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from chc.tensor_rules.check import Asking, Writing
from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.kernel.steps import Rejected
from chc.tensor_rules.obligations import Hypotheses, extended
from chc.tensor_rules.refute import Counterexample
from chc.tensor_rules.rule import TensorRule, floors
from ir_semantics.graph.ir import Attribute
from ir_semantics.graph.operator import Operator
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.conditions import Condition
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.index import index
from ir_semantics.tensors.numbers import DivisionByZero, Undefined
from reports.subjects import Refutation, Required, needed_by
from rewrites.bounds.kernel.judgements import text_of
from rewrites.claims.joints.instruction import Unread
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.readings import ADVICE, obligations, where
from rewrites.claims.joints.readings import GROUP as READINGS
from rewrites.claims.joints.runs import difference, refutation, refuted
from rewrites.claims.names import bound_name
from rewrites.claims.sources import text_digest
from rewrites.claims.words import with_name
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.values import lemma_obligation

from .bounds import BoundSubject
from .tensor import TensorSubject

GROUP = "kernels"
UNREAD = (Unread, Undefined, IndexError, RecursionError, SyntaxError)  # the last two where terms nest too deeply
_PLACE = {
    DivisionByZero: "it cannot be run on data with zeros: ",
    IndexError: "the kernel reads outside of what lies in a memory: ",
    RecursionError: "it is nested too deeply: ",
}


class JointSubject(TensorSubject):
    """A joint under a name of its own."""

    kind = "joint"

    def __init__(self, name: str, joint: Joint, operator: Operator) -> None:
        self.name, self.joint, self.operator = name, joint, operator

    @cached_property
    def rule(self) -> TensorRule:  # type: ignore[override]
        """The claim as a rule on tensors; raises Unread where a side cannot be read."""
        return self.joint.rule(self.name, self.operator)

    @property
    def rests(self) -> str:
        """The claim without which this one says nothing of a mapping: its bound, or none."""
        return "" if self.joint.bound is None else bound_name(self.joint.bound.name)

    def place(self) -> tuple[str, int]:
        """Not known."""
        return "", 0

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """Those of a rule, and what reads both sides."""
        return *super().provers(method), Joint.rule, obligations, difference, refuted, Asking, Writing

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim of the rule, and what is assumed of numbers."""
        try:
            stated = super().claim(parameters)
            statement = floors(f"{self._left()} = {self.rule.left} is {self._right()}")
            assumptions = self._assumptions()
        except Unread as unread:
            statement, nothing = (
                f"{self._left()} is what the IR side of {self.joint.mapping.name} computes",
                f"none: {unread}",
            )
            return Claim(self.name, statement, nothing, Equality.OVER_REALS, (Interpretation.UNINTERPRETED,), ())
        return replace(
            stated,
            statement=statement,
            size_domain=floors(f"{stated.size_domain}; {self.joint.fits}"),
            assumptions=(*stated.assumptions, *assumptions),
        )

    def _left(self) -> str:
        operands = ", ".join(map(str, self.joint.operands))
        values = {**self.joint.attributes, **{name: name for name in self.joint.numbers}}
        attributes = ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))
        return f"{self.operator.name}({operands}{f'; {attributes}' if attributes else ''})"

    def _right(self) -> str:
        laid = ", ".join(f"{name} = {term}" for name, term in self.joint.tensors.items())
        values = ", ".join(f"{name} = {value}" for name, value in self.joint.given.items())
        kernels = ", then ".join(called.kernel.name for called in self.joint.called)
        of, bound = self.joint.mapping.name, self.joint.bound
        if bound is not None:
            kernels = f"{text_of(bound.theorem.result.real)}, which the bound of {bound.name} is about, for {kernels}"
        return f"{kernels} of {of} where {laid}{f'; {values}' if values else ''}"

    def _assumptions(self) -> list[str]:
        mapping, bound = self.joint.mapping, self.joint.bound
        return [
            *(() if bound is None else (f"how far what is stored lies from it is a claim of its own: {self.rests}",)),
            f"the host calls {mapping.name} in this way, which compares {mapping.mapping.compared}",
            "every tensor lies in its memory, and operands of instructions are words",
            "words stand for numbers, and how far rounding, saturation and overflow lie from these, bounds say: "
            + ", ".join(dict.fromkeys(self._words())),
            *(
                f"{function.name} stands for the operation {term}, in the unit of its result, {where(function, term)}"
                for function, term in self.joint.readings.items()
            ),
        ]

    def _words(self) -> Iterator[str]:
        """In which form words of each memory stand for numbers."""
        for step in self.joint.steps:
            for memory in dict.fromkeys((*step.shapes, *sorted(step.called.stored))):
                units = step.run.units
                form, exponent = units.of(units.place(memory))
                scaled = f" times 2^({exponent})" if exponent is not None and exponent != index(0) else ""
                yield f"{memory} {form or 'as they lie there'}{scaled}"

    def semantics(self) -> dict[str, str]:
        """As of a rule, and of a bound; readings of primitives as questions, and what must hold of kernels' words."""
        try:
            return {
                **super().semantics(),
                **{f"bound, {part}": each for part, each in self._bound_semantics().items()},
                "readings": text_digest(*(o.smtlib for o in self._readings())),
                "kernels": text_digest(repr(self.joint.fits), *map(repr, self.joint.obligations(self.operator))),
            }
        except Unread as unread:
            return {"unread": text_digest(str(unread))}

    def _bound_semantics(self) -> dict[str, str]:
        bound = self.joint.bound
        return {} if bound is None else BoundSubject(self.rests, bound).semantics()

    def _readings(self) -> Iterator[Any]:
        yield from obligations(self.joint.readings, self.joint.uses)
        used = {name: lemma for step in self.joint.steps for name, lemma in step.run.used.items()}
        yield from map(lemma_obligation, used.values())

    def _conditions(self, ask: Callable[[Hypotheses, Condition, str], None]) -> None:
        for obligation in self.joint.obligations(self.operator):
            ask(
                extended((), self.rule.premise, self.joint.fits, *obligation.hypotheses),
                obligation.goal,
                obligation.meaning,
            )

    def prove(self, discharger: Discharger) -> Verdict:
        """Readings of primitives, then the rule; then both readings are run beside what they are readings of."""
        mark = len(discharger.obligations)
        try:
            for obligation in self._readings():
                discharger.ask_text(obligation)
            with fresh_symbols():
                self._conditions(Asking(GROUP, discharger=discharger))
            asked = discharger.obligations[mark:]
            verdict = with_name(decide_tensor_rule(self.rule, discharger), self.name)
            if self.joint.states and verdict.status in (Status.UNKNOWN, Status.REFUTED):
                self._refute(verdict)
            proved = verdict.status is Status.PROVED
            differs = difference(self.joint, self.operator, self.rule) if proved else ""
        except (NotDischarged, Rejected, *UNREAD) as error:
            reason = f"{_PLACE.get(type(error), '')}{error}"
            if isinstance(error, NotDischarged) and error.obligation.group == READINGS:
                reason += f"; {ADVICE}"
            verdict = Verdict(Status.UNKNOWN, self.words(), self.method, 0.0, reason)
            verdict.obligations = discharger.obligations[mark:]
            return verdict
        verdict.claim = self.words()
        verdict.obligations = [*asked, *verdict.obligations]
        if differs:
            verdict.status, verdict.reason = Status.ERROR, f"the proof does not survive runs: {differs}"
        return verdict

    def _refute(self, verdict: Verdict) -> None:
        """A step that differs from the kernel's between states that are any tensors must do so in a run."""
        known = verdict.details.pop("counterexample", None)
        of_step = known if isinstance(known, Counterexample) else None
        counterexample = refuted(self.joint, self.operator, self.rule, of_step)
        if counterexample is not None:
            verdict.status, verdict.reason = Status.REFUTED, str(counterexample)
            verdict.details["counterexample"] = counterexample
        elif of_step is not None:
            verdict.status = Status.UNKNOWN
            verdict.reason = f"a step differs, but no run was found in which it does: {of_step}"

    def replayed(self, document: str) -> Refutation | None:
        """As of a rule; where a step is repeated, the kernel is executed and the operator's graph evaluated again."""
        if not self.joint.states:
            return super().replayed(document)
        sizes, inputs = self.evidence_of(document)
        shapes = {str(dict(t.attributes)["name"]): shape_at(t, sizes) for t in self.joint.operands}
        numbers = (value for array in inputs.values() for value in array.ravel())
        if {n: a.shape for n, a in inputs.items()} != shapes or not all(type(v) is Fraction for v in numbers):
            raise ValueError(f"a counterexample to {self.name} must have its operands, of fractions")
        counterexample = refutation(self.joint, self.operator, self.rule, sizes, inputs)
        return None if counterexample is None else self.shown(counterexample)

    def covers(
        self, types: Sequence[TensorType], attributes: Mapping[str, Attribute], parameters: Mapping[str, int]
    ) -> str:
        """Why a program at sizes of the mapping is none of a node; empty where it is one."""
        try:
            return self.joint.covers(self.operator, self.rule, types, attributes, parameters)
        except UNREAD as error:
            return f"the joint says nothing of the model as it is now: {error}"

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """Those of the derivation, and of readings of primitives; both readings are run again, which guards them."""
        try:
            needed = super().required(certificate)
            differs = difference(self.joint, self.operator, self.rule)
        except UNREAD as error:
            return f"{_PLACE.get(type(error), '')}{error}"
        if isinstance(needed, str) or differs:
            return differs or needed
        asked, writing = (
            Verdict(Status.UNKNOWN, needed.claim, self.method, 0.0, "", [*self._readings()]),
            Writing(GROUP),
        )
        with fresh_symbols():
            self._conditions(writing)
        return replace(needed, obligations=[*needed_by(asked), *writing.required, *needed.obligations])
