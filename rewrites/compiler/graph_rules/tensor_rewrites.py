"""Rules on tensors as rewrites of an e-graph: only those that passed the gate, with their certificates.

Where a rule matches, sizes are found and its premise is checked; both are checked again by whoever builds the sides,
which is what the checker of explanations relies on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.build import result_type
from ir_semantics.graph.ir import Attribute, attributes_of, digest_of
from ir_semantics.graph.types import Array, GraphError, TensorType
from rewrites.claims.names import slug
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution, Symbol
from rewrites.egraph.pattern import Maker
from smt_encodings.claims import Equality

from .patterns import Found, Instance, NoPattern, Pattern, build, fits, inputs_of, instances, sides_of

if TYPE_CHECKING:
    from rewrites.claims.gate import Admission

T = TypeVar("T")


class Constants:
    """The data of constants by digest; literals of rules are added to those of a graph.

    ``finite`` says that those of the graph have no infinity and no NaN.
    """

    def __init__(self, data: Mapping[str, Array] | None = None) -> None:
        self.data: dict[str, Array] = dict(data or {})
        self.finite = all(np.isfinite(a).all() for a in self.data.values() if a.dtype.kind == "f")

    def scalar(self, value: Fraction | float | int, dtype: str) -> Symbol:
        """The symbol of a scalar; raises EGraphError where the element type does not have the number."""
        with np.errstate(over="ignore"):
            array = np.array(float(value), dtype)
        if not isinstance(value, float) and not (np.isfinite(array) and Fraction(float(array)) == value):
            raise EGraphError(f"{value} must be a number of the type {dtype}; it is not")
        digest = digest_of(array)
        self.data.setdefault(digest, array)
        return Symbol("constant", (("digest", digest),), TensorType(dtype, ()))


@dataclass(frozen=True)
class TensorRewrite:
    """A rule on tensors from its left to its right side, for tensors of one element type.

    ``rule`` names the claim and the digest of its certificate.  An e-graph reads it in both directions: ``converse`` is
    the claim that this rests on where it may hold in one only.  Raises EGraphError from :meth:`sides` for sizes and
    operands that are no instance.
    """

    rule: Rule
    claim: TensorRule
    left: Pattern
    right: Pattern
    constants: Constants = field(repr=False)
    converse: TensorRule | None = None

    @property
    def operator(self) -> str | None:
        """The operator at the top of the left side; None where that is an input."""
        return None if self.left.operator in ("input", "literal") else self.left.operator

    @property
    def equality(self) -> Equality:
        """The sense in which both sides are equal."""
        return self.claim.equality

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The instances whose left side is in the class of an e-node."""
        for instance in instances(self.claim, self.left, Classes(egraph, self.constants), number):
            substitution = Substitution.of(instance.inputs, instance.sizes)
            try:
                self.sides(Types(), substitution.moved(egraph.type_of))
            except EGraphError:
                continue  # of another type of elements, or the right side has none here
            yield substitution

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """Both sides at an instance."""
        inputs, sizes = dict(substitution.operands), dict(substitution.values)
        whole = {name: n for name, n in sizes.items() if type(n) is int}
        claims = [self.claim] if self.converse is None else [self.claim, self.converse]
        if len(whole) < len(sizes) or not all(fits(claim, whole) for claim in claims):
            raise EGraphError(f"sizes must satisfy the premise of {self.rule.name}; {sizes} do not")
        shapes = inputs_of(self.left, self.right)
        if set(inputs) != set(shapes):
            raise EGraphError(f"{self.rule.name} must be given its inputs {', '.join(shapes)}")
        dtypes = set()
        for name, extents in shapes.items():
            type_ = maker.type_of(inputs[name])
            shape = tuple(d.value(whole) for d in extents)
            if not isinstance(type_, TensorType) or type_.shape != shape:
                raise EGraphError(
                    f"the input {name} of {self.rule.name} must have the shape {list(shape)}, not {type_}"
                )
            dtypes.add(type_.dtype)
        if len(dtypes) != 1:
            raise EGraphError(f"the inputs of {self.rule.name} must have elements of one type, not {sorted(dtypes)}")
        (dtype,) = dtypes
        if np.dtype(dtype).kind != "f":
            raise EGraphError(f"{self.rule.name} is about numbers that do not wrap, and not about {dtype}")

        def add(operator: str, operands: Sequence[T], attributes: Mapping[str, Attribute]) -> T:
            frozen = attributes_of(attributes)
            types = [t for t in map(maker.type_of, operands) if isinstance(t, TensorType)]
            try:
                of: Hashable = result_type(operator, types, frozen)
            except GraphError as error:
                raise EGraphError(f"{self.rule.name}: {error}") from error
            return maker.add(Symbol(operator, frozen, of), operands)

        def constant(value: Fraction | float | int) -> T:
            return maker.add(self.constants.scalar(value, dtype), ())

        instance = Instance(whole, inputs)
        return build(self.left, instance, add, constant), build(self.right, instance, add, constant)


