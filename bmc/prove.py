"""The BMC method: a mapping proved at one shape, both fragments unrolled, for all data and initial state.

The parts of a proof, each an obligation that z3 and cvc5 answer:

1. the lemmas that relate both sides' data functions, bit by bit (where the functions stay uninterpreted);
2. one obligation per *class* of output elements: equations that differ only in the names of their variables
   say the same, for every variable is universally quantified, so one of them stands for all;
3. where it is short enough, the equations of all elements in one script, so that nothing rests on the
   grouping;
4. health: the conclusion can be false.

For what is not proved, a counterexample is sought at the same shape; REFUTED is said only after a replay.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pysmt.shortcuts as smt

from ila_lang import Expr, inline, inline_all, postorder, substitute
from ila_lang.language.expr import variables_of
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Claim, Equality, Interpretation, Obligation, Status, Unsupported, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh, fresh_symbols, plain
from smt_encodings.expressions.bits import BitEncoding, variable_text
from smt_encodings.expressions.direct import CannotPrint, miter_script
from smt_encodings.solvers import z3 as solver_z3
from smt_encodings.values import differ, differing_values, falsifying, prove_lemmas

from .counterexample import Counterexample, replays
from .search import search_at
from .unroll import Cell, Unrolled, unroll_mapping

Data = Literal["uninterpreted", "bits", "auto"]
Memory = Literal["resolved", "arrays"]

MOST_TEXT = 3_000_000
"""Characters beyond which the script of all elements is left out of a certificate."""

TIMEOUT = 60.0
"""Seconds for each question to a solver, and for unrolling, where no discharger says otherwise."""
_MODEL_SECONDS = 5.0
_MOST_OPERANDS = 8


@dataclass(frozen=True)
class Class:
    """Output elements whose equations are equal up to renaming: the first one, and how many there are."""

    element: int
    left: Expr
    right: Expr
    count: int


def prove(
    mapping: TensorMapping,
    sizes: Mapping[str, int] | tuple[int, ...],
    *,
    data: Data = "auto",
    memory: Memory = "resolved",
    discharger: Discharger | None = None,
    search_seconds: float = 10.0,
) -> Verdict:
    """Proves or refutes a mapping at one shape.

    ``sizes`` are the mapping's parameters, or its shape, by default (rows, columns) of the input tensor.  ``data`` says
    how data functions are understood; "auto" keeps them uninterpreted and falls back to bits where that does
    not suffice. ``memory="arrays"`` is the textbook encoding, kept for comparison: one query on SMT arrays,
    nothing resolved. The ``discharger``'s timeout also bounds unrolling, and
    ``search_seconds`` the search for a counterexample (0: none).

    Raises SizeError where ``sizes`` lie outside the mapping's domain and ValueError on another ``data`` or
    ``memory``.
    """
    if data not in ("uninterpreted", "bits", "auto"):
        raise ValueError(f"data must be uninterpreted, bits or auto, not {data!r}")
    if memory not in ("resolved", "arrays"):
        raise ValueError(f"memory must be resolved or arrays, not {memory!r}")
    shape = sizes if isinstance(sizes, tuple) else None
    values = dict(mapping.sizes_for(sizes)) if isinstance(sizes, tuple) else dict(sizes)
    mapping.require(values)
    asking = discharger or Discharger(timeout=TIMEOUT)
    return Attempt(mapping, values, asking, data, memory).verdict(shape, search_seconds)


def claim_at(
    mapping: TensorMapping,
    sizes: Mapping[str, int],
    shape: tuple[int, ...] | None,
    interpretations: tuple[Interpretation, ...],
) -> Claim:
    """What a PROVED of this method says."""
    values = ", ".join(f"{n} = {sizes[n]}" for n in mapping.parameters)
    domain = f"{mapping.shape_text(shape)} only ({values})" if shape else f"{values} only"
    return Claim(
        subject=mapping.name,
        statement=mapping.statement,
        size_domain=domain,
        equality=Equality.BIT_EXACT,
        interpretations=interpretations,
        assumptions=mapping.assumptions,
        compared=mapping.compared,
    )


def classes(pairs: Sequence[tuple[Expr, Expr]]) -> list[Class]:
    """Output elements grouped by their equations, up to renaming of variables, in order of first occurrence."""
    groups: dict[object, list[int]] = {}
    for number, pair in enumerate(pairs):
        groups.setdefault(_pattern(pair), []).append(number)
    return [Class(members[0], *pairs[members[0]], len(members)) for members in groups.values()]


def _pattern(pair: tuple[Expr, Expr]) -> tuple[object, ...]:
    """The two terms written with numbers for variables: equal iff the pairs are equal up to renaming."""
    numbers: dict[Expr, int] = {}
    nodes: list[object] = []
    for node in postorder(pair):
        if node.op == "var":
            nodes.append(node.sort)
        else:
            # the function itself, not its name, which two functions may share
            nodes.append((node.op, node.params, node.func, node.sort, tuple([numbers[a] for a in node.args])))
        numbers[node] = len(numbers)
    return (*nodes, numbers[pair[0]], numbers[pair[1]])


@dataclass(frozen=True)
class Try:
    """One of the two interpretations of data functions under "auto": its outcome, and the seconds it took."""

    data: Interpretation
    reason: str
    seconds: float


@dataclass
class Attempt:
    """One attempt; a method that asks other questions of the unrolled terms is a subclass."""

    method: ClassVar[str] = "bmc"

    mapping: TensorMapping
    sizes: Mapping[str, int]
    discharger: Discharger
    data: Data
    memory: Memory
    details: dict[str, object] = field(default_factory=dict)
    interpretations: list[Interpretation] = field(default_factory=list)
    unrolled: Unrolled | None = None
    tries: list[Try] = field(default_factory=list)
    started: float = 0.0
    _unfolded: list[tuple[Expr, Expr]] | None = None

    def verdict(self, shape: tuple[int, ...] | None, search_seconds: float) -> Verdict:
        """The outcome; for what is not proved, a counterexample is sought for ``search_seconds``."""
        start = time.perf_counter()
        with fresh_symbols():
            status, reason = self.run()
            if status is Status.UNKNOWN and search_seconds > 0:
                counterexample = self.refute(shape, search_seconds)
                if counterexample is not None:
                    status, reason = Status.REFUTED, counterexample.summary()
                    self.details["counterexample"] = counterexample
        seconds = time.perf_counter() - start
        claim = self.claim(shape)
        return Verdict(status, claim, self.method, seconds, reason, self.discharger.obligations, {}, self.details)

    def claim(self, shape: tuple[int, ...] | None) -> Claim:
        """What the verdict is about."""
        return claim_at(self.mapping, self.sizes, shape, tuple(self.interpretations))

    def run(self) -> tuple[Status, str]:
        """The status before any search, with the reason."""
        arrays = self.memory == "arrays"
        abstract = self.data != "bits"
        self.interpretations = [Interpretation.UNINTERPRETED if abstract else Interpretation.BITS]
        try:
            self.unrolled = unroll_mapping(self.mapping, self.sizes, arrays=arrays, timeout=self.discharger.timeout)
            if not self.unrolled.pairs:
                return Status.VACUOUS, "the output has no elements at this shape"
            self.details["cells"] = len(self.unrolled.pairs)
            self.details["commands"] = self.unrolled.commands
            self.details["unroll_seconds"] = self.unrolled.seconds
            if arrays:
                self.arrays(abstract)
            elif abstract:
                self.structure()
            else:
                self.bits()
            self.health()
            status, reason = self.discharger.conclude()
        except Unsupported as error:
            status, reason = Status.UNKNOWN, str(error)
        except NotDischarged as error:
            status, reason = self.undecided(error)
        if self.tries:
            (first,) = self.tries
            seconds = time.perf_counter() - self.started - first.seconds
            self.tries.append(Try(Interpretation.BITS, reason or "all obligations were discharged", seconds))
            self.details["tries"] = self.tries
            if reason:
                reason = f"with functions uninterpreted, {first.reason}; bit by bit, {reason}"
        return status, reason

    def undecided(self, error: NotDischarged) -> tuple[Status, str]:
        """The status and reason where an obligation did not get its answer; keeps the solver's model."""
        answer = error.obligation.answers[0]
        if answer.status == "sat":
            self.details["model"] = answer.model
        return Status.UNKNOWN, str(error)

    # -- the three ways to put the question -----------------------------------------------------------

    def structure(self) -> None:
        """Functions uninterpreted but for the lemmas; where that fails under "auto", bit by bit."""
        asked = len(self.discharger.obligations)
        self.started = time.perf_counter()
        try:
            prove_lemmas(self.discharger, self.mapping.lemmas)
            self.ask_classes(True)
        except (NotDischarged, CannotPrint) as error:
            if self.data != "auto":
                raise
            seconds = time.perf_counter() - self.started
            self.tries.append(Try(Interpretation.UNINTERPRETED, str(error), seconds))
            # the attempt is no part of a proof bit by bit
            del self.discharger.obligations[asked:]
            self.interpretations = [Interpretation.BITS]
            self.bits()
            return
        self.ask_all()

    def bits(self) -> None:
        """Every function in its closed form, class by class."""
        self.ask_classes(False)

    def pairs(self, abstract: bool) -> Sequence[tuple[Expr, Expr]]:
        """The equations; where functions stay abstract, the others are unfolded, so that equal terms are one term."""
        assert self.unrolled is not None
        if not abstract:
            return self.unrolled.pairs
        if self._unfolded is None:
            terms = inline_all([t for pair in self.unrolled.pairs for t in pair], self.kept())
            self._unfolded = list(zip(terms[::2], terms[1::2], strict=True))
        return self._unfolded

    def kept(self) -> frozenset[str]:
        """Names of the functions that are not unfolded."""
        defined = {lemma.left.func.name for lemma in self.mapping.lemmas if lemma.left.func and lemma.defines}
        return self.mapping.abstract | defined

    def ask_classes(self, abstract: bool) -> None:
        """One obligation per class of output elements."""
        assert self.unrolled is not None
        grouped = classes(self.pairs(abstract))
        self.details["classes"] = [(c.element, c.count) for c in grouped]
        how = "for all data functions that satisfy the lemmas" if abstract else "bit by bit"
        for number, each in enumerate(grouped):
            meaning = (
                f"output element {each.element} is the same on both sides, {how}; up to the names of its variables "
                f"this is the equation of {each.count} of the {len(self.unrolled.pairs)} elements"
            )
            self.ask("elements", f"class {number} of {len(grouped)}", [(each.left, each.right)], meaning, abstract)

    def ask_all(self) -> None:
        """The equations of all elements in one script, if it is short enough."""
        assert self.unrolled is not None
        pairs = self.pairs(True)
        meaning = (
            f"all {len(pairs)} output elements are the same on both sides, for all data functions that satisfy the "
            "lemmas; each device function that a lemma is about is defined by the lemma"
        )
        text = self.script("all elements", pairs, meaning, True)
        self.details["all_elements_in_one_script"] = len(text) <= MOST_TEXT
        if len(text) <= MOST_TEXT:
            self.discharger.ask_text(Obligation("all elements", "elements", text, "unsat", meaning))

    def arrays(self, abstract: bool) -> None:
        """One query over SMT arrays."""
        assert self.unrolled is not None
        if abstract:
            prove_lemmas(self.discharger, self.mapping.lemmas)
        meaning = f"all {len(self.unrolled.pairs)} output elements are the same on both sides, memories as SMT arrays"
        self.ask("elements", "all elements", self.unrolled.pairs, meaning, abstract)

    def health(self) -> None:
        """With another variable in place of one that the device's element depends on, the sides must differ."""
        assert self.unrolled is not None
        left, right = self.unrolled.pairs[0]
        ir_variables = set(variables_of(right))
        operands = [v for v in variables_of(left) if v in ir_variables]
        if not operands:
            raise Unsupported("output element 0 depends on no input: equality would say nothing of the data")
        # of many operands one may hardly ever matter, such as a row with a small softmax weight
        # or a weight of padding; the last one is often a bias
        some = [*operands[:: -(-len(operands) // _MOST_OPERANDS)], operands[-1]]
        tried = list(dict.fromkeys(some)) if self.memory == "resolved" else operands[:1]
        for operand in tried:
            unrelated = substitute(left, {operand: fresh("unrelated", operand.sort)})
            values = differing_values(unrelated, right) if len(tried) > 1 else None
            if values is not None:
                break
        meaning = (
            f"with {plain(operand.name)} replaced by an unrelated value the sides differ, so equality is not trivial"
        )
        if self.memory == "resolved":
            terms = falsifying(unrelated, right, values)
            self.discharger.ask("health", "conclusion falsifiable", terms, meaning, expected="sat")
        else:
            self.ask("health", "conclusion falsifiable", [(unrelated, right)], meaning, False, "sat")

    def ask(
        self,
        group: str,
        name: str,
        pairs: Sequence[tuple[Expr, Expr]],
        meaning: str,
        abstract: bool,
        expected: str = "unsat",
    ) -> None:
        """Puts the question whether the terms of some pair can differ."""
        if not abstract and self.memory == "resolved":
            # through pySMT: on its text cvc5 needs 2 seconds for mean pooling, on the direct one 40
            terms = smt.Or([differ(BitEncoding(), a, b) for a, b in pairs])
            self.discharger.ask(group, name, [terms], meaning, expected=expected)
            return
        text = self.script(f"{group}: {name}", pairs, meaning, abstract)
        self.discharger.ask_text(Obligation(name, group, text, expected, meaning))

    def script(self, title: str, pairs: Sequence[tuple[Expr, Expr]], meaning: str, abstract: bool) -> str:
        """The text of a question; with ``abstract`` functions are symbols with lemmas."""
        comment = f"{title}\n{meaning}"
        if not abstract:
            return miter_script(pairs, comment=comment)
        return miter_script(pairs, keep=self.mapping.abstract, lemmas=self.mapping.lemmas, comment=comment)

    # -- refutation -----------------------------------------------------------------------------------

    def refute(self, shape: tuple[int, ...] | None, seconds: float) -> Counterexample | None:
        """A counterexample at this shape that replays, from a bit-exact model where there is one."""
        start = time.perf_counter()
        models = self.models(min(seconds / 2, _MODEL_SECONDS))
        left = max(1.0, seconds - (time.perf_counter() - start))
        counterexample = search_at(self.mapping, self.sizes, shape=shape, budget_seconds=left, models=models)
        return counterexample if counterexample is not None and replays(self.mapping, counterexample) else None

    def models(self, seconds: float) -> list[dict[Cell, int]]:
        """Bit-exact models of differing elements, as initial contents."""
        if self.unrolled is None or self.memory == "arrays":
            return []
        deadline = time.perf_counter() + seconds
        for each in classes(self.unrolled.pairs):
            left = deadline - time.perf_counter()
            if left <= 0:
                break
            try:
                answer = solver_z3.check(miter_script([(inline(each.left), inline(each.right))]), left)
            except (Unsupported, ValueError):  # a function without a body has no bits
                continue
            if answer.status == "sat":
                cells = {variable_text(v): cell for v, cell in self.unrolled.cells.items()}
                return [{cells[n]: v for n, v in answer.model.items() if n in cells}]
        return []
