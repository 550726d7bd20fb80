"""Which instances of claims a node's calls are: of the joint of each one's mapping, and of the rule of its boxes.

A program at sizes is its operator on operands of the shapes that the joint says.  These are the node's own, or a rule
says so of boxes of them: at sizes that follow from the node, from the part of the result that is kept, and from the
program.  All that the rule says of extents, and all its hypotheses, are looked at there, in numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from chc.tensor_rules.rule import TensorRule
from ila_lang import Function
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Attributes, attributes_of
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.conditions import All, both, holds, variables_of
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.terms import form_of, well_formed
from rewrites.claims.joints.expansion import FAULTS, Expanded, expanded, same, structure_of
from rewrites.claims.joints.instruction import Unread
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.layers import LayerRule
from rewrites.claims.joints.scaled import SCALED, not_scaled
from rewrites.mappings.conversions import EXPONENT
from rewrites.rules.tensor.boxes import BoxRule
from rewrites.rules.tensor.scales import ScaleRule, Scaling

from .interface import RESULT, Call, Implementation, Part
from .operators import AcceleratorOperator, operator_of

_FLOAT = 32


class NoInstance(ValueError):
    """A call that is no instance of a rule; the message says why."""


def joints_of(implementation: Implementation) -> dict[str, str]:
    """The joints that calls rest on, and their bounds, each with why a call is none of it; empty where it is one.

    Where a rule says that a call may have boxes, it must be one of these.
    """
    operator, problems = operator_of(implementation), dict[str, str]()
    attributes, of_node = dict(implementation.node.attributes), _without_scales(implementation)
    of_node = of_node or _not_whole(implementation)
    for number, call in enumerate(implementation.calls):
        joint = operator.joint(call.mapping)
        if joint is None:
            continue
        problem, types = "", implementation.types
        held = implementation.held_by(number)
        try:
            boxes = boxes_of(implementation, call)
            if any(isinstance(rule, BoxRule) for rule in call.rules):
                types = joint.joint.types(call.sizes)
            if held is None and not any(isinstance(rule, LayerRule) for rule in call.rules):
                _require_parts(implementation, call, boxes)  # there are no steps to compare
        except FAULTS as error:
            problem = _told(error)
        problem = problem or joint.covers(types, attributes, call.sizes)
        laid, by = implementation.laid_out(number), implementation.conversions_of(number)
        problem = problem or joint.joint.misplaced(call.sizes, laid, by)
        problem = problem or _of_no_lemma(implementation, number)
        problem = problem or _unscaled(implementation, number, joint.joint) or of_node
        if held is not None:
            index = implementation.operands.index
            places = {own: None if name is None else index(name) for own, name in held.items()}
            problem = problem or joint.joint.exchanged(places)
        problems[joint.name] = problems.get(joint.name, "") or problem
        problems |= dict.fromkeys(operator.rests(call.mapping), "")
    return problems


def _of_no_lemma(implementation: Implementation, number: int) -> str:
    """Why a conversion around a call is by a function that its lemma is not about; empty where none is.

    That a conversion has no lemma is declared.
    """
    from rewrites.bounds.lemmas.host import LEMMAS  # needs solvers, which whoever runs a compiled model does not

    output, held = implementation.calls[number].mapping.mapping.output[0], implementation.held_by(number) or {}
    for own, claim in implementation.conversions_of(number).items():
        name = RESULT if own == output else str(held.get(own))
        lemmas, function = implementation.lemmas.get(name, ()), claim.function
        if not lemmas:
            continue
        of_lemmas = [lemma.function for lemma in LEMMAS if lemma.name in lemmas]
        # codes have fewer bits than the float32 that is read of them
        if not any(same_function(function, f) for f in of_lemmas if (f.params[0].width < _FLOAT) == (name == RESULT)):
            by = None if function is None else function.name
            return f"{name} must be converted by the function of the lemma {' or '.join(lemmas)}, not by {by}"
        if others := {*claim.formats} - {EXPONENT}:
            return f"{name} must be converted in a format that is called {EXPONENT}, not {', '.join(sorted(others))}"
    return ""


def same_function(function: Function | None, other: Function) -> bool:
    """Whether functions are one, or of one text."""
    if function is None or function.body is None or other.body is None:
        return function is other
    sorts = [[p.sort for p in f.params] for f in (function, other)]
    return sorts[0] == sorts[1] and function.unfold(other.params) is other.body


def _unscaled(implementation: Implementation, number: int, joint: Joint) -> str:
    """Why scales of a call's operands and result do not cancel out; empty where they do.

    They are those with which the host's programs convert numbers to what the joint says that words stand for.
    """
    node, call = implementation.node, implementation.calls[number]
    held, output = implementation.held_by(number) or {}, call.mapping.mapping.output[0]
    try:
        scales = joint.scales(call.sizes, implementation.exponents_of(number))
        of = {RESULT if own == output else str(held[own]): scale for own, scale in scales.items()}
        scaling = implementation.scaling
        if scaling is None:
            return "" if not any(of.values()) else f"nothing of {node.operator} must be scaled, not {_powers(of)}"
        exponents = scaling.exponents
        if unknown := [name for name in of if name not in exponents]:
            return f"it must be said of {node.operator} how {', '.join(unknown)} is scaled"
        free = dict.fromkeys((n for exponent in exponents.values() for n in exponent.variables), 0)
        at = free | _solved((exponent, of[name]) for name, exponent in exponents.items() if name in of)
        if any(exponents[name].value(at) != scale for name, scale in of.items()):
            return f"{node.operator} must be scaled so: {_powers(exponents)}; not so: {_powers(of)}"
    except FAULTS as error:
        return _told(error)
    return ""


def _without_scales(implementation: Implementation) -> str:
    """Why the rule of a node's scaling is not about the node; empty where it is, or where there is no rule."""
    scaling = implementation.scaling
    try:
        if scaling is None or scaling.rule is None:
            return ""
        kind = next((kind for kind, each in SCALED.items() if each is scaling), None)
        if kind is None:
            _require_scales(scaling, scaling.rule, implementation)
        else:
            node = implementation.node
            graph = expansion(node.operator, tuple(implementation.types), node.attributes)
            exponents = [scaling.exponents[name] for name in implementation.operands]
            if why := not_scaled(kind, graph, exponents):
                return f"{scaling.rule.name} is no rule of {node.operator}: {why}"
    except FAULTS as error:
        return _told(error)
    return ""


