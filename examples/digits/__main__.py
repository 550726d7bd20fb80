"""Writes the images that are shipped: ``python -m examples.digits``; needs scikit-learn (extra ``train``)."""

from .data import FILE, digest_of, write

if __name__ == "__main__":
    written = write()
    digest = digest_of(written.test_images, written.test_labels)
    print(f"{FILE.name}: {FILE.stat().st_size:,} bytes; SHA-256 of the images held out, with their labels: {digest}")
