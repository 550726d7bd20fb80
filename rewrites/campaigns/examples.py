"""Files of violating examples: canonical JSON with the arrays, replayed by one command."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.text.files import FileRefused, KeyTwice, read_at_most, read_json
from reports.certificate import write_atomically

from .campaign import Finding
from .definition import Campaign, Example

SCHEMA = "ilaverify-example-1"
"""Version of the format."""

MOST_BYTES = 1 << 28
"""Bytes of an example's file."""

_DTYPES = {"float64": (np.float64, (int, float)), "int64": (np.int64, (int,))}
_KEYS = ("schema", "campaign", "parameters", "distribution", "seed", "arrays", "violation", "history")


class ExampleFileError(ValueError):
    """A file that is not an example of the campaign."""


def write_example(path: Path, campaign: Campaign, finding: Finding, campaign_seed: int) -> None:
    """Writes the example of a finding atomically.

    ``history`` is how it was found: the example drawn, what Hypothesis shrank it to, and the changes of its data.
    """
    example = finding.example
    content = {
        "schema": SCHEMA,
        "campaign": campaign.name,
        **_draw(example),
        "arrays": {name: _array(array) for name, array in example.arrays.items()},
        "violation": {"property": finding.violation.name, "seen": finding.violation.text},
        "history": {
            "campaign_seed": str(campaign_seed),
            "drawn": _draw(finding.drawn),
            "sizes_shrunk": _draw(finding.smallest),
            "data_shrunk": {"runs": finding.shrunk.runs, "kept": finding.shrunk.steps},
        },
    }
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def _draw(example: Example) -> dict[str, Any]:
    seed = None if example.seed is None else str(example.seed)
    return {"parameters": dict(example.parameters), "distribution": example.distribution, "seed": seed}


def _array(array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.reshape(-1).tolist()}


def read_example(path: Path, campaign: Campaign) -> Example:
    """The example in a file.

    Raises ExampleFileError where the file cannot be read, or holds no example of this campaign.
    """
    try:
        content = read_json(read_at_most(path, "an example", MOST_BYTES).decode())
    except FileRefused as error:
        raise ExampleFileError(str(error)) from None
    except UnicodeDecodeError as error:
        raise ExampleFileError(f"{path}: an example must be UTF-8 text: {error}") from None
    except json.JSONDecodeError as error:
        raise ExampleFileError(
            f"{path}: an example must be complete JSON, not text that breaks at line {error.lineno}, column "
            f"{error.colno} ({error.msg}); write it again with -o"
        ) from None
    except KeyTwice as error:
        raise ExampleFileError(f"{path}: {error}") from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise ExampleFileError(f"{path}: an example must have numbers of at most {most} digits") from None
    except RecursionError:
        raise ExampleFileError(f"{path}: an example must be flat JSON, not nested beyond reading") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise ExampleFileError(f"{path}: schema must be {SCHEMA!r}, not {schema!r}; give a file that -o wrote")
    if set(content) != set(_KEYS):
        raise ExampleFileError(f"{path}: keys must be exactly {', '.join(_KEYS)}, not {', '.join(sorted(content))}")
    if content["campaign"] != campaign.name:
        raise ExampleFileError(
            f"{path}: campaign must be {campaign.name!r}, not {content['campaign']!r}; replay it with that name"
        )
    parameters, distribution = content["parameters"], content["distribution"]
    if not isinstance(parameters, dict) or not all(type(v) is int for v in parameters.values()):
        raise ExampleFileError(f"{path}: parameters must be an object of integers, not {_short(parameters)}")
    if not isinstance(distribution, str):
        raise ExampleFileError(
            f"{path}: distribution must be one of {', '.join(campaign.distributions)}, not {_short(distribution)}"
        )
    try:
        campaign.check(parameters, distribution)
        drawn = campaign.example(parameters, distribution, 0).arrays
    except ValueError as error:
        raise ExampleFileError(f"{path}: {error}") from None
    in_order = {name: parameters[name] for name in campaign.parameters}
    return Example(in_order, distribution, None, _arrays(path, content["arrays"], drawn))


def _arrays(path: Path, entries: object, drawn: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays, which must have the names, shapes and types of ``drawn``, the campaign's at these sizes."""
    if not isinstance(entries, dict) or set(entries) != set(drawn):
        names = ", ".join(sorted(entries)) if isinstance(entries, dict) else _short(entries)
        raise ExampleFileError(f"{path}: arrays must be exactly {', '.join(sorted(drawn))}, not {names or 'none'}")
    arrays = {}
    for name, like in drawn.items():
        entry = entries[name]
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "values"}:
            raise ExampleFileError(f"{path}: array {name} must have exactly dtype, shape and values")
        dtype, shape, values = entry["dtype"], entry["shape"], entry["values"]
        if dtype != str(like.dtype) or shape != list(like.shape):
            raise ExampleFileError(
                f"{path}: array {name} must be {like.dtype} of shape {list(like.shape)}, "
                f"not {_short(dtype)} of shape {_short(shape)}"
            )
        kind, allowed = _DTYPES[dtype]
        if not isinstance(values, list) or not all(type(v) in allowed for v in values):
            raise ExampleFileError(f"{path}: values of array {name} must be a list of numbers of type {dtype}")
        if len(values) != like.size:
            raise ExampleFileError(f"{path}: array {name} must have {like.size} values, not {len(values)}")
        try:
            array = np.array(values, kind).reshape(like.shape)
        except OverflowError:
            raise ExampleFileError(f"{path}: values of array {name} must fit in {dtype}") from None
        if array.dtype == np.float64 and not np.isfinite(array).all():
            raise ExampleFileError(f"{path}: values of array {name} must be finite")
        arrays[name] = array
    return arrays


def _short(value: object) -> str:
    return json.dumps(value)[:60]
