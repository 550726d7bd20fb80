"""Samples of campaigns, measured in processes of their own: on this machine, or on a cluster."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import partial

from ilaverify.catalogue import find_campaign
from rewrites.campaigns.campaign import Drawn, measured
from rewrites.campaigns.statistics import Sample

from .workers import Limits, Task, run_within

_TOGETHER = 5
"""Examples that one process measures."""


def samples(name: str, drawn: Sequence[Drawn], limits: Limits) -> Generator[Sample]:
    """Samples of a campaign of the catalogue, as they come.

    Of a process that fails there are none: who measures its examples again finds out why.
    """
    parts = [drawn[k : k + _TOGETHER] for k in range(0, len(drawn), _TOGETHER)]
    tasks = [Task(str(k), partial(measure, name, part)) for k, part in enumerate(parts)]
    with closing(run_within(limits, tasks)) as ends:
        for end in ends:
            if end.text is not None:
                yield from map(Sample.from_json, json.loads(end.text))


def measure(name: str, drawn: Sequence[tuple[Mapping[str, int], str, int]]) -> str:
    """The samples of examples, as JSON."""
    campaign = find_campaign(name)
    return json.dumps([measured(campaign, campaign.example(*one))[0].as_json() for one in drawn])
