"""The scalar interpreter: runs an ILA command by command, and program fragments at concrete sizes.

This is the reference that every other interpretation is tested against.  It checks at run time what ILAng's
simulator leaves unchecked (ILAng issue 203): a command must satisfy the valid condition, and exactly one
instruction must decode it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from threading import RLock
from typing import Any

from ila_lang.language.build import true
from ila_lang.language.expr import Expr, variables_of
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Kernel
from ila_lang.language.model import Ila, Instruction
from ila_lang.language.sorts import BvSort, MemSort

from .compile import Memory, compile_kernel, compile_terms
from .kept import Kept

StorePlan = list[tuple[Expr, Expr, Expr]]


class CommandError(Exception):
    """A command that the model does not accept: not valid, not decoded, decoded twice, or reserved."""


def no_input(ila: Ila, name: str) -> CommandError:
    """The error of a command that gives what is no input of a model."""
    return CommandError(f"{ila.name} has no input {name}; it has {', '.join(ila.inputs)}")


def store_plan(term: Expr, guard: Expr = true) -> tuple[Expr, StorePlan]:
    """A memory expression as its base variable and guarded stores, oldest first.

    Raises ValueError where the two branches of a conditional have different bases.
    """
    if term.op == "var":
        return term, []
    if term.op == "store":
        base, plan = store_plan(term.args[0], guard)
        return base, [*plan, (guard, term.args[1], term.args[2])]
    if term.op == "ite":
        condition, then, otherwise = term.args
        base, left = store_plan(then, guard & condition)
        other, right = store_plan(otherwise, guard & ~condition)
        if base is not other:
            raise ValueError(f"Branches of a memory update must start from one memory, not {base} and {other}")
        return base, left + right
    raise ValueError(f"A memory update must be made of stores and conditionals, not {term.describe()}")


@dataclass
class _Compiled:
    """One instruction, ready to run; each function goes with the names of its arguments."""

    scalars: list[str]
    memories: list[tuple[str, str, int]]
    updates: _Function
    guard: _Function | None
    done: list[str]
    on_done: _Function | None


class _Function:
    """Terms over inputs and states, compiled."""

    def __init__(self, roots: Iterable[Expr]) -> None:
        terms = list(roots)
        variables = variables_of(*terms)
        self.names = [v.name for v in variables]
        self.run = compile_terms(variables, terms)


class _Shared:
    """What is compiled of a model, for all its machines."""

    def __init__(self, ila: Ila) -> None:
        self.decode = _Function([ila.valid, *(i.decode for i in ila.instructions.values())])
        self.compiled: dict[str, _Compiled] = {}
        self.kernels: dict[Kernel, Callable[..., None]] = {}
        self.more: dict[str, Any] = {}
        self.lock = RLock()


_SHARED: Kept[Ila, _Shared] = Kept()


def _shared(ila: Ila) -> _Shared:
    """The compiled form of a model; a new one where the model was changed since."""
    return _SHARED.of(ila, _parts(ila), lambda: _Shared(ila))


def _parts(ila: Ila) -> list[object]:
    """The objects that make up a model; terms and statements never change, nor do functions that have a body."""
    parts: list[object] = [ila.valid, *ila.inputs.values(), *ila.states.values()]
    for i in ila.instructions.values():
        parts += [i.name, i.reserved, i.decode, i.kernel, i.kernel_guard, *i.updates, *i.updates.values()]
        if i.kernel is not None:
            parts += [*i.kernel.body, *i.kernel.on_done, *i.kernel.on_done.values()]
    return parts


class Machine:
    """The state of one device, and the means to step it.

    Scalars without a reset value start at 0.  Raises from :meth:`step` :class:`CommandError`, ExtentError where an
    extent of the kernel does not fit its counter, and ValueError where an instruction is first used after a change of
    the model.
    """

    def __init__(self, ila: Ila) -> None:
        self.ila = ila
        self.memories: dict[str, Memory] = {}
        self.values: dict[str, int] = {}
        for name, state in ila.states.items():
            if isinstance(state.sort, MemSort):
                self.memories[name] = self._memory(state.sort, ila.inits.get(name, 0))
            else:
                self.values[name] = ila.inits.get(name, 0)
        self._shared = _shared(ila)
        self._widths = {n: 1 << v.width if isinstance(v.sort, BvSort) else 2 for n, v in ila.inputs.items()}
        self.steps: Callable[[int], Iterable[int]] = range
        """The iterations of a loop, from their number; to limit runs, a function that raises takes its place."""

    def _memory(self, sort: MemSort, default: int) -> Memory:
        return Memory(default)

    def decode(self, inputs: Mapping[str, int]) -> Instruction:
        """The one instruction that ``inputs`` select in the present state."""
        for name in inputs:
            if name not in self.ila.inputs:
                raise no_input(self.ila, name)
        valid, *decoded = self._call(self._shared.decode, inputs)
        if not valid:
            raise CommandError(f"{_show(inputs)} is not a valid command of {self.ila.name}")
        hits = [i for i, hit in zip(self.ila.instructions.values(), decoded, strict=True) if hit]
        if len(hits) != 1:
            names = ", ".join(i.name for i in hits) or "none"
            raise CommandError(
                f"{_show(inputs)} must select exactly one instruction of {self.ila.name}; it selects {names}"
            )
        return hits[0]

    def step(self, inputs: Mapping[str, int]) -> Instruction:
        """Executes one command, with the kernel it starts run to completion; returns its instruction."""
        for name, value in inputs.items():
            if name in self._widths and not 0 <= value < self._widths[name]:
                raise CommandError(f"Input {name} of {self.ila.name} must be below {self._widths[name]}, not {value}")
        instruction = self.decode(inputs)
        self.execute_one(instruction, inputs)
        return instruction

    def execute_one(self, instruction: Instruction, inputs: Mapping[str, int]) -> None:
        """Executes one command, of which ``instruction`` is known to be the instruction."""
        if instruction.reserved:
            raise CommandError(f"{_show(inputs)} selects {instruction.name}: {instruction.reserved}")
        code = self._code(instruction)
        results = self._call(code.updates, inputs)
        writes: list[tuple[str, int, int]] = []
        at = len(code.scalars)
        copies = {}
        for name, base, count in code.memories:
            if base != name:
                copies[name] = Memory(self.memories[base].default, self.memories[base])
            for guard, address, data in (results[at + 3 * k : at + 3 * k + 3] for k in range(count)):
                if guard:
                    writes.append((name, address, data))
            at += 3 * count
        self.values.update(zip(code.scalars, results, strict=False))
        for name, copy in copies.items():
            self._replace(name, copy)
        for name, address, data in writes:
            self.memories[name][address] = data
        if instruction.kernel is not None and code.guard is not None and self._call(code.guard, inputs)[0]:
            self.run_kernel(instruction.kernel)
            if code.on_done is not None:
                self.values.update(zip(code.done, self._call(code.on_done, inputs), strict=True))

    def _replace(self, name: str, contents: Memory) -> None:
        """Gives a memory the contents of another one."""
        self.memories[name].clear()
        self.memories[name].update(contents)
        self.memories[name].default = contents.default

    def run_kernel(self, kernel: Kernel) -> None:
        """Runs a kernel of the model on the present state; values that it sets when it ends are not set."""
        kernels = self._shared.kernels
        if kernel not in kernels:
            self.require_unchanged()
            kernels[kernel] = compile_kernel(kernel)
        kernels[kernel](self.values, self.memories, None, steps=self.steps)

    def _call(self, function: _Function, inputs: Mapping[str, int]) -> Any:
        values, memories, known = self.values, self.memories, self.ila.inputs
        return function.run(
            *[inputs.get(n, 0) if n in known else memories[n] if n in memories else values[n] for n in function.names]
        )

    def _code(self, instruction: Instruction) -> _Compiled:
        compiled = self._shared.compiled
        if instruction.name not in compiled:
            self.require_unchanged()
            compiled[instruction.name] = self._compile(instruction)
        return compiled[instruction.name]

    def require_unchanged(self) -> None:
        """Raises ValueError where the model has changed since this machine was made.

        What is compiled late is shared with machines that are made later, of the model as it is then.
        """
        if _shared(self.ila) is not self._shared:
            raise ValueError(f"Model {self.ila.name} must not change while a machine of it runs; make a new machine")

    def _compile(self, instruction: Instruction) -> _Compiled:
        scalars, memories, roots, stores = [], [], [], []
        for name, term in instruction.updates.items():
            if isinstance(term.sort, MemSort):
                base, plan = store_plan(term)
                memories.append((name, base.name, len(plan)))
                stores += [x for entry in plan for x in entry]
            else:
                scalars.append(name)
                roots.append(term)
        kernel = instruction.kernel
        return _Compiled(
            scalars,
            memories,
            _Function(roots + stores),
            _Function([instruction.kernel_guard]) if kernel else None,
            list(kernel.on_done) if kernel else [],
            _Function(kernel.on_done.values()) if kernel and kernel.on_done else None,
        )


class _Program:
    """A fragment's program, ready to run."""

    def __init__(self, fragment: Fragment) -> None:
        self.external = fragment.program.external_variables()
        own = {*fragment.parameters, *fragment.tensors}
        # the program's own names hide the device's outputs, which are read after the command that sets them
        self.volatile = {v for n, v in self.external.items() if n not in own}
        self.run = compile_kernel(fragment.program, self.volatile)


