"""The verb ``campaign``: runs a property campaign, or replays a violating example.

Exit codes: 0 no violation, 1 a violation found, 2 broken or nothing checked, 64 bad usage, 130 interrupted
(what was found is shown and written).  Nothing is written without ``-o``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import command_line
from ilaverify.cli.arguments import add_cluster, cluster_of, count, place, require_writable, seed, source
from ilaverify.cli.outcomes import print_json
from ilaverify.cli.progress import Line
from ilaverify.errors import EXIT_INTERRUPTED, EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

from . import passes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ilaverify.proving.cluster import Cluster
    from rewrites.campaigns.campaign import CampaignResult, Drawn, Phase
    from rewrites.campaigns.definition import Campaign
    from rewrites.campaigns.statistics import Margins, Sample, Statistics

RESULT_SCHEMA = "ilaverify-campaign-1"
"""Version of the JSON that a run writes and prints."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "campaign",
        help="test a mapping on random inputs: statistics of the error, violations of a property",
        description="Compares an accelerator's program with the tensor IR on random inputs.  Sampling is no proof.",
        epilog="exit codes: 0 no violation, 1 violation found, 2 broken or nothing checked, 64 bad usage, "
        "130 interrupted (what was found is written and shown)",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the campaign; --list shows all")
    parser.add_argument("--list", action="store_true", help="list the campaigns")
    parser.add_argument("--examples", type=count, default=100, metavar="N", help="default: 100")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="default: 0")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="processes that run examples; default: 1")
    add_cluster(parser)
    parser.add_argument("-o", dest="directory", type=place, metavar="DIR", help="write samples, picture and violation")
    parser.add_argument("--mlir-opt", action="append", default=[], metavar="PROGRAM", help="of mlir_passes: a release")
    parser.add_argument("--passes", metavar="PASS[,PASS...]", help="of mlir_passes: in place of all that it knows")
    parser.add_argument("--replay", type=source, metavar="FILE", help="run a violating example again")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_campaign)


def _campaign(options: argparse.Namespace) -> int:
    from ilaverify.catalogue import campaigns, find_campaign
    from ilaverify.mlir.campaign import NAME, SUMMARY

    if options.list:
        known = campaigns()
        if options.json:
            print_json({name: entry.summary for name, entry in known.items()} | {NAME: SUMMARY})
        else:
            for name, entry in known.items():
                print(f"{name:<28} {entry.summary}{': must find a violation' if entry.expects_violation else ''}")
            print(f"{NAME:<28} {SUMMARY}")
        return EXIT_PROVED
    if options.name is None:
        raise UsageError(f"campaign must be given a NAME, one of {', '.join([*campaigns(), NAME])}")
    if options.name == NAME:
        return passes.run(options)
    if options.mlir_opt or options.passes is not None:
        raise UsageError(f"--mlir-opt and --passes are of the campaign {NAME}; leave them out")
    campaign = find_campaign(options.name)
    if options.replay is not None:
        return _replay(campaign, options)
    if options.directory is not None:
        require_writable("-o", options.directory, directory=True)
    with cluster_of(options) as cluster:
        return _run(campaign, options, cluster)


# -- running --------------------------------------------------------------------------------------------


def _run(campaign: Campaign, options: argparse.Namespace, cluster: Cluster | None) -> int:
    from ilaverify.proving.campaign_samples import samples
    from ilaverify.proving.workers import Limits, MachinesError
    from rewrites.campaigns.campaign import CampaignError, run_campaign

    lost: list[MachinesError] = []

    def ahead(drawn: list[Drawn]) -> Iterator[Sample]:
        try:
            yield from samples(campaign.name, drawn, Limits(options.jobs, cluster=cluster))
        except MachinesError as error:
            lost.append(error)
            raise KeyboardInterrupt from error  # what was found is shown

    directory: Path | None = options.directory
    if not options.json:
        print(_heading(campaign, options.examples, options.seed), flush=True)
    progress = _Progress(options.examples)
    try:
        result = run_campaign(
            campaign,
            examples=options.examples,
            seed=options.seed,
            database=None if directory is None else directory / f"{campaign.name}.examples",
            progress=progress,
            ahead=None if cluster is None and options.jobs == 1 else ahead,
        )
    except CampaignError as error:
        progress.clear()
        print(f"ilaverify: {error}", file=sys.stderr)
        return EXIT_UNPROVED
    finally:
        progress.clear()
    failure: OSError | None = None
    written: list[Path] = []
    try:
        if directory is not None:
            _write(result, directory, written)
    except OSError as error:
        failure = error  # the campaign took minutes, so its result is shown even if it cannot be written
    if options.json:
        print_json(result_json(result), written)
    else:
        print(_report(result, directory))
        for path in written:
            print(f"written        {path}")
    if failure is not None:
        raise failure
    if lost:
        print(f"ilaverify: {lost[0]}", file=sys.stderr)
        return EXIT_UNPROVED
    if result.interrupted:
        return EXIT_INTERRUPTED
    if result.finding is not None:
        return EXIT_REFUTED
    return EXIT_PROVED if result.checked else EXIT_UNPROVED


