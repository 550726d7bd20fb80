"""Reading the JSON documents of :mod:`ila_lang.text.portable`, with every sort checked again.

A document is not trusted: each name, reference, width and sort is checked, and what does not fit raises
:class:`PortableError` with the place in the document, such as ``a[12].s.w``.  Nodes are taken as they are
written, without simplifying them again, so that what is read has the digest of what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ila_lang.language.build import BOOLEAN, COMPARISONS, SHIFTS
from ila_lang.language.expr import Expr, Function, bool_const, bv_const, var
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store
from ila_lang.language.model import Ila
from ila_lang.language.sorts import BOOL, BvSort, MemSort, Sort, bv, mem

BOOL_KIND, BV_KIND, MEM_KIND = 1, 2, 3
VAR_KIND, CONST_KIND, OP_KIND = 1, 2, 3
ARITHMETIC = frozenset({"bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvand", "bvor", "bvxor"}) | SHIFTS
_T = TypeVar("_T")


class PortableError(ValueError):
    """A document that is not a model; the message begins with the place in the document."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


def ila_from_json(document: object) -> Ila:
    """The model in a document; raises :class:`PortableError` where it is malformed."""
    return _read(document, _Reader.ila)


def fragment_from_json(document: object) -> Fragment:
    """The program fragment in a document; raises :class:`PortableError` where it is malformed."""
    return _read(document, _Reader.fragment)


def kernel_from_json(document: object) -> Kernel:
    """The kernel in a document; raises :class:`PortableError` where it is malformed."""
    return _read(document, _Reader.kernel)


def function_from_json(document: object) -> Function:
    """The function in a document; raises :class:`PortableError` where it is malformed."""

    def top(reader: _Reader, item: _Item) -> Function:
        return reader.functions[item.index(len(reader.functions), "functions")]

    return _read(document, top)


def _read(document: object, top: Callable[[_Reader, _Item], _T]) -> _T:
    root = _Item(document, "")
    root.keys("a", "f", "t")
    reader = _Reader(root["a"].items(), root["f"].items())
    item = root["t"]
    with _at(item.path):
        return top(reader, item)


@contextmanager
def _at(path: str) -> Iterator[None]:
    """Gives the place to what the constructors of the language complain about."""
    try:
        yield
    except PortableError:
        raise
    except (TypeError, ValueError) as error:
        raise PortableError(path, str(error)) from error
    except RecursionError as error:
        raise PortableError(path, "nested too deeply") from error


class _Item:
    """One value of the document and its place."""

    def __init__(self, value: object, path: str) -> None:
        self.value = value
        self.path = path

    def fail(self, reason: str) -> PortableError:
        return PortableError(self.path or "document", reason)

    def of(self, kind: type[_T], what: str) -> _T:
        # bool is an int in Python, but not in JSON
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            raise self.fail(f"must be {what}, not {self.value!r:.60}")
        return self.value

    def keys(self, *required: str, optional: Sequence[str] = ()) -> None:
        content = self.of(dict, "an object")
        for key in required:
            if key not in content:
                raise self.fail(f"must have the key {key}")
        for key in content:
            if key not in required and key not in optional:
                raise self.fail(f"must not have the key {key}")

    def __contains__(self, key: str) -> bool:
        return key in self.of(dict, "an object")

    def __getitem__(self, key: str) -> _Item:
        return _Item(self.of(dict, "an object")[key], f"{self.path}.{key}" if self.path else key)

    def items(self) -> list[_Item]:
        values = self.of(list, "a list")
        return [_Item(value, f"{self.path}[{i}]") for i, value in enumerate(values)]

    def pair(self) -> tuple[str, _Item]:
        parts = self.items()
        if len(parts) != 2:
            raise self.fail(f"must be a pair, not {len(parts)} values")
        return parts[0].text(), parts[1]

    def text(self) -> str:
        return self.of(str, "text")

    def integer(self) -> int:
        return self.of(int, "an integer")

    def hexadecimal(self) -> int:
        text = self.text()
        digits = text[2:]
        if not text.startswith("0x") or not digits or set(digits) - set("0123456789abcdef"):
            raise self.fail(f"must be hexadecimal text such as 0x1f, not {text!r:.60}")
        return int(digits, 16)

    def index(self, count: int, what: str) -> int:
        position = self.integer()
        if not 0 <= position < count:
            raise self.fail(f"must name one of the {count} {what} before it, not {position}")
        return position


