"""How large an error gets that may choose: of roundings and slopes of relu nothing is known but their limits.

The adversary chooses every rounding of an operand and every error of an operator within what an accelerator states at
the ranges, and by which slope within 0 .. 1 each relu multiplies each element.  Operands that are copies of one element
are rounded alike.  What rounding weights changes is left out, which only makes the error smaller.

The error of an output is linear in each layer's slopes, all else being given, and so are the best roundings known: in
turns both are chosen.  It ends where nothing gets larger, which need not be the largest of all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ir_semantics.graph import Graph, Node
from ir_semantics.graph.build import expansion, run_node
from ir_semantics.graph.operator import lookup
from ir_semantics.graph.types import Array
from rewrites.compiler.artefact.model import Compiled
from rewrites.compiler.composition.of_ranges import ranges_of

Reals = NDArray[np.float64]
Form = Mapping[int, Reals]
"""A sum of matrices times sources, by number of the source."""
_MOVES = frozenset({"broadcast", "reshape", "transpose", "slice", "pad", "patches"})
_MOST_ELEMENTS = 1024
"""Elements of a source."""
_TURNS = 40


@dataclass(frozen=True, eq=False)
class _Value:
    """An error by the sources; of a constant its number.  ``copies`` makes it of what was moved to it."""

    form: Form
    constant: Array | None = None
    copies: Reals | None = None


@dataclass(eq=False)
class Errors:
    """The error of a network's output as a form: sources are errors within ``limits``, or outputs of relu."""

    limits: dict[int, float] = field(default_factory=dict)
    before: dict[int, Form] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def free(self, size: int, limit: float) -> int:
        """A source whose elements are at most ``limit``."""
        self.limits[len(self.sizes)] = limit
        self.sizes.append(size)
        return len(self.sizes) - 1

    def relu(self, of: Form, size: int) -> int:
        """The source of what relu makes of a vector."""
        self.before[len(self.sizes)] = of
        self.sizes.append(size)
        return len(self.sizes) - 1

    def passed(self, node: Node, graph: Graph, operands: Sequence[_Value]) -> _Value:
        """What a node that the host executes, or that is exact, makes of errors."""
        types = [graph.nodes[i].type for i in node.operands]
        if lookup(node.operator).expand is not None:
            inner = expansion(node.operator, tuple(types), node.attributes)
            known = {inner.inputs[f"x{k}"]: value for k, value in enumerate(operands)}
            for i, each in enumerate(inner.nodes):
                if each.operator == "constant":
                    known[i] = _constant(inner.constant(i))
                elif each.operator != "input":
                    known[i] = self.passed(each, inner, [known[j] for j in each.operands])
            return known[inner.outputs["y"]]
        constants = [value.constant for value in operands if value.constant is not None]
        if len(constants) == len(operands):
            return _Value({}, run_node(_wide(node), constants))
        if node.operator == "relu":
            elements = node.type.elements
            return _Value({self.relu(operands[0].form, elements): np.eye(elements)})
        if not constants and len(operands) > 1:
            if node.operator != "add":
                raise ValueError(f"{node.operator} of two values has no rule here")
            return _Value(_added(*(value.form for value in operands)))
        place = next(k for k, value in enumerate(operands) if value.constant is None)
        matrix = _matrix(node, [value.constant for value in operands], types[place].shape)
        copies = None
        if node.operator in _MOVES:
            copied = operands[place].copies
            copies = matrix if copied is None else matrix @ copied
        return _Value({source: matrix @ m for source, m in operands[place].form.items()}, copies=copies)

    def largest(self, output: Form) -> float:
        """The largest error that the search finds, of any element of the output."""
        elements = len(next(iter(output.values())))
        return max(self._of_element({i: m[k] for i, m in output.items()}) for k in range(elements))

    def _of_element(self, weights: Form) -> float:
        slopes, most = {i: np.full(self.sizes[i], 0.5) for i in self.before}, 0.0
        for _ in range(_TURNS):
            of = {i: weights.get(i, np.zeros(size)) for i, size in enumerate(self.sizes)}
            for i in sorted(self.before, reverse=True):
                for j, m in self.before[i].items():
                    of[j] = of[j] + (slopes[i] * of[i]) @ m
            found = sum(limit * float(np.abs(of[i]).sum()) for i, limit in self.limits.items())
            if found <= most * (1 + 2.0**-20):
                break
            most, errors = found, {i: np.sign(of[i]) * limit for i, limit in self.limits.items()}
            for i in sorted(self.before):
                reached = sum((m @ errors[j] for j, m in self.before[i].items()), np.zeros(self.sizes[i]))
                slopes[i] = np.where(of[i] * reached > 0, 1.0, 0.0)
                errors[i] = slopes[i] * reached
        return most


def largest_error(compiled: Compiled) -> float | None:
    """The largest error that the adversary finds; None where a layer has too many elements for matrices."""
    graph, errors, known = compiled.graph, Errors(), dict[int, _Value]()
    if max(graph.nodes[i].type.elements for i in compiled.implementations) > _MOST_ELEMENTS:
        return None
    for number, node in enumerate(graph.nodes):
        if node.operator == "constant":
            known[number] = _constant(graph.constant(number))
        elif node.operator == "input":
            known[number] = _Value({errors.free(node.type.elements, 0.0): np.eye(node.type.elements)})
        elif number not in compiled.implementations:
            known[number] = errors.passed(node, graph, [known[i] for i in node.operands])
        else:
            of = compiled.implementations[number]
            ranges, got = ranges_of(compiled.calibrated[number], of), list[_Value]()
            for name, i in zip(of.operands, node.operands, strict=True):
                value = known[i]
                if value.constant is None:
                    copies = np.eye(graph.nodes[i].type.elements) if value.copies is None else value.copies
                    rounded = errors.free(copies.shape[1], of.rounding(name, ranges[name]))
                    value = replace(value, form={**value.form, rounded: copies})
                got.append(value)
            result, own = errors.passed(node, graph, got), of.bounds_in(ranges).on_quantised
            if own is None:
                return None
            added = {errors.free(node.type.elements, own): np.eye(node.type.elements)}
            known[number] = _Value({**result.form, **added})
    return errors.largest(known[next(iter(graph.outputs.values()))].form)


def _constant(value: Array) -> _Value:
    return _Value({}, value.astype(np.float64) if value.dtype.kind == "f" else value)


def _wide(node: Node) -> Node:
    """In float64."""
    return replace(node, type=node.type.with_dtype("float64")) if node.type.kind == "float" else node


def _added(first: Form, second: Form) -> Form:
    return {i: sum(f[i] for f in (first, second) if i in f) for i in {**first, **second}}  # type: ignore[misc]


def _matrix(node: Node, operands: Sequence[Array | None], shape: tuple[int, ...]) -> Reals:
    """The linear part of an operator of the operand that is None: its results on unit vectors."""

    def run(vector: Reals) -> Reals:
        return run_node(_wide(node), [vector.reshape(shape) if a is None else a for a in operands]).reshape(-1)

    units = np.eye(math.prod(shape))
    return np.stack([run(unit) for unit in units], axis=1) - run(np.zeros(len(units)))[:, None]