def _require_scales(scaling: Scaling, rule: TensorRule, implementation: Implementation) -> None:
    """Raises NoInstance unless the rule of a scaling is about the node and its exponents."""
    operator, types = operator_of(implementation), implementation.types
    names = [*implementation.operands, RESULT]
    if not isinstance(rule, ScaleRule) or rule.exponents != scaling.exponents or [*rule.exponents] != names:
        raise NoInstance(f"{rule.name} must be a rule of scales of {', '.join(names)}, by {_powers(scaling.exponents)}")
    own, graph = dict(implementation.node.attributes), _meant(operator, rule)
    extents = [d for operand in rule.operands for d in operand.shape]
    equations = [*zip(extents, (d for of in types for d in of.shape), strict=True)]
    for name, value in rule.attributes.items():
        if isinstance(value, Index) and isinstance(number := own.get(name), int):
            equations.append((value, number))
    sizes = _solved(equations)
    what = f"{operator.name} is none of {rule.name}"
    for value, number in equations:
        if (expected := value.value(sizes)) != number:
            raise NoInstance(f"{what}: {value} must be {expected}, not {number}")
    if not holds(both(rule.premise, graph.premise), sizes):
        raise NoInstance(f"{what}: {rule.premise} must hold")
    _require_graph(operator, graph, types, own, sizes)


def _powers(exponents: Mapping[str, Index | int]) -> str:
    return ", ".join(f"{name} by 2^({exponent})" for name, exponent in exponents.items())