_PROGRAMS: Kept[Kernel, _Program] = Kept()


def run_fragment(
    fragment: Fragment,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Memory],
    machine: Machine | None = None,
    observe: Callable[[Mapping[str, int], str], None] | None = None,
) -> Machine:
    """Runs a fragment at concrete sizes; host tensors in ``tensors`` are read and written in place.

    ``observe`` sees every command before it executes.  Raises ValueError or TypeError on a missing or unknown size or
    host tensor, on a size that is no number of its width, and on a tensor with an address or word that is none.
    """
    machine = machine or Machine(fragment.ila)
    require_arguments(fragment, sizes, tensors)
    check_sizes(fragment, sizes)
    _check_tensors(fragment, tensors)
    parts: list[object] = [*fragment.program.body, *fragment.parameters, *fragment.tensors]
    program = _PROGRAMS.of(fragment.program, parts, lambda: _Program(fragment))

    def issue(inputs: Mapping[str, int], note: str) -> None:
        if observe is not None:
            observe(inputs, note)
        machine.step(inputs)

    memories = {
        n: machine.memories[n] if v in program.volatile else tensors[n]
        for n, v in program.external.items()
        if isinstance(v.sort, MemSort)
    }
    program.run(machine.values, memories, issue, sizes, machine.steps)
    return machine


