"""A function that is drawn: values with types, and operations as text, for releases before and since TOSA 1.0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw: TypeAlias = Callable[[st.SearchStrategy[T]], T]

SIZES = (2, 1, 3, None, 4)
"""Sizes that are drawn; None is dynamic."""
MOST_ARGUMENTS = 4
FLOATS = ("f32", "f32", "f32", "f16", "f64")
INTEGERS = ("i32", "i32", "i8", "i64", "i1")
NUMBERS = (
    "1.0", "0.0", "-0.0", "-1.0", "0.5", "3.0", "1.0e10", "-2.5",
    "INFINITY", "-INFINITY", "NAN", "LARGEST", "TINY",
)  # fmt: skip
"""Floats by words that have a pattern in every format."""
_PATTERNS = {
    "f16": {"INFINITY": "7C00", "-INFINITY": "FC00", "NAN": "7E00", "LARGEST": "7BFF", "TINY": "0001"},
    "f32": {"INFINITY": "7F800000", "-INFINITY": "FF800000", "NAN": "7FC00000", "LARGEST": "7F7FFFFF",
            "TINY": "00000001"},
    "f64": {"INFINITY": "7FF0000000000000", "-INFINITY": "FFF0000000000000", "NAN": "7FF8000000000000",
            "LARGEST": "7FEFFFFFFFFFFFFF", "TINY": "0000000000000001"},
}  # fmt: skip


@dataclass(frozen=True)
class Type:
    """A scalar's type (``shape`` is None), or a tensor's; a size that is None is dynamic."""

    element: str
    shape: tuple[int | None, ...] | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return self.element
        sizes = "".join("?x" if n is None else f"{n}x" for n in self.shape)
        return f"tensor<{sizes}{self.element}>"

    @property
    def is_tensor(self) -> bool:
        """Whether it has a shape."""
        return self.shape is not None

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """The shape; a scalar has none."""
        return self.shape or ()

    @property
    def is_float(self) -> bool:
        """Whether elements are floats."""
        return self.element.startswith("f")

    def of(self, element: str) -> Type:
        """The type with other elements."""
        return Type(element, self.shape)

    def sized(self, shape: Sequence[int | None]) -> Type:
        """The tensor type with another shape."""
        return Type(self.element, tuple(shape))


INDEX = Type("index")


@dataclass(frozen=True)
class Value:
    """A value by its name."""

    name: str
    type: Type


@dataclass(frozen=True)
class Line:
    """An operation as text, for releases since TOSA 1.0, and for those before."""

    new: str
    old: str


@dataclass(frozen=True)
class Function:
    """A function that was drawn, and the operators in it."""

    name: str
    arguments: tuple[Value, ...]
    lines: tuple[Line, ...]
    results: tuple[Value, ...]

    def text(self, *, new: bool) -> str:
        """The function in the generic form."""
        types = ", ".join(str(a.type) for a in self.arguments)
        results = ", ".join(str(r.type) for r in self.results)
        block = ", ".join(f"%{a.name}: {a.type}" for a in self.arguments)
        body = "".join(f"  {line.new if new else line.old}\n" for line in self.lines)
        returned = ", ".join(f"%{r.name}" for r in self.results)
        return (
            f'"func.func"() <{{function_type = ({types}) -> ({results}), sym_name = "{self.name}"}}> ({{\n'
            f'^bb0({block}):\n{body}  "func.return"({returned}) : ({results}) -> ()\n}}) : () -> ()\n'
        )


@dataclass(frozen=True)
class Program:
    """Functions that were drawn."""

    functions: tuple[Function, ...]

    def text(self, *, new: bool) -> str:
        """The program in the generic form, of releases since TOSA 1.0 or before."""
        return "".join(f.text(new=new) for f in self.functions)


@dataclass
class Draft:
    """A function while it is drawn."""

    draw: Draw[object]
    arguments: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    count: int = 0

    def pick(self, options: Sequence[T]) -> T:
        """One of some options; the first is the simplest."""
        return self.draw(st.sampled_from(list(options)))  # type: ignore[return-value]

    def whole(self, low: int, high: int) -> int:
        """A whole number; ``low`` where ``high`` is smaller, as of a dimension without elements."""
        return self.draw(st.integers(low, max(low, high)))  # type: ignore[return-value]

    # -- values --------------------------------------------------------------------------------------------

    def new(self, type_: Type) -> Value:
        """A name for a value."""
        self.count += 1
        return Value(f"v{self.count}", type_)

    def argument(self, type_: Type) -> Value:
        """A new argument."""
        value = self.new(type_)
        self.arguments.append(value)
        self.values.append(value)
        return value

    def some(self, suits: Callable[[Type], bool], otherwise: Callable[[], Type]) -> Value:
        """A value whose type suits: the newest that there is, another one, or a new argument or constant."""
        known = [v for v in reversed(self.values) if suits(v.type)]
        if known and self.whole(0, 3) < 3:
            return self.pick(known)
        return self.fresh(otherwise())

    def like(self, type_: Type) -> Value:
        """A value of a type."""
        return self.some(lambda t: t == type_, lambda: type_)

    def fresh(self, type_: Type) -> Value:
        """A new argument; a constant where there are many."""
        if len(self.arguments) < MOST_ARGUMENTS or None in type_.sizes:
            return self.argument(type_)
        return self.constant(type_)

    def tensor(self, rank: int | None = None, element: str | None = None) -> Value:
        """Some tensor, of a rank and with elements if they are named."""

        def suits(t: Type) -> bool:
            ranked = t.shape is not None and rank in (None, len(t.shape))
            return ranked and (t.element == element if element is not None else t.element in FLOATS + INTEGERS)

        return self.some(suits, lambda: self.tensor_type(rank, element))

    def tensor_type(self, rank: int | None = None, element: str | None = None) -> Type:
        """Some type of tensors."""
        count = self.pick((2, 1, 3, 0)) if rank is None else rank
        shape = tuple(self.pick(SIZES) for _ in range(count))
        return Type(element or self.pick((*FLOATS, *INTEGERS)), shape)

    # -- operations ----------------------------------------------------------------------------------------

    def add(self, name: str, operands: Sequence[Value], result: Type, properties: str = "", region: str = "") -> Value:
        """An operation that all releases write alike."""
        return self.add_both((name, operands, properties), (name, operands, properties), result, region)

    def add_both(
        self,
        new: tuple[str, Sequence[Value], str],
        old: tuple[str, Sequence[Value], str],
        result: Type,
        region: str = "",
    ) -> Value:
        """An operation as the newer and the older releases write it."""
        value = self.new(result)
        self.lines.append(Line(_line(value, *new, region), _line(value, *old, region)))
        self.values.append(value)
        return value

    def hidden(self, name: str, result: str, new: str, old: str | None = None) -> Value:
        """A constant of a type that only some operators take, such as a shape."""
        value = self.new(Type(result))
        texts = [f'%{value.name} = "{name}"() <{{{p}}}> : () -> {result}' for p in (new, new if old is None else old)]
        self.lines.append(Line(*texts))
        return value

    def constant(self, type_: Type) -> Value:
        """A constant, of a tensor of static sizes a splat."""
        number = self.number(type_.element)
        stated = f"dense<{number}> : {type_}" if type_.is_tensor else f"{number} : {type_}"
        if type_ == Type("i1"):
            stated = number
        return self.add("arith.constant", [], type_, f"value = {stated}")

    def number(self, element: str) -> str:
        """A number of a type, as text."""
        if element == "i1":
            return self.pick(("true", "false"))
        if not element.startswith("f"):
            return str(self.pick((0, 1, 2, -1, 3, 7, -128, 127)) if element != "index" else self.whole(0, 3))
        word = self.pick(NUMBERS)
        pattern = _PATTERNS[element].get(word)
        return word if pattern is None else f"0x{pattern}"

    def index(self, value: int) -> Value:
        """A constant of type index."""
        return self.add("arith.constant", [], INDEX, f"value = {value} : index")

    def sizes(self, of: Value, dimensions: Sequence[int] | None = None) -> list[Value]:
        """The dynamic sizes among some dimensions of a tensor, by default all, as values."""
        shape = of.type.sizes
        chosen = range(len(shape)) if dimensions is None else dimensions
        return [self.add("tensor.dim", [of, self.index(k)], INDEX) for k in chosen if shape[k] is None]

    def empty(self, type_: Type, of: Value, dimensions: Sequence[int] | None = None) -> Value:
        """A tensor without defined elements, with sizes of another one's dimensions."""
        value = self.add("tensor.empty", self.sizes(of, dimensions), type_)
        self.values.remove(value)  # what others would read is not defined
        return value


def _line(value: Value, name: str, operands: Sequence[Value], properties: str, region: str) -> str:
    stated = f" <{{{properties}}}>" if properties else ""
    inside = f" ({{\n{region}\n  }})" if region else ""
    types = ", ".join(str(o.type) for o in operands)
    names = ", ".join(f"%{o.name}" for o in operands)
    return f'%{value.name} = "{name}"({names}){stated}{inside} : ({types}) -> {value.type}'
