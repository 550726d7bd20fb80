"""Programs of proved mappings one after the other, on host tensors that they share.

A mapping's claim is about any contents of host tensors and any state of its device: what the IR computes of the tensors
with which its inputs are paired lies in its output afterwards.  So, by induction over the steps of a
:class:`ProgramSequence`, every tensor holds in the end what the IR's fragments, in the same order, compute of the given
ones.  This holds under conditions that are checked when a sequence is made:

* each step is a claim at sizes of its domain, whose program begins in any state but for what must be idle, which is
  looked at before it runs, and stores to no host tensor but its output: all others keep what they hold;
* a step's tensors are different tensors of the sequence, of the words, the extents and, for conversions, the shapes
  that its sizes say, so that no subscript leaves one;
* given tensors are never written, every element of the others is written by exactly one step, and a tensor is read only
  when it is complete: what it held before does not matter, nor does what a conversion finds outside of its box;
* steps that convert from or to one tensor take it to be of one format.

A conversion writes its box (:mod:`.conversions`, :mod:`.packing`), if its IR side is that of one, any other mapping the
whole output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ila_lang import Ila, Simulator
from ila_lang.language.kernel import Store, walk
from ila_lang.language.sorts import MemSort
from ila_lang.streams.programs import Program

from .claim import MappingClaim
from .conversions import SOURCE, Box, ConversionClaim
from .packing import PackingClaim
from .programs import program_of

Words = NDArray[np.unsignedinteger]
CONVERSIONS: Final = (ConversionClaim, PackingClaim)
"""The kinds of conversions: what a class of somebody else's says of its IR side is not known."""


class SequenceError(ValueError):
    """Programs of which nothing follows together; the message says why."""


@dataclass(frozen=True)
class HostTensor:
    """A row-major tensor on the host: its extents, and the bits of an element.

    Behind the last element lie so many words of 0, for a program that reads in whole vectors.
    """

    shape: tuple[int, ...]
    bits: int
    behind: int = 0

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)


@dataclass(frozen=True, eq=False)
class Step:
    """A mapping's program at sizes, and which tensor of the sequence each host tensor of the program is."""

    claim: MappingClaim
    sizes: Mapping[str, int]
    tensors: Mapping[str, str]

    @property
    def output(self) -> str:
        """The tensor of the sequence that is written."""
        return self.tensors[self.claim.mapping.output[0]]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Those that are read."""
        output = self.claim.mapping.output[0]
        return tuple(tensor for name, tensor in self.tensors.items() if name != output)

    @property
    def program(self) -> Program:
        """The program; raises SizeError where the sizes lie outside the mapping's domain."""
        return program_of(self.claim, self.sizes)

    def as_json(self) -> dict[str, object]:
        """The step as JSON."""
        return {"mapping": self.claim.name, "sizes": dict(self.sizes), "tensors": dict(self.tensors)}


