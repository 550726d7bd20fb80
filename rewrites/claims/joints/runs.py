"""What a joint must survive before PROVED is said: its two readings are run beside what they are readings of.

The kernel is executed, statement by statement, with counters and addresses that are words and data that are exact
numbers, and its result is compared with that of its term.  The graph that the operator builds at concrete shapes is
evaluated, and compared with the term that was read for every size.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
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
from ir_semantics.tensors.elements import Element, Number
from ir_semantics.tensors.evaluate import evaluate, shape_at
from ir_semantics.tensors.index import Index, Names
from ir_semantics.tensors.numbers import Undefined, apart
from ir_semantics.tensors.terms import Tensor, make

from .instruction import Unread
from .joint import Joint
from .kernel import Run
from .words import Data

POINTS, MOST_ELEMENTS = 6, 600
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
        data = {n: _filled(shape_at(t, sizes), draw) for n, t in rule.inputs.items()}
        for what, term, found in (
            ("the kernel", rule.right, _executed(joint, sizes, data)),
            ("the operator's graph", rule.left, _graph(joint, operator, sizes, data)),
        ):
            wanted = evaluate(term, sizes, data).reshape(-1)
            if wanted.shape != found.shape or any(itertools.starmap(apart, zip(wanted, found, strict=True))):
                shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
                return f"{what} is not what is read of it where {shown}"
    return ""


def _points(joint: Joint, rule: TensorRule, draw: random.Random) -> Iterator[dict[str, int]]:
    """Sizes at which operands have elements, but not many."""
    near = [p for most in (2, 3) for p in sizes_within(rule.sizes, rule.premise, 200, most)]
    for sizes in (*near, *(p for most in (4, 9, 17) for p in sizes_drawn(rule.sizes, rule.premise, 20, most, draw))):
        counts = [int(np.prod(shape_at(t, sizes), dtype=object)) for t in (*joint.operands, rule.left)]
        if all(counts) and max(counts) <= MOST_ELEMENTS:
            yield sizes


def _filled(shape: Sequence[int], draw: random.Random) -> NDArray[np.object_]:
    found = np.empty(shape, dtype=object)
    for at in itertools.product(*map(range, shape)):
        found[at] = Fraction(draw.randint(-9, 9), draw.choice((1, 2)))
    return found


def _graph(joint: Joint, operator: Operator, sizes: Mapping[str, int], data: Arrays) -> NDArray[np.object_]:
    types = tuple(TensorType("float32", shape_at(t, sizes)) for t in joint.operands)
    valued = {n: v.value(sizes) if isinstance(v, Index) else v for n, v in joint.attributes.items()}
    term = terms_of(expansion(operator.name, types, attributes_of(valued)))["y"]
    named = {f"x{i}": data[dict(t.attributes)["name"]] for i, t in enumerate(joint.operands)}
    return evaluate(term, {}, named).reshape(-1)


def _executed(joint: Joint, sizes: Mapping[str, int], data: Arrays) -> NDArray[np.object_]:
    memories = {n: evaluate(t, sizes, data).reshape(-1) for n, t in joint.memories.items()}
    return _Execution(joint, sizes, memories).result()


class _Execution(Run):
    """A kernel executed: registers are expressions of data without variables."""

    def __init__(self, joint: Joint, sizes: Mapping[str, int], memories: Arrays) -> None:
        super().__init__(joint.reading, Names(), {})
        self.memories, self.written = memories, dict[int, Any]()
        self.output = joint.mapping.mapping.output[1]
        for state, index in ((s, i) for s, i in self.indices.items() if i.variables <= set(sizes)):
            self.fixed[state] = const(index.value(sizes), state.width)

    def result(self) -> NDArray[np.object_]:
        self.execute(self.of.called.kernel.body, dict(self.fixed))
        found = np.empty(len(self.written), dtype=object)
        for at, value in self.written.items():
            found[at] = value
        return found

    def execute(self, body: Sequence[Statement], env: dict[Expr, Expr]) -> None:
        for statement in body:
            match statement:
                case Let(target=target, value=value):
                    env[target] = substitute(value, env)
                case Load(target=target, memory=memory, address=address):
                    words, at = self.memories[memory.name], substitute(address, env).value
                    word = words[at] if at < len(words) else Fraction(12345)  # beyond an operand there may be anything
                    env[target] = self.leaf(target.width, Data(Number(word), "", self.exponent(memory), memory.name))
                case Store(memory=memory, address=address, value=value) if memory.name == self.output:
                    self.written[substitute(address, env).value] = _number(self.data(substitute(value, env)).element)
                case For(counter=counter, extent=extent, body=inner):
                    for iteration in range(substitute(extent, env).value):
                        env[counter] = const(iteration, counter.width)
                        self.execute(inner, env)
                case _:
                    raise Undefined(f"{statement} is not executed on numbers")


def _number(element: Element) -> Any:
    term: Tensor = make("value", (), (), lambda at, of, names: element)
    return evaluate(term, {}, {})[()]
