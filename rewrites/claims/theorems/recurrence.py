"""Recurrent layers over time: the step's bound, applied to its own result.

The error of a state never shrinks in the bound (every step's formula grows with the errors before it, and the first
starts from 0), so the bound of the last timestep holds for all of them.

For the same reason errors that one step does not enlarge bound the state after *any number* of timesteps: they are at
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
    """The bounds of the hidden state after 1 .. ``steps`` timesteps; they end where one fails.

    The layer begins with exact states: zeros, or ``first`` is the largest magnitude of a cell state.  For an LSTM the
    largest cell state before timestep t is at most t more; a given C is taken for all of them.

    Raises KeyError on another kind than rnn, gru or lstm.
    """
    operators = (STEPS if first is None else STEPS_FROM)[kind]
    errors, over_steps = [Fraction(0)] * len(operators), list[Bound]()
    for step in range(steps):
        cell = {"C": step + (first or Fraction(0))} if kind == "lstm" and "C" not in ranges else {}
        bounds = _step(operators, {**ranges, **cell}, errors)
        over_steps.append(bounds[0])
        if any(b.value is None for b in bounds):
            unmet = tuple(dict.fromkeys(c for b in bounds for c in b.unmet))
            over_steps[-1] = Bound(None, unmet, bounds[0].theorem)
            break
        errors = [b.value for b in bounds if b.value is not None]
    return over_steps


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


ERRORS = ("e_h", "e_c")
"""The symbols of the errors of hidden and cell state in front of a step."""
_TRIED, _ROOM = 32, Fraction(65, 64)


def steady(kind: str, ranges: Mapping[str, float | Fraction], *, given: bool = False) -> Bound | None:
    """The bound of the hidden state after any number of timesteps; None where none is found.

    The layer begins with exact zeros, or with exact states that are ``given``.

    It is looked for where errors of some steps lead, and is one that a step does not enlarge.  Ranges must hold at all
    timesteps; an LSTM needs its C.  Raises KeyError on another kind than rnn, gru or lstm.
    """
    operators = (STEPS_FROM if given else STEPS)[kind]
    for operator in operators:
        left = (c.left for c in operator.conditions)
        right = set().union(*(symbols_of(c.right) for c in operator.conditions))
        if right & {*ERRORS} or not all(grows(f, ERRORS) for f in (operator.error, *left)):
            return None
    before, now = [Fraction(0)] * len(operators), [Fraction(0)] * len(operators)
    if kind == "lstm" and "C" not in ranges:
        return None
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
