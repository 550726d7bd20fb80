"""Program fragments at concrete sizes: what is run, and what is sent, is what the proof is about.

A :class:`Program` is a fragment whose sizes are given and whose host tensors are not.  How many commands it has, and
which elements of tensors it reads and writes, must follow from the sizes: this is counted by a kernel, which is the
fragment's own loops without its commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import resolved
from ila_lang.interpreter.kept import Kept
from ila_lang.interpreter.machine import Machine, check_sizes, run_fragment
from ila_lang.language.build import const, ite, true
from ila_lang.language.expr import Expr, postorder, private_var, variables_of
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store, terms, walk
from ila_lang.language.model import Instruction
from ila_lang.language.sorts import MemSort, bv, mem
from ila_lang.native.arrays import Tensor, new_words, own_words, run_on_arrays
from ila_lang.native.session import fragment_parts

from .simulator import CommandStream, Simulator

Words = NDArray[Any]
_BITS = 64
_COUNTS = "counts!"


class InstanceError(ValueError):
    """A fragment of which no program can be made, or tensors of another form than it takes."""


@dataclass(frozen=True, eq=False)
class Program:
    """A fragment at concrete sizes, and how many ``commands`` it issues.

    ``reads`` and ``writes`` are the least numbers of elements of the host tensors that it loads from and stores to.
    ``unknown`` says which command needs more than sizes and given tensors, so that commands are known only when the
    device has answered; it is empty where there is none.
    """

    fragment: Fragment
    sizes: Mapping[str, int]
    commands: int
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    unknown: str = ""

    @staticmethod
    def of(fragment: Fragment, sizes: Mapping[str, int]) -> Program:
        """The fragment at these sizes, which should lie in the domain of its mapping (``TensorMapping.require``).

        Raises ValueError or TypeError where a size is missing or does not fit, and InstanceError where loops, or
        addresses of host tensors, depend on more than sizes.
        """
        missing = [name for name in fragment.parameters if name not in sizes]
        if missing:
            raise ValueError(f"Fragment {fragment.name} must be given {', '.join(missing)}")
        own = {name: int(sizes[name]) for name in fragment.parameters}
        check_sizes(fragment, sizes)
        known = _SURVEYS.of(fragment.program, fragment_parts(fragment), lambda: _Surveyor(fragment).survey())
        used = known.kernel.external_variables()
        form = used[_COUNTS].sort
        assert isinstance(form, MemSort)
        numbers = np.zeros(1 << form.addr_width, np.uint64)
        run_on_arrays(known.kernel, {n: v for n, v in own.items() if n in used}, {_COUNTS: numbers})
        counts = numbers.tolist()
        reads = {n: c for n, c in zip(known.reads, counts[1:], strict=False) if c}
        writes = {n: c for n, c in zip(known.writes, counts[1 + len(known.reads) :], strict=False) if c}
        return Program(fragment, own, counts[0], reads, writes, known.unknown)

    def __len__(self) -> int:
        """The number of commands."""
        return self.commands

    def padded(self, tensors: Mapping[str, Words], *, samples: bool = False) -> dict[str, Words]:
        """The tensors with zeros up to the number of elements that the program reads; missing ones are zeros.

        With ``samples`` they are as for :meth:`run_samples`.
        """
        filled, axis = dict(tensors), int(samples)
        for name, count in self.reads.items():
            tensor = filled.get(name)
            if tensor is None:
                zeros = new_words(self._sort(name), count)
                filled[name] = zeros[None] if samples else zeros
            elif tensor.ndim == axis + 1 and tensor.shape[axis] < count:
                filled[name] = np.pad(tensor, [(0, 0)] * axis + [(0, count - tensor.shape[axis])])
        return filled

    def run(self, device: Machine, tensors: Mapping[str, Words]) -> dict[str, Words]:
        """Runs the program with these tensors; the host tensors that it writes, flat arrays of codes.

        A tensor is a flat array of the codes that are read: unsigned or, as two's complement, signed integers of the
        width of its elements, or other integers that fit.  The device need not be at reset, nor of the fragment's own
        model: programs also show what a faulty device of that name does.  Raises InstanceError on tensors of another
        form, and on a device of another name, or one that is not idle as the program demands; ValueError where the
        model has other inputs or outputs; CommandError where a command is not accepted.
        """
        written = self.run_samples(device, {name: tensor[None] for name, tensor in tensors.items()})
        return {name: tensor[0] for name, tensor in written.items()}

    def run_samples(self, device: Machine, tensors: Mapping[str, Words]) -> dict[str, Words]:
        """As :meth:`run` on one sample after the other; tensors have them along a first axis.

        It has the extent 1 where all samples have the same.  Raises InstanceError where numbers of samples differ.
        """
        words = self._words(tensors)
        for some in self._together(words, device):
            fragment = self._on(device)
            if isinstance(device, Simulator):
                device.run_words(fragment, self.sizes, some, self.commands)
            else:
                _interpret(fragment, self.sizes, {name: w[0] for name, w in some.items()}, device)
        return {name: words[name][:, :written] for name, written in self.writes.items()}

    def _together(self, words: Mapping[str, Words], device: Machine) -> Iterator[Mapping[str, Words]]:
        """The samples that are run without a look at the device between them."""
        count = max(map(len, words.values()), default=1)
        together = count if isinstance(device, Simulator) and not self.fragment.idle else 1
        for first in range(0, count, together):
            yield {name: w if len(w) == 1 else w[first : first + together] for name, w in words.items()}

    def run_in_place(self, device: Simulator, words: Mapping[str, Words]) -> None:
        """Runs the program on host tensors that are there already, all of them, and that other programs share.

        They are arrays of words of the width of their elements (:func:`~ila_lang.native.arrays.new_words`), apart, and
        with samples along a first axis, of extent 1 where all have the same, but not of tensors that are written.
        Raises InstanceError as :meth:`run` does, and where an array is too short or of another type.
        """
        name = self.fragment.name
        if set(words) != set(self.fragment.tensors):
            raise InstanceError(f"Program {name} must be given {', '.join(self.fragment.tensors)}")
        samples = max(map(len, words.values()), default=1)
        for tensor, array in words.items():
            count = max(self.reads.get(tensor, 0), self.writes.get(tensor, 0))
            form = new_words(self._sort(tensor), 0)
            least = samples if tensor in self.writes else 1
            fits = array.dtype == form.dtype and array.ndim == 1 + form.ndim and array.flags.c_contiguous
            if not fits or len(array) not in (least, samples) or array.shape[1] < count:
                raise InstanceError(
                    f"Tensor {tensor} of program {name} must have {least} to {samples} samples of at least {count} "
                    f"words of type {form.dtype}, not {array.shape} of {array.dtype}"
                )
        work = self.commands + sum(self.writes.values())
        for some in self._together(words, device):
            device.run_words(self._on(device), self.sizes, some, work)

    def stream(self, tensors: Mapping[str, Words]) -> CommandStream:
        """The commands that the program sends with these tensors, in order; no device executes them.

        Raises InstanceError as :meth:`run` does, and where commands depend on what the device returns.
        """
        if self.unknown:
            raise InstanceError(
                f"{self.unknown} of fragment {self.fragment.name} must be known before the program runs; run it, or "
                "compute this on the host"
            )
        words = {name: w[0] for name, w in self._words({name: t[None] for name, t in tensors.items()}).items()}
        device = Simulator(self.fragment.ila)
        stream = device.sent_natively(self.fragment, self.sizes, words, self.commands)
        if stream is not None:
            return stream
        recorder = _Recorder(self.fragment.ila)
        _interpret(self.fragment, self.sizes, words, recorder)
        return CommandStream.of(self.fragment.ila, recorder.sent)

    def _sort(self, name: str) -> MemSort:
        sort = self.fragment.tensors[name].sort
        assert isinstance(sort, MemSort)
        return sort

    def _words(self, tensors: Mapping[str, Words]) -> dict[str, Words]:
        """All tensors as words of memories, those that are written to as new arrays; samples are the first axis."""
        name, what = self.fragment.name, f"Tensor of program {self.fragment.name}"
        for tensor in tensors:
            if tensor not in self.fragment.tensors:
                known = ", ".join(self.fragment.tensors)
                raise InstanceError(f"{what} must be one of {known}, not {tensor}; leave it out")
        counts = {tensor: len(array) for tensor, array in tensors.items()}
        words, samples = {}, max(counts.values(), default=1)
        if not {1, samples}.issuperset(counts.values()) or not samples:
            given = ", ".join(f"{count} of {tensor}" for tensor, count in counts.items())
            raise InstanceError(
                f"Program {name} must be given as many samples of each tensor, or one for all of them, not {given}"
            )
        for tensor, count in self.reads.items():
            if tensor not in tensors:
                raise InstanceError(
                    f"Program {name} must be given tensor {tensor} of {count} elements; it sends "
                    f"{', '.join(self.reads)}"
                )
            words[tensor] = self._codes(tensor, tensors[tensor], count)
        for tensor in self.fragment.tensors:
            if tensor in self.writes or tensor not in words:
                sort, written = self._sort(tensor), self.writes.get(tensor, 0)
                content = words.get(tensor, new_words(sort, 0)[None])
                size = max(content.shape[1], written)
                own = new_words(sort, samples * size).reshape(samples, size, *content.shape[2:])
                own[:, : content.shape[1]] = content
                words[tensor] = own
        return words

    def _codes(self, name: str, tensor: Words, count: int) -> Words:
        where, bits = f"Tensor {name} of program {self.fragment.name}", self._sort(name).data_width
        form = new_words(self._sort(name), 0)
        if tensor.ndim != 1 + form.ndim or tensor.shape[1] != count:
            raise InstanceError(
                f"{where} must have {count} elements in one dimension, not shape {tensor.shape[1:]}; give its elements "
                "in row-major order"
            )
        if hasattr(tensor, "mask"):
            raise InstanceError(f"{where} must be an array without a mask; fill in what is masked")
        if tensor.dtype.kind not in "iu":
            raise InstanceError(f"{where} must hold codes of {bits} bits as integers, not {tensor.dtype}; quantise it")
        if tensor.dtype.itemsize * 8 == bits:
            return np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("=")).view(form.dtype)
        if form.ndim == 1 and tensor.size and (int(tensor.min()) < 0 or int(tensor.max()) >> bits):
            half, width = 1 << (bits - 1), 8 * form.dtype.itemsize
            if not -half <= int(tensor.min()) <= int(tensor.max()) < half:
                advice = "quantise it"
            elif tensor.dtype.itemsize * 8 == width:  # there is no type of so many bits
                tensor = tensor & (2 * half - 1)
                advice = ""
            else:
                advice = f"give signed numbers as int{width}"
            if advice:
                raise InstanceError(
                    f"{where} must hold codes of {bits} bits, not {tensor.min()} to {tensor.max()}; {advice}"
                )
        return np.stack([own_words(name, self._sort(name), one, False) for one in tensor])

    def _on(self, device: Machine) -> Fragment:
        """The fragment on a device of its name, which must be idle."""
        name, fragment = device.ila.name, self.fragment
        if name != fragment.ila.name:
            raise InstanceError(
                f"Program {fragment.name} must run on {fragment.ila.name}, not {name}; give it that device"
            )
        for state, value in fragment.idle.items():
            memory: Any = device.memories.get(state)
            if memory is None:
                idle = device.values[state] == value
            elif isinstance(device, Simulator):
                idle = bool(memory.are(value).all())
            else:
                idle = memory.default == value and all(word == value for word in memory.values())
            if not idle:
                raise InstanceError(
                    f"State {state} of {name} must hold {value} when program {fragment.name} starts; use a new device"
                )
        return fragment if fragment.ila is device.ila else replace(fragment, ila=device.ila)


class _Recorder(Machine):
    """A device that does nothing but to note what it is sent."""

    def __init__(self, ila: Any) -> None:
        super().__init__(ila)
        self.sent: list[Mapping[str, int]] = []

    def step(self, inputs: Mapping[str, int]) -> Instruction:
        self.sent.append(inputs)
        return next(iter(self.ila.instructions.values()))


def _interpret(fragment: Fragment, sizes: Mapping[str, int], words: Mapping[str, Words], device: Machine) -> None:
    run_fragment(fragment, sizes, {n: Tensor(n, w, padded=True) for n, w in words.items()}, device)


# -- what a fragment reads and writes ------------------------------------------------------------------


class _Survey(NamedTuple):
    """A kernel that counts the commands of a fragment, and elements of the tensors that it reads and writes."""

    kernel: Kernel
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    unknown: str


_SURVEYS: Kept[Kernel, _Survey] = Kept()


class _Surveyor:
    """Makes the kernel of a fragment.

    ``late`` are the variables that its sizes do not decide, all through the program.
    """

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        program = fragment.program
        self.tensors = set(fragment.tensors.values())
        sizes = set(fragment.parameters.values())
        self.late = {v for v in program.external_variables().values() if v not in sizes}
        self.late |= {s.target for s in walk(program.body) if isinstance(s, Load)}
        _spread(self.late, program.body)
        #: what is known, at the present place, only when the device has answered
        self.answers = {v for v in self.late if v.name in fragment.outputs and v not in self.tensors}
        self.unknown = ""
        self.count = private_var("commands!", bv(_BITS))
        self.extents: dict[tuple[bool, str], Expr] = {}

    def survey(self) -> _Survey:
        """The kernel, and the tensors whose extents it leaves behind the number of commands."""
        body = self._block(self.fragment.program.body)
        reads = tuple(name for is_write, name in self.extents if not is_write)
        writes = tuple(name for is_write, name in self.extents if is_write)
        registers = [self.count, *(self.extents[False, n] for n in reads), *(self.extents[True, n] for n in writes)]
        bits = max(len(registers) - 1, 1).bit_length()
        counts = private_var(_COUNTS, mem(bits, _BITS))
        body = [
            *(Let(register, const(0, _BITS)) for register in registers),
            *body,
            *(Store(counts, const(i, bits), register) for i, register in enumerate(registers)),
        ]
        return _Survey(Kernel(f"{self.fragment.name}!", "", body), reads, writes, self.unknown)

    def _block(self, body: Sequence[Statement]) -> list[Statement]:
        statements: list[Statement] = []
        for statement in body:
            _spread(self.answers, [statement])
            for term in terms(statement):
                if not isinstance(term.sort, MemSort):
                    statements += self._loads(term)
            match statement:
                case For(counter=counter, extent=extent, body=inner):
                    self._require_early(extent, f"Extent of loop {counter.name}")
                    self.answers |= _stored(inner)  # by an iteration before
                    _spread(self.answers, inner)
                    within = self._block(inner)
                    if within:
                        statements.append(For(counter, extent, tuple(within)))
                case Let(target=target):
                    if target not in self.late:
                        statements.append(statement)
                case Load(memory=memory, address=address):
                    statements += self._loads(memory.load(address))
                case Store(memory=memory, address=address):
                    statements += self._places(True, memory, address, true)
                    self.answers |= _stored([statement])
                case Command():
                    statements.append(Let(self.count, self.count + 1, update=True))
                    if not self.answers.isdisjoint(variables_of(*terms(statement))):
                        self.unknown = self.unknown or f"Inputs of command '{statement.note}'"
        return statements

    def _loads(self, term: Expr) -> Iterator[Statement]:
        """What a term loads from host tensors, where the conditions around it select that."""
        if self.tensors.isdisjoint(variables_of(term)):
            return
        root = resolved(term)
        ways: dict[Expr, Expr] = {root: true}
        order = postorder([root])
        for node in reversed(order):
            for i, arg in enumerate(node.args):
                way = ways[node]
                test = node.args[0]
                if node.op == "ite" and i and self.late.isdisjoint(variables_of(test)):
                    way = way & (test if i == 1 else ~test)
                ways[arg] = ways[arg] | way if arg in ways else way
        for node in order:
            if node.op == "load":
                yield from self._places(False, node.args[0], node.args[1], ways[node])

    def _places(self, is_write: bool, memory: Expr, address: Expr, way: Expr) -> Iterator[Statement]:
        """Makes room for an address of a host tensor."""
        if memory.op == "ite":
            for part in memory.args[1:]:  # of which one is stored to
                yield from self._places(is_write, part, address, way)
            return
        if memory not in self.tensors:
            return
        self._require_early(address, f"Address of {memory.name}")
        if address.width >= _BITS:
            raise InstanceError(f"Addresses of {memory.name} must have less than {_BITS} bits, not {address.width}")
        extent = self.extents.setdefault(
            (is_write, memory.name), private_var(f"{'writes' if is_write else 'reads'}!{memory.name}", bv(_BITS))
        )
        place = address.zext(_BITS)
        yield Let(extent, ite(way & (extent <= place), place + 1, extent), update=True)

    def _require_early(self, term: Expr, what: str) -> None:
        late = next((v for v in variables_of(term) if v in self.late), None)
        if late is not None:
            raise InstanceError(
                f"{what} of fragment {self.fragment.name} must follow from its sizes, not from {late.name}; run it "
                "with run_fragment, or compute this on the host"
            )


def _stored(body: Sequence[Statement]) -> set[Expr]:
    """The memories that statements store to."""
    return {v for s in walk(body) if isinstance(s, Store) for v in variables_of(s.memory)}


def _spread(variables: set[Expr], body: Sequence[Statement]) -> None:
    """Adds the registers whose values depend on these variables."""
    registers = [s for s in walk(body) if isinstance(s, Let | Load)]
    before = -1
    while before != len(variables):
        before = len(variables)
        variables |= {s.target for s in registers if not variables.isdisjoint(variables_of(*terms(s)))}
