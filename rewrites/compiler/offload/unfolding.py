"""Operators and constants by what they are: composites unfolded, and constants of one number as broadcasts.

These rules need no proof: an operator *is* the graph that it stands for, and that all elements of a constant are one
number is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard, TypeVar

import numpy as np

from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Named, digest_of
from ir_semantics.graph.types import GraphError, TensorType
from rewrites.claims.sources import meaning_digest
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.egraph import EGraph, EGraphError, ENode, Rule, Substitution, Symbol
from rewrites.egraph.graphs import typing
from rewrites.egraph.pattern import Bound, Lookup, Maker, matches, operator

T = TypeVar("T")


def _pairs(value: object) -> TypeGuard[Named]:
    """Whether a value is a list of attributes by name."""
    return isinstance(value, tuple) and all(
        isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in value
    )


def meant(
    name: str,
    attributes: tuple[tuple[str, Hashable], ...],
    maker: Maker[T],
    operands: Sequence[T],
    constants: Constants,
) -> T:
    """What a composite operator stands for, on operands; raises EGraphError where they do not fit."""
    types = [maker.type_of(o) for o in operands]
    tensors = tuple(t for t in types if isinstance(t, TensorType))
    if len(tensors) != len(types):
        raise EGraphError(f"the operands of {name} must be tensors, not {types}")
    try:
        graph = expansion(name, tensors, attributes)
    except GraphError as error:
        raise EGraphError(f"{name} must be well-typed; {error}") from error
    for digest, data in graph.constants.items():
        constants.data.setdefault(digest, data)
    done: dict[int, T] = {graph.inputs[f"x{i}"]: o for i, o in enumerate(operands)}
    for number, node in enumerate(graph.nodes):
        if number not in done:
            symbol = Symbol(node.operator, node.attributes, node.type)
            done[number] = maker.add(symbol, [done[o] for o in node.operands])
    return done[graph.outputs["y"]]


@dataclass(frozen=True)
class Unfolding:
    """A composite operator replaced by what it stands for, where ``where`` says so.

    The rule's digest is that of the texts that say what operators mean; there is nothing to prove.
    """

    rule: Rule
    name: str
    where: Callable[[EGraph, ENode], bool]
    constants: Constants = field(repr=False)

    @classmethod
    def of(cls, name: str, where: Callable[[EGraph, ENode], bool], constants: Constants, form: str = "") -> Unfolding:
        """The unfolding of the operator of that name, or of a form of it."""
        rule = Rule(f"definition of {name}{form}, unfolded", meaning_digest([expansion], "ir_semantics"))
        return cls(rule, name, where, constants)

    @property
    def operator(self) -> str:
        """The operator at the top of the left side."""
        return self.name

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The operands and attributes of the operator in the class of an e-node."""
        for node in egraph.nodes(number):
            if node.symbol.operator == self.name and self.where(egraph, node):
                operands = {f"x{i}": o for i, o in enumerate(node.operands)}
                yield Substitution.of(operands, {"attributes": node.symbol.attributes})

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """The operator, and the graph that it stands for."""
        operands, values = dict(substitution.operands), dict(substitution.values)
        names = [f"x{i}" for i in range(len(operands))]
        attributes = values.get("attributes")
        if set(operands) != set(names) or set(values) != {"attributes"} or not _pairs(attributes):
            raise EGraphError(f"{self.rule.name} must be given the operands x0, x1, ... and the attributes")
        inputs = [operands[name] for name in names]
        of = typing(self.name, [maker.type_of(o) for o in inputs], attributes)
        left = maker.add(Symbol(self.name, attributes, of), inputs)
        return left, meant(self.name, attributes, maker, inputs, self.constants)


_NORMALISED: Final = operator(
    "add",
    operator(
        "mul",
        operator(
            "div",
            operator("sub", "x0", "mean"),
            operator(
                "broadcast",
                operator(
                    "reshape",
                    operator(
                        "sqrt",
                        operator(
                            "add",
                            "variance",
                            operator(
                                "broadcast",
                                operator("constant", attributes=Bound("epsilon"), type=Bound("scalar")),
                                attributes=Bound("to rows"),
                            ),
                        ),
                    ),
                    attributes=Bound("rows"),
                ),
                attributes=Bound("along rows"),
            ),
        ),
        operator("broadcast", "x1", attributes=Bound("along columns")),
    ),
    operator("broadcast", "x2", attributes=Bound("along columns")),
)
"""The outline of what layer normalisation of the rows of a matrix, with factors and offsets, stands for."""


