"""A run that records its steps.

Where addresses and extents depend on nothing but a configuration and counters, every run of it takes the same steps;
only the words differ.  A recorded run keeps what depends on memories as steps, and all the rest (addresses, masks,
conditions, which copy of a memory holds a word) as constants: of a term, the parts that depend on nothing else are
computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_terms
from ila_lang.language.build import ite
from ila_lang.language.expr import Expr, bool_const, bv_const, free_variables, postorder, substitute, var
from ila_lang.language.sorts import BOOL, Sort, bv

from .execution import Ref, Run, actual, sum_over
from .products import Product
from .ranges import Form, known_form
from .regions import read_pieces, words_of
from .trace import Action, OtherStep, Steps, TermStep, Trace
from .values import Value
from .windows import Window, Write, narrowed

Words = NDArray[Any]

#: Longer runs are not recorded, nor are those whose constants take more bytes.
MOST_STEPS = 20_000
MOST_BYTES = 32 << 20
#: While a run is recorded, so many bytes of values are kept for use in later iterations.
MEMO_BYTES = 8 << 20


class _Part:
    """A term that is the same in every run, as functions of numbers and of arrays."""

    def __init__(self, term: Expr) -> None:
        self.term = term
        self.variables = list(free_variables(term).values())
        self.names = [v.name for v in self.variables]

    @cached_property
    def on_numbers(self) -> Callable[..., Any]:
        """The term as a function of numbers, in a tuple."""
        return compile_terms(self.variables, [self.term])

    @cached_property
    def on_arrays(self) -> Callable[..., Any]:
        """The term as a function of numbers and arrays, in a tuple."""
        return compile_terms(self.variables, [self.term], vector=True)

    def evaluate(self, arguments: Sequence[Any]) -> Any:
        """The term's value."""
        many = any(isinstance(a, np.ndarray) for a in arguments)
        (found,) = (self.on_arrays if many else self.on_numbers)(*arguments)
        return found


class _Split:
    """A term without its parts that are the same in every run: these are functions of what they use."""

    def __init__(self, root: Expr, changing: frozenset[str]) -> None:
        moving: dict[Expr, bool] = {}
        for node in postorder([root]):
            moving[node] = node.name in changing if node.op == "var" else any(moving[a] for a in node.args)
        parts = [
            a for n in postorder([root]) if moving[n] for a in n.args if not moving[a] and a.op != "const"
        ]  # fmt: skip
        self.parts = [_Part(part) for part in dict.fromkeys(parts)]
        stand_ins = {part.term: var(f"part.{i}", part.term.sort) for i, part in enumerate(self.parts)}
        self.rest = substitute(root, stand_ins)
        self.names = [name for name in free_variables(root) if name in changing]
        self.variables = [v for name, v in free_variables(root).items() if name in changing]
        self.variables += stand_ins.values()

    @cached_property
    def on_arrays(self) -> Callable[..., Any]:
        """The term as a function of what changes and then its parts, in a tuple."""
        return compile_terms(self.variables, [self.rest], vector=True)

    def evaluate(self, changing: Sequence[Any], parts: Sequence[Any]) -> Any:
        """The term's value: an array, or a number."""
        (found,) = self.on_arrays(*changing, *parts)
        if isinstance(found, np.ndarray) and found.ndim:
            return found
        return found.item() if hasattr(found, "item") else found


_split = lru_cache(maxsize=2048)(_Split)


