"""Two values that differ in one thing are two: the memory, the address, the moment, the iteration, or the case.

Each device combines two values, or has two cases; the wrong claim takes them for one, as two concrete runs show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from ila_lang import Expr, Kernel, const, ite, resize
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, status, step
from tests.chc.mapping.test_flow_revisits import claim as claim_of_scatter
from tests.chc.mapping.toy import Body, differs, mapping

States = Mapping[str, Expr]
Value = Callable[[Kernel, States, Expr], Expr]
ZERO = const(0, 32)
PAIRS: dict[str, Callable[[bool], TensorMapping]] = {}
WHERE = {
    "addresses of an iteration that may not exist": {"n": 200, "m": 171},
    "sums that are equal in iterations of a loop that has none": {"n": 3, "m": 1},
}
"""Sizes at which claims differ that differ hardly anywhere."""


def pair(build: Callable[[bool], TensorMapping]) -> Callable[[bool], TensorMapping]:
    """Notes a pair of claims, of which the one for True is right."""
    PAIRS[build.__name__.replace("_", " ")] = build
    return build


def everywhere(value: Value, before: Body = lambda k, s: None) -> Body:
    """dst[i, j] := value, at i*m + j."""

    def body(k: Kernel, s: States) -> None:
        before(k, s)
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            k.store(s["dst"], at, value(k, s, at))

    return body


def source(k: Kernel, s: States, at: Expr) -> Expr:
    return s["src"].load(at)


def literal(value: int) -> Value:
    return lambda k, s, at: const(value, 8)


@pair
def words_of_two_memories(right: bool) -> TensorMapping:
    def clear(k: Kernel, s: States) -> None:
        with k.loop("x", s["n"] * s["m"]) as x:
            k.store(s["tmp"], x, const(0, 8))

    device = everywhere(lambda k, s, at: s["src"].load(at) ^ s["tmp"].load(at), clear)
    return flow(mapping(device, everywhere(source if right else literal(0))))


@pair
def a_word_that_nobody_wrote(right: bool) -> TensorMapping:
    device = everywhere(lambda k, s, at: s["src"].load(at) ^ s["src" if right else "tmp"].load(at))
    return flow(mapping(device, everywhere(literal(0))))


@pair
def sums_that_are_equal_in_iterations_of_a_loop_that_has_none(right: bool) -> TensorMapping:
    """Two sums of the device are equal inside of a loop over m - 1, which has no iteration where m is 1."""

    def total(k: Kernel, s: States, name: str, word: Callable[[Expr], Expr]) -> Expr:
        result = k.let(name, const(0, 8))
        with k.loop(f"{name}_u", s["m"]) as u:
            k.assign(result, result + word(k.load(f"{name}_word", s["src"], u)))
        return result

    def device(k: Kernel, s: States) -> None:
        one = total(k, s, "one", lambda word: word)
        two = total(k, s, "two", lambda word: word if right else ite(s["m"] == 1, const(1, 8), word))
        combine(k, s, one, lambda _: (one, two), two)

    def ir(k: Kernel, s: States) -> None:
        one = total(k, s, "one", lambda word: word)

        def both(x: Expr) -> tuple[Expr, Expr]:
            inner = total(k, s, "inner", lambda word: ite(x < s["m"] - 1, word, const(0, 8)))
            return inner, inner

        combine(k, s, one, both, one)

    def combine(k: Kernel, s: States, one: Expr, both: Callable[[Expr], tuple[Expr, Expr]], two: Expr) -> None:
        even, odd = k.let("even", const(0, 8)), k.let("odd", const(0, 8))
        with k.loop("x", s["m"] - 1) as x:
            first, second = both(x)
            k.assign(even, even + first)
            k.assign(odd, (odd << 1) + second)
        last = k.let("last", one)  # a fold that begins with the first sum, which is compared outside of the loop
        with k.loop("v", s["m"]) as v:
            k.assign(last, (last << 1) + k.load("v_word", s["src"], v))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, (even ^ odd) + last - two)

    return flow(mapping(device, ir))


@pair
def addresses_of_an_iteration_that_may_not_exist(right: bool) -> TensorMapping:
    """The device's word at p - 1 + 1 is the IR's at p but where p is 0: there p - 1 wraps, and no sum reads at it."""

    def body(first: Callable[[Expr, Expr], Expr], later: Callable[[Expr], Expr]) -> Body:
        def filled(k: Kernel, s: States) -> None:
            p = ite(s["n"] + s["m"] == 371, const(0, 16), resize(s["m"], 16))
            with k.loop("c", p) as c:
                total = k.let("total", k.load("head", s["src"], first(p, c)))
                with k.loop("u", s["m"]) as u:
                    k.assign(total, total + k.load("word", s["src"], u))
                k.store(s["tmp"], c.zext(32), total)
            sums, words = k.let("sums", const(0, 8)), k.let("words", const(0, 8))
            with k.loop("x", p):
                k.assign(sums, (sums << 1) + k.load("sum", s["tmp"], ZERO))
            with k.loop("y", s["n"]):
                other = k.let("other", k.load("tail", s["src"], later(p)))
                with k.loop("v", s["m"]) as v:
                    k.assign(other, other + k.load("again", s["src"], v))
                k.assign(words, (words << 1) + other)
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, sums ^ words)

        return filled

    device = body(lambda p, c: (p - 1 - c).zext(32) + 1, lambda p: p.zext(32) if right else (p - 1).zext(32) + 1)
    return flow(mapping(device, body(lambda p, c: (p - c).zext(32), lambda p: p.zext(32))))


@pair
def a_word_that_is_chosen_of_another_memory(right: bool) -> TensorMapping:
    """Words come in pairs, of which one is chosen; or the second one of a pair comes from elsewhere."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            first = i * s["m"] + j // 2 * 2
            one, two = s["src"].load(first), s["src" if right else "tmp"].load(first + 1)
            k.store(s["dst"], i * s["m"] + j, ite(j % 2 == 0, one, two))

    return flow(mapping(body, everywhere(source)))