class Types:
    """A maker that builds nothing: what it makes of something is its type."""

    def add(self, symbol: Symbol, operands: Sequence[Hashable]) -> Hashable:
        """The symbol's type."""
        return symbol.type

    def type_of(self, number: Hashable) -> Hashable:
        """The type itself."""
        return number


@dataclass(frozen=True)
class Classes:
    """An e-graph as a place where instances are looked for."""

    egraph: EGraph
    constants: Constants

    def nodes(self, number: int) -> Iterator[Found]:
        """The e-nodes of a class."""
        for node in self.egraph.nodes(number):
            symbol = node.symbol
            if isinstance(symbol.type, TensorType):
                scalar = None
                if symbol.operator == "constant" and symbol.type.shape == ():
                    scalar = self.constants.data.get(str(dict(symbol.attributes)["digest"]))
                yield Found(symbol.operator, node.classes, symbol.attributes, symbol.type, scalar)  # type: ignore[arg-type]

    def same(self, one: int, other: int) -> bool:
        """Whether two numbers are in one class."""
        return self.egraph.find(one) == self.egraph.find(other)


def weakest_of(equalities: Iterable[Equality]) -> Equality:
    """The notion that a chain of rules keeps, each of which keeps one of these: each notion implies those after it."""
    strength = (Equality.BIT_EXACT, Equality.UP_TO_REDUCTION_ORDER, Equality.OVER_REALS)
    return max(equalities, key=strength.index, default=Equality.BIT_EXACT)


def claims_of(rule: TensorRule) -> tuple[str, ...]:
    """The names of the claims that a rule of an e-graph rests on: the rule, and its converse where that is needed."""
    return tuple(slug(r.name) for r in ((rule, rule.converse) if rule.needs_converse else (rule,)))


def unfit(rule: TensorRule, admitted: Mapping[str, Admission], constants: Constants) -> str:
    """Why an e-graph must not use a rule, which it reads in both directions; empty where it may."""
    if rule.equality is Equality.OVER_REALS and not constants.finite:
        return "the model has a constant that is not finite, and the rule is about real numbers"
    if rule.drops_input:
        return "only one of its sides reads all inputs, so that the other one can have a value where it has none"
    if rule.needs_converse and _converse(rule, admitted) is None:
        return (
            "its left side can have no value where its right side has one, so that it may hold in one direction only; "
            f"state {claims_of(rule)[1]} (TensorRule.converse) in its rule set, and prove it"
        )
    return ""


def _converse(rule: TensorRule, admitted: Mapping[str, Admission]) -> TensorRule | None:
    """The converse of a rule, where it is admitted, and is the converse of just this rule."""
    from rewrites.claims.subjects.tensor import TensorSubject  # loads solvers, which runs of compiled models do without

    admission = admitted.get(slug(rule.converse.name))
    if admission is None or not isinstance(admission.subject, TensorSubject):
        return None
    claim = admission.subject.rule
    statement = (claim.left, claim.right, claim.domain, claim.equality, claim.positive, claim.masks)
    same = (rule.right, rule.left, rule.domain, rule.equality, rule.positive, rule.masks)
    return claim if statement == same else None


def rewrites_of(admitted: Mapping[str, Admission], constants: Constants) -> dict[str, TensorRewrite]:
    """The admitted rules on tensors that have a pattern, by name.

    Those that are unfit are left out: that hold in one direction only, or not at the graph's constants.
    """
    from rewrites.claims.subjects.tensor import TensorSubject  # loads solvers, which runs of compiled models do without

    rewrites = {}
    for name, admission in admitted.items():
        subject = admission.subject
        if isinstance(subject, TensorSubject):
            rule = subject.rule
            if unfit(rule, admitted, constants):
                continue
            try:
                left, right = sides_of(rule)
            except NoPattern:
                continue
            converse = _converse(rule, admitted) if rule.needs_converse else None
            rewrites[name] = TensorRewrite(Rule(name, admission.digest), rule, left, right, constants, converse)
    return rewrites