def require_arguments(fragment: Fragment, sizes: Mapping[str, int], tensors: Mapping[str, object]) -> None:
    """Raises ValueError where a size, or a host tensor that the program uses, is missing."""
    external = fragment.program.external_variables()
    missing = [p for p in fragment.parameters if p not in sizes]
    missing += [t for t in fragment.tensors if t in external and t not in tensors]
    if missing:
        raise ValueError(f"Fragment {fragment.name} must be given {', '.join(missing)}")


def check_sizes(fragment: Fragment, sizes: Mapping[str, int]) -> None:
    """Raises ValueError or TypeError for what is no size of a fragment, or no number of its width."""
    for name, value in sizes.items():
        if name not in fragment.parameters:
            known = ", ".join(fragment.parameters) or "none"
            raise ValueError(f"Size {name} of fragment {fragment.name} must be one of its sizes ({known})")
        check_numbers(f"Size {name} of fragment {fragment.name}", [value], fragment.parameters[name].width)


def _check_tensors(fragment: Fragment, tensors: Mapping[str, Memory]) -> None:
    for name, memory in tensors.items():
        what = f"Tensor {name} of fragment {fragment.name}"
        if name not in fragment.tensors:
            raise ValueError(f"{what} must be one of its tensors ({', '.join(fragment.tensors) or 'none'})")
        if not isinstance(memory, Memory):
            raise TypeError(f"{what} must be a Memory, not a {type(memory).__name__}")
        sort = fragment.tensors[name].sort
        assert isinstance(sort, MemSort)
        check_numbers(f"Address of {what[0].lower()}{what[1:]}", memory, sort.addr_width)
        check_numbers(f"Word of {what[0].lower()}{what[1:]}", [memory.default, *memory.values()], sort.data_width)


def check_numbers(what: str, values: Iterable[object], width: int) -> None:
    """Raises TypeError for what is no integer, and ValueError for what is no unsigned number of ``width`` bits."""
    for value in values:
        if not isinstance(value, Integral):
            raise TypeError(f"{what} must be an integer, not {value!r:.60}")
        if not 0 <= value < 1 << width:  # type: ignore[operator]
            raise ValueError(f"{what} must fit in {width} bits unsigned, not {int(value)}")


def _show(inputs: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{k}={v:#x}" for k, v in inputs.items()) + "}"
