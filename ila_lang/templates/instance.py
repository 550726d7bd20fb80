"""Program fragments at concrete sizes as arrays: the commands sent are those that the proof is about.

A :class:`Template` is a fragment whose sizes are given and whose host tensors are not: columns of commands, and where
in them each element of each tensor goes.  Tensors are put in as arrays, and the words that the device returns are taken
apart in the same way.  The meaning of the commands is left to the model and the mapping.

Beside what :class:`~ila_lang.language.fragment.Fragment` asks for, commands must be known before the program runs, but
for whole elements of host tensors: :class:`InstanceError` says what is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.fragment import Fragment
from ila_lang.language.sorts import MemSort
from ila_lang.streams.simulator import CommandStream, Simulator

from .arrays import fields_of, named_arrays
from .build import Gather, Scatter, gathers_of, scatters_of
from .sites import InstanceError, sites_of

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Template:
    """A fragment at concrete sizes.

    ``fragment`` and ``device`` are names, ``sizes`` its parameters, ``idle`` what the device must hold when it starts.
    ``tensors`` are the host tensors of the fragment with the width of their elements in bits.  ``constants`` has the
    columns of commands in issue order as for :class:`~ila_lang.streams.simulator.CommandStream`, 0 where elements of
    host tensors go, and ``gathers`` says where these are.  ``scatters`` says where the elements of the tensors that the
    program writes come from: after each of the commands with the numbers ``reads`` the host takes the state ``output``
    of the device, of ``output_bytes`` bytes.
    """

    fragment: str
    device: str
    sizes: Mapping[str, int]
    idle: Mapping[str, int]
    tensors: Mapping[str, int]
    constants: Mapping[str, NDArray[Any]]
    gathers: tuple[Gather, ...]
    scatters: Mapping[str, Scatter]
    reads: NDArray[np.int64]
    output: str
    output_bytes: int

    @staticmethod
    def of(fragment: Fragment, sizes: Mapping[str, int]) -> Template:
        """The fragment at these sizes, which should lie in the domain of its mapping (``TensorMapping.require``).

        Raises InstanceError where commands depend on more than sizes, counters and whole elements of host tensors.
        """
        sites = sites_of(fragment, sizes)
        constants, gathers = gathers_of(fragment, sites)
        output, reads, scatters = scatters_of(fragment, sites)
        widths = {n: t.sort.data_width for n, t in fragment.tensors.items() if isinstance(t.sort, MemSort)}
        return Template(
            fragment.name,
            fragment.ila.name,
            {name: int(sizes[name]) for name in fragment.parameters},
            dict(fragment.idle),
            widths,
            constants,
            gathers,
            scatters,
            reads,
            output,
            -(-fragment.ila.states[output].width // 8),
        )

    def __len__(self) -> int:
        """The number of commands."""
        return len(next(iter(self.constants.values())))

    @cached_property
    def inputs(self) -> Mapping[str, int]:
        """The host tensors of which elements are sent, and how many elements each must have."""
        extents: dict[str, int] = {}
        for gather in self.gathers:
            extents[gather.tensor] = max(extents.get(gather.tensor, 0), gather.extent)
        return extents

    def columns(self, tensors: Mapping[str, NDArray[Any]]) -> Columns:
        """The commands with these tensors, a new column for each input of the device.

        A tensor is a flat array of element codes: unsigned or, as two's complement, signed integers of the width of its
        elements, or other integers that fit.  Raises InstanceError where one of :attr:`inputs` is missing, is not one
        of the fragment's, or has another form.
        """
        missing = [name for name in self.inputs if name not in tensors]
        if missing:
            raise InstanceError(
                f"Program {self.fragment} must be given tensor {missing[0]} of {self.inputs[missing[0]]} elements; "
                f"it sends {', '.join(self.inputs)}"
            )
        columns = {name: column.copy() for name, column in self.constants.items()}
        self.fill(columns, tensors)
        return columns

    def fill(self, columns: Mapping[str, NDArray[Any]], tensors: Mapping[str, NDArray[Any]]) -> None:
        """Puts the elements of these tensors into columns that :meth:`columns` has returned; others stay.

        Raises InstanceError on a tensor of another form, with nothing done.
        """
        codes = {name: self._codes(name, tensor) for name, tensor in tensors.items()}
        for gather in self.gathers:
            if gather.tensor in codes:
                gather.put(columns[gather.column], codes[gather.tensor])

    def _codes(self, name: str, tensor: NDArray[Any]) -> NDArray[Any]:
        if name not in self.tensors:
            raise InstanceError(
                f"Tensor of program {self.fragment} must be one of {', '.join(self.tensors)}, not {name}; leave it out"
            )
        bits, expected = self.tensors[name], self.inputs.get(name)
        if tensor.ndim != 1 or (expected is not None and len(tensor) != expected):
            extent = "one dimension" if expected is None else f"{expected} elements in one dimension"
            raise InstanceError(
                f"Tensor {name} of program {self.fragment} must have {extent}, not shape {tensor.shape}; "
                "give its elements in row-major order"
            )
        if tensor.dtype.kind not in "iu":
            raise InstanceError(
                f"Tensor {name} of program {self.fragment} must hold codes of {bits} bits as integers, not "
                f"{tensor.dtype}; quantise it"
            )
        if tensor.dtype.itemsize * 8 == bits:
            return np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("=")).view(f"u{bits // 8}")
        if tensor.size and (int(tensor.min()) < 0 or int(tensor.max()) >> bits):
            raise InstanceError(
                f"Tensor {name} of program {self.fragment} must hold codes of {bits} bits, not "
                f"{tensor.min()} to {tensor.max()}; quantise it"
            )
        return tensor.astype(f"u{bits // 8}")

    def outputs(self, words: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """The host tensors that the program writes, flat arrays of codes, from the output after each of ``reads``.

        ``words`` has a row of bytes, the least significant first, for each of them.  Raises InstanceError where it does
        not.
        """
        if words.dtype != np.uint8 or words.shape != (len(self.reads), self.output_bytes):
            raise InstanceError(
                f"Words that program {self.fragment} reads must be {len(self.reads)} rows of {self.output_bytes} bytes "
                f"(uint8), not {words.dtype} of shape {words.shape}; give what a run of this very program returned"
            )
        return {name: scatter.take(words) for name, scatter in self.scatters.items()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The template as arrays of numbers by name, for a file of arrays."""
        simple = {f.name: getattr(self, f.name) for f in fields(self)}
        return named_arrays(simple, self.constants, self.gathers, self.scatters)

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Template:
        """The template that :meth:`to_arrays` wrote; raises InstanceError for arrays of another form.

        Their form does not show that they are right: their author is trusted.
        """
        return Template(**fields_of(arrays))