def _write(result: CampaignResult, directory: Path, written: list[Path]) -> None:
    """Writes samples, the violating example and the picture; each path is added to ``written`` when it is there."""
    from reports.certificate import write_atomically
    from reports.html.plots import histogram_picture
    from rewrites.campaigns.examples import write_example

    campaign = result.campaign
    path = directory / f"{campaign.name}.campaign.json"
    write_atomically(path, json.dumps(result_json(result), indent=1, sort_keys=True, allow_nan=False) + "\n")
    written.append(path)
    if result.finding is not None:
        path = directory / f"{campaign.name}.violation.json"
        write_example(path, campaign, result.finding, result.seed)
        written.append(path)
    groups = {
        name: [s.error for s in result.samples if s.distribution == name and s.error is not None]
        for name in campaign.distributions
    }
    if any(groups.values()):
        title = f"{campaign.name}, seed {result.seed}, {sum(map(len, groups.values()))} examples"
        path = directory / f"{campaign.name}.histogram.svg"
        write_atomically(path, histogram_picture(groups, title))
        written.append(path)


def result_json(result: CampaignResult) -> dict[str, Any]:
    """A result as JSON; the same seed, definition and versions give the same text."""
    from importlib.metadata import version

    from rewrites.campaigns.campaign import show_example

    campaign, finding = result.campaign, result.finding
    return {
        "schema": RESULT_SCHEMA,
        "campaign": campaign.name,
        "property": campaign.property,
        "reference": campaign.reference,
        "parameters": {name: list(values) for name, values in campaign.parameters.items()},
        "distributions": dict(campaign.distributions),
        "seed": str(result.seed),
        "examples": result.examples,
        "interrupted": result.interrupted,
        "versions": {name: version(name) for name in ("hypothesis", "numpy")},
        "error": _statistics_json(result.errors),
        "input_error": _statistics_json(result.statistics("input_error")),
        "arithmetic_error": _statistics_json(result.statistics("arithmetic_error")),
        "worst": result.worst.as_json() if result.worst else None,
        "skipped": result.skipped,
        "checked": result.checked,
        "covered": result.covered,
        "bounds": {**result.margins.as_json(), "are": _bounds_are(campaign)} if result.margins else None,
        "violating": result.violating,
        "violation": None
        if finding is None
        else {
            "property": finding.violation.name,
            "seen": finding.violation.text,
            "example": show_example(finding.example),
            "drawn": show_example(finding.drawn),
            "from_database": finding.saved,
        },
        "samples": [sample.as_json() for sample in result.samples],
    }


def _statistics_json(statistics: Statistics | None) -> dict[str, Any] | None:
    return None if statistics is None else statistics.as_json()


# -- replaying ------------------------------------------------------------------------------------------


def _replay(campaign: Campaign, options: argparse.Namespace) -> int:
    from rewrites.campaigns.campaign import show_example
    from rewrites.campaigns.definition import Skip
    from rewrites.campaigns.examples import ExampleFileError, read_example

    try:
        example = read_example(options.replay, campaign)
    except ExampleFileError as error:
        raise UsageError(str(error)) from None
    skipped, violation = None, None
    try:
        violation = campaign.evaluate(example).violation
    except Skip as reason:
        skipped = str(reason)
    except ValueError as error:
        raise UsageError(f"{options.replay}: {error}") from error
    if options.json:
        seen = None if violation is None else {"property": violation.name, "seen": violation.text}
        print_json({"campaign": campaign.name, "violation": seen, "skipped": skipped})
    else:
        print(f"example        {show_example(example)}")
        print(f"property       {campaign.property}")
        if violation is not None:
            print(f"VIOLATED       {violation.name}: {violation.text}")
        else:
            print("not violated" + (f"   (no statement: {skipped})" if skipped else ""))
    return EXIT_PROVED if violation is None else EXIT_REFUTED


# -- text -----------------------------------------------------------------------------------------------


def _heading(campaign: Campaign, examples: int, seed: int) -> str:
    from rewrites.campaigns.definition import show_range

    sizes = "; ".join(f"{name} in {show_range(values)}" for name, values in campaign.parameters.items())
    lines = [
        f"{campaign.name}: {campaign.summary}",
        f"property       {campaign.property}",
        f"reference      {campaign.reference}",
        f"sizes          {sizes}",
    ]
    for number, (name, meaning) in enumerate(campaign.distributions.items()):
        lines.append(f"{'' if number else 'data':<14} {name}: {meaning}")
    if campaign.expects_violation:
        lines.append("expected       a violation: this campaign reproduces a known flaw")
    lines.append(f"examples       {examples}, seed {seed}")
    return "\n".join(lines)