class _Reader:
    """Builds nodes and functions in the order of the document, then objects that refer to them."""

    def __init__(self, nodes: list[_Item], functions: list[_Item]) -> None:
        self.nodes: list[Expr] = []
        self.functions: list[Function] = []
        waiting = list(reversed(functions))
        for item in nodes:
            # A function's body stands before its first application: read functions when they are asked for.
            if isinstance(item.value, dict) and "f" in item.value:
                number = item["f"].integer()
                while waiting and len(self.functions) <= number:
                    self.functions.append(self.function(waiting.pop()))
            with _at(item.path):
                self.nodes.append(self.node(item))
        while waiting:
            self.functions.append(self.function(waiting.pop()))

    def sort(self, item: _Item) -> Sort:
        kind = item["u"].integer() if "u" in item else 0
        with _at(item.path):
            if kind == BOOL_KIND:
                item.keys("u")
                return BOOL
            if kind == BV_KIND:
                item.keys("u", "w")
                return bv(item["w"].integer())
            if kind == MEM_KIND:
                item.keys("u", "a", "d")
                return mem(item["a"].integer(), item["d"].integer())
        raise item.fail("must have a kind u of 1, 2 or 3")

    def node(self, item: _Item) -> Expr:
        kind = item["u"].integer() if "u" in item else 0
        if kind == VAR_KIND:
            item.keys("u", "s", "n")
            return var(item["n"].text(), self.sort(item["s"]))
        if kind == CONST_KIND:
            item.keys("u", "s", "v")
            sort = self.sort(item["s"])
            if sort == BOOL:
                return bool_const(item["v"].of(bool, "true or false"))
            if not isinstance(sort, BvSort):
                raise item["s"].fail("must not be the sort of a memory")
            return bv_const(item["v"].hexadecimal(), sort.width)
        if kind == OP_KIND:
            item.keys("u", "s", "o", "a", optional=("p", "f"))
            return self.application(item)
        raise item.fail("must have a kind u of 1, 2 or 3")

    def application(self, item: _Item) -> Expr:
        op, sort = item["o"].text(), self.sort(item["s"])
        args = tuple(self.term(a) for a in item["a"].items())
        params: tuple[int | str, ...] = tuple(p.integer() for p in item["p"].items()) if "p" in item else ()
        function = None
        if op == "apply":
            if "f" not in item or params:
                raise item.fail("must have a function f and no parameters p")
            function = self.functions[item["f"].index(len(self.functions), "functions")]
            expected: Sort = function.result
            if [a.sort for a in args] != [p.sort for p in function.params]:
                raise item["a"].fail(f"must have the sorts of the parameters of {function.name}")
            params = (function.name,)
        elif "f" in item:
            raise item.fail(f"must not have a function f: the operator is {op}")
        else:
            expected = result_sort(op, [a.sort for a in args], [int(p) for p in params])
        if sort != expected:
            raise item["s"].fail(f"must be {expected}, the sort of {op}, not {sort}")
        return Expr._make(op, args, params, expected, function)

    def term(self, item: _Item) -> Expr:
        return self.nodes[item.index(len(self.nodes), "nodes")]

    def variable(self, item: _Item) -> Expr:
        term = self.term(item)
        if term.op != "var":
            raise item.fail(f"must name a variable, not {term.describe()}")
        return term

    def named(self, item: _Item) -> list[tuple[str, Expr, _Item]]:
        terms: list[tuple[str, Expr, _Item]] = []
        for entry in item.items():
            name, value = entry.pair()
            if name in {n for n, _, _ in terms}:
                raise entry.fail(f"must name {name} only once")
            terms.append((name, self.term(value), entry))
        return terms

    def doc(self, item: _Item, key: str = "doc") -> str:
        return item[key].text() if key in item else ""

    def function(self, item: _Item) -> Function:
        item.keys("n", "p", "r", "b", optional=("doc",))
        params: dict[str, Sort] = {}
        for p in item["p"].items():
            p.keys("n", "s")
            if p["n"].text() in params:
                raise p.fail(f"must name {p['n'].text()} only once")
            params[p["n"].text()] = self.sort(p["s"])
        body = None if item["b"].value is None else self.term(item["b"])
        with _at(item.path):
            function = Function(item["n"].text(), params, self.sort(item["r"]), None, self.doc(item))
        with _at(item["b"].path):
            function.body = body
        return function

    def ila(self, item: _Item) -> Ila:
        item.keys("n", "i", "s", "init", "v", "instr", optional=("doc",))
        ila = Ila(item["n"].text(), self.doc(item))
        inits = dict(entry.pair() for entry in item["init"].items())
        for entry in item["i"].items():
            entry.keys("n", "s")
            with _at(entry.path):
                ila.input(entry["n"].text(), self.sort(entry["s"]))
        for entry in item["s"].items():
            entry.keys("n", "s", optional=("doc",))
            init = inits.pop(entry["n"].text(), None)
            sort = self.sort(entry["s"])
            value = None if init is None else init.hexadecimal()
            if init is not None and sort == BOOL and value not in (0, 1):
                raise init.fail("must be 0x0 or 0x1, the reset value of a Boolean")
            with _at(entry.path):
                ila.state(entry["n"].text(), sort, value, self.doc(entry))
        for name in inits:
            raise item["init"].fail(f"must name states only, not {name}")
        with _at(item["v"].path):
            ila.set_valid(self.term(item["v"]))
        for entry in item["instr"].items():
            with _at(entry.path):
                self.instruction(ila, entry)
        return ila

    def instruction(self, ila: Ila, item: _Item) -> None:
        item.keys("n", "d", "u", optional=("doc", "reserved", "k", "g"))
        instruction = ila.instruction(item["n"].text(), self.doc(item))
        instruction.set_decode(self.term(item["d"]))
        for name, value, entry in self.named(item["u"]):
            if name not in ila.states:
                raise entry.fail(f"must update a state of {ila.name}, not {name}")
            with _at(entry.path):
                instruction.update(ila.states[name], value)
        if "reserved" in item:
            instruction.reserved = item["reserved"].text()
        if ("k" in item) != ("g" in item):
            raise item.fail("must have both a kernel k and its start condition g, or neither")
        if "k" in item:
            with _at(item["k"].path):
                kernel = self.kernel(item["k"])
                for name, value in kernel.on_done.items():
                    if name not in ila.states or ila.states[name].sort != value.sort:
                        raise item["k"]["e"].fail(f"must set states of {ila.name} at their sorts, not {name}")
                instruction.start(kernel, self.term(item["g"]))

    def kernel(self, item: _Item) -> Kernel:
        item.keys("n", "b", "e", optional=("doc",))
        body = [self.statement(s) for s in item["b"].items()]
        on_done = {name: value for name, value, _ in self.named(item["e"])}
        return Kernel(item["n"].text(), self.doc(item), body, on_done)

    def statement(self, item: _Item) -> Statement:
        kind = item["o"].text() if "o" in item else ""
        with _at(item.path):
            match kind:
                case "for":
                    item.keys("o", "c", "e", "b")
                    counter, extent = self.variable(item["c"]), self.term(item["e"])
                    _ = counter.width, extent.width  # both must be bit-vectors
                    return For(counter, extent, tuple(self.statement(s) for s in item["b"].items()))
                case "let":
                    item.keys("o", "t", "v", optional=("up",))
                    target, value = self.variable(item["t"]), self.term(item["v"])
                    self.same(item, target.sort, value.sort)
                    return Let(target, value, "up" in item and item["up"].of(bool, "true or false"))
                case "load":
                    item.keys("o", "t", "m", "a")
                    target, memory = self.variable(item["t"]), self.term(item["m"])
                    address = self.term(item["a"])
                    self.same(item, target.sort, memory.load(address).sort)
                    return Load(target, memory, address)
                case "store":
                    item.keys("o", "m", "a", "v")
                    memory, address, value = (self.term(item[k]) for k in "mav")
                    memory.store(address, value)  # checks the sorts
                    return Store(memory, address, value)
                case "command":
                    item.keys("o", "i", optional=("note",))
                    inputs = tuple((name, value) for name, value, _ in self.named(item["i"]))
                    return Command(inputs, self.doc(item, "note"))
        raise item.fail("must have an o of for, let, load, store or command")

    def same(self, item: _Item, target: Sort, value: Sort) -> None:
        if target != value:
            raise item.fail(f"must give its target a value of sort {target}, not {value}")

    def fragment(self, item: _Item) -> Fragment:
        item.keys("n", "l", "p", "t", "k", "idle", optional=("doc",))
        ila = self.ila(item["l"])
        parameters = {name: value for name, value, _ in self.named(item["p"])}
        tensors = {name: value for name, value, _ in self.named(item["t"])}
        idle: dict[str, int] = {}
        for entry in item["idle"].items():
            name, value = entry.pair()
            if name not in ila.states or name in idle:
                raise entry.fail(f"must name a state of {ila.name} once, not {name}")
            idle[name] = value.hexadecimal()
        program = self.kernel(item["k"])
        return Fragment(item["n"].text(), ila, parameters, tensors, program, self.doc(item), idle)


