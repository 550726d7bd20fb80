"""The steps of bounds in ranges: those that are written are accepted, and false ones are refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest

from ilaverify.models.bounds import bounds_in_ranges, network_claims
from ir_semantics.graph import Builder, Graph, TensorType
from rewrites.compiler.codegen import Implementation, calibrate, constants_of, implement, operator_of, quantisation_of
from rewrites.compiler.codegen.interface import RESULT
from rewrites.compiler.composition import replay as replaying
from rewrites.compiler.composition.of_ranges import in_ranges, ranges_of
from rewrites.compiler.composition.replay import Replay
from rewrites.compiler.composition.steps import Rejected, Step
from rewrites.compiler.composition.upward import spectral_norm
from rewrites.targets.flexasr.operators import LINEAR
from rewrites.targets.hlscnn.code import Convolution
from rewrites.targets.hlscnn.operators import CONV2D

SHAPE = (1, 2, 4, 4)


def network(last: bool) -> Graph:
    """A residual block of convolutions, with a dense layer behind it or not."""
    draw, builder = np.random.default_rng(7), Builder()

    def convolved(x: int) -> int:
        filters = builder.constant(draw.normal(size=(2, 2, 3, 3)).astype(np.float32) / 3)
        padded = builder.add(
            "pad", x, builder.constant(np.zeros((), np.float32)), before=[0, 0, 1, 1], after=[0, 0, 1, 1]
        )
        return builder.add(CONV2D.name, padded, filters, stride_h=1, stride_w=1)

    first = builder.add("relu", convolved(builder.input("x", TensorType("float32", SHAPE))))
    factor = builder.constant(draw.normal(size=SHAPE).astype(np.float32))
    y = builder.add("relu", builder.add("add", builder.add("mul", convolved(first), factor), first))
    if last:
        weights = [builder.constant(draw.normal(size=s).astype(np.float32)) for s in ((3, 2), (3,))]
        y = builder.add(LINEAR.name, builder.add("mean", y, axes=(2, 3)), *weights, activation="none")
    return builder.graph({"y": y})


@cache
def made(last: bool) -> tuple[Graph, dict[int, Implementation], Mapping[int, Mapping[str, float]]]:
    return implemented(network(last))


def implemented(graph: Graph) -> tuple[Graph, dict[int, Implementation], Mapping[int, Mapping[str, float]]]:
    draw = np.random.default_rng(8)
    calibration = calibrate(graph, [{"x": draw.normal(size=SHAPE).astype(np.float32)} for _ in range(4)]).ranges
    implementations = {}
    for i, ranges in calibration.items():
        node = graph.nodes[i]
        types = [graph.nodes[j].type for j in node.operands]
        implementations[i] = implement(node, types, quantisation_of(node, ranges))
        implementations[i].bind(constants_of(graph, node.operands))
    return graph, implementations, calibration


@cache
def written() -> tuple[Step, ...]:
    steps: list[Step] = []
    (bound,) = in_ranges(*made(True), steps)
    assert bound.bound == steps[-1].most
    return tuple(steps)


def replay() -> Replay:
    graph, implementations, calibration = made(True)
    ranges = {i: ranges_of(calibration[i], of) for i, of in implementations.items()}
    own = {i: cast(float, of.bounds_in(ranges[i]).on_quantised) for i, of in implementations.items()}
    return Replay(graph, implementations, own, ranges)


def least(steps: list[Step]) -> list[Step]:
    """Steps with the least numbers that are accepted."""
    for number, step in enumerate(steps):
        try:
            replay().take([*steps[:number], replace(step, most=-1.0)])
        except Rejected as error:
            steps[number] = replace(step, most=float(str(error).split("may be ")[1].split(",")[0]))
    return steps


def test_what_is_written_is_accepted() -> None:
    assert replay().take(written()) == {"y": written()[-1].most}


@pytest.mark.parametrize("law", sorted({step.law for step in written()} | {"nothing"}))
def test_a_step_about_no_place_is_refused(law: str) -> None:
    with pytest.raises(Rejected, match=f"step 0, {law}, must be about a place"):
        replay().take([Step(law, (), (), 0.0)])


def test_copies_of_few_elements_have_a_form_however_many_they_are() -> None:
    """Of 1,024 elements padding makes more."""
    few, zeros = np.ones(replaying.MOST_ELEMENTS), np.zeros(replaying.MOST_ELEMENTS + 2)
    copies = np.concatenate([[-1], np.arange(few.size), [-1]])
    padded = replaying._Judgement((0,), zeros, zeros, copies=copies, origin=few)
    form = replaying._selected(padded, 0.5)(replay())
    assert form is not None
    (matrix,) = form.parts.values()
    assert np.array_equal(matrix, np.eye(zeros.size)[:, 1:-1])


def test_moves_and_sums_of_many_elements_keep_the_form() -> None:
    """As many as the columns of digits on VTA: the matrix of the move would be too large, and is not needed."""
    builder, few, shape = Builder(), 16, (16, 288)
    x = builder.input("x", TensorType("float32", shape))
    moved = builder.add("transpose", x, permutation=(1, 0))
    graph = builder.graph({"y": builder.add("add", moved, moved)})
    checker = replay()
    ones = np.ones(shape)
    form = replaying._Form({checker._atom(np.ones(few), math.inf): np.eye(few).repeat(288, axis=0)}, ones.reshape(-1))
    of = replaying._Judgement((x,), ones, ones, form)
    made = checker._applied(replaying._Applied(graph.nodes[1], [graph.nodes[0].type], [of]), (1,))
    assert made.form is not None
    (matrix,) = made.form.parts.values()
    assert np.array_equal(matrix, np.tile(np.eye(few), (288, 1)))
    twice = checker._applied(replaying._Applied(graph.nodes[2], [graph.nodes[1].type] * 2, [made, made]), (2,))
    assert twice.form is not None and np.array_equal(next(iter(twice.form.parts.values())), 2 * matrix)


def test_no_number_may_be_less_by_one_last_place() -> None:
    steps = least(list(written()))
    bounds = replay().take(steps)
    assert 0.5 * written()[-1].most < bounds["y"] <= written()[-1].most
    for number, step in enumerate(steps):
        less = replace(step, most=math.nextafter(step.most, -math.inf))
        with pytest.raises(Rejected, match=f"the error of step {number} may be"):
            replay().take([*steps[:number], less, *steps[number + 1 :]])


def mutants(steps: tuple[Step, ...]) -> Iterator[tuple[str, list[Step]]]:
    """Steps of which one is false: what it is of, its law, its place, what an accelerator states, or it is missing."""
    for number, step in enumerate(steps):

        def changed(number: int = number, step: Step = step, **values: Any) -> list[Step]:
            return [*steps[:number], replace(step, **values), *steps[number + 1 :]]

        for position, operand in enumerate(step.of):
            others = {k for k in range(number) if steps[k].place != steps[operand].place} | {number, len(steps) - 1}
            for other in others:
                yield f"{number} of {other}", changed(of=(*step.of[:position], other, *step.of[position + 1 :]))
            yield f"{number} forgets {operand}", changed(of=(*step.of[:position], *step.of[position + 1 :]))
        for law in {s.law for s in steps} - {step.law}:
            yield f"{number} by {law}", changed(law=law)
        for place in {s.place for s in steps} - {step.place}:
            yield f"{number} at {place}", changed(place=place)
        if step.given is not None:
            for given in (math.nextafter(step.given, 0), -step.given, 2 * step.given, None):
                yield f"{number} states {given}", changed(given=given)
        yield f"without {number}", [*steps[:number], *steps[number + 1 :]]


@pytest.mark.parametrize("every", [67, pytest.param(1, marks=pytest.mark.slow)])
def test_false_steps_are_refused(every: int) -> None:
    accepted = []
    for name, steps in list(mutants(written()))[::every]:
        try:
            replay().take(steps)
        except Rejected:
            continue
        accepted.append(name)
    assert not accepted


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_a_spectral_norm_is_bounded_from_above_and_closely(scale: float) -> None:
    draw = np.random.default_rng(3)
    orthogonal = np.linalg.qr(draw.normal(size=(30, 30)))[0]
    for matrix in (orthogonal, np.outer(draw.normal(size=40), draw.normal(size=7)), draw.normal(size=(50, 90))):
        true = float(np.linalg.norm(matrix, 2))
        assert true * (1 - 1e-12) <= spectral_norm(matrix * scale) / scale <= 1.001 * true
    assert spectral_norm(np.zeros((2, 3))) == 0


def all_claims(implementations: Mapping[int, Implementation]) -> set[str]:
    own = [name for of in implementations.values() for m in of.mappings for name in operator_of(of).bound_claims(m)]
    return {*own, *network_claims(implementations.values())}


def test_a_bound_is_proved_where_all_that_it_rests_on_is() -> None:
    graph, implementations, calibration = made(False)
    (bound,) = bounds_in_ranges(graph, implementations, calibration, None)
    assert bound.bound is not None and bound.declared == ()
    certified = all_claims(implementations)
    assert bounds_in_ranges(graph, implementations, calibration, certified) == [bound]
    slopes = {name for name in certified if name.startswith("error-slope-of-")}
    rests = {*network_claims(implementations.values(), graph)}
    assert len(slopes) == 3 and rests & slopes == {"error-slope-of-relu"}
    assert bounds_in_ranges(graph, implementations, calibration, certified - (slopes - rests)) == [bound]
    for name in ("error-spectral-norm", "error-one-more-rounding", "error-slope-of-relu"):
        (without,) = bounds_in_ranges(graph, implementations, calibration, certified - {name})
        assert without.declared == (f"{name}, which holds no certificate",)
    told = "which numbers the host makes codes of, and reads, around programs of"
    for name in ("lemma-float32-to-16-bits", "lemma-16-bits-to-float32"):
        (without,) = bounds_in_ranges(graph, implementations, calibration, certified - {name})
        assert without.declared == (f"{told} {CONV2D.name}",)
    without_lemma = all_claims(made(True)[1]) - {"lemma-float32-to-adaptivfloat"}
    (mixed,) = bounds_in_ranges(*made(True), without_lemma)
    assert mixed.declared == (f"{told} {LINEAR.name}",)
    (mixed,) = bounds_in_ranges(*made(True), {*without_lemma, "lemma-float32-to-adaptivfloat"})
    assert mixed.bound is not None and mixed.declared == ()


def test_nothing_is_proved_of_calls_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are read as twice what they are, so that scales do not cancel out."""
    own, formats = Convolution, Convolution._format
    monkeypatch.setattr(
        own, "_format", lambda self, of: replace(f := formats(self, of), scale=f.scale + (of == RESULT))
    )
    graph, implementations, calibration = implemented(network(False))
    (bound,) = bounds_in_ranges(graph, implementations, calibration, None)
    assert bound.bound is None and "hlscnn.conv2d must be scaled so: " in bound.reason
    (bound,) = bounds_in_ranges(graph, implementations, calibration, None, look=False)
    assert bound.bound is not None  # which run tells: proved, if check accepts the calls


