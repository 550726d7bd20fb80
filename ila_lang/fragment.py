"""Program fragments: sequences of a device's instructions, with sizes left open.

A fragment is a kernel whose statements are commands at the device's interface, issued from host loops whose
extents are the fragment's size parameters.  It reads and writes host tensors (memories on the host side) and may
read the device's outputs after a command.  At concrete sizes it is the flat list of commands a driver sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .expr import Expr
from .kernel import Command, Kernel, walk
from .model import Ila
from .sorts import MemSort

__all__ = ["Fragment"]


@dataclass
class Fragment:
    """A program fragment for one ILA.

    ``parameters`` are the sizes (bit-vector variables), ``tensors`` the host memories, ``program`` the commands.
    ``idle`` gives the state variables whose value is known when the fragment starts (of a memory, all words have that
    value); all other state is arbitrary.
    Raises ValueError from :meth:`check` where the program uses anything else, or an input the ILA does not have.
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

    def check(self) -> None:
        """Checks names, sorts and inputs of every command."""
        for name, tensor in self.tensors.items():
            if not isinstance(tensor.sort, MemSort):
                raise TypeError(f"Tensor {name} of fragment {self.name} must be a memory, not {tensor.sort}")
        known = {id(v) for v in (*self.parameters.values(), *self.tensors.values(), *self.ila.states.values())}
        for name, variable in self.program.external_variables().items():
            if id(variable) not in known:
                raise ValueError(
                    f"Fragment {self.name} must use only its parameters, tensors and device outputs, not {name}"
                )
        for statement in walk(self.program.body):
            if isinstance(statement, Command):
                for name, value in statement.inputs:
                    declared = self.ila.inputs.get(name)
                    if declared is None or declared.sort != value.sort:
                        want = declared.sort if declared is not None else "a declared input"
                        raise TypeError(f"Input {name} of {self.ila.name} must have sort {want}, not {value.sort}")
