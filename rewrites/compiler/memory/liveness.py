"""When values of a program are live: steps that read and write named values, to half-open intervals of time.

Step ``k`` (from 0) happens at time ``k``: it reads and writes during the whole of it, so what it reads and what it
writes are live together, and nothing is computed in place. Before time 0 the host loads the inputs; at time ``n``,
behind the last of ``n`` steps, it reads the outputs. A value is therefore live

* from time 0 if it is an input, else from the step that writes it;
* to the last step that reads it, and to time ``n`` if it is an output, whether or not a step reads it too. A value
  that no step reads still occupies its cells at the time it is written.

The convention of intervals is that of ``problem``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One operation of a program: the values it reads, and those it writes."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def live_intervals(steps: Sequence[Step], inputs: Iterable[str], outputs: Iterable[str]) -> dict[str, tuple[int, int]]:
    """``(start, end)`` of each input and of each value that a step writes, half-open, in order of definition.

    Raises ``ValueError`` for a value that is defined twice, read before it is written, or an output that no step
    defines.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in inputs:
        if name in first:
            raise ValueError(f"input {name!r} must be named once, but it is there twice. Remove one.")
        first[name] = last[name] = 0
    for time, step in enumerate(steps):
        for name in step.reads:
            if name not in first:
                raise ValueError(
                    f"step {step.name!r} (time {time}): what it reads must be an input or written by an earlier "
                    f"step, but {name!r} is neither. Order the steps, or name it as an input."
                )
            last[name] = time
        for name in step.writes:
            if name in first:
                raise ValueError(
                    f"step {step.name!r} (time {time}): a value must be defined once, but {name!r} is defined before. "
                    "Rename it."
                )
            first[name] = last[name] = time
    for name in outputs:
        if name not in first:
            raise ValueError(
                f"output {name!r} must be an input or written by a step, but it is neither. Remove it or write it."
            )
        last[name] = len(steps)
    return {name: (first[name], last[name] + 1) for name in first}
