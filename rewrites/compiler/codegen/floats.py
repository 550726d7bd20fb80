"""Implementations of which the host's share is proved: programs from tensors as the graph has them to such a tensor.

Their calls and what the host does around them are one sequence of proved programs
(:class:`~rewrites.mappings.sequence.ProgramSequence`), from the bits of float32 operands to those of the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.sorts import MemSort
from ila_lang.mapping import SizeError
from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.types import Array
from rewrites.claims.joints.instruction import Unread
from rewrites.claims.joints.layers import LayerRule
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import EXPONENT, SOURCE, TARGET, Box, ConversionClaim, axis_sizes
from rewrites.mappings.sequence import HostTensor, ProgramSequence, SequenceError, Step
from rewrites.rules.tensor.boxes import block_boxes

from .formats import Format
from .instances import NoInstance, boxes_of, same_function
from .interface import RESULT, Call, CannotOffload, Implementation, Options, Part, Quantisation, Reals, Tensors
from .operators import operator_of
from .parts import viewed
from .programs import Devices

Words = NDArray[Any]
FLOAT = 32


@dataclass(frozen=True)
class Piece:
    """Rows ``first`` to ``end`` of an operand, at row ``place`` of a tensor of codes; with zeros, ``count`` rows."""

    first: int
    end: int
    place: int
    count: int


class FloatImplementation(Implementation):
    """An implementation whose sequence takes and gives the bits of float32 numbers.

    Without conversions its only call does so.  With some the first ones round parts of operands to codes, and the last
    one reads the codes of parts of the result.
    """

    conversions: ClassVar[tuple[ConversionClaim, ...]] = ()

    def __init__(self, node: Node, types: Sequence[TensorType], quantisation: Quantisation, options: Options) -> None:
        super().__init__(node, types, quantisation, options)
        self._constant_codes: dict[str, Words] = {}
        self._zero_words: dict[str, Words] = {}
        try:
            self.sequence = self._sequence()
            if len(self._call_steps) != len(self.calls):
                raise SequenceError(f"{self.node.operator} must have a step for each of its {len(self.calls)} calls")
            for call in range(len(self.calls)):
                self._require_call(call)
                if self.conversions:
                    self._require_boxes(call)
        except (SizeError, SequenceError, NoInstance, Unread) as error:
            raise CannotOffload(str(error)) from error

    def bind(self, constants: Mapping[int, Array]) -> None:
        """As of :class:`Implementation`; constant operands are rounded to codes now."""
        super().bind(constants)
        self._constant_codes = {}
        own = {name: operand.codes for name, operand in self._bound.items()}
        contents = self._rounded_codes(own, host_devices())
        self._constant_codes = {tensor: codes for tensor, codes in contents.items() if tensor not in self.operands}

    @abstractmethod
    def _format(self, name: str) -> Format:
        """The format of an operand's codes, or of the result's, ``y``: that of programs, and of which bounds are."""

    def _rounding(self, name: str) -> ConversionClaim:
        """The conversion that rounds an operand."""
        return self.conversions[0]

    def _zeros(self, call: Call) -> Mapping[str, int]:
        """The host tensors of a call's program that are zeros, and neither of operands nor of the result."""
        return {}

    def _host_tensor(self, name: str) -> str:
        """The host tensor of calls' programs for the codes of an operand, or of the result."""
        return f"host_{name}"

    def _pieces(self, name: str, part: Part) -> list[Piece]:
        """The rows of an operand in a part."""
        first, end = self._box(name, part)[0]
        return [Piece(first, self._matrix(name)[0], 0, end - first)]

    # -- the sequence ----------------------------------------------------------------------------------------

    def _matrix(self, name: str) -> tuple[int, ...]:
        """The extents of an operand or the result; a tensor of one axis is a column."""
        of = self._type(name)
        return (of.shape[0], 1) if of.rank == 1 else (of.elements // of.shape[-1], of.shape[-1])

    def _type(self, name: str) -> TensorType:
        return self.node.type if name == RESULT else self.types[self.operands.index(name)]

    def _box(self, name: str, part: Part) -> Part:
        """A part as rows and columns of the matrix."""
        above, columns = (part, (0, 1)) if self._type(name).rank == 1 else (part[:-1], part[-1])
        first = part[0][0]
        return (first, first + prod(end - start for start, end in above)), columns

    def _extents(self, name: str, part: Part) -> tuple[int, ...]:
        """The extents of the codes of a part."""
        return tuple(end - first for first, end in self._box(name, part))

    def _behind(self, name: str, part: Part) -> int:
        """Words behind the codes of a part that programs read, too."""
        return 0

    def _sequence(self) -> ProgramSequence:
        tensors = {name: HostTensor(self._matrix(name), FLOAT) for name in (*self.operands, RESULT)}
        steps: list[Step] = []
        for number, call in enumerate(self.calls):
            if not self.conversions:
                steps.append(Step(call.mapping, call.sizes, {self._host_tensor(name): name for name in tensors}))
                continue
            reading, bound = self.conversions[-1], {}
            for own, count in self._zeros(call).items():
                zeros = bound[own] = f"{own} of {count}"
                sort = call.mapping.mapping.device.tensors[own].sort
                assert isinstance(sort, MemSort)
                tensors[zeros] = HostTensor((count,), sort.data_width)
                self._zero_words[zeros] = np.zeros((1, count), f"u{sort.data_width // 8}")
            for name in self.operands:
                rounding = self._rounding(name)
                codes = bound[self._host_tensor(name)] = f"{name} {call.parts[name]}"
                if codes not in tensors:
                    tensors[codes] = HostTensor(
                        self._extents(name, call.parts[name]),
                        rounding.bits(TARGET),
                        self._behind(name, call.parts[name]),
                    )
                    sizes = self._rounding_sizes(name, call.parts[name])
                    steps += [Step(rounding, each, {SOURCE: name, TARGET: codes}) for each in sizes]
            codes = bound[self._host_tensor(RESULT)] = f"{RESULT} {number}"
            tensors[codes] = HostTensor(call.mapping.mapping.output_extents(call.sizes), reading.bits(SOURCE))
            steps.append(Step(call.mapping, call.sizes, bound))
            steps.append(Step(reading, self._reading_sizes(call), {SOURCE: codes, TARGET: RESULT}))
        return ProgramSequence(tensors, (*self.operands, *self._zero_words), steps)

    @property
    def host_programs(self) -> tuple[MappingClaim, ...]:
        """As of :class:`Implementation`."""
        return tuple(step.claim for step in self.sequence.steps if step.claim in self.conversions)

    @cached_property
    def _call_steps(self) -> list[Step]:
        """The steps of calls, in their order."""
        return [step for step in self.sequence.steps if step.claim not in self.conversions]

    def laid_out(self, number: int) -> Mapping[str, tuple[int, ...]]:
        """As of :class:`Implementation`."""
        return {own: self.sequence.tensors[codes].shape for own, codes in self._codes_of(number).items()}

    def exponents_of(self, number: int) -> Mapping[str, int]:
        """As of :class:`Implementation`."""
        formats = {own: self._formats(codes) for own, codes in self._codes_of(number).items()}
        return {own: each[EXPONENT] for own, each in formats.items() if EXPONENT in each}

    def _codes_of(self, number: int) -> dict[str, str]:
        """By host tensor of a call that has codes of an operand, or of the result, the sequence's tensor."""
        bound = self._call_steps[number].tensors
        return {own: bound[own] for own in map(self._host_tensor, (*self.operands, RESULT)) if self.conversions}

    def held_by(self, number: int) -> Mapping[str, str | None]:
        """As of :class:`Implementation`: what the steps read, whatever names say."""
        held = dict[str, str | None]()
        for own, tensor in self._call_steps[number].tensors.items():
            steps = self._converting.get(tensor, [])
            name = self._of_conversion(steps[0])[0] if steps else tensor
            if name in self.operands or name in self._zero_words:
                held[own] = name if name in self.operands else None
        return held

    def conversions_of(self, number: int) -> Mapping[str, ConversionClaim]:
        """As of :class:`Implementation`."""
        bound, found = self._call_steps[number].tensors, dict[str, ConversionClaim]()
        for own, codes in bound.items():
            for step in self._converting.get(codes, []) if self.conversions else []:
                assert isinstance(step.claim, ConversionClaim)
                if found.setdefault(own, step.claim) is not step.claim:
                    raise SequenceError(f"{codes} of {self.node.operator} must be of one conversion")
        return found

    def _formats(self, codes: str) -> dict[str, int]:
        """The formats of a tensor of codes: those with which steps convert it, which are one."""
        step = self._converting[codes][0]
        assert isinstance(step.claim, ConversionClaim)
        return {name: step.sizes[name] for name in step.claim.formats}

    def _quantised_sizes(self, call: Call) -> Mapping[str, int]:
        """The sizes of a call that the quantisation says."""
        return {}

    # -- which boxes they are --------------------------------------------------------------------------------

    @cached_property
    def _converting(self) -> dict[str, list[Step]]:
        """The conversions to or from each tensor of codes."""
        found: dict[str, list[Step]] = {}
        for step in self.sequence.steps:
            if step.claim in self.conversions:
                found.setdefault(step.inputs[0] if step.output == RESULT else step.output, []).append(step)
        return found

    def _require_call(self, number: int) -> None:
        """Raises SequenceError unless a call is its step, with the sizes that the quantisation says."""
        call, step, what = self.calls[number], self._call_steps[number], f"call {number} of {self.node.operator}"
        if step.claim is not call.mapping or dict(step.sizes) != dict(call.sizes):
            raise SequenceError(f"{what} must be the step {call.mapping.name} at {dict(call.sizes)}")
        formats = {} if self.conversions else self._format(RESULT).sizes
        for size, value in {**self._quantised_sizes(call), **formats}.items():
            if call.sizes[size] != value:
                raise SequenceError(
                    f"{size} of {what} must be {value}, as its quantisation says, not {call.sizes[size]}"
                )

    def _require_boxes(self, number: int) -> None:
        """Raises SequenceError unless the sequence takes the boxes of operands of which a call computes its own."""
        call, step, what = self.calls[number], self._call_steps[number], f"call {number} of {self.node.operator}"
        self.conversions_of(number)
        boxes = boxes_of(self, call)
        computed, kept, extents = boxes[RESULT], call.parts[RESULT], self.sequence.tensors[step.output].shape
        spans = self._viewed(RESULT, computed)
        if tuple(end - first for first, end in spans) != extents:
            raise SequenceError(f"{what} must compute the box {spans} of its result; its program computes {extents}")
        if any(first != start or end > last for (first, end), (start, last) in zip(kept, computed, strict=True)):
            raise SequenceError(f"{what} must keep the beginning of {computed}, which it computes, not {kept}")
        for name, box in {**boxes, RESULT: kept}.items():
            codes = step.tensors[self._host_tensor(name)]
            required = [(name, part, place) for part, place in self._boxes_among_codes(call, name, box, codes)]
            found = sorted(map(self._of_conversion, self._converting.get(codes, [])), key=lambda each: each[2])
            if found != required:
                raise SequenceError(
                    f"{name} of {what} must be {_shown(required)} of its codes, {name} being {self._matrix(name)}; "
                    f"it is {_shown(found)}"
                )
            rounds = self._format(name).function
            if name != RESULT and not same_function(self._rounding(name).function, rounds):
                raise SequenceError(f"{name} of {what} must be rounded by {rounds.name}, of which its format is")
            if (formats := self._formats(codes)) != (own := dict(self._format(name).sizes)):
                raise SequenceError(f"{name} of {what} must have codes of the format {own}, not {formats}")

    def _boxes_among_codes(self, call: Call, name: str, box: Part, codes: str) -> list[tuple[Part, int]]:
        """The parts of a box of an operand, or of the result, each with its first row among the codes, in that order.

        There is one, or the blocks of rows that the joint says, each filled with zeros by itself: in layers that repeat
        a step these have a row for each feature of the state.
        """
        whole, joint = self._type(name).shape, operator_of(self).stated(call.mapping)
        inside = tuple((first, max(min(end, of), first)) for (first, end), of in zip(box, whole, strict=True))
        order = (0,) if joint is None or name == RESULT else joint.blocks(self._host_tensor(name))
        rows, wide = whole[0] // len(order), self.sequence.tensors[codes].shape[0] // len(order)
        boxes = [*block_boxes(len(order), rows, inside[1:])]
        filled = any(isinstance(rule, LayerRule) for rule in call.rules) and name != RESULT and wide != rows
        if (filled and rows != self.node.type.shape[-1]) or (len(order) > 1 and box[0] != (0, rows * len(order))):
            raise SequenceError(f"{name} of a call of {self.node.operator} must have a block of rows for each gate")
        if len(order) == 1:
            return [(self._viewed(name, inside), 0)]
        return [(self._viewed(name, boxes[j]), k * wide) for k, j in enumerate(order)]

    def _viewed(self, name: str, box: Part) -> Part:
        try:
            return viewed(box, self._type(name).shape, self._matrix(name))
        except ValueError as error:
            raise SequenceError(f"{name} of {self.node.operator}: {error}") from error

    def _of_conversion(self, step: Step) -> tuple[str, Part, int]:
        """The box of an operand, or of the result, that a step converts, and its first row among the codes.

        Raises SequenceError where it is not from the first column of codes on, or has zeros beside codes of the result.
        """
        assert isinstance(step.claim, ConversionClaim)
        (read, place), written = step.claim.moved(step.sizes), step.claim.box(step.sizes)
        rounds = step.output != RESULT
        name, (row, *others) = (step.inputs[0], place) if rounds else (RESULT, read.first)
        if any(others) or (not rounds and (place, _extents(read)) != (written.first, _extents(written))):
            raise SequenceError(f"{name} of {self.node.operator} must be all of some rows of codes, not {read} of it")
        return name, tuple(zip(*(read if rounds else written), strict=True)), row

    def _rounding_sizes(self, name: str, part: Part) -> list[dict[str, int]]:
        rows, columns = self._extents(name, part)
        first, own = self._box(name, part)[1][0], self._matrix(name)[1]
        across = axis_sizes(2, x=own, first=first, count=columns, place=0, y=columns)
        return [
            axis_sizes(1, x=piece.end, first=piece.first, count=piece.count, place=piece.place, y=rows)
            | across
            | dict(self._format(name).sizes)
            for piece in self._pieces(name, part)
        ]

    def _reading_sizes(self, call: Call) -> dict[str, int]:
        sizes = dict(self._format(RESULT).sizes)
        box, extents = self._box(RESULT, call.parts[RESULT]), call.mapping.mapping.output_extents(call.sizes)
        for axis, ((first, end), x, whole) in enumerate(zip(box, extents, self._matrix(RESULT), strict=True), 1):
            sizes |= axis_sizes(axis, x=x, first=0, count=min(end, whole) - first, place=first, y=whole)
        return sizes

    def _around(self, number: int) -> dict[str, Any]:
        call = self._call_steps[number]
        around = [s for s in self.sequence.steps if s.output in call.inputs or call.output in s.inputs]
        return {"conversions": [step.as_json() for step in around]}

    # -- running ---------------------------------------------------------------------------------------------

    def _codes(self, name: str, operand: Reals) -> Words:
        if not np.isfinite(operand).all():
            raise ValueError(f"Operand {name} must be finite numbers, not NaN or infinite; look at the inputs")
        return operand.astype(np.float32).view(np.uint32)

    def _values(self, name: str, codes: Words) -> Reals:
        return self._format(name).rounded(codes.view(np.float32).astype(np.float64))

    def _beyond(self, name: str, operand: Reals) -> int:
        return self._format(name).beyond(operand)

    def rounding(self, name: str, magnitude: float) -> float:
        """As of :class:`Implementation`."""
        return self._format(name).change(magnitude)

    def _rounded_codes(self, codes: Mapping[str, Words], devices: Devices) -> dict[str, Words]:
        """These operands, flat, with the codes of their parts; constants' codes are those that are there."""
        contents = {name: words.reshape(len(words), -1) for name, words in codes.items()}
        contents |= self._zero_words | self._constant_codes
        groups: dict[str, list[Step]] = {}
        for step in self.sequence.steps:
            if step.claim in self.conversions[:-1] and step.inputs[0] in contents and step.output not in contents:
                groups.setdefault(step.output, []).append(step)
        devices.each(lambda steps: self.sequence.run(steps, contents, devices.of), list(groups.values()))
        return contents

    def _tensors(self, call: Call, codes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        contents = self._rounded_codes(codes, host_devices())
        step = next(step for own, step in zip(self.calls, self._call_steps, strict=True) if own is call)
        return {own: contents[tensor] for own, tensor in step.tensors.items() if tensor in contents}

    def _outputs(self, codes: Mapping[str, Any], devices: Devices) -> Sequence[Tensors]:
        contents = self._rounded_codes(codes, devices)
        self.sequence.allocate(RESULT, contents, max(map(len, codes.values())))
        groups: list[list[Step]] = []
        for step in self.sequence.steps:
            if step.claim in self.conversions[-1:]:
                groups[-1].append(step)
            elif step.claim not in self.conversions:
                groups.append([step])
        devices.each(lambda steps: self.sequence.run(steps, contents, devices.of), groups)
        return [{RESULT: contents[RESULT]}]

    def _result(self, outputs: Sequence[Tensors]) -> NDArray[np.float32]:
        (tensors,) = outputs
        return tensors[RESULT].view(np.float32).reshape(-1, *self.node.type.shape)


def _extents(box: Box) -> tuple[int, ...]:
    return tuple(end - first for first, end in zip(*box, strict=True))


def _shown(parts: Sequence[tuple[str, Part, int]]) -> str:
    return " and ".join(f"the box {part} of {of} from row {row} on" for of, part, row in parts) or "nothing"


@cache
def host_devices() -> Devices:
    """Where conversions run that belong to no run of a model."""
    return Devices(1)
