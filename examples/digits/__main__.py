"""Files for the command line: ``python -m examples.digits DIR`` writes them there.

``calibration.npz`` has the training images from which number formats are chosen, ``image.npz`` an image held out, and
``test.npz`` all of them with their labels.  With ``--images`` the images are taken from scikit-learn (extra ``train``)
again, and ``digits.npz`` is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .data import FILE, as_input, digest_of, load, write


def main() -> None:
    """Parses the command line and writes the files."""
    parser = argparse.ArgumentParser(prog="python -m examples.digits", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("directory", type=Path, nargs="?", metavar="DIR", help="where to write inputs of the network")
    what.add_argument("--images", action="store_true", help=f"write {FILE.name} anew")
    parser.add_argument("--number", type=int, default=0, help="of the image held out (default: 0)")
    options = parser.parse_args()
    if options.images:
        written = write()
        digest = digest_of(written.test_images, written.test_labels)
        print(
            f"{FILE.name}: {FILE.stat().st_size:,} bytes; SHA-256 of the images held out, with their labels: {digest}"
        )
        return
    digits = load()
    if not 0 <= options.number < len(digits.test_labels):
        parser.error(f"--number must be 0 to {len(digits.test_labels) - 1}, not {options.number}")
    options.directory.mkdir(parents=True, exist_ok=True)
    np.savez(options.directory / "calibration.npz", image=as_input(digits.calibration_images)[:, None])
    chosen = slice(options.number, options.number + 1)
    np.savez(options.directory / "image.npz", image=as_input(digits.test_images[chosen]))
    np.savez(options.directory / "test.npz", image=as_input(digits.test_images), labels=digits.test_labels)
    print(f"image {options.number} is a {digits.test_labels[options.number]}")


if __name__ == "__main__":
    main()
