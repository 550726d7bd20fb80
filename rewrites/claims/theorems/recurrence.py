"""Recurrent layers over time: the step's bound, applied to its own result.

Every step's formula grows with the errors before it, and the first ones are 0, so that bounds grow from step to step
where ranges stay as they are.  Those of cell states may become smaller, and bounds with them: then the largest one up
to a timestep is taken.

Errors that one step does not enlarge bound the state after *any number* of timesteps: they are at
least the exact zeros at the start, and what a step makes of smaller errors is at most what it makes of them
(induction).  That formulas and the left sides of conditions grow with errors is read off them (:func:`grows`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from rewrites.bounds.derivations.calculus import Bound, Operator, evaluate
from rewrites.bounds.kernel.formula import Formula, symbols_of

from .flexasr import STEPS, STEPS_FROM

_ROUNDING = Fraction(1, 1 << 40)


def _up(value: Fraction) -> Fraction:
    """The next multiple of 2^-40: keeps numbers short over many steps."""
    return -(-value // _ROUNDING) * _ROUNDING


def over_time(
    kind: str, ranges: Mapping[str, float | Fraction], steps: int, first: Fraction | None = None
) -> list[Bound]:
    """The bounds of all hidden states up to timestep 1 .. ``steps``; they end where one fails.

    The layer begins with exact states: zeros, or ``first`` is the largest magnitude of a cell state.  Without a given
    C, an LSTM's cell states are at most what the theorem says of them, from one step to the next.

    Raises KeyError on another kind than rnn, gru or lstm.
    """
    operators = (STEPS if first is None else STEPS_FROM)[kind]
    errors, over_steps = [Fraction(0)] * len(operators), list[Bound]()
    cell, computed = first or Fraction(0), kind == "lstm" and "C" not in ranges
    for _ in range(steps):
        bounds = _step(operators, {**ranges, **({"C": cell} if computed else {})}, errors)
        cell = _up(_cell_after(operators, ranges, cell)) if computed else cell
        over_steps.append(bounds[0])
        if any(b.value is None for b in bounds):
            unmet = tuple(dict.fromkeys(c for b in bounds for c in b.unmet))
            over_steps[-1] = Bound(None, unmet, bounds[0].theorem)
            break
        errors = [b.value for b in bounds if b.value is not None]
        over_steps[-1] = max(over_steps[-2:], key=_value)
    return over_steps


def _value(bound: Bound) -> Fraction:
    assert bound.value is not None, "bounds end where one fails"
    return bound.value


def _step(
    operators: Sequence[Operator], ranges: Mapping[str, float | Fraction], errors: Sequence[Fraction]
) -> list[Bound]:
    """The bounds of hidden and cell state behind a step, from those in front of it."""
    values = {**ranges, **dict(zip(ERRORS, errors, strict=False))}
    bounds = []
    for operator in operators:
        own = operator.values({n: v for n, v in values.items() if n in operator.symbols})
        bound = evaluate(operator.error, operator.conditions, own)
        bounds.append(Bound(None if bound.value is None else _up(bound.value), bound.unmet, operator.name))
    return bounds


def _cell_after(operators: Sequence[Operator], ranges: Mapping[str, float | Fraction], before: Fraction) -> Fraction:
    """What cell states are at most behind a step in front of which they are at most ``before``."""
    return operators[-1].defaults["V"].evaluate({"F": Fraction(1), **_exactly(ranges), "C": before})


def _largest_cell(
    operators: Sequence[Operator], ranges: Mapping[str, float | Fraction], first: Fraction
) -> Fraction | None:
    """What cell states are at most after any number of steps: no step enlarges it; None where gates may be 1."""
    gate = Fraction(ranges.get("F", 1))
    if gate >= 1:
        return None
    most = max(first, _up(gate / (1 - gate)))
    return most if _cell_after(operators, ranges, most) <= most else None


def _exactly(ranges: Mapping[str, float | Fraction]) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in ranges.items()}


ERRORS = ("e_h", "e_c")
"""The symbols of the errors of hidden and cell state in front of a step."""
_TRIED, _ROOM = 32, Fraction(65, 64)


def steady(kind: str, ranges: Mapping[str, float | Fraction], first: Fraction | None = None) -> Bound | None:
    """The bound of the hidden state after any number of timesteps; None where none is found.

    The layer begins with exact zeros, or with exact states, and ``first`` is the largest magnitude of a cell state.

    It is looked for where errors of some steps lead, and is one that a step does not enlarge.  Ranges must hold at all
    timesteps; without a C, an LSTM's cell states are bounded by F / (1 - F).  There is none where gates may be 1, or
    rows of hidden weights are large.  Raises KeyError on another kind than rnn, gru or lstm.
    """
    operators = (STEPS if first is None else STEPS_FROM)[kind]
    for operator in operators:
        left = (c.left for c in operator.conditions)
        right = set().union(*(symbols_of(c.right) for c in operator.conditions))
        if right & {*ERRORS} or not all(grows(f, ERRORS) for f in (operator.error, *left)):
            return None
    if kind == "lstm" and "C" not in ranges:
        cell = _largest_cell(operators, ranges, first or Fraction(0))
        if cell is None:
            return None
        ranges = {**ranges, "C": cell}
    before, now = [Fraction(0)] * len(operators), [Fraction(0)] * len(operators)
    for _ in range(_TRIED):
        bounds = _step(operators, ranges, now)
        after = [b.value for b in bounds if b.value is not None]
        if len(after) < len(operators):
            return None
        guess = [_up(_limit(*each) * _ROOM) for each in zip(before, now, after, strict=True)]
        reached = _step(operators, ranges, guess)
        if all(b.value is not None and b.value <= g for b, g in zip(reached, guess, strict=True)):
            return Bound(guess[0], (), operators[0].name)
        before, now = now, after
    return None


def _limit(before: Fraction, now: Fraction, after: Fraction) -> Fraction:
    """Where three numbers lead that grow by a factor below 1; otherwise twice the last one."""
    one, other = now - before, after - now
    return now + one * one / (one - other) if one > other >= 0 else 2 * after


def grows(f: Formula, names: Collection[str]) -> bool:
    """Whether it can be seen that a formula does not decrease in some symbols, all symbols being at least 0."""
    if symbols_of(f).isdisjoint(names) or f.op == "symbol":
        return True
    if f.op == "*" and not all(_nonnegative(g) for g in f.args):
        return False
    return f.op in ("+", "*", "max", "min", "half_step") and all(grows(g, names) for g in f.args)


def _nonnegative(f: Formula) -> bool:
    if f.op in ("symbol", "2^", "half_step"):
        return True
    if f.op == "constant":
        return f.value >= 0
    signs = [_nonnegative(g) for g in f.args]
    return any(signs) if f.op == "max" else f.op in ("+", "*", "min") and all(signs)
