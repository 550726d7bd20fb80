"""Verdicts as text for people and for machines: what was proved, how, under what assumptions, what it does not mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any

from bmc.counterexample import Counterexample
from bmc.prove import Try
from ila_lang.extensions import command_line
from reports.outcomes import counted
from rewrites.claims.advice import METHODS, advice_for
from rewrites.claims.verify import counterexample_of
from smt_encodings.claims import Obligation, Runs, Status, Verdict
from smt_encodings.environment import plain

from .refutations import is_counterexample

WIDTH = 100
SIZES_SHOWN = 4
"""Sizes of concrete runs that are shown."""
MOST_VALUES = 24
"""Values of a solver's model that are shown."""
MOST_INPUTS = 12
"""Input elements of a counterexample that are shown."""

_INTERPRETATION = {
    "uninterpreted": "uninterpreted functions (any that satisfy the lemmas)",
    "bits": "closed forms, bit by bit",
    "reals": "real numbers",
    "integers": "integers",
    "abstract_float": "abstract floats",
    "ieee": "IEEE 754 floats",
}


def show_verdict(verdict: Verdict, *, full: bool = False) -> str:
    """The report on one verdict; with ``full`` every obligation has a line of its own."""
    return "\n".join(_lines(verdict, full))


def _lines(verdict: Verdict, full: bool) -> Iterator[str]:
    claim = verdict.claim
    package = f" of {verdict.details['package']}" if verdict.details.get("package") else ""
    yield f"{verdict.status.value}  {claim.subject}  ({verdict.method}{package}, {verdict.seconds:.1f} s)"
    if verdict.reason:
        yield from _field("reason", verdict.reason)
    if stopped := verdict.details.get("unproved"):
        yield from _field("no proof", str(stopped))
    if advice := _advice(verdict):
        yield from _field("advice", advice)
    yield from _field("claim", claim.statement)
    yield from _field("sizes", claim.size_domain)
    if claim.compared:
        yield from _field("compared", claim.compared)
    how = ", then ".join(_INTERPRETATION[i.value] for i in claim.interpretations)
    yield from _field("equality", claim.equality.value + (f"; data: {how}" if how else ""))
    for tried in _tries(verdict):
        yield from _field("tried", f"{_INTERPRETATION[tried.data.value]}, {tried.seconds:.1f} s: {tried.reason}")
    yield ""
    for enumeration in _enumerations(verdict):
        yield f"every argument: {enumeration['arguments']:,} of them"
        yield f"  the largest error is {100 * enumeration['largest']:.3g} % of what is allowed"
    if verdict.obligations:
        yield from _obligations(verdict, full)
    if verdict.runs is not None:
        yield from _runs(verdict.runs, full)
    if verdict.invariants:
        yield ""
        yield "inferred invariants (row, column, cell_...: the arbitrary output cell; writes: how often written)"
        takes: Any = verdict.details.get("takes", {})
        for level, lines in verdict.invariants.items():
            yield f"  {level}"
            if level in takes:
                yield from (f"    {line}" for line in _taken(takes[level]))
            yield from (f"      {line}" for line in lines)
    yield ""
    yield from _assumptions(verdict)
    counterexample = counterexample_of(verdict)
    if counterexample is not None:
        yield ""
        yield "counterexample (replayed on the interpreter)"
        yield from _wrapped(counterexample.summary())
        for tensor, cells in counterexample.inputs.items():
            values = _first([f"[{i}] = {v:#04x}" for i, v in sorted(cells.items())], MOST_INPUTS)
            yield from _wrapped(f"input {tensor} (row-major index): {values}; all other elements 0x00")
        for (side, name), words in _initial(counterexample).items():
            values = _first([f"{_place(name, a)} = {v:#04x}" for a, v in words.items()], MOST_INPUTS)
            yield from _wrapped(f"initial state ({_SIDES.get(side, side)}): {values}")
        yield from _wrapped("all other state is as at reset, or 0 where no reset value is given")


_SIDES = {"ir": "IR", "ir host": "IR's host"}


