"""The scalar interpreter: runs an ILA command by command, and program fragments at concrete sizes.

This is the reference that every other interpretation is tested against.  It checks at run time what ILAng's
simulator leaves unchecked (ILAng issue 203): a command must satisfy the valid condition, and exactly one
instruction must decode it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .build import true
from .compile import Memory, compile_kernel, compile_terms
from .expr import Expr
from .fragment import Fragment
from .model import Ila, Instruction
from .sorts import MemSort

__all__ = ["CommandError", "Machine", "run_fragment", "store_plan"]

StorePlan = list[tuple[Expr, Expr, Expr]]


class CommandError(Exception):
    """A command that the model does not accept: not valid, not decoded, decoded twice, or reserved."""


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
    """One instruction, ready to run."""

    scalars: list[str]
    memories: list[tuple[str, str, int]]
    updates: Callable[..., Any]
    guard: Callable[..., Any] | None
    kernel: Callable[..., None] | None
    done: list[str]
    on_done: Callable[..., Any] | None


class Machine:
    """The state of one device, and the means to step it.

    Scalars without a reset value start at 0.  Raises :class:`CommandError` from :meth:`step`.
    """

    def __init__(self, ila: Ila) -> None:
        self.ila = ila
        self.memories: dict[str, Memory] = {}
        self.values: dict[str, int] = {}
        for name, state in ila.states.items():
            if isinstance(state.sort, MemSort):
                self.memories[name] = Memory(ila.inits.get(name, 0))
            else:
                self.values[name] = ila.inits.get(name, 0)
        self._parameters = [*ila.inputs.values(), *ila.states.values()]
        roots = [ila.valid, *(i.decode for i in ila.instructions.values())]
        self._decode = compile_terms(self._parameters, roots)
        self._compiled: dict[str, _Compiled] = {}

    def decode(self, inputs: Mapping[str, int]) -> Instruction:
        """The one instruction that ``inputs`` select in the present state."""
        for name in inputs:
            if name not in self.ila.inputs:
                raise CommandError(f"{self.ila.name} has no input {name}; it has {', '.join(self.ila.inputs)}")
        valid, *decoded = self._decode(*self._arguments(inputs))
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
        instruction = self.decode(inputs)
        if instruction.reserved:
            raise CommandError(f"{_show(inputs)} selects {instruction.name}: {instruction.reserved}")
        code = self._code(instruction)
        arguments = self._arguments(inputs)
        results = code.updates(*arguments)
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
            self.memories[name].clear()
            self.memories[name].update(copy)
            self.memories[name].default = copy.default
        for name, address, data in writes:
            self.memories[name][address] = data
        if code.kernel is not None and code.guard is not None and code.guard(*self._arguments(inputs))[0]:
            code.kernel(self.values, self.memories, None)
            if code.on_done is not None:
                finals = code.on_done(*self._arguments(inputs))
                self.values.update(zip(code.done, finals, strict=True))
        return instruction

    def _arguments(self, inputs: Mapping[str, int]) -> list[Any]:
        values = [inputs.get(name, 0) for name in self.ila.inputs]
        for name, state in self.ila.states.items():
            values.append(self.memories[name] if isinstance(state.sort, MemSort) else self.values[name])  # type: ignore[arg-type]
        return values

    def _code(self, instruction: Instruction) -> _Compiled:
        if instruction.name not in self._compiled:
            self._compiled[instruction.name] = self._compile(instruction)
        return self._compiled[instruction.name]

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
            compile_terms(self._parameters, roots + stores),
            compile_terms(self._parameters, [instruction.kernel_guard]) if kernel else None,
            compile_kernel(kernel) if kernel else None,
            list(kernel.on_done) if kernel else [],
            compile_terms(self._parameters, kernel.on_done.values()) if kernel and kernel.on_done else None,
        )


def run_fragment(
    fragment: Fragment,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Memory],
    machine: Machine | None = None,
    observe: Callable[[Mapping[str, int], str], None] | None = None,
) -> Machine:
    """Runs a fragment at concrete sizes; host tensors in ``tensors`` are read and written in place.

    ``observe`` sees every command before it executes.  Raises ValueError on a missing size.
    """
    machine = machine or Machine(fragment.ila)
    missing = [p for p in fragment.parameters if p not in sizes]
    if missing:
        raise ValueError(f"Fragment {fragment.name} must be given {', '.join(missing)}")

    def issue(inputs: Mapping[str, int], note: str) -> None:
        if observe is not None:
            observe(inputs, note)
        machine.step(inputs)

    volatile = frozenset(fragment.ila.states)
    run = compile_kernel(fragment.program, volatile)
    # the machine's own dictionary: device outputs are read after the command that sets them
    machine.values.update(sizes)
    run(machine.values, {**machine.memories, **tensors}, issue)
    for name in sizes:
        machine.values.pop(name, None)
    return machine


def _show(inputs: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{k}={v:#x}" for k, v in inputs.items()) + "}"
