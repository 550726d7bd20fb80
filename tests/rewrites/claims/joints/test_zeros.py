"""Zeros around recurrent layers change nothing: proved by induction, and not where they are no zeros or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from ir_semantics import reference
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import lookup
from ir_semantics.tensors.conditions import holds
from ir_semantics.tensors.operators import concat, fill, slice_
from ir_semantics.tensors.terms import Tensor
from reports.binding import binding_problems
from reports.certificate import certificate_of
from rewrites.claims.joints.layers import HIDDEN, LAYER_OPTIONS, LayerRule, by_induction, difference, states_of
from rewrites.claims.joints.zeros import AROUND, ZEROS, P, Q, filled, operands_filled
from rewrites.claims.subjects.layers import LayerSubject
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger


def proof(of: LayerRule) -> Verdict:
    return LayerSubject("zeros-around-a-layer", of).prove(Discharger(timeout=20.0))


OPERANDS = {kind: operands_filled(kind) for kind in ZEROS}
OF = {kind: {str(dict(x.attributes).get("name")): x for x in operands} for kind, operands in OPERANDS.items()}


def changed(kind: str, others: Mapping[str, Tensor], options: Attributes | None = None) -> LayerRule:
    """The rule with other operands on the right side, or of a layer with other attributes."""
    operands = OPERANDS[kind] | {OF[kind][name]: other for name, other in others.items()}
    attributes = {**LAYER_OPTIONS[kind], **(options or {})}
    return by_induction("zeros around a layer", lookup(kind), attributes, operands, states_of(kind), AROUND)


def ones_behind(x: Tensor, axis: int) -> Tensor:
    return concat(axis, x, fill(1, *(Q - d if j == axis else d for j, d in enumerate(x.shape))))


@pytest.mark.parametrize(
    "kind", ["rnn", pytest.param("gru", marks=pytest.mark.slow), pytest.param("lstm", marks=pytest.mark.slow)]
)
def test_zeros_around_a_layer_change_nothing(kind: str) -> None:
    verdict = proof(ZEROS[kind])
    assert verdict.status is Status.PROVED, verdict.reason
    assert "by induction over iterations" in verdict.claim.statement
    subject = LayerSubject("zeros-around-a-layer", ZEROS[kind])
    content = certificate_of(subject.semantics(), verdict, {}, "a test")
    assert binding_problems(content, subject) == []
    assert binding_problems(content | {"obligations": content["obligations"][1:]}, subject)


def test_zeros_may_be_none() -> None:
    """Features that are whole vectors are filled with nothing."""
    assert all(holds(rule.premise, dict.fromkeys(rule.sizes, 1)) for rule in ZEROS.values())


@pytest.mark.parametrize("kind", ZEROS)
def test_layers_with_zeros_around_them_are_run(kind: str) -> None:
    assert not difference(ZEROS[kind])


BIAS = OF["rnn"]["b"]
ONES = concat(0, ones_behind(slice_(BIAS, [0], [HIDDEN]), 0), filled(slice_(BIAS, [HIDDEN], [HIDDEN * 2]), {0: Q}))
FAULTS = {
    "biases that are not zero": changed("rnn", {"b": ONES}),
    "biases filled together": changed("rnn", {"b": filled(BIAS, {0: Q * 2})}),
    "a state that is not zero": changed("gru", {"h0": ones_behind(OF["gru"]["h0"], 1)}),
    "a cell state that is not zero": changed("lstm", {"c0": ones_behind(OF["lstm"]["c0"], 1)}),
    "the logistic function for tanh": changed("rnn", {}, {"activations": (("sigmoid",),)}),
    "gates of gru filled together": changed("gru", {"w": filled(OF["gru"]["w"], {0: Q * 3, 1: P})}),
    "gates of lstm filled together": changed("lstm", {"r": filled(OF["lstm"]["r"], {0: Q * 4, 1: Q})}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_other_zeros_change_something(fault: str) -> None:
    assert difference(FAULTS[fault]).startswith("the layers differ where ")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=() if rule.layers[1].operator == "rnn" else pytest.mark.slow)
        for name, rule in FAULTS.items()
    ],
)
def test_other_zeros_are_not_proved(fault: str) -> None:
    verdict = proof(FAULTS[fault])
    assert verdict.status is Status.UNKNOWN and verdict.reason


def test_the_layout_is_that_of_numpy() -> None:
    """The right side's weights, as NumPy fills each gate, give the states of the layer and zeros."""
    draw = np.random.default_rng(3)
    x, w, u = draw.normal(size=(4, 3)), draw.normal(size=(6, 3)), draw.normal(size=(6, 2))
    b, d = draw.normal(size=(2, 6))
    wide = [np.pad(a.reshape(3, 2, -1), ((0, 0), (0, 2), (0, p))).reshape(12, -1) for a, p in ((w, 1), (u, 2))]
    long = [np.pad(a.reshape(3, 2), ((0, 0), (0, 2))).reshape(12) for a in (b, d)]
    states = reference.gru(np.pad(x, ((0, 0), (0, 1))), *wide, *long)
    assert np.allclose(states[:, :2], reference.gru(x, w, u, b, d), rtol=0, atol=1e-12) and not states[:, 2:].any()
