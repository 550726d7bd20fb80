"""Functions of mappings: each has a name of its own, and lemmas and abstract names are about some that occur."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from ila_lang import Expr, Function, Kernel, bv, var
from ila_lang.mapping import Lemma
from tests.chc.mapping.toy import Body, copy_body, mapping, scaled

A = var("a", bv(8))


def applied(function: Function) -> Body:
    def body(k: Kernel, s: Mapping[str, Expr]) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, function(k.load("word", s["src"], i * s["m"] + j)))

    return body


def calling(name: str, function: Function) -> Function:
    return scaled(name, lambda x: function(x))


STEP, NEXT = scaled("step", lambda x: x + 1), scaled("next", lambda x: x + 1)
LEMMA = Lemma("next is step", NEXT(A), STEP(A))
TWO = (
    "Functions of toy must have names of their own, but two are called step; make the function once and use it on both "
    "sides and in lemmas, or give one of the two another name"
)
NEITHER = "Lemma 'next is step' of toy must be about a function of the device or the IR; next occurs on neither side"


@pytest.mark.parametrize("other", [scaled("step", lambda x: x + 1), calling("other", scaled("step", lambda x: x + 2))])
def test_two_functions_of_one_name_are_refused(other: Function) -> None:
    for sides in ((STEP, other), (other, STEP)):
        with pytest.raises(ValueError, match=f"^{re.escape(TWO)}$"):
            mapping(*map(applied, sides))
    with pytest.raises(ValueError, match=f"^{re.escape(TWO)}$"):
        mapping(applied(NEXT), applied(STEP), lemmas=(Lemma("next is step", NEXT(A), other(A)),))


def test_a_lemma_about_a_function_that_occurs_on_neither_side_is_refused() -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(NEITHER)}$"):
        mapping(applied(STEP), applied(STEP), lemmas=(LEMMA,))
    again = Lemma("next is step", scaled("next", lambda x: x + 1)(A), STEP(A))
    with pytest.raises(ValueError, match="but two are called next"):  # a factory was called twice
        mapping(applied(NEXT), applied(STEP), lemmas=(again,))
    for function in (NEXT, calling("outer", NEXT)):
        assert mapping(applied(function), applied(STEP), lemmas=(LEMMA,)).lemmas == (LEMMA,)


def test_an_abstract_name_that_does_not_occur_is_refused() -> None:
    claim = mapping(applied(NEXT), copy_body, lemmas=(LEMMA,), abstract=frozenset({"next", "step"}))
    message = "Abstract functions of toy must be named as they occur on a side or in a lemma; stepp does not occur"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(claim, abstract=frozenset({"stepp", "next"}))
