"""Several statements of a loop that update one cell in turn: proved as the fold that they are together.

Every wrong program differs from a right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const, ite, true
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, status, step
from tests.chc.mapping.toy import differs, mapping

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
SEVEN, ZERO = const(7, 8), const(0, 32)


def ir(words: int, *, rows: bool = False) -> Body:
    """dst[i, j] = fold over l < words * m (in each row n times) of src[i, l], from 7 on."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", SEVEN)
            rounds = s["n"] * s["m"] if rows else s["m"]
            with k.loop("l", rounds * words) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], i * s["m"] + x)))
            k.store(s["dst"], i * s["m"] + j, acc)

    return body


def in_turn(
    words: int,
    *,
    order: Callable[[int], int] = lambda u: u,
    anew: Callable[[Expr, int], Expr] | None = None,
    clear: bool = True,
    between: Callable[[Kernel, States, Expr, Expr], None] | None = None,
    rounds: Callable[[States], Expr] = lambda s: s["m"],
    only: Callable[[Expr, int], Expr] = lambda x, u: true,
    rows: bool = False,
) -> Body:
    """The same in place: in each round ``words`` statements update the cell, one after the other."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
            at = a * s["m"] + b
            if clear:
                k.store(s["dst"], at, SEVEN)

            def round_(x: Expr) -> None:
                for u in range(words):
                    old = k.load(f"old{u}", s["dst"], at)
                    if anew is not None:
                        old = ite(anew(x, u), SEVEN, old)
                    word = k.load(f"word{u}", s["src"], a * s["m"] + x * words + order(u))
                    with k.when(f"only{u}", only(x, u)):
                        k.store(s["dst"], at, step(old, word))
                    if between is not None and u == 0:
                        between(k, s, at, x)

            if rows:
                with k.loop("y", s["n"]) as y, k.loop("x", s["m"]) as x:
                    round_(y * s["m"] + x)
            else:
                with k.loop("x", rounds(s)) as x:
                    round_(x)

    return body


def in_parts(*begins: Callable[[States], Expr]) -> Body:
    """The same in place, two words at once, in loops one after the other that begin at some round."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
            at = a * s["m"] + b
            k.store(s["dst"], at, SEVEN)
            for part, begin in enumerate(begins):
                with k.loop(f"x{part}", s["m"]) as x:
                    value = k.load(f"old{part}", s["dst"], at)
                    for u in range(2):
                        place = a * s["m"] + (x + begin(s)) * 2 + u
                        value = step(value, k.load(f"word{part}.{u}", s["src"], place))
                    k.store(s["dst"], at, value)

    return body


def against(device: Body, other: Body) -> TensorMapping:
    return flow(replace(mapping(device, other), abstract=frozenset({"step"})))


def claim(device: Body, words: int = 2, *, rows: bool = False) -> TensorMapping:
    return against(device, ir(words, rows=rows))


TWICE = in_turn(2, rounds=lambda s: s["m"] * 2)
"""In place, in turn, in twice as many rounds."""


RIGHT: dict[str, TensorMapping] = {
    "two": claim(in_turn(2)),
    "three": claim(in_turn(3), 3),
    "two, and the first begins anew": claim(in_turn(2, clear=False, anew=lambda x, u: (x == 0) if u == 0 else ~true)),
    "two, in two loops": claim(in_turn(2, rows=True), rows=True),
    "two on both sides": against(in_turn(2), in_turn(2)),
    "two at once, in parts, against two in turn": against(in_parts(lambda s: ZERO, lambda s: s["m"]), TWICE),
}


@pytest.mark.parametrize("name", RIGHT)
def test_updates_in_turn_are_one_fold(name: str) -> None:
    assert not differs(RIGHT[name], {"n": 2, "m": 3}, 2)
    verdict = prove(RIGHT[name])
    assert verdict.status is Status.PROVED, verdict.reason


def disturb(k: Kernel, s: States, at: Expr, x: Expr) -> None:
    with k.when("third", x == 2):
        k.store(s["dst"], at, SEVEN)


WRONG: dict[str, TensorMapping] = {
    "in the other order": claim(in_turn(2, order=lambda u: 1 - u)),
    "the first word twice": claim(in_turn(2, order=lambda u: 0)),
    "one round too few": claim(in_turn(2, rounds=lambda s: s["m"] - 1)),
    "another statement in between": claim(in_turn(2, between=disturb)),
    "the second one begins anew": claim(in_turn(2, anew=lambda x, u: (x == 0) if u == 1 else ~true)),
    "each round begins anew": claim(in_turn(2, anew=lambda x, u: true if u == 0 else ~true)),
    "begins anew in the second round": claim(in_turn(2, anew=lambda x, u: (x == 1) if u == 0 else ~true)),
    "nothing is cleared": claim(in_turn(2, clear=False)),
    "the second one not in the first round": claim(in_turn(2, only=lambda x, u: ~(x == 0) if u == 1 else true)),
    "the first one not in the last round": claim(in_turn(3, only=lambda x, u: ~(x == 2) if u == 0 else true), 3),
    "three against two": claim(in_turn(3), 2),
    "half of the rounds that the other side has in turn": against(in_turn(2), TWICE),
    "the second part reads what the first one read": against(in_parts(lambda s: ZERO, lambda s: ZERO), TWICE),
}


@pytest.mark.parametrize("name", [n if k < 4 else pytest.param(n, marks=pytest.mark.slow) for k, n in enumerate(WRONG)])
def test_wrong_updates_in_turn_are_not_proved(name: str) -> None:
    assert differs(WRONG[name], {"n": 2, "m": 3})
    assert status(WRONG[name], second=False) is not Status.PROVED
