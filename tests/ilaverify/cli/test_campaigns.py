"""The campaign engine and its command line, on toys with known answers."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ilaverify.cli.campaigns.properties import _bounds_are
from rewrites.campaigns import campaign as engine
from rewrites.campaigns.campaign import CampaignError, run_campaign
from rewrites.campaigns.definition import Outcome, Skip, outside_bound
from rewrites.campaigns.distributions import draw_integers, draw_real
from rewrites.campaigns.shrink import shrink_arrays
from rewrites.campaigns.statistics import relative_error, sample_of, statistics_of
from tests.ilaverify.cli import toy_campaigns as toys

ROOT = Path(__file__).parents[3]
CUT, SUM, HOLDS = (toys.CAMPAIGNS[f"toy_{name}"] for name in ("cut", "sum", "holds"))


# -- samples --------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_samples_again_and_another_seed_gives_others() -> None:
    first, again, other = (run_campaign(CUT, examples=40, seed=seed) for seed in (7, 7, 8))
    assert first.samples == again.samples
    assert first.errors == again.errors
    assert first.samples != other.samples
    assert len(first.samples) == 40


def test_samples_do_not_depend_on_what_else_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["toy_holds", "--json", "--seed", "5"]
    assert toys.main(arguments) == 0
    command = [sys.executable, "-m", "tests.ilaverify.cli.toy_campaigns", *arguments]
    fresh = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(fresh.stdout) == json.loads(capsys.readouterr().out)


def test_samples_do_not_depend_on_constants_of_loaded_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Hypothesis takes some of its numbers from the constants of the modules that are loaded
    before = run_campaign(HOLDS, examples=60, seed=5).samples
    numbers = ", ".join(str(n) for n in [*range(150), *range(10**6, 10**12, 10**10)])
    (tmp_path / "full_of_numbers.py").write_text(f"NUMBERS = [{numbers}]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "full_of_numbers", importlib.import_module("full_of_numbers"))
    assert run_campaign(HOLDS, examples=60, seed=5).samples == before


def test_every_sample_is_the_example_of_its_sizes_distribution_and_seed() -> None:
    result = run_campaign(CUT, examples=30, seed=2)
    for sample in result.samples:
        example = CUT.example(sample.parameters, sample.distribution, sample.seed)
        assert sample_of(example, CUT.evaluate(example)) == sample
    assert {s.distribution for s in result.samples} == set(CUT.distributions)
    assert len({s.seed for s in result.samples}) > 20


def test_a_violation_does_not_cut_the_statistics_short() -> None:
    result = run_campaign(CUT, examples=60, seed=0)
    violating = [s for s in result.samples if s.violation == "uncut"]
    assert len(result.samples) == 60
    assert result.violating == len(violating) > 1
    assert result.finding is not None
    first = violating[0]
    drawn = result.finding.drawn
    assert (dict(drawn.parameters), drawn.distribution, drawn.seed) == (
        first.parameters,
        first.distribution,
        first.seed,
    )


def test_the_three_errors_and_the_worst_sample() -> None:
    result = run_campaign(HOLDS, examples=30, seed=1)
    for sample in result.samples:
        x = HOLDS.example(sample.parameters, sample.distribution, sample.seed).arrays["x"]
        rounded = np.round(x, 2)
        assert sample.error == sample.input_error == pytest.approx(np.linalg.norm(rounded - x) / np.linalg.norm(x))
        assert sample.arithmetic_error == 0
    errors = [s.error for s in result.samples if s.error is not None]
    assert result.errors == statistics_of(errors)
    assert result.worst is not None
    assert result.worst.error == max(errors)


def test_more_examples_than_there_are() -> None:
    one = {"rows": range(1, 2), "columns": range(2, 3)}
    few = toys.campaign("few", toys.cut(9.0), parameters=one, distributions={"uniform": "uniform"})
    assert len(run_campaign(few, examples=20).samples) == 20  # seeds differ


# -- violations -----------------------------------------------------------------------------------------


def test_sizes_and_data_are_shrunk() -> None:
    finding = run_campaign(CUT, examples=60, seed=0).finding
    assert finding is not None
    assert finding.smallest.parameters == finding.example.parameters == {"rows": 1, "columns": 2}
    assert finding.smallest.seed is not None
    assert finding.example.seed is None
    (value,) = finding.example.arrays["x"][finding.example.arrays["x"] != 0].tolist()
    assert abs(value) > 2
    assert abs(value) * 16 == int(abs(value) * 16)  # few significant bits
    assert finding.violation == CUT.evaluate(finding.example).violation
    assert not finding.saved


def test_integers_are_shrunk_to_the_smallest() -> None:
    finding = run_campaign(SUM, examples=100, seed=0).finding
    assert finding is not None
    assert finding.example.arrays["x"].tolist() == [3001]
    assert finding.violation.text == "the sum is 3001"


def test_data_are_shrunk_where_sizes_are_fixed() -> None:
    arrays = {"x": np.array([7.3, 0.2, 2.6, -0.1, 1.9, 0.0, -5.0, 1.0]).reshape(4, 2)}
    example = toys.Example({"rows": 4, "columns": 2}, "normal", 3, arrays)
    violation = CUT.evaluate(example).violation
    assert violation is not None
    shrunk = shrink_arrays(CUT, example, violation)
    assert shrunk.example.parameters == {"rows": 1, "columns": 2}
    assert np.count_nonzero(shrunk.example.arrays["x"]) == 1
    assert shrunk.example.seed is None
    assert example.arrays["x"][0, 0] == 7.3  # what was given is unchanged
    assert shrunk.runs <= 400
    assert set(shrunk.steps) <= {"sizes", "zeros", "equal magnitudes", "rounding"}


def test_shrinking_stops_when_the_runs_are_used_up() -> None:
    example = CUT.example({"rows": 8, "columns": 20}, "heavy", 1)
    violation = CUT.evaluate(example).violation
    assert violation is not None
    shrunk = shrink_arrays(CUT, example, violation, runs=3)
    assert shrunk.runs == 3


def test_hypothesis_stops_to_shrink_after_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SHRINKING_RUNS", 2)
    calls: list[str] = []
    finding = run_campaign(CUT, examples=60, seed=0, progress=lambda phase, *_: calls.append(phase)).finding
    assert finding is not None
    assert finding.smallest.parameters != {"rows": 1, "columns": 2}
    assert calls.count("examples") == 60


def test_a_saved_violation_is_tried_first_and_stays_out_of_the_statistics(tmp_path: Path) -> None:
    first = run_campaign(CUT, examples=60, seed=0, database=tmp_path / "examples")
    assert first.finding is not None
    other = run_campaign(CUT, examples=5, seed=1, database=tmp_path / "examples")
    assert other.finding is not None
    assert other.finding.saved
    assert other.finding.drawn.parameters == first.finding.smallest.parameters
    assert other.finding.drawn.seed == first.finding.smallest.seed
    assert other.samples == run_campaign(CUT, examples=5, seed=1).samples


def test_nothing_is_said_where_the_bound_is_not_a_number() -> None:
    found = outside_bound(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([np.inf, np.nan]))
    assert found is not None
    assert found.text == "at [1]: 2.0 is not within nan of 2.0 (1 of 2 elements violate it)"


# -- interrupts and breakage ------------------------------------------------------------------------------


def test_an_interrupt_keeps_the_samples_so_far() -> None:
    result = run_campaign(toys.campaign("toy", toys.Interrupting(13)), examples=50, seed=0)
    assert result.interrupted
    assert result.samples == run_campaign(HOLDS, examples=50, seed=0).samples[:12]
    assert result.finding is None


def test_an_interrupt_keeps_a_violation_found_before_it() -> None:
    result = run_campaign(toys.campaign("toy", toys.Interrupting(40, 2.0)), examples=60, seed=0)
    whole = run_campaign(CUT, examples=60, seed=0)
    assert result.interrupted
    assert result.finding is not None
    assert whole.finding is not None
    example, drawn = result.finding.example, result.finding.drawn
    assert (example.parameters, example.distribution, example.seed) == (
        drawn.parameters,
        drawn.distribution,
        drawn.seed,
    )
    assert drawn.seed == whole.finding.drawn.seed


@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_an_interrupt_while_shrinking_keeps_the_smallest_so_far(part: float) -> None:
    counting = toys.Interrupting(-1, 2.0)
    run_campaign(toys.campaign("toy", counting), examples=60, seed=0)
    last = 60 + int(part * (counting.runs - 60))
    assert last > 60
    result = run_campaign(toys.campaign("toy", toys.Interrupting(last, 2.0)), examples=60, seed=0)
    assert result.interrupted
    assert len(result.samples) == 60
    assert result.finding is not None
    assert CUT.evaluate(result.finding.example).violation == result.finding.violation


def test_an_error_of_a_side_names_the_example() -> None:
    with pytest.raises(CampaignError) as caught:
        run_campaign(toys.CAMPAIGNS["toy_broken"], examples=50, seed=0)
    text = str(caught.value)
    assert text.startswith("Campaign toy_broken broke at rows ")
    assert text.endswith(": ZeroDivisionError: no such unit")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"examples": 0}, "examples must be at least 1, not 0"),
        ({"seed": -1}, "seed must be 0 or more, not -1"),
    ],
)
def test_what_a_run_asks_for(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        run_campaign(CUT, **arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_what_a_definition_asks_for() -> None:
    with pytest.raises(ValueError) as caught:
        toys.campaign("long", toys.flat, parameters={"rows": range(101)})
    assert str(caught.value) == (
        "Parameter rows of campaign long must have 1 .. 100 values, not 101; use a longer step"
    )
    with pytest.raises(ValueError) as caught:
        CUT.example({"rows": 9, "columns": 2}, "normal", 1)
    assert str(caught.value) == "rows must be in 1 .. 8, not 9"
    with pytest.raises(ValueError) as caught:
        CUT.example({"rows": 1}, "normal", 1)
    assert str(caught.value) == "parameters must be exactly rows, columns, not rows"


# -- statistics and distributions -------------------------------------------------------------------------


def test_the_relative_error() -> None:
    assert relative_error(np.array([[3.0, 4.0]]), np.array([[3.0, 4.0]])) == 0
    assert relative_error(np.array([0.0, 5.0]), np.array([3.0, 4.0])) == pytest.approx(np.sqrt(10) / 5)
    assert relative_error(np.zeros(2), np.zeros(2)) == 0
    with pytest.raises(Skip) as caught:
        relative_error(np.ones(2), np.zeros(2))
    assert str(caught.value) == "the reference is zero, the result is not: no relative error"
    with pytest.raises(ValueError) as wrong:
        relative_error(np.ones(2), np.ones(3))
    assert str(wrong.value) == "Result and reference must have one shape, not (2,) and (3,)"
    with pytest.raises(ValueError) as wrong:
        relative_error(np.array([np.nan]), np.ones(1))
    assert str(wrong.value) == "Result and reference must be finite, not NaN or infinite"


def test_a_sample_without_a_relative_error_is_skipped_but_checked() -> None:
    example = HOLDS.example({"rows": 1, "columns": 2}, "normal", 1)
    sample = sample_of(example, Outcome(np.zeros(2), np.ones(2)))
    assert (sample.error, sample.skipped) == (None, "the reference is zero, the result is not: no relative error")
    assert sample.covered == 1


@pytest.mark.parametrize("seed", range(20))
def test_real_data_stay_in_their_range(seed: int) -> None:
    generator = np.random.default_rng(seed)
    heavy = draw_real(generator, "heavy", (5, 7), largest=(0.5, 3.0))
    assert heavy.shape == (5, 7)
    assert 0.5 * (1 - 1e-12) <= np.abs(heavy).max() <= 3.0 * (1 + 1e-12)
    assert np.abs(draw_real(generator, "uniform", (50,), scale=0.5)).max() <= 0.5
    extreme = draw_integers(generator, "extreme", (50,), -128, 127)
    assert set(extreme.tolist()) <= {-128, -1, 0, 1, 127}
    assert set(draw_integers(generator, "small", (500,), -128, 127).tolist()) == set(range(-8, 8))


@pytest.mark.parametrize(
    ("theorems", "are"),
    [((), "declared"), (("no such theorem",), "declared"), (("FlexASR linear",), "proved by bound-flexasr-linear")],
)
def test_bounds_are_proved_by_claims_that_there_are(theorems: tuple[str, ...], are: str) -> None:
    assert _bounds_are(SimpleNamespace(theorems=theorems)) == are  # type: ignore[arg-type]
