"""Recorded runs: what a run on arrays computes, as a straight list of steps.

Where addresses and extents depend on nothing but a configuration and counters, every run of it takes the same steps;
only the words differ.  A recorded run keeps what depends on memories as steps, and all the rest (addresses, masks,
conditions, which copy of a memory holds a word) as constants.  Steps whose values depend only on memories that the
kernel does not store to are taken again only when these have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .execution import Ref, Run, actual
from .regions import Piece, Place, read_pieces, words_of
from .values import Value

__all__ = ["Recorder", "Trace"]

Words = NDArray[Any]
Action = Callable[[list[Any], Mapping[str, Words]], None]

#: Longer runs are not recorded, nor are those whose constants take more bytes.
MOST_STEPS = 20_000
MOST_BYTES = 32 << 20
#: While a run is recorded, so many bytes of values are kept for use in later iterations.
MEMO_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class _Step:
    """A step: its result goes to ``target`` (None: a store), ``arguments`` are places of values."""

    target: int | None
    arguments: tuple[int, ...]
    make: Callable[[int, tuple[int, ...]], Action]


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
            for step in self.fixed:
                step(slots, memories)
            for place in self.between:
                slots[place] = None
            self.seen = present
        for step in self.steps:
            step(slots, memories)


class Recorder(Run):
    """A run that records its steps; its configuration must be ordered."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.slots: list[Any] = []
        self.constants: dict[int, int] = {}
        self.fixed: list[_Step] = []
        self.steps: list[_Step] = []
        self.inputs: set[str] = set()
        self.memo: dict[tuple[Any, ...], Any] = {}
        self.memo_bytes = 0
        # arrays that the steps hold, by identity
        self.held: dict[int, Words] = {}

    def trace(self) -> Trace | None:
        """What was recorded; None if it is too long or too large to keep."""
        if len(self.steps) + len(self.fixed) > MOST_STEPS:
            return None
        if sum(array.nbytes for array in self.held.values()) > MOST_BYTES:
            return None
        # a place is used again after the last use of its value, so that arrays do not live longer than needed
        constants = set(self.constants.values())
        wanted = {a for step in self.steps for a in step.arguments}
        places: dict[int, int] = {}
        slots: list[Any] = []
        for place in constants:
            places[place] = len(slots)
            slots.append(self.slots[place])
        fixed = self._settle(self.fixed, places, slots, wanted)
        results = {s.target for s in self.fixed if s.target is not None}
        between = sorted({places[p] for p in results - wanted if p in places} - {places[p] for p in results & wanted})
        steps = self._settle(self.steps, places, slots, results | constants)
        return Trace(slots, fixed, steps, between, sorted(self.inputs))

    def _settle(self, steps: list[_Step], places: dict[int, int], slots: list[Any], lasting: set[int]) -> list[Action]:
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
            actions.append(step.make(target, arguments))
        return actions

    # -- what a run does with values ----

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's value; a step where an argument is the result of one."""
        result = function(*map(actual, arguments))
        if not any(isinstance(a, Ref) for a in arguments):
            return result

        def make(target: int, places: tuple[int, ...]) -> Action:
            if len(places) == 1:
                (a,) = places

                def one(slots: list[Any], _: Mapping[str, Words]) -> None:
                    slots[target] = function(slots[a])

                return one
            if len(places) == 2:
                a, b = places

                def two(slots: list[Any], _: Mapping[str, Words]) -> None:
                    slots[target] = function(slots[a], slots[b])

                return two

            def many(slots: list[Any], _: Mapping[str, Words]) -> None:
                slots[target] = function(*[slots[p] for p in places])

            return many

        fixed = all(a.fixed for a in arguments if isinstance(a, Ref))
        return self._step(result, fixed, tuple(map(self._slot, arguments)), make)

    def load(self, memory: str, address: Any) -> Any:
        """Words of a memory, as a step."""
        address = self.in_range(memory, address)
        region = self.regions.get(memory)
        words = self.memories[memory]
        if memory in self.plan.steering and not isinstance(address, Ref):
            # its contents are those of the configuration
            return words_of(words, address)
        if region is None:
            self.inputs.add(memory)
            if isinstance(address, Ref):
                found = words_of(words, address.value)

                def make_look_up(target: int, places: tuple[int, ...]) -> Action:
                    (at,) = places

                    def look_up(slots: list[Any], memories: Mapping[str, Words]) -> None:
                        slots[target] = words_of(memories[memory], slots[at])

                    return look_up

                return self._step(found, address.fixed, (address.slot,), make_look_up)

            self._hold(address)

            def make_input(target: int, _: tuple[int, ...]) -> Action:
                def read(slots: list[Any], memories: Mapping[str, Words]) -> None:
                    slots[target] = words_of(memories[memory], address)

                return read

            return self._step(words_of(words, address), True, (), make_input)
        pieces: list[Piece] = region.load(address, self.mask, len(self.axes))
        for piece in pieces:
            self._hold(piece.words, piece.holds, *(piece.index if isinstance(piece.index, tuple) else (piece.index,)))

        def make(target: int, _: tuple[int, ...]) -> Action:
            def read(slots: list[Any], memories: Mapping[str, Words]) -> None:
                slots[target] = read_pieces(pieces, memories[memory])

            return read

        return self._step(read_pieces(pieces, words), False, (), make)

    def put(self, memory: str, address: Any, word: Any) -> None:
        """Stores words, as a step."""
        place: Place = self.regions[memory].store(address, actual(word), self.mask, len(self.axes))
        self._hold(place.words, place.active, *place.index)

        def make(_: int, places: tuple[int, ...]) -> Action:
            (value,) = places

            def write(slots: list[Any], memories: Mapping[str, Words]) -> None:
                place.write(memories[memory], slots[value])

            return write

        self.steps.append(_Step(None, (self._slot(word),), make))

    def leave(self, memory: str) -> None:
        """Moves the last iteration's words, as a step."""
        move = self.regions[memory].leave()

        def make(_: int, __: tuple[int, ...]) -> Action:
            def write(___: list[Any], memories: Mapping[str, Words]) -> None:
                move.apply(memories[memory])

            return write

        self.steps.append(_Step(None, (), make))

    def kept(self, node: Value, key: tuple[Any, ...]) -> Any:
        """A value that depends on a memory is the same step within this run."""
        return self.memo.get(key) if node.memories else super().kept(node, key)

    def keep(self, node: Value, key: tuple[Any, ...], found: Any) -> None:
        """Keeps a value."""
        if node.memories:
            words = actual(found)
            self.memo_bytes += words.nbytes if isinstance(words, np.ndarray) else 0
            if self.memo_bytes > MEMO_BYTES:  # what is needed again is computed again
                self.memo.clear()
                self.memo_bytes = 0
            self.memo[key] = found
        else:
            super().keep(node, key, found)

    def _step(
        self, result: Any, fixed: bool, arguments: tuple[int, ...], make: Callable[[int, tuple[int, ...]], Action]
    ) -> Ref:
        ref = Ref(len(self.slots), result, fixed)
        self.slots.append(None)
        (self.fixed if fixed else self.steps).append(_Step(ref.slot, arguments, make))
        return ref

    def _hold(self, *values: Any) -> None:
        for value in values:
            if isinstance(value, np.ndarray):
                self.held[id(value)] = value

    def _slot(self, value: Any) -> int:
        """The place of a value; constants get one, too."""
        if isinstance(value, Ref):
            return value.slot
        # the slot keeps the constant alive, so that its identity stays its own
        place = self.constants.get(id(value))
        if place is None:
            place = self.constants[id(value)] = len(self.slots)
            self.slots.append(value)
            self._hold(value)
        return place
