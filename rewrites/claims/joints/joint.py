"""What is said of an operator and a mapping so that it can be proved that they mean the same.

The operator's meaning is its graph (``expand``), the mapping's the kernels of its IR side.  Both are read as tensor
terms over the real numbers, of sizes that are left open: operands of the IR's instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from math import prod
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from chc.tensor_rules.rule import TensorRule
from ila_lang import Expr, Function, compile_terms, substitute
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Attribute, attributes_of
from ir_semantics.graph.operator import Operator
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.conditions import TRUE, Condition, both, equal, holds, inside
from ir_semantics.tensors.elements import Choice, Element, Reader
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.index import Index, IndexLike, Names, index
from ir_semantics.tensors.operators import concat, fill, pad
from ir_semantics.tensors.terms import Tensor, form_of, input_, make, operands_of, well_formed
from rewrites.bounds.derivations.calculus import Operator as Bounded
from rewrites.bounds.kernel.readings import Term
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import ConversionClaim
from rewrites.mappings.packing import PackingClaim, packed
from rewrites.rules.tensor.boxes import block_boxes, box_of
from smt_encodings.claims import Equality

from .expansion import FAULTS, ITERATION, AnyNumber, Expanded, constant_of, expanded, same, structure_of, valued
from .indices import Obligation
from .instruction import Called, Unread, called, require_functions

if TYPE_CHECKING:
    from .kernel import KernelReading
    from .readings import Use


@dataclass(frozen=True, eq=False)
class Joint:
    """How the host calls a mapping's IR instructions in the place of an operator.

    ``operands`` are the operator's, as inputs of symbolic shapes, and ``tensors`` what the host puts for it into
    tensors of the device's program, row-major: the operands themselves, padded or moved, or zeros.  They lie in the
    IR's memories that the mapping pairs with these.  Sizes are the instruction's operands by their names; those of a
    second instruction have ``_2`` after them, and so on.  ``given`` are values of some of these, as numbers or in terms
    of the others, and ``domain`` is a condition on sizes; programs that have others are none of the operator.
    ``attributes`` are those of the operator, but for ``numbers``, of which any number may be the value.  ``exponents``
    are those of numbers in tensors, the result's included, where codes have a bias; in others they are 0.

    The kernel is read by what its primitives are on real numbers, or, with a ``bound``, as the real number that this is
    about.  What the accelerator leaves out of that is a leaf of the bound without a place in the kernel: one of the
    ``numbers``, by its name.

    ``states`` are for an operator that repeats a step.  The kernel stores rows of its states to memories of the IR, and
    reads of these no row but the one before: by name, the result's first, inputs that stand for what lies there.

    ``readings`` are operations of the mapping's own primitives on signed integers.  Of parameters that the operation
    does not take the last one is a number of bits by which the result is shifted right: it is in coarser units, rounded
    down or up, as those before it say.
    """

    mapping: MappingClaim
    operands: tuple[Tensor, ...]
    tensors: Mapping[str, Tensor]
    given: Mapping[str, IndexLike] = field(default_factory=dict)
    attributes: Mapping[str, Attribute | Index] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    exponents: Mapping[str, IndexLike] = field(default_factory=dict)
    readings: Mapping[Function, Term] = field(default_factory=dict)
    domain: Condition = TRUE
    bound: Bounded | None = None
    states: Mapping[str, Tensor] = field(default_factory=dict)
    _expansions: dict[Operator, Expanded] = field(default_factory=dict, init=False, repr=False)

    def rule(self, name: str, operator: Operator) -> TensorRule:
        """The claim as a rule on tensors, the graph on the left; raises Unread where a side cannot be read."""
        self._require_names()
        graph = self._expanded(operator)
        left, memories = graph.term, {**self.memories, **{n: input_(n) for n in self.numbers}}
        for step in () if self.states else self.steps:
            like = left.shape if step is self.steps[-1] else None
            memories[step.called.output] = step.tensor([memories[m] for m in step.reads], like)
        right = memories[self.mapping.mapping.output[1]]
        if self.states:
            # by induction over rows: what is stored is what the step makes of the row before, whatever that is
            (step,) = self.steps
            given = [memories[m] for m in step.reads]
            left = stack(left, *graph.after)
            right = stack(right, *(step.tensor(given, t.shape, m) for m, t in self.states.items()))
        premise = both(
            self.domain,
            graph.premise,
            *(both(step.words, step.run.premise) for step in self.steps),
            well_formed(*self.memories.values()),
        )
        try:
            rule = TensorRule(name, left, right, premise, Equality.OVER_REALS)
            strange = {*rule.sizes, *(n for e in self.exponents.values() for n in index(e).variables)} - self._open
        except FAULTS as error:
            raise error if isinstance(error, Unread) else Unread(f"{operator.name} cannot be read: {error}") from error
        if strange:
            raise Unread(f"{min(strange)} must be an operand of the mapping's instructions that nothing is said of")
        return rule

    @property
    def _open(self) -> set[str]:
        """The operands of instructions of which no value is given."""
        return {name for called in self.called for name in called.names.values()} - set(self.given)

    def _require_names(self) -> None:
        require_functions(self.readings)
        named = (*self.operands, *self.states.values())
        names = [dict(t.attributes)["name"] if t.operator == "input" else "" for t in named]
        names += self.numbers
        sizes = {name for called in self.called for name in called.names.values()}
        if len({*names, *sizes, ""}) < len(names) + len(sizes) + 1:
            raise Unread("operands must be inputs of names of their own, which no sizes have")
        if self.states and (self.bound is not None or self.numbers):
            raise Unread("the step of an operator must be read as the kernel, and have no attributes of any number")
        if not all(isinstance(t, Tensor) for t in self.tensors.values()):
            raise Unread("what lies in memories must be tensors")
        inputs = {t for t in operands_of(*self.memories.values()) if t.operator == "input"}
        if not inputs <= {*self.operands, *self.states.values()}:
            raise Unread("what lies in memories must be made of the operands")
        if len({lemma.name for lemma in self.mapping.mapping.lemmas}) < len(self.mapping.mapping.lemmas):
            raise Unread("lemmas must have names of their own")
        numbers = (*self.given.values(), *self.exponents.values())
        if not all(isinstance(v, int | Index) and not isinstance(v, bool) for v in numbers):
            raise Unread("what is given, and exponents, must be integers, or indices of these")
        values = {name: index(value) for name, value in self.given.items()}
        if not set(values) <= sizes or not {n for v in values.values() for n in v.variables} <= self._open:
            raise Unread("what is given must be operands of the mapping's instructions, in terms of the others")

    @cached_property
    def memories(self) -> dict[str, Tensor]:
        """What lies in the IR's memories."""
        laid = {self._partner(name): term for name, term in self.tensors.items()}
        if laid.keys() & self.states.keys():
            raise Unread("what is put into memories must not be what the kernel stores")
        return {**laid, **self.states}

    def _partner(self, name: str) -> str:
        mapping = self.mapping.mapping
        if name in self.states:
            return name
        partners = [memory for tensor, memory in (*mapping.inputs, mapping.output) if tensor == name]
        if len(partners) != 1:
            raise Unread(f"{name} must be a tensor that {mapping.name} compares with one of the IR's")
        return partners[0]

    @cached_property
    def called(self) -> tuple[Called, ...]:
        """The IR's instructions that the mapping runs."""
        calls, result = called(self.mapping.mapping.ir), self.mapping.mapping.output[1]
        if self.states and (len(calls) > 1 or next(iter(self.states)) != result or calls[0].stored != {*self.states}):
            raise Unread(f"one command must store to the memories of states, {', '.join(self.states)}: {result} first")
        if not self.states and calls[-1].output != result:
            raise Unread(f"the last command must store to {result}")
        return calls

    @cached_property
    def steps(self) -> tuple[KernelReading, ...]:
        """Their kernels, as they are read: each finds in memories what the host put there, and what others stored."""
        from .kernel import KernelReading  # needs lemmas, and so solvers, which whoever states a joint does not
        from .theorem import BoundReading
        from .words import Units

        self._require_names()
        shapes = {name: term.shape for name, term in self.memories.items()}
        lemmas, readings, units = self.mapping.mapping.lemmas, list[KernelReading](), Units()
        laid = dict.fromkeys((*self.memories, self.mapping.mapping.output[1]), 0)  # others have that of what is stored
        exponents = laid | {self._partner(name): exponent for name, exponent in self.exponents.items()}
        for each in self.called:
            values = {name: v for name, v in self.given.items() if name in each.names.values()}
            of = (each, dict(shapes), values, exponents, self.readings, lemmas, units)
            if self.states:
                readings.append(KernelReading(*of, kept=frozenset(self.states)))
                continue
            readings.append(
                KernelReading(*of) if self.bound is None else BoundReading(*of, bound=self.bound, omitted=self.numbers)
            )
            shapes[each.output] = readings[-1].shape
        return tuple(readings)

    @property
    def uses(self) -> tuple[Use, ...]:
        """Where ``readings`` are used."""
        return tuple(
            (function, tuple(substitute(other, step.called.operands) for other in others))
            for step in self.steps
            for function, others in step.run.uses
        )

    @property
    def fits(self) -> Condition:
        """That every tensor lies in its memory, which programs must satisfy besides the premise of the rule."""
        return both(*(step.fits for step in self.steps))

    def obligations(self, operator: Operator) -> list[Obligation]:
        """What must hold so that both sides are as they are read, under the premise of the rule."""
        kernels = [obligation for step in self.steps for obligation in step.run.obligations]
        for goal in self._expanded(operator).requires:
            (rows,) = {state.shape[0] for state in self.states.values()}
            within = inside(Index({(ITERATION,): 1}), rows)
            kernels.append(Obligation((within,), goal, f"every step is well formed: {goal}"))
        return kernels

    def sizes(self, parameters: Mapping[str, int]) -> dict[str, int]:
        """The instructions' operands at sizes of the mapping."""
        mapping = self.mapping.mapping
        values: dict[str, Expr] = {c.names[state]: v for c in self.called for state, v in c.operands.items()}
        run = compile_terms(list(mapping.parameters.values()), list(values.values()))
        results = run(*(parameters[name] for name in mapping.parameters))
        return dict(zip(values, map(int, results), strict=True))

    def types(self, parameters: Mapping[str, int]) -> tuple[TensorType, ...]:
        """The operator's operands of a program at sizes of the mapping."""
        return self._types_at(self.sizes(parameters))

    def _types_at(self, sizes: Mapping[str, int]) -> tuple[TensorType, ...]:
        return tuple(TensorType("float32", shape_at(t, sizes)) for t in self.operands)

    def covers(
        self,
        operator: Operator,
        rule: TensorRule,
        types: Sequence[TensorType],
        attributes: Mapping[str, Attribute],
        parameters: Mapping[str, int],
    ) -> str:
        """Why a program at sizes of the mapping is none of a node; empty where it is one.

        The node's operands have these types; the program's may be parts of them.  What the operator stands for, at the
        shapes of both, must be the graph that was read.
        """
        try:
            sizes = self.sizes(parameters)
            differs = self._differs(operator, rule, types, attributes, sizes)
            compared = prod(self.mapping.mapping.output_extents(parameters))
            if not differs and compared != (elements := prod(shape_at(self._expanded(operator).term, sizes))):
                return f"{self.mapping.name} is about {compared} elements, not {elements}"
            return differs
        except FAULTS as error:
            return f"{operator.name} cannot be looked at: {error}"

    def misplaced(
        self,
        parameters: Mapping[str, int],
        laid: Mapping[str, tuple[int, ...]],
        conversions: Mapping[str, ConversionClaim] | None = None,
    ) -> str:
        """Why what the host puts into tensors of a program at these sizes is not what is said; empty where it is.

        ``laid`` has extents, of which several axes may be one; other tensors are operands as the graph has them, or
        constants.  ``conversions`` are those that write tensors, or read the result.
        """
        from .words import CONVERSIONS, NUMBER

        codes = {form for before, after, _ in CONVERSIONS.values() for form in (before, after)} - {NUMBER}
        sizes = self.sizes(parameters)
        for name in self.tensors.keys() - laid.keys():
            if self.tensors[name].operator not in ("input", "fill"):
                return f"{name} must hold {self.tensors[name]}, which no program of the host makes"
        for name, extents in laid.items():
            expected = shape_at(self.tensors[name], sizes) if name in self.tensors else extents
            if not is_view(extents, expected):
                return f"{name} must be a tensor {expected}, not {extents}"
            claim = None if conversions is None else conversions.get(name)
            if claim is None:
                continue
            lanes = claim.lanes if isinstance(claim, PackingClaim) else 0
            if name in self.tensors and not _lies(self.tensors[name], lanes):
                return f"{name} must hold {self.tensors[name]}; {claim.name} lays it out otherwise"
            units = self.steps[-1].run.units
            form, _ = units.of(units.place(self._partner(name)))
            if (form in codes) != (claim.function in CONVERSIONS):
                return f"{name} must hold words of the form {form}, which {claim.name} does not make or read"
        return ""

    def scales(self, parameters: Mapping[str, int], exponents: Mapping[str, int]) -> dict[str, int]:
        """By tensor of a program at these sizes the n for which the host puts numbers times 2^-n there, or reads such.

        ``exponents`` are those of the host's conversions.  Raises Unread where nothing is known of words' unit.
        """
        sizes, found = self.sizes(parameters), dict[str, int]()
        for name, exponent in exponents.items():
            own = self.steps[-1].run.units.host_exponent(self._partner(name))
            if own is None:
                raise Unread(f"{name} must hold words of a known unit, so that its scale is known")
            found[name] = exponent - own.value(sizes)
        return found

    def exchanged(self, held: Mapping[str, int | None]) -> str:
        """Why tensors do not hold the operands, or zeros, that are said; empty where they do.

        ``held`` has each one's place among the operands, and None of what is zeros.
        """
        said = {name: {t for t in operands_of(term) if t.operator == "input"} for name, term in self.tensors.items()}
        for name in {**held, **said}:
            place = held.get(name)
            lies = set[Tensor]() if place is None else {self.operands[place]}
            if (own := said.get(name, set())) != lies:
                return f"{name} must hold {_names(own)}, not {_names(lies)}"
            if name in said and not lies:
                if form_of(self.tensors[name]) != form_of(fill(0, *self.tensors[name].shape)):
                    return f"{name} must hold other constants than the zeros that the host puts there"
                if name not in held:
                    return f"{name} must hold zeros that the host puts there"
        return ""

    def blocks(self, name: str) -> tuple[int, ...]:
        """In which order blocks of an operand's rows, as many and as long, lie in a tensor; (0,) for all of them.

        Raises Unread where they are parts of another kind.
        """
        term = self.tensors.get(name)
        if term is None or term.operator != "concat":
            return (0,)
        inputs = [t for t in operands_of(term) if t.operator == "input"]
        parts, others = len(term.operands), term.shape[1:]
        if len(inputs) == 1 and inputs[0].rank == term.rank:
            (x,) = inputs
            rows = x.shape[0] // parts
            spans = [(index(0), extent) for extent in others]
            known = [form_of(box_of(x, box)) for box in block_boxes(parts, rows, spans)]
            if form_of(term) == form_of(concat(0, *term.operands)) and {*map(form_of, term.operands)} <= {*known}:
                return tuple(known.index(form_of(part)) for part in term.operands)
        raise Unread(f"{name} must hold blocks of one operand's rows, not {term}")

    def _differs(
        self,
        operator: Operator,
        rule: TensorRule,
        types: Sequence[TensorType],
        attributes: Mapping[str, Attribute],
        sizes: Mapping[str, int],
    ) -> str:
        for name, value in self.given.items():
            if (expected := valued(value, sizes)) != sizes[name]:
                return f"{name} must be {expected}, not {sizes[name]}"
        domain = both(rule.premise, self.fits)
        if not holds(domain, sizes):
            return f"its sizes must satisfy {domain}"
        stated = self._types_at(sizes)
        if [(t.dtype, t.rank) for t in types] != [(t.dtype, t.rank) for t in stated]:
            return f"operands must be such as {', '.join(map(str, stated))}, not {', '.join(map(str, types))}"
        numbers = {AnyNumber(name): constant_of(np.asarray(attributes[name], "float32")) for name in self.numbers}
        own = self._sizes_of(types, sizes)
        for state in self.states.values():
            if (steps := state.shape[0].value(own)) != (run := state.shape[0].value(sizes)):
                return f"a program of {run} steps is none of {steps}"
        for of, at in ((stated, sizes), (types, own)):
            if [t.shape for t in of] != (shapes := [shape_at(t, at) for t in self.operands]):
                return f"operands must have the shapes {shapes} together, not {', '.join(map(str, of))}"
            for name, attribute in attributes.items():
                if name in self.numbers:
                    continue
                if name not in self.attributes or (expected := valued(self.attributes[name], at)) != attribute:
                    return f"{name} must be {expected if name in self.attributes else 'no attribute'}, not {attribute}"
            structure = self._expanded(operator).structure
            graph = expansion(operator.name, tuple(of), attributes_of(attributes))
            if not same(structure, structure_of(graph), {**at, **numbers}):
                shown = ", ".join(map(str, of))
                return f"what {operator.name} stands for at {shown} is not what was read for all sizes"
        return ""

    def _expanded(self, operator: Operator) -> Expanded:
        """The graph that the operator stands for, which is expanded once: what is proved of it is what is covered."""
        if operator not in self._expansions:
            states = tuple(self.states.values())
            self._expansions[operator] = expanded(operator, self.operands, self.attributes, self.numbers, states)
        return self._expansions[operator]

    def _sizes_of(self, types: Sequence[TensorType], sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes at which operands have these types, and those of a program where the types do not say them."""
        solution = dict(sizes)
        for term, type_ in zip(self.operands, types, strict=True):
            for extent, number in zip(term.shape, type_.shape, strict=True):
                if len(extent.variables) == 1:  # of 2 (n // 2) it is a solution, too, where there is one
                    name = min(extent.variables)
                    factor = next((c for monomial, c in extent.terms if monomial == (name,)), 1)
                    solution[name] = number // factor
        return solution


@lru_cache(maxsize=1024)
def _lies(term: Tensor, lanes: int) -> bool:
    """Whether a tensor is its operand, packed in so many lanes, or row-major (0) and with zeros behind it.

    Rows in another order are several boxes, of which each has its place.
    """
    inputs = [t for t in operands_of(term) if t.operator == "input"]
    if len(inputs) != 1 or term.operator == "concat":
        return not lanes
    (x,) = inputs
    if lanes:
        return form_of(term) == form_of(packed(x, lanes))
    behind = [extent - own for extent, own in zip(term.shape, x.shape, strict=False)]
    return term is x or (term.rank == x.rank and form_of(term) == form_of(pad(x, [0] * x.rank, behind)))


def _names(operands: set[Tensor]) -> str:
    return ", ".join(sorted(map(str, operands))) or "no operand"


def is_view(extents: Sequence[int], of: Sequence[int]) -> bool:
    """Whether rows, rows of rows and so on of a row-major tensor are some of those of one with extents ``of``.

    >>> is_view((8, 81), (1, 8, 9, 9)), is_view((9, 72), (1, 8, 9, 9)), is_view((5, 1), (5,)), is_view((5,), (4,))
    (True, False, True, False)
    """
    rows, others = ({1, *accumulate(reversed(axes), mul)} for axes in (extents, of))
    return prod(extents) == prod(of) and rows <= others


def stack(*parts: Tensor) -> Tensor:
    """Tensors of one shape along a new first axis; raises Unread where there are several."""
    for part in parts:
        if part.shape != parts[0].shape:
            shapes = [str([str(d) for d in t.shape]) for t in (parts[0], part)]
            raise Unread(f"results and rows of states must have one shape, not {' and '.join(shapes)}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        element = of[-1](at[1:])
        for place in range(len(parts) - 2, -1, -1):
            element = Choice(equal(at[0], place), of[place](at[1:]), element)
        return element

    return make("stack", parts, (len(parts), *parts[0].shape), rule)
