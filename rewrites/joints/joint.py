"""What is said of an operator and a mapping so that it can be proved that they mean the same.

The operator's meaning is its graph (``expand``), the mapping's the kernel of its IR side.  Both are read as tensor
terms over the real numbers, of sizes that are left open: operands of the IR's instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from chc.tensor_rules.rule import TensorRule
from ila_lang import Expr, Function, compile_terms
from ir_semantics.graph.ir import Attribute
from ir_semantics.graph.operator import Operator
from ir_semantics.tensors.conditions import both, holds
from ir_semantics.tensors.index import Index, IndexLike
from ir_semantics.tensors.terms import Tensor, well_formed
from rewrites.bounds.kernel.readings import ANY, Term
from rewrites.mappings.claim import MappingClaim
from smt_encodings.claims import Equality

from .expansion import expanded
from .instruction import Called, called

if TYPE_CHECKING:
    from .kernel import KernelReading

__all__ = ["ANY", "Joint"]


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
        left = expanded(operator, self.operands, self.attributes)
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

    def covers(self, rule: TensorRule, attributes: Mapping[str, Attribute], parameters: Mapping[str, int]) -> str:
        """Why a program at sizes of the mapping is none of a node with these attributes; empty where it is one."""
        sizes = self.sizes(parameters)
        wanted = {**{name: self.attributes[name] for name in attributes}}
        for name, value in wanted.items():
            told = value.value(sizes) if isinstance(value, Index) else value
            if told != attributes[name]:
                return f"{name} must be {told}, not {attributes[name]}"
        for name, value in self.given.items():
            told = value.value(sizes) if isinstance(value, Index) else value
            if sizes[name] != told:
                return f"{name} must be {told}, not {sizes[name]}"
        if not holds(rule.premise, {name: sizes[name] for name in rule.sizes}):
            return f"its sizes must satisfy {rule.premise}"
        return ""
