"""Names of claims, made of what people call them."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(4096)
def slug(text: str) -> str:
    """A name made of lower-case letters, digits and hyphens.

    >>> slug("pad with -inf into max pooling")
    'pad-with-minus-inf-into-max-pooling'
    >>> slug("x + (-0.0)")
    'x-plus-minus-0-0'
    """
    words = re.sub(r"\+", " plus ", re.sub(r"(?<![\w)])-(?=[\w(.])", " minus ", text))
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def bound_name(operator: str) -> str:
    """The name of the claim on an operator's bound."""
    return f"bound-{slug(operator)}"


def joint_name(operator: str, mapping: str) -> str:
    """The name of the claim that an operator of the graph IR is what a mapping computes."""
    return f"joint-{slug(operator)}-{slug(mapping)}"
