"""What a joint must survive before PROVED is said: its two readings are run beside what they are readings of.

The kernel is executed, statement by statement, with counters and addresses that are words and data that are exact
numbers, and its result is compared with that of its term; where it is read by a bound, the real number of this is
evaluated in intervals.  The graph that the operator builds at concrete shapes is evaluated, and compared with the term
that was read for every size.
"""

from __future__ import annotations

import functools
import itertools
import operator
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chc.tensor_rules.context import sizes_drawn, sizes_within
from chc.tensor_rules.rule import TensorRule
from ila_lang import Expr, const, substitute
from ila_lang.language.kernel import For, Let, Load, Statement, Store
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import attributes_of
from ir_semantics.graph.operator import Operator
from ir_semantics.graph.terms import terms_of
from ir_semantics.graph.types import TensorType
from ir_semantics.scalars.intervals import point
from ir_semantics.tensors.conditions import holds
from ir_semantics.tensors.elements import Apply, Choice, Element, Number, Reduce, substitute_element
from ir_semantics.tensors.evaluate import evaluate, shape_at
from ir_semantics.tensors.index import Index, Names, index
from ir_semantics.tensors.numbers import Reals, Undefined, apart
from ir_semantics.tensors.terms import input_
from rewrites.bounds.derivations.names import Layout
from rewrites.bounds.kernel.judgements import Theorem
from rewrites.bounds.values import INTERVALS, Values

from .instruction import Unread
from .joint import Joint
from .kernel import KernelReading, Run
from .theorem import BoundReading
from .words import Data

POINTS, MOST_ELEMENTS = 6, 200
MOST_STEPS = 10**6
REALS = Reals()
Arrays = Mapping[str, NDArray[np.object_]]


def difference(joint: Joint, operator: Operator, rule: TensorRule) -> str:
    """Where a reading differs from what it is a reading of, at some small sizes; empty where none was found.

    Raises Unread where there are no such sizes.
    """
    draw = random.Random(0)
    points = list(_points(joint, rule, draw))
    if not points:
        raise Unread("no sizes are small enough to run it")
    for sizes in draw.sample(points, min(len(points), POINTS)):
        operands = (*joint.operands, *map(input_, joint.numbers))
        inputs = {**rule.inputs, **{dict(t.attributes)["name"]: t for t in operands}}
        data = {n: _filled(shape_at(t, sizes), draw) for n, t in inputs.items()}
        for name in joint.numbers:  # small or large, and positive, where most have a value
            data[name][()] = Fraction(draw.randint(1, 9), 1 << draw.randint(0, 20))
        for what, term, result in (
            ("the kernel", rule.right, _executed(joint, sizes, data)),
            ("the operator's graph", rule.left, _graph(joint, operator, sizes, data)),
        ):
            expected = evaluate(term, sizes, data).reshape(-1)
            if expected.shape != result.shape or any(itertools.starmap(apart, zip(expected, result, strict=True))):
                shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
                return f"{what} is not what is read of it where {shown}"
    return ""


def _points(joint: Joint, rule: TensorRule, draw: random.Random) -> Iterator[dict[str, int]]:
    """Sizes at which operands have elements, but not many; those of which the claim says nothing are 0 or 1."""
    operands = sorted({name for called in joint.called for name in called.names.values()})
    near = [p for most in (2, 3) for p in sizes_within(rule.sizes, rule.premise, 200, most)]
    for drawn in (*near, *(p for most in (4, 9, 17) for p in sizes_drawn(rule.sizes, rule.premise, 20, most, draw))):
        sizes = {name: draw.randint(0, 1) for name in operands} | drawn
        counts = [int(np.prod(shape_at(t, sizes), dtype=object)) for t in (*joint.operands, rule.left)]
        if all(counts) and max(counts) <= MOST_ELEMENTS and holds(joint.fits, sizes):
            yield sizes


def _filled(shape: Sequence[int], draw: random.Random) -> NDArray[np.object_]:
    array = np.empty(shape, dtype=object)
    for at in itertools.product(*map(range, shape)):
        array[at] = Fraction(draw.randint(-9, 9), draw.choice((1, 2)))
    return array


def _graph(joint: Joint, operator: Operator, sizes: Mapping[str, int], data: Arrays) -> NDArray[np.object_]:
    types = tuple(TensorType("float32", shape_at(t, sizes)) for t in joint.operands)
    valued = {n: v.value(sizes) if isinstance(v, Index) else v for n, v in joint.attributes.items()}
    valued |= {n: float(data[n][()]) for n in joint.numbers}
    term = terms_of(expansion(operator.name, types, attributes_of(valued)))["y"]
    named = {f"x{i}": data[dict(t.attributes)["name"]] for i, t in enumerate(joint.operands)}
    return evaluate(term, {}, named).reshape(-1)


