"""The obligations of a mapping's certificate, generated again by the method and with the parameters that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bmc.prove
import bmc.sums
import chc.mapping.prove
from ila_lang.mapping import SizeError, TensorMapping
from smt_encodings.claims import Verdict
from smt_encodings.discharge import Requirements

__all__ = ["regenerate"]


def regenerate(certificate: Mapping[str, Any], mapping: TensorMapping, requirements: Requirements) -> Verdict | str:
    """The verdict on a mapping with its obligations noted in ``requirements``, or why there is none."""
    try:
        if certificate["method"] == "chc":
            if certificate["parameters"]:
                return "a proof of every size has no parameters"
            levels = certificate["invariants"]
            invariants = {name: [str(t) for t in level["invariant"]] for name, level in levels.items()}
            verdict = chc.mapping.prove.prove(mapping, discharger=requirements, invariants=invariants)
        elif certificate["method"] == "bmc":
            parameters = certificate["parameters"]
            if set(parameters) != {"shape", "data", "memory"}:
                return "a bmc proof has the parameters shape, data and memory"
            verdict = bmc.prove.prove(
                mapping,
                _shape(parameters["shape"]),
                data=parameters["data"],
                memory=parameters["memory"],
                discharger=requirements,
                search_seconds=0,
            )
        elif certificate["method"] == "hash":
            if set(certificate["parameters"]) != {"shape"}:
                return "a hash proof has one parameter, its shape"
            shape = _shape(certificate["parameters"]["shape"])
            verdict = bmc.sums.prove(mapping, shape, discharger=requirements, search_seconds=0)
        else:
            return f"method {certificate['method']!r} is not known"
    except (KeyError, TypeError, ValueError, SizeError) as error:
        return f"its parameters are malformed: {error}"
    return verdict if requirements.complete else verdict.reason


def _shape(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int for n in value):
        raise ValueError(f"a shape must be a list of integers, not {value!r:.60}")
    return tuple(value)
