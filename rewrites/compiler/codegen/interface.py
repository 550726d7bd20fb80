"""What code generation speaks of: options, calls of proved mappings, implementations of nodes, and what ran.

An accelerator node is implemented by *calls*: instances of proved mappings at concrete sizes, each on parts of the
node's operands.  An :class:`Implementation` is made at compile time from the node's types and its *quantisation* (a few
integers that calibration chose) and holds no data.  :meth:`Implementation.bind` gives it the constant operands,
:meth:`Implementation.run` all of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from chc.tensor_rules.rule import TensorRule
from ila_lang.mapping import SizeError
from ila_lang.streams.programs import Program
from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.ir import digest_of
from ir_semantics.graph.types import Array
from rewrites.claims.names import slug
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import ConversionClaim
from rewrites.mappings.programs import program_of
from rewrites.rules.tensor.scales import Scaling

from .programs import Columns, Devices, fragment_digest

Reals = NDArray[np.float64]
Tensors = Mapping[str, NDArray[Any]]
"""Host tensors of a program by name: flat arrays of element codes."""
Part = tuple[tuple[int, int], ...]
"""A part of a tensor: the first index and the one after the last, of every axis."""
RESULT = "y"
"""The result's name among parts and tensors; operands have their own."""
Quantisation = Mapping[str, int]
"""The parameters of a node's number formats, by name; each operator says which it has."""
Ranges = Mapping[str, float]
"""Largest magnitudes that calibration saw, by name; each operator says which it looks at."""


BLOCK = 1 << 16
"""Elements that are quantised at a time, so that intermediate results stay in a processor's cache."""


class CannotOffload(ValueError):
    """An accelerator node that no calls of proved mappings implement; the message says why."""


@dataclass(frozen=True)
class Options:
    """What may be chosen about number formats.

    ``as_published``: tensors go to the accelerator as they are, with formats as published drivers choose them;
    otherwise powers of two, undone exactly on the host, move them to where formats are finest.  ``headroom``: by which
    factor data may exceed the ranges of calibration before they leave their formats (as published it is 1).
    ``chosen`` has values of the accelerators' own choices, by name.  Raises ValueError on a headroom below 1 or above
    1024.
    """

    as_published: bool = False
    headroom: float = 1.25
    chosen: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1.0 <= self.headroom <= 1024.0:
            raise ValueError(f"headroom must be a factor in 1 .. 1024, not {self.headroom!r}")

    @property
    def margin(self) -> float:
        """The factor that ranges of run-time data are multiplied with."""
        return 1.0 if self.as_published else self.headroom


@dataclass(frozen=True)
class Choice:
    """What may be chosen about one accelerator: a name, the values, the first of them by default, and what it means.

    ``flag`` is its name on the command line.
    """

    name: str
    flag: str
    values: tuple[int, ...]
    about: str

    def of(self, options: Options) -> int:
        """The value that was chosen; raises ValueError for one that it must not have."""
        value = options.chosen.get(self.name, self.values[0])
        if type(value) is not int or value not in self.values:
            raise ValueError(f"{self.name} must be {' or '.join(map(str, self.values))}, not {value!r:.60}")
        return value


