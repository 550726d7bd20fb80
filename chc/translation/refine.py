"""The claim that one function of MLIR refines another one, and its proof or refutation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import prod
from typing import ParamSpec, TypeVar

from ir_semantics.elements.binders import substitute, unrolled
from ir_semantics.elements.folds import Simplification
from ir_semantics.elements.operators import at_most, both, conjuncts, either, equal, inside, negation, same
from ir_semantics.elements.terms import Term, fresh, integer_value, is_true, new_terms, number, truth, variable_of
from ir_semantics.mlir import ir
from ir_semantics.mlir.printer import text_of_type
from ir_semantics.mlir.semantics.arguments import (
    Arguments,
    arguments_of,
    barred_of,
    bodies_of,
    globals_of,
    require_usual_index,
)
from ir_semantics.mlir.semantics.function import Meaning, meaning_of, signature
from ir_semantics.mlir.semantics.memory import Memory, Place
from ir_semantics.mlir.semantics.program import Reading
from ir_semantics.mlir.semantics.tensor import new_subscripts
from ir_semantics.mlir.semantics.values import Element, NotCovered, Tensor
from ir_semantics.scalars.formats import INTEGERS
from smt_encodings.claims import Claim, Equality, Interpretation, Runs, Status, Unsupported, Verdict, conclude
from smt_encodings.discharge import Discharger, Requirement, Requirements
from smt_encodings.runs import surviving

from .counterexample import MEMORY, Counterexample
from .encode import Question
from .models import Models, Refuted
from .prove import COARSE, FINE, Ladder, Prover
from .runs import STEPS
from .runs import Runs as Search
from .small import goals_of, look

P = ParamSpec("P")
R = TypeVar("R")

METHOD = "refinement"
FIRST, MORE, LAST = 18, 60, 400
"""Inputs that are drawn before a proof, after one and where there is none."""
LONG = 30
"""How many times longer runs may be where there is no proof, or no run came to its end."""
FEW = 2
"""Runs of that length before a proof."""
UNROLLED = 256
"""Folds of at most so many steps are written out where their steps do not match."""
ENUMERATED = 1024
"""Results of at most so many elements are compared element by element where one arbitrary element does not suffice."""


@dataclass(frozen=True)
class Options:
    """How a pair is read.

    ``associative``: floats are added in any order, with -0.0 as unit; a counterexample then is one over the reals.
    """

    reading: Reading = field(default_factory=Reading)
    associative: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not the usual reading, in words."""
        return (*((_ORDER,) if self.associative else ()), *self.reading.notes)


def refines(
    source: ir.Operation,
    target: ir.Operation,
    options: Options | None = None,
    discharger: Discharger | None = None,
    modules: Sequence[ir.Module] = (),
) -> Verdict:
    """Whether ``target`` refines ``source``, two functions (``func.func``) of one signature.

    PROVED: for all inputs of every size on which the source's behaviour is defined, the target's is, the shapes of
    results are equal, and each element that the source defines, the target defines, with the same value.  REFUTED:
    ``details["counterexample"]`` has inputs on which both were evaluated.  VACUOUS: it is proved that the source is
    never defined.  UNKNOWN: an operator without a meaning, with its place, or what could not be proved.
    ``details["answers"]`` are the solvers' answers by which the proof found its form.
    ``modules`` are those of the functions, the source's first, with globals and functions that these use.
    Raises ValueError where the signatures differ, or globals of one name.
    """
    start = time.perf_counter()
    options = options or Options()
    with new_terms():
        attempt = _Attempt((source, target), options, discharger or Discharger(), modules)
        try:
            status, reason = attempt.decide()
        except Refuted as found:
            status, reason = attempt.refuted(found.counterexample)
        except NotCovered as error:
            status, reason = Status.UNKNOWN, f"{error}; {error.step}"
        except Unsupported as error:
            status, reason = Status.UNKNOWN, str(error)
        obligations, details = attempt.discharger.obligations, attempt.details
        claim = attempt.claim()
        if status is Status.REFUTED:
            claim = replace(claim, interpretations=())  # both sides were evaluated
        verdict = Verdict(status, claim, METHOD, 0.0, reason, obligations, details=details)
        verdict.seconds = time.perf_counter() - start
        return surviving(verdict, attempt.survey)


