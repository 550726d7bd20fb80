"""Points of a mapping's size domain, at the numbers that its domain, programs and kernels speak of."""

from __future__ import annotations

from collections.abc import Mapping

from ila_lang import Expr, postorder
from ila_lang.language.kernel import terms, walk
from ila_lang.mapping import TensorMapping

from .runs import Points, corners


def points_of(mapping: TensorMapping) -> Points:
    """Sizes inside a mapping's domain at which the output has an element."""

    def inside(sizes: Mapping[str, int]) -> bool:
        return mapping.holds(sizes) and all(mapping.output_extents(sizes))

    literals = literals_of(mapping)
    along = {name: corners(literals, (1 << v.width) - 1) for name, v in mapping.parameters.items()}
    return Points(along, inside)


def literals_of(mapping: TensorMapping) -> set[int]:
    """The literals of the domain and the extents, of programs and kernels, and of what commands check and store."""
    spoken: list[Expr] = [c for _, c in mapping.domain]
    spoken += [mapping.rows, mapping.columns, *(extent for _, extent in mapping.cell)]
    for fragment in (mapping.device, mapping.ir):
        instructions = fragment.ila.instructions.values()
        kernels = [fragment.program, *(i.kernel for i in instructions if i.kernel is not None)]
        for kernel in kernels:
            spoken += [term for statement in walk(kernel.body) for term in terms(statement)]
            spoken += kernel.on_done.values()
        for instruction in instructions:
            spoken += [instruction.decode, instruction.kernel_guard, *instruction.updates.values()]
    return {node.value for node in postorder(spoken) if node.op == "const" and not isinstance(node.value, bool)}
