"""Counterexamples to mappings as text, with every cell of their initial contents, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bmc.counterexample import Counterexample
from bmc.unroll import Cell
from ila_lang import canonical_text
from ila_lang.text.files import read_json

_FIELDS: Mapping[str, Any] = {
    "mapping": str, "sizes": dict, "shape": (list, type(None)), "initial": list, "row": int, "column": int,
    "device": int, "ir": int, "shown": list, "differing": int, "elements": int, "error": str,
}  # fmt: skip


def counterexample_text(counterexample: Counterexample) -> str:
    """A counterexample as canonical JSON, with every cell of its initial contents."""
    cells = [[c.side, c.owner, c.address, value] for c, value in counterexample.initial.items()]
    content = {name: getattr(counterexample, name) for name in _FIELDS}
    return canonical_text({**content, "initial": cells}) + "\n"


def counterexample_from_text(text: str) -> Counterexample:
    """The counterexample in a text of :func:`counterexample_text`; raises ValueError on anything else."""
    content = read_json(text)
    if not isinstance(content, dict) or set(content) != set(_FIELDS):
        raise ValueError(f"keys of a counterexample must be exactly {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if not isinstance(content[name], kind) or not _IS_FORM.get(name, _no_truth)(content[name]):
            raise ValueError(f"{name} of a counterexample must have its form, not {content[name]!r:.60}")
    content["initial"] = {Cell(side, owner, address): v for side, owner, address, v in content["initial"]}
    content["shape"] = None if content["shape"] is None else tuple(content["shape"])
    content["shown"] = tuple(content["shown"])
    return Counterexample(**content)


def _no_truth(value: object) -> bool:
    return not isinstance(value, bool)


def _is_cell(value: object) -> bool:
    """Whether it is a side, an owner, an address (none of a register) and a value."""
    kinds = [type(part) for part in value] if isinstance(value, list) else []
    return kinds in ([str, str, int, int], [str, str, type(None), int])


_IS_FORM: Mapping[str, Callable[[Any], bool]] = {
    "sizes": lambda value: all(type(n) is int for n in value.values()),
    "shape": lambda value: all(type(n) is int for n in value or ()),
    "initial": lambda value: all(map(_is_cell, value)),
    "shown": lambda value: all(isinstance(v, str) for v in value),
}
