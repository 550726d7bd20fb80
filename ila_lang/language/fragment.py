"""Program fragments: sequences of a device's instructions, with sizes left open.

A fragment is a kernel whose statements are commands at the device's interface, issued from host loops whose
extents are the fragment's size parameters.  It reads and writes host tensors (memories on the host side) and may
read the device's outputs after a command.  At concrete sizes it is the flat list of commands a driver sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .expr import Expr
from .kernel import Command, Kernel, bound_names, walk
from .model import Ila
from .sorts import BOOL, BvSort, MemSort


@dataclass
class Fragment:
    """A program fragment for one ILA.

    ``parameters`` are the sizes (bit-vector variables), ``tensors`` the host memories, ``program`` the commands.
    ``idle`` gives the state variables whose value is known when the fragment starts (of a memory, all words have that
    value); all other state is arbitrary.

    The program's own names (sizes, tensors, counters and registers) hide outputs of the device of the same name.
    Raises ValueError or TypeError from :meth:`check` where the program uses anything else, or an input the ILA does not
    have, and where a name of the program stands for two things.
    """

    name: str
    ila: Ila
    parameters: dict[str, Expr]
    tensors: dict[str, Expr]
    program: Kernel
    doc: str = ""
    idle: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check()

    def tensor(self, name: str) -> Expr:
        """The memory that inputs and outputs call ``name``: a host tensor or, where there is none, one of the device's.

        Raises ValueError where there is neither.
        """
        memory = self.tensors.get(name, self.ila.states.get(name))
        if memory is None or not isinstance(memory.sort, MemSort):
            known = ", ".join([*self.tensors, *(n for n, s in self.ila.states.items() if isinstance(s.sort, MemSort))])
            raise ValueError(f"Tensor of fragment {self.name} must be one of {known}, not {name}")
        return memory

    @property
    def outputs(self) -> dict[str, Expr]:
        """The device's states that the program can read: those that no name of its own hides."""
        own = {*self.parameters, *self.tensors, *bound_names(self.program)}
        return {name: state for name, state in self.ila.states.items() if name not in own}

    def check(self) -> None:
        """Checks names, sorts and inputs of every command."""
        for what, variables in (("Size", self.parameters), ("Tensor", self.tensors)):
            for name, variable in variables.items():
                if isinstance(variable.sort, MemSort) != (what == "Tensor") or variable.sort == BOOL:
                    kind = "a memory" if what == "Tensor" else "a bit-vector"
                    raise TypeError(f"{what} {name} of fragment {self.name} must be {kind}, not {variable.sort}")
                if variable.op != "var" or variable.name != name:
                    raise ValueError(
                        f"{what} {name} of fragment {self.name} must be the variable of this name, not "
                        f"{variable.describe()}"
                    )
        own = [*self.parameters, *self.tensors, *bound_names(self.program)]
        for name in {*self.parameters, *self.tensors}:
            if own.count(name) > 1:
                raise ValueError(f"Name {name} in fragment {self.name} must stand for one size, tensor or register")
        for name, variable in self.program.external_variables().items():
            places = (self.parameters, self.tensors, self.outputs)
            if not any(place.get(name) is variable for place in places):
                raise ValueError(
                    f"Fragment {self.name} must use only its parameters, tensors and device outputs, not {name}"
                )
        self._check_idle()
        for name in self.program.on_done:
            raise ValueError(f"Program of fragment {self.name} must set no state at its end, not {name}; kernels do")
        for statement in walk(self.program.body):
            if isinstance(statement, Command):
                for name, value in statement.inputs:
                    declared = self.ila.inputs.get(name)
                    if declared is None:
                        known = ", ".join(self.ila.inputs)
                        raise TypeError(f"Input of {self.ila.name} must be one of {known}, not {name}")
                    if declared.sort != value.sort:
                        raise TypeError(
                            f"Input {name} of {self.ila.name} must have sort {declared.sort}, not {value.sort}"
                        )

    def _check_idle(self) -> None:
        for name, value in self.idle.items():
            state = self.ila.states.get(name)
            if state is None:
                raise ValueError(
                    f"Idle value of fragment {self.name} must be of a state of {self.ila.name} "
                    f"({', '.join(self.ila.states)}), not of {name}"
                )
            sort = state.sort
            width = sort.data_width if isinstance(sort, MemSort) else sort.width if isinstance(sort, BvSort) else 1
            if not 0 <= value < 1 << width:
                most = (1 << width) - 1
                raise ValueError(f"Idle value of {name} in fragment {self.name} must be from 0 to {most}, not {value}")
