"""Loops that carry a register and write memories: proved where the writes do not need the register, and attacked.

Every wrong program differs from the right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, last, status, step
from tests.chc.mapping.test_flow_in_place import most_of_them_slow
from tests.chc.mapping.toy import differs, mapping

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
Place = Callable[[Expr, Expr, States], Expr]
ZERO = const(0, 32)


def claim_of(device: Body, ir: Body | None = None) -> TensorMapping:
    return flow(mapping(device, ir or total_ir, abstract=frozenset({"step", "last"})))


def total_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = step(fold of last(src) over all elements, src[i, j])."""
    acc = k.let("acc", const(3, 8))
    with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
        k.assign(acc, step(acc, last(k.load("word", s["src"], a * s["m"] + b))))
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        k.store(s["dst"], i * s["m"] + j, step(acc, k.load("own", s["src"], i * s["m"] + j)))


def buffered(
    *,
    put: Place = lambda t, x, s: ZERO,
    get: Place = lambda t, x, s: ZERO,
    turned: bool = False,
    begin: int = 3,
    partial: bool = False,
    restart: bool = False,
    skipped: Callable[[Expr], Expr] | None = None,
    spoilt: bool = False,
) -> Body:
    """Every element goes through one cell of a buffer, which the next one overwrites, into the fold."""

    def body(k: Kernel, s: States) -> None:
        acc = k.let("acc", const(begin, 8))
        with k.loop("t", s["n"]) as t:
            if restart:
                k.assign(acc, const(begin, 8))
            with k.loop("x", s["m"]) as x:

                def store() -> None:
                    word = last(k.load("in", s["src"], t * s["m"] + x))
                    k.store(s["tmp"], put(t, x, s), step(acc, word) if spoilt else word)

                def add() -> None:
                    value = k.load("buffered", s["tmp"], get(t, x, s))
                    if skipped is None:
                        k.assign(acc, step(acc, value))
                    else:
                        with k.when("counts", skipped(x)):
                            k.assign(acc, step(acc, value))

                for phase in (add, store) if turned else (store, add):
                    phase()
                if partial:
                    own = k.load("early", s["src"], t * s["m"] + x)
                    k.store(s["dst"], t * s["m"] + x, step(acc, own))
        if not partial:
            with k.loop("u", s["n"]) as u, k.loop("v", s["m"]) as v:
                k.store(s["dst"], u * s["m"] + v, step(acc, k.load("own", s["src"], u * s["m"] + v)))

    return body


def test_what_a_fold_reads_is_kept_where_it_is_read() -> None:
    verdict = prove(claim_of(buffered()))
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))


WRONG: dict[str, Body] = {
    "the element before, from the cell that is overwritten next": buffered(turned=True),
    "another cell than the one that is written": buffered(put=lambda t, x, s: x & 1),
    "the fold begins with another value": buffered(begin=2),
    "the fold begins again in every row": buffered(restart=True),
    "results use the fold so far": buffered(partial=True),
    "every other element is left out": buffered(skipped=lambda x: x[0] == 1),
    "what is written is the fold": buffered(spoilt=True),
    "the next cell": buffered(put=lambda t, x, s: x, get=lambda t, x, s: x + 1),
}


@pytest.mark.parametrize("name", most_of_them_slow(WRONG, 4))
def test_a_wrong_program_is_not_proved(name: str) -> None:
    claim = claim_of(WRONG[name])
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


def phases(*, late: bool = False, short: bool = False, cleared: bool = True) -> Body:
    """Row by row: the row goes to a buffer and is then added; at the end the buffer is cleared."""

    def body(k: Kernel, s: States) -> None:
        acc = k.let("acc", const(3, 8))
        with k.loop("t", s["n"]) as t:

            def copy() -> None:
                with k.loop("c", s["m"] - 1 if short else s["m"]) as c:
                    k.store(s["tmp"], c, last(k.load("in", s["src"], t * s["m"] + c)))

            def add() -> None:
                with k.loop("x", s["m"]) as x:
                    k.assign(acc, step(acc, k.load("buffered", s["tmp"], x)))

            for phase in (add, copy) if late else (copy, add):
                phase()
        if cleared:
            with k.loop("d", s["m"]) as d:
                k.store(s["tmp"], d, const(0, 8))
        with k.loop("u", s["n"]) as u, k.loop("v", s["m"]) as v:
            k.store(s["dst"], u * s["m"] + v, step(acc, k.load("own", s["src"], u * s["m"] + v)))

    return body


