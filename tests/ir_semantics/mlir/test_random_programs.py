"""Random types, attributes and programs are read as they are printed; random damage to texts gives a complaint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ir_semantics.mlir.affine import AffineMap, Binary, Constant, Dimension, Expression, IntegerSet, Symbol
from ir_semantics.mlir.constants import dense
from ir_semantics.mlir.floats import FORMATS
from ir_semantics.mlir.ir import (
    ArrayAttribute,
    Attribute,
    Block,
    ComplexType,
    DenseArray,
    DenseElements,
    DictionaryAttribute,
    FloatAttribute,
    FloatType,
    FunctionType,
    IndexType,
    IntegerAttribute,
    IntegerType,
    MemRefType,
    Module,
    NoneType,
    OpaqueAttribute,
    OpaqueType,
    Operation,
    Position,
    Region,
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
    Value,
    VectorType,
    as_integer,
    number_of_elements,
)
from ir_semantics.mlir.printer import text_of, text_of_attribute, text_of_type
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.scanner import MlirError

TEXTS = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "data" / "generic").glob("*"))]

integer_types = st.builds(IntegerType, st.integers(1, 130), st.sampled_from(["signless", "signed", "unsigned"]))
float_types = st.sampled_from([FloatType(name) for name in FORMATS])
numbers = st.one_of(integer_types, float_types, st.just(IndexType()))
sizes = st.lists(st.one_of(st.none(), st.integers(0, 2**63 - 1)), max_size=4).map(tuple)
names = st.text(st.sampled_from('abzAZ09_$. é"\\\n<>'), max_size=6)
opaque = st.sampled_from(["a.b", "a.b<1>", 'a<"x>", [(y)] -> {z}>', "quant.uniform<i8:f32, 1.0>"])


def is_narrow(type: IntegerType | FloatType) -> bool:
    return isinstance(type, FloatType) or type.width <= 64


def scalars(type: IntegerType | FloatType | IndexType) -> st.SearchStrategy[IntegerAttribute | FloatAttribute]:
    if isinstance(type, FloatType):
        return st.integers(0, 2 ** FORMATS[type.name].width - 1).map(lambda bits: FloatAttribute(bits, type))
    width = type.width if isinstance(type, IntegerType) else 64
    return st.integers(0, 2**width - 1).map(lambda bits: IntegerAttribute(as_integer(bits, type), type))


def bits(number: IntegerAttribute | FloatAttribute) -> int:
    if isinstance(number, FloatAttribute):
        return number.bits
    width = number.type.width if isinstance(number.type, IntegerType) else 64
    return number.value % 2**width


@st.composite
def dense_elements(draw: st.DrawFn, shape: tuple[int, ...] | None = None, element: Type | None = None) -> DenseElements:
    """At times more than are listed, and at times all equal."""
    some = draw(st.one_of(st.lists(st.integers(0, 3), max_size=3), st.just([101]))) if shape is None else shape
    part = draw(numbers) if element is None else element
    assert isinstance(part, IntegerType | FloatType | IndexType)
    full = ComplexType(part) if element is None and draw(st.booleans()) else part
    type = TensorType(tuple(some), full)
    count = number_of_elements(type.shape) * (2 if isinstance(full, ComplexType) else 1)
    values = draw(st.lists(scalars(part), min_size=min(count, 3), max_size=min(count, 3)))
    width = {IndexType: 64}.get(part.__class__) or (
        part.width if isinstance(part, IntegerType) else FORMATS[part.name].width if isinstance(part, FloatType) else 0
    )
    step = (width + 7) // 8
    return dense(type, b"".join(bits(values[i % len(values)]).to_bytes(step, "little") for i in range(count)))


@st.composite
def sparse_elements(draw: st.DrawFn) -> SparseElements:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    row = st.tuples(*(st.integers(0, size - 1) for size in shape))
    rows = draw(st.lists(row, min_size=1, max_size=3, unique=True))
    element = draw(numbers)
    i64 = TensorType((len(rows), len(shape)), IntegerType(64))
    indices = dense(i64, b"".join(i.to_bytes(8, "little") for row in rows for i in row))
    return SparseElements(TensorType(tuple(shape), element), indices, draw(dense_elements((len(rows),), element)))


def expressions(dimensions: int, symbols: int) -> st.SearchStrategy[Expression]:
    leaves: list[st.SearchStrategy[Expression]] = [st.integers(-9, 9).map(Constant)]
    leaves += [st.just(Dimension(i)) for i in range(dimensions)] + [st.just(Symbol(i)) for i in range(symbols)]

    def binary(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        sums = st.builds(Binary, st.just("+"), inner, inner)
        factors = st.integers(-9, 9).map(Constant)
        return sums | st.builds(Binary, st.sampled_from(["*", "floordiv", "ceildiv", "mod"]), inner, factors)

    return st.recursive(st.one_of(leaves), binary, max_leaves=6)


def canonical(expression: Expression, dimensions: int, symbols: int) -> Expression:
    """What is read where the expression is printed: in sums of sums, MLIR's text does not tell where brackets were."""
    text = text_of_attribute(AffineMap(dimensions, symbols, (expression,)))
    [operation] = read(f'"a"() {{a = {text}}} : () -> ()').operations
    affine_map = operation.attributes["a"]
    assert isinstance(affine_map, AffineMap)
    return affine_map.results[0]