@dataclass(frozen=True)
class Call:
    """An instance of a proved mapping at sizes, and the parts of operands and result.

    A part may end beyond the tensor: the rest is padding.  ``rules`` are the proved rules on tensors by which a node
    may be computed in such parts; with one part there are none.  A mapping of tensors as the graph has them takes all
    of them, and ``parts`` is empty.
    """

    mapping: MappingClaim
    sizes: Mapping[str, int]
    parts: Mapping[str, Part] = field(default_factory=dict)
    rules: tuple[TensorRule, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The call as JSON."""
        return {
            "mapping": self.mapping.name,
            "sizes": dict(self.sizes),
            "parts": {name: [list(axis) for axis in part] for name, part in self.parts.items()},
            "rules": [slug(rule.name) for rule in self.rules],
        }


@dataclass(frozen=True)
class Bounds:
    """What is known of the distance between an accelerator's result and the exact operator.

    ``on_quantised`` bounds it for the exact operator on the quantised operands, ``on_given`` for the exact operator on
    the operands as given (which adds what rounding the operands may do); None where there is no bound, and ``reason``
    says why.  ``theorem`` is the operator of :mod:`rewrites.bounds` whose theorem says ``on_quantised``; without one
    it is declared, as ``on_given`` always is.  ``elements`` has what the theorem says of each element, if that is less;
    with a ``centre``, which has a sign, an element's error is within ``radius`` of that.  ``declared`` says what this
    rests on beside the theorem.
    """

    on_quantised: float | None
    on_given: float | None
    reason: str = ""
    theorem: str = ""
    elements: Reals | None = None
    declared: str = ""
    centre: Reals | None = None
    radius: Reals | None = None


@dataclass(frozen=True, eq=False)
class Executed:
    """A run of a node: the result (float32), the operands as given, and as the accelerator got them.

    ``codes`` are the operands as the program gets them, ``quantised`` the numbers that the accelerator then has, in the
    units of the operands as given.  ``saturated`` counts, by operand, elements beyond their format, which were cut
    to its end.
    """

    value: NDArray[np.float32]
    given: Mapping[str, Reals]
    codes: Mapping[str, Any]
    quantised: Mapping[str, Reals]
    saturated: Mapping[str, int]


class _Computed(Mapping[str, Reals]):
    """Arrays by name that are computed on first use."""

    def __init__(self, functions: Mapping[str, Callable[[], Reals]]) -> None:
        self._functions = functions
        self._arrays: dict[str, Reals] = {}

    def __getitem__(self, name: str) -> Reals:
        if name not in self._arrays:
            self._arrays[name] = self._functions[name]()
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


@dataclass(frozen=True, eq=False)
class _Operand:
    """An operand of samples, or one of all samples, and how many elements of each lie beyond their format."""

    array: Array
    codes: Any
    beyond: Sequence[int]


@dataclass(frozen=True, eq=False)
class ExecutedSamples:
    """Runs of a node on samples: the results, with samples along the first axis, and all about each run."""

    value: NDArray[np.float32]
    implementation: Implementation
    operands: Mapping[str, _Operand]

    @cached_property
    def _shared(self) -> Mapping[str, Mapping[str, Reals]]:
        """By operand of all samples: what it is, and the numbers that its codes stand for."""
        of = self.implementation
        return {
            name: _Computed(
                {
                    "array": partial(_reals, operand.array[0]),
                    "quantised": partial(of._values, name, of._sample(operand.codes, 0)),
                }
            )
            for name, operand in self.operands.items()
            if len(operand.array) == 1
        }

    def sample(self, number: int) -> Executed:
        """The run on one of them."""
        of, arrays, quantised = self.implementation, dict[str, Callable[[], Reals]](), dict[str, Callable[[], Reals]]()
        codes, saturated = dict[str, Any](), dict[str, int]()
        for name, operand in self.operands.items():
            shared = self._shared.get(name)
            at = number if shared is None else 0
            codes[name] = of._sample(operand.codes, at)
            if operand.beyond[at]:
                saturated[name] = operand.beyond[at]
            if shared is None:
                arrays[name] = partial(_reals, operand.array[at])
                quantised[name] = partial(of._values, name, codes[name])
            else:
                arrays[name] = partial(shared.__getitem__, "array")
                quantised[name] = partial(shared.__getitem__, "quantised")
        return Executed(self.value[number], _Computed(arrays), codes, _Computed(quantised), saturated)


class Implementation(ABC):
    """How an accelerator executes a node: its calls, and what happens to data before and after.

    Made from the node, the types of its operands and its quantisation; raises CannotOffload where no calls implement
    it, and KeyError where a parameter of the quantisation is missing.
    """

    operands: ClassVar[tuple[str, ...]]
    """Names of the operands, in order."""
    conversions: ClassVar[tuple[MappingClaim, ...]] = ()
    """The mappings by which the host makes codes of operands, and the result of codes, where that is proved."""
    lemmas: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By operand, and for the result, lemmas, one of which is on the function that converts it; without, declared."""
    laws: ClassVar[tuple[str, ...]] = ()
    """The laws that bounds in ranges rest on beside their theorem (:mod:`rewrites.bounds.lemmas.network_rules`)."""
    scalings: ClassVar[tuple[Scaling, ...]] = ()
    """How scales of operands and the result depend on each other, by attributes; without one nothing is scaled."""

    def __init__(self, node: Node, types: Sequence[TensorType], quantisation: Quantisation, options: Options) -> None:
        self.node, self.types, self.options = node, tuple(types), options
        self.quantisation = dict(quantisation)
        self.calls: tuple[Call, ...] = tuple(self._calls())
        for call in self.calls:
            try:
                call.mapping.require(call.sizes)
            except SizeError as error:
                raise CannotOffload(str(error)) from error
        self._bound: dict[str, _Operand] = {}

    @property
    def claims(self) -> tuple[str, ...]:
        """Names of the mappings and rules that the calls rest on, and the host's share."""
        return (*(m.name for m in (*self.mappings, *self.conversions_used)), *(slug(rule.name) for rule in self.rules))

    @property
    def mappings(self) -> tuple[MappingClaim, ...]:
        """The mappings of the calls, each once."""
        return tuple(dict.fromkeys(call.mapping for call in self.calls))

    @property
    def conversions_used(self) -> tuple[MappingClaim, ...]:
        """The mappings of programs of the host, each once."""
        return tuple(dict.fromkeys(self.host_programs))

    @property
    def host_programs(self) -> tuple[MappingClaim, ...]:
        """The mappings of all programs of the host, as often as there are programs."""
        return ()

    def laid_out(self, number: int) -> Mapping[str, tuple[int, ...]]:
        """The extents of what the host's proved programs put into host tensors of a call; several axes may be one."""
        return {}

    def exponents_of(self, number: int) -> Mapping[str, int]:
        """By host tensor of a call the exponent with which the host's programs convert numbers, if they have one."""
        return {}

    def held_by(self, number: int) -> Mapping[str, str | None] | None:
        """By host tensor of a call the operand that lies in it; None for zeros.

        None for all of them where no proved programs put operands there, but the code of the implementation, which is
        trusted for it.
        """
        return None

    def conversions_of(self, number: int) -> Mapping[str, ConversionClaim]:
        """By host tensor of a call the host's programs that write it, or read it where it is the result."""
        return {}

    @property
    def rules(self) -> tuple[TensorRule, ...]:
        """The rules by which the node is computed in parts, and by which its scales cancel out, each once."""
        return tuple(dict.fromkeys((*(rule for call in self.calls for rule in call.rules), *self.scaled_by)))

    @property
    def scaled_by(self) -> tuple[TensorRule, ...]:
        """The rule by which scales of every call cancel out, if there is one."""
        scaling = self.scaling
        return () if scaling is None or scaling.rule is None else (scaling.rule,)

    @property
    def scaling(self) -> Scaling | None:
        """That of ``scalings`` for the node's attributes."""
        own = dict(self.node.attributes)
        return next((s for s in self.scalings if s.fits(own)), None)

    def bind(self, constants: Mapping[int, Array]) -> None:
        """Gives constant operands, by position: they are quantised now, and sent by every run.

        Raises CannotOffload where one has NaN or an infinity.
        """
        for position, array in constants.items():
            if not np.isfinite(array).all():
                raise CannotOffload(
                    f"its constant operand {self.operands[position]} has NaN or an infinity, and formats are for "
                    "finite numbers; correct the model's weights"
                )
            self._bound[self.operands[position]] = self._operand(self.operands[position], array[None])

    def run(self, operands: Sequence[Array], devices: Devices) -> Executed:
        """The node's result on these operands (float32), computed by the accelerator's simulator.

        Operands that were bound are not looked at.  Raises ValueError where a number is not finite.
        """
        return self.run_samples([np.asarray(operand)[None] for operand in operands], devices).sample(0)

    def run_samples(self, operands: Sequence[Array], devices: Devices) -> ExecutedSamples:
        """As :meth:`run`, on operands with samples along a first axis, of extent 1 where all have the same."""
        by_name = self._operands(operands)
        codes = {name: operand.codes for name, operand in by_name.items()}
        return ExecutedSamples(self._result(self._outputs(codes, devices)).astype(np.float32), self, by_name)

    def _outputs(self, codes: Mapping[str, Any], devices: Devices) -> Sequence[Tensors]:
        """The host tensors that the calls' programs write."""
        return devices.each(lambda call: self._run_call(call, codes, devices), self.calls)

    def _operands(self, operands: Sequence[Array]) -> dict[str, _Operand]:
        return {
            name: self._bound[name] if name in self._bound else self._operand(name, array)
            for name, array in zip(self.operands, operands, strict=True)
        }

    def columns(self, number: int, operands: Sequence[Array]) -> Columns:
        """The commands of a call on these operands, in issue order: what a driver would send.

        Operands that were bound are not looked at.
        """
        by_name = self._operands([np.asarray(operand)[None] for operand in operands])
        tensors = self._tensors(self.calls[number], {name: operand.codes for name, operand in by_name.items()})
        program = self.program(number)
        return program.stream(program.padded({name: tensor[0] for name, tensor in tensors.items()})).columns

    def _operand(self, name: str, array: Array) -> _Operand:
        flat = array.reshape(-1)
        parts, beyond = [], 0
        for first in range(0, max(flat.size, 1), BLOCK):
            block = _reals(flat[first : first + BLOCK])
            parts.append(self._codes(name, block))
            beyond += self._beyond(name, block)
        each = [beyond] * len(array)
        if beyond and len(array) > 1:
            each = [self._beyond(name, _reals(sample)) for sample in array]
        return _Operand(array, self._joined(parts, np.shape(array)), each)

    def program(self, number: int) -> Program:
        """The fragment of a call at its sizes."""
        return program_of(self.calls[number].mapping, self.calls[number].sizes)

    def described(self, number: int) -> dict[str, Any]:
        """What the program of a call is, as JSON.

        It is a fragment with its model (by digest) at the call's sizes, which sends so many commands, reads and writes
        so many elements of host tensors, and is given these contents of those that bound operands decide (by digest).
        """
        call, program = self.calls[number], self.program(number)
        own = self._tensors(call, {name: operand.codes for name, operand in self._bound.items()})
        return {
            "fragment": fragment_digest(call.mapping),
            "commands": len(program),
            "reads": dict(program.reads),
            "writes": dict(program.writes),
            "constants": {name: digest_of(tensor[0]) for name, tensor in own.items()},
            **self._around(number),
        }

    def _around(self, number: int) -> dict[str, Any]:
        """What is said beside of the host's programs around a call."""
        return {}

    def _run_call(self, call: Call, codes: Mapping[str, Any], devices: Devices) -> Tensors:
        program = program_of(call.mapping, call.sizes)
        tensors = program.padded(self._tensors(call, codes), samples=True)
        return program.run_samples(devices.of(call.mapping.mapping.device.ila), tensors)

    @staticmethod
    @abstractmethod
    def split(node: Node, types: Sequence[TensorType]) -> Any:
        """How a node with operands of these types is computed; raises CannotOffload where shapes do not fit."""

    @staticmethod
    @abstractmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""

    @staticmethod
    @abstractmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges; raises CannotOffload where no formats fit."""

    @abstractmethod
    def _calls(self) -> Sequence[Call]:
        """All calls, from types and quantisation."""

    @abstractmethod
    def _codes(self, name: str, operand: Reals) -> Any:
        """Elements of an operand in the accelerator's format, each for itself."""

    def _joined(self, parts: Sequence[Any], shape: tuple[int, ...]) -> Any:
        """The codes of an operand from those of its elements in row-major order."""
        return np.concatenate(parts).reshape(shape)

    def _sample(self, codes: Any, number: int) -> Any:
        """The codes of one sample."""
        return codes[number]

    @abstractmethod
    def _values(self, name: str, codes: Any) -> Reals:
        """The numbers that codes stand for, in the units of the operand."""

    @abstractmethod
    def _beyond(self, name: str, operand: Reals) -> int:
        """How many of these elements of an operand lie beyond its format."""

    @abstractmethod
    def _tensors(self, call: Call, codes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Those of the call's host tensors that the given operands decide: flat, with samples along the first axis.

        That axis of an operand has the extent 1 where all samples have the same.
        """

    @abstractmethod
    def _result(self, outputs: Sequence[Tensors]) -> NDArray[np.floating]:
        """The node's results, from the host tensors that the calls' programs write; samples are the first axis."""

    @abstractmethod
    def cut(self, executed: Executed, exact: Reals) -> int:
        """How many results, or states kept between steps, the accelerator cut to the end of their format in a run.

        ``exact`` are the exact operator's results on the operands as the accelerator got them.  0 where nothing is cut.
        """

    @abstractmethod
    def bounds(self, executed: Executed) -> Bounds:
        """What is proved of the error of a run; see :class:`Bounds`."""

    def bounds_in(self, ranges: Ranges) -> Bounds:
        """What is proved of the error of any run in these ranges (``on_quantised`` alone)."""
        return Bounds(None, None, "no theorem of it is about ranges")

    def rounding(self, name: str, magnitude: float) -> float:
        """What rounding an operand of at most this magnitude may change in an element; 0 must stay 0."""
        return math.inf

    @property
    def constants(self) -> frozenset[str]:
        """The operands that were bound."""
        return frozenset(self._bound)

    def constant_of(self, name: str) -> Reals:
        """The numbers that the accelerator gets for a constant operand; raises KeyError where it is none."""
        return self._values(name, self._sample(self._bound[name].codes, 0))


def _reals(array: Array) -> Reals:
    return np.asarray(array, np.float64)