def boxes_of(implementation: Implementation, call: Call) -> dict[str, Part]:
    """The boxes of operands of which a call computes its own of the result, which is among them.

    Empty for a mapping of tensors as the graph has them.  Raises NoInstance where a call is none of its rule.
    """
    node, operator = implementation.node, operator_of(implementation)
    if not call.parts:
        if call.rules:
            raise NoInstance(f"a call of {node.operator} that takes whole tensors must name no rule")
        return {}
    joint, whole = operator.stated(call.mapping), [t.shape for t in implementation.types]
    if joint is not None:
        given = [t.shape for t in joint.types(call.sizes)]
    else:  # what its operands are is declared
        given = [_extents(call.parts[name]) for name in implementation.operands]
    if [*map(len, given)] != [*map(len, whole)]:
        raise NoInstance(f"a call of {node.operator} must be given operands of the ranks of {whole}, not {given}")
    if len(call.rules) > 1 or not {*call.rules} <= {*operator.splits}:
        known = ", ".join(rule.name for rule in operator.splits)
        wrong = _names([rule for rule in call.rules if rule not in operator.splits] or call.rules)
        raise NoInstance(f"a call of {operator.name} must rest on one of its rules ({known}), not {wrong}")
    if not call.rules and given != whole:
        raise NoInstance(f"a call of {node.operator} without a rule must be given its operands {whole}, not {given}")
    (rule,) = call.rules or (None,)
    if isinstance(rule, BoxRule):
        boxes = _Instance(rule, implementation, call, given).boxes()
        return dict(zip((*implementation.operands, RESULT), boxes, strict=True))
    if rule is not None and not isinstance(rule, LayerRule):
        raise NoInstance(f"{rule.name}, on which a call of {node.operator} rests, must be a rule of boxes or of layers")
    if any(extent < own for a, b in zip(given, whole, strict=True) for extent, own in zip(a, b, strict=True)):
        raise NoInstance(f"a call of {node.operator} must be given all of its operands {whole}, not {given}")
    boxes = [*(tuple((0, extent) for extent in shape) for shape in whole)]
    result = tuple((0, end) for _, end in call.parts[RESULT])
    return dict(zip((*implementation.operands, RESULT), (*boxes, result), strict=True))


def _require_parts(implementation: Implementation, call: Call, boxes: Mapping[str, Part]) -> None:
    """Raises NoInstance unless the parts of a call are the boxes."""
    if boxes and not call.rules:  # of whole tensors nothing may be cut
        boxes = {**boxes, RESULT: tuple((0, extent) for extent in implementation.node.type.shape)}
    for name, box in boxes.items():
        if (part := call.parts[name]) != box:
            raise NoInstance(f"a call of {implementation.node.operator} must have the box {box} of {name}, not {part}")


def _not_whole(implementation: Implementation) -> str:
    """Why calls do not compute every element of the result once; empty where they do.

    That is asked where there are no steps to compare; a part may end beyond the result.
    """
    shape, calls = implementation.node.type.shape, implementation.calls
    if all(implementation.held_by(number) is not None for number in range(len(calls))):
        return ""
    times = np.zeros(shape, np.int32)
    for call in calls:
        part = call.parts.get(RESULT, tuple((0, extent) for extent in shape))
        if len(part) != len(shape) or not all(0 <= first <= end for first, end in part):
            return f"a call of {implementation.node.operator} must compute a part of {RESULT} {shape}, not {part}"
        times[tuple(slice(*axis) for axis in part)] += 1
    if (times != 1).any():
        at = tuple(map(int, np.argwhere(times != 1)[0]))
        return (
            f"calls of {implementation.node.operator} must compute every element of {RESULT} once, not {at} "
            f"{times[at]} times"
        )
    return ""


