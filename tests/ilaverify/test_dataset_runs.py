"""Many samples give what each of them gives alone, wherever they run; what does not fit is said before they run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ilaverify
from ilaverify import cli
from ilaverify.cli.run import lines_of, network_lines
from ilaverify.errors import UsageError
from ilaverify.models.comparison import (
    Answers,
    Comparison,
    OutputComparison,
    Samples,
    _answers,
    compare,
    outputs_beside,
)
from ilaverify.models.datasets import dataset_of, read_arrays, stacked
from ilaverify.models.nodes import RESULT, Cut, Furthest, NodeComparison
from ilaverify.proving import dataset_runs
from ilaverify.proving.dataset_runs import Work, numbers_name
from ilaverify.proving.workers import Ended, Limits, MachinesError, Task
from ir_semantics.graph import TensorType
from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Graph
from rewrites.compiler.artefact.arrays import arrays_of, npz_bytes
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.artefact.model import Compiled
from rewrites.compiler.composition.of_runs import Composed, OwnError

COUNT = 7


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Samples and labels."""
    np.savez(tmp_path / "x.npz", image=images(), labels=np.arange(COUNT) % 5)
    return tmp_path / "x.npz"


@pytest.fixture
def compiled(place: Path) -> Compiled:
    return ilaverify.load(place / "made")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All samples but the first go to processes, each to its own."""
    monkeypatch.setattr(dataset_runs, "ALONE_SECONDS", 0.0)
    monkeypatch.setattr(dataset_runs, "TASK_SECONDS", 1e-9)


def images(count: int = COUNT) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, size=(count, 2, 6, 6)).astype("float32")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.main([str(a) for a in arguments])
    return code, *capsys.readouterr()


def test_samples_are_run_as_each_of_them_alone(compiled: Compiled, at_once: None) -> None:
    several = ilaverify.run(compiled, {"image": images()[:, None]}, labels=np.arange(COUNT) % 5, jobs=2)
    single = [ilaverify.run(compiled, {"image": one[None]}) for one in images()]
    assert several.samples == COUNT and several.results["scores"].shape == (COUNT, 5)
    assert np.array_equal(several.results["scores"], np.concatenate([one.results["scores"] for one in single]))
    for number, node in enumerate(several.nodes):
        alone = single[node.sample].nodes[number]
        assert (node.own, node.own_bound, node.reference) == (alone.own, alone.own_bound, alone.reference)
        assert all(one.nodes[number].joined(node).sample == node.sample for one in single[: node.sample])
    assert several.outputs[0].error == max(one.outputs[0].error for one in single)
    (answers,) = several.answers
    right = int((several.results["scores"].argmax(1) == np.arange(COUNT) % 5).sum())
    assert answers.as_labelled == right and answers.count == COUNT
    assert answers.as_reference == sum(one.answers[0].as_reference for one in single)


def test_results_do_not_depend_on_jobs(
    place: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], at_once: None
) -> None:
    said, written = [], []
    for jobs in (1, 2, 3):
        arguments = ("--inputs", data, "--jobs", jobs, "--output", tmp_path / "y.npz", "--json")
        code, out, err = run(capsys, "run", place / "made", *arguments)
        told = json.loads(out)
        assert (code, err, told["samples"]) == (0, "", {"done": COUNT, "number": COUNT})
        for timed in (told, *told["operators"]):
            for key in [key for key in timed if key.endswith("seconds")]:
                del timed[key]
        said.append(told)
        written.append((tmp_path / "y.npz").read_bytes())
    assert said[0] == said[1] == said[2] and written[0] == written[1] == written[2]


@pytest.mark.parametrize("together", [1, 3, 64])
def test_samples_that_run_together_are_compared_as_each_alone(
    together: int, compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is known of every sample, but for times; a sample's numbers that were cut are its own."""
    x, labels = images()[:, None], np.arange(COUNT)[:, None] % 5
    x[2] *= 100
    arguments = compiled.graph, compiled.implementations
    rows = [slice(k, k + 1) for k in range(COUNT)]
    ranges = compiled.calibrated
    samples = [Samples({"image": x[k]}, None, labels[k], k.start) for k in rows]
    alone = [compare(*arguments, one, calibration=ranges)[0] for one in samples]
    side_by_side = compare(*arguments, Samples({"image": x}, labels=labels), calibration=ranges)
    assert [timeless(one) for one in side_by_side] == [timeless(one) for one in alone]
    assert sum(cut.count for cut in side_by_side[2].cut[0].cuts) > sum(c.count for n in alone[1].cut for c in n.cuts)
    for one, other in zip(side_by_side, alone, strict=True):
        assert one.results["scores"].tobytes() == other.results["scores"].tobytes()
    monkeypatch.setattr(dataset_runs, "MOST_TOGETHER", together)
    whole = ilaverify.run(compiled, {"image": x}, labels=labels[:, 0])
    joined = replace(reduce(Comparison.joined, alone), in_ranges=whole.in_ranges)  # which are of no sample
    assert whole.in_ranges and timeless(whole) == timeless(joined)


