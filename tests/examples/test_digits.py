"""The network for handwritten digits: what is shipped is what its scripts made, and it answers as it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from examples.digits import as_input, load
from examples.digits.__main__ import main
from examples.digits.data import CALIBRATION, TESTS, digest_of, order, write
from examples.digits.network import export, shapes
from examples.digits.train import FILE
from ilaverify.models.datasets import read_arrays
from ir_semantics.graph import Graph, run
from ir_semantics.onnx import import_model

HELD_OUT = "b10d40a00ae31b04da4d9f0d42546030a359753a5e81fb6329f43101b8cc52cf"


@pytest.fixture(scope="module")
def notes() -> dict[str, str]:
    return {p.key: p.value for p in onnx.load(str(FILE)).metadata_props}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return import_model(FILE, dimensions={"batch": TESTS})


@pytest.fixture(scope="module")
def scores(graph: Graph) -> np.ndarray:
    (found,) = run(graph, {"image": as_input(load().test_images)}).values()
    return found


def test_images_held_out_are_those_that_the_model_names(notes: dict[str, str]) -> None:
    digits = load()
    assert digits.test_images.shape == (TESTS, 8, 8) and digits.calibration_images.shape == (CALIBRATION, 8, 8)
    assert digest_of(digits.test_images, digits.test_labels) == notes["test_digest"] == HELD_OUT
    assert notes["test_images"] == str(TESTS)
    assert np.unique(digits.test_labels).tolist() == list(range(10))
    held_out = {image.tobytes() for image in digits.test_images}
    assert not held_out & {image.tobytes() for image in digits.calibration_images}


def test_a_digest_sees_every_pixel_and_label() -> None:
    digits = load()
    images, labels = digits.test_images.copy(), digits.test_labels.copy()
    images[-1, 7, 7] += 1
    assert digest_of(images, digits.test_labels) != HELD_OUT
    labels[0] = 9 - labels[0]
    assert digest_of(digits.test_images, labels) != HELD_OUT


def test_the_order_of_images_is_a_permutation() -> None:
    assert sorted(order(1797).tolist()) == list(range(1797))
    assert order(5).tolist() == [4, 3, 0, 1, 2]
    assert order(1797)[:5].tolist() == [1039, 886, 286, 1467, 1064]


def test_accuracy_is_the_recorded_one(scores: np.ndarray, notes: dict[str, str]) -> None:
    right = int((scores.argmax(axis=1) == load().test_labels).sum())
    assert right == int(notes["test_correct"]) == 445
    assert right >= 0.97 * TESTS


def test_every_label_is_that_of_onnxruntime(scores: np.ndarray) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra compare")
    session = runtime.InferenceSession(str(FILE), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"image": as_input(load().test_images)})
    assert np.array_equal(scores.argmax(axis=1), wanted.argmax(axis=1))


def test_layers_are_those_of_a_small_residual_network(graph: Graph) -> None:
    operators = graph.operators()
    assert {n: operators[n] for n in ("conv", "batch_norm", "add", "relu", "mean", "matmul")} == {
        "conv": 9, "batch_norm": 9, "add": 4, "relu": 7, "mean": 1, "matmul": 1,
    }  # fmt: skip
    strides = [n.attribute("strides") for n in graph.nodes if n.operator == "conv"]
    assert strides.count((2, 2)) == 4  # two blocks, each with a projection
    assert FILE.stat().st_size < 200_000


def test_inputs_are_scaled_exactly() -> None:
    images = np.arange(64, dtype=np.uint8).reshape(1, 8, 8) % 17
    x = as_input(images)
    assert x.dtype == np.float32 and x.shape == (1, 1, 8, 8)
    assert np.array_equal(x[:, 0] * 16, images)


@pytest.mark.parametrize(("shape", "value"), [((2, 8), 1), ((1, 8, 9), 1), ((1, 8, 8), 17)])
def test_other_images_are_refused(shape: tuple[int, ...], value: int) -> None:
    with pytest.raises(ValueError, match=r"^images must be \[N, 8, 8\] with values 0 to 16, not "):
        as_input(np.full(shape, value))


def test_inputs_are_written_as_the_command_line_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["digits", str(tmp_path / "new"), "--number", "7"])
    main()
    digits = load()
    assert capsys.readouterr().out == f"image 7 is a {digits.test_labels[7]}\n"
    calibration = read_arrays(tmp_path / "new/calibration.npz", "inputs")[0]["image"]
    assert calibration.shape == (CALIBRATION, 1, 1, 8, 8)
    assert np.array_equal(calibration[:, 0], as_input(digits.calibration_images))
    image = read_arrays(tmp_path / "new/image.npz", "inputs")[0]["image"]
    assert np.array_equal(image, as_input(digits.test_images[7:8]))
    tests = read_arrays(tmp_path / "new/test.npz", "inputs")[0]
    assert np.array_equal(tests["image"], as_input(digits.test_images))
    assert np.array_equal(tests["labels"], digits.test_labels)


def test_an_image_that_there_is_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["digits", "new", "--number", "450"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err.endswith("--number must be 0 to 449, not 450\n")


def test_weights_of_another_network_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^weights must be 29 arrays of the shapes that shapes\(\) gives"):
        export([np.zeros(s, np.float32) for s in shapes()[:-1]], [], {})


def test_the_split_is_that_of_scikit_learn(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs the extra train")
    written = write(tmp_path / "digits.npz")
    digits = load()
    assert digest_of(written.test_images, written.test_labels) == HELD_OUT
    assert np.array_equal(written.calibration_images, digits.calibration_images)


@pytest.mark.slow
def test_training_gives_a_network_as_good(notes: dict[str, str]) -> None:
    pytest.importorskip("jax", reason="needs the extra train")
    pytest.importorskip("sklearn", reason="needs the extra train")
    from examples.digits.train import train

    made = {p.key: p.value for p in train(show=lambda text: None).metadata_props}
    assert {k: v for k, v in made.items() if k != "test_correct"} == {
        k: v for k, v in notes.items() if k != "test_correct"
    }
    assert int(made["test_correct"]) >= 0.97 * TESTS


@pytest.mark.slow
def test_a_seed_decides_the_weights() -> None:
    pytest.importorskip("jax", reason="needs the extra train")
    pytest.importorskip("sklearn", reason="needs the extra train")
    from examples.digits.train import train

    first, second, other = (
        train(seed, 2, lambda text: None).SerializeToString(deterministic=True) for seed in (1, 1, 2)
    )
    assert first == second != other
