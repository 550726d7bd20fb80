"""Types and attributes, read from text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from .affine import AffineMap
from .constants import BIT, SIGNS, Literal, bits_of, elements, sparse
from .floats import WIDTHS
from .ir import (
    ArrayAttribute,
    Attribute,
    ComplexType,
    DenseArray,
    DenseElements,
    DenseResource,
    DenseStrings,
    DictionaryAttribute,
    FloatAttribute,
    FloatType,
    FunctionType,
    IndexType,
    IntegerAttribute,
    IntegerType,
    MemRefType,
    NoneType,
    OpaqueAttribute,
    OpaqueType,
    SparseElements,
    StridedLayout,
    StringAttribute,
    SymbolReference,
    TensorType,
    TupleType,
    Type,
    TypeAttribute,
    UnitAttribute,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
    as_integer,
)
from .literal_reader import ELEMENT, LiteralReader
from .scanner import BARE_NAME, DEEPEST, token, unescaped

WIDEST_INTEGER = (1 << 24) - 1
"""MLIR's own limit."""


_PLAIN = token(r"\w++(?:<[\w?]*+>)?")
_EXTENDED = re.compile(r"[!#][A-Za-z_][\w$]*+(?:\.[\w$.-]*+)?", re.ASCII)
_LOCATION = re.compile(r"loc(?=\()|distinct\[[0-9]++\](?=<)", re.ASCII)
_SYMBOL = token(r'@(?:[A-Za-z_$.-][\w$.-]*+|"(?:[^"\\\n]|\\.)*+")')
_NUMBER = token(r"-?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+(?:[eE][-+]?[0-9]++)?)?)")
_SIZE = token(r"(?:[0-9]++|\?|\[[ \t]*[0-9]++[ \t]*\])\s*x")
_INTEGER_TYPE = re.compile(r"([su]?)i(0|[1-9][0-9]*)\Z", re.ASCII)
_SIGNEDNESS = {sign: signedness for signedness, sign in SIGNS.items()}
_SIMPLE: dict[str, Type] = {"index": IndexType(), "none": NoneType(), **{name: FloatType(name) for name in WIDTHS}}
_I64, _F64 = IntegerType(64), FloatType("f64")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Alias:
    """What a name stands for, and how large and deep that is when it is written out."""

    value: Type | Attribute
    parts: int
    depth: int


