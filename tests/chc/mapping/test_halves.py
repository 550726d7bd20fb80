"""Two halves of one buffer in turn: proved where they are apart, and not where they overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, last, prefix_ir, status, step
from tests.chc.mapping.toy import differs, mapping

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]


def parity(t: Expr) -> Expr:
    return t[0:0].zext(32)


def inverted(t: Expr) -> Expr:
    return (~t[0:0]).zext(32)


def in_halves(
    *,
    second: Callable[[States], Expr] = lambda s: s["m"],
    early: bool = True,
    begins: bool = True,
    turn: Callable[[Expr], Expr] = parity,
    back: Callable[[Expr], Expr] = parity,
) -> Body:
    """Rows are copied to a half of a buffer, the next one (if ``early``) before this one is folded from there."""

    def body(k: Kernel, s: States) -> None:
        def load(row: Expr, name: str) -> None:
            with k.loop(f"c{name}", s["m"]) as c:
                word = k.load(f"in{name}", s["src"], row * s["m"] + c)
                k.store(s["tmp"], turn(row) * second(s) + c, word)

        if early and begins:
            load(const(0, 32), "_first")
        with k.loop("t", s["n"]) as t:
            if early:
                with k.when("more", t + 1 < s["n"]):
                    load(t + 1, "_next")
            else:
                load(t, "_now")
            with k.loop("o", s["m"]) as o:
                acc = k.let("acc", const(0, 8))
                with k.loop("x", s["m"]) as x:
                    k.assign(acc, step(acc, k.load("buffered", s["tmp"], back(t) * second(s) + x)))
                k.store(s["dst"], t * s["m"] + o, last(acc))

    return body


def claim(body: Body) -> TensorMapping:
    return flow(replace(mapping(body, prefix_ir), abstract=frozenset({"step", "last"})))


RIGHT = {
    "one row at a time": claim(in_halves(early=False)),
    "one row ahead": claim(in_halves()),
    "one row ahead, the second half first": claim(in_halves(turn=inverted, back=inverted)),
    "one row ahead, with halves of literal size": claim(in_halves(second=lambda s: const(256, 32))),
    "one row at a time, in halves that overlap": claim(in_halves(early=False, second=lambda s: const(1, 32))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_halves_in_turn_are_proved(name: str) -> None:
    assert not differs(RIGHT[name], {"n": 4, "m": 3}, 2)
    verdict = prove(RIGHT[name])
    assert verdict.status is Status.PROVED, verdict.reason


WRONG = {
    "halves overlap in one cell": claim(in_halves(second=lambda s: s["m"] - 1)),
    "halves are one": claim(in_halves(second=lambda s: const(0, 32))),
    "halves are too small for long rows": claim(in_halves(second=lambda s: const(2, 32))),
    "the first row is not loaded": claim(in_halves(begins=False)),
    "the halves are exchanged": claim(in_halves(turn=lambda t: (t + 1)[0:0].zext(32))),
    "the halves are exchanged by inverting": claim(in_halves(turn=inverted)),
    "the second half is never written": claim(in_halves(turn=lambda t: const(0, 32))),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_halves_are_not_proved(name: str) -> None:
    assert differs(WRONG[name], {"n": 4, "m": 3})
    assert status(WRONG[name], second=False) is not Status.PROVED
