"""Runs of the kernels that derivations are written from.

A theorem speaks of the device as a term on words of leaves.  That a kernel stores such words is what the writer of its
derivation has read, so that it is run: each word of the result is compared with the term's, on the words that lie where
the derivation says that leaves are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from math import prod
from random import Random
from typing import Any

from ila_lang import Expr, Kernel, MemSort, compile_terms
from ila_lang.interpreter.compile import Memory, compile_kernel
from ila_lang.language.expr import variables_of
from ila_lang.language.kernel import ExtentError

from .bound_runs import BIASES, Data, Device, beyond, number
from .derivations.calculus import Operator
from .derivations.names import Layout
from .derivations.words import CONSTANTS
from .kernel.judgements import indices_of
from .kernel.readings import WIDTHS

RUNS, MOST_TRIES, MOST_WORK, MOST_STEPS = 5, 200, 1100, 100_000
SIZES = (1, 1, 2, 2, 3, 4, 9)


class NotRun(ValueError):
    """A kernel of which no run was found."""


class _TooLong(Exception):
    """A run of too many iterations."""


class _Steps:
    """The iterations of loops, of which a run has at most MOST_STEPS."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def __call__(self, extent: int) -> range:
        self.left -= extent
        if self.left < 0:
            raise _TooLong
        return range(extent)


class Words(Memory):
    """A memory whose words are drawn when they are first read; ``changed`` says that one was replaced later."""

    def __init__(self, width: int, draw: Random, wild: bool) -> None:
        super().__init__()
        self.width, self.draw, self.wild = width, draw, wild
        self.stored: set[int] = set()
        self.changed = False

    def __missing__(self, address: int) -> int:
        word = drawn(self.width, self.draw, self.wild)
        super().__setitem__(address, word)
        return word

    def __setitem__(self, address: int, word: int) -> None:
        self.changed |= address in self
        self.stored.add(address)
        super().__setitem__(address, word)


def drawn(width: int, draw: Random, wild: bool) -> int:
    """A word: any, or an extreme one, or a small number with a sign."""
    extremes = (0, 1, 1 << width - 1, (1 << width) - 1, draw.getrandbits(width))
    return draw.choice(extremes) if wild else draw.randint(-70, 70) % (1 << width)


def differing(operator: Operator) -> str:
    """In words, how the kernel stores other words than the theorem's; empty where none were seen.

    Raises NotRun where the kernel has none, or at all sizes that were tried stores no word or has too many iterations.
    """
    kernel, layout, draw, count = operator.written.kernel, operator.written.layout, Random(0), 0
    if kernel is None or layout is None:
        raise NotRun("a bound must be derived from a kernel, which is run")
    execute = compile_kernel(kernel)
    for attempt in range(MOST_TRIES):
        run = _Run(operator, kernel, layout, draw, bool(attempt % 2))
        if not 0 < run.work <= MOST_WORK:
            continue
        try:
            execute({v.name: n for v, n in run.values.items()}, run.memories, None, steps=_Steps())
        except (ExtentError, _TooLong):
            continue
        if difference := run.difference():
            return difference
        count += 1
        if count == RUNS:
            return ""
    if not count:
        raise NotRun(f"no sizes were found at which {kernel.name} stores a word within {MOST_STEPS:,} iterations")
    return ""


