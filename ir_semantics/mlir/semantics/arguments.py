"""The inputs of a function: unknown numbers, tensors and buffers, and the memory before it runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from ir_semantics.elements.operators import at_most, plus
from ir_semantics.elements.terms import Input, Term, fresh, number, read, table
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import AffineMap
from ir_semantics.mlir.printer import text_of_type
from ir_semantics.scalars.formats import INTEGERS

from .constants import constant_table
from .loops import linear_factors
from .memory import Before, Buffer, Global, row_major
from .program import MeaningOfValue, Reading, says_nothing
from .values import NotCovered, Tensor, defined, format_of


@dataclass
class Arguments:
    """The inputs of a function: unknown numbers and tensors, whose dynamic sizes are unknown, too."""

    values: list[MeaningOfValue] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sizes: list[Term] = field(default_factory=list)
    scalars: list[Term] = field(default_factory=list)
    arrays: list[Input] = field(default_factory=list)
    facts: list[Term] = field(default_factory=list)
    """What holds of sizes and of numbers of type index."""
    before: Before = field(default_factory=Before)
    barred: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Why functions of the modules cannot be called, by name."""
    likely: dict[Term, tuple[int, ...]] = field(default_factory=dict)
    """Numbers to try first in a search for counterexamples."""

    @property
    def all_arrays(self) -> list[Input]:
        """The tensors, and what is not known of memory."""
        return [*self.arrays, *self.before.arrays]


def arguments_of(function: ir.Operation, reading: Reading, globals_: Mapping[str, Global]) -> Arguments:
    """Unknowns for the arguments of a function; raises NotCovered for types that have no meaning here."""
    arguments = Arguments(before=Before(globals_))
    for place, value in enumerate(block_of(function).arguments):
        name = f"arg{place}"  # names in the text count over the whole file
        arguments.names.append(name)
        arguments.values.append(_argument(function, arguments, value.type, (name, reading.buffers_apart)))
    return arguments


def _argument(function: ir.Operation, arguments: Arguments, type_: ir.Type, named: tuple[str, bool]) -> MeaningOfValue:
    name, is_apart = named
    if isinstance(type_, ir.MemRefType):
        return _buffer(function, arguments, type_, name, is_apart)
    kind = format_of(type_.element if isinstance(type_, ir.TensorType) else type_)
    if kind is None or (isinstance(type_, ir.TensorType) and type_.encoding is not None):
        why = f"an argument of the type {text_of_type(type_)} has no meaning here"
        raise NotCovered("func.func", function.position, why)
    if not isinstance(type_, ir.TensorType):
        scalar = fresh(name, kind)
        arguments.scalars.append(scalar)
        if kind == INTEGERS:
            arguments.facts += [at_most(number(-(1 << 63)), scalar), at_most(scalar, number((1 << 63) - 1))]
        return defined(scalar)
    array = Input(name, kind, _shape(arguments, type_.shape, name))
    arguments.arrays.append(array)
    return Tensor(kind, array.shape, lambda at: defined(read(array, at)))


def _shape(arguments: Arguments, shape: ir.Shape, name: str) -> tuple[Term, ...]:
    """Sizes, of which those that are dynamic are unknown."""
    sizes = []
    for k, size in enumerate(shape):
        if size is None:
            unknown = fresh(f"{name}_dim{k}", INTEGERS)
            arguments.sizes.append(unknown)
            arguments.facts.append(at_most(number(0), unknown))
            sizes.append(unknown)
        else:
            sizes.append(number(size))
    return tuple(sizes)


def _buffer(function: ir.Operation, arguments: Arguments, type_: ir.MemRefType, name: str, is_apart: bool) -> Buffer:
    """A view of a block that is not known; or (apart) of one of its own, from its beginning."""
    kind, shape = format_of(type_.element), _shape(arguments, type_.shape, name)
    if kind is None or type_.memory_space is not None:
        why = f"an argument of the type {text_of_type(type_)} has no meaning here"
        raise NotCovered("func.func", function.position, why)
    strides, more = row_major(shape), 0
    if isinstance(type_.layout, AffineMap):
        factors = linear_factors(type_.layout.results[0]) if len(type_.layout.results) == 1 else None
        if factors is None or type_.layout.symbols:
            raise NotCovered("func.func", function.position, f"the layout of {name} has no meaning here")
        strides, more = tuple(number(factors.get(k, 0)) for k in range(len(shape))), factors.get(-1, 0)
    elif type_.layout is not None:
        raise NotCovered("func.func", function.position, f"the layout of {name} has no meaning here")
    if is_apart:
        block, offset = number(len(arguments.before.globals) + len(arguments.names) - 1), number(0)
    else:
        block, offset = fresh(f"{name}_block", INTEGERS), fresh(f"{name}_offset", INTEGERS)
        arguments.scalars += [block, offset]
        arguments.facts += [at_most(number(0), block), at_most(number(0), offset)]
        arguments.likely |= {block: (0, 1, 2), offset: (0, 0, 0, 1)}
    return Buffer(kind, block, plus(offset, number(more)), shape, strides)


