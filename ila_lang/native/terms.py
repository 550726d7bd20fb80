"""Expressions as LLVM IR: each bit-vector of w bits is an ``iw``, and every operator is total.

The operators of LLVM are undefined (or *poison*) where SMT-LIB's have a value: for shifts by the width or more, and for
divisions by zero.  Such operands are replaced before the operation, and its result is after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from ila_lang.interpreter.compile import is_resolved, require_body, resolved
from ila_lang.language.expr import Expr, Function, postorder, variables_of
from ila_lang.language.sorts import BvSort, MemSort, Sort

#: Terms with wider parts are left to the interpreter: their code would grow with the square of the width.
WIDEST = 1024
#: Divisions of more bits would be calls of a library.
DIVIDED = 64

_DIRECT = {
    "and": "and",
    "or": "or",
    "xor": "xor",
    "bvand": "and",
    "bvor": "or",
    "bvxor": "xor",
    "bvadd": "add",
    "bvsub": "sub",
    "bvmul": "mul",
    "eq": "icmp eq",
    "bvult": "icmp ult",
    "bvule": "icmp ule",
    "bvslt": "icmp slt",
    "bvsle": "icmp sle",
}
_SHIFTS = {"bvshl": "shl", "bvlshr": "lshr", "bvashr": "ashr"}


class NotNative(ValueError):
    """What has no native code; the interpreter serves."""


def bits_of(sort: Sort) -> int:
    """The width of a number; 1 for a Boolean.  Raises NotNative where it is too wide."""
    if isinstance(sort, BvSort) and sort.width <= WIDEST:
        return sort.width
    if isinstance(sort, BvSort | MemSort):
        raise NotNative(f"A term of sort {sort} has no native code")
    return 1


def bytes_of(width: int) -> int:
    """The bytes of a word in a memory: 1, 2, 4 or 8, and from 65 bits on as many as it needs."""
    return next((n for n in (1, 2, 4, 8) if width <= 8 * n), -(-width // 8))


@dataclass(frozen=True)
class Place:
    """Where a number lies: a pointer to ``bits`` bits (zeros above the number's own)."""

    pointer: str
    bits: int
    offset: int = 0


@dataclass(frozen=True)
class Words:
    """Where a memory lies; with a ``length``, addresses from there on are errors of the given number."""

    pointer: str
    length: str = ""
    error: int = 0


class Module:
    """The text of a module: functions, each once."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.functions: dict[Function, str] = {}
        self.divisions: set[int] = set()

    @property
    def text(self) -> str:
        """The module's text."""
        return "\n".join(self.parts) + "\n"

    def add(self, head: str, body: Body) -> None:
        """Adds a function with a head and a finished body."""
        self.parts.append(
            f"define {head} {{\n" + "\n".join([*body.entry, "  br label %start", "start:", *body.lines]) + "\n}"
        )

    def function(self, function: Function) -> str:
        """The name of a function without memories among its parameters."""
        if function not in self.functions:
            content = require_body(function)
            body = Body(self)
            for i, parameter in enumerate(function.params):
                body.memo[parameter] = f"%p{i}"
            body.line(f"ret i{bits_of(function.result)} {body.term(content)}")
            self.functions[function] = name = f"@f{len(self.functions)}"
            parameters = ", ".join(f"i{bits_of(p.sort)} %p{i}" for i, p in enumerate(function.params))
            self.add(
                f"internal i{bits_of(function.result)} {name}({parameters}) nounwind willreturn memory(none)", body
            )
        return self.functions[function]

    def division(self, width: int) -> str:
        """The name of a function that gives quotient and remainder side by side; the divisor is not 0."""
        if width not in self.divisions:
            self.divisions.add(width)
            n, w = f"i{width}", f"i{2 * width}"
            self.parts.append(f"""define internal {w} @divide{width}({n} %a, {n} %b) noinline nounwind memory(none) {{
start:
  %wide = zext {n} %b to {w}
  %whole = zext {n} %a to {w}
  br label %loop
loop:
  %i = phi i32 [ {width}, %start ], [ %next, %loop ]
  %rest = phi {w} [ %whole, %start ], [ %after, %loop ]
  %quotient = phi {n} [ 0, %start ], [ %more, %loop ]
  %next = sub i32 %i, 1
  %by = zext i32 %next to {w}
  %part = shl {w} %wide, %by
  %fits = icmp uge {w} %rest, %part
  %less = sub {w} %rest, %part
  %after = select i1 %fits, {w} %less, {w} %rest
  %twice = shl {n} %quotient, 1
  %bit = zext i1 %fits to {n}
  %more = or {n} %twice, %bit
  %end = icmp eq i32 %next, 0
  br i1 %end, label %done, label %loop
done:
  %high = zext {n} %more to {w}
  %shifted = shl {w} %high, {width}
  %result = or {w} %shifted, %after
  ret {w} %result
}}""")
        return f"@divide{width}"


@dataclass
class Body:
    """The body of a function: lines, and what is known of terms at the present place.

    ``fail`` emits a jump to the end with an error: a condition, the error's number, a value and its width.  Single
    variables are forgotten only if they are in ``changing``.
    """

    module: Module
    fail: Callable[[str, int, str, int], None] | None = None
    changing: Set[Expr] = frozenset()
    entry: list[str] = field(default_factory=lambda: ["entry:"])
    lines: list[str] = field(default_factory=list)
    places: dict[Expr, Place] = field(default_factory=dict)
    memories: dict[Expr, Words] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.memo: dict[Expr, str] = {}
        #: what is not known after the present scope
        self._scope: list[Expr] = []
        #: the terms that a variable has a part in; each is forgotten once
        self._users: dict[Expr, list[Expr]] = {}

    def line(self, text: str) -> None:
        """One instruction."""
        self.lines.append("  " + text)

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"%t{self.count}"

    def let(self, text: str) -> str:
        """One instruction with a result."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def local(self, width: int) -> str:
        """A pointer to a new register."""
        name = self.fresh()
        self.entry.append(f"  {name} = alloca i{width}")
        return name

    def label(self) -> str:
        """A new label, to be placed by :meth:`place`."""
        return f"b{self.fresh()[2:]}"

    def place(self, label: str) -> None:
        """Begins the block of a label; the one before goes on here."""
        self.line(f"br label %{label}")
        self.lines.append(f"{label}:")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """Ends the block, and begins that of ``then``."""
        self.line(f"br i1 {condition}, label %{then}, label %{otherwise}")
        self.lines.append(f"{then}:")

    # -- what is known ------------------------------------------------------------------------

    def forget(self, changed: Iterable[Expr]) -> None:
        """Drops what was computed from variables that have other values from here on."""
        for variable in changed:
            for node in self._users.pop(variable, ()):
                self.memo.pop(node, None)

    def know(self, node: Expr, operand: str) -> None:
        """Notes the operand that is a term's value."""
        self.memo[node] = operand
        self._scope.append(node)
        if self.changing:
            for variable in variables_of(node):
                if variable in self.changing:
                    self._users.setdefault(variable, []).append(node)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block after which what was computed in it is not known, nor are its registers, whose names are free then.

        What is known before it, and has another value in it, must have been forgotten.
        """
        before, places, self._scope = self._scope, dict(self.places), []
        yield
        for node in self._scope:
            self.memo.pop(node, None)
        self._scope, self.places = before, places

    # -- terms --------------------------------------------------------------------------------

    def term(self, root: Expr) -> str:
        """The operand that is the value of ``root``."""
        order = postorder([root], self.memo)
        if not all(map(is_resolved, order)):
            root = resolved(root)
            order = postorder([root], self.memo)
        for node in order:
            if not isinstance(node.sort, MemSort):
                self.know(node, self._node(node))
        result = self.memo[root]
        checked = {memory for memory, words in self.memories.items() if words.length}
        if checked and not checked.isdisjoint(variables_of(root)):
            self._check(root)
        return result

    def _node(self, node: Expr) -> str:
        if node.op == "const":
            return str(node.value)
        width = bits_of(node.sort)
        if node.op == "var":
            return self.read(self.places[node], width)
        if node.op == "load":
            return self._load(node, width)
        if node.op == "apply":
            assert node.func is not None
            name = self.module.function(node.func)
            arguments = ", ".join(f"i{bits_of(a.sort)} {self.memo[a]}" for a in node.args)
            return self.let(f"call i{width} {name}({arguments})")
        operands = [self.memo[a] for a in node.args]
        return self._operator(node, width, bits_of(node.args[0].sort), operands)

    def _operator(self, node: Expr, width: int, w: int, v: list[str]) -> str:
        op, n = node.op, f"i{w}"
        if op in _DIRECT:
            return self.let(f"{_DIRECT[op]} {n} {v[0]}, {v[1]}")
        if op in _SHIFTS:
            return self._shift(op, w, v)
        match op:
            case "not" | "bvnot":
                return self.let(f"xor {n} {v[0]}, -1")
            case "bvneg":
                return self.let(f"sub {n} 0, {v[0]}")
            case "ite":
                return self.let(f"select i1 {v[0]}, i{width} {v[1]}, i{width} {v[2]}")
            case "concat":
                low = bits_of(node.args[1].sort)
                high = self.let(f"shl i{width} {self.extended('zext', v[0], w, width)}, {low}")
                return self.let(f"or disjoint i{width} {high}, {self.extended('zext', v[1], low, width)}")
            case "extract":
                low = int(node.params[1])
                moved = self.let(f"lshr {n} {v[0]}, {low}") if low else v[0]
                return self.extended("trunc", moved, w, width)
            case "zext" | "sext":
                return self.extended(op, v[0], w, width)
            case "bvudiv" | "bvurem":
                return self._divided(op, node, w, v)
        raise NotNative(f"Operator {op} has no native code")

    def extended(self, how: str, value: str, width: int, to: int) -> str:
        """A number of another width: ``how`` is zext, sext or trunc."""
        return value if width == to else self.let(f"{how} i{width} {value} to i{to}")

    def _shift(self, op: str, w: int, v: list[str]) -> str:
        n, how = f"i{w}", _SHIFTS[op]  # w itself is an iw, for w < 2^w
        inside = self.let(f"icmp ult {n} {v[1]}, {w}")
        within = self.let(f"select i1 {inside}, {n} {v[1]}, {n} {w - 1 if how == 'ashr' else 0}")
        moved = self.let(f"{how} {n} {v[0]}, {within}")
        return moved if how == "ashr" else self.let(f"select i1 {inside}, {n} {moved}, {n} 0")

    def _divided(self, op: str, node: Expr, w: int, v: list[str]) -> str:
        n, divisor, zero = f"i{w}", v[1], ""
        if not node.args[1].is_const or not node.args[1].value:
            zero = self.let(f"icmp eq {n} {v[1]}, 0")
            divisor = self.let(f"select i1 {zero}, {n} 1, {n} {v[1]}")
        if w <= DIVIDED:
            result = self.let(f"{'udiv' if op == 'bvudiv' else 'urem'} {n} {v[0]}, {divisor}")
        else:
            both = self.let(f"call i{2 * w} {self.module.division(w)}({n} {v[0]}, {n} {divisor})")
            part = self.let(f"lshr i{2 * w} {both}, {w}") if op == "bvudiv" else both
            result = self.extended("trunc", part, 2 * w, w)
        if not zero:
            return result
        return self.let(f"select i1 {zero}, {n} {'-1' if op == 'bvudiv' else v[0]}, {n} {result}")

    # -- places -------------------------------------------------------------------------------

    def read(self, place: Place, width: int) -> str:
        """The number of ``width`` bits at a place."""
        pointer = self._moved(place)
        return self.extended("trunc", self.let(f"load i{place.bits}, ptr {pointer}"), place.bits, width)

    def write(self, place: Place, width: int, value: str) -> None:
        """Puts a number of ``width`` bits at a place."""
        pointer = self._moved(place)
        self.line(f"store i{place.bits} {self.extended('zext', value, width, place.bits)}, ptr {pointer}")

    def _moved(self, place: Place) -> str:
        if not place.offset:
            return place.pointer
        return self.let(f"getelementptr inbounds i8, ptr {place.pointer}, i64 {place.offset}")

    def _load(self, node: Expr, width: int) -> str:
        memory, address = node.args
        words = self.memories[memory]
        size = bytes_of(width)
        where, bits = self.memo[address], bits_of(address.sort)
        pointer = self.element(words.pointer, address, where, size, not words.length)
        if words.length:
            # what no condition selects may leave an array; what is read there instead is not used
            spare = self.local(8 * size)
            self.entry.append(f"  store i{8 * size} 0, ptr {spare}")
            inside = self._inside(words, where, bits)
            pointer = self.let(f"select i1 {inside}, ptr {pointer}, ptr {spare}")
        word = self.let(f"load i{8 * size}, ptr {pointer}, align {size if size <= 8 else 1}")
        return self.extended("trunc", word, 8 * size, width)

    def store(self, memory: Expr, address: Expr, where: str, value: str) -> None:
        """Writes a word of a memory, which may be chosen by conditions, at an address that is ``where``."""
        assert isinstance(memory.sort, MemSort)
        width, bits = memory.sort.data_width, memory.sort.addr_width
        size = bytes_of(width)
        words = self._chosen(memory)
        if words.length:
            assert self.fail is not None
            outside = self.let(f"xor i1 {self._inside(words, where, bits)}, -1")
            self.fail(outside, words.error, where, bits)
        pointer = self.element(words.pointer, address, where, size, True)
        wide = self.extended("zext", value, width, 8 * size)
        self.line(f"store i{8 * size} {wide}, ptr {pointer}, align {size if size <= 8 else 1}")

    def _chosen(self, memory: Expr) -> Words:
        if memory.op == "var":
            return self.memories[memory]
        if memory.op != "ite":
            raise NotNative(f"A store to {memory.describe()} has no native code")
        condition, one, other = self.term(memory.args[0]), self._chosen(memory.args[1]), self._chosen(memory.args[2])
        if one.length or other.length:
            raise NotNative("A store to one of several arrays has no native code")
        return Words(self.let(f"select i1 {condition}, ptr {one.pointer}, ptr {other.pointer}"))

    def element(self, base: str, address: Expr, where: str, size: int, inside: bool) -> str:
        """A pointer to the word of ``size`` bytes at an address; of neighbours, LLVM sees that they are."""
        width = bits_of(address.sort)
        if address.op == "concat" and width < 64 and all(a in self.memo for a in address.args):
            high, low = address.args
            wide = self.extended("zext", self.memo[high], high.width, 64)
            row = self._moved_by(base, self.let(f"shl nuw nsw i64 {wide}, {low.width}"), size, inside)
            return self._moved_by(row, self.extended("zext", self.memo[low], low.width, 64), size, inside)
        return self._moved_by(base, self.extended("zext" if width < 64 else "trunc", where, width, 64), size, inside)

    def _moved_by(self, base: str, index: str, size: int, inside: bool) -> str:
        """A pointer so many words of ``size`` bytes on."""
        place = index if size in (1, 2, 4, 8) else self.let(f"mul i64 {index}, {size}")
        unit = f"i{8 * size}" if size in (1, 2, 4, 8) else "i8"
        return self.let(f"getelementptr {'inbounds ' * inside}{unit}, ptr {base}, i64 {place}")

    def _inside(self, words: Words, address: str, width: int) -> str:
        wide = max(width, 64)
        index = self.extended("zext", address, width, wide)
        return self.let(f"icmp ult i{wide} {index}, {self.extended('zext', words.length, 64, wide)}")

    def _check(self, root: Expr) -> None:
        """Ends the run where a load that the value of ``root`` depends on leaves its array."""
        reached: dict[Expr, str] = {root: "true"}
        order = postorder([root])
        for node in reversed(order):
            here = reached[node]
            for i, arg in enumerate(node.args):
                way = here
                if node.op == "ite" and i:
                    test = self.memo[node.args[0]]
                    test = test if i == 1 else self.let(f"xor i1 {test}, -1")
                    way = self.let(f"select i1 {here}, i1 {test}, i1 false")
                before = reached.get(arg)
                reached[arg] = way if before in (None, way) or way == "true" else self.let(f"or i1 {before}, {way}")
        for node in order:
            if node.op == "load" and self.memories[node.args[0]].length:
                words, address, bits = self.memories[node.args[0]], self.memo[node.args[1]], bits_of(node.args[1].sort)
                outside = self.let(f"xor i1 {self._inside(words, address, bits)}, -1")
                assert self.fail is not None
                bad = self.let(f"select i1 {reached[node]}, i1 {outside}, i1 false")
                self.fail(bad, words.error, address, bits)


def scalars_and_memories(variables: Mapping[str, Expr]) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """Variables by kind."""
    memories = {n: v for n, v in variables.items() if isinstance(v.sort, MemSort)}
    return {n: v for n, v in variables.items() if n not in memories}, memories
