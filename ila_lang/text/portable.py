"""Models, fragments and functions as JSON, and digests of what they mean.

The document follows the shape of ILAng's portable format: one global object whose ``a`` is the list of
all expression nodes, ``f`` the list of functions and ``t`` the top object, with one-letter keys inside.  A
node is named by its position in ``a`` and refers only to nodes before it; positions are handed out in
postorder of first use, so that the same model always gives the same text.

========== =================================================================================================
object     keys
========== =================================================================================================
sort       ``u`` kind (1 Boolean, 2 bit-vector, 3 memory), ``w`` width, ``a`` address width, ``d`` data width
node       ``u`` kind (1 variable, 2 literal, 3 operator), ``s`` sort, ``n`` name, ``v`` value (a Boolean,
           or hexadecimal text), ``o`` operator, ``a`` operands, ``p`` literal parameters, ``f`` function
function   ``n`` name, ``p`` parameters, ``r`` result sort, ``b`` body (null: uninterpreted)
ILA        ``n`` name, ``i`` inputs, ``s`` states, ``init`` reset values, ``v`` valid, ``instr`` instructions
instr      ``n`` name, ``d`` decode, ``u`` updates, ``k`` kernel, ``g`` start condition, ``reserved``
kernel     ``n`` name, ``b`` statements, ``e`` values of states at the end
statement  ``o`` is ``for`` (``c`` counter, ``e`` extent, ``b`` body), ``let`` (``t`` target, ``v`` value,
           ``up`` for an assignment), ``load`` (``t``, ``m`` memory, ``a`` address), ``store`` (``m``,
           ``a``, ``v``) or ``command`` (``i`` inputs, ``note``)
fragment   ``n`` name, ``l`` ILA, ``p`` parameters, ``t`` tensors, ``k`` program, ``idle`` known state
========== =================================================================================================

``doc`` holds documentation wherever there is some.  Unknown keys are refused when a document is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ila_lang.language.expr import Expr, Function, postorder
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store
from ila_lang.language.model import Ila, Instruction
from ila_lang.language.sorts import BoolSort, BvSort, Sort

from .portable_read import BOOL_KIND, BV_KIND, CONST_KIND, MEM_KIND, OP_KIND, VAR_KIND

Json = dict[str, Any]


def canonical_text(obj: object) -> str:
    """``obj`` as JSON text with sorted keys, no spaces and ASCII characters only.

    >>> canonical_text({"b": [1, True], "a": "é"})
    '{"a":"\\\\u00e9","b":[1,true]}'
    """
    return json.dumps(obj, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def ila_to_json(ila: Ila) -> Json:
    """A model as a document for :func:`ila_from_json`."""
    return _Writer().document(_Writer.ila, ila)


def fragment_to_json(fragment: Fragment) -> Json:
    """A program fragment, with the model it is for, as a document."""
    return _Writer().document(_Writer.fragment, fragment)


def function_to_json(function: Function) -> Json:
    """A function, with its body and the functions that it calls, as a document."""
    return _Writer().document(_Writer.function, function)


def kernel_to_json(kernel: Kernel) -> Json:
    """A kernel as a document."""
    return _Writer().document(_Writer.kernel, kernel)


def digest(*objects: Ila | Fragment | Function | Kernel) -> str:
    """SHA-256 (hexadecimal) of what the objects mean, in the order given.

    Names, sorts, order of declaration and every term count.  Documentation does not: not the ``doc`` texts,
    not the notes of commands, not the reason why an instruction is reserved (that it is reserved counts).
    """
    return hashlib.sha256(canonical_text([_meaning(x) for x in objects]).encode("ascii")).hexdigest()


def functions_in(terms: Iterable[Expr]) -> tuple[Function, ...]:
    """The functions that occur in terms, or in the body of another one; each once."""
    writer = _Writer(docs=False)
    for term in terms:
        writer.term(term)
    return tuple(writer.function_ids)


def functions_of(fragment: Fragment) -> tuple[Function, ...]:
    """The functions that occur anywhere in a fragment, its model, or the body of another one; each once."""
    writer = _Writer(docs=False)
    writer.fragment(fragment)
    return tuple(writer.function_ids)


def _meaning(obj: object) -> Json:
    writer = _Writer(docs=False)
    match obj:
        case Ila():
            return {"ila": writer.document(_Writer.ila, obj)}
        case Fragment():
            return {"fragment": writer.document(_Writer.fragment, obj)}
        case Function():
            return {"function": writer.document(_Writer.function, obj)}
        case Kernel():
            return {"kernel": writer.document(_Writer.kernel, obj)}
    raise TypeError(f"Only models, fragments, functions and kernels have a digest, not {obj!r}")


def sort_to_json(sort: Sort) -> Json:
    """A sort as an object."""
    match sort:
        case BoolSort():
            return {"u": BOOL_KIND}
        case BvSort(width=width):
            return {"u": BV_KIND, "w": width}
    return {"u": MEM_KIND, "a": sort.addr_width, "d": sort.data_width}


@dataclass(frozen=True)
class _Written:
    """A model as a writer without documentation wrote it first of all, and everything that was read for that."""

    read: list[object]
    top: Json
    nodes: list[Json]
    functions: list[Json]
    node_ids: dict[Expr, int]
    function_ids: dict[Function, int]

    def holds(self, ila: Ila) -> bool:
        """Whether writing the model again would read the same."""
        now = list(_read(ila, self.function_ids))
        return len(now) == len(self.read) and all(map(_one, now, self.read))


_WRITTEN: WeakKeyDictionary[Ila, _Written] = WeakKeyDictionary()
"""The last record of each model, because many fragments have one model; no document shares it."""


def _read(ila: Ila, functions: Iterable[Function]) -> Iterator[object]:
    """What a writer without documentation reads of a model with these functions; a number goes before what varies.

    Terms and statements never change, so they stand for all that is below them.  Functions get their bodies late.
    """
    yield from (ila.name, len(ila.inputs), len(ila.states), len(ila.inits), len(ila.instructions), ila.valid)
    for terms in (ila.inputs, ila.states, ila.inits):
        for name, value in terms.items():
            yield from (name, value)
    for i in ila.instructions.values():
        yield from (i.name, i.decode, bool(i.reserved), len(i.updates), *i.updates, *i.updates.values())
        yield from (i.kernel_guard, i.kernel is None)
        if i.kernel is not None:
            yield from (i.kernel.name, len(i.kernel.body), *i.kernel.body)
            yield from (len(i.kernel.on_done), *i.kernel.on_done, *i.kernel.on_done.values())
    for function in functions:
        yield from (function, function.name, function.params, function.result, function.body)


def _one(left: object, right: object) -> bool:
    """Whether two things that were read are the same one; names and numbers are compared by value."""
    return left is right or (isinstance(left, str | int) and type(left) is type(right) and left == right)


class _Writer:
    """Numbers nodes and functions while the objects that use them are written."""

    def __init__(self, *, docs: bool = True) -> None:
        self.docs = docs
        self.nodes: list[Json] = []
        self.functions: list[Json] = []
        self.node_ids: dict[Expr, int] = {}
        self.function_ids: dict[Function, int] = {}

    def document(self, write: Callable[[_Writer, Any], Any], top: object) -> Json:
        written = write(self, top)
        return {"a": self.nodes, "f": self.functions, "t": written}

    def texts(self, **texts: str) -> Json:
        return {key: text for key, text in texts.items() if text and self.docs}

    # -- expressions ----------------------------------------------------------------------------

    def term(self, root: Expr) -> int:
        for node in postorder([root], self.node_ids):  # the operands of what has a number have one, too
            if node not in self.node_ids:
                written = self.node(node)  # may number nodes of a function's body first
                self.node_ids[node] = len(self.nodes)
                self.nodes.append(written)
        return self.node_ids[root]

    def node(self, node: Expr) -> Json:
        sort = sort_to_json(node.sort)
        if node.op == "var":
            return {"u": VAR_KIND, "s": sort, "n": node.name}
        if node.op == "const":
            value = bool(node.value) if isinstance(node.sort, BoolSort) else hex(node.value)
            return {"u": CONST_KIND, "s": sort, "v": value}
        written: Json = {"u": OP_KIND, "s": sort, "o": node.op, "a": [self.node_ids[a] for a in node.args]}
        if node.func is not None:
            written["f"] = self.function(node.func)
        elif node.params:
            written["p"] = list(node.params)
        return written

    def function(self, function: Function) -> int:
        if function not in self.function_ids:
            skip = len(function.name) + 1  # parameters are named <function>.<parameter>
            written = {
                "n": function.name,
                "p": [{"n": p.name[skip:], "s": sort_to_json(p.sort)} for p in function.params],
                "r": sort_to_json(function.result),
                "b": None if function.body is None else self.term(function.body),
                **self.texts(doc=function.doc),
            }
            self.function_ids[function] = len(self.functions)
            self.functions.append(written)
        return self.function_ids[function]

    def named(self, terms: Iterable[tuple[str, Expr]]) -> list[list[Any]]:
        return [[name, self.term(term)] for name, term in terms]

    # -- models ---------------------------------------------------------------------------------

    def ila(self, ila: Ila) -> Json:
        if self.docs or self.nodes or self.functions:
            return self._ila(ila)
        written = _WRITTEN.get(ila)
        if written is None or not written.holds(ila):
            top = self._ila(ila)
            parts = list(self.nodes), list(self.functions), dict(self.node_ids), dict(self.function_ids)
            _WRITTEN[ila] = _Written(list(_read(ila, self.function_ids)), top, *parts)
            return top
        self.nodes, self.functions = list(written.nodes), list(written.functions)
        self.node_ids, self.function_ids = dict(written.node_ids), dict(written.function_ids)
        return written.top

    def _ila(self, ila: Ila) -> Json:
        return {
            "n": ila.name,
            "i": [{"n": n, "s": sort_to_json(v.sort)} for n, v in ila.inputs.items()],
            "s": [
                {"n": n, "s": sort_to_json(v.sort), **self.texts(doc=ila.state_docs[n])} for n, v in ila.states.items()
            ],
            "init": [[n, hex(ila.inits[n])] for n in ila.states if n in ila.inits],
            "v": self.term(ila.valid),
            "instr": [self.instruction(i) for i in ila.instructions.values()],
            **self.texts(doc=ila.doc),
        }

    def instruction(self, instruction: Instruction) -> Json:
        written: Json = {
            "n": instruction.name,
            "d": self.term(instruction.decode),
            "u": self.named(instruction.updates.items()),
            **self.texts(doc=instruction.doc),
        }
        if instruction.reserved:
            written["reserved"] = instruction.reserved if self.docs else True
        if instruction.kernel is not None:
            written["k"] = self.kernel(instruction.kernel)
            written["g"] = self.term(instruction.kernel_guard)
        return written

    def kernel(self, kernel: Kernel) -> Json:
        return {
            "n": kernel.name,
            "b": [self.statement(s) for s in kernel.body],
            "e": self.named(kernel.on_done.items()),
            **self.texts(doc=kernel.doc),
        }

    def statement(self, statement: Statement) -> Json:
        match statement:
            case For(counter=counter, extent=extent, body=body):
                return {
                    "o": "for",
                    "c": self.term(counter),
                    "e": self.term(extent),
                    "b": [self.statement(s) for s in body],
                }
            case Let(target=target, value=value, update=update):
                mark = {"up": True} if update else {}
                return {"o": "let", "t": self.term(target), "v": self.term(value), **mark}
            case Load(target=target, memory=memory, address=address):
                return {"o": "load", "t": self.term(target), "m": self.term(memory), "a": self.term(address)}
            case Store(memory=memory, address=address, value=value):
                return {"o": "store", "m": self.term(memory), "a": self.term(address), "v": self.term(value)}
            case Command(inputs=inputs, note=note):
                return {"o": "command", "i": self.named(inputs), **self.texts(note=note)}

    def fragment(self, fragment: Fragment) -> Json:
        return {
            "n": fragment.name,
            "l": self.ila(fragment.ila),
            "p": self.named(fragment.parameters.items()),
            "t": self.named(fragment.tensors.items()),
            "k": self.kernel(fragment.program),
            "idle": [[name, hex(value)] for name, value in sorted(fragment.idle.items())],
            **self.texts(doc=fragment.doc),
        }