def value_at(expression: Expression, dimensions: list[int], symbols: list[int]) -> int | None:
    """None where a divisor is not positive."""
    match expression:
        case Dimension(position):
            return dimensions[position]
        case Symbol(position):
            return symbols[position]
        case Constant(value):
            return value
    left, right = value_at(expression.left, dimensions, symbols), value_at(expression.right, dimensions, symbols)
    if left is None or right is None or (expression.operator not in ("+", "*") and right <= 0):
        return None
    match expression.operator:
        case "+":
            return left + right
        case "*":
            return left * right
        case "floordiv":
            return left // right
        case "ceildiv":
            return -(-left // right)
        case "mod":
            return left % right


@given(expressions(2, 1), st.lists(st.integers(-99, 99), min_size=3, max_size=3))
def test_affine_expressions_are_read_with_the_values_that_they_have(expression: Expression, point: list[int]) -> None:
    again = canonical(expression, 2, 1)
    assert value_at(again, point[:2], point[2:]) == value_at(expression, point[:2], point[2:])
    assert canonical(again, 2, 1) == again


@st.composite
def affine_maps(draw: st.DrawFn) -> AffineMap:
    dimensions, symbols = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    results = draw(st.lists(expressions(dimensions, symbols), max_size=3))
    return AffineMap(dimensions, symbols, tuple(canonical(result, dimensions, symbols) for result in results))


@st.composite
def integer_sets(draw: st.DrawFn) -> IntegerSet:
    constraint = st.tuples(expressions(2, 1), st.booleans())
    constraints = draw(st.lists(constraint, max_size=3))
    return IntegerSet(2, 1, tuple((canonical(expression, 2, 1), equal) for expression, equal in constraints))


layouts = st.builds(StridedLayout, sizes, st.one_of(st.none(), st.integers(0, 99))) | affine_maps()
spaces = st.one_of(
    st.none(), st.integers(0, 9).map(lambda n: IntegerAttribute(n, IntegerType(64))), st.just(StringAttribute("x"))
)
encodings = st.one_of(st.none(), opaque.map(OpaqueAttribute), st.just(StringAttribute("csr")))


def compound(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    several = st.lists(inner, max_size=3).map(tuple)
    static = st.lists(st.tuples(st.integers(1, 99), st.booleans()), max_size=3)
    return st.one_of(
        st.builds(TensorType, sizes, inner, encodings),
        st.builds(MemRefType, sizes, inner, st.one_of(st.none(), layouts), spaces),
        st.builds(UnrankedTensorType, inner),
        st.builds(UnrankedMemRefType, inner, spaces),
        st.builds(TupleType, several),
        st.builds(FunctionType, several, several),
        st.builds(
            lambda pairs, element: VectorType(tuple(n for n, _ in pairs), element, tuple(s for _, s in pairs)),
            static,
            inner,
        ),
    )


simple_types = st.one_of(numbers, st.just(NoneType()), opaque.map(OpaqueType), numbers.map(ComplexType))
types: st.SearchStrategy[Type] = st.recursive(simple_types, compound, max_leaves=4)


@st.composite
def dense_arrays(draw: st.DrawFn) -> DenseArray:
    element = draw(st.one_of(integer_types, float_types).filter(is_narrow))
    values = draw(st.lists(scalars(element), max_size=3))
    return DenseArray(element, tuple(n.bits if isinstance(n, FloatAttribute) else n.value for n in values))


simple_attributes = st.one_of(
    numbers.flatmap(scalars),
    st.builds(StringAttribute, names, st.one_of(st.none(), types)),
    st.just(UnitAttribute()),
    types.map(TypeAttribute),
    st.builds(SymbolReference, names, st.lists(names, max_size=2).map(tuple)),
    layouts,
    integer_sets(),
    dense_elements(),
    sparse_elements(),
    dense_arrays(),
    opaque.map(OpaqueAttribute),
)


def entries(inner: st.SearchStrategy[Attribute]) -> st.SearchStrategy[dict[str, Attribute]]:
    return st.dictionaries(names, inner, max_size=3)


attributes: st.SearchStrategy[Attribute] = st.recursive(
    simple_attributes,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: ArrayAttribute(tuple(parts)))
        | entries(inner).map(lambda parts: DictionaryAttribute(tuple(parts.items())))
    ),
    max_leaves=4,
)


@given(types)
def test_types_are_read_as_they_are_printed(type: Type) -> None:
    [operation] = read(f'%0 = "a"() : () -> ({text_of_type(type)})').operations
    assert operation.results[0].type == type


@given(attributes)
@example(DictionaryAttribute((("a", ArrayAttribute((FloatAttribute(0x7FF8 << 48, FloatType("f64")),))),)))
def test_attributes_are_read_as_they_are_printed(attribute: Attribute) -> None:
    [operation] = read(f'"a"() {{a = {text_of_attribute(attribute)}}} : () -> ()').operations
    assert operation.attributes == {"a": attribute}