def result_sort(op: str, sorts: Sequence[Sort], params: Sequence[int]) -> Sort:
    """The sort of ``op`` on operands of ``sorts``; raises ValueError where they do not fit it."""
    match op, list(sorts), list(params):
        case "not", [s], [] if s == BOOL:
            return BOOL
        case "bvnot" | "bvneg", [BvSort() as s], []:
            return s
        case _, [s, t], [] if op in BOOLEAN and s == t == BOOL:
            return BOOL
        case "eq", [s, t], [] if s == t:
            return BOOL
        case _, [BvSort() as s, t], [] if s == t and (op in COMPARISONS or op in ARITHMETIC):
            return BOOL if op in COMPARISONS else s
        case "ite", [c, s, t], [] if c == BOOL and s == t:
            return s
        case "concat", [BvSort(a), BvSort(b)], []:
            return bv(a + b)
        case "extract", [BvSort(w)], [hi, lo] if 0 <= lo <= hi < w:
            return bv(hi - lo + 1)
        case "zext" | "sext", [BvSort(w)], [to] if to > w:
            return bv(to)
        case "load", [MemSort(a, d), BvSort(w)], [] if w == a:
            return bv(d)
        case "store", [MemSort(a, d) as s, BvSort(w), BvSort(v)], [] if w == a and v == d:
            return s
    raise ValueError(
        f"operator {op!r:.40} must fit its operands, not {', '.join(map(str, sorts)) or 'none'} "
        f"with parameters {list(params)}"
    )
