"""Proving a mapping by name of method, with a counterexample where there is one; and finding a proof's obligations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bmc.counterexample import Counterexample, replays
from bmc.runs import Survey, survey, surveyed
from bmc.search import search, search_at
from ila_lang.errors import InputError
from ila_lang.mapping import SizeError, TensorMapping
from smt_encodings.claims import Obligation, Status, Verdict
from smt_encodings.discharge import Discharger, Requirements
from smt_encodings.runs import surviving

from .method import AUTO, METHODS, Method, Parameters, shape_of

Progress = Callable[[Obligation], None]


def verify(
    mapping: TensorMapping,
    method: str = AUTO,
    *,
    timeout: float = 60.0,
    progress: Progress | None = None,
    **parameters: object,
) -> Verdict:
    """The verdict on a mapping.

    ``method`` is one of METHODS, such as "chc" (every size), "bmc" (one ``shape``) or "hash" (one ``shape``, sums in
    any order), or "auto".  ``parameters`` are the method's; None leaves one out.  Concrete runs of both sides
    (:func:`bmc.runs.survey`) come first where a claim is about every size: what they refute is not tried to be proved.
    What a proof for every size leaves UNKNOWN is searched for a counterexample at small shapes, and at the sizes of a
    solver's model of what is not proved; REFUTED is said only after the counterexample was replayed.  PROVED is said
    only after such runs, and after BMC at one size; one that differs makes it an ERROR.

    Raises ValueError on another method, a parameter that is missing or not the method's, and SizeError on a shape
    outside the mapping's domain.
    """
    if not isinstance(mapping, TensorMapping):
        raise TypeError(f"what is verified must be a TensorMapping, not {mapping!r:.60}")
    return verify_with(mapping, method, Discharger(timeout=timeout, progress=progress), **parameters)


def chosen_method(method: str, parameters: Mapping[str, object], extents: int = 2) -> tuple[Method, dict[str, Any]]:
    """The method of that name and its parameters, as they stand in certificates; raises InputError.

    Shapes have as many ``extents``.
    """
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in parameters.items() if v is not None}
    methods = METHODS.all()
    name = method if method != AUTO else "bmc" if "shape" in values else "chc"
    if name not in methods:
        raise InputError(f"method must be one of {', '.join([AUTO, *methods])}, not {method!r}")
    return methods[name], methods[name].completed(values, extents)


def verify_with(mapping: TensorMapping, method: str, discharger: Discharger, **parameters: object) -> Verdict:
    """As :func:`verify`, with a discharger that is given."""
    chosen, values = chosen_method(method, parameters, len(mapping.shape_names))
    sizes = mapping.sizes_for(shape_of(values)) if "shape" in values else None
    start = time.perf_counter()
    before = None if sizes is not None else surveyed(mapping)
    shown = None if before is None or before.failed is None else _refutation(mapping, before)
    if shown is not None:
        claim, seconds = chosen.claim(mapping, values), time.perf_counter() - start
        verdict = Verdict(Status.REFUTED, claim, chosen.name, seconds, shown.summary())
        verdict.details["counterexample"] = shown
    else:
        verdict = chosen.prove(mapping, values, discharger)
    verdict.method = chosen.name
    verdict.details = {"parameters": values, **verdict.details, "package": METHODS.guest(chosen.name)}
    if verdict.status is Status.UNKNOWN and before is not None:
        suspects: Any = verdict.details.get("suspects", ())
        counterexample = _difference(mapping, suspects, _operands(verdict))
        if counterexample is not None and replays(mapping, counterexample):
            verdict.details["counterexample"] = counterexample
            verdict.details["unproved"] = verdict.reason
            verdict.status, verdict.reason = Status.REFUTED, counterexample.summary()
        elif suspects:  # sizes at which an obligation is false refute nothing
            verdict.reason += "; no run at these sizes shows a difference"
    elif verdict.status is Status.REFUTED:
        counterexample = counterexample_of(verdict)
        if counterexample is None or not replays(mapping, counterexample):
            verdict.status, verdict.reason = Status.ERROR, "REFUTED needs a counterexample that replays; it has none"
    return surviving(verdict, lambda: survey(mapping, sizes) if before is None else before.result(opinion=True))


def _refutation(mapping: TensorMapping, runs: Survey) -> Counterexample | None:
    """A small counterexample where runs showed a difference, which replays."""
    found = search(mapping) or runs.difference()
    return found if found is not None and replays(mapping, found) else None


def _operands(verdict: Verdict) -> list[tuple[int, ...]]:
    """Operands of solvers' models at which lemmas are false."""
    failed = [o for o in verdict.obligations if o.group == "lemmas" and not o.discharged]
    models = [a.model for o in failed for a in o.answers if a.status == "sat" and a.model]
    return [tuple(model.values()) for model in models]


def _difference(
    mapping: TensorMapping, suspects: Sequence[Mapping[str, int]], operands: Sequence[Sequence[int]]
) -> Counterexample | None:
    """A run that shows a difference, at small shapes or at suspected sizes.

    ``operands`` are among the data at small shapes.
    """
    counterexample = search(mapping, budget_seconds=10.0, operands=operands)
    for sizes in suspects if counterexample is None else ():
        counterexample = counterexample or search_at(mapping, sizes, budget_seconds=10.0)
    return counterexample


def counterexample_of(verdict: Verdict) -> Counterexample | None:
    """The replayed counterexample of a REFUTED verdict, or the run that made a PROVED an ERROR."""
    counterexample: Any = verdict.details.get("counterexample")
    return counterexample if isinstance(counterexample, Counterexample) else None


def regenerate(certificate: Mapping[str, Any], mapping: TensorMapping, requirements: Requirements) -> Verdict | str:
    """The verdict on a mapping with its obligations noted in ``requirements``, or why there is none.

    They are generated by the method and with the parameters that the certificate names.
    """
    method = METHODS.all().get(certificate["method"])
    if method is None:
        return f"method {certificate['method']!r} is not known"
    parameters: Parameters = certificate["parameters"]
    names = [p.name for p in method.parameters]
    if set(parameters) != set(names):
        return f"a proof by {method.name} must have the parameters {', '.join(names) or '(none)'}"
    try:
        levels = certificate["invariants"]
        invariants = {name: [str(t) for t in level["invariant"]] for name, level in levels.items()}
        verdict = method.regenerate(mapping, parameters, invariants, requirements)
    except (KeyError, TypeError, ValueError, SizeError) as error:
        return f"its parameters are malformed: {error}"
    return verdict if requirements.complete else verdict.reason
