"""Guesses may be wrong: where a wrong claim would need one, the claim is not proved, and an obligation fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

import chc.mapping.contents.scatter_add
import chc.mapping.contents.values
import chc.mapping.memory.reaching_definitions
import chc.mapping.relate.summands
from chc.mapping.contents.folds import Blocks
from chc.mapping.contents.numbered import Numbered
from chc.mapping.contents.turns import Turns
from chc.mapping.memory.cases import Split, in_cases
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Iteration
from chc.mapping.program.writes import Write
from chc.mapping.proof import Proof
from chc.mapping.prove import prove
from chc.mapping.relate.summands import Opened
from chc.mapping.sampling.samples import Samples
from ila_lang import Expr, Kernel, bv, compile_terms, const, false, ite, resize, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.naming import distinct
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.test_scatter_add import ZERO, claim, clear, multiply
from tests.chc.mapping.test_unrolled import claim as unrolled_claim
from tests.chc.mapping.test_unrolled import in_turn
from tests.chc.mapping.toy import Body, N, differs, mapping

States = Mapping[str, Expr]


def not_proved(made: TensorMapping, obligation: str) -> None:
    verdict = prove(made, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN
    assert obligation in verdict.reason, verdict.reason


def copied(source: Callable[[Expr, Expr, States], Expr]) -> Body:
    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], source(i, j, s)))

    return body


WITNESSES: dict[str, tuple[Body, Callable[[Sequence[Expr], Expr], list[Expr]], str]] = {
    "of another column": (
        copied(lambda i, j, s: i * s["m"] + (s["m"] - 1 - j)),
        lambda at, m: [at[0], m - 1 - at[1]],
        "same address",
    ),
    "beyond the loop": (
        copied(lambda i, j, s: i * s["m"] + ite(j == 0, j, j - 1)),
        lambda at, m: [at[0], at[1] + 1],
        "happens",
    ),
    "swapped": (copied(lambda i, j, s: j * s["m"] + i), lambda at, m: [at[1], at[0]], "happens"),
}


@pytest.mark.parametrize("name", WITNESSES)
def test_an_iteration_that_did_not_write_the_cell(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, change, obligation = WITNESSES[name]
    made = flow(mapping(body))
    assert differs(made, {"n": 3, "m": 3})
    module = chc.mapping.memory.reaching_definitions
    found = module.witness

    def wrong(samples: Samples, ranges: Any, write: Write, *more: Any) -> Iteration:
        at = found(samples, ranges, write, *more)
        if write.memory.name.startswith("dst"):
            terms = change([at[c] for c in write.counters], resize(samples.parameters[1], 32))
            return dict(zip(write.counters, terms, strict=True))
        return at

    monkeypatch.setattr(module, "witness", wrong)
    not_proved(made, obligation)


def test_a_write_that_adds_to_the_cell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device adds two taps, and the IR has the first one alone, which is the only one that is said to hit."""

    def device(k: Kernel, s: States) -> None:
        clear(k, s, s["n"] + 1)
        with k.loop("i", s["n"]) as i:
            for tap in range(2):
                word = k.load(f"w{tap}", s["tmp"], const(tap, 32))
                value = multiply(k.load(f"x{tap}", s["src"], i), word)
                k.store(s["dst"], i + tap, k.load(f"old{tap}", s["dst"], i + tap) + value)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("o", s["n"] + 1) as o:
            acc = k.let("acc", const(0, 8))
            with k.loop("i", s["n"]) as i:
                word = multiply(k.load("x", s["src"], i), k.load("w", s["tmp"], ZERO))
                k.assign(acc, acc + ite(i == o, word, const(0, 8)))
            k.store(s["dst"], o, acc)

    made = claim(device, ir, N.zext(32) + 1)
    assert differs(made, {"n": 3, "m": 2})
    module, seen = chc.mapping.contents.scatter_add, list[Write]()

    def wrong(side: Any, context: Any, nest: tuple[Sequence[Write], Any], *more: Any) -> list[Write]:
        seen.extend(nest[0])
        return list(nest[0][:1])

    monkeypatch.setattr(module, "hitting", wrong)
    not_proved(made, "does not come in between")
    assert seen


