"""Dense and recurrent layers on FlexASR: proved for every size, at fixed shapes, and faults of which none is proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

import bmc.prove
import chc.mapping.prove
from accel_models.flexasr import micro_programs as programs
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Command, Expr, Fragment, Kernel, const, free_variables, substitute
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.flexasr import layers as flexasr_layers
from rewrites.mappings.flexasr import linear as flexasr_linear
from rewrites.mappings.flexasr import recurrent as flexasr_recurrent
from rewrites.mappings.flexasr.layers import LayerProgram
from rewrites.mappings.flexasr.linear import linear_mapping
from rewrites.mappings.flexasr.recurrent import CELLS, recurrent_mapping
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import edited, fault_tests, require_proved

LINEAR, RNN = linear_mapping("relu"), recurrent_mapping("rnn")


def with_program(mapping: TensorMapping, emit: Callable[[LayerProgram], None]) -> TensorMapping:
    """The mapping with another device program."""
    program, device = Kernel(mapping.device.name), mapping.device
    emit(LayerProgram(program, device.ila))
    return replace(mapping, device=Fragment(device.name, device.ila, device.parameters, device.tensors, program))


def linear_program(
    *,
    micro_program: str = programs.linear_program("relu"),
    bias_b: str = "bias_b",
    bias_x: str = "bias_x",
    bias_y: str = "bias_y",
) -> TensorMapping:
    b, m = flexasr_linear.BIASES, flexasr_linear
    matrix = flexasr_layers.Matrix("weights", m.HOST_W, m.HOST_B, flexasr_layers.NI, b["bias_w"], b[bias_x], b[bias_b])
    code = programs.assemble(micro_program)
    return with_program(LINEAR, lambda w: flexasr_layers.emit_layer(w, [matrix], 1, code, b[bias_y]))


def recurrent_program(
    kind: str, micro_program: str, *, swapped: bool = False, states: Sequence[Expr] = (), given: bool = False
) -> TensorMapping:
    """The program of a recurrent layer with another part, from these states; they are ``given`` in the IR."""
    mapping, b, m = recurrent_mapping(kind, given=given), flexasr_recurrent.BIASES, flexasr_recurrent
    matrices = [
        flexasr_layers.Matrix("w", m.HOST_W, m.HOST_B, flexasr_layers.NI, b["bias_w"], b["bias_x"], b["bias_b"]),
        flexasr_layers.Matrix("u", m.HOST_U, m.HOST_C, flexasr_layers.NO << 2, b["bias_u"], b["bias_h"], b["bias_c"]),
    ]
    if swapped:
        matrices[1] = replace(matrices[1], bias=m.HOST_B)
    code = programs.assemble(micro_program)
    gates = len(CELLS[kind][0])
    return with_program(mapping, lambda w: flexasr_layers.emit_layer(w, matrices, gates, code, b["bias_h"], states))


H0, C0 = flexasr_recurrent.HOST_H0, flexasr_recurrent.HOST_C0


def given_program(kind: str, *states: Expr) -> TensorMapping:
    """The program of a layer from given states that stores these."""
    return recurrent_program(kind, CELLS[kind][1], states=states, given=True)


def stored_otherwise(kind: str, state: str, **changes: Callable[[Expr], Expr]) -> TensorMapping:
    """A layer from given states of which one is stored to another place, or from another one."""

    def change(command: Command) -> Command:
        inputs = tuple((n, changes.get(n, lambda e: e)(e)) for n, e in command.inputs)
        return Command(inputs, command.note)

    return edited(recurrent_mapping(kind, given=True), f"store {state} state", change)


def in_first_element(data: Expr) -> Expr:
    """The first vector of the host tensor, whichever was meant."""
    counters = {v: const(0, v.width) for n, v in free_variables(data).items() if n.endswith(("_pe", "_vector"))}
    return substitute(data, counters)


def without(mapping: TensorMapping, text: str) -> TensorMapping:
    """The mapping on a larger domain; at the sample shapes the output begins at vector 0."""
    domain = tuple(c for c in mapping.domain if c[0] != text)
    assert len(domain) == len(mapping.domain) - 1
    return replace(mapping, domain=domain, sizes_of=lambda *shape: mapping.sizes_of(*shape) | {"base": 0})


OVERLAP = "16*ceil(T/16)*ni <= base"
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "linear: no relu": lambda: linear_program(micro_program="inpe r0; outgb r0"),
    "linear: another register is sent": lambda: linear_program(micro_program="inpe r0; relu r0; outgb r1"),
    "linear: the layer bias has the input's AdaptivFloat bias": lambda: linear_program(bias_b="bias_x"),
    "linear: the output has the input's AdaptivFloat bias": lambda: linear_program(bias_y="bias_x"),
    "linear: saturation as before 2022": lambda: linear_mapping(None, FlexAsrOptions(saturation="pre2022")),
    "linear: another sigmoid": lambda: linear_mapping("sigmoid", FlexAsrOptions(sigmoid="B")),
    "linear: the output overwrites the input": lambda: without(LINEAR, OVERLAP),
    "rnn: no hidden state": lambda: recurrent_program("rnn", "inpe r0; inpe r1; tanh r0; outgb r0"),
    "rnn: the product of input and state": lambda: recurrent_program(
        "rnn", "inpe r0; inpe r1; emul r0, r1; tanh r0; outgb r0"
    ),
    "rnn: sigmoid": lambda: recurrent_program("rnn", programs.RNN.replace("tanh", "sigm")),
    "rnn: both matrices with one layer bias": lambda: recurrent_program("rnn", programs.RNN, swapped=True),
    "rnn: the output overwrites the input": lambda: without(RNN, OVERLAP),
    "gru: the update gate turned round": lambda: recurrent_program("gru", programs.GRU.replace("onex r1; ", "")),
    "gru: the state is not kept": lambda: recurrent_program("gru", programs.GRU.replace("store r0; ", "")),
    "lstm: gates in another order": lambda: recurrent_program(
        "lstm", programs.LSTM.replace("tanh r1", "T").replace("sigm r1   ", "tanh r1   ", 1).replace("T", "sigm r1")
    ),
    "lstm: the cell's state is not kept": lambda: recurrent_program("lstm", programs.LSTM.replace("store r0; ", "")),
    "lstm: the output without tanh": lambda: recurrent_program(
        "lstm", programs.LSTM.replace("store r0; tanh r0", "store r0")
    ),
    "rnn from a state: from zeros": lambda: given_program("rnn"),
    "rnn from a state: stored one vector too far": lambda: stored_otherwise("rnn", "hidden", addr_in=lambda a: a + 16),
    "rnn from a state: the first PE alone gets it": lambda: stored_otherwise(
        "rnn", "hidden", addr_in=lambda a: a & 0xFCFFFFFF
    ),
    "rnn from a state: its first vector everywhere": lambda: stored_otherwise(
        "rnn", "hidden", data_in=in_first_element
    ),
    "rnn from a state: the output overwrites the input": lambda: without(recurrent_mapping("rnn", given=True), OVERLAP),
    "gru from a state: the units keep what was there": lambda: given_program("gru", H0),
    "gru from a state: each PE keeps the first one's share": lambda: stored_otherwise(
        "gru", "kept", data_in=in_first_element
    ),
    "gru from a state: kept one vector too far": lambda: stored_otherwise("gru", "kept", addr_in=lambda a: a + 16),
    "gru from a state: the update gate turned round": lambda: recurrent_program(
        "gru", programs.GRU.replace("onex r1; ", ""), states=(H0, H0), given=True
    ),
    "gru from a state: from zeros": lambda: given_program("gru"),
    "lstm from states: hidden and cell state exchanged": lambda: given_program("lstm", C0, H0),
    "lstm from states: the hidden state is the cell's, too": lambda: given_program("lstm", H0, H0),
    "lstm from states: the cell's state is what was there": lambda: given_program("lstm", H0),
    "lstm from states: from zeros": lambda: given_program("lstm"),
    "lstm from states: each PE keeps the first one's share": lambda: stored_otherwise(
        "lstm", "kept", data_in=in_first_element
    ),
}


QUICK = ("linear: no relu", "rnn: sigmoid")


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


def test_a_dense_layer_is_proved_for_every_size() -> None:
    verdict = require_proved(linear_mapping("relu"))
    assert any("core_input with ir.depth" in level for level in verdict.invariants)


@pytest.mark.slow
@pytest.mark.parametrize("given", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("kind", CELLS)
def test_a_recurrent_layer_is_proved_for_every_size(kind: str, given: bool) -> None:
    verdict = chc.mapping.prove.prove(recurrent_mapping(kind, given=given))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize(
    "mapping,shape",
    [(LINEAR, (2, 16, 64)), pytest.param(RNN, (2, 16, 64), marks=pytest.mark.slow)],
    ids=["linear", "rnn"],
)
def test_a_layer_is_proved_at_a_shape(mapping: TensorMapping, shape: tuple[int, ...]) -> None:
    verdict = bmc.prove.prove(mapping, shape, data="uninterpreted")
    assert verdict.status is Status.PROVED, verdict.reason


def test_shapes_that_do_not_fit_are_refused() -> None:
    for shape, message in (
        ((1, 17, 64), "Input features of shape 1x17x64 of a FlexASR linear mapping must be a multiple of 16"),
        ((1, 16, 65), "Output features of shape 1x16x65 of a FlexASR linear mapping must be a multiple of 64"),
        ((70000, 16, 64), "Rows of shape 70000x16x64 of a FlexASR linear mapping must be 1 to 65535"),
        ((20000, 160, 64), "Vectors of input and output of shape 20000x160x64"),
    ):
        with pytest.raises(SizeError, match=message):
            LINEAR.sizes_for(shape)
    with pytest.raises(SizeError, match="must be ROWSxFEATURES_INxFEATURES_OUT, not 2x32"):
        LINEAR.sizes_for((2, 32))
