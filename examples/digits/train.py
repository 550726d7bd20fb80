"""Trains the network of :mod:`.network` with JAX and writes it as ONNX: ``python -m examples.digits.train``.

Needs the extra ``train`` (scikit-learn for the images, JAX for gradients); using the model needs neither.  The seed
decides first weights, order of images and their shifts.  On one thread two runs on one machine give the same bytes; on
another processor sums may be rounded otherwise.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from .data import TESTS, as_input, digest_of, source
from .network import EPSILON, export, network, shapes

FILE = Path(__file__).with_name("digits.onnx")

EPOCHS, BATCH = 60, 64
_RATE, _MOMENTUM, _DECAY = 0.1, 0.9, 5e-4  # as He et al. 2016 (section 4.2) for CIFAR-10, but for the decay's size

Weights = list[NDArray[np.float32]]


class _Jax:
    """Layers as JAX computes them; ``statistics`` collects mean and variance of what each normalisation is given."""

    def __init__(self, weights: Sequence[Any]) -> None:
        self._weights = iter(weights)
        self.statistics: list[Any] = []

    def conv(self, x: Any, inputs: int, outputs: int, kernel: int, stride: int) -> Any:
        from jax import lax

        around = [(kernel // 2, kernel // 2)] * 2
        names = ("NCHW", "OIHW", "NCHW")
        return lax.conv_general_dilated(x, next(self._weights), (stride, stride), around, dimension_numbers=names)

    def norm(self, x: Any, channels: int) -> Any:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        self.statistics += [mean, variance]
        scale, bias = next(self._weights), next(self._weights)
        factor = scale / (variance + EPSILON) ** 0.5
        return x * factor[:, None, None] + (bias - mean * factor)[:, None, None]

    def relu(self, x: Any) -> Any:
        import jax

        return jax.nn.relu(x)

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def mean(self, x: Any) -> Any:
        return x.mean((2, 3))

    def dense(self, x: Any, inputs: int, outputs: int) -> Any:
        return x @ next(self._weights) + next(self._weights)


def _first(generator: np.random.Generator) -> Weights:
    """The weights before training: He's initialisation; scales are 1 and biases 0."""
    weights = []
    for shape in shapes():
        if len(shape) == 1:
            scale = len(weights) > 0 and weights[-1].ndim == 4  # the vector after a convolution's weights is a scale
            weights.append(np.full(shape, float(scale), np.float32))
        else:
            fan = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
            weights.append(generator.standard_normal(shape, np.float32) * np.float32((2 / fan) ** 0.5))
    return weights


def _batches(
    images: NDArray[np.float32], labels: NDArray[np.uint8], generator: np.random.Generator
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.uint8]]]:
    """Batches of an epoch, each image moved by up to one pixel in both directions."""
    dealt = generator.permutation(len(images))
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for start in range(0, len(images) - BATCH + 1, BATCH):
        chosen = dealt[start : start + BATCH]
        corners = generator.integers(0, 3, (BATCH, 2))
        moved = [padded[n, :, r : r + 8, c : c + 8] for n, (r, c) in zip(chosen, corners, strict=True)]
        yield np.stack(moved), labels[chosen]


def train(seed: int = 0, epochs: int = EPOCHS, show: Callable[[str], None] = print) -> ModelProto:
    """The trained model; its metadata say how it was made, and how many of the held-out images it labels rightly."""
    # before JAX starts: one thread, so that sums have one order
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp

    all_images, all_labels = source()
    inputs = as_input(all_images)
    images, labels = inputs[TESTS:], all_labels[TESTS:]
    generator = np.random.default_rng(seed)
    weights = [jnp.asarray(w) for w in _first(generator)]
    speed = [jnp.zeros_like(w) for w in weights]
    steps = epochs * (len(images) // BATCH)

    def loss(weights: list[Any], x: Any, y: Any) -> Any:
        scores = network(_Jax(weights), x)
        fit = -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], axis=1).mean()
        return fit + _DECAY / 2 * sum((w**2).sum() for w in weights if w.ndim > 1)

    @jax.jit
    def step(weights: list[Any], speed: list[Any], x: Any, y: Any, rate: Any) -> tuple[list[Any], list[Any], Any]:
        value, slopes = jax.value_and_grad(loss)(weights, x, y)
        speed = [_MOMENTUM * v + s for v, s in zip(speed, slopes, strict=True)]
        return [w - rate * v for w, v in zip(weights, speed, strict=True)], speed, value

    done = 0
    for epoch in range(epochs):
        losses = []
        for x, y in _batches(images, labels, generator):
            rate = np.float32(_RATE * (1 + np.cos(np.pi * done / steps)) / 2)
            weights, speed, value = step(weights, speed, x, y.astype(np.int32), rate)
            losses.append(float(value))
            done += 1
        if (epoch + 1) % 10 == 0:
            show(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")

    # with the final weights and all training images as one batch, batch statistics are those of the training set
    final = _Jax(weights)
    network(final, images)
    taken = [np.asarray(w) for w in weights], [np.asarray(s) for s in final.statistics]
    notes = {
        "data": "scikit-learn load_digits, split of examples.digits.data",
        "test_digest": digest_of(all_images[:TESTS], all_labels[:TESTS]),
        "trained_on": str(len(images)),
        "seed": str(seed),
        "epochs": str(epochs),
    }
    model = export(*taken, notes)
    right = int((_predictions(model, inputs[:TESTS]) == all_labels[:TESTS]).sum())
    return export(*taken, notes | {"test_images": str(TESTS), "test_correct": str(right)})


def _predictions(model: ModelProto, images: NDArray[np.float32]) -> NDArray[np.int64]:
    """What onnxruntime says of images."""
    from onnxruntime import InferenceSession

    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"image": images})
    return np.argmax(scores, axis=1)


def main() -> None:
    """Parses the command line, trains, and writes the file."""
    parser = argparse.ArgumentParser(prog="python -m examples.digits.train", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=FILE, help="the file to write (default: the shipped one)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, order and shifts (default: 0)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"default: {EPOCHS}")
    arguments = parser.parse_args()
    model = train(arguments.seed, arguments.epochs)
    data = model.SerializeToString(deterministic=True)
    arguments.output.write_bytes(data)
    notes = {p.key: p.value for p in model.metadata_props}
    print(
        f"{arguments.output}: {len(data):,} bytes, {notes['test_correct']} of {notes['test_images']} test images right"
    )


if __name__ == "__main__":
    main()