class _Run:
    """One run of a kernel, with sizes, operands and words that are drawn."""

    def __init__(self, operator: Operator, kernel: Kernel, layout: Layout, draw: Random, wild: bool) -> None:
        self.operator, self.theorem, self.layout = operator, operator.theorem, layout
        loops = (*layout.axes, *(loop for each in layout.indices.values() for loop in each))
        self.loops = {counter for counter, _ in loops}
        self.values = dict.fromkeys((counter for counter, _ in loops), 0)
        self.values |= {state: value.value for state, value in layout.given.items()}
        self.memories: dict[str, Words] = {}
        self.biases = {b: draw.randrange(BIASES) for j in self.theorem.judgements for b in sorted(j.biases)}
        self.biases |= {b: draw.randrange(BIASES) for _, b, *_ in self.theorem.leaves.values() if b}
        operands = {place[0] for place in layout.leaves.values() if len(place) == 1}
        biases = {state: name for name, state in layout.biases.items()}
        for name, variable in kernel.external_variables().items():
            if isinstance(variable.sort, MemSort):
                self.memories[name] = Words(variable.sort.data_width, draw, wild)
            elif variable in biases:
                self.values[variable] = self.biases.setdefault(biases[variable], draw.randrange(BIASES))
            elif variable in operands:
                self.values[variable] = drawn(variable.width, draw, wild)
            elif variable not in self.values:
                self.values[variable] = min(draw.choice(SIZES), (1 << variable.width) - 1)
        used = {*variables_of(layout.result[1])}
        self.free = [i for i, loops in layout.indices.items() if any(counter in used for counter, _ in loops)]
        self.compiled: dict[tuple[Expr, ...], Callable[..., Any]] = {}

    def at(self, values: Mapping[Expr, int], *terms: Expr) -> list[int]:
        """Terms at values of counters."""
        if terms not in self.compiled:
            self.compiled[terms] = compile_terms(list(self.values), terms)
        return [int(n) for n in self.compiled[terms](*(self.values | dict(values)).values())]

    def counts(self, values: Mapping[Expr, int]) -> dict[str, int]:
        """How many values each index has."""
        return {i: prod(self.at(values, *(e for _, e in loops))) for i, loops in self.layout.indices.items()}

    @property
    def work(self) -> int:
        """How many words are looked at, about."""
        counts, elements = self.counts({}), self.at({}, *(extent for _, extent in self.layout.axes))
        leaves = (prod(counts.get(i, 1) for i in indices_of(leaf)) for leaf in self.layout.leaves)
        return prod(elements) * prod(counts[i] for i in self.free) * max([1, *leaves, *counts.values()])

    def counters(self, place: Mapping[str, int], values: Mapping[Expr, int]) -> dict[Expr, int]:
        """Counters of loops, at values of indices."""
        counters = dict(values)
        for index, number_ in place.items():
            for counter, extent in reversed(self.layout.indices[index]):
                (count,) = self.at(values, extent)
                number_, counters[counter] = divmod(number_, count)
        return counters

    def data(self, values: Mapping[Expr, int]) -> Data:
        """The words of leaves at an element of the result."""
        data = Data(self.counts(values), self.biases)
        for leaf, (form, bias, _, magnitude, *_) in self.theorem.leaves.items():
            if not form:
                data.reals[leaf] = {(): Fraction(1, 100_000)}
                continue
            indices = indices_of(leaf)
            data.words[leaf] = {
                place: self.word(leaf, magnitude, self.counters(dict(zip(indices, place, strict=True)), values))
                for place in product(*(range(data.extents[i]) for i in indices))
            }
            data.reals[leaf] = {p: number(w, form, self.biases.get(bias, 0)) for p, w in data.words[leaf].items()}
        return data

    def word(self, leaf: str, magnitude: str, values: Mapping[Expr, int]) -> int:
        if leaf in CONSTANTS:
            return (int(magnitude) if leaf == CONSTANTS[1] else -int(magnitude)) % (1 << WIDTHS["accumulator"])
        guard, (variable, word) = self.layout.guards.get(leaf), self.layout.words[leaf]
        first, *address = self.layout.leaves[leaf]
        if guard is not None and not self.at(values, guard)[0]:
            if leaf not in self.layout.others:
                return 0
            first, *address = self.layout.others[leaf]
        loaded = self.memories[first.name][self.at(values, *address)[0]] if address else self.values[first]
        return int(compile_terms([variable], [word])(loaded)[0])

    def difference(self) -> str:
        """How the words of the result differ from the theorem's; empty where they do not."""
        memory, address = self.layout.result
        result, stored, device = self.memories[memory.name], set[int](), self.theorem.result.device
        over_time = device[0] == "steps"
        counters = [counter for counter, _ in self.layout.axes]
        for each in product(*map(range, self.at({}, *(extent for _, extent in self.layout.axes)))):
            values = dict(zip(counters, each, strict=True))
            data = self.data(values)
            for places in product(*(range(data.extents[i]) for i in self.free)):
                place = dict(zip(self.free, places, strict=True))
                (at,) = self.at(self.counters(place, values), address)
                term = device[1] if over_time else device
                word, _, _ = Device(self.theorem, data).word(term, {**dict.fromkeys(data.extents, 0), **place})
                if at not in result.stored or (word != result[at] and (over_time or self.stated(data))):
                    sizes = ", ".join(f"{v.name} = {n}" for v, n in self.values.items() if v not in self.loops)
                    return f"the kernel stores {result[at]:#x} at {at}, where the theorem has {word:#x} ({sizes})"
                stored.add(at)
        if len(stored) != len(result.stored):
            return f"the kernel stores {len(result.stored)} words to {memory.name}, not {len(stored)}"
        changed = next((name for name, words in self.memories.items() if words.changed), "")
        return f"the kernel replaces words of {changed} that it has read or stored" if changed else ""

    def stated(self, data: Data) -> bool:
        """Whether the theorem's conditions hold."""
        return beyond(self.operator, data) is not None
