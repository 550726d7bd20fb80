"""Loops of both sides that run in lock-step: what must hold, and the counters of one side in terms of the other's."""

from __future__ import annotations

from collections.abc import Sequence

from chc.mapping.arithmetic.exact import equal
from chc.mapping.horn.align import AlignedLevel
from chc.mapping.horn.systems import Track
from chc.mapping.memory.contexts import Context
from chc.mapping.program.writes import Loops
from ila_lang import Expr, const, resize
from smt_encodings.environment import plain


def meet(context: Context, levels: Sequence[AlignedLevel], device: Track, ir: Track) -> bool:
    """Whether both sides meet what is tracked at one time in all samples; loops that run the other way do not."""
    assert device.at is not None and ir.at is not None
    digits = [equal(device.at[k.device], k.digit(ir.at[k.ir])) for k in levels if k.digit is not None]
    return all(map(all, context.samples.evaluate(digits)))


def lock_step(
    context: Context, inside: Context, label: str, levels: Sequence[AlignedLevel], device: Track, ir: Track
) -> None:
    """The loops of both sides run equally often, and what is tracked in them, at ``inside``, is met at one time."""
    assert device.at is not None and ir.at is not None
    for level in levels:
        counter = plain(device.loops[level.device][0].name)
        context.theorem(
            "lock-step",
            f"{label}: {counter} and {level.name} run equally often",
            level.equal,
            "both loops have the same extent (or one is the product of two)",
        )
        if level.digit is not None:  # otherwise the other side's counter is composed of this one
            inside.theorem(
                "lock-step",
                f"{label}: {counter} and {level.name} meet the index together",
                equal(device.at[level.device], level.digit(ir.at[level.ir])),
                "one iteration of both loops, taken together, accumulates an index",
            )


def partner_counters(
    levels: Sequence[AlignedLevel], device: Loops, ir: Loops, at: dict[Expr, Expr]
) -> dict[Expr, Expr]:
    """The counters of the other side's loops in terms of this side's: equal, or composed of two digits."""
    result: dict[Expr, Expr] = {}
    for number, (counter, _) in enumerate(ir):
        parts = [level for level in levels if level.ir == number]
        value = const(0, 32)
        for level in parts:
            own, extent = device[level.device]
            value = value * resize(extent, 32) + at[own] if len(parts) > 1 else at[own]
        result[counter] = value
    return result