@pytest.mark.parametrize("cleared", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_fold_goes_on_from_phase_to_phase(cleared: bool) -> None:
    verdict = prove(claim_of(phases(cleared=cleared)))
    assert verdict.status is Status.PROVED, verdict.reason


WRONG_PHASES: dict[str, Body] = {
    "a row is added before it is copied": phases(late=True),
    "the last element of a row is that of the row before": phases(short=True),
}


@pytest.mark.parametrize("name", most_of_them_slow(WRONG_PHASES, 1))
def test_wrong_phases_are_not_proved(name: str) -> None:
    claim = claim_of(WRONG_PHASES[name])
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


def read_first(*, wrong: bool) -> Body:
    """dst = step(fold of src, word 0 of src); the word is read after the fold's loop has written it, or before."""

    def body(k: Kernel, s: States) -> None:
        before = k.load("before", s["tmp"], ZERO)
        acc = k.let("acc", const(3, 8))
        with k.loop("x", s["n"]) as x:
            word = k.load("in", s["src"], x)
            k.store(s["tmp"], x, word)
            k.assign(acc, step(acc, word))
        k.store(s["dst"], ZERO, step(acc, before if wrong else k.load("after", s["tmp"], ZERO)))

    return body


def first_word_ir(k: Kernel, s: States) -> None:
    acc = k.let("acc", const(3, 8))
    with k.loop("x", s["n"]) as x:
        k.assign(acc, step(acc, k.load("in", s["src"], x)))
    k.store(s["dst"], ZERO, step(acc, k.load("first", s["src"], ZERO)))


@pytest.mark.parametrize("wrong,wanted", [(False, Status.PROVED), (True, Status.UNKNOWN)])
def test_a_word_read_before_a_loop_that_carries_a_register_is_not_what_the_loop_writes(
    wrong: bool, wanted: Status
) -> None:
    body, one = read_first(wrong=wrong), const(1, 32)
    claim = flow(mapping(body, first_word_ir, rows=one, columns=one, abstract=frozenset({"step"})))
    assert differs(claim, {"n": 3, "m": 1}) is wrong
    assert status(claim) is wanted


def reused(*, wrong: bool) -> Body:
    """A fold inside a fold uses the result of a third one, which is compared once."""

    def body(k: Kernel, s: States) -> None:
        first = k.let("first", const(1, 8))
        with k.loop("f", s["m"]) as f:
            k.assign(first, step(first, k.load("head", s["src"], f)))
        acc = k.let("acc", const(3, 8))
        with k.loop("a", s["n"]) as a:
            row = k.let("row", first)
            with k.loop("b", s["m"]) as b:
                word = k.load("word", s["src"], a * s["m"] + b)
                k.assign(row, step(row, step(word, first)))
            k.assign(acc, step(acc, step(row, row if wrong else first)))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, acc)

    return body


@pytest.mark.slow
def test_a_result_that_does_not_depend_on_a_loop_is_compared_outside_of_it() -> None:
    verdict = prove(claim_of(reused(wrong=False), reused(wrong=False)))
    assert verdict.status is Status.PROVED, verdict.reason
    assert sum(", step" in o.name for o in verdict.obligations if o.group == "values") == 3
    assert differs(claim_of(reused(wrong=True), reused(wrong=False)), {"n": 3, "m": 4})
    assert status(claim_of(reused(wrong=True), reused(wrong=False))) is not Status.PROVED
