"""Device programs of mappings at concrete sizes, with data: the commands sent are those that the proof is about.

A program is the device fragment of a mapping itself, at sizes that its domain admits
(:class:`~ila_lang.streams.programs.Program`).  It runs on the fast simulator and on the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ila_lang import CommandStream, Machine
from ila_lang.streams.programs import Program

from .claim import MappingClaim

Result = TypeVar("Result")
PROGRAMS = 1024
"""The number of programs that are cached; each has a few numbers."""


def program_of(claim: MappingClaim, sizes: Mapping[str, int]) -> Program:
    """The device program of a mapping at these sizes; the same object for equal sizes that were used recently.

    Raises SizeError where the sizes lie outside the mapping's domain.
    """
    return _program(claim, tuple(sorted(sizes.items())))


@lru_cache(PROGRAMS)
def _program(claim: MappingClaim, sizes: tuple[tuple[str, int], ...]) -> Program:
    claim.mapping.require(dict(sizes))
    return Program.of(claim.mapping.device, dict(sizes))


@dataclass(frozen=True, eq=False)
class DeviceProgram(Generic[Result]):
    """A program with its data; ``finish`` makes the result of the host tensors that it writes, flat arrays of codes."""

    program: Program
    tensors: Mapping[str, NDArray[Any]]
    finish: Callable[[Mapping[str, NDArray[Any]]], Result]

    @cached_property
    def stream(self) -> CommandStream:
        """The commands as columns."""
        return self.program.stream(self.tensors)

    @property
    def commands(self) -> list[Mapping[str, int]]:
        """The commands one by one."""
        return [self.stream.command(number) for number in range(len(self.stream))]

    def run(self, device: Machine) -> Result:
        """The result on a device, a model of the fragment's own name in any reading."""
        return self.finish(self.program.run(device, self.tensors))


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
    program = program_of(claim, sizes)
    flat = {name: _padded(name, array, extents).reshape(-1) for name, (array, extents) in tensors.items()}
    return DeviceProgram(program, program.padded(flat), finish)


def _padded(name: str, array: NDArray[Any], extents: tuple[int, ...]) -> NDArray[Any]:
    if array.ndim != len(extents) or any(own > most for own, most in zip(array.shape, extents, strict=True)):
        raise ValueError(f"{name} must have at most the shape {list(extents)}, not {list(array.shape)}")
    whole = np.zeros(extents, array.dtype)
    whole[tuple(map(slice, array.shape))] = array
    return whole


def signed_codes(name: str, array: NDArray[np.integer], bits: int) -> NDArray[np.signedinteger]:
    """Integers as two's complement of 8, 16 or 32 bits; raises ValueError where they do not fit."""
    half = 1 << (bits - 1)
    if array.dtype.kind not in "iu" or (array.size and not -half <= array.min() <= array.max() < half):
        raise ValueError(f"{name} must hold codes of {bits} bits, {-half} .. {half - 1}; quantise it to that format")
    return array.astype(f"i{bits // 8}")
