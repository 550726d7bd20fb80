"""Small campaigns with known answers, and a command line that knows only them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ilaverify import catalogue
from ilaverify.cli.campaigns import properties as cli_campaign
from ilaverify.errors import EXIT_BAD_USAGE, UsageError
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, Skip, Violation, first_violation, in_range
from rewrites.campaigns.distributions import REAL, draw_real

SHAPE = {"rows": range(1, 9), "columns": range(2, 21, 2)}


def make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    return {"x": draw_real(generator, distribution, (parameters["rows"], parameters["columns"]))}


def cut(limit: float) -> Any:
    """x, cut at a limit; the property: no element is cut."""

    def evaluate(example: Example) -> Outcome:
        x = example.arrays["x"]
        result = np.clip(np.round(x, 2), -limit, limit)
        violation = first_violation("uncut", np.abs(x) > limit, lambda i: f"{x[i]} is cut to {result[i]}")
        return Outcome(x, result, np.round(x, 2), violation)

    return evaluate


def even_sum(example: Example) -> Outcome:
    """Integers; the property: the sum of the elements above 1000 is not above 3000."""
    x = in_range("x", example.arrays["x"], -4000, 4000).astype(np.float64)
    total = x[x > 1000].sum()
    violation = Violation("sum", f"the sum is {total:g}") if total > 3000 else None
    return Outcome(x, x, None, violation)


def make_integers(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    return {"x": generator.integers(-4000, 4000, parameters["rows"])}


def flat(example: Example) -> Outcome:
    raise Skip("there is nothing to compare")


def broken(example: Example) -> Outcome:
    if example.parameters["rows"] > 3:
        raise ZeroDivisionError("no such unit")
    return cut(1e9)(example)


class Interrupting:
    """Raises KeyboardInterrupt in the run of that number."""

    def __init__(self, at: int, limit: float = 1e9) -> None:
        self.runs, self.at, self.limit = 0, at, limit

    def __call__(self, example: Example) -> Outcome:
        self.runs += 1
        if self.runs == self.at:
            raise KeyboardInterrupt
        return cut(self.limit)(example)


def slow(example: Example) -> Outcome:
    """After the tenth example, says so and waits for the interrupt."""
    slow_runs.append(1)
    if len(slow_runs) == 11:
        os.write(1, b"ten examples\n")
        time.sleep(60)
    return cut(1e9)(example)


slow_runs: list[int] = []


def campaign(name: str, evaluate: Any, **changes: Any) -> Campaign:
    values: dict[str, Any] = {
        "summary": f"a toy, {name}",
        "reference": "x itself",
        "property": "what the toy says",
        "parameters": SHAPE,
        "distributions": REAL,
        "make": make,
    }
    return Campaign(name=name, evaluate=evaluate, **(values | changes))


CAMPAIGNS = {
    c.name: c
    for c in (
        campaign("toy_holds", cut(1e9)),
        campaign("toy_cut", cut(2.0)),
        campaign(
            "toy_sum",
            even_sum,
            parameters={"rows": range(1, 9)},
            make=make_integers,
            distributions={"any": "-4000 .. 3999"},
        ),
        campaign("toy_flat", flat),
        campaign("toy_broken", broken),
        campaign("toy_slow", slow),
    )
}


def main(arguments: Sequence[str]) -> int:
    """The verb ``campaign`` on the toys."""
    parser = argparse.ArgumentParser()
    cli_campaign.add_parser(parser.add_subparsers(required=True))
    before = catalogue.campaigns
    catalogue.campaigns = lambda: CAMPAIGNS
    try:
        options = parser.parse_args(["campaign", *arguments])
        code: int = options.run(options)
        return code
    except UsageError as error:
        print(f"ilaverify: {error}", file=sys.stderr)
        return EXIT_BAD_USAGE
    finally:
        catalogue.campaigns = before


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with interrupts ignored
    sys.exit(main(sys.argv[1:]))
