"""Dense and recurrent layers: linear, RNN, GRU and LSTM.

Any number of features is padded to whole vectors.  Padded outputs of a recurrent layer may become other than zero
(tanh(0) is 2^-10); the weights that would carry them on are zero, and they are not read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.quantise import Quantised, check_bias

from .activation import GRU, LSTM, RNN, assemble, linear_program
from .commands import Assembled
from .processing import Layer, Matrix
from .tiling import AssemblyError, check_rank, check_shape, output_vectors, vectors

__all__ = ["GRU_GATES", "LSTM_GATES", "gru", "linear", "lstm", "rnn"]

LSTM_GATES = "ifgo"  # input, forget, candidate, output
GRU_GATES = "rzn"  # reset, update, candidate
# Orders in which the micro-programs take the gates from the core.
_LSTM_CORE = "igfo"
_GRU_CORE = "rnz"


def linear(
    x: Quantised,
    w: Quantised,
    b: Quantised | None = None,
    *,
    output_bias: int,
    activation: str | None = None,
    clustered: bool = False,
    output_base: int | None = None,
) -> Assembled:
    """activation(x w^T + b) for x [T, I], w [O, I] and b [O], as codes [T, O] of AdaptivFloat bias ``output_bias``.

    ``activation`` is None, "relu", "sigmoid" or "tanh".  With ``clustered``, the PEs look weights up in tables of 16.
    ``output_base`` is the vector of the large buffer where the output begins; by default it follows the input.

    Raises AssemblyError where shapes do not agree or something does not fit, with the limit.
    """
    check_rank("x", x, "T, I")
    check_rank("w", w, "O, I")
    outputs, inputs = w.shape[0], x.shape[1]
    check_shape("w", w, (outputs, inputs))
    if b is not None:
        check_shape("b", b, (outputs,))
    matrix = Matrix(
        "w",
        w.codes[None],
        w.bias,
        None if b is None else b.codes[None],
        0 if b is None else b.bias,
        vectors(inputs),
        x.bias,
    )
    program = assemble(linear_program(activation))
    layer = Layer(x, outputs, [matrix], check_bias(output_bias, "output_bias"), program, clustered)
    return layer.assemble(output_base)


def rnn(
    x: Quantised,
    w_input: Quantised,
    w_hidden: Quantised,
    b_input: Quantised | None = None,
    b_hidden: Quantised | None = None,
    *,
    state_bias: int,
    initial: Quantised | None = None,
    clustered: bool = False,
    output_base: int | None = None,
) -> Assembled:
    """h_t = tanh(W x_t + b + U h_(t-1) + c) for all timesteps, as codes [T, H] of AdaptivFloat bias ``state_bias``.

    x is [T, I], ``w_input`` W [H, I], ``w_hidden`` U [H, H], ``b_input`` b and ``b_hidden`` c are [H].  ``initial`` is
    h before the first timestep, codes [H] of bias ``state_bias``; zero by default.  See :func:`linear` for the rest.
    """
    cell = _Cell("h", "h", "h", x, w_input, w_hidden, b_input, b_hidden, state_bias)
    state = None if initial is None else (cell.state("initial", initial), None)
    return cell.layer(RNN, state, clustered).assemble(output_base)


def gru(
    x: Quantised,
    w_input: Quantised,
    w_hidden: Quantised,
    b_input: Quantised | None = None,
    b_hidden: Quantised | None = None,
    *,
    state_bias: int,
    gates: str = GRU_GATES,
    initial: Quantised | None = None,
    clustered: bool = False,
    output_base: int | None = None,
) -> Assembled:
    """The hidden states of a gated recurrent unit, as codes [T, H] of AdaptivFloat bias ``state_bias``.

    ``w_input`` [3H, I], ``w_hidden`` [3H, H], ``b_input`` and ``b_hidden`` [3H] stack the gates in the order ``gates``:
    reset, update and candidate by default ("zrn" is ONNX's).  The reset gate acts after the hidden product:
    n = tanh(W_n x + b_n + r * (U_n h + c_n)), h' = (1 - z) * n + z * h.  See :func:`rnn` for the rest.
    """
    cell = _Cell(gates, GRU_GATES, _GRU_CORE, x, w_input, w_hidden, b_input, b_hidden, state_bias)
    state = None if initial is None else (cell.state("initial", initial),) * 2  # the unit keeps h, too
    return cell.layer(GRU, state, clustered).assemble(output_base)


def lstm(
    x: Quantised,
    w_input: Quantised,
    w_hidden: Quantised,
    b_input: Quantised | None = None,
    b_hidden: Quantised | None = None,
    *,
    state_bias: int,
    gates: str = LSTM_GATES,
    initial: tuple[Quantised, Quantised] | None = None,
    clustered: bool = False,
    output_base: int | None = None,
) -> Assembled:
    """The hidden states of a long short-term memory, as codes [T, H] of AdaptivFloat bias ``state_bias``.

    ``w_input`` [4H, I], ``w_hidden`` [4H, H], ``b_input`` and ``b_hidden`` [4H] stack the gates in the order ``gates``:
    input, forget, candidate and output by default ("iofg" is ONNX's).  Hidden and cell state share ``state_bias`` (2 in
    published drivers): the cell state, too, is rounded to a code after every timestep.  ``initial`` is the pair of
    hidden and cell state before the first timestep, zero by default.  See :func:`rnn` for the rest.
    """
    cell = _Cell(gates, LSTM_GATES, _LSTM_CORE, x, w_input, w_hidden, b_input, b_hidden, state_bias)
    state = None
    if initial is not None:
        state = cell.state("The initial hidden state", initial[0]), cell.state("The initial cell state", initial[1])
    return cell.layer(LSTM, state, clustered).assemble(output_base)


class _Cell:
    """The checked tensors of a recurrent layer, with the gates in the order ``core``."""

    def __init__(
        self,
        given: str,
        standard: str,
        core: str,
        x: Quantised,
        w_input: Quantised,
        w_hidden: Quantised,
        b_input: Quantised | None,
        b_hidden: Quantised | None,
        state_bias: int,
    ) -> None:
        if sorted(given) != sorted(standard):
            raise AssemblyError(f"gates must be an order of {', '.join(standard)}, not {given!r}")
        check_rank("x", x, "T, I")
        check_rank("w_hidden", w_hidden, f"{len(core)}H, H" if len(core) > 1 else "H, H")
        self.x, self.hidden = x, w_hidden.shape[1]
        self.state_bias = check_bias(state_bias, "state_bias")
        rows = len(core) * self.hidden
        check_shape("w_hidden", w_hidden, (rows, self.hidden))
        check_shape("w_input", w_input, (rows, x.shape[1]))
        zeros = Quantised(np.zeros(rows, np.uint8), 0)
        biased = b_input is not None or b_hidden is not None  # the core adds both or none
        order = [given.index(gate) for gate in core]

        def by_gate(tensor: Quantised) -> NDArray[np.uint8]:
            return tensor.codes.reshape(len(core), self.hidden, *tensor.shape[1:])[order]

        def matrix(
            what: str, w: Quantised, b: Quantised | None, operand: int, operand_bias: int, hidden: bool
        ) -> Matrix:
            b = zeros if b is None else b
            check_shape(f"b_{what}", b, (rows,))
            biases = by_gate(b) if biased else None
            return Matrix(f"w_{what}", by_gate(w), w.bias, biases, b.bias, operand, operand_bias, hidden)

        self.matrices = [
            matrix("input", w_input, b_input, vectors(x.shape[1]), x.bias, False),
            matrix("hidden", w_hidden, b_hidden, output_vectors(self.hidden), self.state_bias, True),
        ]

    def state(self, name: str, state: Quantised) -> NDArray[np.uint8]:
        """The codes of a state; raises AssemblyError where it does not fit the layer."""
        check_shape(name, state, (self.hidden,))
        if state.bias != self.state_bias:
            raise AssemblyError(
                f"{name} must have the AdaptivFloat bias of the layer's states, {self.state_bias}, not {state.bias}; "
                f"quantise it with bias={self.state_bias}"
            )
        return state.codes

    def layer(
        self, program: str, initial: tuple[NDArray[np.uint8], NDArray[np.uint8] | None] | None, clustered: bool
    ) -> Layer:
        return Layer(self.x, self.hidden, self.matrices, self.state_bias, assemble(program), clustered, initial)
