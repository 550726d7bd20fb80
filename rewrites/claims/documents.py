"""Values of counterexamples as JSON, such that reading them back gives the same values: fractions, floats, arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang import canonical_text
from ila_lang.text.files import read_json

_FRACTION = re.compile(r"-?\d+/\d+")
_FLOAT = re.compile(r"float (?P<text>-?(inf|nan|0x[01]\.[0-9a-f]+p[+-]\d+))")


def value_json(value: Any) -> bool | int | str:
    """A Boolean, an integer, a fraction or a float as JSON.

    >>> [value_json(v) for v in (True, 3, Fraction(1, 3), -0.0)]
    [True, 3, '1/3', 'float -0x0.0p+0']
    """
    if isinstance(value, bool | int):
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, float):
        return f"float {value.hex()}"
    raise TypeError(f"a counterexample's value must be a number or a truth value, not {type(value).__name__}")


def value_of(value: object) -> bool | int | Fraction | float:
    """What :func:`value_json` wrote; raises ValueError on anything else.

    >>> value_of("1/3"), value_of("float -0x0.0p+0")
    (Fraction(1, 3), -0.0)
    """
    if isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        match = _FLOAT.fullmatch(value)
        try:
            if _FRACTION.fullmatch(value):
                return Fraction(value)
            if match:
                return float.fromhex(match["text"])
        except (ZeroDivisionError, OverflowError):
            pass
    raise ValueError(f"a counterexample's value must be a number, a fraction or a float, not {value!r:.60}")


def array_json(array: NDArray[np.object_]) -> dict[str, Any]:
    """An array of such values as JSON."""
    return {"shape": list(array.shape), "values": [value_json(v) for v in array.ravel()]}


def array_value(content: object) -> NDArray[np.object_]:
    """What :func:`array_json` wrote; raises ValueError on anything else."""
    if not isinstance(content, dict) or set(content) != {"shape", "values"}:
        raise ValueError("an array of a counterexample must have a shape and values")
    shape, values = content["shape"], content["values"]
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape) or not isinstance(values, list):
        raise ValueError("an array of a counterexample must have a shape of numbers and a list of values")
    if math.prod(shape) != len(values):
        raise ValueError(f"an array of the shape {shape} must have {math.prod(shape)} values, not {len(values)}")
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value_of(value)
    return array.reshape(shape)


def document(name: str, content: Mapping[str, Any]) -> str:
    """The canonical text of a counterexample to the subject of that name."""
    return canonical_text({"subject": name, **content}) + "\n"


def read_document(text: str, name: str, keys: set[str]) -> dict[str, Any]:
    """The content of a text of :func:`document`; raises ValueError on anything else."""
    content = read_json(text)
    if not isinstance(content, dict) or set(content) != {"subject", *keys} or content["subject"] != name:
        raise ValueError(
            f"a counterexample to {name} must have exactly {', '.join(sorted(keys))}, and name its subject"
        )
    if not all(isinstance(content[key], dict) for key in keys):
        raise ValueError(f"{', '.join(sorted(keys))} of a counterexample must be objects")
    return content
