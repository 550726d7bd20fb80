"""Functions of MLIR that reduce tensors in one order or another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ir_semantics.mlir import ir
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

DYNAMIC = -9223372036854775808
"""What stands for a size that is an operand."""
START = {"f32": "-0.0", "f16": "-0.0"}


def tensor(element: str, *sizes: object) -> str:
    """A type; sizes are numbers or "?"."""
    return f"tensor<{''.join(f'{n}x' for n in sizes)}{element}>"


def combine(element: str, operation: str = "") -> str:
    """A region of one operand that adds it to the result, or combines it by an operation."""
    name = operation or ("arith.addf" if element[0] == "f" else "arith.addi")
    types = f"({element}, {element}) -> {element}"
    return (
        f'^bb0(%p: {element}, %r: {element}):\n%u = {op(name, "%r, %p", types)}\n"linalg.yield"(%u) : ({element}) -> ()'
    )


def multiply_add(element: str) -> str:
    """A region of two operands that adds their product to the result."""
    suffix, types = "f" if element[0] == "f" else "i", f"({element}, {element}) -> {element}"
    return (
        f"^bb0(%p: {element}, %q: {element}, %r: {element}):\n%s = {op(f'arith.mul{suffix}', '%p, %q', types)}\n"
        f"%u = {op(f'arith.add{suffix}', '%r, %s', types)}\n" + f'"linalg.yield"(%u) : ({element}) -> ()'
    )


@dataclass
class Program:
    """A function in the making: its arguments, and its lines."""

    element: str = "i32"
    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def argument(self, *sizes: object) -> str:
        """A tensor that is an argument."""
        name = f"%arg{len(self.arguments)}"
        self.types[name] = tensor(self.element, *sizes)
        self.arguments.append(f"{name}: {self.types[name]}")
        return name

    def line(self, text: str, type_: str) -> str:
        """The result of an operation."""
        self.count += 1
        name = f"%v{self.count}"
        self.types[name] = type_
        self.lines.append(f"{name} = {text}")
        return name

    def reverse(self, value: str, axis: int) -> str:
        type_ = self.types[value]
        return self.line(op("tosa.reverse", value, f"({type_}) -> {type_}", f"axis = {axis} : i32"), type_)

    def collapse(self, value: str, groups: str, *sizes: object) -> str:
        """``tensor.collapse_shape`` to given sizes."""
        to = tensor(self.element, *sizes)
        text = op("tensor.collapse_shape", value, f"({self.types[value]}) -> {to}", f"reassociation = {groups}")
        return self.line(text, to)

    def expand(self, value: str, groups: str, *sizes: int) -> str:
        """``tensor.expand_shape`` to static sizes."""
        to, stated = tensor(self.element, *sizes), ", ".join(map(str, sizes))
        attributes = f"reassociation = {groups}, static_output_shape = array<i64: {stated}>"
        return self.line(op("tensor.expand_shape", value, f"({self.types[value]}) -> {to}", attributes), to)

    def size(self, value: str, axis: int) -> str:
        at = self.line(constant(str(axis), "index"), "index")
        return self.line(op("tensor.dim", f"{value}, {at}", f"({self.types[value]}, index) -> index"), "index")

    def filled(self, sizes: Sequence[int | str], start: str = "") -> str:
        """A tensor of one number; its sizes are numbers or values."""
        to = tensor(self.element, *(n if isinstance(n, int) else "?" for n in sizes))
        dynamic = [n for n in sizes if isinstance(n, str)]
        empty = self.line(
            op("tensor.empty", ", ".join(dynamic), f"({', '.join(['index'] * len(dynamic))}) -> {to}"), to
        )
        number = self.line(constant(start or START.get(self.element, "0"), self.element), self.element)
        region = f'^bb0(%p: {self.element}, %r: {self.element}):\n"linalg.yield"(%p) : ({self.element}) -> ()'
        segments = "operandSegmentSizes = array<i32: 1, 1>"
        types = f"({self.element}, {to}) -> {to}"
        return self.line(op("linalg.fill", f"{number}, {empty}", types, segments, region), to)

    def loops(self, maps: Sequence[str], kinds: str, *operands: str, region: str = "") -> str:
        """``linalg.generic`` into the last operand; without a region it adds, or adds products."""
        types = [self.types[o] for o in operands]
        text = region or (multiply_add if len(operands) == 3 else combine)(self.element)
        listed = f"({', '.join(types)}) -> {types[-1]}"
        return self.line(generic(", ".join(operands), listed, maps, kinds, f"{len(operands) - 1}, 1", text), types[-1])

    def done(self, result: str) -> ir.Operation:
        """The function that returns a value."""
        return function(", ".join(self.arguments), self.types[result], *self.lines, result)

    def slice(self, value: str, start: int, length: int) -> str:
        """Elements of a vector, one after the other."""
        to = tensor(self.element, length)
        attributes = (
            f"static_offsets = array<i64: {start}>, static_sizes = array<i64: {length}>, "
            "static_strides = array<i64: 1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>"
        )
        return self.line(op("tensor.extract_slice", value, f"({self.types[value]}) -> {to}", attributes), to)

    def moved(self, value: str, place: int, to: int) -> str:
        """A vector in which the element at one place stands at another one, too."""
        at = [self.line(constant(str(i), "index"), "index") for i in (place, to)]
        type_, element = self.types[value], self.element
        read = self.line(op("tensor.extract", f"{value}, {at[0]}", f"({type_}, index) -> {element}"), element)
        types = f"({element}, {type_}, index) -> {type_}"
        return self.line(op("tensor.insert", f"{read}, {value}, {at[1]}", types), type_)

    def each(self, a: str, b: str, operation: str = "") -> str:
        """Two vectors of one length, combined element by element into the first one's shape."""
        name = operation or ("arith.addf" if self.element[0] == "f" else "arith.addi")
        types = f"({self.element}, {self.element}) -> {self.element}"
        region = (
            f"^bb0(%p: {self.element}, %q: {self.element}, %r: {self.element}):\n%u = {op(name, '%p, %q', types)}\n"
            f'"linalg.yield"(%u) : ({self.element}) -> ()'
        )
        return self.loops(["(i) -> (i)"] * 3, "p", a, b, a, region=region)