def timeless(comparison: Comparison) -> dict[str, Any]:
    content = comparison.as_json() | {"seconds": 0, "device_seconds": 0, "fastest": 0}
    return content | {"nodes": [node | {"seconds": 0} for node in content["nodes"]]}


def test_what_is_shown_of_several_samples(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", images())
    np.save(tmp_path / "labels.npy", np.arange(COUNT) % 5)
    arguments = ("--inputs", tmp_path / "x.npy", "--labels", tmp_path / "labels.npy", "--reference", "onnxruntime")
    pytest.importorskip("onnxruntime")
    code, out, _ = run(capsys, "run", place / "made", *arguments)
    assert code == 0 and f"2 operators on accelerators, {COUNT} of {COUNT} samples\n" in out
    assert "errors are those of the sample in which an operator comes nearest to its bound; s is of all\n" in out
    assert "  scores: answers as labelled: " in out and "; onnxruntime: " in out
    assert "; both alike: 7 of 7 (100.0 %)\n" in out
    assert "; the fastest sample 0." in out
    code, out, _ = run(capsys, "run", place / "made", "--random", "2")
    assert code == 0 and "  scores: answers as host: 2 of 2 (100.0 %)\n" in out


def test_a_task_whose_process_ends_is_tried_again(
    compiled: Compiled, at_once: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain, parent = Work.measure, os.getpid()

    def mortal(self: Work, first: int, *more: Any) -> str:
        if os.getpid() != parent and first == 3 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), 9)
        return plain(self, first, *more)

    monkeypatch.setattr(Work, "measure", mortal)
    found = ilaverify.run(compiled, {"image": images()}, jobs=2)
    assert found.samples == COUNT and (tmp_path / "killed").exists()


