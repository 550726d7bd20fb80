"""Operators of accelerators: operators of the graph IR, of which it is known how an accelerator executes them.

Over the real numbers an accelerator operator *is* its graph of tensor IR operators, so that rules about it are
equalities like all others.  How such a node is executed is another matter: by programs of an accelerator whose proved
mapping says that they compute the quantised operator, and whose proved theorem says how far that is from the exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from chc.tensor_rules.rule import TensorRule
from ila_lang.text.portable import digest
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import OPERATORS, Assembly, Operator, register
from ir_semantics.graph.types import GraphError, TensorType
from ir_semantics.graph.words import transpose
from rewrites.bounds.derivations.calculus import Operator as Bounded
from rewrites.claims.joints.instruction import called
from rewrites.claims.names import bound_name, joint_name, slug
from rewrites.claims.theorems.operators import OPERATORS as THEOREMS
from rewrites.mappings.claim import MappingClaim

from .interface import RESULT, Implementation, Options

if TYPE_CHECKING:
    from rewrites.claims.gate import Gate
    from rewrites.claims.joints.joint import Joint
    from rewrites.claims.subjects.joint import JointSubject


def _type_of_first(types: Sequence[TensorType], attributes: Attributes) -> str:
    return types[0].dtype


@dataclass(frozen=True, eq=False, kw_only=True)
class AcceleratorOperator(Operator):
    """A composite operator that an accelerator executes; made once, which registers it.

    ``mappings`` are all that may execute it, and ``selected`` those of them for a node's attributes and options (all,
    where it is None); of these one must hold a certificate.  ``code`` generates calls of them; an operator without
    serves rules alone.  ``bounds`` are, by mapping, the operators whose bounds a call's bound is composed of.
    ``splits`` are rules by which it is computed in parts.  Operands and result of a ``resident`` operator stay in the
    accelerator's memory.

    ``joints`` are how mappings are called for the operator, so that it can be proved that they compute what it stands
    for; of other mappings that is *declared*, and ``unproved`` says why.
    """

    kinds: frozenset[str] = frozenset({"float"})
    dtype: Callable[[Sequence[TensorType], Attributes], str] = _type_of_first
    mappings: tuple[MappingClaim, ...]
    selected: Callable[[Mapping[str, object], Options], tuple[MappingClaim, ...]] | None = None
    code: type[Implementation] | None = None
    bounds: Mapping[MappingClaim, tuple[Bounded, ...]] = field(default_factory=dict)
    splits: tuple[TensorRule, ...] = ()
    resident: bool = False
    joints: tuple[Joint, ...] = ()
    unproved: str = "no joint is stated"

    def __post_init__(self) -> None:
        for joint in self.joints:
            if joint.bound is not None and self.bounds.get(joint.mapping) != (joint.bound,):
                raise ValueError(
                    f"{self.name} must have for {joint.mapping.name} the one bound that its joint is about, "
                    f"{joint.bound.name}"
                )
        register(self)

    def mappings_for(self, attributes: Mapping[str, object], options: Options) -> tuple[MappingClaim, ...]:
        """The mappings that may execute a node with these attributes."""
        return self.mappings if self.selected is None else self.selected(attributes, options)

    def stated(self, mapping: MappingClaim) -> Joint | None:
        """How a mapping is called for the operator; None where nothing can be proved of that."""
        return next((joint for joint in self.joints if joint.mapping is mapping), None)

    def joint(self, mapping: MappingClaim) -> JointSubject | None:
        """The claim that the operator is what a mapping computes; None where that is declared."""
        return _joint(self, mapping)

    def rests(self, mapping: MappingClaim) -> tuple[str, ...]:
        """The names of the claims without which a joint says nothing of the mapping: those of the bound it is about."""
        joint = self.stated(mapping)
        return () if joint is None or joint.bound is None else self.bound_claims(mapping)

    def bound_claims(self, mapping: MappingClaim) -> tuple[str, ...]:
        """The names of the bounds of a mapping's calls, and of the lemmas and laws that these are derived from."""
        names: list[str] = []
        for bounded in self.bounds.get(mapping, ()):
            names.append(bound_name(bounded.name))
            names += [f"lemma-{slug(lemma)}" for lemma in bounded.lemmas]
            names += [f"error-{slug(rule)}" for rule in bounded.rules]
        return tuple(dict.fromkeys(names))

    def theorems(self, mapping: MappingClaim) -> frozenset[str]:
        """The bounds of a mapping's calls that are claims, and about a kernel that its IR side runs.

        Of others nothing follows.
        """
        return _theorems(self, mapping)


@lru_cache(maxsize=1024)
def _theorems(operator: AcceleratorOperator, mapping: MappingClaim) -> frozenset[str]:
    kernels = {digest(run.kernel) for run in called(mapping.mapping.ir)}
    claimed = (bounded for bounded in operator.bounds.get(mapping, ()) if THEOREMS.get(bounded.name) is bounded)
    derived = ((bounded.name, bounded.written.kernel) for bounded in claimed)
    return frozenset(name for name, kernel in derived if kernel is not None and digest(kernel) in kernels)


