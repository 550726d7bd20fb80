"""The verb ``campaign`` on toys, and the files that it writes and reads."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilaverify.catalogue import find_campaign
from ilaverify.cli.campaigns import properties as cli_campaign
from ilaverify.errors import UsageError
from ilaverify.mlir.campaign import NAME as PASSES
from rewrites.campaigns.campaign import run_campaign
from rewrites.campaigns.examples import ExampleFileError, read_example, write_example
from tests.ilaverify.cli import toy_campaigns as toys

ROOT = Path(__file__).parents[3]
CUT = toys.CAMPAIGNS["toy_cut"]

# -- the command line -------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = toys.main([str(a) for a in arguments])
    streams = capsys.readouterr()
    return code, streams.out, streams.err


def test_a_campaign_that_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "toy_holds", "--examples", 20, "-o", tmp_path)
    assert (code, err) == (0, "")
    assert "violations     0 of 20 examples that were checked" in out
    assert "(found by sampling: this is no proof)" in out
    assert "uniform: uniform in [-1, 1)" in out
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"toy_holds.campaign.json", "toy_holds.histogram.svg"}
    content = json.loads((tmp_path / "toy_holds.campaign.json").read_text())
    assert content["schema"] == cli_campaign.RESULT_SCHEMA
    assert len(content["samples"]) == 20
    assert content["error"]["count"] == 20


def test_files_are_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in "ab":
        run(capsys, "toy_cut", "--seed", 4, "-o", tmp_path / name)
    for name in ("campaign.json", "violation.json", "histogram.svg"):
        assert (tmp_path / f"a/toy_cut.{name}").read_bytes() == (tmp_path / f"b/toy_cut.{name}").read_bytes()


def test_a_violation_is_written_and_replays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "toy_cut", "-o", tmp_path / "größte Fehler")
    path = tmp_path / "größte Fehler" / "toy_cut.violation.json"
    assert code == 1
    assert f"  to replay    ilaverify campaign toy_cut --replay '{path}'\n" in out
    assert (path.parent / "toy_cut.examples").is_dir()
    code, out, _ = run(capsys, "toy_cut", "--replay", path)
    assert code == 1
    assert "VIOLATED       uncut: at [0, " in out
    content = json.loads(path.read_text())
    content["arrays"]["x"]["values"] = [0.5, -0.5]
    path.write_text(json.dumps(content))
    assert run(capsys, "toy_cut", "--replay", path)[0] == 0


def test_a_replay_that_says_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = violation_file(tmp_path, campaign="toy_flat")
    code, out, _ = run(capsys, "toy_flat", "--replay", path)
    assert code == 0
    assert "not violated   (no statement: there is nothing to compare)" in out


def test_without_a_directory_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "toy_cut")
    assert code == 1
    assert "  to replay    run again with -o DIR, which writes the example" in out
    assert list(tmp_path.iterdir()) == []


def test_a_campaign_that_checks_nothing_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "toy_flat", "--examples", 5)
    assert code == 2
    assert "skipped        5: there is nothing to compare" in out
    assert "NOTHING        was checked" in out


def test_a_campaign_that_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "toy_broken")
    assert code == 2
    assert err.startswith("ilaverify: Campaign toy_broken broke at rows ")


def test_json_output(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "toy_cut", "--json")
    assert code == 1
    content = json.loads(out)
    assert content["violation"]["property"] == "uncut"
    assert content["written"] == []


@pytest.mark.parametrize(
    ("limit", "code", "files"),
    [(1e9, 130, {"campaign.json", "histogram.svg"}), (2.0, 130, {"campaign.json", "histogram.svg", "violation.json"})],
)
def test_an_interrupt_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: float,
    code: int,
    files: set[str],
) -> None:
    monkeypatch.setitem(toys.CAMPAIGNS, "toy", toys.campaign("toy", toys.Interrupting(40, limit)))
    found, out, _ = run(capsys, "toy", "--examples", 80, "-o", tmp_path)
    assert found == code
    assert "interrupted    after 39 of 80 examples; this is what was found" in out
    assert "no proof" not in out
    assert {p.name.removeprefix("toy.") for p in tmp_path.iterdir() if p.is_file()} == files
    assert json.loads((tmp_path / "toy.campaign.json").read_text())["interrupted"] is True


def test_a_signal_keeps_what_was_found(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.ilaverify.cli.toy_campaigns", "toy_slow", "--json", "-o", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ten examples\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert json.loads(out)["interrupted"] is True
    assert len(json.loads((tmp_path / "toy_slow.campaign.json").read_text())["samples"]) == 10


def test_results_are_shown_where_writing_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("reports.certificate.write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        toys.main(["toy_holds", "-o", str(tmp_path)])
    assert "violations     0 of 100 examples" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_progress_is_one_line_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = cli_campaign._Progress(30)
    samples = run_campaign(CUT, examples=30, seed=0).samples
    progress("examples", 30, samples)
    progress("examples", 30, samples)  # too soon after the first
    progress.clear()
    err = capsys.readouterr().err
    assert err.startswith("\r\x1b[K  30/30 examples  ")
    assert err.count("examples") == 1
    assert err.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["toy_none"],
            f"campaign must be one of {', '.join(toys.CAMPAIGNS)}, not 'toy_none' (did you mean toy_broken?)",
        ),
        ([], f"campaign must be given a NAME, one of {', '.join([*toys.CAMPAIGNS, PASSES])}"),
        (["toy_cut", "-o", __file__], f"-o must name a directory, not the file {__file__}"),
        (["toy_cut", "--replay", "/none"], "/none: an example must be a readable file: No such file or directory"),
    ],
)
def test_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert run(capsys, *arguments) == (64, "", f"ilaverify: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--examples", "0"], "argument --examples: must be a positive integer, not '0'"),
        (["--seed", "-1"], "argument --seed: must be a seed, an integer of 0 or more, not '-1'"),
        (["--seed", "1.5"], "argument --seed: must be a seed, an integer of 0 or more, not '1.5'"),
    ],
)
def test_bad_numbers(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit):
        toys.main(["toy_cut", *arguments])
    assert message in capsys.readouterr().err


def test_names_are_listed_and_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [*toys.CAMPAIGNS, PASSES]
    with pytest.raises(UsageError, match=r"\(did you mean flexasr_maxpool\?\)"):
        find_campaign("flexasr_maxpol")


# -- example files ----------------------------------------------------------------------------------------


def violation_file(directory: Path, **changes: Any) -> Path:
    result = run_campaign(CUT, examples=60, seed=0)
    assert result.finding is not None
    path = directory / "violation.json"
    write_example(path, CUT, result.finding, 0)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def test_an_example_is_read_as_it_was_written(tmp_path: Path) -> None:
    finding = run_campaign(CUT, examples=60, seed=0).finding
    assert finding is not None
    write_example(tmp_path / "e.json", CUT, finding, 0)
    example = read_example(tmp_path / "e.json", CUT)
    assert np.array_equal(example.arrays["x"], finding.example.arrays["x"])
    assert (example.parameters, example.distribution) == (finding.example.parameters, finding.example.distribution)
    history = json.loads((tmp_path / "e.json").read_text())["history"]
    assert history["drawn"]["seed"] == str(finding.drawn.seed)


X = {"dtype": "float64", "shape": [1, 2], "values": [0.0, 3.0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "x"}, "schema must be 'ilaverify-example-1', not 'x'; give a file that -o wrote"),
        (
            {"more": 1},
            "keys must be exactly schema, campaign, parameters, distribution, seed, arrays, violation, history, "
            "not arrays, campaign, distribution, history, more, parameters, schema, seed, violation",
        ),
        ({"campaign": "toy_sum"}, "campaign must be 'toy_cut', not 'toy_sum'; replay it with that name"),
        ({"parameters": {"rows": 1.0}}, 'parameters must be an object of integers, not {"rows": 1.0}'),
        ({"parameters": {"rows": True}}, 'parameters must be an object of integers, not {"rows": true}'),
        ({"parameters": {"rows": 1}}, "parameters must be exactly rows, columns, not rows"),
        ({"parameters": {"rows": 1, "columns": 3}}, "columns must be in 2, 4 .. 20, not 3"),
        ({"distribution": "odd"}, "distribution must be one of uniform, normal, heavy, not 'odd'"),
        ({"arrays": {}}, "arrays must be exactly x, not none"),
        ({"arrays": [1]}, "arrays must be exactly x, not [1]"),
        (
            {"arrays": {"x": X | {"shape": [2, 1]}}},
            'array x must be float64 of shape [1, 2], not "float64" of shape [2, 1]',
        ),
        (
            {"arrays": {"x": X | {"dtype": "int8"}}},
            'array x must be float64 of shape [1, 2], not "int8" of shape [1, 2]',
        ),
        ({"arrays": {"x": {"values": []}}}, "array x must have exactly dtype, shape and values"),
        ({"arrays": {"x": X | {"values": [1.0]}}}, "array x must have 2 values, not 1"),
        ({"arrays": {"x": X | {"values": [1.0, "2"]}}}, "values of array x must be a list of numbers of type float64"),
        ({"arrays": {"x": X | {"values": [1.0, float("nan")]}}}, "values of array x must be finite"),
        ({"arrays": {"x": X | {"values": [1.0, 10**400]}}}, "values of array x must fit in float64"),
    ],
)
def test_a_corrupt_example_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = violation_file(tmp_path, **changes)
    with pytest.raises(ExampleFileError) as caught:
        read_example(path, CUT)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'{"schema":',
            "an example must be complete JSON, not text that breaks at line 1, column 11 (Expecting value); "
            "write it again with -o",
        ),
        (
            b"\xff",
            "an example must be UTF-8 text: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (b"[]", "schema must be 'ilaverify-example-1', not 'list'; give a file that -o wrote"),
        (b"[" * 100000, "an example must be flat JSON, not nested beyond reading"),
        (b'{"seed": 1, "seed": 2}', "an object must have a key once, not 'seed' twice; remove one"),
    ],
)
def test_a_file_that_is_no_example_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with pytest.raises(ExampleFileError) as caught:
        read_example(path, CUT)
    assert str(caught.value) == f"{path}: {message}"


def test_data_that_a_side_refuses_are_bad_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(capsys, "toy_sum", "-o", tmp_path)
    path = tmp_path / "toy_sum.violation.json"
    content = json.loads(path.read_text())
    content["arrays"]["x"]["values"] = [4001]
    path.write_text(json.dumps(content))
    code, _, err = run(capsys, "toy_sum", "--replay", path)
    assert (code, err) == (64, f"ilaverify: {path}: x must be in -4000 .. 4000, not hold 4001 .. 4001\n")


# -- the document -------------------------------------------------------------------------------------------


def test_the_document_shows_the_committed_table() -> None:
    rows = re.compile(r"^\| (?:VTA|HLSCNN|FlexASR) \w+ \| \d.*$", re.MULTILINE)
    shown = rows.findall((ROOT / "docs/how-to/campaigns.md").read_text(encoding="utf-8"))
    measured = rows.findall((ROOT / "benchmarks/results/table2.md").read_text(encoding="utf-8"))
    assert len(shown) == 8
    assert shown == measured