@pytest.mark.parametrize("composite", [False, True])
def test_float32_of_functions_on_the_host_is_declared(composite: bool) -> None:
    """Also of those in what composite operators of the host stand for."""
    draw, b = np.random.default_rng(7), Builder()

    def constant(*shape: int) -> int:
        return b.constant((draw.normal(size=shape) / 4).astype(np.float32))

    x = b.input("x", TensorType("float32", SHAPE))
    y = b.add(CONV2D.name, x, constant(2, 2, 3, 3), stride_h=1, stride_w=1)
    if composite:
        how = {"activations": (("tanh",),), "clip": 0.0, "lengths": False, "output": 0, "reverse": False}
        y = b.add("reshape", y, shape=(2, 1, 4))
        y = b.add("rnn", y, constant(4, 4), constant(4, 4), constant(8), constant(1, 4), **how)
    else:
        y = b.add("tanh", y)
    (bound,) = bounds_in_ranges(*implemented(b.graph({"y": y})), None)
    assert bound.bound is not None and bound.declared == ("float32 of tanh on the host",)


def test_a_bound_whose_steps_are_refused_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Replay, steps: Any) -> None:
        raise Rejected("step 3 is false")

    monkeypatch.setattr(Replay, "take", refuse)
    (bound,) = bounds_in_ranges(*made(False), None)
    assert bound.bound is not None and bound.declared == ("how errors compose (step 3 is false)",)