@lru_cache(maxsize=1024)
def _joint(operator: AcceleratorOperator, mapping: MappingClaim) -> JointSubject | None:
    from rewrites.claims.subjects.joint import JointSubject  # provers: what runs a compiled model needs none

    joint = operator.stated(mapping)
    return None if joint is None else JointSubject(joint_name(operator.name, mapping.name), joint, operator)


def accelerator_operator(name: str) -> AcceleratorOperator | None:
    """The accelerator operator of that name; None for other operators."""
    operator = OPERATORS.get(name)
    return operator if isinstance(operator, AcceleratorOperator) else None


def operator_of(implementation: Implementation) -> AcceleratorOperator:
    """The operator that is implemented."""
    operator = accelerator_operator(implementation.node.operator)
    assert operator is not None, "implementations are of accelerator operators"
    return operator


def joint_problem(operator: AcceleratorOperator, mapping: MappingClaim, gate: Gate) -> tuple[str, str] | None:
    """The claim without which a mapping must not execute an operator, and why it is not there; None where it may."""
    joint = operator.joint(mapping)
    if joint is None:
        return None
    from rewrites.claims.subjects.joint import JointSubject

    for name in (joint.name, *operator.rests(mapping)):
        if name not in gate.admitted:
            return name, gate.left_out.get(name, "the gate was not asked for it")
    subject, bound = gate.admitted[joint.name].subject, joint.joint.bound
    if not isinstance(subject, JointSubject) or subject.joint is not joint.joint or subject.operator is not operator:
        return joint.name, "the certificate of this name is of another joint"
    if bound is not None and getattr(gate.admitted[joint.rests].subject, "operator", None) is not bound:
        return joint.rests, "the certificate of this name is of another bound"
    return None


def without_lemma(implementation: Implementation) -> list[str]:
    """The operands, and the result, of whose conversion no lemma is stated."""
    return [name for name in (*implementation.operands, RESULT) if not implementation.lemmas.get(name)]


def declared(implementations: Iterable[Implementation]) -> dict[str, str]:
    """What is not proved of operators and the programs that execute them, though results rest on it, and why."""
    found: dict[str, str] = {}
    for implementation in implementations:
        operator, scaling = operator_of(implementation), implementation.scaling
        for mapping in implementation.mappings:
            if operator.stated(mapping) is None:
                found[f"that {operator.name} is what {mapping.name} computes"] = operator.unproved
        if scaling is not None and scaling.rule is None:
            found[f"that scales of {operator.name} cancel out"] = "no rule of scales is stated"
        if implementation.conversions and (names := without_lemma(implementation)):
            found[f"which numbers the host makes codes of, and reads, around programs of {operator.name}"] = (
                f"no lemma is stated on conversions of {', '.join(names)}"
            )
        if any(implementation.held_by(number) is None for number in range(len(implementation.calls))):
            found[f"what the host does around programs of {operator.name}"] = "it is no sequence of proved programs"
    return found


def shapes_of(b: Assembly, name: str, of: Sequence[int], *ranks: int) -> list[tuple[int, ...]]:
    """The shapes of operands; raises GraphError unless they are float32 and have these ranks."""
    types = [b.type(x) for x in of]
    if any(t.dtype != "float32" or t.rank != rank for t, rank in zip(types, ranks, strict=True)):
        axes = ", ".join(map(str, ranks))
        raise GraphError(f"{name} must be given float32 tensors with {axes} axes, not {', '.join(map(str, types))}")
    return [t.shape for t in types]


def require_fit(b: Assembly, name: str, of: Sequence[int], fits: bool, required: str) -> None:
    """Raises GraphError where operands do not fit each other."""
    if not fits:
        shown = ", ".join(str(b.type(x)) for x in of)
        raise GraphError(f"{name} must be given {required}, not {shown}")


def dense_layer(
    name: str, activations: Sequence[str], axes: tuple[str, str, str]
) -> Callable[[Assembly, Sequence[int], Attributes], int]:
    """What a dense layer of that name stands for: ``activation`` of x w^T + b, for errors with these names of axes.

    These are of rows, inputs and outputs.  "none" is no activation.
    """
    rows, inputs, outputs = axes

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        x, w, bias = shapes_of(b, name, of, 2, 2, 1)
        fits = x[1] == w[1] and bias == w[:1]
        require_fit(b, name, of, fits, f"x [{rows}, {inputs}], w [{outputs}, {inputs}] and b [{outputs}]")
        activation = a.get("activation")
        if activation not in activations:
            raise GraphError(f"the activation of {name} must be one of {', '.join(activations)}, not {activation!r}")
        product = b.add("matmul", of[0], transpose(b, of[1], [1, 0]))
        total = b.add("add", product, b.add("broadcast", of[2], axes=(1,), shape=(x[0], w[0])))
        return total if activation == "none" else b.add(str(activation), total)

    return build


def by_activation(
    mappings: Mapping[str, MappingClaim],
) -> Callable[[Mapping[str, object], Options], tuple[MappingClaim, ...]]:
    """The mapping of an operator's ``activation``, as :attr:`AcceleratorOperator.selected`."""
    return lambda attributes, options: (mappings[str(attributes["activation"])],)
