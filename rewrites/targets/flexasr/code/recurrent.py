"""``flexasr.lstm``, ``flexasr.gru`` and ``flexasr.rnn``: recurrent layers on FlexASR's processing elements.

``flexasr.lstm_from`` and so on begin with given states.

One program runs all timesteps.  Inputs are padded with zeros to 16 features and the state to 64, each gate by itself,
which is proved to have no effect.  Nothing is split: all gates of a state belong to one program.

x goes to the accelerator as x 2^-s and W as W 2^s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from accel_models.flexasr.layout import LANES
from ila_lang.mapping import SizeError
from ir_semantics import reference
from ir_semantics.graph import Node, TensorType
from rewrites.bounds.derivations.calculus import Bound
from rewrites.bounds.elementwise import FLOAT_ERROR
from rewrites.claims.joints.scaled import SCALED
from rewrites.claims.joints.zeros import ZEROS
from rewrites.claims.theorems import applied
from rewrites.compiler.codegen.bounding import bounds_of, condition_text, operand_error, row_sum
from rewrites.compiler.codegen.floats import Piece
from rewrites.compiler.codegen.formats import check_scale, greatest, range_of, rounded_up
from rewrites.compiler.codegen.interface import Bounds, Call, CannotOffload, Executed, Options, Part, Ranges, Reals
from rewrites.compiler.codegen.parts import require_elements
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr.claims import RECURRENT, RECURRENT_FROM
from rewrites.mappings.flexasr.operations import GATES
from rewrites.rules.tensor.scales import Scaling

from .adaptive import AdaptiveCodes, AdaptiveFloats, adaptive_bias, adaptive_scale

FEATURES = 64
GATED = ("w", "u", "b", "d")
"""The operands that are stacked gates."""
_NOTHING_IS_SAID = "states may be off by 2 or more, and lie in -1 .. 1"
_NOTHING = "rounding may change a state by 2 or more, and states lie in -1 .. 1"


class Recurrent(AdaptiveFloats):
    """Recurrent layers.

    Their quantisation: ``bias_x``, ``bias_w``, ``bias_b`` (of the bias beside x), ``bias_u``, ``bias_c`` (of the bias
    beside the state), ``bias_h`` (of all states) and ``scale_x``.  Ranges: ``x``, ``w``, ``u``, ``b``, ``d``, ``state``
    (of hidden and cell states), ``products`` and ``hidden`` (of W x and of U h), and of given states ``h`` and ``c``.
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "w", "u", "b", "d")
    layers: ClassVar[Mapping[str, MappingClaim]] = RECURRENT
    scalings: ClassVar[tuple[Scaling, ...]] = tuple(SCALED.values())

    @property
    def scaling(self) -> Scaling:
        """That of the kind of layer."""
        return SCALED[_kind(self.node)]

    @classmethod
    def split(cls, node: Node, types: Sequence[TensorType]) -> dict[str, int]:
        """The sizes of the mapping for these shapes; raises CannotOffload where the layer does not fit."""
        (rows, features), hidden = types[0].shape, types[2].shape[1]
        require_elements(node, "FlexASR", rows, features, hidden)
        shape = rows, -(-features // LANES) * LANES, -(-hidden // FEATURES) * FEATURES
        try:
            return cls.layers[_kind(node)].mapping.sizes_for(shape)
        except SizeError as error:
            raise CannotOffload(f"{node.operator} does not fit, and the compiler does not split it. {error}") from error

    def _calls(self) -> Sequence[Call]:
        sizes = self.split(self.node, self.types)
        check_scale(self.quantisation["scale_x"], "x")
        layer = self.layers[_kind(self.node)]
        biases = {name: self.quantisation[name] for name in layer.mapping.parameters if name.startswith("bias_")}
        x, h = (0, sizes["ni"] * LANES), (0, sizes["no"] * FEATURES)
        gates = (0, len(GATES[_kind(self.node)]))
        parts = {
            "x": ((0, sizes["T"]), x),
            "w": (gates, h, x),
            "u": (gates, h, h),
            "b": (gates, h),
            "d": (gates, h),
            **dict.fromkeys(self.operands[5:], ((0, 1), h)),
            "y": ((0, sizes["T"]), h),
        }
        return [Call(layer, {**sizes, **biases}, parts, (ZEROS[_kind(self.node)],))]

    # -- number formats ----------------------------------------------------------------------------

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host; those of states are computed here."""
        x, w, u, b, d, *first = operands
        hidden, cells = _exact(_kind(node), operands)
        named = {"x": x, "w": w, "u": u, "b": b, "d": d, "products": x @ w.T, "hidden": hidden @ u.T}
        named |= dict(zip(("h", "c"), first, strict=False))
        return {name: greatest(values) for name, values in named.items()} | {
            "state": max(map(greatest, (hidden, cells, *first)))
        }

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges."""
        names = ("x", "w", "u", "b", "d", "state", "products", "hidden")
        r = {name: range_of(ranges, name) for name in names}
        scale = adaptive_scale(r["x"], options, options.margin)
        q = {
            "bias_x": adaptive_bias(r["x"] * 2.0**-scale, options, options.margin),
            "bias_w": adaptive_bias(r["w"] * 2.0**scale, options),
            "bias_b": adaptive_bias(r["b"], options),
            "bias_u": adaptive_bias(r["u"], options),
            "bias_c": adaptive_bias(r["d"], options),
            "bias_h": adaptive_bias(r["state"], options, options.margin),
            "scale_x": scale,
        }
        # accumulators have 28 - (sum of both biases) fraction bits in 32
        for reached, weights in (("products", "bias_w"), ("hidden", "bias_u")):
            other = "bias_x" if weights == "bias_w" else "bias_h"
            while r[reached] * options.margin >= 8 * 2.0 ** (q[weights] + q[other]) and q[weights] < 7:
                if options.as_published:
                    break
                q[weights] += 1
        return q

    def _format(self, name: str) -> AdaptiveCodes:
        q = self.quantisation
        scales = {"x": q["scale_x"], "w": -q["scale_x"]}
        biases = {"d": "bias_c", "c": "bias_h", "y": "bias_h"}
        return AdaptiveCodes(q[biases.get(name, f"bias_{name}")], scales.get(name, 0))

    # -- execution ---------------------------------------------------------------------------------

    def _host_tensor(self, name: str) -> str:
        return {"d": "host_c", "h": "host_h0", "c": "host_c0"}.get(name) or super()._host_tensor(name)

    def _pieces(self, name: str, part: Part) -> list[Piece]:
        """Rows of each gate in the order of the cores, with zeros up to the rows of the part."""
        if name not in GATED:
            return super()._pieces(name, part)
        hidden, wide = self.types[2].shape[1], part[1][1]
        order = GATES[_kind(self.node)]
        return [Piece(j * hidden, (j + 1) * hidden, place * wide, wide) for place, j in enumerate(order)]

    def cut(self, executed: Executed, exact: Reals) -> int:
        """Hidden states beyond their format, or with a cell state (of an LSTM) beyond it."""
        states = _exact(_kind(self.node), [executed.quantised[name] for name in self.operands])
        return self._format("y").beyond(np.maximum(*map(np.abs, states)))

    def bounds(self, executed: Executed) -> Bounds:
        """The largest bound of all timesteps, and what rounding the operands may change."""
        kind = _kind(self.node)
        codes = [self._quantised(name, executed.given[name]) for name in self.operands]
        if codes[5:] and max(greatest(codes[5].values), greatest(executed.given["h"])) > 1:
            return Bounds(None, None, "the first hidden state is beyond 1, which no later one is")
        states, _ = _exact(kind, [q.values for q in codes])
        bias = self._format("y").bias
        over_time = applied.recurrent(kind, codes, bias, states)
        each = applied.recurrent_elements(kind, codes, bias).error
        last = over_time[-1]
        whole = last.value if last.value is not None and len(over_time) == len(states) else math.inf
        own = min(whole, greatest(each))
        if not own < 2:
            stated = [
                e < 2 or (k < len(over_time) and (over_time[k].value or 2) < 2) for k, e in enumerate(each.max(1))
            ]
            why = condition_text(last) or _NOTHING
            return Bounds(None, None, f"from timestep {[*stated, False].index(False)} on: {why}")
        bound, change = Bound(Fraction(own), (), last.theorem), recurrent_change(kind, executed)
        if change + float(own) >= 2:
            return replace(bounds_of(bound, 0.0, elements=each), on_given=None, reason=_NOTHING)
        return bounds_of(bound, change, elements=each)

    def bounds_in(self, ranges: Ranges) -> Bounds:
        """The theorem over as many timesteps, or any number, at these ranges, with the weights that are constants.

        Gates are at most what the logistic function is at the largest sum in front of it.
        """
        if not {"w", "u", "b", "d"} <= self._bound.keys():
            return Bounds(None, None, "its weights are no constants")
        if ranges.get("h", 0.0) > 1:
            return Bounds(None, None, "the first hidden state may be beyond 1, which no later one is")
        kind, scale = _kind(self.node), self._format("x").scale
        w, u, b, d = (self.constant_of(name) for name in ("w", "u", "b", "d"))
        rows = reached_hidden = row_sum(u)
        if not self.operands[5:]:  # states in front of later steps are what earlier ones gave
            reached_hidden = min(rows, ranges["hidden"] + FLOAT_ERROR)
        reached = ranges["products"] + greatest(b), reached_hidden + greatest(d)
        gate = 1 / (1 + math.exp(-sum(reached))) + FLOAT_ERROR
        cell = {"lstm": {"F": gate, "C": ranges["state"] + FLOAT_ERROR}, "gru": {"F": gate, "E": gate}}
        symbols = {
            "I": w.shape[1],
            "W": math.ldexp(row_sum(w), scale),
            "w": math.ldexp(greatest(w), scale),
            "X": math.ldexp(ranges["x"], -scale),
            "B": greatest(b),
            "S": ranges["products"],
            "H": u.shape[1],
            "u": greatest(u),
            "U": rows,
            "R": reached_hidden,
            "D": greatest(d),
            **{f"b_{name}": self.quantisation[f"bias_{name}"] for name in "wxuh"},
            **cell.get(kind, {}),
        }
        first = Fraction(ranges[self.operands[-1]]) if self.operands[5:] else None
        bound = applied.recurrent_in(kind, symbols, self.node.type.shape[0], first)
        if bound.value is not None and bound.value >= 2:
            return Bounds(None, None, _NOTHING_IS_SAID)
        return replace(bounds_of(bound, math.inf), declared=f"how {self.node.operator}'s errors grow with timesteps")


class RecurrentFrom(Recurrent):
    """Those from a given state, h."""

    operands: ClassVar[tuple[str, ...]] = (*Recurrent.operands, "h")
    layers: ClassVar[Mapping[str, MappingClaim]] = RECURRENT_FROM


class LstmFrom(RecurrentFrom):
    """An LSTM from given states, h and c."""

    operands: ClassVar[tuple[str, ...]] = (*RecurrentFrom.operands, "c")


def _kind(node: Node) -> str:
    return node.operator.removeprefix("flexasr.").removesuffix("_from")


def _exact(kind: str, operands: Sequence[Reals]) -> tuple[Reals, Reals]:
    """The hidden and the cell states of the layer (those of GRU and RNN are one) in float64."""
    if kind == "lstm":
        return reference.lstm(*operands)
    states = (reference.gru if kind == "gru" else reference.rnn)(*operands)
    return states, states


def recurrent_change(kind: str, executed: Executed) -> float:
    """What rounding the operands may change in any state of a recurrent layer; infinite where it says nothing.

    Let e bound the change of the hidden state before a timestep; at first it is what rounding a given state changes, as
    c_e is of a cell state.  W x + b changes by at most a, and U h + d by at most p = u e + r, u being the largest row
    sum of the rounded U, and r what rounding U and d changes for states in -1 .. 1.
    A gate's sum changes by g = a + p, sigmoid of it by at most g / 4, tanh by at most g.  All of them lie in -1 .. 1;
    gates, and their distances from 1, are at most F, what sigmoid is at the largest sum, and g / 4 more when rounded.

    * RNN: h' changes by at most g.
    * LSTM: c' = f c + i n by at most F c_e + C g / 4 + g / 4 + F g, with c_e the change of c, and C the largest c; and
      h' = o tanh c' by at most F times that plus g / 4.
    * GRU: n = tanh(W x + b + r (U h + d)) by at most m = a + Q g / 4 + F p, with Q the largest U h + d; and
      h' = (1 - z) n + z h by at most 2 g / 4 + max(m, e), and by at most 2 g / 4 + F m + F e.
    """
    operands, rounded = executed.given, executed.quantised
    a = row_sum(rounded["w"]) * operand_error(executed, "x")
    a += row_sum(rounded["w"] - operands["w"]) * greatest(operands["x"]) + operand_error(executed, "b")
    r = row_sum(rounded["u"] - operands["u"]) + operand_error(executed, "d")
    u = row_sum(rounded["u"])
    hidden, cells = _exact(kind, list(operands.values()))
    before = np.vstack([operands.get("h", np.zeros((1, hidden.shape[1]))), hidden[:-1]])
    largest_cell = max(greatest(cells), greatest(operands["c"]) if "c" in operands else 0.0) + FLOAT_ERROR
    sums = before @ operands["u"].T + operands["d"]
    largest_sum = greatest(sums) + FLOAT_ERROR
    reached = greatest(sums + operands["x"] @ operands["w"].T + operands["b"])
    gate = 1 / (1 + math.exp(-reached)) + FLOAT_ERROR
    e, cell = (operand_error(executed, name) if name in operands else 0.0 for name in ("h", "c"))
    most = 0.0  # what rounding changes in given states may vanish with time
    for _ in range(len(hidden)):
        p = u * e + r
        g = a + p
        factor = min(gate + g / 4, 1.0)
        if kind == "rnn":
            e = g
        elif kind == "lstm":
            cell = factor * (cell + g) + largest_cell * g / 4 + g / 4
            e = factor * cell + g / 4
        else:
            m = a + largest_sum * g / 4 + factor * p
            e = g / 2 + min(max(m, e), factor * (m + e))
        e, cell = rounded_up(e), rounded_up(cell)
        most = max(most, e)
    return most if most < 2 else math.inf
