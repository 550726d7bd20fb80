"""Recurrent layers over row-major tensors, as an instruction of the tensor-IR ILA.

The meaning is one kernel.  At every timestep each feature has, for every gate, a fold over the features of the input
and one over those of the hidden state, both finished by :attr:`RecurrentCell.project`; the cell combines them with its
own state.  Layers begin with a hidden state of zeros, and at the first timestep there is no fold over it; or with given
states, over which there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from ila_lang import Expr, Function, Ila, Kernel, const

from .layer import Layer, bits

RECURRENT_CODE = 17
"""``func_id`` of the instruction of a recurrent layer."""

Combine = Callable[[Sequence[tuple[Expr, Expr]], Expr], tuple[Expr, Expr]]


@dataclass(frozen=True)
class RecurrentCell:
    """How one kind of cell computes with elements of one type.

    ``gates`` are the gates in the order in which weights and biases stack them.  ``step(acc, weight, x)`` accumulates
    a product, beginning with 0; ``project(acc, bias, *parameters)`` finishes a sum.  ``combine`` takes, per gate, what
    the input and the hidden state give, and the cell's state, and returns the new state and the output.  ``widen`` and
    ``narrow`` (with the parameter named ``state``) convert between elements and numbers.

    The cell's state is what it returned last, ``keeps`` "state", or its own output, "output".
    """

    name: str
    gates: Sequence[str]
    step: Function
    project: Function
    widen: Function
    narrow: Function
    combine: Combine
    keeps: str
    inputs: Sequence[str]
    """Parameters of ``project`` for the input's matrix, then those for the hidden state's."""
    hidden: Sequence[str]
    state: str
    parameters: Mapping[str, int] = field(default_factory=dict)


def recurrent_ir(cell: RecurrentCell, *, given: bool = False, index_width: int = 0) -> Ila:
    """The tensor IR as an ILA with one instruction, named as the cell.

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` (timesteps), ``input_features`` and ``features`` (32 bits
    each) and the cell's parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` [T, I], for the
    input ``tensor_weights`` [G*H, I] and ``tensor_bias`` [G*H], for the hidden state ``tensor_hidden_weights`` [G*H, H]
    and ``tensor_hidden_bias`` [G*H], ``tensor_state`` and ``tensor_out`` [T, H].  The first states are zeros, or, if
    ``given``, lie in ``tensor_first_out`` and ``tensor_first_state`` [H].  With ``index_width`` weights are clustered:
    indices of so many bits of ``tensor_table``, or for the hidden state of ``tensor_hidden_table``.
    """
    k = Kernel(cell.name, f"a layer of {cell.name} cells over row-major tensors")
    widths = {"rows": 32, "input_features": 32, "features": 32, **cell.parameters}
    layer = Layer(f"a layer of {cell.name} cells", RECURRENT_CODE, k, widths)
    s = layer.states
    element_width = bits(cell.step.params[1].sort)
    memories = {
        name: layer.tensor(name, index_width if index_width and name.endswith("weights") else element_width, doc)
        for name, doc in (
            ("in", "input"),
            ("weights", "weights of the input, a row per gate and feature"),
            ("bias", "their biases"),
            ("hidden_weights", "weights of the hidden state"),
            ("hidden_bias", "their biases"),
            ("state", "the cells' states by timestep"),
            ("out", "output"),
            *((("first_state", "the cells' states before"), ("first_out", "the output before")) if given else ()),
            *((("table", "what indices stand for"), ("hidden_table", "likewise")) if index_width else ()),
        )
    }

    def weight_at(name: str, of: str, place: Expr) -> Expr:
        weight = k.load(name, memories[f"{of}weights"], place)
        return k.load(f"{name}_looked_up", memories[f"{of}table"], weight.zext(32)) if index_width else weight

    depth, width = s["input_features"], s["features"]
    zero = const(0, bits(cell.step.result))
    with k.loop("row", s["rows"]) as t, k.loop("feature", width) as feature:
        pairs = []
        for number, gate in enumerate(cell.gates):
            place = width * number + feature
            acc = k.let(f"{gate}_acc", zero)
            with k.loop(f"{gate}_depth", depth) as i:
                weight = weight_at(f"{gate}_weight", "", place * depth + i)
                k.assign(acc, cell.step(acc, weight, k.load(f"{gate}_x", memories["in"], t * depth + i)))
            bias = k.load(f"{gate}_bias", memories["bias"], place)
            projected = k.let(f"{gate}_input", cell.project(acc, bias, *(s[n] for n in cell.inputs)))
            again = k.let(f"{gate}_hidden_acc", zero)
            later = k.when(f"{gate}_later", t != 0)
            with nullcontext() if given else later, k.loop(f"{gate}_width", width) as j:
                weight = weight_at(f"{gate}_hidden_weight", "hidden_", place * width + j)
                if given:
                    element = k.let(f"{gate}_before", k.load(f"{gate}_first_h", memories["first_out"], j))
                    with later:
                        k.assign(element, k.load(f"{gate}_h", memories["out"], (t - 1) * width + j))
                else:
                    element = k.load(f"{gate}_h", memories["out"], (t - 1) * width + j)
                k.assign(again, cell.step(again, weight, element))
            bias = k.load(f"{gate}_hidden_bias", memories["hidden_bias"], place)
            pairs.append((projected, cell.project(again, bias, *(s[n] for n in cell.hidden))))
        kept, first = ("state" if cell.keeps == "state" else "out"), const(0, bits(cell.project.result))
        if cell.keeps and given:
            first = cell.widen(k.load("state_first_code", memories[f"first_{kept}"], feature), s[cell.state])
        state = k.let("state", first)
        if cell.keeps:
            with k.when("state_later", t != 0):
                code = k.load("state_code", memories[kept], (t - 1) * width + feature)
                k.assign(state, cell.widen(code, s[cell.state]))
        new, output = cell.combine(pairs, state)
        if cell.keeps == "state":
            k.store(memories["state"], t * width + feature, cell.narrow(new, s[cell.state]))
        k.store(memories["out"], t * width + feature, cell.narrow(output, s[cell.state]))
    return layer.finished()