def _report(result: CampaignResult, directory: Path | None) -> str:
    from rewrites.campaigns.campaign import show_example

    lines = [""]
    if result.interrupted:
        lines.append(
            f"interrupted    after {len(result.samples)} of {result.examples} examples; this is what was found"
        )
    for title, statistics in (
        ("error", result.errors),
        ("  of inputs", result.statistics("input_error")),
        ("  arithmetic", result.statistics("arithmetic_error")),
    ):
        if statistics is not None:
            lines.append(f"{title:<14} {_show(statistics)}")
    worst = result.worst
    if worst is not None and worst.error:
        sizes = ", ".join(f"{name} {value}" for name, value in worst.parameters.items())
        lines.append(f"worst at       {sizes}, {worst.distribution}, data seed {worst.seed}")
    for reason, number in result.skipped.items():
        lines.append(f"skipped        {number}: {reason}")
    lines.append(f"violations     {result.violating} of {result.checked} examples that were checked")
    if result.checked and result.covered < 1:
        lines.append(
            f"covered        {100 * result.covered:.1f} % of the results' elements; of the others nothing is said"
        )
    if result.margins is not None:
        lines.append(f"bounds         {_show_margins(result.margins, _bounds_are(result.campaign))}")
    finding = result.finding
    if finding is not None:
        lines.append(f"VIOLATED       {finding.violation.name}: {finding.violation.text}")
        lines.append(f"  {'saved' if finding.saved else 'drawn':<12} {show_example(finding.drawn)}")
        lines.append(f"  shrunk to    {show_example(finding.example)}")
        for name, array in finding.example.arrays.items():
            lines.append(f"  {name:<12} {_show_array(array)}")
        if directory is None:
            lines.append("  to replay    run again with -o DIR, which writes the example")
        else:
            path = directory / f"{result.campaign.name}.violation.json"
            lines.append(f"  to replay    {command_line('campaign', result.campaign.name, '--replay', path)}")
    elif not result.checked:
        lines.append("NOTHING        was checked: no example says anything of the property")
    elif not result.interrupted:
        lines.append("               (found by sampling: this is no proof)")
    return "\n".join(lines)


def _show(statistics: Statistics) -> str:
    return (
        f"mean {100 * statistics.mean:.3f} %   sd {100 * statistics.deviation:.3f} %   "
        f"worst {100 * statistics.worst:.3f} %"
    )


def _bounds_are(campaign: Campaign) -> str:
    """What the bounds of a campaign are: proved by claims that there are, or declared."""
    from rewrites.claims.names import bound_name
    from rewrites.claims.registry import entries

    names = [bound_name(theorem) for theorem in campaign.theorems]
    return f"proved by {', '.join(names)}" if names and {*names} <= {*entries()} else "declared"


def _show_margins(margins: Margins, are: str) -> str:
    if margins.largest == 0:
        return f"0 of {margins.count} examples have an error"
    derived, stated = margins.derived_ratio, f"{margins.stated} of {margins.count} examples"
    parts = [f"largest error {margins.largest:.4g}"]
    if derived is not None:
        parts.append(f"bound / error at least {derived:.3f}")
    if margins.a_priori_ratio is not None:
        parts.append(f"a-priori bound / error at least {margins.a_priori_ratio:.3f} ({stated})")
    return ", ".join(parts) + (f"; bounds {are}" if len(parts) > 1 else "")


def _show_array(array: Any) -> str:
    """The shape, and the elements that are not zero (the first eight of them)."""
    import numpy as np

    places = np.argwhere(array)
    shape = "x".join(map(str, array.shape)) or "scalar"
    shown = ", ".join(f"[{', '.join(map(str, p))}] = {array[tuple(p)]:g}" for p in places.tolist()[:8])
    if not shown:
        return f"{shape}, all zero"
    more = f" and {len(places) - 8} more" if len(places) > 8 else ""
    rest = ", zero elsewhere" if len(places) < array.size else ""
    return f"{shape}: {shown}{more}{rest}"


class _Progress(Line):
    """One line on a terminal that says how far the campaign is."""

    def __init__(self, examples: int) -> None:
        super().__init__()
        self.examples = examples

    def __call__(self, phase: Phase, runs: int, samples: list[Sample]) -> None:
        self.show(lambda: self._text(phase, runs, samples))

    def _text(self, phase: Phase, runs: int, samples: list[Sample]) -> str:
        if phase != "examples":
            return f"{runs:>4} runs  {phase}"
        errors = [s.error for s in samples if s.error is not None]
        violating = sum(s.violation is not None for s in samples)
        text = f"{runs:>4}/{self.examples} examples  {violating} violations"
        if errors:
            text += f"  mean error {100 * sum(errors) / len(errors):.3f} %  worst {100 * max(errors):.3f} %"
        return text
