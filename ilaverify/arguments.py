"""Values of options that several commands share."""

from __future__ import annotations

import argparse

__all__ = ["count", "seconds"]


def seconds(text: str) -> float:
    """A positive number of seconds; raises argparse.ArgumentTypeError on anything else."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, not '{text}'")
    return value


def count(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError on anything else."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) < 10**7:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not '{text}'")
    return int(text)