@pair
def words_beside_each_other(right: bool) -> TensorMapping:
    def both(k: Kernel, s: States, at: Expr) -> Expr:
        return s["src"].load(at) ^ s["src"].load(at + 1)

    return flow(mapping(everywhere(both), everywhere(both if right else literal(0))))


@pair
def a_word_before_and_after_it_changes(right: bool) -> TensorMapping:
    def changing(k: Kernel, s: States) -> None:
        for value in (2, 7):
            k.store(s["tmp"], ZERO, const(value, 8))
            k.store(s["tmp"], const(value, 32), k.load(f"word{value}", s["tmp"], ZERO))
        k.store(s["tmp"], ZERO, const(0, 8))

    def both(k: Kernel, s: States, at: Expr) -> Expr:
        one, two = (s["tmp"].load(const(value, 32)) for value in (2, 7))
        return one ^ two

    return flow(mapping(everywhere(both, changing), everywhere(literal(5 if right else 0))))


@pair
def words_of_two_iterations(right: bool) -> TensorMapping:
    def both(k: Kernel, s: States, at: Expr) -> Expr:
        acc = k.let("acc", const(0, 8))
        with k.loop("t", const(2, 32)) as t:
            k.store(s["tmp"], ZERO, t[7:0])
            word = k.load("word", s["tmp"], ZERO)
            k.store(s["tmp"], ZERO, const(9, 8))
            k.assign(acc, acc ^ word)
        return acc

    return flow(mapping(everywhere(both), everywhere(literal(1 if right else 0))))