class _Instance:
    """A rule at the sizes of a call, whose program is given operands of these shapes."""

    def __init__(
        self, rule: BoxRule, implementation: Implementation, call: Call, given: Sequence[tuple[int, ...]]
    ) -> None:
        self.rule, self.operator, self.given = rule, operator_of(implementation), given
        self.types, self.attributes = implementation.types, dict(implementation.node.attributes)
        self.what = f"a call of {implementation.node.operator}"
        self.kept = [
            (first, min(end, extent))
            for (first, end), extent in zip(call.parts[RESULT], implementation.node.type.shape, strict=True)
        ]
        graph = _meant(self.operator, rule)
        try:
            self.sizes = _solved(equation for _, *equation in self._equations())
            self._require(graph)
        except FAULTS as error:
            if isinstance(error, NoInstance):
                raise
            raise NoInstance(f"{self.what} cannot be compared with {rule.name}: {error}") from error

    def boxes(self) -> list[Part]:
        """Of operands, and what is computed of the result."""
        *given, kept = ([(a.value(self.sizes), b.value(self.sizes)) for a, b in box] for box in self.rule.boxes)
        extents = shape_at(self.rule.computed, self.sizes)
        computed = [(first, first + extent) for (first, _), extent in zip(kept, extents, strict=True)]
        return [*map(tuple, given), tuple(computed)]

    def _equations(self) -> Iterator[tuple[str, Index, int]]:
        rule = self.rule
        for operand, of in zip(rule.operands, self.types, strict=True):
            for axis, each in enumerate(zip(operand.shape, of.shape, strict=True)):
                yield f"{operand} along axis {axis}", *each
        for name, value in rule.attributes.items():
            if isinstance(value, Index) and isinstance(number := self.attributes.get(name), int):
                yield name, value, number
        for axis, (span, numbers) in enumerate(zip(rule.boxes[-1], self.kept, strict=True)):
            for each in zip(span, numbers, strict=True):
                yield f"the part of the result along axis {axis}", *each
        for operand, box, given in zip(rule.operands, rule.boxes, self.given, strict=False):
            for axis, ((first, end), extent) in enumerate(zip(box, given, strict=True)):
                yield f"what the program takes of {operand} along axis {axis}", end - first, extent

    def _require(self, graph: Expanded) -> None:
        """That the rule holds of the node, and of what the program is given."""
        rule, sizes = self.rule, self.sizes
        if missing := {*rule.sizes} - {*sizes}:
            raise NoInstance(f"{self.what} must say {', '.join(sorted(missing))} of {rule.name}")
        for what, value, number in self._equations():
            if (expected := value.value(sizes)) != number:
                raise NoInstance(f"{self.what} is none of {rule.name}: {what} must be {expected}, not {number}")
        values = {n: v.value(sizes) if isinstance(v, Index) else v for n, v in rule.attributes.items()}
        if values != self.attributes:
            raise NoInstance(f"{self.what} is none of {rule.name}: attributes must be {values}, not {self.attributes}")
        premise = both(rule.premise, graph.premise, well_formed(rule.right))
        for condition in premise.parts if isinstance(premise, All) else (premise,):
            if not holds(condition, sizes):
                shown = ", ".join(f"{name} = {sizes[name]}" for name in sorted(variables_of(condition)))
                raise NoInstance(f"{self.what} is none of {rule.name}: {condition} must hold of {shown}")
        extents = [d for operand in rule.operands for d in operand.shape]
        given = _solved(zip(extents, (d for shape in self.given for d in shape), strict=True))
        for types, at in ((self.types, sizes), (self._types_given(), {**sizes, **given})):
            _require_graph(self.operator, graph, types, self.attributes, at)

    def _types_given(self) -> list[TensorType]:
        return [t.with_shape(shape) for t, shape in zip(self.types, self.given, strict=True)]


def _require_graph(
    operator: AcceleratorOperator,
    graph: Expanded,
    types: Sequence[TensorType],
    attributes: Attributes,
    sizes: Mapping[str, int],
) -> None:
    """That what an operator stands for at these types is the graph that was read for all sizes."""
    own = structure_of(expansion(operator.name, tuple(types), attributes_of(attributes)))
    if not same(graph.structure, own, sizes):
        shown = ", ".join(map(str, types))
        raise NoInstance(f"what {operator.name} stands for at {shown} is not what was read for all sizes")


def _solved(equations: Any) -> dict[str, int]:
    """The sizes that equations say one after the other, each as a multiple of one that is not yet known."""
    left, values = [*equations], dict[str, int]()
    while True:
        for value, number in left:
            unknown = value.variables - values.keys()
            if len(unknown) != 1:
                continue
            (name,) = unknown
            at = {**dict.fromkeys(value.variables, 0), **values}
            least, next_one = (value.value({**at, name: j}) for j in (0, 1))
            if next_one != least:
                values[name] = (number - least) // (next_one - least)
                break
        else:
            return values


@lru_cache(maxsize=1024)
def _meant(operator: AcceleratorOperator, rule: BoxRule | ScaleRule) -> Expanded:
    """The graph that an operator stands for, which a rule must be about, as it says."""
    try:
        graph = expanded(operator, rule.operands, rule.attributes)
    except Unread as error:
        raise NoInstance(f"{rule.name} is no rule of {operator.name}: {error}") from error
    if form_of(graph.term) != form_of(rule.whole):
        raise NoInstance(f"{rule.name} is no rule of {operator.name}, which stands for something else")
    if [*map(form_of, (rule.left, rule.right))] != [*map(form_of, rule.sides)]:
        raise NoInstance(f"{rule.name} must be the rule of its {'boxes' if isinstance(rule, BoxRule) else 'scales'}")
    return graph


def _extents(part: Part) -> tuple[int, ...]:
    return tuple(end - first for first, end in part)


def _names(rules: Sequence[Any]) -> str:
    return ", ".join(rule.name for rule in rules)


def _told(error: Exception) -> str:
    """What is wrong; never empty, which says that nothing is."""
    return str(error) or repr(error)
