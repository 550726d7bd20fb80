"""Conversions between tensors of the graph and tensors of codes: host loops alone, proved for every size.

A conversion takes a box of a tensor x to a box of a tensor y, and leaves the rest of y as it is.  So one claim says all
that the host does before an accelerator's program, rounding to codes, cutting with halos, padding with zeros; and all
that it does after, reading codes and joining parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from itertools import zip_longest
from operator import and_, mul
from typing import NamedTuple

from ila_lang import BOOL, Expr, Fragment, Function, Ila, Kernel, bv, const, digest, ite, mem, var
from ila_lang.language.sorts import BvSort, MemSort
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.boxes import BOX_CODE, SIZES, box_ir, number, sizes_of_axes
from ir_semantics.layers.layer import bits, call

from .claim import MappingClaim
from .domain import between

__all__ = ["SOURCE", "TARGET", "ConversionClaim", "conversion_claim"]

SOURCE, TARGET = "host_x", "host_y"
"""The host tensors of a conversion: x and y."""
EXPONENT = "exponent"
"""The format of conversions that says which code stands for 1."""
MOST = 1 << 26
"""The largest extent of an axis, and the largest offset: sums of a few of these fit 32 bits."""
ASSUMPTION = "x and y are tensors of the host that do not overlap, with any contents before the loops"
"""Of every conversion."""
_TEXTS = {
    "X": "extent of x",
    "first": "first element of x",
    "before": "zeros before x",
    "count": "extent of the box",
    "place": "place of the box in y",
    "Y": "extent of y",
}


class Box(NamedTuple):
    """A box of a tensor: the first index of each axis, and the one after the last."""

    first: tuple[int, ...]
    end: tuple[int, ...]

    def overlaps(self, other: Box) -> bool:
        """Whether they have an element in common."""
        pairs = zip(self.first, self.end, other.first, other.end, strict=True)
        return all(first < others_end and others < end for first, end, others, others_end in pairs)


@dataclass(frozen=True, eq=False)
class ConversionClaim(MappingClaim):
    """A conversion of :func:`conversion_mapping`, for tensors of so many axes.

    ``formats`` are the names of the sizes that say in which format the elements of ``codes`` are: x or y.
    """

    axes: int = 2
    formats: tuple[str, ...] = ()
    codes: str = TARGET
    function: Function | None = None

    @cached_property
    def problem(self) -> str:
        """Why its mapping is no conversion of its kind; empty where it is one.

        The IR side must be that of ``function``, and what is compared all of y: then a proof of it is one of what
        :meth:`moved` and :meth:`box` say.
        """
        if self.function is None:
            return "it names no function"
        mapping, whole = self.mapping, self._whole()
        if digest(mapping.ir) != digest(self._fragment(self.function)):
            return "its IR side is another"
        if mapping.inputs != self._inputs or mapping.output != _OUTPUT:
            return "its mapping compares other tensors"
        compared = [mapping.rows, *(extent for _, extent in mapping.cell)]
        plain = mapping.cell_column is None and mapping.row_coordinates == 1 and not mapping.cell_beyond
        if not plain or any(a is not b for a, b in zip_longest(compared, whole[:1] + whole)):
            return "its mapping does not compare all of y"
        return ""

    def _fragment(self, function: Function) -> Fragment:
        """The IR side of a conversion of this kind."""
        return _ir(self.name, function, self.formats, self.axes)

    def _whole(self) -> list[Expr]:
        """The extents of y."""
        sizes = _variables(sizes_of_axes(self.axes))
        return [sizes[f"Y{axis}"] for axis in range(1, self.axes + 1)]

    @property
    def _inputs(self) -> tuple[tuple[str, str], ...]:
        return _INPUTS

    def of(self, kind: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """One of the sizes of every axis (:data:`~ir_semantics.layers.boxes.SIZES`)."""
        return tuple(sizes[f"{kind}{axis}"] for axis in range(1, self.axes + 1))

    def bits(self, tensor: str) -> int:
        """The bits of an element of x or y."""
        sort = self.mapping.device.tensors[tensor].sort
        assert isinstance(sort, MemSort)
        return sort.data_width

    def moved(self, sizes: Mapping[str, int]) -> tuple[Box, tuple[int, ...]]:
        """The box of x that is converted, and its place in y; what is written beside it is 0."""
        axes = list(zip(*(self.of(kind, sizes) for kind in ("X", "first", "before", "count", "place")), strict=True))
        read = [(max(f - z, 0), min(f - z + n, x)) for x, f, z, n, _ in axes]
        box = Box(tuple(first for first, _ in read), tuple(max(span) for span in read))
        return box, tuple(p + max(z - f, 0) for _, f, z, _, p in axes)

    def box(self, sizes: Mapping[str, int]) -> Box:
        """What is written."""
        place, count = self.of("place", sizes), self.of("count", sizes)
        return Box(place, tuple(p + n for p, n in zip(place, count, strict=True)))


def axis_sizes(axis: int, *, x: int, first: int, count: int, place: int, y: int) -> dict[str, int]:
    """The sizes of an axis, without zeros before x."""
    values = {"X": x, "first": first, "before": 0, "count": count, "place": place, "Y": y}
    return {f"{name}{axis}": value for name, value in values.items()}


@cache
def host() -> Ila:
    """A device that does nothing: what stands in the place of an accelerator where the host works alone."""
    ila = Ila("host", "the host alone: no command changes anything")
    idle = ila.input("idle", BOOL)
    ila.set_valid(idle)
    ila.instruction("wait").set_decode(idle)
    return ila


def conversion_claim(
    name: str, summary: str, function: Function, formats: Mapping[str, range], *, codes: str, axes: int = 2
) -> ConversionClaim:
    """The conversion by ``function``, whose first parameter is an element of x.

    The others are the format of ``codes``, by name and in order, and sizes of the mapping, in these ranges.  Raises
    TypeError for what is no such function or range, and ValueError where they do not fit, or ``codes`` is neither x
    nor y.
    """
    _require_function(name, function)
    if codes not in (SOURCE, TARGET):
        raise ValueError(f"conversion {name}: codes must be {SOURCE!r} or {TARGET!r}, not {codes!r}")
    if type(axes) is not int or axes not in (2, 3):
        raise ValueError(f"conversion {name}: axes must be 2 or 3, not {axes!r}; a row is a matrix of one")
    _require_formats(name, function, formats, sizes_of_axes(axes))
    build = partial(conversion_mapping, name, function, formats, axes)
    return ConversionClaim(name, summary, build, axes=axes, formats=tuple(formats), codes=codes, function=function)


def rounding(target: str, codes: str, function: Function, exponents: range) -> ConversionClaim:
    """The claim that the host rounds float32 numbers to a target's codes, by a function of an exponent."""
    summary = f"a box of a float32 tensor as {codes}, cut out and padded with zeros, by the host"
    return conversion_claim(f"{target}_round", summary, function, {EXPONENT: exponents}, codes=TARGET)


