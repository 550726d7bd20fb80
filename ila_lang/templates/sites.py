"""Where and when a program fragment issues commands, at concrete sizes.

A fragment's loops are unrolled with arrays: a statement has one entry for each iteration of the loops around it, in the
order of the scalar interpreter, and counters are arrays over these entries.  From the number of commands of every
iteration follows the number of each command in the whole program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_terms
from ila_lang.language.build import const
from ila_lang.language.expr import Expr, postorder, substitute, variables_of
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Command, For, Let, Load, Statement, Store
from ila_lang.language.ops import WIDEST
from ila_lang.language.sorts import BOOL, BvSort, MemSort

MOST_ITERATIONS = 1 << 22
"""Programs with more iterations of one loop nest are refused: their arrays would take gigabytes."""

Numbers = NDArray[np.int64]


class InstanceError(ValueError):
    """A fragment that is not a template, sizes that it does not take, or tensors of another form."""


@dataclass(frozen=True, eq=False)
class Site:
    """A command or a store of a fragment, in all its iterations.

    ``statement`` is in terms of the counters alone, of host tensors and of device outputs.  ``counters`` has the values
    of the counters around it, ``commands`` and ``stores`` how many of these come before, for each of ``size``
    iterations.
    """

    statement: Command | Store
    size: int
    counters: Mapping[Expr, Numbers]
    commands: Numbers
    stores: Numbers

    @property
    def name(self) -> str:
        """A short description of the statement, for messages."""
        if isinstance(self.statement, Command):
            return f"command '{self.statement.note}'"
        return f"store to {self.statement.memory.describe()}"


def refuse(fragment: Fragment, where: str, must: str, actual: str) -> InstanceError:
    """The error for a fragment that is not a template."""
    return InstanceError(f"{where} of fragment {fragment.name} must {must}, not {actual}; {_ADVICE}")


_ADVICE = "run it with run_fragment, or compute this on the host"


def sites_of(fragment: Fragment, sizes: Mapping[str, int]) -> list[Site]:
    """All commands and stores of the fragment at these sizes, those without an iteration left out.

    Raises InstanceError on sizes that are missing or do not fit, and where loops depend on data or on the device.
    """
    block = _Unrolled(fragment, _constants(fragment, sizes)).block(tuple(fragment.program.body), _WHOLE)
    start = np.zeros(1, np.int64)
    return list(_placed(block, start, start))


def _constants(fragment: Fragment, sizes: Mapping[str, int]) -> dict[Expr, Expr]:
    constants: dict[Expr, Expr] = {}
    for name, variable in fragment.parameters.items():
        if name not in sizes:
            raise InstanceError(f"Fragment {fragment.name} must be given {name}; give a number for each of its sizes")
        size = sizes[name]
        if not 0 <= size < 1 << variable.width:
            raise InstanceError(
                f"Size {name} of fragment {fragment.name} must fit {variable.width} bits, not {size}; give another one"
            )
        constants[variable] = const(int(size), variable.width)
    unknown = [name for name in sizes if name not in fragment.parameters]
    if unknown:
        raise InstanceError(
            f"Sizes of fragment {fragment.name} must be among {', '.join(fragment.parameters)}, not "
            f"{', '.join(unknown)}; leave these out"
        )
    return constants


@dataclass(frozen=True, eq=False)
class _Space:
    """The iterations of a block, in order, with the counters of all loops around it.

    ``parents`` are the numbers of the enclosing block's iterations, ``firsts`` where the iterations of each begin, and
    one more number, how many there are.
    """

    size: int
    counters: Mapping[Expr, Numbers]
    parents: Numbers
    bounds: Numbers


_WHOLE = _Space(1, {}, np.zeros(1, np.int64), np.array([0, 1]))


@dataclass(frozen=True, eq=False)
class _Block:
    """Statements with the blocks of loops, and how many commands and stores each iteration has."""

    space: _Space
    parts: Sequence[Command | Store | _Block]
    commands: Numbers
    stores: Numbers

    def totals(self, counts: Numbers) -> tuple[Numbers, Numbers]:
        """Of ``counts`` by iteration: the sums before each iteration, and those of each enclosing iteration."""
        sums = np.concatenate([[0], np.cumsum(counts)])
        return sums, sums[self.space.bounds[1:]] - sums[self.space.bounds[:-1]]


class _Unrolled:
    """The loops of a fragment with their iterations; ``known`` are its sizes, and registers as they are set."""

    def __init__(self, fragment: Fragment, known: dict[Expr, Expr]) -> None:
        self.fragment, self.known = fragment, known
        self.outputs = fragment.outputs

    def block(self, body: tuple[Statement, ...], space: _Space) -> _Block:
        parts: list[Command | Store | _Block] = []
        commands, stores = np.zeros(space.size, np.int64), np.zeros(space.size, np.int64)
        for statement in body:
            match statement:
                case For():
                    inner = self._loop(statement, space)
                    if inner.space.size:
                        parts.append(inner)
                        commands += inner.totals(inner.commands)[1]
                        stores += inner.totals(inner.stores)[1]
                case Command(inputs=inputs, note=note):
                    parts.append(Command(tuple((name, self._term(value)) for name, value in inputs), note))
                    commands += 1
                case Store(memory=memory, address=address, value=value):
                    parts.append(Store(memory, self._term(address), self._term(value)))
                    stores += 1
                case Let() | Load():
                    self._register(statement)
        return _Block(space, parts, commands, stores)

    def _loop(self, loop: For, space: _Space) -> _Block:
        where, name = f"Loop {loop.counter.name}", self.fragment.name
        (extents,) = evaluate(self.fragment, f"Extent of loop {loop.counter.name}", [self._term(loop.extent)], space)
        largest = int(extents.max(initial=0))
        total = int(extents.sum()) if largest <= MOST_ITERATIONS else largest
        if total > MOST_ITERATIONS:
            raise InstanceError(
                f"{where} of fragment {name} must have at most {MOST_ITERATIONS} iterations in all, not {total}; "
                "split what it computes"
            )
        if largest > 1 << loop.counter.width:
            raise refuse(self.fragment, where, f"fit its counter of {loop.counter.width} bits", f"{largest} iterations")
        parents = np.repeat(np.arange(space.size), extents)
        bounds = np.concatenate([[0], np.cumsum(extents)])
        counters = {counter: values[parents] for counter, values in space.counters.items()}
        counters[loop.counter] = np.arange(total) - bounds[parents]
        return self.block(loop.body, _Space(total, counters, parents, bounds))

    def _register(self, statement: Let | Load) -> None:
        where = f"Register {statement.target.name}"
        if isinstance(statement, Load):
            self.known[statement.target] = statement.memory.load(self._term(statement.address))
            return
        value = self._term(statement.value)
        outputs = [v.name for v in variables_of(value) if self.outputs.get(v.name) is v]
        if statement.update or outputs:
            actual = f"device output {outputs[0]}" if outputs else "a value that changes"
            raise refuse(self.fragment, where, "hold what is known before the program runs", actual)
        self.known[statement.target] = value

    def _term(self, term: Expr) -> Expr:
        return substitute(term, self.known)


def _placed(block: _Block, commands: Numbers, stores: Numbers) -> Iterator[Site]:
    """The sites of a block, whose iterations begin after given numbers of commands and stores."""
    for part in block.parts:
        if isinstance(part, _Block):
            parents, firsts = part.space.parents, part.space.bounds[:-1]
            command_sums, command_totals = part.totals(part.commands)
            store_sums, store_totals = part.totals(part.stores)
            yield from _placed(
                part,
                (commands - command_sums[firsts])[parents] + command_sums[:-1],
                (stores - store_sums[firsts])[parents] + store_sums[:-1],
            )
            commands, stores = commands + command_totals, stores + store_totals
        else:
            yield Site(part, block.space.size, block.space.counters, commands, stores)
            if isinstance(part, Command):
                commands = commands + 1
            else:
                stores = stores + 1


def evaluate(fragment: Fragment, where: str, terms: Sequence[Expr], space: Site | _Space) -> list[NDArray[Any]]:
    """The values of terms over counters in every iteration (int64; Booleans as such).

    Raises InstanceError on terms that are not known before the program runs, or have parts of more than 62 bits.
    """
    for node in postorder(terms):
        if isinstance(node.sort, MemSort) or (node.op == "var" and node not in space.counters):
            kind = "device output" if fragment.outputs.get(node.describe()) is node else "data of host tensor"
            raise refuse(fragment, where, "depend on sizes and counters alone", f"on {kind} {node.describe()}")
        if isinstance(node.sort, BvSort) and node.width > WIDEST:
            raise refuse(fragment, where, f"have at most {WIDEST} bits in all its parts", f"{node.width} bits")
    run = compile_terms(list(space.counters), terms, vector=True)
    values = run(*space.counters.values())
    return [
        np.broadcast_to(np.asarray(value, bool if term.sort == BOOL else np.int64), (space.size,))
        for term, value in zip(terms, values, strict=True)
    ]
