"""Names that stand for two things at once in a mapping, of which no proof may tell the wrong one.

Variables are their names and sorts: a loop counter, a local register, a size and a register of the model that agree in
both are one term.  Interpreters keep some of them apart by where they stand, proofs substitute terms.  So a mapping in
which such a term means two things is refused before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from ila_lang import For, Fragment, Kernel, Let, Load, walk
from ila_lang.mapping import TensorMapping

__all__ = ["ambiguous_name"]


def ambiguous_name(mapping: TensorMapping) -> str | None:
    """What one name stands for that must have two, in words; None where there is no such name.

    Sizes must not be states of a model; counters and local registers, of programs and of kernels, must be neither.
    """
    for fragment in (mapping.device, mapping.ir):
        states = fragment.ila.states
        for name, size in mapping.parameters.items():
            if states.get(size.name) is size:
                return f"the size {name} is a state of {fragment.ila.name}, too; it must have a name of its own"
        for kernel in _kernels(fragment):
            for name in _bound(kernel):
                if name in mapping.parameters or name in states:
                    what = "size" if name in mapping.parameters else f"state of {fragment.ila.name}"
                    return f"{name} in {kernel.name} is a {what}, too; it must have a name of its own"
    return None


def _kernels(fragment: Fragment) -> Iterator[Kernel]:
    yield fragment.program
    yield from (i.kernel for i in fragment.ila.instructions.values() if i.kernel is not None)


def _bound(kernel: Kernel) -> Iterator[str]:
    """The names of counters and local registers."""
    for statement in walk(kernel.body):
        match statement:
            case For(counter=variable) | Let(target=variable) | Load(target=variable):
                yield variable.name
            case _:
                pass
