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

from chc.tensor_rules.refute import Counterexample
from chc.tensor_rules.rule import TensorRule
from chc.tensor_rules.sizes import sizes_drawn, sizes_within
from ila_lang import Expr, const, substitute
from ila_lang.language.kernel import For, Let, Load, Statement, Store
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import attributes_of
from ir_semantics.graph.operator import Operator
from ir_semantics.graph.terms import terms_of
from ir_semantics.graph.types import TensorType
from ir_semantics.scalars.intervals import point
from ir_semantics.tensors.conditions import both, holds
from ir_semantics.tensors.elements import Apply, Choice, Element, Number, Read, Reduce, substitute_element
from ir_semantics.tensors.evaluate import evaluate, shape_at
from ir_semantics.tensors.index import Index, Names, index
from ir_semantics.tensors.numbers import Reals, Undefined, apart, text_of
from ir_semantics.tensors.terms import input_, operands_of
from rewrites.bounds.derivations.names import Layout
from rewrites.bounds.kernel.judgements import Theorem
from rewrites.bounds.values import INTERVALS, Values

from .instruction import Unread
from .joint import Joint
from .kernel import KernelReading, Run
from .theorem import BoundReading
from .words import Data

POINTS, RUNS, MOST_ELEMENTS = 6, 40, 200
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
        data = {dict(t.attributes)["name"]: _filled(shape_at(t, sizes), draw) for t in operands}
        for name in joint.numbers:  # small or large, and positive, where most have a value
            data[name][()] = Fraction(draw.randint(1, 9), 1 << draw.randint(0, 20))
        states, stored = _executed(joint, sizes, data)
        data |= states
        graph, rows = _graph(joint, operator, sizes, data), [state.reshape(-1) for state in states.values()]
        for what, term, result in (("the kernel", rule.right, stored), ("the operator's graph", rule.left, graph)):
            result = np.concatenate([result, *rows])
            expected = evaluate(term, sizes, data).reshape(-1)
            if expected.shape != result.shape or any(itertools.starmap(apart, zip(expected, result, strict=True))):
                shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
                return f"{what} is not what is read of it where {shown}"
    return ""


def refutation(
    joint: Joint, operator: Operator, rule: TensorRule, sizes: Mapping[str, int], data: Arrays
) -> Counterexample | None:
    """Sizes and operands for which the kernel, executed, gives another result than the operator's graph, evaluated."""
    if not holds(both(rule.premise, joint.fits), sizes):
        return None
    _, stored = _executed(joint, sizes, data)
    graph = _graph(joint, operator, sizes, data)
    for at, (a, b) in enumerate(itertools.zip_longest(graph, stored)):
        if a is None or b is None:
            return Counterexample(sizes, data, f"the kernel stores {len(stored)} words, not {len(graph)},", (at,))
        if apart(a, b):
            left, right = text_of(a, b)
            difference = f"in the word {at} the operator is {left}, the kernel {right},"
            return Counterexample(sizes, data, difference, (at,), left, right)
    return None


def refuted(joint: Joint, operator: Operator, rule: TensorRule, known: Counterexample | None) -> Counterexample | None:
    """A counterexample with the states that the kernel stores; ``known`` is one to the step, with any states."""
    draw = random.Random(0)
    operands = {dict(t.attributes)["name"]: t for t in joint.operands}
    points = [{name: point[name] for name in rule.sizes} for point in _points(joint, rule, draw)]
    tried = [] if known is None else [(known.sizes, {n: a for n, a in known.inputs.items() if n in operands})]
    tried += [(sizes, {}) for sizes in draw.sample(points, min(len(points), RUNS))]
    for sizes, given in tried:
        data = {n: given.get(n, _filled(shape_at(t, sizes), draw, 1)) for n, t in operands.items()}
        counterexample = refutation(joint, operator, rule, sizes, data)
        if counterexample is not None:
            return counterexample
    return None


def _points(joint: Joint, rule: TensorRule, draw: random.Random) -> Iterator[dict[str, int]]:
    """Sizes at which operands have elements, but not many; those of which the claim says nothing are 0 or 1."""
    operands = sorted({name for called in joint.called for name in called.names.values()})
    near = [p for most in (2, 3) for p in sizes_within(rule.sizes, rule.premise, 200, most)]
    for drawn in (*near, *(p for most in (4, 9, 17) for p in sizes_drawn(rule.sizes, rule.premise, 20, most, draw))):
        sizes = {name: draw.randint(0, 1) for name in operands} | drawn
        counts = [int(np.prod(shape_at(t, sizes), dtype=object)) for t in (*joint.operands, rule.left)]
        if all(counts) and max(counts) <= MOST_ELEMENTS and holds(joint.fits, sizes):
            yield sizes


def _filled(shape: Sequence[int], draw: random.Random, most: int = 9) -> NDArray[np.object_]:
    array = np.empty(shape, dtype=object)
    for at in itertools.product(*map(range, shape)):
        array[at] = Fraction(draw.randint(-most, most), draw.choice((1, 2)))
    return array