class Recorder(Run):
    """A run that records its steps; its configuration must be ordered."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.record = Steps()
        self.slots = 0
        self.inputs: set[str] = set()
        # values live no longer than the run needs them
        self.refs: WeakValueDictionary[int, Ref] = WeakValueDictionary()
        self.memo: dict[tuple[Any, ...], Any] = {}
        self.memo_bytes = 0
        # constants by identity, with their slots; arrays that the steps hold, by identity
        self.constants: dict[int, tuple[Any, int]] = {}
        self.held: dict[int, Words] = {}
        self.bytes = 0

    def trace(self) -> Trace | None:
        """What was recorded; None if it is too long or too large to keep."""
        if len(self.record.steps) + len(self.record.fixed) > MOST_STEPS:
            return None
        if self.bytes + sum(array.nbytes for array in self.held.values()) > MOST_BYTES:
            return None
        return self.record.trace(self.inputs)

    # -- values ----

    def apply(self, node: Value, words: Mapping[str, Any]) -> Any:
        """The term; a step over what depends on memories, with its other parts computed once."""
        bound = {n: words[n] if n in words else self.pick(n) for n in node.names}
        changing = frozenset(n for n, value in bound.items() if isinstance(value, Ref))
        if not changing:
            return narrowed(super().apply(node, words))
        present = [actual(value) for value in bound.values()]
        if not any(isinstance(p, np.ndarray) for p in present):
            return self.compute(node.evaluate_numbers, *bound.values())
        split = _split(node.root, changing)
        parts = [part.evaluate([bound[n] for n in part.names]) for part in split.parts]
        result = split.evaluate([actual(bound[n]) for n in split.names], parts)
        if not isinstance(result, np.ndarray):
            return self.compute(node.evaluate, *bound.values())
        mapping = {v: self._leaf(bound[v.name], v) for v in node.variables if v.name in changing}
        for part, found in zip(split.parts, parts, strict=True):
            mapping[part.term] = self._leaf(found, part.term)
        return self._term(substitute(node.root, mapping), result)

    def _leaf(self, value: Any, like: Expr) -> Expr:
        """What stands for a value in a term."""
        if isinstance(value, Ref):
            return Steps.variable(value.slot, like)
        value = narrowed(np.asarray(value))
        if not isinstance(value, np.ndarray):
            return bool_const(bool(value)) if like.sort == BOOL else bv_const(int(value), like.width)
        if like.sort == BOOL:
            value, form = value.astype(bool), Form(0, 0, 1)
        else:
            # rounded up, so that like configurations have like terms
            assert value.min() >= 0, "values of terms are numbers, read as unsigned"
            high = (1 << int(value.max()).bit_length()) - 1
            form = Form(64 if high >> 31 else 32, 0, high)
            value = value.astype(f"int{form.bits}")
        slot = self._constant(value)
        self.record.forms[slot] = form
        return Steps.variable(slot, like)

    def _term(self, root: Expr, result: Words, *, sums: Any = None, reshaped: bool = False, same: bool = True) -> Any:
        """A term over slots that has ``result`` in this run, as a step; none where it is ``same`` as a slot."""
        refs = [self.refs[int(name[1:])] for name in free_variables(root) if int(name[1:]) in self.refs]
        if not refs:
            return narrowed(result)
        if same and root.op == "var" and not reshaped and not sums and np.shape(refs[0].value) == result.shape:
            return refs[0]
        ref = self._ref(result, all(r.fixed for r in refs), root.sort)
        self._list(ref.fixed).append(TermStep(ref.slot, root, result.shape, sums, reshaped))
        return ref

    def choose(self, mask: Words, found: Any, other: Any, width: int) -> Any:
        """``found`` where the mask holds, else ``other``."""
        if not isinstance(found, Ref) and not isinstance(other, Ref):
            return super().choose(mask, found, other, width)
        like = var("like", bv(width))
        test = self._leaf(mask, var("test", BOOL))
        return self._term(
            ite(test, self._leaf(found, like), self._leaf(other, like)),
            super().choose(mask, actual(found), actual(other), width),
        )

    def plus(self, old: Any, more: Any, width: int) -> Any:
        """The sum modulo 2^width; ``more`` is congruent to what is added."""
        result = super().plus(actual(old), actual(more), width)
        if not isinstance(old, Ref) and not isinstance(more, Ref):
            return result
        if not isinstance(result, np.ndarray):
            return self.compute(partial(super().plus, width=width), old, more)
        if not isinstance(more, Ref):
            more = more & (1 << width) - 1
        like = var("like", bv(width))
        # a sum over axes has not been cut to the width
        return self._term(self._leaf(old, like) + self._leaf(more, like), result, same=False)

    def total(self, value: Any, first: int, width: int) -> Any:
        """The sum over the axes from ``first`` on."""
        if not first or not isinstance(value, Ref) or not isinstance(value.value, np.ndarray):
            return self.compute(partial(sum_over, counts=self.counts, first=first), value)
        result = sum_over(value.value, self.counts, first)
        return self._term(self._leaf(value, var("like", bv(width))), result, sums=(self.counts, first))

    def reshaped(self, found: Any, shape: tuple[int, ...]) -> Any:
        """An array in another shape."""
        if not isinstance(found, Ref) or found.sort is None:
            return super().reshaped(found, shape)
        return self._term(self._leaf(found, var("like", found.sort)), found.value.reshape(shape), reshaped=True)

    def sum_of_products(self, node: Product, first: int) -> Any:
        """The sum over the axes from ``first`` on, as a product of matrices, and the range in which it lies."""
        total = super().sum_of_products(node, first)
        if isinstance(total, Ref) and isinstance(total.value, np.ndarray):
            most = int(np.prod(self.counts[first:], dtype=np.int64)) * node.magnitude
            most = 1 << most.bit_length()
            self.record.forms[total.slot] = Form(64, -most, most)
        return total

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's value; a step where an argument is the result of one."""
        result = function(*map(actual, arguments))
        if not any(isinstance(a, Ref) for a in arguments):
            return result

        def make(target: int, places: tuple[int, ...]) -> Action:
            def act(slots: list[Any], _: Mapping[str, Words]) -> None:
                slots[target] = function(*[slots[p] for p in places])

            return act

        ref = self._ref(result, all(a.fixed for a in arguments if isinstance(a, Ref)))
        if not isinstance(result, np.ndarray):
            self.record.numbers.add(ref.slot)
        self.record.forms[ref.slot] = Form(64, -1 << 63, (1 << 63) - 1)
        self._list(ref.fixed).append(OtherStep(ref.slot, tuple(map(self._slot, arguments)), make))
        return ref

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

    # -- memories ----

    def load(self, memory: str, address: Any) -> Any:
        """Words of a memory, as a step."""
        address = self.in_range(memory, address)
        words, region = self.memories[memory], self.regions.get(memory)
        width = self.plan.memories[memory].data_width
        if memory in self.plan.steering and not isinstance(address, Ref):
            # its contents are those of the configuration
            return words_of(words, address)
        if region is not None:
            assert not isinstance(address, Ref)
            pieces = region.load(address, self.mask, len(self.axes))
            if len(pieces) > 1 or not isinstance(address, np.ndarray):
                for piece in pieces:
                    index = piece.index if isinstance(piece.index, tuple) else (piece.index,)
                    self._hold(piece.words, piece.holds, *index)
                return self._read(read_pieces(pieces, words), False, width, lambda m: read_pieces(pieces, m[memory]))
            (piece,) = pieces
            return self._window(memory, piece.words, piece.index, False, width)
        self.inputs.add(memory)
        if isinstance(address, np.ndarray):
            return self._window(memory, None, address, True, width)
        if not isinstance(address, Ref):
            return self._read(words_of(words, address), True, width, lambda m: words_of(m[memory], address))

        def make(target: int, places: tuple[int, ...]) -> Action:
            (at,) = places

            def look_up(slots: list[Any], memories: Mapping[str, Words]) -> None:
                slots[target] = words_of(memories[memory], slots[at])

            return look_up

        ref = self._loaded(words_of(words, address.value), address.fixed, width)
        self._list(ref.fixed).append(OtherStep(ref.slot, (address.slot,), make))
        return ref

    def _window(self, memory: str, words: Words | None, index: Any, fixed: bool, width: int) -> Ref:
        """A load from places that are the same in every run."""
        source = self.memories[memory] if words is None else words
        window = Window(words, source, index if isinstance(index, tuple) else (index,))
        self._hold(words)
        self.bytes += window.nbytes
        found = window.read(self.memories[memory])
        return self._read(found.astype(np.int64), fixed, width, lambda m: window.read(m[memory]), raw=True)

    def _read(
        self, found: Any, fixed: bool, width: int, read: Callable[[Mapping[str, Words]], Any], raw: bool = False
    ) -> Ref:
        """A load as a step; with ``raw`` it gives words of an array's own type."""
        ref = self._loaded(found, fixed, width, raw)

        def make(target: int, _: tuple[int, ...]) -> Action:
            def act(slots: list[Any], memories: Mapping[str, Words]) -> None:
                slots[target] = read(memories)

            return act

        self._list(fixed).append(OtherStep(ref.slot, (), make, raw=raw))
        return ref

    def _loaded(self, found: Any, fixed: bool, width: int, raw: bool = False) -> Ref:
        ref = self._ref(found, fixed, bv(width))
        self.record.forms[ref.slot] = known_form(width)._replace(raw=raw)
        if not isinstance(found, np.ndarray):
            self.record.numbers.add(ref.slot)
        return ref

    def put(self, memory: str, address: Any, word: Any) -> None:
        """Stores words, as a step."""
        region, value = self.regions[memory], actual(word)
        words, index = region.target(address, len(self.axes))
        region.store(address, value, self.mask, len(self.axes))
        array = self.memories[memory]
        write = Write(words, array, index, self.mask, np.shape(value))
        self._hold(words)
        self.bytes += write.nbytes
        # an array of words of just that width cuts what is stored
        exact = array.dtype.kind != "u" or array.dtype.itemsize * 8 != self.plan.memories[memory].data_width

        def make(_: int, places: tuple[int, ...]) -> Action:
            (at,) = places

            def act(slots: list[Any], memories: Mapping[str, Words]) -> None:
                write.write(memories[memory], slots[at])

            return act

        self.record.steps.append(OtherStep(None, (self._slot(word),), make, exact=exact))

    def leave(self, memory: str) -> None:
        """Moves the last iteration's words, as a step."""
        move = self.regions[memory].leave()

        def make(_: int, __: tuple[int, ...]) -> Action:
            def act(___: list[Any], memories: Mapping[str, Words]) -> None:
                move.apply(memories[memory])

            return act

        self.record.steps.append(OtherStep(None, (), make))

    # -- slots ----

    def _list(self, fixed: bool) -> list[Any]:
        return self.record.fixed if fixed else self.record.steps

    def _ref(self, value: Any, fixed: bool, sort: Sort | None = None) -> Ref:
        ref = self.refs[self.slots] = Ref(self.slots, value, fixed, sort)
        self.slots += 1
        return ref

    def _hold(self, *values: Any) -> None:
        for value in values:
            if isinstance(value, np.ndarray):
                self.held[id(value)] = value

    def _slot(self, value: Any) -> int:
        """The place of a value; constants get one, too."""
        return value.slot if isinstance(value, Ref) else self._constant(value)

    def _constant(self, value: Any) -> int:
        # the constant is kept alive, so that its identity stays its own
        found = self.constants.get(id(value))
        if found is None:
            found = self.constants[id(value)] = value, self.slots
            self.record.constants[self.slots] = value
            self.slots += 1
            self._hold(value)
        return found[1]