@dataclass(frozen=True)
class Normalisation(Unfolding):
    """Layer normalisation of the rows of a matrix for what it stands for, where a graph has that written out.

    Its outline is looked for; that the operator stands for what was found is checked.
    """

    @classmethod
    def folded(cls, constants: Constants) -> Normalisation:
        """The rule for graphs with these constants."""
        rule = Rule("definition of layer_norm of rows, folded", meaning_digest([expansion], "ir_semantics"))
        return cls(rule, "layer_norm", lambda egraph, node: False, constants)

    @property
    def operator(self) -> str:
        """The operator at the top of the outline."""
        return _NORMALISED.operator

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The operands and attributes of the operator that the class of an e-node is."""
        for found in matches(_NORMALISED, egraph, number):
            operands = {name: o for name, o in found.operands if name in ("x0", "x1", "x2")}
            digest = dict(dict(found.values)["epsilon"])["digest"]  # type: ignore[call-overload]
            epsilon = self.constants.data.get(digest)
            if epsilon is None or epsilon.shape:
                continue
            attributes = (("axes", (1,)), ("epsilon", float(epsilon)))
            try:
                meant(self.name, attributes, Lookup(egraph), list(operands.values()), self.constants)
            except EGraphError:
                continue  # something else of that outline
            yield Substitution.of(operands, {"attributes": attributes})


@dataclass(frozen=True)
class Uniform:
    """A constant whose elements are one number, as that number broadcast: the states that recurrent layers begin with.

    The data must have the constant's digest, and all elements the same bits.
    """

    rule: Rule
    constants: Constants = field(repr=False)

    @classmethod
    def of(cls, constants: Constants) -> Uniform:
        """The rule for these constants."""
        return cls(Rule("a constant of one number, broadcast", meaning_digest([expansion], "ir_semantics")), constants)

    @property
    def operator(self) -> str | None:
        """None: it is looked for at recurrent layers of every kind."""
        return None

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The constants among the states of a recurrent layer in the class of an e-node."""
        for layer in egraph.nodes(number):
            for operand in layer.classes[4:7] if layer.symbol.operator in ("lstm", "gru", "rnn") else ():
                for node in egraph.nodes(operand):
                    if node.symbol.operator == "constant" and self._scalar(node.symbol) is not None:
                        yield Substitution.of({}, {"attributes": node.symbol.attributes, "type": node.symbol.type})

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """The constant, and its number broadcast."""
        values = dict(substitution.values)
        attributes, of = values.get("attributes"), values.get("type")
        if substitution.operands or not _pairs(attributes) or not isinstance(of, TensorType):
            raise EGraphError(f"{self.rule.name} must be given the attributes and the type of a constant")
        symbol = Symbol("constant", attributes, of)
        scalar = self._scalar(symbol)
        if scalar is None:
            raise EGraphError("a constant must have elements, all with the same bits, and its own digest")
        shaped = (("axes", ()), ("shape", of.shape))
        broadcast = Symbol("broadcast", shaped, typing("broadcast", [scalar.type], shaped))
        return maker.add(symbol, ()), maker.add(broadcast, [maker.add(scalar, ())])

    def _scalar(self, symbol: Symbol) -> Symbol | None:
        """The symbol of the one number, if there is one."""
        digest = str(dict(symbol.attributes).get("digest"))
        data = self.constants.data.get(digest)
        if data is None or not data.shape or data.size == 0 or digest_of(data) != digest:
            return None
        if symbol.type != TensorType(data.dtype.name, data.shape):
            return None
        flat = np.ascontiguousarray(data).reshape(-1)
        if flat[:1].tobytes() * len(flat) != flat.tobytes():
            return None
        scalar = flat[:1].reshape(())
        scalar_digest = digest_of(scalar)
        self.constants.data.setdefault(scalar_digest, scalar)
        return Symbol("constant", (("digest", scalar_digest),), TensorType(data.dtype.name, ()))


MOST_STEPS: Final = 512
"""Timesteps of recurrent layers that are written out, some thirty nodes each; a bound of this code."""


def steps(
    constants: Constants, where: Callable[[EGraph, ENode], bool] = lambda egraph, node: True, form: str = ""
) -> Iterator[Unfolding]:
    """Recurrent layers of few timesteps by their steps, for accelerators that have none of them, or none of a form."""

    def few(egraph: EGraph, node: ENode) -> bool:
        of = egraph.type_of(node.operands[0])
        return isinstance(of, TensorType) and of.shape[0] <= MOST_STEPS and where(egraph, node)

    yield from (Unfolding.of(name, few, constants, form) for name in ("lstm", "gru", "rnn"))


def of_plain_layer(attributes: Mapping[str, T]) -> Mapping[str, T | bool | int]:
    """The attributes of the layer that :func:`plain_layers` make of one with these."""
    if attributes["lengths"] is not False:
        return attributes
    return {**attributes, "reverse": False, "output": 0 if attributes["output"] == 1 else attributes["output"]}


def plain_layers(constants: Constants) -> Iterator[Unfolding]:
    """Recurrent layers from the last timestep, or of the last state alone, by those that are neither."""

    def other(egraph: EGraph, node: ENode) -> bool:
        attributes = {str(name): value for name, value in node.symbol.attributes}
        return of_plain_layer(attributes) != attributes

    form = " from its end, or of its last state"
    yield from (Unfolding.of(name, other, constants, form) for name in ("lstm", "gru", "rnn"))
