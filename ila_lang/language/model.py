"""Instruction-level abstractions: inputs, state, valid condition, instructions.

An :class:`Ila` describes a device at its software-visible interface.  Each command at the interface is
one instruction: a decode condition over inputs and state, and next-state expressions.  State that an
instruction does not mention is unchanged.  An instruction may start a :class:`~ila_lang.language.kernel.Kernel`,
the structured body of a multi-step operation; its flat form is a child-ILA (:mod:`ila_lang.interpreter.flatten`).

Source of the concept: Huang et al., "Instruction-Level Abstraction (ILA)", TODAES 2018, and ILAng.
"""

from __future__ import annotations

from collections.abc import Mapping

from .build import coerce, true
from .expr import Expr, Operand, var, variables_of
from .kernel import Command, Kernel, walk
from .sorts import BOOL, MemSort, Sort, bv, mem


class Instruction:
    """One instruction of an ILA; build it with :meth:`Ila.instruction`.

    ``reserved``, where not empty, says why the device's answer to such a command is not described: the
    command is decoded, so that decodes are complete, but the simulator refuses it.
    """

    def __init__(self, ila: Ila, name: str, doc: str) -> None:
        self.ila = ila
        self.name = name
        self.doc = doc
        self.reserved = ""
        self.decode: Expr = true
        self.updates: dict[str, Expr] = {}
        self.kernel: Kernel | None = None
        self.kernel_guard: Expr = true

    def set_decode(self, condition: Expr) -> Instruction:
        """Sets the condition under which this instruction executes; a Boolean over inputs and state."""
        self.ila._check_term(f"Decode of {self.name}", condition, BOOL)
        self.decode = condition
        return self

    def update(self, state: Expr, value: Operand) -> Instruction:
        """Sets the next value of ``state``.

        Raises ValueError if the state is unknown or already has an update in this instruction.
        """
        name = state.name
        if self.ila.states.get(name) is not state:
            raise ValueError(f"State {name} must be declared in {self.ila.name} before {self.name} updates it")
        if name in self.updates:
            raise ValueError(f"State {name} must be updated at most once in {self.name}, not twice")
        term = coerce(value, state.sort, f"update of {name}")
        self.ila._check_term(f"Update of {name} in {self.name}", term, state.sort)
        self.updates[name] = term
        return self

    def start(self, kernel: Kernel, when: Expr = true) -> Instruction:
        """Makes this instruction run ``kernel`` to completion after its own updates, if ``when`` holds then."""
        if self.kernel is not None:
            raise ValueError(f"Instruction {self.name} must start at most one kernel, not two")
        self.ila._check_term(f"Start condition of {self.name}", when, BOOL)
        self._check_kernel(kernel)
        self.kernel, self.kernel_guard = kernel, when
        return self

    def check(self) -> None:
        """Raises ValueError or TypeError where the kernel, which may have grown since, is not one of this ILA."""
        if self.kernel is not None:
            self._check_kernel(self.kernel)

    def _check_kernel(self, kernel: Kernel) -> None:
        if any(isinstance(s, Command) for s in walk(kernel.body)):
            raise ValueError(f"Kernel {kernel.name} must issue no commands; put them in a program fragment")
        for name, variable in kernel.external_variables().items():
            if self.ila.states.get(name) is not variable:
                raise ValueError(f"Kernel {kernel.name} must use only states of {self.ila.name}, not {name}")
        for name, term in kernel.on_done.items():
            state = self.ila.states.get(name)
            if state is None or state.sort != term.sort:
                want = f"sort {state.sort}" if state is not None else "a declared state"
                raise TypeError(f"State {name} at the end of {kernel.name} must have {want}, not {term.sort}")
            if isinstance(term.sort, MemSort):
                raise TypeError(f"State {name} at the end of {kernel.name} must be no memory; use store in the kernel")
            self.ila._check_term(f"End value of {name} in {kernel.name}", term, term.sort)


class Ila:
    """An instruction-level abstraction.

    >>> ila = Ila("counter")
    >>> go, n = ila.input("go", BOOL), ila.state("n", bv(8), init=0)
    >>> _ = ila.instruction("tick").set_decode(go).update(n, n + 1)
    >>> ila.instructions["tick"].updates["n"]
    n + 0x1
    """

    def __init__(self, name: str, doc: str = "") -> None:
        var(name, BOOL)
        self.name = name
        self.doc = doc
        self.inputs: dict[str, Expr] = {}
        self.states: dict[str, Expr] = {}
        self.inits: dict[str, int] = {}
        self.state_docs: dict[str, str] = {}
        self.valid: Expr = true
        self.instructions: dict[str, Instruction] = {}

    def input(self, name: str, sort: Sort | int) -> Expr:
        """Declares an input: a sort, or a number of bits.  Memories cannot be inputs."""
        sort = bv(sort) if isinstance(sort, int) else sort
        if isinstance(sort, MemSort):
            raise TypeError(f"Input {name} of {self.name} must not be a memory")
        self._check_new(name)
        self.inputs[name] = var(name, sort)
        return self.inputs[name]

    def state(self, name: str, sort: Sort | int, init: int | None = None, doc: str = "") -> Expr:
        """Declares a state variable with an optional reset value (every word of a memory holds it)."""
        sort = bv(sort) if isinstance(sort, int) else sort
        self._check_new(name)
        self.states[name] = var(name, sort)
        self.state_docs[name] = doc
        if init is not None:
            word = bv(sort.data_width) if isinstance(sort, MemSort) else sort
            self.inits[name] = coerce(bool(init) if sort == BOOL else init, word, f"initial {name}").value
        return self.states[name]

    def memory(self, name: str, addr_width: int, data_width: int, init: int | None = None, doc: str = "") -> Expr:
        """Declares a memory state with ``2**addr_width`` words of ``data_width`` bits."""
        return self.state(name, mem(addr_width, data_width), init, doc)

    def set_valid(self, condition: Expr) -> None:
        """Sets the condition under which a command at the interface is one of this ILA's."""
        self._check_term(f"Valid condition of {self.name}", condition, BOOL)
        self.valid = condition

    def instruction(self, name: str, doc: str = "") -> Instruction:
        """Declares an instruction; give it a decode and updates."""
        if name in self.instructions:
            raise ValueError(f"Instruction {name} must be declared once in {self.name}, not twice")
        self.instructions[name] = Instruction(self, name, doc)
        return self.instructions[name]

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The kernels that instructions start, by name."""
        return {i.kernel.name: i.kernel for i in self.instructions.values() if i.kernel is not None}

    def _check_new(self, name: str) -> None:
        var(name, BOOL)
        if name in self.inputs or name in self.states:
            raise ValueError(f"Name {name} must be declared once in {self.name}, not twice")

    def _check_term(self, what: str, term: object, sort: Sort) -> None:
        if not isinstance(term, Expr) or term.sort != sort:
            actual = str(term.sort) if isinstance(term, Expr) else repr(term)
            raise TypeError(f"{what} must have sort {sort}, not {actual}")
        for variable in variables_of(term):
            name = variable.name
            if self.inputs.get(name) is not variable and self.states.get(name) is not variable:
                raise ValueError(f"{what} must use only inputs and states of {self.name}, not {name}")
