"""A file in MLIR's generic form, read as a :class:`~ir_semantics.mlir.ir.Module`.

Only syntax and names are checked: that types and attributes fit their operator is not, nor that a value is defined
before it is used within a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .ir import Attribute, Block, Module, Operation, Position, Region, Type, Value
from .printer import text_of_type
from .scanner import BARE_NAME, DEEPEST, STRING, SUFFIX_NAME, MlirError, token
from .values import ValueReader

LONGEST_TEXT = 1 << 28
"""Characters of a file; longer ones are refused."""
MOST_RESULTS = 1 << 16
"""Results of one operation; more are refused."""
ISOLATED = frozenset({"builtin.module", "func.func"})
"""Operations in whose regions no value from outside is visible, so that its name may be used again."""

_RESULT = token(rf"%{SUFFIX_NAME}")
_OPERAND = token(rf"%{SUFFIX_NAME}(?:#[0-9]++)?")
_BLOCK = token(rf"\^{SUFFIX_NAME}")
_ALIAS = token(r"[#!][A-Za-z_][\w$]*+(?=\s*=)")
_LOCATION_ALIAS = re.compile(r"^(#loc[0-9]*) = loc\((.*)\)$", re.MULTILINE | re.ASCII)
_PLACE = re.compile(r'"([^"\\\n]*)":([0-9]{1,9}):([0-9]{1,9})|(#loc[0-9]*)', re.ASCII)
_CUSTOM = re.compile(r"[A-Za-z_]")
_HEXADECIMAL = re.compile(r"0x(?:[0-9A-Fa-f]{2})*+\Z")


class CustomForm(MlirError):
    """An operation is written in a dialect's own form, which ``mlir-opt`` can turn into the generic one."""


@dataclass(slots=True)
class Draft:
    """A block while it is read: where its label was used first, and whether it has been defined."""

    first_use: int
    arguments: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    is_defined: bool = False
    block: Block = field(init=False)

    def __post_init__(self) -> None:
        self.block = Block(self.arguments, self.operations)


@dataclass(slots=True)
class Scope:
    """The names of a region while it is read.

    ``values`` are results by the name of their operation, and arguments of blocks; ``pending`` are values that have
    been used but not defined yet, by name and number, with the place of their first use.
    """

    is_isolated: bool
    values: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    pending: dict[str, dict[int, tuple[Value, int]]] = field(default_factory=dict)
    blocks: dict[str, Draft] = field(default_factory=dict)


def read(text: str, origin: str | None = None) -> Module:
    """The module that a text in the generic form says.

    Where a location of an operation speaks of a place in the file ``origin``, this is the operation's position.

    Raises :class:`CustomForm` if an operation is not in the generic form, and MlirError for all else that is wrong.

    >>> module = read('%0 = "arith.constant"() <{value = 1 : i32}> : () -> i32')
    >>> module.operations[0].attributes["value"]
    IntegerAttribute(value=1, type=IntegerType(width=32, signedness='signless'))
    """
    reader = Reader(text[: LONGEST_TEXT + 1], origin)
    if len(text) > LONGEST_TEXT:
        raise reader.error(f"a file must have at most {LONGEST_TEXT} characters, not {len(text)}")
    return reader.module()