def required(
    source: ir.Operation,
    target: ir.Operation,
    options: Options,
    answers: Sequence[bool],
    modules: Sequence[ir.Module] = (),
) -> tuple[Claim, Sequence[Requirement]]:
    """The claim and the obligations of a proof that found its form by these answers, written again without asking.

    Raises ValueError where they do not lead to a proof.
    """
    with new_terms():
        requirements = Requirements(second=False)
        attempt = _Attempt((source, target), options, requirements, modules)
        try:
            unproved = attempt.again(answers)
        except (NotCovered, Unsupported) as error:
            raise ValueError(str(error)) from error
        if unproved:
            raise ValueError(f"the answers must lead to a proof, and they leave open: {unproved}")
        return attempt.claim(), requirements.required


def survey(source: ir.Operation, target: ir.Operation, options: Options, modules: Sequence[ir.Module] = ()) -> Runs:
    """The runs that a proof survives, made again."""
    with new_terms():
        attempt = _Attempt((source, target), options, Discharger(), modules)
        attempt.read()
        assert attempt.search is not None
        attempt.search.search(0, FIRST)
        return attempt.survey()


def replay(
    source: ir.Operation,
    target: ir.Operation,
    options: Options,
    given: Counterexample,
    modules: Sequence[ir.Module] = (),
) -> Counterexample | None:
    """What the inputs of a counterexample come to now; None where they show nothing.

    Raises ValueError where they are no inputs of the functions.
    """
    with new_terms():
        attempt = _Attempt((source, target), options, Discharger(), modules)
        attempt.read()
        assert attempt.search is not None
        return attempt.search.replayed(given)


def _ignored(_: Question, __: Mapping[str, int]) -> None:
    """Models are of no use where nobody is asked."""


_ORDER = "floats are added in any order, with -0.0 as unit, and are real numbers in counterexamples"