@pair
def a_condition_and_one_inside_it(right: bool) -> TensorMapping:
    """Words are copied under two conditions, of which the outer one leaves out the last row."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            word = k.load("word", s["src"], at)
            with k.when("outer", i < s["n"] - (0 if right else 1)), k.when("inner", j < s["m"]):
                k.store(s["dst"], at, word)

    return flow(mapping(device, everywhere(source)))


@pair
def a_word_in_two_cases(right: bool) -> TensorMapping:
    """Of columns 0 and 1 the words are taken as they are; of the others something is added to a word."""

    def side(column: Callable[[Expr], Expr]) -> Body:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                word = k.load("word", s["src"], i * s["m"] + column(j))
                k.store(s["dst"], i * s["m"] + j, word + ite(j < 2, const(0, 8), const(1, 8)))

        return body

    own = side(lambda j: j)
    return flow(mapping(own if right else side(lambda j: j % 2), own))


@pair
def a_sum_in_two_cases(right: bool) -> TensorMapping:
    """As above, with sums of as many words as there are columns."""

    def side(column: Callable[[Expr], Expr]) -> Body:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                total = k.let("total", const(0, 8))
                with k.loop("t", s["m"]) as t:
                    k.assign(total, total + k.load("word", s["src"], i * s["m"] + column(j) + t))
                k.store(s["dst"], i * s["m"] + j, total + ite(j < 2, const(0, 8), const(1, 8)))

        return body

    own = side(lambda j: j)
    return flow(mapping(own if right else side(lambda j: j % 2), own))


@pair
def sums_of_two_loops(right: bool) -> TensorMapping:
    def both(k: Kernel, s: States, at: Expr) -> Expr:
        totals = []
        for first in range(2):
            total = k.let(f"total{first}", const(0, 8))
            with k.loop(f"t{first}", s["m"]) as t:
                k.assign(total, total + k.load(f"word{first}", s["src"], t + first))
            totals.append(total)
        return totals[0] ^ totals[1]

    return flow(mapping(everywhere(both), everywhere(both if right else literal(0))))


def sums(right: bool, begin: Callable[[Expr], Expr], first: Callable[[Expr], Expr]) -> TensorMapping:
    """Two sums of the first row, which differ where they begin or which words they take."""

    def both(k: Kernel, s: States, at: Expr) -> Expr:
        acc = k.let("acc", const(0, 8))
        with k.loop("twice", const(2, 32)) as q:
            total = k.let("total", begin(q))
            with k.loop("t", s["m"]) as t:
                k.assign(total, total + k.load("word", s["src"], t + first(q)))
            k.assign(acc, acc ^ total)
        return acc

    def ir(k: Kernel, s: States, at: Expr) -> Expr:
        return both(k, s, at) if right else const(0, 8)

    return flow(mapping(everywhere(both), everywhere(ir)))


@pair
def sums_that_begin_with_two_values(right: bool) -> TensorMapping:
    return sums(right, lambda q: q[7:0], lambda q: ZERO)


@pair
def sums_of_two_ranges(right: bool) -> TensorMapping:
    return sums(right, lambda q: const(0, 8), lambda q: q)


def state_of(taken: Callable[[Kernel, States, Expr, Expr], tuple[Expr, Expr]]) -> Body:
    """dst[t, j] = step(step of two words of the row before, src[t, j]), and tmp[t, j] = step(1, src[t, j])."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t, k.loop("j", s["m"]) as j:
            state = k.let("state", const(0, 8))
            with k.when("later", t != 0):
                k.assign(state, step(*taken(k, s, (t - 1) * s["m"], j)))
            word = k.load("word", s["src"], t * s["m"] + j)
            k.store(s["tmp"], t * s["m"] + j, step(const(1, 8), word))
            k.store(s["dst"], t * s["m"] + j, step(state, word))

    return body


def one_word_twice(k: Kernel, s: States, row: Expr, j: Expr) -> tuple[Expr, Expr]:
    return k.load("one", s["dst"], row + j), k.load("two", s["dst"], row + j)


def words_of_two_columns(k: Kernel, s: States, row: Expr, j: Expr) -> tuple[Expr, Expr]:
    return k.load("one", s["dst"], row + j), k.load("two", s["dst"], row + (s["m"] - 1 - j))


def words_of_two_states(k: Kernel, s: States, row: Expr, j: Expr) -> tuple[Expr, Expr]:
    return k.load("one", s["dst"], row + j), k.load("two", s["tmp"], row + j)


@pair
def earlier_words_of_two_columns(right: bool) -> TensorMapping:
    sides = state_of(one_word_twice if right else words_of_two_columns), state_of(one_word_twice)
    return flow(mapping(*sides, abstract=frozenset({"step"})), recurrent=True)


@pair
def earlier_words_of_two_memories(right: bool) -> TensorMapping:
    sides = state_of(one_word_twice if right else words_of_two_states), state_of(one_word_twice)
    return flow(mapping(*sides, abstract=frozenset({"step"})), recurrent=True)


