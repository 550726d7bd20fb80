"""Mappings: the claim that a device program computes what an IR fragment computes.

A mapping is data: two fragments over the same size parameters, the size domain, which tensors correspond at both
ends, and lemmas that relate the two sides' data functions.  It says nothing about how it is proved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from random import Random
from typing import Any

from .conditions import condition_text, size_text
from .errors import InputError
from .extensions import ExtensionError, fault, place_of
from .interpreter.compile import compile_terms
from .language.expr import Expr, Function, private_var, variables_of
from .language.fragment import Fragment
from .language.sorts import BOOL, BvSort, MemSort, bv
from .text.portable import functions_in, functions_of

__all__ = ["Lemma", "Reduction", "SizeError", "TensorMapping"]


_ROW, _COLUMN = private_var("row!0", bv(32)), private_var("column!0", bv(32))
"""The default coordinates.  Variables are what they are by name and sort, so no size must be able to have these."""
_SHAPES = (
    *((1, 1), (1, 3), (2, 3), (3, 2), (4, 5), (5, 3), (6, 4), (8, 6)),
    *((2, 16), (3, 32), (4, 48), (6, 16), (18, 32), (34, 16)),
)
"""Shapes at which things are tried where a mapping names none."""

SetupCommands = Callable[[Mapping[str, int], Mapping[str, Mapping[int, int]]], list[Mapping[str, int]]]


class SizeError(InputError):
    """Sizes outside a mapping's domain."""


@dataclass(frozen=True)
class Lemma:
    """``left == right`` for all values of the variables that occur; proved bit by bit, used in structural proofs.

    ``left`` must be one application of a function to distinct variables and to literals, as in ``mac(acc, 0, w)``; so
    it says of zeros by which an operand is padded that they change nothing.
    """

    name: str
    left: Expr
    right: Expr
    doc: str = ""

    def __post_init__(self) -> None:
        if self.left.op != "apply" or any(a.op != "var" and not a.is_const for a in self.left.args):
            raise TypeError(
                f"Left side of lemma {self.name} must be a function applied to variables and literals, not "
                f"{self.left!r}"
            )
        variables = [a for a in self.left.args if a.op == "var"]
        if len(set(variables)) < len(variables):
            raise ValueError(f"Left side of lemma {self.name} must use each variable once, not {self.left!r}")
        if self.left.sort != self.right.sort:
            raise TypeError(
                f"Sides of lemma {self.name} must have one sort, not {self.left.sort} and {self.right.sort}"
            )

    @property
    def defines(self) -> bool:
        """Whether it says what its function is at all operands, not at some literals alone."""
        return all(a.op == "var" for a in self.left.args)


@dataclass(frozen=True)
class Reduction:
    """An operator whose chains are sums: ``operator(operator(a, b), c)`` adds up a, b and c.

    ``unit`` is the value (0 ... 2^width - 1) whose addition changes nothing, or None.  That the operator is commutative
    and associative and that ``unit`` is its unit is not taken from here: whoever reorders a sum proves it first.
    """

    operator: Function
    unit: int | None = None

    def __post_init__(self) -> None:
        sorts = [p.sort for p in self.operator.params]
        if len(sorts) != 2 or any(s != self.operator.result for s in sorts) or not isinstance(sorts[0], BvSort):
            signature = f"({', '.join(map(str, sorts))}) -> {self.operator.result}"
            raise TypeError(
                f"Operator {self.operator.name} of a reduction must add two bit-vectors of one width to a third one, "
                f"not {signature}"
            )
        if self.unit is not None and not 0 <= self.unit < 1 << sorts[0].width:
            raise ValueError(f"Unit of reduction {self.operator.name} must fit {sorts[0].width} bits, not {self.unit}")


