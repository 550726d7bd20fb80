"""The text of a module, as ``mlir-opt --mlir-print-op-generic`` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast

from .affine import AffineMap, IntegerSet, text_of_map, text_of_set
from .constants import BIT, SIGNS, text_of_elements, text_of_number
from .ir import (
    ArrayAttribute,
    Attribute,
    Block,
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
    Module,
    NoneType,
    OpaqueAttribute,
    OpaqueType,
    Operation,
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
)
from .scanner import escaped

_BARE = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)
_UNMARKED = re.compile(r"loc\(|distinct\[")
_I64, _F64 = IntegerType(64), FloatType("f64")


def text_of(module: Module) -> str:
    """The module's text, with the aliases that it uses first."""
    return Printer(module).text()


def text_of_type(type: Type) -> str:
    """A type as MLIR writes it, without aliases."""
    return Printer(Module(())).type(type)


def text_of_attribute(attribute: Attribute) -> str:
    """An attribute as MLIR writes it, without aliases."""
    return Printer(Module(())).attribute(attribute)


class Printer:
    """Texts of types, attributes and operations; notes which aliases they use."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.aliases = {meaning: name for name, meaning in module.aliases.items()}
        self.used: set[str] = set()
        self.names: dict[Value, str] = {}
        self.labels: dict[Block, str] = {}

    def text(self) -> str:
        """The whole module."""
        self._name_all()
        body = "".join(f"{self._operation(operation, '')}\n" for operation in self.module.operations)
        definitions: list[str] = []
        for meaning, name in reversed(self.aliases.items()):
            if name in self.used:
                text = (
                    self._type(cast(Type, meaning))
                    if name[0] == "!"
                    else self._attribute(cast(Attribute, meaning), False)
                )
                definitions.append(f"{name} = {text}\n")
        return "".join(reversed(definitions)) + body + _resources(self.module)

    # names

    def _name_all(self) -> None:
        """Numbers values in MLIR's order: all of a region, then regions inside it, the last one first."""
        values = arguments = 0
        values = self._name_results(self.module.operations, values)
        stack = [region for operation in self.module.operations for region in operation.regions]
        while stack:
            region = stack.pop()
            for number, block in enumerate(region.blocks):
                self.labels[block] = f"^bb{number}"
                for value in block.arguments:
                    if number:
                        self.names[value], values = f"%{values}", values + 1
                    else:
                        self.names[value], arguments = f"%arg{arguments}", arguments + 1
                values = self._name_results(block.operations, values)
            stack += [inner for block in region.blocks for operation in block.operations for inner in operation.regions]

    def _name_results(self, operations: Sequence[Operation], values: int) -> int:
        for operation in operations:
            several = len(operation.results) > 1
            for number, value in enumerate(operation.results):
                self.names[value] = f"%{values}#{number}" if several else f"%{values}"
            values += bool(operation.results)
        return values

    # operations

    def _operation(self, operation: Operation, indent: str) -> str:
        results = operation.results
        text = indent
        if results:
            name = self.names[results[0]]
            text += f"{name.partition('#')[0]}:{len(results)} = " if len(results) > 1 else f"{name} = "
        text += f'"{escaped(operation.name)}"({", ".join(self.names[value] for value in operation.operands)})'
        if operation.successors:
            text += f"[{', '.join(self.labels[block] for block in operation.successors)}]"
        entries = operation.attributes.items()
        if operation.properties:
            text += f" <{self._dictionary((k, a) for k, a in entries if k in operation.properties)}>"
        if operation.regions:
            text += f" ({', '.join(self._region(region, indent) for region in operation.regions)})"
        if len(operation.attributes) > len(operation.properties):
            text += f" {self._dictionary((k, a) for k, a in entries if k not in operation.properties)}"
        operand_types = ", ".join(self.type(value.type) for value in operation.operands)
        return f"{text} : ({operand_types}) -> {self._results([value.type for value in results])}"

    def _region(self, region: Region, indent: str) -> str:
        predecessors: dict[Block, list[str]] = {}
        for block in region.blocks:
            for operation in block.operations:
                for successor in dict.fromkeys(operation.successors):
                    predecessors.setdefault(successor, []).append(self.labels[block])
        lines = ["{"]
        for number, block in enumerate(region.blocks):
            if number or block.arguments or not block.operations:
                lines.append(indent + self._heading(block, not number, predecessors.get(block, [])))
            lines += [self._operation(operation, indent + "  ") for operation in block.operations]
        return "\n".join([*lines, indent + "}"])

    def _heading(self, block: Block, is_entry: bool, predecessors: list[str]) -> str:
        arguments = ", ".join(f"{self.names[value]}: {self.type(value.type)}" for value in block.arguments)
        text = self.labels[block] + (f"({arguments}):" if arguments else ":")
        if len(predecessors) == 1:
            return f"{text}  // pred: {predecessors[0]}"
        if predecessors:
            return f"{text}  // {len(predecessors)} preds: {', '.join(predecessors)}"
        return text if is_entry else f"{text}  // no predecessors"

    # types

    def type(self, type: Type) -> str:
        """A type, by its alias if it has one."""
        alias = self.aliases.get(type) if self.aliases else None
        if alias is None:
            return self._type(type)
        self.used.add(alias)
        return alias

    def _type(self, type: Type) -> str:
        match type:
            case TensorType(shape, element, encoding):
                return f"tensor<{_sizes(shape)}{self.type(element)}{self._parameter(encoding, False)}>"
            case FloatType(name):
                return name
            case IntegerType(width, signedness):
                return f"{SIGNS[signedness]}i{width}"
            case IndexType():
                return "index"
            case MemRefType(shape, element, layout, memory_space):
                parameters = self._parameter(layout, True) + self._parameter(memory_space, True)
                return f"memref<{_sizes(shape)}{self.type(element)}{parameters}>"
            case VectorType(shape, element, scalable):
                sizes = [f"[{n}]x" if scaled else f"{n}x" for n, scaled in zip(shape, scalable, strict=True)]
                return f"vector<{''.join(sizes)}{self.type(element)}>"
            case UnrankedTensorType(element):
                return f"tensor<*x{self.type(element)}>"
            case UnrankedMemRefType(element, memory_space):
                return f"memref<*x{self.type(element)}{self._parameter(memory_space, True)}>"
            case FunctionType(inputs, results):
                return f"({', '.join(map(self.type, inputs))}) -> {self._results(results)}"
            case ComplexType(element):
                return f"complex<{self.type(element)}>"
            case TupleType(elements):
                return f"tuple<{', '.join(map(self.type, elements))}>"
            case NoneType():
                return "none"
            case OpaqueType(text):
                return f"!{text}"

    def _parameter(self, attribute: Attribute | None, elides: bool) -> str:
        return "" if attribute is None else f", {self.attribute(attribute, elides)}"

    def _results(self, types: Sequence[Type]) -> str:
        texts = [self.type(type) for type in types]
        return texts[0] if len(types) == 1 and not isinstance(types[0], FunctionType) else f"({', '.join(texts)})"

    # attributes

    def attribute(self, attribute: Attribute, elides: bool = False) -> str:
        """An attribute, by its alias if it has one; ``elides`` leaves the types i64 and f64 out."""
        alias = self.aliases.get(attribute) if self.aliases else None
        if alias is None:
            return self._attribute(attribute, elides)
        self.used.add(alias)
        return alias

    def _attribute(self, attribute: Attribute, elides: bool) -> str:
        match attribute:
            case IntegerAttribute(value, type):
                text = _integer(value, type)
                return text if type == BIT or (elides and type == _I64) else f"{text} : {self.type(type)}"
            case FloatAttribute(bits, type):
                text = text_of_number(bits, type)
                return text if elides and type == _F64 and "x" not in text else f"{text} : {self.type(type)}"
            case StringAttribute(value, type):
                return f'"{escaped(value)}"' + (f" : {self.type(type)}" if type else "")
            case ArrayAttribute(elements):
                return f"[{', '.join(self.attribute(element, True) for element in elements)}]"
            case DictionaryAttribute(entries):
                return self._dictionary(entries)
            case UnitAttribute():
                return "unit"
            case TypeAttribute(type):
                return self.type(type)
            case SymbolReference(root, nested):
                return "::".join(map(_symbol, (root, *nested)))
            case AffineMap():
                return f"affine_map<{text_of_map(attribute)}>"
            case IntegerSet():
                return f"affine_set<{text_of_set(attribute)}>"
            case StridedLayout(strides, offset):
                place = "" if offset == 0 else f", offset: {_dynamic(offset)}"
                return f"strided<[{', '.join(map(_dynamic, strides))}]{place}>"
            case DenseElements(type) | DenseStrings(type):
                return f"dense<{text_of_elements(attribute)}> : {self.type(type)}"
            case DenseResource(key, type):
                return f"dense_resource<{_bare_or_quoted(key)}> : {self.type(type)}"
            case SparseElements(type, indices, values):
                parts = [text_of_elements(indices, False), text_of_elements(values)]
                return f"sparse<{', '.join(filter(None, parts))}> : {self.type(type)}"
            case DenseArray(element, values):
                write = text_of_number if isinstance(element, FloatType) else _integer
                texts = ", ".join(write(value, element) for value in values)
                return f"array<{self.type(element)}{': ' if values else ''}{texts}>"
            case OpaqueAttribute(text):
                return text if _UNMARKED.match(text) else f"#{text}"

    def _dictionary(self, entries: Iterable[tuple[str, Attribute]]) -> str:
        texts = []
        for name, attribute in entries:
            value = "" if isinstance(attribute, UnitAttribute) else f" = {self.attribute(attribute)}"
            texts.append(_bare_or_quoted(name) + value)
        return f"{{{', '.join(texts)}}}"


def _integer(value: int, type: Type) -> str:
    return str(value) if type != BIT else "true" if value else "false"


def _dynamic(size: int | None) -> str:
    return "?" if size is None else str(size)


def _sizes(shape: Sequence[int | None]) -> str:
    return "".join(f"{_dynamic(size)}x" for size in shape)


def _bare_or_quoted(name: str) -> str:
    return name if _BARE.match(name) else f'"{escaped(name)}"'


def _symbol(name: str) -> str:
    return f"@{_bare_or_quoted(name)}"


def _resources(module: Module) -> str:
    dialects = [
        f"    {_bare_or_quoted(dialect)}: {{\n"
        + ",\n".join(f'      {_bare_or_quoted(key)}: "0x{data.hex().upper()}"' for key, data in blobs.items())
        + "\n    }"
        for dialect, blobs in module.resources.items()
    ]
    return "\n{-#\n  dialect_resources: {\n" + ",\n".join(dialects) + "\n  }\n#-}\n" if dialects else ""