@pair
def an_earlier_word_of_another_memory(right: bool) -> TensorMapping:
    def side(memory: str) -> Body:
        def taken(k: Kernel, s: States, row: Expr, j: Expr) -> tuple[Expr, Expr]:
            return const(0, 8), k.load("before", s[memory], row + j)

        return state_of(taken)

    claim = mapping(side("dst"), side("dst" if right else "tmp"), abstract=frozenset({"step"}))
    return flow(claim, recurrent=True)


def scatter(
    k: Kernel,
    s: States,
    memory: str,
    change: Callable[[Expr], Expr | int],
    place: Callable[[Expr], Expr] = lambda o: o,
) -> None:
    """memory[place(o)] = fold over t < m of src[o*s + t] ^ change(o), word by word of src."""
    rows = (s["n"] - 1) * s["s"] + s["m"]
    with k.loop(f"{memory}_row", rows) as r, k.loop(f"{memory}_tap", s["m"]) as t:
        o = (r - t) // s["s"]
        with k.when(f"{memory}_inside", (t <= r) & ((r - t) % s["s"] == 0) & (o < s["n"])):
            old = ite(t == 0, const(0, 8), k.load(f"{memory}_old", s[memory], place(o)))
            k.store(s[memory], place(o), step(old, k.load(f"{memory}_in", s["src"], r) ^ change(o)))


def gather(change: int, result: Callable[[Expr, Expr], Expr]) -> Body:
    """dst[o] = result(o, such a fold)."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("o", s["n"]) as o:
            acc = k.let("acc", const(0, 8))
            with k.loop("x", s["m"]) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], o * s["s"] + x) ^ change))
            k.store(s["dst"], o, result(o, acc))

    return body


def scattered(device: Body, ir: Body) -> TensorMapping:
    return replace(claim_of_scatter(device, ir), sample_shapes=((1, 2, 1), (1, 4, 2), (3, 5, 2), (4, 2, 3), (5, 4, 1)))


@pair
def scattered_sums_in_two_memories(right: bool) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        scatter(k, s, "tmp", lambda o: 1)
        scatter(k, s, "dst", lambda o: 0)
        with k.loop("i", s["n"]) as i:
            one, two = k.load("one", s["dst"], i), k.load("two", s["dst" if right else "tmp"], i)
            k.store(s["dst"], i, step(one, two))

    return scattered(device, gather(0, lambda o, acc: step(acc, acc)))


@pair
def scattered_sums_beside_each_other(right: bool) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("c", const(2, 32)) as c:
            scatter(k, s, "tmp", lambda o: ite(c == 0, const(5, 8), const(1, 8)), lambda o: o * 2 + c)
        with k.loop("i", s["n"]) as i:
            one, two = k.load("one", s["tmp"], i * 2), k.load("two", s["tmp"], i * 2 + (0 if right else 1))
            k.store(s["dst"], i, step(one, two))

    return scattered(device, gather(5, lambda o, acc: step(acc, acc)))


@pair
def a_scattered_sum_in_two_cases(right: bool) -> TensorMapping:
    def finish(o: Expr, total: Expr) -> Expr:
        return total + ite(o < 2, const(0, 8), const(1, 8))

    def device(k: Kernel, s: States) -> None:
        scatter(k, s, "tmp", lambda o: ite(o < 2, const(0, 8), const(0 if right else 1, 8)))
        with k.loop("i", s["n"]) as i:
            k.store(s["dst"], i, finish(i, k.load("sum", s["tmp"], i)))

    return scattered(device, gather(0, finish))


@pytest.mark.parametrize("name", PAIRS)
def test_two_values_are_not_one(name: str) -> None:
    right, wrong = PAIRS[name](True), PAIRS[name](False)
    point = WHERE.get(name, {"n": 3, "m": 4, "s": 2})
    sizes, rounds = {x: k for x, k in point.items() if x in right.parameters}, 2 if name in WHERE else 20
    assert differs(wrong, sizes, rounds) and not differs(right, sizes, rounds)
    assert status(wrong) is Status.UNKNOWN
    assert status(right) is Status.PROVED


def test_a_word_of_another_input_is_another_word() -> None:
    def taken(name: str) -> TensorMapping:
        claim = mapping(everywhere(lambda k, s, at: s[name].load(at)), everywhere(source))
        return flow(replace(claim, inputs=(("src", "isrc"), ("tmp", "itmp"))))

    assert status(taken("tmp")) is Status.UNKNOWN
    assert status(taken("src")) is Status.PROVED
