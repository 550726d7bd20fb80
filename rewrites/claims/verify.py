"""Proving a mapping by name of method, with a counterexample where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import bmc.prove
import bmc.sums
import chc.mapping.prove
from bmc.counterexample import Counterexample, replays, search, search_at
from bmc.prove import Data, Memory
from bmc.runs import survey
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Obligation, Status, Verdict
from smt_encodings.discharge import Discharger
from smt_encodings.runs import surviving

__all__ = ["METHODS", "PROVERS", "counterexample_of", "verify", "verify_with"]

METHODS = ("auto", "chc", "bmc", "hash")
"""Proof methods by name."""

PROVERS: Mapping[str, Callable[..., Verdict]] = {
    "chc": chc.mapping.prove.prove,
    "bmc": bmc.prove.prove,
    "hash": bmc.sums.prove,
}
"""The function that each method consists of, with all that its module imports."""

Progress = Callable[[Obligation], None]


def verify(
    mapping: TensorMapping,
    method: str = "auto",
    *,
    shape: tuple[int, ...] | None = None,
    data: Data = "auto",
    memory: Memory = "resolved",
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict on a mapping.

    ``method`` is "chc" (every size), "bmc" (one ``shape``), "hash" (one ``shape``, sums in any order) or "auto": BMC
    where a shape is given, else CHC.  ``data`` and ``memory`` are for BMC.  What CHC leaves UNKNOWN is searched for a
    counterexample at small shapes, at the sizes of a solver's model of what is not proved, and at sizes sampled from
    the domain; REFUTED is said only after the counterexample was replayed.  PROVED is said only after concrete runs of
    both sides (:func:`bmc.runs.survey`); one that differs makes it an ERROR.

    Raises ValueError on another method, a missing shape, or one for CHC, SizeError on one outside the mapping's domain.
    """
    if not isinstance(mapping, TensorMapping):
        raise TypeError(f"what is verified must be a TensorMapping, not {mapping!r:.60}")
    if method == "chc" and shape is not None:
        raise ValueError("method chc proves every size; leave the shape out, or use method bmc")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    discharger = Discharger(timeout=timeout, progress=progress)
    return verify_with(mapping, method, discharger, shape=shape, data=data, memory=memory)


def verify_with(
    mapping: TensorMapping,
    method: str,
    discharger: Discharger,
    *,
    shape: tuple[int, ...] | None = None,
    data: Data = "auto",
    memory: Memory = "resolved",
) -> Verdict:
    """As :func:`verify`, with a discharger that is given."""
    chosen = method if method != "auto" else "bmc" if shape is not None else "chc"
    if chosen == "chc":
        verdict = chc.mapping.prove.prove(mapping, discharger=discharger)
        if verdict.status is Status.UNKNOWN:
            suspects: Any = verdict.details["suspects"]
            found = _difference(mapping, suspects)
            if found is not None and replays(mapping, found):
                verdict.details["counterexample"] = found
                verdict.details["unproved"] = verdict.reason
                verdict.status, verdict.reason = Status.REFUTED, found.summary()
        return surviving(verdict, lambda: survey(mapping, opinion=True))
    if shape is None:
        raise ValueError(f"method {chosen} must be given a shape, e.g. --shape 16x64")
    timeout, sizes = discharger.timeout, mapping.sizes_for(shape)
    if chosen == "hash":
        verdict = bmc.sums.prove(mapping, shape, discharger=discharger, timeout=timeout)
    else:
        verdict = bmc.prove.prove(mapping, shape, data=data, memory=memory, discharger=discharger, timeout=timeout)
    return surviving(verdict, lambda: survey(mapping, sizes))


def _difference(mapping: TensorMapping, suspects: Sequence[Mapping[str, int]]) -> Counterexample | None:
    """A run that shows a difference: at small shapes, at suspected sizes, or at sizes sampled from the whole domain."""
    found = search(mapping, budget_seconds=10.0)
    for sizes in suspects if found is None else ():
        found = found or search_at(mapping, sizes, budget_seconds=10.0)
    sampled = survey(mapping).difference if found is None else None
    return sampled if isinstance(sampled, Counterexample) else found


def counterexample_of(verdict: Verdict) -> Counterexample | None:
    """The replayed counterexample of a REFUTED verdict, or the run that made a PROVED an ERROR."""
    found: Any = verdict.details.get("counterexample")
    return found if isinstance(found, Counterexample) else None