class Reader(ValueReader):
    """A scanner that passes operations."""

    def __init__(self, text: str, origin: str | None) -> None:
        super().__init__(text)
        self.scopes = [Scope(True)]
        self.origin = origin
        self.locations = {} if origin is None else dict(_LOCATION_ALIAS.findall(text))

    def module(self) -> Module:
        """Passes everything."""
        operations: list[Operation] = []
        resources: dict[str, dict[str, bytes]] = {}
        while self.at < len(self.text):
            if self.sees("#") or self.sees("!"):
                self._define_alias()
            elif self.take("{-#"):
                self._resources(resources)
            else:
                operations.append(self._operation())
        self._close_scope()
        return Module(
            tuple(operations),
            {name: alias.value for name, alias in self.aliases.items()},
            resources,
        )

    def _define_alias(self) -> None:
        at = self.at
        name = self.demand(_ALIAS, "an alias, such as #map = .., or an operation")
        if name in self.aliases:
            raise self.error(f"the alias {name} must be defined only once", at)
        self.expect("=")
        self.aliases[name] = self.alias(self.attribute if name[0] == "#" else self.type)

    # operations

    def _operation(self) -> Operation:
        self.parts = 0
        start = self.at
        results = self._result_names() if self.sees("%") else []
        at = self.at
        if _CUSTOM.match(self.text, at):
            word = self.demand(BARE_NAME, "an operation")
            raise CustomForm(
                self.position(at), f'an operation must be in the generic form, as in "func.return"(), not {word}'
            )
        name = self.string("an operation") if self.sees('"') else self.demand(STRING, "an operation")
        self.expect("(")
        uses = self._uses()
        successors = self._successors() if self.take("[") else ()
        properties = self._properties() if self.take("<") else {}
        regions = self._regions(name in ISOLATED) if self.take("(") else ()
        attributes = self.dictionary() if self.sees("{") else {}
        if twice := properties.keys() & attributes.keys():
            raise self.error(f"{min(twice)!r} must not be both a property and an attribute of {name}", at)
        self.expect(":")
        operand_types, result_types = self._signature()
        position = self._location() or self.position(start)
        if len(operand_types) != len(uses):
            raise self.error(
                f"{name} must have a type for each of its {len(uses)} operands, not {len(operand_types)}", at
            )
        operands = tuple(self._use(*use, type) for use, type in zip(uses, operand_types, strict=True))
        values = self._define_results(results, result_types, at)
        return Operation(
            name,
            operands,
            values,
            properties | attributes,
            regions,
            successors,
            position,
            frozenset(properties),
        )

    def _result_names(self) -> list[tuple[str, int, int]]:
        """Names with the number of their values and their places."""
        names: list[tuple[str, int, int]] = []
        while True:
            at = self.at
            name = self.demand(_RESULT, "the name of a result")[1:]
            count = 1
            if self.take(":"):
                count = self.integer("the number of results")
                if not 1 <= count <= MOST_RESULTS:
                    raise self.error(f"the number of results must be in 1 .. {MOST_RESULTS}, not {count}", at)
            names.append((name, count, at))
            if not self.take(","):
                self.expect("=")
                return names

    def _uses(self) -> list[tuple[str, int, int]]:
        """Passes operands: names with the number of the result, and their places."""
        uses: list[tuple[str, int, int]] = []
        while not self.take(")"):
            if uses:
                self.expect(",")
            at = self.at
            name, _, number = self.demand(_OPERAND, "an operand, such as %0")[1:].partition("#")
            if len(number) > 6:
                raise self.error(f"the number of a result must be less than {MOST_RESULTS}, not {number[:20]}", at)
            uses.append((name, int(number or 0), at))
        return uses

    def _successors(self) -> tuple[Block, ...]:
        blocks: list[Block] = []
        while not self.take("]"):
            if blocks:
                self.expect(",")
            at = self.at
            blocks.append(self._block(self.demand(_BLOCK, "a block, such as ^bb1"), at))
        return tuple(blocks)

    def _block(self, label: str, at: int) -> Block:
        return self._draft(label, at).block

    def _draft(self, label: str, at: int) -> Draft:
        return self.scopes[-1].blocks.setdefault(label, Draft(at))

    def _properties(self) -> dict[str, Attribute]:
        properties = self.dictionary()
        self.expect(">")
        return properties

    def _signature(self) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        inputs = self.types()
        self.expect("->")
        return inputs, self.types() if self.sees("(") else (self.type(),)

    def _location(self) -> Position | None:
        """Passes ``loc(..)`` if it stands here; returns the position if it is one in the origin."""
        if not self.sees("loc("):
            return None
        self.at += len("loc")
        start = self.at
        self.balanced()
        position = None if self.origin is None else self._place(self.text[start : self.at])
        self.skip()
        return position

    def _place(self, location: str, depth: int = 0) -> Position | None:
        """The first position in the origin that a location speaks of: of one made of several, the first of these."""
        for match in _PLACE.finditer(location):
            file, line, column, alias = match.groups()
            if alias is None and file == self.origin:
                return Position(int(line), int(column))
            if alias is not None and depth < DEEPEST:
                position = self._place(self.locations.pop(alias, ""), depth + 1)
                if position is not None:
                    self.locations[alias] = f'"{self.origin}":{position.line}:{position.column}'
                    return position
        return None

    # values

    def _use(self, name: str, number: int, at: int, type: Type) -> Value:
        value = self._lookup(name, number, at)
        if value is None:
            value = Value(type, f"{name}#{number}" if number else name)
            self.scopes[-1].pending.setdefault(name, {})[number] = value, at
        elif value.type != type:
            raise self.error(self._wrong_type(name, value.type, type), at)
        return value

    @staticmethod
    def _wrong_type(name: str, expected: Type, used: Type) -> str:
        return f"%{name} must be used with its type {text_of_type(expected)}, not {text_of_type(used)}"

    def _lookup(self, name: str, number: int, at: int) -> Value | None:
        for scope in reversed(self.scopes):
            if name in scope.values:
                values = scope.values[name]
                if number >= len(values):
                    raise self.error(f"%{name}#{number} must be one of the {len(values)} results of %{name}", at)
                return values[number]
            if number in scope.pending.get(name, ()):
                return scope.pending[name][number][0]
            if scope.is_isolated:
                break
        return None

    def _define_results(self, names: list[tuple[str, int, int]], types: tuple[Type, ...], at: int) -> tuple[Value, ...]:
        if not names:
            return tuple(Value(type, "") for type in types)
        if sum(count for _, count, _ in names) != len(types):
            raise self.error(f"the {len(types)} results must have a name each, or none", at)
        values: list[Value] = []
        for name, count, place in names:
            values += self._define(name, types[len(values) : len(values) + count], place)
        return tuple(values)

    def _define(self, name: str, types: tuple[Type, ...], at: int) -> tuple[Value, ...]:
        for scope in reversed(self.scopes):
            if name in scope.values:
                raise self.error(f"%{name} must be defined only once", at)
            if scope.is_isolated:
                break
        scope = self.scopes[-1]
        values = [Value(type, name if len(types) == 1 else f"{name}#{i}") for i, type in enumerate(types)]
        for number, (value, place) in scope.pending.pop(name, {}).items():
            if number >= len(values):
                raise self.error(f"%{name}#{number} must be one of the {len(types)} results of %{name}", place)
            if value.type != types[number]:
                raise self.error(self._wrong_type(name, types[number], value.type), place)
            values[number] = value
        scope.values[name] = tuple(values)
        return scope.values[name]

    # regions

    def _regions(self, is_isolated: bool) -> tuple[Region, ...]:
        regions: list[Region] = []
        while not self.take(")"):
            if regions:
                self.expect(",")
            regions.append(self._region(is_isolated))
        return tuple(regions)

    def _region(self, is_isolated: bool) -> Region:
        self.enter()
        self.expect("{")
        self.scopes.append(Scope(is_isolated))
        blocks: list[Block] = []
        while not self.take("}"):
            draft = self._heading() if self.sees("^") else Draft(self.at)
            while not (self.sees("}") or self.sees("^")):
                draft.operations.append(self._operation())
            blocks.append(draft.block)
        self._close_scope()
        self.depth -= 1
        return Region(blocks)

    def _heading(self) -> Draft:
        """Passes ``^label(%argument: type, ..):``."""
        at = self.at
        label = self.demand(_BLOCK, "a block")
        draft = self._draft(label, at)
        if draft.is_defined:
            raise self.error(f"the block {label} must be defined only once", at)
        draft.is_defined = True
        if self.take("("):
            while not self.take(")"):
                if draft.arguments:
                    self.expect(",")
                at = self.at
                name = self.demand(_RESULT, "an argument of the block")[1:]
                self.expect(":")
                draft.arguments += self._define(name, (self.type(),), at)
                self._location()
        self.expect(":")
        return draft

    def _close_scope(self) -> None:
        scope = self.scopes.pop()
        for label, draft in scope.blocks.items():
            if not draft.is_defined:
                raise self.error(f"the block {label} must be defined in the region that it is used in", draft.first_use)
        for name, uses in scope.pending.items():
            for number, (value, at) in uses.items():
                if scope.is_isolated:
                    raise self.error(f"%{value.name} must be defined where it is visible here", at)
                self.scopes[-1].pending.setdefault(name, {}).setdefault(number, (value, at))

    # resources

    def _resources(self, resources: dict[str, dict[str, bytes]]) -> None:
        """Passes ``{-# dialect_resources: {dialect: {key: "0x.."}}, external_resources: .. #-}``."""
        while not self.take("#-}"):
            section = self.demand(BARE_NAME, "a section of resources")
            self.expect(":")
            if section != "dialect_resources":
                self.balanced()
                self.skip()
            else:
                for dialect in self._keys():
                    blobs = resources.setdefault(dialect, {})
                    for key in self._keys():
                        blobs[key] = self._blob()
            self.take(",")

    def _keys(self) -> Iterator[str]:
        """Passes ``{key: .., key: ..}``; what follows a key is passed by the caller."""
        self.expect("{")
        is_first = True
        while not self.take("}"):
            if not is_first:
                self.expect(",")
            is_first = False
            key = self.string("a key") if self.sees('"') else self.demand(BARE_NAME, "the key of a resource")
            self.expect(":")
            yield key

    def _blob(self) -> bytes:
        at = self.at
        digits = self.string("hexadecimal data")
        if not _HEXADECIMAL.match(digits):
            raise self.error('a resource must be hexadecimal, such as "0x04000000"', at)
        return bytes.fromhex(digits[2:])
