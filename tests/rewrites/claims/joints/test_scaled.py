"""Scales of recurrent layers cancel out: proved by induction, and not where weights stay or states are scaled."""

from __future__ import annotations

import pytest

from ir_semantics.graph.operator import lookup
from ir_semantics.tensors.index import Index
from rewrites.claims.joints.layers import LAYER_OPTIONS, LayerRule, by_induction, difference, states_of
from rewrites.claims.joints.scaled import OF_INPUTS, SCALES, UNCHANGED, operands_scaled
from rewrites.claims.subjects.layers import LayerSubject
from rewrites.rules.tensor.scales import U
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger


def proof(of: LayerRule) -> Verdict:
    return LayerSubject("scales-of-a-layer", of).prove(Discharger(timeout=20.0))


@pytest.mark.parametrize("kind", ["rnn", "gru", pytest.param("lstm", marks=pytest.mark.slow)])
def test_scales_of_inputs_and_weights_cancel_out(kind: str) -> None:
    verdict = proof(SCALES[kind])
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.assumptions == ("u > 0 everywhere",)


WRONG: dict[str, dict[str, Index]] = {
    "weights as they are": {"x": U},
    "weights that are scaled, too": {"x": U, "w": U},
    "given states that are scaled": {**OF_INPUTS, "h0": U},
    "both biases": {**OF_INPUTS, "b": U},
}


@pytest.mark.parametrize("name", WRONG)
def test_other_scales_are_not_proved_and_layers_differ(name: str) -> None:
    of = operands_scaled("rnn", WRONG[name])
    rule = by_induction("wrong", lookup("rnn"), LAYER_OPTIONS["rnn"], of, states_of("rnn"), UNCHANGED)
    assert proof(rule).status is Status.UNKNOWN
    assert difference(rule)
