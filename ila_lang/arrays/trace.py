"""Recorded runs: what a run on arrays computes, as a straight list of steps.

A step is a term over the results of steps before it (:class:`TermStep`), a load or a store, or any other function
(:class:`OtherStep`).  Terms that are used once become part of the term that uses them, and what is left is lowered
(:mod:`ila_lang.arrays.lowering`): its results are congruent to the values that they stand for, and are these values
only where a step needs them.  Steps whose values depend only on memories that the kernel does not store to are taken
again only when these have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.expr import Expr, free_variables, substitute, var

from .lowering import MANY, Lowered, lower, unfolded_size
from .ranges import Form

Words = NDArray[Any]
Action = Callable[[list[Any], Mapping[str, Words]], None]

#: Terms of more leaves, or of more nodes, do not become part of others.
MOST_LEAVES = 16
MOST_NODES = 600


class Trace:
    """A recorded run; it may be run on other contents of the memories, and of other machines."""

    def __init__(
        self, slots: list[Any], fixed: list[Action], steps: list[Action], between: list[int], inputs: list[str]
    ) -> None:
        self.slots, self.fixed, self.steps = slots, fixed, steps
        # results of fixed steps that only fixed steps use
        self.between = between
        # memories that fixed steps read, and their versions for which the results hold
        self.inputs = inputs
        self.seen: list[int] | None = None

    def run(self, memories: Mapping[str, Words], versions: Mapping[str, int]) -> None:
        """Takes the steps on ``memories``, in place."""
        slots = self.slots
        present = [versions[name] for name in self.inputs]
        if present != self.seen:
            self.seen = None  # until all is done: a step may fail
            for step in self.fixed:
                step(slots, memories)
            for place in self.between:
                slots[place] = None
            self.seen = present
        for step in self.steps:
            step(slots, memories)


@dataclass(eq=False)
class OtherStep:
    """A step whose result goes to the slot ``target`` (None: a store); ``arguments`` are slots.

    ``make`` gives the action for the places where target and arguments will be.  With ``exact`` the arguments must be
    the values themselves; ``raw`` tells that the result is an array of another type than 64-bit integers.
    """

    target: int | None
    arguments: tuple[int, ...]
    make: Callable[[int, tuple[int, ...]], Action]
    exact: bool = True
    raw: bool = False


@dataclass(eq=False)
class TermStep:
    """A step that computes a term over slots, whose variables are named by :meth:`Steps.variable`.

    The result gets ``shape``.  Where ``sums`` is given, as the counts of the grid and the first axis, it is the sum
    over the axes from there on.
    """

    target: int
    root: Expr
    shape: tuple[int, ...]
    sums: tuple[tuple[int, ...], int] | None = None
    reshaped: bool = False
    lowered: Lowered | None = field(default=None, init=False)

    @property
    def arguments(self) -> tuple[int, ...]:
        """The slots that it uses."""
        return tuple(int(name[1:]) for name in free_variables(self.root))


Step = OtherStep | TermStep


class Steps:
    """All steps of a recorded run; ``fixed`` come first, whatever the memories hold that the kernel stores to."""

    def __init__(self) -> None:
        self.fixed: list[Step] = []
        self.steps: list[Step] = []
        # values that are the same in every run, by slot; forms of results that no step gives
        self.constants: dict[int, Any] = {}
        self.forms: dict[int, Form] = {}
        # slots whose values are used as they are
        self.exact: set[int] = set()
        # slots that hold Python numbers
        self.numbers: set[int] = set()

    @staticmethod
    def variable(slot: int, like: Expr) -> Expr:
        """The variable of a slot in the terms of steps."""
        return var(f"s{slot}", like.sort)

    def trace(self, inputs: Iterable[str]) -> Trace:
        """The steps as functions."""
        self._fuse()
        self._lower()
        # a place is used again after the last use of its value, so that arrays do not live longer than needed
        used = {a for step in (*self.fixed, *self.steps) for a in step.arguments}
        wanted = {a for step in self.steps for a in step.arguments}
        places: dict[int, int] = {}
        slots: list[Any] = []
        for place, value in self.constants.items():
            if place in used:
                places[place] = len(slots)
                slots.append(value)
        lasting = set(self.constants)
        fixed = self._settle(self.fixed, places, slots, wanted)
        results = {s.target for s in self.fixed if s.target is not None}
        between = sorted({places[p] for p in results - wanted if p in places} - {places[p] for p in results & wanted})
        steps = self._settle(self.steps, places, slots, results | lasting)
        return Trace(slots, fixed, steps, between, sorted(inputs))

    # -- terms ----

    def _fuse(self) -> None:
        """Makes terms that are used once a part of the terms that use them."""
        uses = Counter(a for step in (*self.fixed, *self.steps) for a in step.arguments)
        for steps in (self.fixed, self.steps):
            terms: dict[int, TermStep] = {}
            sizes: dict[int, int] = {}
            for step in steps:
                if not isinstance(step, TermStep):
                    continue
                sizes[step.target] = unfolded_size(step.root)
                for variable in free_variables(step.root).values():
                    part = terms.get(int(variable.name[1:]))
                    if part is None or uses[part.target] > 1 or part.sums is not None or part.reshaped:
                        continue
                    size = sizes[step.target] + sizes[part.target]
                    if size > MOST_NODES or len(free_variables(step.root, part.root)) > MOST_LEAVES + 1:
                        continue
                    step.root = substitute(step.root, {variable: part.root})
                    sizes[step.target] = size
                    del terms[part.target]
                terms[step.target] = step
            steps[:] = [s for s in steps if not isinstance(s, TermStep) or s.target in terms]

    def _lower(self) -> None:
        """Lowers all terms; steps that need values get values."""
        exact = {a for s in (*self.fixed, *self.steps) if isinstance(s, OtherStep) and s.exact for a in s.arguments}
        forms = dict(self.forms)
        for step in (*self.fixed, *self.steps):
            if isinstance(step, TermStep):
                leaves = [(v, forms[int(name[1:])]) for name, v in free_variables(step.root).items()]
                canonical = step.target in exact
                assert not (canonical and step.sums)
                size = int(np.prod(step.sums[0] if step.sums else step.shape, dtype=np.int64))
                renamed = {v: var(f"a{i}", v.sort) for i, (v, _) in enumerate(leaves)}
                form = tuple((f"a{i}", f) for i, (_, f) in enumerate(leaves))
                step.lowered = lower(substitute(step.root, renamed), form, canonical, size >= MANY)
                forms[step.target] = _summed(step) if step.sums else step.lowered.form
        self.exact = exact

    # -- places ----

    def _settle(self, steps: list[Step], places: dict[int, int], slots: list[Any], lasting: set[int]) -> list[Action]:
        last = {a: i for i, step in enumerate(steps) for a in step.arguments}
        own = {step.target for step in steps}
        free: list[int] = []
        actions = []
        for i, step in enumerate(steps):
            arguments = tuple(places[a] for a in step.arguments)
            for a in set(step.arguments):
                if last[a] == i and a in own and a not in lasting:
                    free.append(places[a])
            target = -1
            if step.target is not None:
                if step.target in last or step.target in lasting:
                    if free:
                        target = free.pop()
                    else:
                        target = len(slots)
                        slots.append(None)
                    places[step.target] = target
                else:
                    continue  # nobody uses it
            if isinstance(step, OtherStep):
                action = step.make(target, arguments)
                actions.append(_widened(action, target) if step.raw and step.target in self.exact else action)
            else:
                actions.append(self._term(step, target, arguments))
        return actions

    def _term(self, step: TermStep, target: int, places: tuple[int, ...]) -> Action:
        assert step.lowered is not None
        function, shape = step.lowered.function, step.shape
        if step.sums is not None:
            function = _sum_of(function, *step.sums, bits=_summed(step).bits)
        if any(a in self.numbers for a in step.arguments):
            function = _of_numbers(function)
        match places:
            case (a,):

                def one(slots: list[Any], _: Mapping[str, Words]) -> None:
                    found = function(slots[a])
                    slots[target] = found if found.shape == shape else _shaped(found, shape)

                return one
            case (a, b):

                def two(slots: list[Any], _: Mapping[str, Words]) -> None:
                    found = function(slots[a], slots[b])
                    slots[target] = found if found.shape == shape else _shaped(found, shape)

                return two

        def many(slots: list[Any], _: Mapping[str, Words]) -> None:
            found = function(*[slots[p] for p in places])
            slots[target] = found if found.shape == shape else _shaped(found, shape)

        return many


def _shaped(found: Words, shape: tuple[int, ...]) -> Words:
    """The array as one of the shape that it had in the recorded run."""
    if found.size == np.prod(shape, dtype=np.int64):
        return found.reshape(shape)
    return np.broadcast_to(found, shape)


def _widened(action: Action, target: int) -> Action:
    """The action, its result as 64-bit integers."""

    def widened(slots: list[Any], memories: Mapping[str, Words]) -> None:
        action(slots, memories)
        slots[target] = slots[target].astype(np.int64)

    return widened


def _of_numbers(function: Callable[..., Words]) -> Callable[..., Words]:
    """The function where arguments may be Python numbers."""
    return lambda *words: function(*[w if isinstance(w, np.ndarray) else np.array([w], np.int64) for w in words])


def _summed(step: TermStep) -> Form:
    """The form of a sum over axes."""
    assert step.sums is not None and step.lowered is not None
    counts, first = step.sums
    number = int(np.prod(counts[first:], dtype=np.int64))
    low, high = (min(step.lowered.form.low * number, 0), max(step.lowered.form.high * number, 0))
    if max(-low - 1, high) >> 63:
        return Form(64, -1 << 63, (1 << 63) - 1)  # modulo 2^64
    bits = 64 if step.lowered.form.bits == 64 or max(-low - 1, high) >> 31 else 32
    return Form(bits, low, high)


def _sum_of(function: Callable[..., Words], counts: tuple[int, ...], first: int, bits: int) -> Callable[..., Words]:
    """The function, its result summed over the axes from ``first`` on of a grid of ``counts`` points."""
    depth = len(counts)
    axes = tuple(range(first, depth))
    order = (*axes, *range(first))
    kind = np.dtype(f"int{bits}")

    def summed(*words: Words) -> Words:
        # the axes to be summed come first in memory, so that whole arrays are added
        found = function(*[_outermost(w, order) for w in words])
        found = found.reshape((1,) * (depth - found.ndim) + found.shape)
        missing = int(np.prod([counts[d] for i, d in enumerate(axes) if found.shape[i] == 1], dtype=np.int64))
        total = np.add.reduce(found, axis=tuple(range(depth - first)), dtype=kind)
        return np.asarray(total * missing if missing > 1 else total)

    return summed


def _outermost(words: Words, order: tuple[int, ...]) -> Words:
    if words.ndim < len(order):
        return words
    return np.ascontiguousarray(words.transpose(order))