class _Attempt:
    """One attempt, and what is known so far."""

    def __init__(
        self,
        functions: tuple[ir.Operation, ir.Operation],
        options: Options,
        discharger: Discharger,
        modules: Sequence[ir.Module],
    ) -> None:
        self.functions = functions
        self.modules = modules
        self.globals, self.barred = globals_of(*modules), barred_of(modules)
        self.options = options
        self.discharger = discharger
        self.models: Models | None = None
        self.prover = self._prover()
        self.folds = Simplification()
        self.details: dict[str, object] = {}
        self.notes: dict[str, None] = {}
        self.arguments = Arguments()
        self.search: Search | None = None

    def _prover(self, answers: Sequence[bool] | None = None) -> Prover:
        name, tried = self.functions[0].symbol or "function", self.models.tried if self.models else _ignored
        return Prover(self.discharger, name, answers, self.options.associative, tried)

    def _compares(self, place: int, at: Sequence[Term]) -> None:
        """Notes what is compared: a result's number and subscripts, or MEMORY, a block and a place."""
        if self.models is not None:
            self.models.place = place, at

    def claim(self) -> Claim:
        """What is claimed."""
        sizes = ", ".join(str(s) for s in self.arguments.sizes)
        name = self.functions[0].symbol or "function"
        return Claim(
            name,
            "wherever the source's behaviour is defined, the target's is, with the same shapes and values",
            f"every size {sizes}" if sizes else "the sizes that the types state",
            Equality.REFINES,
            tuple(self.prover.used) or (Interpretation.UNINTERPRETED,),
            tuple({**self.notes, **self.prover.assumptions}),
        )

    def read(self) -> tuple[Meaning, Meaning]:
        """The meaning of both functions."""
        require_usual_index(self.modules)
        types = signature(self.functions[0]), _of_target(signature, self.functions[1])
        if types[0] != types[1]:
            before, after = (text_of_type(ir.FunctionType(*map(tuple, t))) for t in types)
            raise ValueError(
                f"functions must have one signature to be compared; @{self.functions[0].symbol} is {before} in the "
                f"source, and @{self.functions[1].symbol} {after} in the target; let the pass keep signatures, as "
                "docs/how-to/mlir.md says of bufferization"
            )
        self.arguments = arguments_of(self.functions[0], self.options.reading, self.globals)
        self.arguments.barred = self.barred
        bodies = [bodies_of(self.modules[k]) if self.modules else {} for k in (0, -1)]
        source = meaning_of(self.functions[0], self.arguments, self.options.reading, bodies[0])
        target = _of_target(meaning_of, self.functions[1], self.arguments, self.options.reading, bodies[1])
        if source.limits:
            raise source.limits[0]
        self.notes = dict.fromkeys((*self.options.notes, *source.notes, *target.notes))
        self.folds = Simplification(frozenset(conjuncts(self.arguments.facts)))
        self.search = Search(self.arguments, source, target, self.options.associative)
        return source, target

    def again(self, answers: Sequence[bool]) -> str:
        """What is not proved with answers that were written down."""
        source, target = self.read()
        self.prover = self._prover(answers)
        unproved = self._unproved(source, target)
        if len(self.prover.taken) != len(answers):
            return f"{len(answers)} answers where the proof has {len(self.prover.taken)}"
        return unproved

    def decide(self) -> tuple[Status, str]:
        source, target = self.read()
        assert self.search is not None
        search = self.search
        self.models = Models(search)
        self.prover = self._prover()
        counterexample = search.search(0, FIRST)
        if counterexample is None and search.defined < FIRST:  # runs that say little are no reason to try a proof
            if search.finished:
                counterexample = search.search(3, MORE)
            elif not search.over_reals:  # over the reals a proof that fails does so sooner than a long run ends
                counterexample = search.search(0, FEW, LONG * STEPS)
        if counterexample is not None:
            return self.refuted(counterexample)
        if not search.defined and self._is_vacuous(source, target):
            self.details["decided_by"] = "the source's behaviour is never defined"
            return Status.VACUOUS, "the source is never defined: its behaviour is not, or none of its results is"
        self.prover = self._prover()
        self.discharger.obligations = []
        unproved = self._unproved(source, target)
        self.details["answers"] = tuple(self.prover.taken)
        if not unproved:
            return conclude(self.discharger.obligations, self.details.get("decided_by", ""))
        counterexample = search.search(1, LAST, LONG * STEPS)
        if counterexample is not None:
            return self.refuted(counterexample)
        look(self.prover, self.models, self._known(source, target), list(goals_of(source, target)))
        self.details["reasons"] = tuple(self.prover.reasons)
        last = [reason.replace(f"{unproved}: ", "", 1) for reason in self.prover.reasons[-1:]]
        broken = (p.otherwise for p in (*source.provisos, *target.provisos) if str(p.otherwise) == unproved)
        return Status.UNKNOWN, "; ".join([f"not proved: {unproved}", *last, *(b.step for b in islice(broken, 1))])

    def refuted(self, counterexample: Counterexample) -> tuple[Status, str]:
        """The verdict on a counterexample."""
        self.details["counterexample"] = counterexample
        return Status.REFUTED, str(counterexample)

    def survey(self) -> Runs:
        """Runs that a proof must survive."""
        assert self.search is not None
        before = self.search.tried
        difference = self.search.search(2, MORE)
        notes = (f"some inputs could not be evaluated: {self.search.unknown}",) if self.search.unknown else ()
        at = tuple(self.search.sizes) or ("random elements",)
        return Runs(self.search.tried - before, at, notes, difference, str(difference or ""))

    # -- the proof -----------------------------------------------------------------------------------------

    def _known(self, source: Meaning, target: Meaning) -> list[Term]:
        """What may be used: facts, and that the source's behaviour is defined."""
        stated = conjuncts([*self.arguments.facts, *source.facts, *target.facts, source.behaves])
        return self.folds.all_of(stated)

    def _unlike(self, source: Meaning, target: Meaning) -> str:
        """Where it is not proved that the meanings are those of the programs; nothing where it is.

        Of the source only what is required before may be used: what comes after has this meaning only then.
        """
        facts = [*self.arguments.facts, *source.facts, *target.facts]
        for meaning, known in ((source, facts), (target, self._known(source, target))):
            for each in meaning.provisos:
                before = [r.condition for r in each.after] if meaning is source else []
                text = f"{each.otherwise}"
                if not self.prover.follows(text, self.folds.all_of([*known, *before]), self.folds.of(each.condition)):
                    return text
        return ""

    def _is_vacuous(self, source: Meaning, target: Meaning) -> bool:
        if self._unlike(source, target):
            return False
        known = self._known(source, target)
        if self.prover.follows("the source's behaviour is never defined", known, truth(False), (), COARSE):
            return True
        types = signature(self.functions[0])[1]
        fixed = all(None not in t.shape for t in types if isinstance(t, ir.TensorType))
        if not source.results or not fixed or source.memory.formats:
            return False  # the claim says something of shapes, or of memory
        for result in source.results:
            at: tuple[Term, ...] = ()
            ranges: list[Term] = []
            if isinstance(result, Tensor):
                if any(integer_value(n) == 0 for n in result.shape):
                    return False
                at = new_subscripts(len(result.shape))
                ranges = [inside(i, n) for i, n in zip(at, result.shape, strict=True)]
            element = result.at(at) if isinstance(result, Tensor) else result
            goal = negation(element.defined)
            if not self.prover.follows("no result is defined", [*known, *ranges], goal, [at], COARSE):
                return False
        return not self._undefined(known, target)

    def _undefined(self, known: Sequence[Term], target: Meaning) -> str:
        """Which of the target's operations is not proved to have defined behaviour."""
        for each in target.requirements:
            text = f"the target's {each.operator} at {each.position} is defined: {each.reason}"
            if not self.prover.follows(text, known, self.folds.of(each.condition), [each.at]):
                return text
        return ""

    def _unproved(self, source: Meaning, target: Meaning) -> str:
        """What could not be proved, in words; nothing where all is."""
        known = self._known(source, target)
        unproved = self._unlike(source, target) or self._undefined(known, target)
        if unproved:
            return unproved
        for place in range(len(source.results)):
            unproved = self._result(place, known, source, target)
            if unproved:
                return unproved
        unproved = self._memory(known, source.memory, target.memory)
        if unproved:
            return unproved
        return "" if self.prover.used or self.prover.alike() else "both functions have one normal form"

    def _memory(self, known: Sequence[Term], source: Memory, target: Memory) -> str:
        """As :meth:`_unproved`, of blocks that were there before and that the source leaves alive."""
        block, place = fresh("block", INTEGERS), fresh("place", INTEGERS)
        self._compares(MEMORY, (block, place))
        here = [*known, at_most(number(0), block), source.alive(block)]
        for text, before, after in (
            ("a block that was there before is left alive", truth(True), target.alive(block)),
            ("a block that may be written may still be written", source.writable(block), target.writable(block)),
        ):
            if not self.prover.follows(text, [*here, before], after):
                return text
        here.append(inside(place, source.size(block)))
        for kind in dict.fromkeys((*source.formats, *target.formats)):
            text = f"an arbitrary element of memory ({kind}) is the same afterwards"
            pair = source.cells(Place(kind, block, place)), target.cells(Place(kind, block, place))
            if not self._element(text, here, pair, (block, place)):
                return text
        return ""

    def _result(self, number: int, known: Sequence[Term], source: Meaning, target: Meaning) -> str:
        name, a, b = source.names[number], source.results[number], target.results[number]
        if isinstance(a, Element) and isinstance(b, Element):
            return "" if self._element(f"{name} is the same", known, (a, b), ()) else f"{name} is the same"
        assert isinstance(a, Tensor)
        assert isinstance(b, Tensor)
        shapes = both(*(equal(x, y) for x, y in zip(a.shape, b.shape, strict=True)))
        if not self.prover.follows(f"the shape of {name} is the same", known, shapes):
            return f"the shape of {name} is the same"
        at = new_subscripts(len(a.shape))
        self._compares(number, at)
        here = [*known, *(inside(i, n) for i, n in zip(at, a.shape, strict=True))]
        text = f"an arbitrary element of {name} is the same"
        pair = self._simpler((a.at(at), b.at(at)))
        if self._equal(text, here, pair, at, COARSE) or self._at_each(text, here, pair, a.shape, at):
            return ""
        if self._enumerated(name, known, a, b):
            return ""
        return "" if not self.options.associative and self._element(text, here, pair, at) else text

    def _element(self, text: str, known: Sequence[Term], pair: tuple[Element, Element], at: Sequence[Term]) -> bool:
        """Whether an element that the source defines is the same in the target, also with folds written out."""
        pair = self._simpler(pair)
        if self.options.associative:  # sums are written out then
            return self._equal(text, known, pair, at, COARSE)
        a, b = (Element(unrolled(e.value, UNROLLED), e.defined) for e in pair)
        written = (a.value, b.value) != (pair[0].value, pair[1].value)
        return (
            self._equal(text, known, pair, at, COARSE)
            or (written and self._equal(text, known, (a, b), at, COARSE))
            or self._equal(text, known, pair, at, FINE[-1:])
            or (written and self._equal(text, known, (a, b), at, FINE[-1:]))
        )

    def _equal(
        self, text: str, known: Sequence[Term], pair: tuple[Element, Element], at: Sequence[Term], ladder: Ladder
    ) -> bool:
        a, b = pair
        if a.value is b.value and (a.defined is b.defined or is_true(b.defined)):
            return True
        here = [*known, a.defined]
        if not self.prover.follows(f"{text}: it is defined", here, b.defined, [at], ladder):
            return False
        return self.prover.follows(text, here, same(a.value, b.value), [at], ladder)

    def _simpler(self, pair: tuple[Element, Element]) -> tuple[Element, Element]:
        """The pair with simpler folds."""
        a, b = (Element(self.folds.of(e.value), self.folds.of(e.defined)) for e in pair)
        return a, b

    def _at_each(
        self, text: str, known: Sequence[Term], pair: tuple[Element, Element], shape: Sequence[Term], at: Sequence[Term]
    ) -> bool:
        """Whether elements are one term at each place of a result of few, with folds that are equal as one."""
        sizes = _few(shape)
        if sizes is None:
            return False
        a, b = pair
        alike = self.prover.joined(text, [*known, a.defined], same(a.value, b.value), at)
        goal, variables = either(negation(a.defined), both(b.defined, alike)), [variable_of(i) for i in at]
        return all(is_true(substitute(goal, dict(zip(variables, here, strict=True)))) for here in _places(sizes))

    def _enumerated(self, name: str, known: Sequence[Term], a: Tensor, b: Tensor) -> bool:
        """Whether all elements of a result of few elements are the same, one by one."""
        shape = _few(a.shape)
        if shape is None:
            return False
        goals = []
        for at in _places(shape):
            one, other = self._simpler((a.at(at), b.at(at)))
            alike = both(other.defined, same(unrolled(one.value, UNROLLED), unrolled(other.value, UNROLLED)))
            goals.append(either(negation(one.defined), alike))
        return self.prover.follows(f"each element of {name} is the same", known, both(*goals), (), COARSE)


def _of_target(said: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """What is said of the target; what it does not cover is named as the target's."""
    try:
        return said(*args, **named)
    except NotCovered as error:
        raise NotCovered(f"the target's {error.operator}", error.position, error.why, error.step) from error


def _few(shape: Sequence[Term]) -> list[int] | None:
    """The sizes of a result of at most :data:`ENUMERATED` elements; None of others."""
    sizes = [n for n in map(integer_value, shape) if n is not None]
    return None if len(sizes) < len(shape) or prod(sizes) > ENUMERATED else sizes


def _places(shape: Sequence[int]) -> Iterator[tuple[Term, ...]]:
    return (tuple(map(number, at)) for at in product(*map(range, shape)))
