"""Sequences of a recurrent layer are layers of their own: proved by induction, and not where sequences meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from ir_semantics.graph import expansion
from ir_semantics.graph.ir import Attributes, attributes_of
from ir_semantics.graph.operator import Assembly, Operator, lookup
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.operators import slice_
from ir_semantics.tensors.terms import Tensor, input_
from reports.binding import binding_problems
from reports.certificate import certificate_of
from rewrites.claims.joints.expansion import expanded, same, structure_of
from rewrites.claims.joints.instruction import Unread
from rewrites.claims.joints.joint import stack
from rewrites.claims.joints.layers import HIDDEN, LAYER_OPTIONS, STEPS, LayerRule, N, difference, states_of
from rewrites.claims.joints.sequences import SEQUENCES, Q, operands_of_layer, sequences, taken
from rewrites.claims.subjects.layers import LayerSubject
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.rewrites.claims.joints.test_false_joints import operator

X, FIRST = input_("x", STEPS, N, HIDDEN), input_("h0", N, HIDDEN)
BEFORE = input_("h_before", STEPS, N, HIDDEN)
Step = Callable[[Assembly, int, int], int]


def layer(step: Step, ahead: int = 0) -> Operator:
    """A step on x [n, h] of each timestep, or of one ahead of it, and the state [n, h] before it."""

    def expand(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        steps, n, h = b.shape(of[0])

        def one(t: int, states: list[int]) -> tuple[int, list[int]]:
            x = b.add("slice", of[0], start=(t + ahead, 0, 0), stop=(t + ahead + 1, n, h), stride=(1, 1, 1))
            new = step(b, b.add("reshape", x, shape=(n, h)), states[0])
            return new, [new]

        return b.repeat(steps, [of[1]], one)[0]

    return operator(expand, 2)


def first(x: Tensor) -> Tensor:
    """The first q sequences of a tensor."""
    return slice_(x, [0] * x.rank, [Q if d == N else d for d in x.shape])


def rule(step: Step, operands: Mapping[Tensor, int | None] | None = None, ahead: int = 0) -> LayerRule:
    return sequences("sequences of a layer", layer(step, ahead), {}, operands or {X: 1, FIRST: 0}, [BEFORE])


def proof(of: LayerRule) -> Verdict:
    return LayerSubject("sequences-of-a-layer", of).prove(Discharger(timeout=8.0))


def plus(b: Assembly, x: int, state: int) -> int:
    return b.add("tanh", b.add("add", x, state))


def turned(b: Assembly, x: int, state: int) -> int:
    """The state of the last sequence goes to the first."""
    return b.add("add", x, b.add("reverse", state, axes=(0,)))


def turned_input(b: Assembly, x: int, state: int) -> int:
    return b.add("add", b.add("reverse", x, axes=(0,)), state)


def shared(b: Assembly, x: int, state: int) -> int:
    """Every sequence adds the mean of all."""
    n, h = b.shape(x)
    return b.add("add", state, b.add("broadcast", b.add("mean", x, axes=(0,)), axes=(1,), shape=(n, h)))


def mixed(b: Assembly, x: int, state: int) -> int:
    """All sequences are added up in order."""
    return b.add("add", x, b.add("cumsum", state, axis=0))


def later(b: Assembly, x: int, state: int) -> int:
    """Each sequence but the first has the state of the one before it."""
    n, h = b.shape(state)
    kept = b.add("slice", state, start=(0, 0), stop=(n - 1, h), stride=(1, 1))
    zero = b.constant(np.zeros((), np.float32))
    return b.add("add", x, b.add("pad", kept, zero, before=(1, 0), after=(0, 0)))


def test_sequences_that_do_not_meet_are_layers_of_their_own() -> None:
    of = rule(plus)
    verdict = proof(of)
    assert verdict.status is Status.PROVED, verdict.reason
    assert "by induction over iterations" in verdict.claim.statement
    subject = LayerSubject("sequences-of-a-layer", of)
    content = certificate_of(subject.semantics(), verdict, {}, "a test")
    assert binding_problems(content, subject) == []
    assert binding_problems(content | {"obligations": content["obligations"][1:]}, subject)
    other = LayerSubject("sequences-of-a-layer", rule(turned))
    assert binding_problems(content, other) and subject.semantics() != other.semantics()


@pytest.mark.parametrize("step", [turned, turned_input, shared, mixed, later], ids=lambda step: step.__name__)
def test_sequences_that_meet_are_not(step: Step) -> None:
    of = rule(step)
    verdict = proof(of)
    assert verdict.status is Status.UNKNOWN and verdict.reason
    assert difference(of).startswith("the layers differ where ")


def test_every_step_must_be_well_formed() -> None:
    verdict = proof(rule(plus, ahead=1))
    assert verdict.status is Status.UNKNOWN and "every step is well formed: t.0 + 2 <= t" in verdict.reason


@pytest.mark.parametrize("axes", [{X: None, FIRST: 0}, {X: 1, FIRST: None}, {X: 0, FIRST: 0}, {X: 2, FIRST: 0}])
def test_operands_have_the_same_sequences(axes: dict[Tensor, int | None]) -> None:
    with pytest.raises(Unread):
        rule(plus, axes)


@pytest.mark.parametrize("operands", [(first(X), taken(FIRST, 0)), (taken(X, 1), first(FIRST))])
def test_other_sequences_are_not_these(operands: tuple[Tensor, Tensor]) -> None:
    """The right side's layer has the inputs of the first sequences, or begins with their states."""
    part = expanded(layer(plus), operands, {}, states=[taken(BEFORE, 1)])
    assert proof(replace(rule(plus), right=stack(part.term, *part.after))).status is Status.UNKNOWN


@pytest.mark.parametrize(
    "kind", ["rnn", pytest.param("gru", marks=pytest.mark.slow), pytest.param("lstm", marks=pytest.mark.slow)]
)
def test_layers_of_frameworks(kind: str) -> None:
    verdict = LayerSubject(f"sequences-of-{kind}-layers", SEQUENCES[kind]).prove(Discharger(timeout=20.0))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize(("t", "n"), [(1, 1), (3, 4)])
def test_layers_are_what_is_read_of_them(kind: str, t: int, n: int) -> None:
    sizes = {"t": t, "n": n, "i": 3, "h": 2}
    operands = [*operands_of_layer(kind)]
    read = expanded(lookup(kind), operands, LAYER_OPTIONS[kind], states=states_of(kind))
    types = tuple(TensorType("float32", shape_at(x, sizes)) for x in operands)
    graph = expansion(kind, types, attributes_of(LAYER_OPTIONS[kind]))
    assert same(read.structure, structure_of(graph), sizes)
    assert not same(read.structure, structure_of(graph), {**sizes, "t": t + 1})
    assert not difference(SEQUENCES[kind])