def test_cases_that_are_not_all() -> None:
    proof = Proof(distinct(mapping()), Discharger(second=False), 1.0, None)
    (n, m) = proof.parameters
    context = Context(proof, proof.base, (), Samples((n, m), (), ((1, 1), (2, 3), (3, 2), (4, 4))))

    def compare(conditions: Sequence[Expr]) -> None:
        def split(case: Context, name: str) -> None:
            if case is context:
                raise Split("several", case, conditions)

        in_cases(context, "it", split)

    compare((n < 3, ~(n < 3)))
    for wrong in ((n < 3, n == 3), (n < m, m < n), (n < 3,), (), (false,)):
        with pytest.raises(NotDischarged, match="the cases are all"):
            compare(wrong)


def test_weights_of_digits_that_are_no_numbering() -> None:
    """With weights 5 and 2, iteration 0, 0 would have the numbers 0 and 1."""
    number, length = var("number", bv(32)), N.zext(32)
    a, b = var("a", bv(32)), var("b", bv(32))
    assert Numbered(number, length, {a: 6, b: 1}).digits
    for weights in ((5, 2), (4, 2), (0, 1), (1, 0), (1, 2), (-2, 1)):
        with pytest.raises(ValueError, match="weights of digits must be multiples of the next ones, down to 1"):
            Numbered(number, length, dict(zip((a, b), weights, strict=True)))


def test_weights_of_digits_in_another_order_than_the_loops() -> None:
    """Iterations would follow each other otherwise than their numbers."""
    number, length = var("number", bv(32)), N.zext(32)
    a, b = var("a", bv(32)), var("b", bv(32))
    unused: Any = None
    for loops in (((b, length), (a, length)), ((a, length),)):
        with pytest.raises(ValueError, match="weights of digits must be in the order of the loops"):
            Numbered(number, length, {a: 8, b: 1}).prove(unused, "", "", unused, loops)


def test_a_round_of_writes_without_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its updates would be lost: the first one reads what it stored, which is all that is asked of the reader."""
    right = chc.mapping.contents.values.in_turn

    def shorter(*of: Any) -> Turns | None:
        found = right(*of)
        return found and replace(found, writes=found.writes[:-1])

    monkeypatch.setattr(chc.mapping.contents.values, "in_turn", shorter)
    verdict = prove(unrolled_claim(in_turn(2)), discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
    assert verdict.status is Status.ERROR
    assert verdict.reason == "the last write of a round must be the one that gave the cell its value"


def test_blocks_that_are_accepted_cover_the_loop_in_order() -> None:
    """Of all small counts, distances and lengths, of the last block and of the others."""
    names = ("count", "apart", "whole", "length", "last", "number")
    count, apart, whole, length, last, number = (var(n, bv(8)) for n in names)
    blocks = Blocks(count, apart, number, ite(number + 1 == count, last, length))
    accepted = compile_terms([count, apart, whole, length, last, number], [blocks.cover(whole), blocks.none(whole)])
    kinds = set[bool]()
    for of in product(range(4), range(3), range(6), range(3), range(4)):
        holds = [accepted(*of, k) for k in range(of[0])] or [(True, accepted(*of, 0)[1])]
        runs = [range(k * of[1], k * of[1] + (of[4] if k + 1 == of[0] else of[3])) for k in range(of[0])]
        in_order = [x for run in runs for x in run] == list(range(of[2]))
        kinds.add(all(cover and none for cover, none in holds))
        assert in_order or not all(cover and none for cover, none in holds), of
    assert kinds == {True, False}


def test_extremes_that_a_summand_exceeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of 4 bits is from 0 to 15, or from -8 to 7: also of guesses modulo 2^8 no narrower one is believed."""
    proof = Proof(distinct(mapping()), Discharger(second=False), 1.0, None)
    word = var("word", bv(4))
    for is_signed, part, (low, high) in ((False, word.zext(8), (0, 15)), (True, word.sext(8), (-8, 7))):
        summands: Any = SimpleNamespace(here=part)
        believed = []
        for guess in product((low - 256, low - 1, low, low + 1), (high - 256, high - 1, high, high + 1, high + 256)):
            monkeypatch.setattr(chc.mapping.relate.summands, "extremes", lambda *_, guess=guess, **__: guess)
            bounds = Opened(proof)._bounds(summands, f"{is_signed} {guess}", is_signed=is_signed)
            believed += [] if bounds is None else [bounds]
        assert believed and all(least <= low and high <= most for least, most in believed), believed