def _graph(joint: Joint, operator: Operator, sizes: Mapping[str, int], data: Arrays) -> NDArray[np.object_]:
    types = tuple(TensorType("float32", shape_at(t, sizes)) for t in joint.operands)
    valued = {n: v.value(sizes) if isinstance(v, Index) else v for n, v in joint.attributes.items()}
    valued |= {n: float(data[n][()]) for n in joint.numbers}
    term = terms_of(expansion(operator.name, types, attributes_of(valued)))["y"]
    named = {f"x{i}": data[dict(t.attributes)["name"]] for i, t in enumerate(joint.operands)}
    if any(t.operator == "input" and dict(t.attributes)["name"] not in named for t in operands_of(term)):
        raise Unread(f"{operator.name} must have no constants of several elements to be run")
    return evaluate(term, {}, named).reshape(-1)


def _executed(
    joint: Joint, sizes: Mapping[str, int], data: Arrays
) -> tuple[dict[str, NDArray[np.object_]], NDArray[np.object_]]:
    """The states that the kernel stores, by the names of inputs, and its result."""
    laid = {n: t for n, t in joint.memories.items() if n not in joint.states}
    memories = {n: list(evaluate(t, sizes, data).reshape(-1)) for n, t in laid.items()}
    memories |= {n: [data[n][()]] for n in joint.numbers}
    for step in joint.steps:
        execution = _Execution(step, sizes, memories)
        memories |= execution.real(*step.derived) if isinstance(step, BoundReading) else execution.words()
    arrays = {n: np.array([*words, None], dtype=object)[:-1] for n, words in memories.items()}
    states = {dict(t.attributes)["name"]: arrays[n].reshape(shape_at(t, sizes)) for n, t in joint.states.items()}
    return states, arrays[joint.mapping.mapping.output[1]]


class _Execution(Run):
    """A kernel executed: registers are expressions of data without variables."""

    def __init__(self, step: KernelReading, sizes: Mapping[str, int], memories: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(step, Names(), {})
        self.sizes, self.memories, self.most = sizes, memories, MOST_STEPS
        self.written = {memory: dict[int, Any]() for memory in step.called.stored}
        self.values = dict[int, tuple[Element, Any]]()
        self.fixed |= {state: const(value.value(sizes), state.width) for state, value in self.indices.items()}

    def words(self) -> dict[str, list[Any]]:
        self.execute(self.of.called.kernel.body, dict(self.fixed))
        return self.stored_words()

    def real(self, theorem: Theorem, layout: Layout) -> dict[str, list[Any]]:
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
        result, stored_at = layout.result
        self.written[result.name] = {
            substitute(stored_at, at).value: real for at, real in zip(everywhere, reals, strict=True)
        }
        return self.stored_words()

    def counted(self, loops: Sequence[tuple[Expr, Expr]]) -> Iterator[dict[Expr, Expr]]:
        """Values of counters, in the order of the iterations."""
        for each in itertools.product(*(range(substitute(extent, self.fixed).value) for _, extent in loops)):
            yield {counter: const(n, counter.width) for (counter, _), n in zip(loops, each, strict=True)}

    def stored_words(self) -> dict[str, list[Any]]:
        """What was written to each memory, which has no gaps."""
        if any(set(words) != set(range(len(words))) for words in self.written.values()):
            raise Unread(f"the kernel {self.of.called.kernel.name} must store a result without gaps")
        return {memory: [words[at] for at in range(len(words))] for memory, words in self.written.items()}

    def _data(self, of: Expr) -> Data:
        """As a number."""
        data = super()._data(of)
        value = self.number(data.element)
        return replace(data, element=Number(value)) if isinstance(value, Fraction) else data  # no literal encloses

    def exponent(self, memory: Expr) -> Index | None:
        """As a number."""
        exponent = super().exponent(memory)
        return None if exponent is None else index(exponent.value(self.sizes))

    def execute(self, body: Sequence[Statement], env: dict[Expr, Expr]) -> None:
        for statement in body:
            self.step()
            match statement:
                case Let(target=target, value=value):
                    env[target] = substitute(value, env)
                case Load(target=target, memory=memory, address=address):
                    at = substitute(address, env).value
                    element: Element = Read(memory.name, (index(at),))
                    word = self.number(element)
                    element = Number(word) if isinstance(word, Fraction) else element
                    env[target] = self.leaf(target.width, Data(element, "", self.exponent(memory), memory.name))
                case Store(memory=memory, address=address, value=value):
                    number = self.number(self.data(substitute(value, env)).element)
                    self.written[memory.name][substitute(address, env).value] = number
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
            case Read(name, (at,)):  # where nothing lies there may be anything
                words = self.written[name] if name in self.written else dict(enumerate(self.memories[name]))
                return words.get(at.value({}), Fraction(12345))
            case Apply(op, args):
                return REALS.apply(op, [self.number(a) for a in args])
            case Choice(condition, yes, no):
                return self.number(yes if holds(condition, {}) else no)
            case Reduce("max", variable, extent, body):
                each = [substitute_element(body, {variable: index(i)}) for i in range(extent.value({}))]
                return functools.reduce(lambda a, b: REALS.apply("maximum", [a, b]), map(self.number, each))
        raise Undefined(f"{element} is not executed on numbers")
