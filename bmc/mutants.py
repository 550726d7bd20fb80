"""Mutants of a mapping: the same claim with one place of a program or model changed.

A place is one of the device's side or of the IR's: a statement of the program, or of an instruction that a run at a
small size executes; a term of such a statement, or of the instruction's decode, updates or start condition.  Statements
are dropped, doubled, exchanged with the next one or, if they are nested loops, interchanged.  In a term one node is
changed: its operator, the order of its operands, a constant, a variable, an index or extent by one, or the bits that an
extract takes.  What a mutant means is again a mapping, which may even be right.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from random import Random

from ila_lang import Expr, Fragment, Ila, Instruction, Kernel, const, ite, postorder, show_expr, substitute
from ila_lang.interpreter.compile import NoBodyError
from ila_lang.language.build import apply_op, binary, extend
from ila_lang.language.expr import variables_of
from ila_lang.language.kernel import Command, For, Let, Load, Statement, Store
from ila_lang.language.sorts import BOOL, BvSort, MemSort
from ila_lang.mapping import SizeError, TensorMapping
from ila_lang.text.listing import show_statements

from .runner import Runner

_DRAWS = 200
"""This number of draws in a row without a new mutant ends the drawing."""

_SHOWN = 100
"""Characters of a term in a mutant's description."""


@dataclass(frozen=True)
class Mutant:
    """A changed mapping, and the change in words."""

    what: str
    mapping: TensorMapping


def mutants(mapping: TensorMapping, draw: Random) -> Iterator[Mutant]:
    """Mutants that differ from the mapping and from each other in what was changed, in random order.

    Places are drawn from the parts (program, kernels, other terms of an instruction) of both sides with equal
    probability.  The iterator ends where draws bring nothing new.
    """
    parts = [part for side in ("device", "ir") for part in _parts(mapping, side)]
    seen: set[str] = set()
    fruitless = 0
    while fruitless < _DRAWS:
        fruitless += 1
        part = draw.choice(parts)
        try:
            mutant = part.changed(draw)
        except (TypeError, ValueError):  # it is no well-formed program any more: an error of its author, not a claim
            continue
        if mutant is not None and mutant.what not in seen:
            seen.add(mutant.what)
            fruitless = 0
            yield mutant


# -- places --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Body:
    """A kernel or program, and what makes the mapping with another one."""

    where: str
    kernel: Kernel
    put: Callable[[Kernel], TensorMapping]

    def changed(self, draw: Random) -> Mutant | None:
        """The mapping with one statement, or one term of one, changed."""
        paths = list(_paths(self.kernel.body))
        if not paths:
            return None
        path = draw.choice(paths)
        statement = _at(self.kernel.body, path)
        if draw.random() < 0.25:
            options = list(statement_changes(statement, _next(self.kernel.body, path)))
            what, count, new = draw.choice(options)
            body = _replaced(self.kernel.body, path, count, new)
        else:
            places = list(term_places(statement))
            what, term, put = draw.choice(places)
            changed = _changed(term, draw)
            if changed is None:
                return None
            text, other = changed
            what, body = f"{what}: {text}", _replaced(self.kernel.body, path, 1, [put(other)])
        kernel = Kernel(self.kernel.name, self.kernel.doc, body, dict(self.kernel.on_done))
        shown = show_statements([statement])[0].rstrip(":")
        return Mutant(f"{self.where}, {_short(shown)}: {what}", self.put(kernel))


@dataclass(frozen=True)
class _Terms:
    """The terms of an instruction besides its kernel, and what makes the mapping with another one."""

    where: str
    terms: Mapping[str, Expr]
    put: Callable[[str, Expr], TensorMapping]

    def changed(self, draw: Random) -> Mutant | None:
        """The mapping with one term changed."""
        name = draw.choice(list(self.terms))
        change = _changed(self.terms[name], draw)
        if change is None:
            return None
        text, term = change
        return Mutant(f"{self.where}, {name}: {text}", self.put(name, term))


