"""The images: how they are split, and the part of them that is shipped.

scikit-learn's ``load_digits`` has 1,797 images of 8x8 pixels with values 0 to 16.  ``digits.npz`` holds the images by
which networks are judged, and those by which a compiler chooses number formats, so that neither needs scikit-learn;
``python -m examples.digits --images`` (which does) writes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

FILE = Path(__file__).with_name("digits.npz")

TESTS = 450
"""How many images are held out: a quarter of them."""

CALIBRATION = 64
"""How many of the images that networks are trained on are shipped as well."""

_PIXEL = 16
"""The greatest pixel value: a count of ink dots in a block of 4x4."""


@dataclass(frozen=True)
class Digits:
    """Images (uint8 [N, 8, 8], values 0 to 16) and labels (uint8 [N]) held out, and images from the training part."""

    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]
    calibration_images: NDArray[np.uint8]


def order(count: int) -> NDArray[np.int64]:
    """The numbers 0 to ``count`` - 1 in the order in which they are dealt out: the first TESTS are held out.

    The order is that of SHA-256 of the number's decimal text, so that it depends on no random generator's version.

    >>> order(5).tolist()
    [4, 3, 0, 1, 2]
    """
    numbers = sorted(range(count), key=lambda n: hashlib.sha256(str(n).encode()).digest())
    return np.array(numbers, dtype=np.int64)


def as_input(images: ArrayLike) -> NDArray[np.float32]:
    """Images as the network takes them: float32 [N, 1, 8, 8], values 0 to 1 in steps of 1/16."""
    pixels = np.asarray(images)
    if pixels.ndim != 3 or pixels.shape[1:] != (8, 8) or pixels.min(initial=0) < 0 or pixels.max(initial=0) > _PIXEL:
        raise ValueError(f"images must be [N, 8, 8] with values 0 to {_PIXEL}, not {list(pixels.shape)}; scale them")
    return (pixels[:, None] / _PIXEL).astype(np.float32)


def digest_of(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> str:
    """SHA-256 (hexadecimal) of images and labels, in their order."""
    sha256 = hashlib.sha256()
    for array in (images, labels):
        sha256.update(f"{array.dtype.name} {list(array.shape)}\n".encode() + np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()


def source() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """All images and labels in the order of :func:`order`; needs scikit-learn (extra ``train``)."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.uint8)
    if not np.array_equal(images, bunch.images) or images.max() > _PIXEL:
        raise ValueError("load_digits of scikit-learn must give whole pixel values 0 to 16; use another version")
    dealt = order(len(images))
    return images[dealt], labels[dealt]


def write(path: Path = FILE) -> Digits:
    """Writes the part that is shipped; needs scikit-learn."""
    images, labels = source()
    digits = Digits(images[:TESTS], labels[:TESTS], images[TESTS : TESTS + CALIBRATION])
    np.savez_compressed(
        path,
        test_images=digits.test_images,
        test_labels=digits.test_labels,
        calibration_images=digits.calibration_images,
    )
    return digits


def load(path: Path = FILE) -> Digits:
    """The images that are shipped."""
    with np.load(path, allow_pickle=False) as stored:
        return Digits(stored["test_images"], stored["test_labels"], stored["calibration_images"])