def _executed(joint: Joint, sizes: Mapping[str, int], data: Arrays) -> NDArray[np.object_]:
    memories = {n: list(evaluate(t, sizes, data).reshape(-1)) for n, t in joint.memories.items()}
    memories |= {n: [data[n][()]] for n in joint.numbers}
    for step in joint.steps:
        execution = _Execution(step, sizes, memories)
        memories[step.called.output] = (
            execution.real(*step.derived) if isinstance(step, BoundReading) else execution.words()
        )
    return np.array([*memories[joint.mapping.mapping.output[1]], None], dtype=object)[:-1]


class _Execution(Run):
    """A kernel executed: registers are expressions of data without variables."""

    def __init__(self, step: KernelReading, sizes: Mapping[str, int], memories: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(step, Names(), {})
        self.sizes, self.memories, self.most = sizes, memories, MOST_STEPS
        self.written, self.values = dict[int, Any](), dict[int, tuple[Element, Any]]()
        self.fixed |= {state: const(value.value(sizes), state.width) for state, value in self.indices.items()}

    def words(self) -> list[Any]:
        self.execute(self.of.called.kernel.body, dict(self.fixed))
        return self.stored_words()

    def real(self, theorem: Theorem, layout: Layout) -> list[Any]:
        """The real number of a bound, for each word of the result."""
        loops = (*((axis,) for axis in layout.axes), *layout.indices.values())
        counters = [list(self.counted(of)) for of in loops]
        sizes = tuple(map(len, counters))
        everywhere = [functools.reduce(operator.or_, each, self.fixed) for each in itertools.product(*counters)]
        leaves = dict[str, NDArray[np.object_]]()
        for leaf in theorem.leaves:
            memory, *address = layout.leaves.get(leaf, (None,))
            words = self.memories[leaf if memory is None else memory.name]
            places = [substitute(address[0], at).value if address else 0 for at in everywhere]
            leaves[leaf] = np.array([point(words[place]) for place in places], dtype=object).reshape(sizes)
        axes = {name: len(layout.axes) + number for number, name in enumerate(layout.indices)}
        reals = np.broadcast_to(Values(leaves, axes, sizes, INTERVALS).of(theorem.result.real), sizes).reshape(-1)
        self.written = dict(zip((substitute(layout.result[1], at).value for at in everywhere), reals, strict=True))
        return self.stored_words()

    def counted(self, loops: Sequence[tuple[Expr, Expr]]) -> Iterator[dict[Expr, Expr]]:
        """Values of counters, in the order of the iterations."""
        for each in itertools.product(*(range(substitute(extent, self.fixed).value) for _, extent in loops)):
            yield {counter: const(n, counter.width) for (counter, _), n in zip(loops, each, strict=True)}

    def stored_words(self) -> list[Any]:
        """What was written, which has no gaps."""
        if set(self.written) != set(range(len(self.written))):
            raise Unread(f"the kernel {self.of.called.kernel.name} must store a result without gaps")
        return [self.written[at] for at in range(len(self.written))]

    def _data(self, of: Expr) -> Data:
        """As a number."""
        data = super()._data(of)
        value = self.number(data.element)
        return replace(data, element=Number(value)) if isinstance(value, Fraction) else data  # no literal encloses

    def exponent(self, memory: Expr) -> Index:
        """As a number."""
        return index(super().exponent(memory).value(self.sizes))

    def execute(self, body: Sequence[Statement], env: dict[Expr, Expr]) -> None:
        for statement in body:
            self.step()
            match statement:
                case Let(target=target, value=value):
                    env[target] = substitute(value, env)
                case Load(target=target, memory=memory, address=address):
                    words, at = self.memories[memory.name], substitute(address, env).value
                    word = words[at] if at < len(words) else Fraction(12345)  # beyond an operand there may be anything
                    env[target] = self.leaf(target.width, Data(Number(word), "", self.exponent(memory), memory.name))
                case Store(address=address, value=value):
                    self.written[substitute(address, env).value] = self.number(
                        self.data(substitute(value, env)).element
                    )
                case For(counter=counter, extent=extent, body=inner):
                    for iteration in range(substitute(extent, env).value):
                        self.step()
                        env[counter] = const(iteration, counter.width)
                        self.execute(inner, env)
                case _:
                    raise Undefined(f"{statement} is not executed on numbers")

    def number(self, element: Element) -> Any:
        """The value of an element without variables, each computed once."""
        if id(element) not in self.values:
            self.values[id(element)] = element, self._number(element)
        return self.values[id(element)][1]

    def _number(self, element: Element) -> Any:
        match element:
            case Number(value):
                return value
            case Apply(op, args):
                return REALS.apply(op, [self.number(a) for a in args])
            case Choice(condition, yes, no):
                return self.number(yes if holds(condition, {}) else no)
            case Reduce("max", variable, extent, body):
                each = [substitute_element(body, {variable: index(i)}) for i in range(extent.value({}))]
                return functools.reduce(lambda a, b: REALS.apply("maximum", [a, b]), map(self.number, each))
        raise Undefined(f"{element} is not executed on numbers")