def _parts(mapping: TensorMapping, side: str) -> Iterator[_Body | _Terms]:
    fragment: Fragment = getattr(mapping, side)

    def with_fragment(changed: Fragment) -> TensorMapping:
        return replace(mapping, device=changed) if side == "device" else replace(mapping, ir=changed)

    def with_instruction(instruction: Instruction) -> TensorMapping:
        ila: Ila = copy.copy(fragment.ila)
        instruction.ila = ila
        ila.instructions = {**fragment.ila.instructions, instruction.name: instruction}
        return with_fragment(replace(fragment, ila=ila))

    def body(instruction: Instruction, kernel: Kernel) -> TensorMapping:
        changed = copy.copy(instruction)
        changed.kernel = None
        return with_instruction(changed.start(kernel, instruction.kernel_guard))

    def term(instruction: Instruction, name: str, value: Expr) -> TensorMapping:
        changed = copy.copy(instruction)
        if name == "decode":
            changed.decode = value
        elif name == "start":
            changed.kernel_guard = value
        else:
            changed.updates = {**instruction.updates, name.removeprefix("update of "): value}
        return with_instruction(changed)

    yield _Body(f"{side}, program", fragment.program, lambda k: with_fragment(replace(fragment, program=k)))
    for instruction in _executed(mapping, side):
        kernel = instruction.kernel
        if kernel is not None:
            yield _Body(f"{side}, {kernel.name}", kernel, partial(body, instruction))
        terms = {"decode": instruction.decode}
        terms |= {f"update of {name}": value for name, value in instruction.updates.items()}
        if kernel is not None:
            terms["start"] = instruction.kernel_guard
        where = f"{side}, instruction {instruction.name}"
        yield _Terms(where, terms, partial(term, instruction))


def _executed(mapping: TensorMapping, side: str) -> list[Instruction]:
    """The instructions that a run at a small shape executes; all where there is no run."""
    instructions = getattr(mapping, side).ila.instructions
    seen: dict[str, None] = {}
    runner = Runner(mapping)
    machine = runner.machines[side]
    decode = machine.decode

    def noted(inputs: Mapping[str, int]) -> Instruction:
        instruction = decode(inputs)
        seen[instruction.name] = None
        return instruction

    machine.decode = noted  # type: ignore[method-assign]
    for shape in mapping.sample_shapes or product(range(1, 37), range(1, 65)):
        try:
            sizes = mapping.sizes_for(shape)
        except SizeError:
            continue
        try:
            runner.run(sizes, lambda cell, width: 1)
        except NoBodyError:
            break
        return [instructions[name] for name in seen]
    return list(instructions.values())


# -- statements ----------------------------------------------------------------------------------------------

Path = tuple[int, ...]


def _paths(body: Sequence[Statement], before: Path = ()) -> Iterator[Path]:
    for number, statement in enumerate(body):
        yield (*before, number)
        if isinstance(statement, For):
            yield from _paths(statement.body, (*before, number))


def _at(body: Sequence[Statement], path: Path) -> Statement:
    statement = body[path[0]]
    if len(path) == 1:
        return statement
    assert isinstance(statement, For)
    return _at(statement.body, path[1:])


def _next(body: Sequence[Statement], path: Path) -> Statement | None:
    """The statement after one, in the same block."""
    for number in path[:-1]:
        loop = body[number]
        assert isinstance(loop, For)
        body = loop.body
    return body[path[-1] + 1] if path[-1] + 1 < len(body) else None


def _replaced(body: Sequence[Statement], path: Path, count: int, new: Sequence[Statement]) -> list[Statement]:
    """The body with ``count`` statements, from a path on, replaced."""
    at, *rest = path
    if not rest:
        return [*body[:at], *new, *body[at + count :]]
    loop = body[at]
    assert isinstance(loop, For)
    inner = tuple(_replaced(loop.body, tuple(rest), count, new))
    return [*body[:at], replace(loop, body=inner), *body[at + 1 :]]


def statement_changes(
    statement: Statement, after: Statement | None
) -> Iterator[tuple[str, int, tuple[Statement, ...]]]:
    """Changes of a statement as a whole: in words, how many statements are replaced from it on, and by which."""
    yield "dropped", 1, ()
    yield "doubled", 1, (statement, statement)
    if after is not None:
        yield "exchanged with the next one", 2, (after, statement)
    if isinstance(statement, For) and len(statement.body) == 1 and isinstance(statement.body[0], For):
        inner = statement.body[0]
        if all(v is not statement.counter for v in variables_of(inner.extent)):
            yield "interchanged with the loop inside", 1, (replace(inner, body=(replace(statement, body=inner.body),)),)


