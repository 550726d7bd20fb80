"""What is said of an operator and a mapping so that it can be proved that they mean the same.

The operator's meaning is its graph (``expand``), the mapping's the kernel of its IR side.  Both are read as tensor
terms over the real numbers, of sizes that are left open: operands of the IR's instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from chc.tensor_rules.rule import TensorRule
from ila_lang import Expr, Function, compile_terms
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Attribute, attributes_of
from ir_semantics.graph.operator import Operator
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.conditions import both, holds
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.index import Index, IndexLike
from ir_semantics.tensors.terms import Tensor, well_formed
from rewrites.bounds.kernel.readings import Term
from rewrites.mappings.claim import MappingClaim
from smt_encodings.claims import Equality

from .expansion import expanded, structure_of, valued
from .instruction import Called, called

if TYPE_CHECKING:
    from .kernel import KernelReading


@dataclass(frozen=True, eq=False)
class Joint:
    """How the host calls a mapping's IR instruction in the place of an operator.

    ``operands`` are the operator's, as inputs of symbolic shapes, and ``memories`` what lies in the IR's memories for
    it, row-major: the operands themselves, padded or moved, or zeros.  Sizes are the instruction's operands by their
    names.  ``given`` are values of some of these, as numbers or in terms of the others; programs that have others are
    none of the operator.  ``attributes`` are those of the operator.  ``exponents`` are those of numbers in
    memories, the result's included, where codes have a bias; in others they are 0.

    ``readings`` are operations of the mapping's own primitives on signed integers.  A last parameter that the operation
    does not take is a number of bits by which the result is shifted right: it is in coarser units, rounded down.
    """

    mapping: MappingClaim
    operands: tuple[Tensor, ...]
    memories: Mapping[str, Tensor]
    given: Mapping[str, IndexLike] = field(default_factory=dict)
    attributes: Mapping[str, Attribute | Index] = field(default_factory=dict)
    exponents: Mapping[str, IndexLike] = field(default_factory=dict)
    readings: Mapping[Function, Term] = field(default_factory=dict)

    def rule(self, name: str, operator: Operator) -> TensorRule:
        """The claim as a rule on tensors, the graph on the left; raises Unread where a side cannot be read."""
        left, _ = expanded(operator, self.operands, self.attributes)
        right = self.reading.tensor(tuple(self.memories.values()), left.shape)
        premise = both(self.reading.premise, well_formed(*self.memories.values()))
        return TensorRule(name, left, right, premise, Equality.OVER_REALS)

    @cached_property
    def called(self) -> Called:
        """The IR's instruction that the mapping runs."""
        return called(self.mapping.mapping.ir)

    @cached_property
    def reading(self) -> KernelReading:
        """Its kernel, as it is read."""
        from .kernel import KernelReading  # needs lemmas, and so solvers, which whoever states a joint does not

        shapes = {name: term.shape for name, term in self.memories.items()}
        return KernelReading(self.called, self.mapping.mapping, shapes, self.given, self.exponents, self.readings)

    def sizes(self, parameters: Mapping[str, int]) -> dict[str, int]:
        """The instruction's operands at sizes of the mapping."""
        mapping = self.mapping.mapping
        values: list[Expr] = list(self.called.operands.values())
        run = compile_terms(list(mapping.parameters.values()), values)
        found = run(*(parameters[name] for name in mapping.parameters))
        return dict(zip((state.name for state in self.called.operands), map(int, found), strict=True))

    def covers(
        self,
        operator: Operator,
        rule: TensorRule,
        types: Sequence[TensorType],
        attributes: Mapping[str, Attribute],
        parameters: Mapping[str, int],
    ) -> str:
        """Why a program at sizes of the mapping is none of a node; empty where it is one.

        The node's operands have these types, of which only the number of axes counts: programs may compute parts.  What
        the operator stands for at the program's sizes must be the graph that was read.
        """
        sizes = self.sizes(parameters)
        stated = tuple(TensorType("float32", shape_at(t, sizes)) for t in self.operands)
        if [(t.dtype, t.rank) for t in types] != [(t.dtype, t.rank) for t in stated]:
            return f"operands must be such as {', '.join(map(str, stated))}, not {', '.join(map(str, types))}"
        for name, attribute in attributes.items():
            if (expected := valued(self.attributes[name], sizes)) != attribute:
                return f"{name} must be {expected}, not {attribute}"
        for name, given in self.given.items():
            if (expected := valued(given, sizes)) != sizes[name]:
                return f"{name} must be {expected}, not {sizes[name]}"
        if not holds(rule.premise, {name: sizes[name] for name in rule.sizes}):
            return f"its sizes must satisfy {rule.premise}"
        _, structure = expanded(operator, self.operands, self.attributes)
        if structure_of(expansion(operator.name, stated, attributes_of(attributes))) != valued(structure, sizes):
            return (
                f"what {operator.name} stands for at {', '.join(map(str, stated))} is not what was read for all sizes"
            )
        return ""
