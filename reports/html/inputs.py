"""What the HTML page shows besides proofs, read from files: campaigns' statistics, and times of BMC against CHC."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ila_lang.text.files import FileRefused, read_at_most, read_json

CAMPAIGN_SCHEMA = "ilaverify-campaign-1"
"""The version of campaigns' files that is read; ``ilaverify campaign -o DIR`` writes it."""

MOST_BYTES = 1 << 28
"""Bytes of a file that is shown."""

CAMPAIGN_FILES = "*.campaign.json"
"""The files of a directory that are campaigns'."""


class InputError(ValueError):
    """A file that cannot be shown; the message names it, what must hold, and the next step."""


@dataclass(frozen=True)
class ErrorSummary:
    """Mean, standard deviation and largest of relative errors (0.01 is 1 %)."""

    title: str
    count: int
    mean: float
    deviation: float
    worst: float


@dataclass(frozen=True)
class CampaignRecord:
    """One campaign as its file records it; ``errors`` has the relative errors of its samples by distribution."""

    name: str
    property: str
    reference: str
    sizes: tuple[tuple[str, str], ...]
    distributions: tuple[tuple[str, str], ...]
    seed: str
    examples: int
    checked: int
    violating: int
    covered: float
    interrupted: bool
    summaries: tuple[ErrorSummary, ...]
    errors: Mapping[str, tuple[float, ...]]
    skipped: tuple[tuple[str, int], ...]
    violation: str


@dataclass(frozen=True)
class Cell:
    """One measured proof: its seconds, and how it ended (a verdict's word, or ``timeout``)."""

    seconds: float
    answer: str


@dataclass(frozen=True)
class Scaling:
    """Times of proof methods against the size of the input tensor.

    ``rows`` pairs each shape (``16x64``) with its cells, in the order of ``methods``; None where nothing was measured.
    ``limit`` is the limit of each cell in seconds.
    """

    source: str
    command: str
    limit: float
    machine: tuple[tuple[str, str], ...]
    methods: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def read_campaigns(directory: Path) -> list[CampaignRecord]:
    """All campaigns of a directory, in the order of their names.

    Raises InputError where it is no directory, holds no campaign, or a file is not one.
    """
    if not directory.is_dir():
        raise InputError(
            f"{directory}: campaigns must be in a directory; write one with ilaverify campaign NAME -o DIR"
        )
    paths = sorted(directory.glob(CAMPAIGN_FILES))
    if not paths:
        raise InputError(
            f"{directory}: the directory must hold {CAMPAIGN_FILES}; write them with ilaverify campaign NAME -o DIR"
        )
    return [read_campaign(path) for path in paths]


def read_campaign(path: Path) -> CampaignRecord:
    """The campaign in a file; raises InputError where there is none."""
    content = _json(path)
    if content.get("schema") != CAMPAIGN_SCHEMA:
        raise InputError(
            f"{path}: schema must be {CAMPAIGN_SCHEMA}, not {content.get('schema')!r:.60}; run the campaign again"
        )
    try:
        return _campaign(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: a campaign must have the form that ilaverify campaign writes ({type(error).__name__}: {error}); "
            "run the campaign again"
        ) from error


def _campaign(content: Mapping[str, Any]) -> CampaignRecord:
    titles = {"error": "in all", "input_error": "inputs", "arithmetic_error": "arithmetic"}
    summaries = []
    for key, title in titles.items():
        statistics = content[key]
        if statistics is not None:
            numbers = [_finite(statistics[name]) for name in ("mean", "standard_deviation", "worst")]
            summaries.append(ErrorSummary(title, int(statistics["count"]), *numbers))
    errors: dict[str, tuple[float, ...]] = {str(name): () for name in content["distributions"]}
    for sample in content["samples"]:
        if sample["error"] is not None:
            errors[sample["distribution"]] += (_finite(sample["error"]),)
    violation = content["violation"]
    return CampaignRecord(
        name=str(content["campaign"]),
        property=str(content["property"]),
        reference=str(content["reference"]),
        sizes=tuple((str(name), range_text(values)) for name, values in content["parameters"].items()),
        distributions=tuple((str(name), str(text)) for name, text in content["distributions"].items()),
        seed=str(content["seed"]),
        examples=int(content["examples"]),
        checked=int(content["checked"]),
        violating=int(content["violating"]),
        covered=_finite(content["covered"]),
        interrupted=bool(content["interrupted"]),
        summaries=tuple(summaries),
        errors={name: values for name, values in errors.items() if values},
        skipped=tuple((str(reason), int(count)) for reason, count in content["skipped"].items()),
        violation="" if violation is None else f"{violation['property']}: {violation['seen']}",
    )


def range_text(values: list[Any]) -> str:
    """Numbers as they are listed; in steps of one ``1 .. 9``, in other even steps ``2, 4 .. 64``.

    >>> range_text([1, 2, 3]), range_text([2, 4, 6, 8]), range_text([1, 2]), range_text([1, 5, 6])
    ('1 .. 3', '2, 4 .. 8', '1, 2', '1, 5, 6')
    """
    if len(values) > 2 and all(isinstance(v, int) for v in values):
        step = values[1] - values[0]
        if step > 0 and values == [*range(values[0], values[-1] + 1, step)]:
            return f"{values[0]} .. {values[-1]}" if step == 1 else f"{values[0]}, {values[1]} .. {values[-1]}"
    return ", ".join(map(str, values))


def read_scaling(path: Path) -> Scaling:
    """The measurements in a file that ``python -m benchmarks.table3`` writes; raises InputError on another one."""
    content = _json(path)
    try:
        return _scaling(content, path.name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: times must have the form that python -m benchmarks.table3 writes ({type(error).__name__}: "
            f"{error}); name another file, or measure again"
        ) from error


def _scaling(content: Mapping[str, Any], source: str) -> Scaling:
    cells: Mapping[str, Mapping[str, Any]] = content["cells"]
    methods = tuple(dict.fromkeys(str(method) for row in cells.values() for method in row))
    if not methods:
        raise ValueError("there must be at least one time, not none")
    for shape in cells:
        if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in shape.split("x")):
            raise ValueError(f"a shape must be like 16x64, not {shape!r:.60}")

    def cell(record: Mapping[str, Any] | None) -> Cell | None:
        if record is None:
            return None
        seconds = _finite(record["seconds"])
        if seconds <= 0:
            raise ValueError(f"seconds must be positive, not {seconds}")
        return Cell(seconds, str(record["answer"]))

    return Scaling(
        source=source,
        command=str(content["command"]),
        limit=_finite(content["limit"]),
        machine=tuple((str(name), str(value)) for name, value in content["machine"].items()),
        methods=methods,
        rows=tuple((shape, tuple(cell(row.get(method)) for method in methods)) for shape, row in cells.items()),
    )


def _finite(value: Any) -> float:
    """The number, not negative and finite; raises ValueError or TypeError on anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number is needed, not {value!r:.60}")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"a number must be finite and not negative, not {value!r}")
    return float(value)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(read_at_most(path, "an input of the page", MOST_BYTES).decode())
    except FileRefused as error:
        raise InputError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: the file must be JSON text: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: the file must hold a JSON object, not {type(content).__name__}")
    return content
