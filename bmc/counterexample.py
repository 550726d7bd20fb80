"""Counterexamples: concrete inputs and initial state on which the two sides of a mapping differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ila_lang import MemSort
from ila_lang.mapping import SizeError, TensorMapping

from .runner import Outcome, Runner
from .unroll import Cell, owners


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A difference between both sides, with everything needed to see it again.

    ``initial`` holds input elements (cells of side "input") and initial state.  ``row``, ``column``, ``device`` and
    ``ir`` describe the first differing output element (values as codes), ``shown`` both values for people.
    ``error`` is the interpreter's message where one side refuses a command or an extent of its program; then there are
    no values.  ``shape``, and ``where`` in words, is the one that ``sizes`` belong to, if there is one.
    """

    mapping: str
    sizes: dict[str, int]
    shape: tuple[int, ...] | None
    initial: dict[Cell, int]
    row: int
    column: int
    device: int
    ir: int
    shown: tuple[str, str]
    differing: int
    elements: int
    error: str = ""
    where: str = ""

    @property
    def inputs(self) -> dict[str, dict[int, int]]:
        """The non-zero input elements by tensor and row-major index."""
        words: dict[str, dict[int, int]] = {}
        for cell, value in self.initial.items():
            if cell.side == "input" and cell.address is not None:
                words.setdefault(cell.owner, {})[cell.address] = value
        return words

    def summary(self) -> str:
        """One line for people."""
        where = self.where or "sizes"
        values = ", ".join(f"{n} = {v}" for n, v in self.sizes.items())
        if self.error:
            return f"{where} ({values}): {self.error}"
        return (
            f"{where} ({values}): output element ({self.row}, {self.column}) is {self.shown[0]} on the device and "
            f"{self.shown[1]} in the IR; {self.differing} of {self.elements} elements differ"
        )


def described(
    mapping: TensorMapping,
    sizes: dict[str, int],
    shape: tuple[int, ...] | None,
    initial: dict[Cell, int],
    outcome: Outcome,
) -> Counterexample:
    """What a run from ``initial`` that fails shows."""
    differing = [i for i, (a, b) in enumerate(zip(outcome.device, outcome.ir, strict=True)) if a != b]
    plain = Counterexample(
        mapping.name,
        sizes,
        shape,
        initial,
        0,
        0,
        0,
        0,
        ("", ""),
        len(differing),
        len(outcome.ir),
        outcome.error,
    )
    plain = placed(mapping, plain)
    if outcome.error or not differing:
        return plain
    row, column = divmod(differing[0], outcome.columns)
    device, ir = outcome.device[differing[0]], outcome.ir[differing[0]]
    shown = (mapping.show_element(device), mapping.show_element(ir))
    return replace(plain, row=row, column=column, device=device, ir=ir, shown=shown)


def replays(mapping: TensorMapping, counterexample: Counterexample) -> bool:
    """Whether a run from the counterexample's data alone shows the same difference, on new machines."""
    outcome = Runner(mapping).run_from(counterexample.sizes, counterexample.initial)
    if not outcome.failed:
        return False
    again = described(mapping, counterexample.sizes, counterexample.shape, counterexample.initial, outcome)
    return (again.row, again.column, again.device, again.ir, again.differing, again.error) == (
        counterexample.row,
        counterexample.column,
        counterexample.device,
        counterexample.ir,
        counterexample.differing,
        counterexample.error,
    )


def foreign(mapping: TensorMapping, cells: Iterable[Cell]) -> Cell | None:
    """The first of some cells that neither side has, such as a word of "host" where both have a tensor of the name."""
    own: set[tuple[Cell, bool]] = set()
    for side, fragment in (("device", mapping.device), ("ir", mapping.ir)):
        states, tensors = owners(mapping, side)
        own |= {(cell, isinstance(fragment.ila.states[name].sort, MemSort)) for name, cell in states.items()}
        own |= {(cell, True) for cell in tensors.values()}
    return next((c for c in cells if (replace(c, address=None), c.address is not None) not in own), None)


def placed(mapping: TensorMapping, counterexample: Counterexample) -> Counterexample:
    """The counterexample with its shape in words, and with none where its sizes are not those of the shape."""
    if counterexample.shape is not None and of_shape(mapping, counterexample.sizes, counterexample.shape):
        return replace(counterexample, where=mapping.shape_text(counterexample.shape))
    return replace(counterexample, shape=None, where="")


def of_shape(mapping: TensorMapping, sizes: Mapping[str, int], shape: tuple[int, ...]) -> bool:
    """Whether sizes are those of a shape, but for parameters that no shape decides."""
    try:
        expected = mapping.sizes_for(shape)
    except (SizeError, ArithmeticError):
        return False
    return all(sizes[name] == expected[name] for name in mapping.shape_parameters or expected)