class ProgramSequence:
    """Steps on ``tensors`` of which some are given.

    Raises SequenceError where the conditions above do not hold, and SizeError where sizes are outside a domain.
    """

    def __init__(self, tensors: Mapping[str, HostTensor], given: Collection[str], steps: Sequence[Step]) -> None:
        self.tensors, self.given, self.steps = dict(tensors), frozenset(given), tuple(steps)
        self._written: dict[str, list[Box]] = {}
        self._formats: dict[str, tuple[int, ...]] = {}
        for step in self.steps:
            self._check(step)
        for tensor in self.tensors:
            self._require_complete(tensor, "at the end")

    # -- what is checked -------------------------------------------------------------------------------------

    def _check(self, step: Step) -> None:
        name, fragment, output = step.claim.name, step.claim.mapping.device, step.claim.mapping.output[0]
        step.claim.require(step.sizes)
        stored = {s.memory for s in walk(fragment.program.body) if isinstance(s, Store)}
        if stored != {fragment.tensors.get(output)}:
            raise SequenceError(f"{name} must store to its output {output} alone; it changes another host tensor")
        if set(step.tensors) != set(fragment.tensors) or len({*step.tensors.values()}) < len(step.tensors):
            raise SequenceError(
                f"Host tensors of {name} ({', '.join(fragment.tensors)}) must be different tensors of the sequence, "
                f"not {dict(step.tensors)}"
            )
        converts = isinstance(step.claim, ConversionClaim)
        if not converts and any(tensor == output for tensor, _ in step.claim.mapping.inputs):
            raise SequenceError(f"{name} must not go on from what its output {output} held before")
        program = step.program
        for own, tensor in step.tensors.items():
            if tensor not in self.tensors:
                raise SequenceError(f"{own} of {name} must be a tensor of the sequence, not {tensor}")
            sort, there = fragment.tensors[own].sort, self.tensors[tensor]
            if not isinstance(sort, MemSort) or sort.data_width != there.bits:
                raise SequenceError(f"{own} of {name} must have elements of {sort}; {tensor} has {there.bits} bits")
            if own == output:
                continue
            read, held = program.reads.get(own, 0), there.elements + there.behind
            if not converts and read != held:
                raise SequenceError(f"{own} of {name} must be {read} elements; {tensor} has {held}")
            self._require_complete(tensor, f"when {name} reads it")
        self._add(step)

    def _add(self, step: Step) -> None:
        """Adds what a step writes."""
        claim, tensor = step.claim, step.output
        if tensor in self.given:
            raise SequenceError(f"{tensor} is given; {claim.name} must write another tensor")
        shape = self.tensors[tensor].shape
        if isinstance(claim, ConversionClaim):
            source = self.tensors[step.tensors[SOURCE]].shape
            if type(claim) not in CONVERSIONS:
                raise SequenceError(f"{claim.name} must be a conversion of a known kind, not {type(claim).__name__}")
            if claim.problem:
                raise SequenceError(f"{claim.name} must convert a box, as it says; {claim.problem}")
            read, written, box = claim.of("X", step.sizes), claim.of("Y", step.sizes), claim.box(step.sizes)
            if any(end > extent for end, extent in zip(box.end, written, strict=True)):
                raise SequenceError(f"{claim.name} must write a box of {written}, not {box}")
            # along the first axis nothing is counted by the extent, and x may end before its tensor does
            if len(read) != len(source) or read[1:] != source[1:] or read[0] > source[0]:
                raise SequenceError(f"{claim.name} must read rows of {step.tensors[SOURCE]} {source}, not of {read}")
            self._require_format(step.tensors[claim.codes], claim, step.sizes)
        else:
            written = claim.mapping.output_extents(step.sizes)
            box = Box((0,) * len(shape), shape)
        if written != shape:
            raise SequenceError(f"{claim.name} must write a tensor {written}; {tensor} is {shape}")
        boxes = self._written.setdefault(tensor, [])
        if any(map(box.overlaps, boxes)):
            raise SequenceError(f"{claim.name} must write elements of {tensor} that no other step writes")
        boxes.append(box)

    def _require_format(self, tensor: str, claim: ConversionClaim, sizes: Mapping[str, int]) -> None:
        own = tuple(sizes[name] for name in claim.formats)
        if self._formats.setdefault(tensor, own) != own:
            raise SequenceError(f"{claim.name} must take {tensor} in the format {self._formats[tensor]}, not {own}")

    def _require_complete(self, tensor: str, when: str) -> None:
        """Boxes are apart and inside, so that they are all of a tensor where they have as many elements."""
        boxes = self._written.get(tensor, [])
        count = sum(prod(e - f for f, e in zip(box.first, box.end, strict=True)) for box in boxes)
        if tensor not in self.given and count != (whole := self.tensors[tensor].elements):
            raise SequenceError(f"All {whole} elements of {tensor} must have been written {when}, not {count}")

    # -- running ---------------------------------------------------------------------------------------------

    def run(self, steps: Iterable[Step], contents: dict[str, Words], device: Callable[[Ila], Simulator]) -> None:
        """Runs some steps in their order on tensors by name, flat and with samples along the first axis.

        Tensors that are written and are not there are added.  ``device`` gives the simulator of a model.
        """
        for step in steps:
            if step.output not in contents:
                self.allocate(step.output, contents, max(len(contents[name]) for name in step.inputs))
            tensors = {own: contents[tensor] for own, tensor in step.tensors.items()}
            step.program.run_in_place(device(step.claim.mapping.device.ila), tensors)

    def allocate(self, tensor: str, contents: dict[str, Words], samples: int) -> None:
        """Adds a tensor of zeros."""
        of = self.tensors[tensor]
        contents[tensor] = np.zeros((samples, of.elements + of.behind), np.dtype(f"u{of.bits // 8}"))