Put = Callable[[Expr], Statement]


def term_places(statement: Statement) -> Iterator[tuple[str, Expr, Put]]:
    """The terms of a statement, each with its name and what puts another one in its place."""
    match statement:
        case For(extent=extent):
            yield "extent", extent, lambda e: replace(statement, extent=e)
        case Let(value=value):
            yield "value", value, lambda e: replace(statement, value=e)
        case Load(address=address):
            yield "address", address, lambda e: replace(statement, address=e)
        case Store(address=address, value=value):
            yield "address", address, lambda e: replace(statement, address=e)
            yield "value", value, lambda e: replace(statement, value=e)
        case Command(inputs=inputs):
            for number, (name, value) in enumerate(inputs):
                yield name, value, partial(_with_input, statement, number)


def _with_input(command: Command, number: int, value: Expr) -> Command:
    before, (name, _), after = command.inputs[:number], command.inputs[number], command.inputs[number + 1 :]
    return replace(command, inputs=(*before, (name, value), *after))


# -- terms ---------------------------------------------------------------------------------------------------

_SIBLINGS: Mapping[str, tuple[str, ...]] = {
    "bvadd": ("bvsub",), "bvsub": ("bvadd",), "bvmul": ("bvadd",), "bvudiv": ("bvurem",), "bvurem": ("bvudiv",),
    "bvand": ("bvor",), "bvor": ("bvand", "bvxor"), "bvxor": ("bvor",), "bvshl": ("bvlshr",),
    "bvlshr": ("bvshl", "bvashr"), "bvashr": ("bvlshr",), "bvult": ("bvule",), "bvule": ("bvult", "eq"),
    "bvslt": ("bvsle",), "bvsle": ("bvslt",), "and": ("or",), "or": ("and",), "xor": ("or",),
    "zext": ("sext",), "sext": ("zext",),
}  # fmt: skip
_ORDERED = frozenset({"bvsub", "bvudiv", "bvurem", "bvshl", "bvlshr", "bvashr", "bvult", "bvule", "bvslt", "bvsle"})
"""Operators whose operands may not be exchanged."""


def _changed(term: Expr, draw: Random) -> tuple[str, Expr] | None:
    """A term with one node changed, and the change in words; None where the draw changes nothing."""
    node = draw.choice(postorder([term]))
    options = [new for new in changes(node, variables_of(term)) if new is not node]
    if not options:
        return None
    new = draw.choice(options)
    changed = substitute(term, {node: new})
    if changed is term:
        return None
    return f"{_short(show_expr(node))} becomes {_short(show_expr(new))}", changed


def changes(node: Expr, variables: Sequence[Expr] = ()) -> Iterator[Expr]:
    """Nodes of the same sort that differ in one thing; ``variables`` may take the place of a variable."""
    args = node.args
    for other in _SIBLINGS.get(node.op, ()):
        yield extend(other, args[0], node.width) if other in ("zext", "sext") else binary(other, *args)
    if node.op in _ORDERED or (node.op == "concat" and args[0].sort == args[1].sort):
        yield apply_op(node.op, args[::-1], node.params, node.sort)
    if node.op == "apply" and len(args) > 1 and args[0].sort == args[1].sort:
        yield apply_op(node.op, (args[1], args[0], *args[2:]), node.params, node.sort, node.func)
    if node.op == "ite":
        yield ite(args[0], args[2], args[1])
    if node.op == "extract":
        high, low = (int(p) for p in node.params)
        if low:
            yield args[0][high - 1 : low - 1]
        if high + 1 < args[0].width:
            yield args[0][high + 1 : low + 1]
    if node.op == "var":
        yield from (v for v in variables if v.sort == node.sort)
    if node.sort == BOOL:
        yield ~node
    elif isinstance(node.sort, BvSort):
        yield node + const(1, node.width)
        yield node - const(1, node.width)
    else:
        assert isinstance(node.sort, MemSort)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