def _initial(counterexample: Counterexample) -> dict[tuple[str, str], dict[int | None, int]]:
    """The initial contents other than inputs that the difference needs, by side and owner; others are at reset."""
    grouped: dict[tuple[str, str], dict[int | None, int]] = {}
    for cell, value in counterexample.initial.items():
        if cell.side != "input":
            grouped.setdefault((cell.side, cell.owner), {})[cell.address] = value
    return grouped


def _first(texts: list[str], most: int) -> str:
    left = len(texts) - most
    return ", ".join(texts[:most]) + (f", and {left} more" if left > 0 else "")


def _place(name: str, address: int | None) -> str:
    return name if address is None else f"{name}[{address}]"


def _enumerations(verdict: Verdict) -> list[Mapping[str, Any]]:
    enumerations: Any = verdict.details.get("enumerations", [])
    return list(enumerations)


def _advice(verdict: Verdict) -> str:
    of_mapping = verdict.status is Status.UNKNOWN and verdict.method in METHODS
    return advice_for(verdict.reason) if of_mapping else ""


def _tries(verdict: Verdict) -> list[Try]:
    tries: Any = verdict.details.get("tries", [])
    return list(tries)


def _field(name: str, text: str) -> Iterator[str]:
    for i, line in enumerate(wrap(text, WIDTH - 12) or [""]):
        yield f"  {name if i == 0 else '':<9} {line}"


def _wrapped(text: str) -> Iterator[str]:
    yield from (f"  {line}" for line in wrap(text, WIDTH - 2))


def _taken(takes: list[str]) -> list[str]:
    """What the theorem takes from the invariant of a loop level."""
    return wrap(f"the theorem takes from it that {' and that '.join(takes)}", WIDTH - 4)


def _obligations(verdict: Verdict, full: bool) -> Iterator[str]:
    """One line per group (or per obligation), with the time each solver took; what is said in addition comes last."""
    solvers = list(dict.fromkeys(a.solver for o in verdict.obligations for a in o.answers))
    yield f"{'obligations':<76}{''.join(f'{s:>14}' for s in solvers)}"
    groups: dict[str, list[Obligation]] = {}
    for obligation in verdict.obligations:
        groups.setdefault(obligation.group, []).append(obligation)
    names: Any = verdict.details.get("in_addition", [])
    added = {group: groups[group] for group in names if group in groups}
    yield from _groups({g: members for g, members in groups.items() if g not in added}, solvers, full)
    if added:
        yield "in addition to those that the theorem rests on"
        yield from _groups(added, solvers, full)


def _groups(groups: Mapping[str, list[Obligation]], solvers: list[str], full: bool) -> Iterator[str]:
    for group, members in groups.items():
        discharged = sum(o.discharged for o in members)
        yield f"  {_tally(group, discharged, len(members)):<74}{_times(members, solvers)}"
        for obligation in members:
            if full or not obligation.discharged:
                mark = "" if obligation.discharged else "  NOT DISCHARGED"
                yield f"    {_short(obligation.name, 71):<72}{_times([obligation], solvers)}{mark}"
            if not obligation.discharged:
                yield from _failed(obligation)


def _failed(obligation: Obligation) -> Iterator[str]:
    """What an obligation says that is not discharged, and values at which a solver found it false."""
    yield from (f"      {line}" for line in wrap(f"it says: {obligation.meaning}", WIDTH - 6))
    for answer in obligation.answers:
        if answer.status == "sat" and answer.model and obligation.expected == "unsat":
            values = _first([f"{plain(name)} = {v}" for name, v in sorted(answer.model.items())], MOST_VALUES)
            yield from (f"      {line}" for line in wrap(f"false, says {answer.solver}, where {values}", WIDTH - 6))


def _runs(runs: Runs, full: bool) -> Iterator[str]:
    """How many concrete runs there were, and where."""
    yield f"{runs_text(runs)}, {runs.seconds:.1f} s"
    if runs.at:
        yield from _wrapped("at " + "; ".join(runs.at if full else runs.at[:SIZES_SHOWN]) + _more(runs, full))
    yield from (f"  {line}" for note in runs.notes for line in wrap(note, WIDTH - 2))


def _more(runs: Runs, full: bool) -> str:
    left = 0 if full else len(runs.at) - SIZES_SHOWN
    return f"; and {left} more (--full)" if left > 0 else ""