def test_samples_whose_processes_always_end_are_named(
    place: Path,
    data: Path,
    at_once: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    plain, parent = Work.measure, os.getpid()

    def mortal(self: Work, first: int, *more: Any) -> str:
        if os.getpid() != parent and first == 5:
            os.kill(os.getpid(), 9)
        return plain(self, first, *more)

    monkeypatch.setattr(Work, "measure", mortal)
    arguments = ("--inputs", data, "--output", tmp_path / "y.npz", "--jobs", "2")
    code, out, err = run(capsys, "run", place / "made", *arguments)
    assert code == 2 and "operators on accelerators, 6 of 7 samples\n" in out
    assert err == (
        "ilaverify: samples were tried 2 times, and have no result; those from 5 on: its process was ended by SIGKILL; "
        "probably out of memory; 6 of 7 samples are shown\n"
    )
    with np.load(tmp_path / "y.npz") as results:
        assert results["samples"].tolist() == [0, 1, 2, 3, 4, 6] and results["scores"].shape == (6, 5)


def test_numbers_of_samples_have_a_name_of_their_own() -> None:
    assert numbers_name(["scores"]) == "samples"
    assert numbers_name(["samples", "samples_"]) == "samples__"


def test_scores_with_nan_are_no_answer() -> None:
    """Neither one that is alike, nor one that is right, whatever the label is."""
    scores = np.array([[0, 1], [np.nan, 1], [1, 0]], np.float32)
    answers = _answers("y", scores, scores, np.array([1, 1, -1]))
    assert answers == Answers("y", 3, 2, 1, 1)


def test_an_interrupted_run_shows_what_there_is(
    place: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Work.measure

    def interrupted(self: Work, first: int, *more: Any) -> str:
        if first == stop:
            signal.raise_signal(signal.SIGINT)
        return plain(self, first, *more)

    monkeypatch.setattr(Work, "measure", interrupted)
    monkeypatch.setattr(dataset_runs, "MOST_TOGETHER", 1)
    command = ("run", place / "made", "--inputs", data, "--jobs", "1")
    stop = 2
    code, out, err = run(capsys, *command)
    assert code == 130 and "2 of 7 samples\n" in out and err == "ilaverify: interrupted; 2 of 7 samples are shown\n"
    stop = 0
    assert run(capsys, *command) == (130, "", "ilaverify: interrupted; nothing was written\n")


def test_machines_that_go_away_leave_what_there_is(
    place: Path, data: Path, at_once: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(limits: Limits, tasks: Sequence[Task]) -> Iterator[Ended]:
        yield Ended(tasks[1].name, tasks[1].run(), "", 0.0)
        raise MachinesError("the scheduler has gone away")

    monkeypatch.setattr(dataset_runs, "run_within", away)
    code, out, err = run(capsys, "run", place / "made", "--inputs", data)
    assert code == 2 and ", 2 of 7 samples\n" in out and "\nin 2 of 7 samples, 2 of 2 operators are within" in out
    assert err == "ilaverify: the scheduler has gone away; 2 of 7 samples are shown\n"


def test_a_sample_that_cannot_run_is_named(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], at_once: None
) -> None:
    given = images()
    given[4, 0, 0, 0] = np.inf
    np.save(tmp_path / "x.npy", given)
    out = tmp_path / "y.npz"
    code, said, err = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npy", "--output", out)
    assert (code, said) == (64, "") and not out.exists()
    assert err.startswith("ilaverify: sample 4: operand 0 of node ") and "must be finite numbers" in err


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"image": np.zeros((0, 2, 6, 6), "float32")},
            "the input image must have a sample or more, not none; give some",
        ),
        (
            {"image": images().astype("float64")},
            "the input image must be float32[1, 2, 6, 6] or several of these, not float64[7, 2, 6, 6]; convert it",
        ),
        ({"images": images()}, "the input image must be given, as float32[1, 2, 6, 6] or several of these; give an"),
        (
            {"image": images(), "x": images()},
            "arrays must be of inputs (image), or labels with the right answers, not of x",
        ),
        (
            {"image": np.where(np.arange(7 * 72).reshape(7, 2, 6, 6) == 150, np.nan, images()).astype("float32")},
            "the input image must be numbers, and 1 of 504 are NaN, the first in sample 2; leave these samples out",
        ),
        (
            {"image": images(), "labels": np.arange(6) % 5},
            "labels must be integers, 1 for each of 7 samples, as scores has answers, not int64[6]",
        ),
        (
            {"image": images(), "labels": np.zeros(7)},
            "labels must be integers, 1 for each of 7 samples, as scores has answers, not float64[7]",
        ),
        (
            {"image": images(), "labels": np.arange(7)},
            "labels must be 0 to 4, for scores is float32[1, 5], not 0 to 6",
        ),
    ],
)
def test_inputs_that_do_not_fit(
    arrays: dict[str, np.ndarray], message: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    out = tmp_path / "y.npz"
    code, said, err = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz", "--output", out)
    assert (code, said) == (64, "") and err.startswith(f"ilaverify: {message}") and not out.exists()


def test_labels_that_come_twice(place: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "y.npy", np.arange(COUNT) % 5)
    told = "labels must come once, and are an array of that name, too; leave one of them out"
    assert run(capsys, "run", place / "made", "--inputs", data, "--labels", tmp_path / "y.npy") == (
        64, "", f"ilaverify: {told}\n"
    )  # fmt: skip
    with pytest.raises(UsageError, match=told):
        labels = np.arange(COUNT) % 5
        ilaverify.run(ilaverify.load(place / "made"), {"image": images(), "labels": labels}, labels=labels)


def test_files_that_are_none_of_arrays(
    place: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "two.npz", a=np.zeros(7, int), b=np.zeros(7, int))
    (tmp_path / "cut.npy").write_bytes(data.read_bytes()[:10])
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY\x01\x00")
    for option, file, message in (
        ("--labels", "two.npz", "labels must be one array, not a, b"),
        ("--labels", "none.npy", "labels must be a readable file: No such file or directory"),
        ("--labels", "cut.npy", "write it with numpy.savez, or an array alone with numpy.save"),
        ("--labels", "short.npy", "must be an array in NumPy's format"),
        ("--inputs", "none.npz", "inputs must be a readable file: No such file or directory"),
    ):
        code, out, err = run(capsys, "run", place / "made", "--inputs", data, option, tmp_path / file)
        assert (code, out) == (64, "") and err.startswith(f"ilaverify: {tmp_path / file}") and message in err


def test_values_of_arguments_in_python(compiled: Compiled) -> None:
    for more in ({"jobs": 0}, {"reference": "torch"}):
        with pytest.raises(UsageError, match="jobs must be 1 or more, and reference host or onnxruntime; not"):
            ilaverify.run(compiled, {"image": images()}, **more)  # type: ignore[arg-type]


# -- samples and answers ------------------------------------------------------------------------------


def graph_of(inputs: dict[str, TensorType], *outputs: str) -> Graph:
    builder = Builder()
    nodes = {name: builder.input(name, of) for name, of in inputs.items()}
    return builder.graph({name: nodes[name] for name in outputs})


@pytest.fixture
def two() -> Iterator[Graph]:
    yield graph_of({"a": TensorType("float32", (3,)), "b": TensorType("int64", (1, 2))}, "a", "b")


def test_every_input_has_as_many_samples(two: Graph) -> None:
    a, b = np.zeros((4, 3), "float32"), np.zeros((4, 2), "int64")
    data = dataset_of(two, {"a": a, "b": b})
    assert data.count == 4 and not data.single and data.sample(3)["b"].shape == (1, 2)
    with pytest.raises(UsageError, match=r"^every input must have as many samples as the others; they have a: 4, b: 1"):
        dataset_of(two, {"a": a, "b": b[:1]})
    one = dataset_of(two, {"a": a[0], "b": b[:1]})
    assert one.single and one.count == 1


def test_labels_must_be_of_one_output(two: Graph) -> None:
    with pytest.raises(UsageError, match=r"^labels must be of one output .* has 2 of them: a, b; leave the labels out"):
        dataset_of(two, {"a": np.zeros(3, "float32"), "b": np.zeros((1, 2), "int64")}, np.zeros(1, int))
    only = graph_of({"b": TensorType("int64", (1, 2))}, "b")
    labels = dataset_of(only, {"b": np.zeros((4, 2), "int64")}, np.arange(8).reshape(4, 2)).labels
    assert labels is not None and labels.shape == (4, 2)


def test_results_have_samples_where_inputs_have_them() -> None:
    parts = [np.zeros((2, 1, 5)), np.ones((1, 1, 5))]
    assert stacked(TensorType("float32", (1, 5)), parts, False).shape == (3, 5)
    assert stacked(TensorType("float32", (5,)), [p[:, 0] for p in parts], False).shape == (3, 5)
    assert stacked(TensorType("float32", (1, 5)), parts[1:], True).shape == (1, 5)


def node(own: float, bound: float | None, sample: int, scale: float = 10.0) -> NodeComparison:
    return NodeComparison(1, "op", "", 1, (), own, bound, 0.0, None, "", 0.0, scale, (), 1.0, "", sample)


def test_the_worst_sample_stands_for_an_operator() -> None:
    ordered = [
        node(0.0, 0.0, 0), node(0.5, 1.0, 1), node(2.0, 2.0, 2), node(1.0, None, 3), node(11.0, None, 4),
        node(3.0, 1.0, 5), node(float("nan"), 1.0, 6),
    ]  # fmt: skip
    for i, lesser in enumerate(ordered):
        for greater in ordered[i + 1 :]:
            assert lesser.joined(greater).sample == greater.joined(lesser).sample == greater.sample
        assert lesser.joined(replace(lesser, sample=9)).sample == lesser.sample
        assert lesser.joined(lesser).seconds == 2.0


def test_the_largest_error_is_told_beside_the_sample_nearest_its_bound() -> None:
    exact, far = node(0.0156, 0.0156, 0), node(0.67, 1.0, 7)
    for joined in (exact.joined(far), far.joined(exact), exact.joined(far).joined(exact)):
        assert (joined.sample, joined.largest) == (0, Furthest(0.67, 1.0, 7))
        assert "       its largest error is 0.67, with the bound 1, in sample 7" in lines_of([joined], 2)
        told = joined.as_json()["largest_error_on_quantised_operands"]
        assert told == {"error": 0.67, "bound": 1.0, "sample": 7}
    assert not any("largest error" in line for line in lines_of([far.joined(exact).joined(node(2.0, 1.0, 9))], 3))
    assert np.isnan(far.joined(node(float("nan"), 1.0, 8)).largest.error)


def test_the_bound_of_a_network_names_its_samples_and_its_rest() -> None:
    own = (OwnError(1, 0.75, -0.25), OwnError(1, 0.25, 0.5))
    first = Composed("y", 1.0, 3.0, 1, True, "", 0.5, own, ("d",), 4, 4, 1.5)
    second = replace(first, error=2.0, bound=2.5, sample=5, error_sample=5)
    result = Comparison({}, (node(0.5, 1.0, 4),), (), (), 0.0, 0.0, 0.0, 2, (first.joined(second),))
    assert list(network_lines(result)) == [
        "y: largest error 2 in sample 5, bound 3 in sample 4, 1.5 times the error",
        "  of it 0.5 is known with its sign, 1 what operators may add, and 1.5 what weights may miss",
        "  operators, with what of them is known and may cancel: 1 node 1 (op), 0.75 node 1 (op)",
        "  declared, in at least one sample: d",
    ]


@pytest.mark.parametrize(("more", "told"), [(1, "0.25 from 1 other"), (2, "0.5 from 2 others")])
def test_operators_beyond_three_are_counted(more: int, told: str) -> None:
    own = (*[OwnError(1, 1.0)] * 3, *[OwnError(1, 0.25)] * more)
    output = Composed("y", 1.0, 3.0, 1, True, "", 0.5, own, (), 4, 4, 0.0)
    result = Comparison({}, (node(0.5, 1.0, 4),), (), (), 0.0, 0.0, 0.0, 2, (output,))
    assert list(network_lines(result))[2].endswith(f"1 node 1 (op), {told}")


@pytest.mark.parametrize(
    ("theorem", "why"),
    [("bound-op", ""), ("", "; no theorem counts for it (VTA's is not about results that are cut to -128)")],
)
def test_a_cut_result_is_no_success_and_told(theorem: str, why: str) -> None:
    cut = replace(node(0.9, 1.0, 0), cuts=(Cut(RESULT, 3, 10, False),), theorem=theorem)
    assert cut.inside and cut.cut and cut.as_json()["saturated"] == {RESULT: 3}
    assert lines_of([cut])[2:4] == [
        "       3 of 10 numbers of its result were cut to the range of their format",
        f"       the bound includes what that changes in the result{why}",
    ]


def test_outputs_and_answers_of_samples_are_added_up() -> None:
    one = OutputComparison("y", 1.0, 2.0, 3, 4, False)
    assert one.joined(OutputComparison("y", 0.5, 9.0, 1, 4, False)) == OutputComparison("y", 1.0, 9.0, 4, 8, False)
    assert np.isnan(one.joined(replace(one, error=float("nan"))).error)
    assert Answers("y", 1, 1, None, None).joined(Answers("y", 1, 0, None, None)) == Answers("y", 2, 1, None, None)
    assert Answers("y", 1, 1, 1, 0).joined(Answers("y", 2, 0, 1, 2)).text("host") == (
        "answers as labelled: 2 of 3 (66.7 %); host: 2 of 3 (66.7 %); both alike: 1 of 3 (33.3 %)"
    )


@pytest.mark.parametrize("name", ["scores\0beside", "s" * 70_000, "../scores", "a.npy", ""], ids=range(5))
def test_results_have_any_names(name: str, compiled: Compiled, tmp_path: Path) -> None:
    """Outputs of ONNX may be called anything; names in files of arrays may not."""
    graph = replace(compiled.graph, outputs={name: compiled.graph.outputs["scores"]})
    result = ilaverify.run(replace(compiled, graph=graph), {"image": images()[:, None]}, jobs=2)
    assert list(result.results) == [name] and len(result.results[name]) == COUNT
    if "\0" in name or len(name) > 65_000:
        with pytest.raises(ArtefactError, match="the name of an array must have no NUL, and 65,000 bytes or less, not"):
            npz_bytes(result.results)
        return
    assert list(arrays_of("results", bytes(npz_bytes(result.results)))) == [name]


def test_a_name_that_no_file_has_is_refused_before_the_run(
    place: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataset_runs.load(dataset_runs.Source(str(place / "made"), str(data), None))
    graph = replace(made.compiled.graph, outputs={"a\0b": made.compiled.graph.outputs["scores"]})
    other = Work(replace(made.compiled, graph=graph), made.dataset)
    monkeypatch.setattr(dataset_runs, "load", lambda source: other)
    code, out, err = run(capsys, "run", place / "made", "--inputs", data, "--output", tmp_path / "y.npz")
    assert (code, out) == (64, "") and not (tmp_path / "y.npz").exists()
    assert err.startswith(
        "ilaverify: --output can have outputs whose names have no NUL, and 65,000 bytes or less, not 'a\\x00b'; "
        "leave --output out, or give the output another name\n"
    )


def test_nan_on_both_sides_says_nothing() -> None:
    nothing = np.full((2, 3), np.nan)
    (all_of_them,) = outputs_beside({"y": nothing}, {"y": nothing})
    assert all_of_them.unrelated and all_of_them.as_json()["nan_on_both_sides"] == 6
    half = np.where([[True, False, True]] * 2, 2.0, np.nan)
    (some,) = outputs_beside({"y": half + 0.5}, {"y": half})
    assert some.text == "largest error 0.5, of values up to 2; 2 of 6 elements are NaN on both sides"
    assert not some.unrelated and (some.joined(some).undefined, some.joined(some).differing) == (4, 8)
    (other,) = outputs_beside({"y": half}, {"y": np.ones((2, 3))})
    assert other.unrelated and other.undefined == 0


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_that_numpy_writes_are_read(save: Callable[..., None], tmp_path: Path) -> None:
    plain = images()
    for array in (plain, np.asfortranarray(plain)):
        save(tmp_path / "x.npz", image=array)
        np.save(tmp_path / "x.npy", array)
        for file, key in (("x.npz", "image"), ("x.npy", "")):
            (read,) = [read_arrays(tmp_path / file, "inputs")[0]]
            assert read[key].flags.c_contiguous and (read[key] == plain).all()
