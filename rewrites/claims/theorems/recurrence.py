"""Recurrent layers over time: the step's bound, applied to its own result.

The error of a state never shrinks in the bound (every step's formula grows with the errors before it, and the first
starts from 0), so the bound of the last timestep holds for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from rewrites.bounds.derivations.calculus import Bound, evaluate

from .flexasr import STEPS

_ROUNDING = Fraction(1, 1 << 40)


def _up(value: Fraction) -> Fraction:
    """The next multiple of 2^-40: keeps numbers short over many steps."""
    return -(-value // _ROUNDING) * _ROUNDING


def over_time(kind: str, ranges: Mapping[str, float | Fraction], steps: int) -> list[Bound]:
    """The bounds of the hidden state after 1 .. ``steps`` timesteps, from exact zeros; they end where one fails.

    For an LSTM the largest cell state before timestep t is at most t; a given C is taken for all of them.

    Raises KeyError on another kind than rnn, gru or lstm.
    """
    operators = STEPS[kind]
    values: dict[str, float | Fraction] = {**ranges, "e_h": Fraction(0)}
    if kind == "lstm":
        values["e_c"] = Fraction(0)
    over_steps: list[Bound] = []
    for step in range(steps):
        if kind == "lstm" and "C" not in ranges:
            values["C"] = Fraction(step)
        bounds = []
        for operator in operators:
            own = operator.values({n: v for n, v in values.items() if n in operator.symbols})
            bounds.append(evaluate(operator.error, operator.conditions, own))
        errors = [b.value for b in bounds]
        unmet = tuple(dict.fromkeys(c for b in bounds for c in b.unmet))
        if unmet or errors[0] is None:
            over_steps.append(Bound(None, unmet, operators[0].name))
            break
        over_steps.append(Bound(_up(errors[0]), (), operators[0].name))
        values["e_h"] = _up(errors[0])
        if kind == "lstm" and errors[1] is not None:
            values["e_c"] = _up(errors[1])
    return over_steps