def runs_text(runs: Runs) -> str:
    """Concrete runs in a few words."""
    if not runs.count:
        return "no concrete run was possible"
    agree = "the last one differs" if runs.difference is not None else "all agree"
    return f"{counted(runs.count, 'concrete run')} of both sides at {counted(len(runs.at), 'point')}: {agree}"


def show_written(paths: Sequence[Path]) -> str:
    """The files that were written, and how the data of a counterexample are replayed."""
    lines = [f"written   {path}\n" for path in paths]
    lines += [f"replay    {command_line('check', path)}\n" for path in paths if is_counterexample(path)]
    return "".join(lines)


def _tally(group: str, discharged: int, count: int) -> str:
    return f"{_short(group, 62)} ({discharged} of {count})"


def _short(text: str, most: int) -> str:
    """The text, or as many of its words as there is room for, with an ellipsis.

    >>> _short("row_pairs.w with row_pairs.lane", 25)
    'row_pairs.w with ...'
    """
    return text if len(text) <= most else shorten(text, most, placeholder=" ...")


def _times(obligations: list[Obligation], solvers: list[str]) -> str:
    cells = []
    for solver in solvers:
        seconds = [a.seconds for o in obligations for a in o.answers if a.solver == solver]
        cells.append(f"{sum(seconds):>12.3f} s" if seconds else f"{'-':>14}")
    return "".join(cells)


def _assumptions(verdict: Verdict) -> Iterator[str]:
    yield "assumptions"
    lemmas = [o for o in verdict.obligations if o.group == "lemmas"]
    for text in verdict.claim.assumptions or (() if lemmas else ("none",)):
        yield from _wrapped(text)
    for lemma in lemmas:
        state = "proved above for all operand codes" if lemma.discharged else "NOT PROVED"
        if lemma.discharged and len(lemma.answers) == 1 and verdict.status is not Status.PROVED:
            state = f"by {lemma.answers[0].solver} alone; the other solver was not waited for"
        yield f"  lemma: {lemma.name} ({state})"
    if verdict.status is Status.PROVED:
        yield "not claimed"
        if not verdict.claim.compared:  # no mapping's
            yield "  that a compiler's operators, or a chip, behave like the terms of this claim"
            return
        yield "  that the model is the hardware (VT3), that the IR is the compiler's (VT1), and anything about timing;"
        yield "  real-number error: the equality is between codes, not with the operator on real numbers"


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON; the counterexample is a mapping's."""
    from reports.certificate import claim_json, runs_json

    counterexample = counterexample_of(verdict)
    return {
        "status": verdict.status.value,
        "method": verdict.method,
        "package": verdict.details.get("package", ""),
        "seconds": round(verdict.seconds, 3),
        "reason": verdict.reason,
        "unproved": verdict.details.get("unproved", ""),
        "advice": _advice(verdict),
        "tries": [{"data": t.data.value, "said": t.reason, "seconds": round(t.seconds, 3)} for t in _tries(verdict)],
        "claim": claim_json(verdict.claim),
        "obligations": [
            {
                "group": o.group,
                "name": o.name,
                "meaning": o.meaning,
                "expected": o.expected,
                "discharged": o.discharged,
                "answers": [
                    {"solver": a.solver, "status": a.status, "seconds": round(a.seconds, 4)}
                    | ({} if o.discharged else {"model": a.model})
                    for a in o.answers
                ],
            }
            for o in verdict.obligations
        ],
        "invariants": verdict.invariants,
        "enumerations": _enumerations(verdict),
        "runs": None if verdict.runs is None else runs_json(verdict.runs),
        "counterexample": None if counterexample is None else _counterexample_json(counterexample),
    }


def _counterexample_json(counterexample: Counterexample) -> dict[str, Any]:
    same = ("sizes", "shape", "row", "column", "device", "ir", "differing", "elements", "error")
    return {name: getattr(counterexample, name) for name in same} | {
        "inputs": {name: {str(i): v for i, v in cells.items()} for name, cells in counterexample.inputs.items()},
        "initial": [
            {"side": c.side, "name": c.owner, "address": c.address, "value": value}
            for c, value in counterexample.initial.items()
            if c.side != "input"
        ],
        "shown": list(counterexample.shown),
    }