@dataclass
class TensorMapping:
    """An IR fragment, a device fragment, and how their tensors and sizes correspond.

    ``parameters`` are the size variables (bit-vectors), ``domain`` their constraints with a text each, which is shown
    as a note beside the constraint where it says more (:attr:`conditions`); ``rows`` and ``columns`` the extents of the
    row-major output tensor (32 bits).  ``inputs`` and ``output`` pair tensors of the
    device's side with tensors of the IR (:meth:`Fragment.tensor`); a tensor of equal contents on the other side has one
    partner.  ``lemmas`` are about functions of the two sides, and ``abstract`` names functions of these or of lemmas;
    no two functions have one name.
    ``sizes_of`` gives parameter values for a shape and raises :class:`SizeError` where the shape is outside the domain.
    ``shape_names`` are the names of its extents, by default rows and columns of the *input* tensor.

    ``sample_shapes`` are small shapes at which things are tried, and ``shape_parameters`` the parameters that follow
    from the shape alone; the others may be varied.

    ``cell`` are coordinates of an output element with their extents (32 bits each), where row and column, the default,
    would hide how the device divides the work: the first one is the row, and ``cell_column`` gives the column in terms
    of the others; by default it is the number with these as its digits.  With ``row_coordinates`` more than 1 the row
    is the number with that many first coordinates as its digits.  With ``cell_beyond`` there are more coordinates than
    elements: where row or column lies beyond the output, they are of none.  With ``recurrent`` the first coordinate
    counts timesteps that depend on earlier ones.

    ``parameter_texts`` say in a few words what parameters are; they stand beside the size domain.

    ``sums`` are the operators by which both sides add up elements of tensors, for proofs up to the order of sums.

    ``program_file`` writes commands in the device's own file form; ``setup_commands`` gives the commands that put
    registers and memory words (by memory and address) in given contents after a reset.  Either may be missing.
    """

    name: str
    ir: Fragment
    device: Fragment
    parameters: Mapping[str, Expr]
    domain: tuple[tuple[str, Expr], ...]
    rows: Expr
    columns: Expr
    inputs: tuple[tuple[str, str], ...]
    output: tuple[str, str]
    lemmas: tuple[Lemma, ...]
    abstract: frozenset[str]
    sizes_of: Callable[..., dict[str, int]]
    statement: str
    doc: str = ""
    assumptions: tuple[str, ...] = ()
    show_element: Callable[[int], str] = hex
    program_file: Callable[[list[Mapping[str, int]]], str] | None = None
    setup_commands: SetupCommands | None = None
    shape_names: tuple[str, ...] = ("rows", "columns")
    sample_shapes: tuple[tuple[int, ...], ...] = ()
    shape_parameters: frozenset[str] = frozenset()
    cell: tuple[tuple[Expr, Expr], ...] = ()
    cell_column: Expr | None = None
    row_coordinates: int = 1
    cell_beyond: bool = False
    recurrent: bool = False
    sums: tuple[Reduction, ...] = ()
    parameter_texts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_fields()
        for fragment in (self.device, self.ir):
            for instruction in fragment.ila.instructions.values():
                instruction.check()
        self._check_sizes()
        self._check_tensors()
        self._check_cell()
        self._check_functions()
        unknown = [name for name in self.parameter_texts if name not in self.parameters]
        if unknown:
            raise ValueError(f"Texts of {self.name} must be about its parameters, not {', '.join(unknown)}")
        self._check = compile_terms(list(self.parameters.values()), [c for _, c in self.domain])
        self._extents = compile_terms(list(self.parameters.values()), [self.rows, self.columns])

    def _check_fields(self) -> None:
        if not isinstance(self.name, str) or re.match(r"\w", self.name) is None or set(self.name) & set("/\\\0\n"):
            raise ValueError(
                "The name of a mapping must begin with a letter, a digit or _, and be of one line without slashes, as "
                f"files are named by it; not {self.name!r:.60}"
            )
        kinds: tuple[tuple[type[tuple[Any, ...]] | type[frozenset[Any]], type, str], ...] = (
            (tuple, str, "assumptions shape_names output"),
            (tuple, Lemma, "lemmas"),
            (tuple, Reduction, "sums"),
            (tuple, tuple, "inputs sample_shapes cell"),
            (frozenset, str, "abstract shape_parameters"),
        )
        for of, kind, names in kinds:
            for name in names.split():
                value: Any = getattr(self, name)
                if not (isinstance(value, of) and all(isinstance(member, kind) for member in value)):
                    raise TypeError(
                        f"{name} of {self.name} must be a {of.__name__} of {kind.__name__} objects, also where there "
                        f"is one; not {value!r:.60}"
                    )
        pairs = [("output", self.output), *(("inputs", pair) for pair in self.inputs)]
        for name, pair in pairs:
            if len(pair) != 2 or not all(isinstance(tensor, str) for tensor in pair):
                raise TypeError(
                    f"{name} of {self.name} must pair the name of a tensor of the device's side with that of one of "
                    f"the IR's; not {pair!r:.60}"
                )
        for name in sorted(self.shape_parameters - self.parameters.keys()):
            raise ValueError(f"shape_parameters of {self.name} must be among its parameters; {name} is not")
        for shape in self.sample_shapes:
            if len(shape) != len(self.shape_names) or not all(isinstance(extent, Integral) for extent in shape):
                raise ValueError(
                    f"sample_shapes of {self.name} must have an integer for each of {', '.join(self.shape_names)}; "
                    f"not {shape!r:.60}; the names of extents are given by shape_names"
                )
        if len(set(self.shape_names)) < len(self.shape_names):
            raise ValueError(f"shape_names of {self.name} must differ; not {', '.join(self.shape_names)}")

    def _check_sizes(self) -> None:
        for entry in self.domain if isinstance(self.domain, tuple) else (self.domain,):
            text, condition = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
            if isinstance(text, str) and isinstance(condition, Expr) and condition.sort != BOOL:
                raise TypeError(
                    f"Condition '{text}' of the size domain of {self.name} must be Boolean; {condition!r:.60} is "
                    f"of sort {condition.sort}"
                )
            if not isinstance(text, str) or not isinstance(condition, Expr):
                shown = f"a {type(entry).__name__}: {entry!r:.60}"
                raise TypeError(
                    f"Size domain of {self.name} must be a tuple of pairs of a text and a condition, also where there "
                    f'is one: (("n <= 5", n <= 5),); not {shown}'
                )
        for name, size in self.parameters.items():
            if size.op != "var" or size.name != name:
                raise ValueError(f"Size {name} of {self.name} must be the variable of this name, not {size.describe()}")
        for fragment in (self.device, self.ir):
            for name, size in fragment.parameters.items():
                if self.parameters.get(name) is not size:
                    raise ValueError(
                        f"Size {name} of fragment {fragment.name} must be a size of mapping {self.name}, too"
                    )
        for what, extent in (("Rows", self.rows), ("Columns", self.columns)):
            if not isinstance(extent, Expr):
                raise TypeError(
                    f"{what} of {self.name} must be an expression of 32 bits, such as const(4, 32), not {extent!r:.60}"
                )
        for what, term in (*self.domain, ("rows", self.rows), ("columns", self.columns)):
            for size in variables_of(term):
                if self.parameters.get(size.name) is not size:
                    kind = f" of sort {size.sort}, another variable" if size.name in self.parameters else ""
                    raise ValueError(
                        f"Size domain of {self.name} must use only its parameters; '{what}' uses {size.name}{kind}"
                    )

    def _check_tensors(self) -> None:
        for fragment, names in zip((self.device, self.ir), zip(*self.inputs, strict=True), strict=False):
            for name in names:
                if name in fragment.idle and fragment.tensor(name) is fragment.ila.states[name]:
                    raise ValueError(
                        f"Inputs of {self.name} must be arbitrary; fragment {fragment.name} gives {name} an idle value"
                    )
        for what, extent in (("Rows", self.rows), ("Columns", self.columns)):
            if extent.sort != bv(32):
                raise TypeError(f"{what} of {self.name} must have 32 bits, not {extent.sort}")
        for what, pairs in (("Inputs", self.inputs), ("Output", (self.output,))):
            for names in zip(*pairs, strict=True):
                twice = next((name for name in names if names.count(name) > 1), None)
                if twice is not None:
                    raise ValueError(f"{what} of {self.name} must pair each tensor once; {twice} has two partners")
            for device_name, ir_name in pairs:
                sorts = [self.device.tensor(device_name).sort, self.ir.tensor(ir_name).sort]
                widths = [sort.data_width for sort in sorts if isinstance(sort, MemSort)]
                if widths[0] != widths[1]:
                    raise TypeError(
                        f"{what} of {self.name} must pair tensors with elements of one width; {device_name} has "
                        f"{widths[0]} bits, {ir_name} has {widths[1]}"
                    )

    def _check_cell(self) -> None:
        names = [coordinate.name for coordinate, _ in self.cell]
        for name in names:
            if names.count(name) > 1 or name in self.parameters:
                what = "a size" if name in self.parameters else "another coordinate"
                raise ValueError(f"Coordinate {name} of {self.name} must have a name of its own, not that of {what}")
        for coordinate, extent in self.cell:
            if coordinate.width != 32 or extent.width != 32:
                raise TypeError(
                    f"Coordinate {coordinate.name} of {self.name} and its extent must have 32 bits, "
                    f"not {coordinate.width} and {extent.width}"
                )
            stray = next((v.name for v in variables_of(extent) if v not in set(self.parameters.values())), None)
            if stray is not None:  # cells of which some rows have fewer would be no rectangle
                raise ValueError(
                    f"Extent of coordinate {coordinate.name} of {self.name} must be over its sizes alone, not {stray}"
                )
        terms = [extent for _, extent in self.cell] + ([self.cell_column] if self.cell_column is not None else [])
        known = {*self.parameters.values(), *(coordinate for coordinate, _ in self.cell)}
        stray = next((v.name for v in variables_of(*terms) if v not in known), None)
        if stray is not None:
            raise ValueError(f"Cell of {self.name} must use only its coordinates and sizes, not {stray}")
        count = len(self.cell) or 2
        if not 1 <= self.row_coordinates < count:
            raise ValueError(
                f"Cell of {self.name} must have coordinates for its row and beside them for its column, not "
                f"{self.row_coordinates} of {count} for its row"
            )

    def _check_functions(self) -> None:
        sides = dict.fromkeys([*functions_of(self.device), *functions_of(self.ir)])
        terms = [term for lemma in self.lemmas for term in (lemma.left, lemma.right)]
        named: dict[str, Function] = {}
        for function in (*sides, *functions_in(terms)):
            if named.setdefault(function.name, function) is not function:
                raise ValueError(
                    f"Functions of {self.name} must have names of their own, but two are called {function.name}; make "
                    "the function once and use it on both sides and in lemmas, or give one of the two another name"
                )
        for lemma in self.lemmas:
            if lemma.left.func not in sides:
                raise ValueError(
                    f"Lemma '{lemma.name}' of {self.name} must be about a function of the device or the IR; "
                    f"{lemma.left.func.name if lemma.left.func else ''} occurs on neither side"
                )
        for name in sorted(self.abstract, key=str):
            if name not in named:
                raise ValueError(
                    f"Abstract functions of {self.name} must be named as they occur on a side or in a lemma; "
                    f"{name} does not occur"
                )

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of the size domain: what they say themselves, and in parentheses what their texts add."""
        texts = []
        for text, condition in self.domain:
            shown = condition_text(condition)
            note = text.removeprefix(shown).removeprefix(" ")
            texts.append(f"{shown} ({note})" if note else shown)
        return tuple(texts)

    @property
    def size_domain(self) -> str:
        """The size domain in words, and what the sizes are where that is known."""
        domain = ", ".join(self.conditions)
        texts = ", ".join(f"{name}: {text}" for name, text in self.parameter_texts.items())
        return f"{domain} ({texts})" if texts else domain

    @property
    def compared(self) -> str:
        """What a proof compares: the elements of the output, given equal inputs."""
        device_name, ir_name = self.output
        rows = size_text(self.rows)
        extents = f"{rows} row{'' if rows == '1' else 's'} of {size_text(self.columns)}"
        inputs = "; given " + ", ".join(f"{a} = {b}" for a, b in self.inputs) if self.inputs else ""
        return f"{device_name} of {self.device.ila.name} = {ir_name} of {self.ir.ila.name}, {extents}{inputs}"

    def require(self, sizes: Mapping[str, int]) -> None:
        """Raises SizeError, naming the first violated constraint, if ``sizes`` lie outside the domain."""
        self._require(sizes, "given")

    def _require(self, sizes: Mapping[str, int], origin: str) -> None:
        if not set(self.parameters) <= set(sizes):
            names = ", ".join(self.parameters)
            raise SizeError(f"Sizes of mapping {self.name} must be {names}; {origin} {', '.join(sizes) or 'none'}")
        values = [sizes[n] for n in self.parameters]
        shown = f"{origin} {', '.join(f'{n} = {value}' for n, value in zip(self.parameters, values, strict=True))}"
        for name, variable in self.parameters.items():
            if not isinstance(sizes[name], Integral):
                raise SizeError(f"Size {name} of mapping {self.name} must be an integer; {shown}")
            if not 0 <= sizes[name] < 1 << variable.width:
                raise SizeError(f"Size {name} of mapping {self.name} must fit in {variable.width} bits; {shown}")
        holds = self._check(*values)
        if not all(holds):
            text = self.conditions[holds.index(False)]
            raise SizeError(f"Sizes of mapping {self.name} must satisfy: {text}; {shown}")
        rows, columns = self.output_extents(sizes)
        for fragment, name in zip((self.device, self.ir), self.output, strict=True):
            sort = fragment.tensor(name).sort
            if isinstance(sort, MemSort) and rows * columns > 1 << sort.addr_width:
                raise SizeError(
                    f"Output of mapping {self.name} must fit {name}, which has {1 << sort.addr_width} words; {shown}, "
                    f"where it has {rows * columns}"
                )

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether ``sizes`` lie inside the domain."""
        try:
            self.require(sizes)
        except SizeError:
            return False
        return True

    def output_extents(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Rows and columns of the output tensor at concrete sizes."""
        rows, columns = self._extents(*(sizes[n] for n in self.parameters))
        return int(rows), int(columns)

    def sizes_for(self, shape: tuple[int, ...]) -> dict[str, int]:
        """The parameters for a shape; SizeError where it has another number of extents or is outside the domain."""
        if len(shape) != len(self.shape_names):
            required = "x".join(name.upper() for name in self.shape_names)
            shown = "x".join(map(str, shape))
            raise SizeError(f"Shape of mapping {self.name} must be {required}, not {shown}; give one number for each")
        where = (
            f"sizes_of of mapping {self.name} must give {', '.join(self.parameters)} for {self.shape_text(shape)}, or "
            "raise SizeError"
        )
        try:
            sizes = self.sizes_of(*shape)
        except SizeError:
            raise
        except Exception as error:
            place = fault(error) or place_of(self.sizes_of)
            raise ExtensionError(
                f"{where}; it raises {type(error).__name__}: {error} ({place}); correct it there"
            ) from error
        if not isinstance(sizes, Mapping) or not set(self.parameters) <= set(sizes):
            raise ExtensionError(f"{where}; it gives {sizes!r:.60} ({place_of(self.sizes_of)}); correct it there")
        self._require(sizes, f"for {self.shape_text(shape)}, sizes_of gives")
        return sizes

    def shape_text(self, shape: tuple[int, ...]) -> str:
        """A shape in words."""
        if self.shape_names == ("rows", "columns"):
            return f"{'input' if len(self.inputs) == 1 else 'shape'} {shape[0]}x{shape[1]}"
        return ", ".join(f"{name} {extent}" for name, extent in zip(self.shape_names, shape, strict=True))

    def sample_sizes(self, random: Random) -> list[dict[str, int]]:
        """A few small sizes inside the domain, for trying things; other parameters than the shape are varied.

        Raises SizeError, saying what is the matter with the first shape, where the domain has none of the shapes.
        """
        if not self.sample_shapes and len(self.shape_names) != len(_SHAPES[0]):
            raise SizeError(
                f"mapping {self.name} must have sample_shapes, for its shapes are of {', '.join(self.shape_names)}; "
                f"give it some small ones, such as sample_shapes=({tuple(range(1, len(self.shape_names) + 1))},)"
            )
        samples: list[dict[str, int]] = []
        refused: list[SizeError] = []
        for shape in self.sample_shapes or _SHAPES:
            try:
                sizes = self.sizes_for(shape)
            except SizeError as error:
                refused.append(error)
                continue
            for name in self.parameters:
                other = sizes | {name: random.choice([sizes[name] + random.randrange(1, 40), random.randrange(1, 8)])}
                if random.random() < 0.5 and name not in self.shape_parameters and self.holds(other):
                    sizes = other
            samples.append(sizes)
        if not samples and refused:
            raise SizeError(f"no sample shape lies in the size domain: {refused[0]}")
        return samples

    @property
    def coordinates(self) -> tuple[tuple[Expr, Expr], ...]:
        """The coordinates of an arbitrary output element: ``cell``, by default its row and its column."""
        return self.cell or ((_ROW, self.rows), (_COLUMN, self.columns))

    @property
    def row_at(self) -> Expr:
        """The row of the output element at the coordinates."""
        return _number(self.coordinates[: self.row_coordinates])

    @property
    def column_at(self) -> Expr:
        """The column of the output element at the coordinates."""
        return _number(self.coordinates[self.row_coordinates :]) if self.cell_column is None else self.cell_column

    @property
    def cell_conditions(self) -> tuple[Expr, ...]:
        """What makes the coordinates those of an output element: each lies below its extent, and the element exists."""
        ranges = tuple(extent > coordinate for coordinate, extent in self.coordinates)
        inside = (self.row_at < self.rows, self.column_at < self.columns) if self.cell_beyond else ()
        return (*ranges, *inside)

    def output_index(self, row: Expr, column: Expr) -> Expr:
        """Row-major index of an output element (32 bits)."""
        return row * self.columns + column


def _number(digits: Sequence[tuple[Expr, Expr]]) -> Expr:
    number, _ = digits[0]
    for digit, radix in digits[1:]:
        number = number * radix + digit
    return number
