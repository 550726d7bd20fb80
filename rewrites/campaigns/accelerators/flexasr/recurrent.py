"""FlexASR's recurrent layers: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.quantise import Quantised
from ir_semantics import reference
from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, compare, first_violation
from rewrites.campaigns.distributions import NORMAL, UNIFORM, draw_real
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.flexasr import STEPS
from rewrites.mappings.flexasr.operations import recurrent

Reals = NDArray[np.float64]

_NAMES = ("x", "w_input", "w_hidden", "b_input", "b_hidden")
UNSCALED = "unscaled"


@dataclass(frozen=True)
class Cell:
    """One kind of layer and the IR's side."""

    name: str
    reference: Callable[..., Reals]


CELLS = {
    "rnn": Cell("rnn", reference.rnn),
    "gru": Cell("gru", reference.gru),
    "lstm": Cell("lstm", lambda *args: reference.lstm(*args)[0]),
}


def make_layer(cell: Cell) -> Callable[[Mapping[str, int], str, np.random.Generator], Arrays]:
    """Draws x [T, I], w_input [G H, I], w_hidden [G H, H] and both biases [G H]."""

    def make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
        inputs, hidden = 16 * parameters["input_vectors"], 16 * parameters["hidden_vectors"]
        rows = len(applied.GATES[cell.name]) * hidden
        kind = UNIFORM if distribution == UNSCALED else distribution
        scale = 1.0 if distribution == UNSCALED else float(hidden) ** -0.5
        return {
            "x": draw_real(generator, kind, (parameters["timesteps"], inputs)),
            "w_input": draw_real(generator, kind, (rows, inputs), scale=scale),
            "w_hidden": draw_real(generator, kind, (rows, hidden), scale=scale),
            "b_input": draw_real(generator, kind, (rows,), scale=scale),
            "b_hidden": draw_real(generator, kind, (rows,), scale=scale),
        }

    return make


def inputs_of(example: Example) -> list[Quantised]:
    """The quantised x, w_input, w_hidden, b_input and b_hidden."""
    return [quantise_fitting(example.arrays[name]) for name in _NAMES]


def run_layer(cell: Cell, inputs: list[Quantised], state_bias: int, options: FlexAsrOptions | None = None) -> Quantised:
    """The hidden states [T, H] on FlexASR."""
    return run_flexasr(recurrent(cell.name, inputs, state_bias=state_bias), options)


def _evaluate(cell: Cell) -> Callable[[Example], Outcome]:
    def evaluate(example: Example) -> Outcome:
        inputs, state_bias = inputs_of(example), example.parameters["state_bias"]
        result = run_layer(cell, inputs, state_bias).values
        ideal = cell.reference(*(q.values for q in inputs))
        # the magnitude of both sides is at most 1, so nothing is said where the bound is not below 2
        error = applied.recurrent_elements(cell.name, inputs, state_bias).error
        stated = error < 2
        violation = first_violation("at most 1", np.abs(result) > 1, lambda i: f"{float(result[i])!r}")
        values = (bound.value for bound in applied.recurrent(cell.name, inputs, state_bias, ideal))
        limits = [value for value in values if value is not None and value < 2]
        limit = limits[-1] if limits else None  # they grow
        margin, outside = compare(result, ideal, np.where(stated, error, np.inf), limit, len(limits))
        whole = cell.reference(*(example.arrays[name] for name in _NAMES))
        return Outcome(whole, result, ideal, violation or outside, float(stated.mean()), margin)

    return evaluate


def _evaluate_before_2022(cell: Cell) -> Callable[[Example], Outcome]:
    def evaluate(example: Example) -> Outcome:
        inputs, state_bias = inputs_of(example), example.parameters["state_bias"]
        before = run_layer(cell, inputs, state_bias, FlexAsrOptions(saturation="pre2022"))
        today = run_layer(cell, inputs, state_bias)
        violation = first_violation(
            "unchanged",
            before.codes != today.codes,
            lambda i: f"{float(before.values[i])!r} before the correction, {float(today.values[i])!r} after it",
        )
        whole = cell.reference(*(example.arrays[name] for name in _NAMES))
        return Outcome(whole, before.values, cell.reference(*(q.values for q in inputs)), violation)

    return evaluate


def _campaign(cell: Cell) -> Campaign:
    return Campaign(
        name=f"flexasr_{cell.name}",
        summary=f"FlexASR {cell.name.upper()} layer",
        reference=f"the hidden states of {cell.name.upper()}, float64, with states never rounded",
        property=(
            "each element is at most 1 in magnitude, and within a derived bound of the exact result on the quantised "
            "inputs; the bound grows from timestep to timestep, and nothing is said from where it reaches 2"
        ),
        parameters=_PARAMETERS,
        distributions=_DISTRIBUTIONS,
        make=make_layer(cell),
        evaluate=_evaluate(cell),
        theorems=tuple(operator.name for operator in STEPS[cell.name]),
    )


_PARAMETERS = {
    "timesteps": range(1, 9),
    "input_vectors": range(1, 5),
    "hidden_vectors": range(1, 9),
    "state_bias": range(2, 5),
}
_DISTRIBUTIONS = {
    UNIFORM: "x uniform in [-1, 1), weights and biases uniform in +-1/sqrt(hidden)",
    NORMAL: "x standard normal, weights and biases normal with deviation 1/sqrt(hidden)",
    UNSCALED: "everything uniform in [-1, 1)",
}

CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        *map(_campaign, CELLS.values()),
        Campaign(
            name="flexasr_lstm_pre2022",
            summary="FlexASR LSTM layer as it was before negative numbers saturated to negative ones (2022)",
            reference="the hidden states of LSTM, float64, with states never rounded",
            property="the correction of 2022 changes no hidden state",
            parameters=_PARAMETERS,
            distributions=_DISTRIBUTIONS,
            make=make_layer(CELLS["lstm"]),
            evaluate=_evaluate_before_2022(CELLS["lstm"]),
            expects_violation=True,
        ),
    )
}