def run_template(
    template: Template, simulator: Simulator, tensors: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Runs a program with these tensors on a device; the host tensors that it writes.

    The device need not be at reset.  Its model must be the fragment's own, options included; only the name is compared,
    so that programs also show what a faulty device does.  Raises InstanceError where the name is another one, where the
    device is not idle as the program demands, or where a word that the program reads is one from before it;
    CommandError where a command is not accepted.
    """
    return run_columns(template, simulator, template.columns(tensors))


def run_columns(template: Template, simulator: Simulator, columns: Mapping[str, NDArray[Any]]) -> Columns:
    """As :func:`run_template`, with columns that have been filled."""
    name = simulator.ila.name
    if name != template.device:
        raise InstanceError(
            f"Program {template.fragment} must run on {template.device}, not {name}; give it that device"
        )
    for state, value in template.idle.items():
        memory = simulator.memories.get(state)
        if not (memory.are(value).all() if memory is not None else simulator.values[state] == value):
            raise InstanceError(
                f"State {state} of {name} must hold {value} when program {template.fragment} starts; use a new device"
            )
    times, rows = simulator.watch(CommandStream(columns), template.output)
    last = np.searchsorted(times, template.reads, side="right") - 1
    if len(last) and last.min() < 0:
        raise InstanceError(
            f"Command {template.reads[0]} of program {template.fragment} must set {template.output} of "
            f"{template.device} before the host reads it; it holds what it held before the program"
        )
    return template.outputs(rows[last])