def reading(target: str, codes: str, function: Function, exponents: range) -> ConversionClaim:
    """The claim that the host reads a target's codes as float32 numbers, by a function of an exponent."""
    summary = f"{codes} as a box of a float32 tensor, the rest of which stays, by the host"
    return conversion_claim(f"{target}_read", summary, function, {EXPONENT: exponents}, codes=SOURCE)


def _require_function(name: str, function: Function) -> None:
    if not isinstance(function, Function):
        raise TypeError(
            f"conversion {name}: its function must be a Function, such as @primitive makes, not {function!r:.60}"
        )
    sorts = [*(p.sort for p in function.params), function.result]
    if len(sorts) < 2 or not all(isinstance(sort, BvSort) for sort in sorts):
        raise TypeError(
            f"conversion {name}: {function.name} must take an element, and give one, of bit-vectors, not "
            f"({', '.join(map(str, sorts[:-1]))}) to {sorts[-1]}"
        )


def _require_formats(name: str, function: Function, formats: Mapping[str, range], sizes: Sequence[str]) -> None:
    if not isinstance(formats, Mapping):
        raise TypeError(f"conversion {name}: formats must be a mapping from names to ranges, not {formats!r:.60}")
    own = [p.name.removeprefix(f"{function.name}.") for p in function.params[1:]]
    if list(formats) != own:
        raise ValueError(
            f"conversion {name}: formats must be the parameters of {function.name} after the first, in order, "
            f"{own}, not {list(formats)}"
        )
    for parameter, (format_name, values) in zip(function.params[1:], formats.items(), strict=True):
        if format_name in sizes:
            raise ValueError(
                f"conversion {name}: a format must not be called {format_name}, which is a size of boxes; "
                f"rename the parameter of {function.name}"
            )
        if not isinstance(values, range):
            raise TypeError(f"conversion {name}: format {format_name} must be given a range, not {values!r:.60}")
        width = bits(parameter.sort)
        most = 1 << min(width, 32)
        if not values or values.step != 1 or values[0] < 0 or values[-1] >= most:
            raise ValueError(
                f"conversion {name}: format {format_name}, of {width} bits, must be given a range of numbers from 0 "
                f"to {most - 1}, in steps of 1 and not empty, not {values}"
            )


_INPUTS, _OUTPUT = ((SOURCE, "tensor_in"), (TARGET, "tensor_before")), (TARGET, "tensor_out")


def _variables(names: Iterable[str]) -> dict[str, Expr]:
    return {n: var(n, bv(32)) for n in names}


def _fields(function: Function, formats: Iterable[str]) -> dict[str, Expr]:
    """What the function gets of the sizes that are formats, in its widths."""
    sizes = _variables(formats).items()
    return {n: v[bits(p.sort) - 1 : 0] for (n, v), p in zip(sizes, function.params[1:], strict=True)}


