"""Device programs of mappings at concrete sizes, with data: the commands sent are those that the proof is about.

A program is the device fragment of a mapping itself, at sizes that its domain admits
(:class:`~ila_lang.templates.instance.Template`).  It runs on the fast simulator and on the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ila_lang import CommandStream, Machine, Simulator
from ila_lang.templates.instance import Template, run_columns

from .claim import MappingClaim

Result = TypeVar("Result")
TEMPLATES = 64
"""The number of templates that are cached."""


def template_of(claim: MappingClaim, sizes: Mapping[str, int]) -> Template:
    """The device program of a mapping at these sizes; the same object for equal sizes that were used recently.

    Raises SizeError where the sizes lie outside the mapping's domain.
    """
    return _template(claim, tuple(sorted(sizes.items())))


@lru_cache(TEMPLATES)
def _template(claim: MappingClaim, sizes: tuple[tuple[str, int], ...]) -> Template:
    claim.mapping.require(dict(sizes))
    return Template.of(claim.mapping.device, dict(sizes))


@dataclass(frozen=True, eq=False)
class DeviceProgram(Generic[Result]):
    """A program with its data; ``finish`` makes the result of the host tensors that it writes, flat arrays of codes."""

    template: Template
    tensors: Mapping[str, NDArray[Any]]
    finish: Callable[[Mapping[str, NDArray[Any]]], Result]

    @cached_property
    def stream(self) -> CommandStream:
        """The commands as columns."""
        return CommandStream(self.template.columns(self.tensors))

    @property
    def commands(self) -> list[Mapping[str, int]]:
        """The commands one by one."""
        return [self.stream.command(number) for number in range(len(self.stream))]

    def run(self, device: Simulator | Machine) -> Result:
        """The result on a device, a model of the fragment's own name in any reading."""
        if isinstance(device, Simulator):
            return self.finish(run_columns(self.template, device, dict(self.stream.columns)))
        reads, words = set(self.template.reads.tolist()), bytearray()
        for number, command in enumerate(self.commands):
            device.step(command)
            if number in reads:
                words += device.values[self.template.output].to_bytes(self.template.output_bytes, "little")
        rows = np.frombuffer(words, np.uint8).reshape(-1, self.template.output_bytes)
        return self.finish(self.template.outputs(rows))


def filled(
    claim: MappingClaim,
    sizes: Mapping[str, int],
    tensors: Mapping[str, tuple[NDArray[Any], tuple[int, ...]]],
    finish: Callable[[Mapping[str, NDArray[Any]]], Result],
) -> DeviceProgram[Result]:
    """The program with host tensors, each with the extents to which it is padded with zeros; missing ones are zeros.

    Raises SizeError where the sizes lie outside the mapping's domain, and ValueError where a tensor is larger than its
    extents.
    """
    template = template_of(claim, sizes)
    flat = {name: _padded(name, array, extents).reshape(-1) for name, (array, extents) in tensors.items()}
    for name, extent in template.inputs.items():
        given = flat.get(name, np.zeros(0, np.int64))
        flat[name] = np.pad(given, (0, max(extent - len(given), 0)))
    return DeviceProgram(template, flat, finish)


def _padded(name: str, array: NDArray[Any], extents: tuple[int, ...]) -> NDArray[Any]:
    missing = [(0, extent - own) for extent, own in zip(extents, array.shape, strict=False)]
    if array.ndim != len(extents) or any(after < 0 for _, after in missing):
        raise ValueError(f"{name} must have at most the shape {list(extents)}, not {list(array.shape)}")
    return np.pad(array, missing)


def signed_codes(name: str, array: NDArray[np.integer], bits: int) -> NDArray[np.signedinteger]:
    """Integers as two's complement of 8, 16 or 32 bits; raises ValueError where they do not fit."""
    half = 1 << (bits - 1)
    if array.dtype.kind not in "iu" or (array.size and not -half <= array.min() <= array.max() < half):
        raise ValueError(f"{name} must hold codes of {bits} bits, {-half} .. {half - 1}; quantise it to that format")
    return array.astype(f"i{bits // 8}")
