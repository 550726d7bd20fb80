"""Both functions on concrete inputs: real IEEE floats, machine words, and sizes drawn small.

A counterexample is one that is evaluated here; what a solver says is a hint and no more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, islice, product
from math import prod

from chc.scalar_rules.search import special_values
from ir_semantics.elements.binders import postorder
from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.operators import atom, conjuncts, minus, polynomial
from ir_semantics.elements.terms import Input, Symbol, Term, fresh, literal, symbol, terms_of_proof, truth
from ir_semantics.mlir.semantics.arguments import Arguments
from ir_semantics.mlir.semantics.function import Meaning
from ir_semantics.mlir.semantics.memory import Buffer, Place
from ir_semantics.mlir.semantics.tensor import new_subscripts
from ir_semantics.mlir.semantics.values import Element, Tensor, defined
from ir_semantics.scalars.concrete import Concrete, same_value, show_value
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Value
from ir_semantics.scalars.terms import NotInterpreted
from ir_semantics.tensors.index import Index

from .counterexample import MEMORY, Block, Cell, Counterexample
from .inputs import Inputs

STEPS = 40_000
"""Evaluation steps of a search, of which one run takes half at most."""
ELEMENTS = 64
"""Elements of a result that a run compares, at most."""
LARGE = 1 << 16
"""From here on it is asked of sizes and indices whether what is computed of them may leave 64 bits."""
MOST_SMALL, SMALL = 3, 4
"""The largest size that is small, and how many small ones are looked at."""
_LEFT = {
    "alive": ("leaves it alive", "frees it"),
    "writable": ("lets it be written afterwards", "ends all writing to it"),
}
"""What functions leave of blocks that were there before: what the source does, and what the target must not do."""
MOST_LOOKED_AT = 4096
"""Elements of an argument that are looked at for the one that lies at a place, at most."""


@dataclass
class Runs:
    """Runs of both functions on drawn inputs.

    ``finished`` counts runs to the end, ``defined`` those of a source that is defined somewhere, and ``unknown`` says
    why others had no value.
    """

    arguments: Arguments
    source: Meaning
    target: Meaning
    over_reals: bool = False
    tried: int = 0
    finished: int = 0
    defined: int = 0
    unknown: str = ""
    sizes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._subscripts: dict[int, list[Term]] = {}
        self._pairs = list(zip(self.source.results, self.target.results, strict=True))
        self._blocks = {_symbol(t) for t in self.arguments.likely}
        self._cell = fresh("block", INTEGERS), fresh("place", INTEGERS)
        self._cells = list(self._changed_cells())
        if self.arguments.likely or self._cells:  # what is not known of blocks is listed once, and before any run
            for memory in (self.source.memory, self.target.memory):
                memory.alive(self._cell[0])
                memory.size(self._cell[0])
        before = self.arguments.before.memory()
        self._held = {str(k): before.cells(Place(k, *self._cell)) for k in self.arguments.before.kinds}
        self._literals = self._constants()
        numbers = sorted({int(v) for kind, v in self._literals if kind == INTEGERS and 0 <= v < 1 << 40})
        self._block_sizes = tuple(n + d for n in (7, *numbers[-4:]) for d in (0, 1))
        self._equations = self._find_equations()

    def search(self, seed: int, most: int, steps: int = STEPS) -> Counterexample | None:
        """The first counterexample among drawn inputs."""
        budget = Budget(steps)
        for inputs in islice(self._drawn(random.Random(seed)), most):
            inputs.budget.steps = min(budget.steps, max(STEPS // 2, steps // 4))
            left = inputs.budget.steps
            self.tried += 1
            try:
                difference = self.difference(inputs)
                self.finished += 1
            except NotInterpreted as error:
                self.unknown = str(error)
                difference = None
            budget.steps -= left - inputs.budget.steps
            if budget.steps <= 0 and difference is None:
                return None
            if difference is not None:
                return difference
        return None

    def replayed(self, given: Counterexample, budget: Budget | None = None) -> Counterexample | None:
        """What inputs of a counterexample come to; None where they show nothing.

        Elements that it lacks are drawn, always the same ones.  Raises ValueError where it has no inputs of these
        functions.
        """
        arguments = self.arguments
        have = [len(given.sizes), len(given.scalars), len(given.elements)]
        needed = [len(arguments.sizes), len(arguments.scalars), len(arguments.all_arrays)]
        if have != needed:
            raise ValueError(
                f"there must be as many sizes, numbers and tensors as the functions have, {needed}, not {have}"
            )
        pools = {k: self._pool(k) for k in self._formats()}
        memory = self._of_memory(), self._block_sizes
        draw = random.Random(0)
        inputs = Inputs({}, draw, pools, budget or Budget(10 * STEPS), 2, self.over_reals, *memory)  # memory is usual
        inputs.at = given.at
        values = (*given.sizes.values(), *given.scalars.values())
        for term, value in zip((*arguments.sizes, *arguments.scalars), values, strict=True):
            inputs.symbols[_symbol(term)] = _checked(value, term.kind)
        for array, elements in zip(arguments.all_arrays, given.elements.values(), strict=True):
            inputs.arrays[array] = {at: _checked(value, array.kind) for at, value in elements.items()}
        try:
            if not all(map(inputs.evaluation().truth, arguments.facts)):
                return None
            whole = [v for t, v in inputs.symbols.items() if t.kind == INTEGERS]
            whole += [v for a, e in inputs.arrays.items() if a.kind == INTEGERS for v in e.values()]
            inputs.of_64_bits = any(abs(int(v)) >= LARGE for v in whole)
            return self.difference(inputs)
        except NotInterpreted:
            return None

    def _changed_cells(self) -> Iterator[tuple[str, Element, Element]]:
        """The element of one arbitrary cell in both memories, of each format in which these may differ."""
        memories = self.source.memory, self.target.memory
        for kind in dict.fromkeys((*memories[0].formats, *memories[1].formats)):
            one, other = (m.cells(Place(kind, *self._cell)) for m in memories)
            yield str(kind), one, other
        for name in _LEFT:
            one, other = (getattr(m, name)(self._cell[0]) for m in memories)
            if one is not other:
                yield name, defined(truth(True)), defined(truth(True))

    # -- one run -------------------------------------------------------------------------------------------

    def difference(self, inputs: Inputs) -> Counterexample | None:
        """Where the target does not refine the source on given inputs; None where it does, or the source says nothing.

        Over the reals the floats as they are written must differ, too: if they do not, no order of sums is to blame.
        Raises NotInterpreted where something has no exact value.
        """
        steps = inputs.budget.steps
        found = self._difference(inputs)
        if found is None or not inputs.over_reals:
            return found
        if terms_of_proof().rounded:
            raise NotInterpreted("constants of the functions were put together, and rounded")
        written = replace(inputs, over_reals=False, budget=Budget(steps))  # for a run as long as the other one
        return found if self._difference(written) is not None else None

    def _difference(self, inputs: Inputs) -> Counterexample | None:
        """As :meth:`difference`, in one arithmetic."""
        evaluation = inputs.evaluation()
        self._require(evaluation, self.source)
        if not all(evaluation.truth(r.condition) for r in self.source.requirements):
            return None
        self._require(evaluation, self.target)
        broken = next((r for r in self.target.requirements if not evaluation.truth(r.condition)), None)
        if broken is not None:
            why = f"has undefined behaviour at {broken.position} ({broken.operator}: {broken.reason})"
            return self._found(inputs, "the behaviour", "is defined", why)
        self.defined += not self._pairs
        for place, (a, b) in enumerate(self._pairs):
            found = self._compared(inputs, evaluation, place, a, b)
            if found is not None:
                return found
        found = self._memories(inputs)
        if found is not None:
            return found
        if len(self.sizes) < 6:
            shown = ", ".join(f"{s} = {evaluation.integer(s)}" for s in self.arguments.sizes)
            self.sizes += [shown] if shown and shown not in self.sizes else []
        return None

    def _require(self, evaluation: Evaluation, meaning: Meaning) -> None:
        """Raises NotInterpreted where a meaning is not that of the program."""
        broken = next((p for p in meaning.provisos if not evaluation.truth(p.condition)), None)
        if broken is not None:
            raise NotInterpreted(str(broken.otherwise))

    def _memories(self, inputs: Inputs) -> Counterexample | None:
        """Where memory is different afterwards: in blocks that were there before, and that the source leaves alive."""
        if not self._cells:
            return None
        first = inputs.at[1:] if len(inputs.at) == 3 and inputs.at[0] == MEMORY else (0, 0)
        for b in sorted({first[0], *self._all_blocks(inputs)}):
            evaluation = self._here(inputs, b, 0)
            if b < 0 or not evaluation.truth(self.source.memory.alive(self._cell[0])):  # below 0 are those made since
                continue
            for name, words in _LEFT.items():
                before, still = (
                    evaluation.truth(getattr(m.memory, name)(self._cell[0])) for m in (self.source, self.target)
                )
                if before and not still:
                    return self._found(inputs, f"block {b}", *words)
            size = evaluation.integer(self.source.memory.size(self._cell[0]))
            few = range(max(0, min(size, ELEMENTS // 2)))
            for at in few if b != first[0] or first[1] in few or first[1] >= size else (first[1], *few):
                here = self._here(inputs, b, at)
                for name, one, other in self._cells:
                    cell = Cell(b, at, name, self._elements_at(here, b, at))
                    found = self._element(inputs, here, str(cell), one, other)
                    if found is not None:
                        return replace(found, at=(MEMORY, b, at), cell=cell)
        return None

    def _all_blocks(self, inputs: Inputs) -> list[int]:
        """Blocks that arguments may lie in."""
        given = {int(v) for s, v in inputs.symbols.items() if s in self._blocks}
        return sorted({*given, *range(len(self.arguments.before.globals) + len(self.arguments.values))})

    def _here(self, inputs: Inputs, block: int, place: int) -> Evaluation:
        """What evaluates terms of the arbitrary cell at a place."""
        return inputs.evaluation(dict(zip(map(_symbol, self._cell), (block, place), strict=True)))

    def _views(self, evaluation: Evaluation, block: int) -> dict[str, Buffer]:
        """The arguments that lie in a block, by name."""
        named = zip(self.arguments.names, self.arguments.values, strict=True)
        return {n: v for n, v in named if isinstance(v, Buffer) and evaluation.integer(v.block) == block}

    def _elements_at(self, evaluation: Evaluation, block: int, place: int) -> tuple[str, ...]:
        """The elements of arguments that lie at a place; of arguments with many elements the first are looked at."""
        found = []
        for name, view in self._views(evaluation, block).items():
            offset, *strides = (evaluation.integer(n) for n in (view.offset, *view.strides))
            few = (range(min(evaluation.integer(n), MOST_LOOKED_AT)) for n in view.shape)
            for at in islice(product(*few), MOST_LOOKED_AT):
                if offset + sum(i * s for i, s in zip(at, strides, strict=True)) == place:
                    found.append(f"{name}{list(at)}")
        return tuple(found)

    def _blocks_before(self, inputs: Inputs) -> Iterator[Block]:
        """The blocks that arguments lie in, and globals, before the functions run."""
        properties = [a for a in self.arguments.before.arrays if a.kind == BOOLEAN and len(a.shape) == 1]
        globals_ = {each.block: (f"@{name}", each.kind) for name, each in self.arguments.before.globals.items()}
        for b in self._all_blocks(inputs):
            here = self._here(inputs, b, 0)
            arguments = self._views(here, b)
            named = {name: (here.integer(view.offset), view.kind) for name, view in arguments.items()}
            if b in globals_:
                named[globals_[b][0]] = 0, globals_[b][1]
            if not named:
                continue
            size = here.integer(self.source.memory.size(self._cell[0]))
            cells = [self._here(inputs, b, at) for at in range(max(0, min(size, ELEMENTS // 2)))]
            held = {
                kind: [c.value(e.value) if c.truth(e.defined) else None for c in cells]
                for kind, e in self._held.items()
                if kind in {str(own) for _, own in named.values()}
            }
            lacks = [a.name.partition(" ")[0] for a in properties if inputs.arrays.get(a, {}).get((b,)) is False]
            yield Block(b, {name: place for name, (place, _) in named.items()}, held, tuple(lacks))

    def _compared(
        self, inputs: Inputs, evaluation: Evaluation, place: int, a: Element | Tensor, b: Element | Tensor
    ) -> Counterexample | None:
        name = self.source.names[place]
        if isinstance(a, Element) and isinstance(b, Element):
            return self._element(inputs, evaluation, name, a, b)
        assert isinstance(a, Tensor)
        assert isinstance(b, Tensor)
        shapes = [[evaluation.integer(n) for n in x.shape] for x in (a, b)]
        if shapes[0] != shapes[1]:
            texts = ["x".join(map(str, s)) for s in shapes]
            return self._found(inputs, f"the shape of {name}", *texts)
        self.defined += prod(shapes[0]) == 0
        subscripts = self._subscripts_of(place, a)
        one, other = a.at(subscripts), b.at(subscripts)
        for at in self._places(shapes[0], inputs.draw, inputs.at[1:] if inputs.at[:1] == (place,) else ()):
            here = {_symbol(s): i for s, i in zip(subscripts, at, strict=True)}
            found = self._element(inputs, inputs.evaluation(here), f"{name}{list(at)}", one, other)
            if found is not None:
                return replace(found, at=(place, *at))
        return None

    def _element(
        self, inputs: Inputs, evaluation: Evaluation, place: str, a: Element, b: Element
    ) -> Counterexample | None:
        if not evaluation.truth(a.defined):
            return None
        self.defined += 1
        value = evaluation.value(a.value)
        if not evaluation.truth(b.defined):
            return self._found(inputs, place, show_value(value), "is not defined (poison, or never written)")
        other = evaluation.value(b.value)
        return None if same_value(value, other) else self._found(inputs, place, show_value(value), show_value(other))

    def _found(self, inputs: Inputs, place: str, source: str, target: str) -> Counterexample:
        inputs.budget = Budget(STEPS)
        blocks = tuple(self._blocks_before(inputs))  # before elements are listed, as it may draw some
        values = {_symbol(t): inputs.symbols[_symbol(t)] for t in (*self.arguments.sizes, *self.arguments.scalars)}
        sizes = {_symbol(t).name: int(values[_symbol(t)]) for t in self.arguments.sizes}
        scalars = {_symbol(t).name: values[_symbol(t)] for t in self.arguments.scalars}
        elements = {
            a.name: {at: v for at, v in sorted(inputs.arrays.get(a, {}).items()) if min(at, default=0) >= 0}
            for a in self.arguments.all_arrays
        }
        unshown = frozenset(
            (*(_symbol(t).name for t in self.arguments.likely), *(a.name for a in self.arguments.before.arrays))
        )
        return Counterexample(sizes, scalars, elements, place, source, target, (), None, blocks, unshown)

    def _subscripts_of(self, place: int, tensor: Tensor) -> list[Term]:
        if place not in self._subscripts:
            self._subscripts[place] = list(new_subscripts(len(tensor.shape)))
        return self._subscripts[place]

    def _places(
        self, shape: Sequence[int], draw: random.Random, first: tuple[int, ...] = ()
    ) -> Iterator[tuple[int, ...]]:
        if first and len(first) == len(shape) and all(0 <= i < n for i, n in zip(first, shape, strict=True)):
            yield first
        if prod(shape) <= ELEMENTS:
            yield from product(*map(range, shape))
            return
        yield tuple(0 for _ in shape)
        yield tuple(n - 1 for n in shape)
        for _ in range(ELEMENTS // 8):
            yield tuple(draw.choice((0, n - 1, draw.randrange(n), draw.randrange(n))) for n in shape)

    # -- inputs --------------------------------------------------------------------------------------------

    def _drawn(self, draw: random.Random) -> Iterator[Inputs]:
        pools = {k: self._pool(k) for k in self._formats()}
        sizes = [_symbol(t) for t in self.arguments.sizes]
        wholes = sorted(n for n in self._sizes() if 0 <= n <= 40)
        # bounds that many numbers must keep together are kept by small ones
        many = sum(t.kind == INTEGERS and t not in self.arguments.likely for t in self.arguments.scalars) > 3
        for run in count():
            symbols: dict[Symbol, Value] = {}
            inputs = Inputs(
                symbols, draw, pools, Budget(STEPS), run, self.over_reals, self._of_memory(), self._block_sizes
            )
            for each in sizes:
                symbols[each] = draw.choice(wholes[:8] if draw.random() < 0.7 else wholes)
            is_small = many and draw.random() < 0.5
            for term in self.arguments.scalars:
                few = self.arguments.likely.get(term)
                if few is None and term.kind == INTEGERS and (is_small or draw.random() < 0.6):
                    few = (0, 1, 2, 3)
                symbols[_symbol(term)] = inputs.value(term.kind) if few is None else draw.choice(few)
            self._solve(symbols, sizes)
            yield inputs

    def small_sizes(self) -> list[dict[Symbol, int]]:
        """Some sizes, and numbers of iterations, that are small, and that equations between sizes allow; many first."""
        loops = (t.args[t.op == "fold" : -1] for t in postorder(self._terms()) if t.op in ("fold", "every"))
        of_loops = frozenset(s for extents in loops for e in extents for s in e.symbols)
        unknown = [_symbol(t) for t in (*self.arguments.sizes, *self.arguments.scalars)]
        names = [s for s in unknown if s.kind == INTEGERS and (s in of_loops or symbol(s) in self.arguments.sizes)]
        drawn = (i.symbols for i in islice(self._drawn(random.Random(4)), 200))
        found = {tuple(int(symbols[s]) for s in names) for symbols in drawn}
        small = sorted((at for at in found if all(0 <= n <= MOST_SMALL for n in at)), key=lambda at: (0 in at, sum(at)))
        return [dict(zip(names, at, strict=True)) for at in small[:SMALL]]

    def _solve(self, symbols: dict[Symbol, Value], sizes: Sequence[Symbol]) -> None:
        """Changes sizes so that linear equations that the source requires hold, one after the other."""
        for _ in range(2):
            for equation in self._equations:
                value, unknown = equation.terms, None
                total = 0
                for monomial, coefficient in value:
                    amount = coefficient
                    for name in monomial:
                        amount *= int(symbols.get(_symbol(atom(str(name))), 0))
                    total += amount
                    if len(monomial) == 1 and abs(coefficient) == 1 and _symbol(atom(str(monomial[0]))) in sizes:
                        unknown = _symbol(atom(str(monomial[0]))), coefficient
                if unknown is not None and total:
                    size, coefficient = unknown
                    symbols[size] = max(0, int(symbols[size]) - coefficient * total)

    def _find_equations(self) -> list[Index]:
        """Equations of polynomials in sizes and numbers alone that the source requires."""
        found = []
        for each in conjuncts(r.condition for r in self.source.requirements):
            if each.op == "eq" and each.args[0].kind == INTEGERS:
                value = polynomial(minus(each.args[1], each.args[0]))
                if not value.quotients and all(atom(str(n)).op == "symbol" for n in value.variables):
                    found.append(value)
        return found

    def _terms(self) -> list[Term]:
        roots = [r.condition for r in (*self.source.requirements, *self.target.requirements)]
        roots += [p.condition for p in (*self.source.provisos, *self.target.provisos)]
        for place, (a, b) in enumerate(self._pairs):
            for x in (a, b):
                if isinstance(x, Tensor):
                    x_at = x.at(self._subscripts_of(place, x))
                    roots += [*x.shape, x_at.value, x_at.defined]
                else:
                    roots += [x.value, x.defined]
        roots += [t for _, *pair in self._cells for e in pair for t in (e.value, e.defined)]
        return roots

    def _constants(self) -> list[tuple[Format, Fraction]]:
        """Constants of both functions."""
        found: dict[tuple[Format, Fraction], None] = {}
        for term in postorder(self._terms()):
            value = literal(term)
            if isinstance(value, Fraction):
                found[term.kind, value] = None
            elif term.op == "polynomial" and isinstance(term.payload, Index):
                found |= {(INTEGERS, Fraction(abs(c))): None for _, c in term.payload.terms}
            elif term.op == "read" and not isinstance(term.payload, Input):
                found |= {(term.kind, Fraction(v)): None for v in islice(_finite(term), 20)}
        return list(found)

    def _sizes(self) -> set[int]:
        """Sizes to draw from: small ones, and constants with their neighbours."""
        known = {int(v) for kind, v in self._literals if kind == INTEGERS and 0 <= v <= 40}
        return {0, 1, 2, 3, 4, 5, 6, *(n + d for n in known for d in (0, 1)), *(n - 1 for n in known if n)}

    def _of_memory(self) -> tuple[Input, ...]:
        """What says how large blocks are, what may be done with them, and what is written."""
        return tuple(a for a in self.arguments.before.arrays if len(a.shape) == 1 or a.kind == BOOLEAN)

    def _formats(self) -> set[Format]:
        return {INTEGERS} | {t.kind for t in self.arguments.scalars} | {a.kind for a in self.arguments.all_arrays}

    def _pool(self, kind: Format) -> list[Value]:
        if kind == INTEGERS:
            return sorted({*self._sizes(), -1, *(-n for n in self._sizes())})
        numbers = [v for own, v in self._literals if own == kind or own.family == kind.family == "float"]
        return special_values(kind, numbers)


def _checked(value: Value, kind: Format) -> Value:
    """The value; raises ValueError unless the format has it."""
    if (kind == BOOLEAN) is not isinstance(value, bool):
        raise ValueError(f"{value} must be a value of the format {kind}")
    if kind == INTEGERS and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"a size, or a number of type index, must have 64 bits, and {value} has not")
    known = value if isinstance(value, float | bool) else Fraction(value)
    return known if isinstance(known, bool) else Concrete({}).constant(known, kind)


def _finite(term: Term) -> Iterator[Fraction]:
    table = term.payload
    values = getattr(table, "values", {}).values()
    return (v for v in values if isinstance(v, Fraction))


def _symbol(term: Term) -> Symbol:
    assert isinstance(term.payload, Symbol)
    return term.payload