def _ir(name: str, function: Function, formats: Sequence[str], axes: int) -> Fragment:
    sizes = _variables(sizes_of_axes(axes))
    ir, fields = box_ir(function, tuple(formats), axes), _fields(function, formats)
    return call(f"ir_{name}", "convert a box", BOX_CODE, ir, sizes | _variables(formats), sizes | fields)


def conversion_mapping(name: str, function: Function, formats: Mapping[str, range], axes: int) -> TensorMapping:
    """The mapping of that name: every element of a box is ``function`` of one of x, or 0 where x has none."""
    sizes = _variables(sizes_of_axes(axes))
    parameters = sizes | _variables(formats)
    whole = [sizes[f"Y{axis}"] for axis in range(1, axes + 1)]
    return TensorMapping(
        name=name,
        ir=_ir(name, function, tuple(formats), axes),
        device=_device(name, function, parameters, list(_fields(function, formats).values()), axes),
        parameters=parameters,
        parameter_texts={
            **{f"{n}{axis}": f"{text}, axis {axis}" for n, text in _TEXTS.items() for axis in range(1, axes + 1)},
            **{n: f"{n} of the codes' format" for n in formats},
        },
        domain=_domain(axes, parameters, formats),
        rows=whole[0],
        columns=reduce(mul, whole[1:]),
        cell=tuple((var(f"cell_{axis + 1}", bv(32)), extent) for axis, extent in enumerate(whole)),
        inputs=_INPUTS,
        output=_OUTPUT,
        lemmas=(),
        abstract=frozenset({function.name}),
        sizes_of=lambda *shape: {**dict(zip(sizes, shape, strict=True)), **{n: v[0] for n, v in formats.items()}},
        statement=f"the host's loops write {function.name} of elements of x, and 0 beyond x, to a box of y, and "
        "nothing else",
        doc="Loops over the box, on the host alone",
        assumptions=(ASSUMPTION,),
        shape_names=tuple(sizes),
        sample_shapes=tuple(tuple(n for axis in range(axes) for n in sample[axis]) for sample in _SAMPLES),
        shape_parameters=frozenset(sizes),
    )


_SAMPLES = (
    ((3, 1, 0, 3, 1, 5), (4, 1, 0, 3, 2, 6), (2, 0, 0, 2, 1, 4)),
    ((2, 0, 1, 1, 0, 1), (2, 0, 1, 1, 0, 1), (2, 0, 1, 1, 0, 1)),
    ((5, 2, 1, 4, 0, 4), (3, 0, 2, 4, 0, 4), (3, 1, 0, 2, 0, 2)),
)
"""For each axis, of which there are at most three, the sizes in the order of SIZES."""


def _domain(axes: int, parameters: Mapping[str, Expr], formats: Mapping[str, range]) -> tuple[tuple[str, Expr], ...]:
    conditions: list[tuple[str, Expr]] = []
    for name, size in parameters.items():
        most, least = MOST, 0 if name.startswith(("first", "before", "place")) else 1
        if name in formats:
            least, most = formats[name][0], formats[name][-1]
        conditions.append(between(size, least, most))
    for axis in range(1, axes + 1):
        place, count, whole = (parameters[f"{n}{axis}"] for n in ("place", "count", "Y"))
        conditions.append((f"place{axis} + count{axis} <= Y{axis}", place + count <= whole))
    for tensor in "XY":
        names = [f"{tensor}{axis}" for axis in range(1, axes + 1)]
        extents = [parameters[n].zext(27 * axes) for n in names]
        conditions.append((f"{'*'.join(names)} < 2^32", reduce(mul, extents) < 1 << 32))
    return tuple(conditions)


def _device(name: str, function: Function, parameters: dict[str, Expr], formats: Sequence[Expr], axes: int) -> Fragment:
    """For each element of the box: load one of x, if there is one, convert it, and store it."""
    program = Kernel(name)
    element = function.params[0].sort
    x, y = var(SOURCE, mem(32, bits(element))), var(TARGET, mem(32, bits(function.result)))
    extents, firsts, zeros, counts, places, whole = (
        [parameters[f"{n}{axis}"] for axis in range(1, axes + 1)] for n in SIZES
    )
    with ExitStack() as nest:
        at = [nest.enter_context(program.loop(f"box{axis + 1}", counts[axis])) for axis in range(axes)]
        offsets = [f + i for f, i in zip(firsts, at, strict=True)]
        inside = [(z <= o) & (o < e + z) for o, z, e in zip(offsets, zeros, extents, strict=True)]
        source = number([o - z for o, z in zip(offsets, zeros, strict=True)], extents)
        code = ite(reduce(and_, inside), function(x.load(source), *formats), const(0, bits(function.result)))
        program.store(y, number([p + i for p, i in zip(places, at, strict=True)], whole), code)
    return Fragment(name, host(), parameters, {SOURCE: x, TARGET: y}, program)