class ValueReader(LiteralReader):
    """A scanner that passes types and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.aliases: dict[str, Alias] = {}
        self.plain: dict[str, Type] = {}

    def alias(self, read: Callable[[], Type | Attribute]) -> Alias:
        """Passes the meaning of a name."""
        self.parts = self.reached = 0
        return Alias(read(), self.parts, self.reached)

    def _meaning(self, name: str, at: int) -> Type | Attribute | None:
        """What an alias stands for; None for other names that may stand for themselves."""
        alias = self.aliases.get(name)
        if alias is None:
            if "." not in name and "<" not in name:
                raise self.error(f"the alias {name} must be defined above", at)
            return None
        self.count(alias.parts)
        self.reached = max(self.reached, self.depth - 1 + alias.depth)
        if self.reached > DEEPEST:
            raise self.error(
                f"types and attributes must not be nested more than {DEEPEST} deep, with aliases written out"
            )
        return alias.value

    # types

    def type(self) -> Type:
        """Passes a type."""
        if (plain := _PLAIN.match(self.text, self.at)) and plain[1] in self.plain:
            self.at = plain.end()
            return self.plain[plain[1]]
        self.enter()
        at = self.at
        name = self.match(BARE_NAME)
        if name is None:
            result = self._dialect_type() if self.sees("!") else self._function_type()
        elif name in _SIMPLE:
            result = _SIMPLE[name]
        elif compound := _COMPOUND.get(name):
            self.expect("<")
            result = compound(self)
            self.expect(">")
        else:
            result = self._integer_type(name, at)
        self.depth -= 1
        if plain and plain.end() == self.at:
            self.plain[plain[1]] = result
        return result

    def _integer_type(self, name: str, at: int) -> IntegerType:
        match = _INTEGER_TYPE.match(name)
        if match is None:
            raise self.error(f"here must be a type, not {name!r}", at)
        if len(match[2]) > 8 or int(match[2]) > WIDEST_INTEGER:
            raise self.error(f"an integer type must have at most {WIDEST_INTEGER} bits, not {match[2][:20]}", at)
        return IntegerType(int(match[2]), _SIGNEDNESS[match[1]])

    def _dialect_type(self) -> Type:
        at = self.at
        text = self._extended("a type")
        meaning = self._meaning(text, at)
        return OpaqueType(text[1:]) if meaning is None else cast(Type, meaning)

    def _extended(self, kind: str) -> str:
        """``!name`` or ``#name``, with all that stands between ``<`` and ``>`` directly behind it."""
        match = _EXTENDED.match(self.text, self.at)
        if match is None:
            raise self.missing(kind)
        at, self.at = self.at, match.end()
        if self.sees("<"):
            self.balanced()
        text = self.text[at : self.at]
        self.skip()
        return text

    def _function_type(self) -> FunctionType:
        inputs = self.types()
        self.expect("->")
        return FunctionType(inputs, self.types() if self.sees("(") else (self.type(),))

    def types(self) -> tuple[Type, ...]:
        """Passes types in parentheses."""
        if not self.take("("):
            raise self.missing("a type")
        return self._closed(self.type, ")")

    def _closed(self, read: Callable[[], Item], closing: str) -> tuple[Item, ...]:
        """Passes items between commas, and what closes their list."""
        if self.take(closing):
            return ()
        items = self.listed(read)
        self.expect(closing)
        return items

    def listed(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """Passes at least one item, and more between commas."""
        items = [read()]
        while self.take(","):
            items.append(read())
        return tuple(items)

    def vector_type(self) -> Type:
        """Passes what stands between ``vector<`` and ``>``."""
        sizes = self._sizes()
        shape = [size for size, _ in sizes if size is not None]
        if len(shape) < len(sizes):
            raise self.error("a vector must have static sizes")
        return VectorType(tuple(shape), self.type(), tuple(scalable for _, scalable in sizes))

    def _sizes(self) -> list[tuple[int | None, bool]]:
        sizes: list[tuple[int | None, bool]] = []
        while True:
            at = self.at
            text = self.match(_SIZE)
            if text is None:
                return sizes
            digits = text[:-1].strip(" \t\r\n[]")
            if len(digits) > 19 or (digits != "?" and int(digits) >= 1 << 63):
                raise self.error(f"a size must be less than 2**63, not {digits[:40]}", at)
            sizes.append((None if digits == "?" else int(digits), text[0] == "["))

    def _shape(self) -> tuple[int | None, ...]:
        at = self.at
        sizes = self._sizes()
        if any(scalable for _, scalable in sizes):
            raise self.error("only sizes of vectors may stand in brackets", at)
        return tuple(size for size, _ in sizes)

    def tensor_type(self) -> Type:
        """Passes what stands between ``tensor<`` and ``>``."""
        if self.take("*"):
            self.expect("x")
            return UnrankedTensorType(self.type())
        shape, element = self._shape(), self.type()
        return TensorType(shape, element, self.attribute() if self.take(",") else None)

    def memref_type(self) -> Type:
        """Passes what stands between ``memref<`` and ``>``."""
        if self.take("*"):
            self.expect("x")
            return UnrankedMemRefType(self.type(), self.attribute() if self.take(",") else None)
        shape, element = self._shape(), self.type()
        layout = memory_space = None
        if self.take(","):
            layout = self.attribute()
            if self.take(","):
                memory_space = self.attribute()
            elif not isinstance(layout, AffineMap | StridedLayout):
                layout, memory_space = None, layout
        return MemRefType(shape, element, layout, memory_space)

    # attributes

    def attribute(self) -> Attribute:
        """Passes an attribute."""
        self.enter()
        first = self.text[self.at : self.at + 1]
        if first == '"':
            value = self.string("a string")
            result: Attribute = StringAttribute(value, self.type() if self.take(":") else None)
        elif first == "[":
            self.take("[")
            result = ArrayAttribute(self._closed(self.attribute, "]"))
        elif first == "{":
            result = DictionaryAttribute(tuple(self.dictionary().items()))
        elif first == "@":
            result = self._symbol()
        elif first == "#":
            result = self._dialect_attribute()
        elif first == "-" or first.isdigit():
            result = self._number()
        else:
            result = self._named()
        self.depth -= 1
        return result

    def dictionary(self) -> dict[str, Attribute]:
        """Passes ``{name = attribute, name, ..}``."""
        self.expect("{")
        entries: dict[str, Attribute] = {}
        while not self.take("}"):
            if entries:
                self.expect(",")
            at = self.at
            name = self.string("a name") if self.sees('"') else self.demand(BARE_NAME, "the name of an attribute")
            if name in entries:
                raise self.error(f"the name {name!r} must stand only once in a dictionary", at)
            entries[name] = self.attribute() if self.take("=") else UnitAttribute()
        return entries

    def _symbol(self) -> SymbolReference:
        names = [self._symbol_name()]
        while self.take("::"):
            names.append(self._symbol_name())
        return SymbolReference(names[0], tuple(names[1:]))

    def _symbol_name(self) -> str:
        at = self.at
        text = self.demand(_SYMBOL, "a symbol, such as @main")[1:]
        return self.checked(lambda: unescaped(text), at) if text.startswith('"') else text

    def _dialect_attribute(self) -> Attribute:
        at = self.at
        text = self._extended("an attribute")
        meaning = self._meaning(text, at)
        if meaning is not None:
            return cast(Attribute, meaning)
        if self.take(":"):
            start = self.at
            self.type()
            text += " : " + self.text[start : self.at].strip()
        return OpaqueAttribute(text[1:])

    def _number(self) -> Attribute:
        at = self.at
        text = self.demand(_NUMBER, "a number")
        default: Type = _F64 if "." in text else _I64
        return self._typed_number(text, self.type() if self.take(":") else default, at)

    def _typed_number(self, text: str, type: Type, at: int) -> IntegerAttribute | FloatAttribute:
        bits = self.checked(lambda: bits_of(text, type), at)
        if isinstance(type, FloatType):
            return FloatAttribute(bits, type)
        assert isinstance(type, IntegerType | IndexType)
        return IntegerAttribute(as_integer(bits, type), type)

    def checked(self, make: Callable[[], Item], at: int) -> Item:
        """What is made; a ValueError becomes a complaint about ``at``."""
        try:
            return make()
        except ValueError as error:
            raise self.error(str(error), at) from None

    def _named(self) -> Attribute:
        if match := _LOCATION.match(self.text, self.at):
            at, self.at = self.at, match.end()
            self.balanced()
            text = self.text[at : self.at]
            self.skip()
            return OpaqueAttribute(text)
        at = self.at
        name = self.match(BARE_NAME)
        match name:
            case "true" | "false":
                return IntegerAttribute(int(name == "true"), BIT)
            case "unit":
                return UnitAttribute()
            case "affine_map":
                return self.affine_map()
            case "affine_set":
                return self.integer_set()
            case "dense":
                return self._dense(at)
            case "sparse":
                return self._sparse(at)
            case "dense_resource":
                self.expect("<")
                key = self.string("a key") if self.sees('"') else self.demand(BARE_NAME, "the key of a resource")
                self.expect(">")
                return DenseResource(key, self._constant_type())
            case "array":
                return self._array(at)
            case "strided":
                return self._strided()
        self.at = at
        return TypeAttribute(self.type())

    def _strided(self) -> StridedLayout:
        self.expect("<")
        self.expect("[")
        strides = self._closed(self._stride, "]")
        offset: int | None = 0
        if self.take(","):
            self.expect("offset")
            self.expect(":")
            offset = self._stride()
        self.expect(">")
        return StridedLayout(strides, offset)

    def _stride(self) -> int | None:
        return None if self.take("?") else self.integer("a stride")

    def _array(self, at: int) -> DenseArray:
        self.expect("<")
        element = self.type()
        if not isinstance(element, IntegerType | FloatType):
            raise self.error("the elements of an array must be of an integer or float type", at)
        numbers: list[IntegerAttribute | FloatAttribute] = []
        if self.take(":"):
            while not numbers or self.take(","):
                at = self.at
                text = self.demand(ELEMENT, "an element of the array")
                numbers.append(self._typed_number(text, element, at))
                self.count(1)
        self.expect(">")
        return DenseArray(element, tuple(n.bits if isinstance(n, FloatAttribute) else n.value for n in numbers))

    # dense constants

    def _constant_type(self) -> TensorType | VectorType:
        self.expect(":")
        at = self.at
        type = self.type()
        if not isinstance(type, TensorType | VectorType):
            raise self.error("a dense constant must be of a ranked tensor or vector type", at)
        return type

    def _dense(self, at: int) -> DenseElements | DenseStrings:
        self.expect("<")
        literal = Literal((), (0,)) if self.sees(">") else self.literal()
        self.expect(">")
        type = self._constant_type()
        return self.checked(lambda: elements(literal, type), at)

    def _sparse(self, at: int) -> SparseElements:
        self.expect("<")
        indices, values = Literal((), (0, 0)), Literal((), (0,))
        if not self.sees(">"):
            indices = self.literal()
            self.expect(",")
            values = self.literal()
        self.expect(">")
        type = self._constant_type()
        return self.checked(lambda: sparse(indices, values, type), at)


_COMPOUND: dict[str, Callable[[ValueReader], Type]] = {
    "complex": lambda reader: ComplexType(reader.type()),
    "memref": ValueReader.memref_type,
    "tensor": ValueReader.tensor_type,
    "tuple": lambda reader: TupleType(() if reader.sees(">") else reader.listed(reader.type)),
    "vector": ValueReader.vector_type,
}
"""Types that are written with ``<`` and ``>``, and what reads all that stands between them."""