def bodies_of(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions of a module with a body, by name; none of which there are two, as in modules inside of it."""
    functions = [s for s in module.symbols() if s.name == "func.func"]
    counts = Counter(f.symbol for f in functions)
    return {f.symbol: f for f in functions if f.symbol is not None and counts[f.symbol] == 1 and _has_body(f)}


def _has_body(function: ir.Operation) -> bool:
    return bool(function.regions and function.regions[0].blocks)


def barred_of(modules: Iterable[ir.Module]) -> dict[str, tuple[str, str]]:
    """Why functions of modules cannot be called where they have no body.

    One that has a body elsewhere is known, and one of two types is not one function.  With each reason is the next
    step.
    """
    barred, types = dict[str, tuple[str, str]](), dict[str, ir.Attribute | None]()
    for function in (s for module in modules for s in module.symbols() if s.name == "func.func"):
        assert function.symbol is not None
        type_ = function.attributes.get("function_type")
        if _has_body(function):
            barred[function.symbol] = (
                "a function that has a body elsewhere alone has no meaning here",
                "give it the body",
            )
        elif types.setdefault(function.symbol, type_) != type_:
            barred[function.symbol] = "a function that has two types has no meaning here", "give it the same one"
    return barred


_NAMES_AND_TYPES = frozenset({"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})


def require_known_attributes(function: ir.Operation) -> None:
    """Raises where attributes of a function, its arguments or its results may say something of values."""
    for name, value in function.attributes.items():
        if name not in _NAMES_AND_TYPES and not says_nothing(function.name, name):
            raise NotCovered(function.name, function.position, f"the attribute {name} has no meaning here")
        if name in ("arg_attrs", "res_attrs") and isinstance(value, ir.ArrayAttribute):
            for each in value.elements:
                for promise, _ in each.entries if isinstance(each, ir.DictionaryAttribute) else ():
                    if promise.startswith("llvm."):  # such as llvm.range, beyond which behaviour is undefined
                        raise NotCovered(
                            function.name, function.position, f"the attribute {promise} has no meaning here"
                        )


_INDEX_BITS = re.compile(r"\bindex\W+([0-9]+)", re.ASCII)
_ALIAS = re.compile(r"[#!][A-Za-z_][\w$]*+(?![.<])", re.ASCII)


def require_usual_index(modules: Iterable[ir.Module]) -> None:
    """Raises NotCovered where an operation says that values of type index have other than 64 bits, or may say so."""
    for operation in (o for module in modules for o in ir.walk(module.operations)):
        layout = operation.attributes.get("dlti.dl_spec", ir.OpaqueAttribute(""))
        text = layout.text if isinstance(layout, ir.OpaqueAttribute) else "#unknown"
        if any(bits != "64" for bits in _INDEX_BITS.findall(text)) or _ALIAS.search(text):
            why = "values of type index must have 64 bits here"
            raise NotCovered(operation.name, operation.position, why, "say so in dlti.dl_spec, or say nothing of index")


def globals_of(*modules: ir.Module | None) -> dict[str, Global]:
    """The globals of modules by name; raises ValueError where two modules mean different things by one name."""
    globals_: dict[str, Global] = {}
    definitions: dict[str, ir.Operation] = {}
    for module in modules:
        for each in module.symbols() if module is not None else ():
            if each.name == "memref.global" and each.symbol is not None:
                known = definitions.setdefault(each.symbol, each)
                stated = ("type", "initial_value", "constant")
                if any(known.attributes.get(n) != each.attributes.get(n) for n in stated):
                    raise ValueError(f"the global {each.symbol} must be the same on both sides; rename one of them")
                new = _global(each, len(globals_))
                if new is not None and each.symbol not in globals_:
                    globals_[each.symbol] = new
    return globals_


def _global(operation: ir.Operation, block: int) -> Global | None:
    """A global whose type has a meaning here."""
    type_ = operation.attributes.get("type")
    if not isinstance(type_, ir.TypeAttribute) or not isinstance(type_.type, ir.MemRefType):
        return None
    kind, shape = format_of(type_.type.element), tuple(n for n in type_.type.shape if n is not None)
    if kind is None or type_.type.layout is not None or len(shape) < len(type_.type.shape):
        return None
    value = operation.attributes.get("initial_value")
    if "constant" not in operation.attributes:
        return Global(block, kind, shape, None)
    constant = constant_table(value, kind) if value is not None else None
    if constant is None:
        return None
    flat = table(kind, (prod(shape),), constant.values, constant.default_value)
    return Global(block, kind, shape, flat)


def block_of(function: ir.Operation) -> ir.Block:
    """The one block of a function; raises NotCovered where it has several, or none."""
    if len(function.regions) != 1 or len(function.regions[0].blocks) != 1:
        why, step = "a function must be one block", "keep control flow in operators of scf or affine"
        raise NotCovered("func.func", function.position, why, step)
    return function.regions[0].blocks[0]