@dataclass
class Draft:
    """A program while it is drawn: types and attributes to choose from, and the values in sight."""

    draw: st.DrawFn
    types: list[Type]
    attributes: list[Attribute]
    visible: list[Value] = field(default_factory=list)

    def region(self, depth: int) -> Region:
        before = list(self.visible)
        drafts: list[tuple[Block, list[Operation]]] = []
        for _ in range(self.draw(st.integers(0, 3))):
            arguments = [Value(type, "argument") for type in self.some(self.types, 2)]
            self.visible += arguments
            operations: list[Operation] = []
            drafts.append((Block(arguments, operations), operations))
        blocks = [block for block, _ in drafts]
        for _, operations in drafts:
            operations += [
                self.operation(depth, blocks[1:]) for _ in range(self.draw(st.integers(0 if depth else 1, 2)))
            ]
        self.visible = before
        return Region(blocks)

    def operation(self, depth: int, blocks: list[Block]) -> Operation:
        operands = self.some(self.visible, 3)
        regions = [self.region(depth - 1) for _ in range(self.draw(st.integers(0, min(depth, 2))))]
        results = [Value(type, "result") for type in self.some(self.types, 3)]
        self.visible += results
        attributes = {
            name: self.draw(st.sampled_from(self.attributes)) for name in self.draw(st.sets(names, max_size=3))
        }
        properties = self.draw(st.sets(st.sampled_from(sorted(attributes)))) if attributes else set()
        name = self.draw(st.sampled_from(["a.b", "any.thing", 'quoted "name"']))
        return Operation(
            name,
            tuple(operands),
            tuple(results),
            attributes,
            tuple(regions),
            tuple(self.some(blocks, 2)),
            Position(1, 1),
            frozenset(properties),
        )

    def some(self, items: list, most: int) -> list:
        return [self.draw(st.sampled_from(items)) for _ in range(self.draw(st.integers(0, most)) if items else 0)]


@st.composite
def modules(draw: st.DrawFn) -> Module:
    draft = Draft(
        draw, draw(st.lists(types, min_size=1, max_size=4)), draw(st.lists(attributes, min_size=1, max_size=4))
    )
    operations = tuple(draft.operation(2, []) for _ in range(draw(st.integers(1, 3))))
    named: list[tuple[str, str, Attribute | Type]] = [
        *(
            (text_of_attribute(attribute), "#attribute", attribute)
            for attribute in draft.attributes
            if draw(st.booleans())
        ),
        *((text_of_type(type), "!type", type) for type in draft.types if draw(st.booleans())),
    ]
    in_order = sorted(named, key=lambda alias: len(alias[0]))
    return Module(operations, {f"{name}{i}": meaning for i, (_, name, meaning) in enumerate(in_order)})


def shape(operations: tuple[Operation, ...] | list[Operation], seen: dict[Value | Block, int]) -> list[object]:
    """All that operations say, where values and blocks are numbered in the order in which they are met."""

    def number(thing: Value | Block) -> tuple[int, Type | None]:
        return seen.setdefault(thing, len(seen)), thing.type if isinstance(thing, Value) else None

    return [
        (
            operation.name,
            [number(value) for value in operation.operands],
            [number(value) for value in operation.results],
            operation.attributes,
            operation.properties,
            [number(block) for block in operation.successors],
            [
                [
                    (number(block), [number(v) for v in block.arguments], shape(list(block.operations), seen))
                    for block in region.blocks
                ]
                for region in operation.regions
            ],
        )
        for operation in operations
    ]


@settings(max_examples=60)
@given(modules())
def test_programs_are_read_as_they_are_printed(module: Module) -> None:
    text = text_of(module)
    again = read(text)
    assert shape(again.operations, {}) == shape(module.operations, {})
    assert text_of(again) == text


FRAGMENTS = [
    '"',
    "<",
    ">",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "%0",
    "#",
    "-",
    "->",
    "0x",
    "x",
    "?",
    ":",
    "=",
    ",",
    "@",
    "^bb0",
    "!",
]
FRAGMENTS += [
    "dense<",
    "sparse<",
    "array<",
    "affine_map<",
    "i",
    "\\",
    "\n",
    "//",
    "9" * 30,
    "1.0e99",
    "\0",
    "é",
    "{-#",
    "#-}",
]
FRAGMENTS += [
    "loc(",
    "unit",
    "true",
    "tensor<",
    "memref<",
    "strided<",
    "vector<",
    "complex<f32>",
    "none",
    "\ud800",
    " ",
]


@given(st.sampled_from(TEXTS), st.data())
def test_damaged_texts_are_read_or_complained_about(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from([0, 0, 1, 2, 10, 100, 10000])))
        text = text[:start] + data.draw(st.one_of(st.just(""), st.sampled_from(FRAGMENTS))) + text[end:]
    try:
        module = read(text)
    except MlirError as complaint:
        assert 1 <= complaint.position.line <= text.count("\n") + 1
        return
    printed = text_of(module)
    assert text_of(read(printed)) == printed
