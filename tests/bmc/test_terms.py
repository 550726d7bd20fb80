"""Terms of an unrolling, some of whose variables are known, against SMT-LIB's operators in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmc.terms import Terms, known
from ila_lang import BOOL, Expr, MemSort, bv, const, ite, mem, primitive, var
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from tests.ila_lang.oracle import build_raw, environments, evaluate, raw_terms

A, B, C = var("a", bv(8)), var("b", bv(8)), var("c", BOOL)
VALUES = {"a": 7, "b": 250, "c": True}


@primitive(bv(8), x=bv(8), y=bv(8))
def step(x: Expr, y: Expr) -> Expr:
    """Twice one, less the other."""
    return x * 2 - y


def values_of(root: Expr, unknown: frozenset[str], env: Mapping[str, Any]) -> Any:
    """The value of a term of which some variables are not known while it is compiled, evaluated at ``env``."""
    values = {v: v if v.name in unknown else int(env[v.name]) for v in variables_of(root)}
    (value,) = Terms([root], frozenset())(values, {})
    return evaluate(value, env) if isinstance(value, Expr) else value


@settings(max_examples=100)
@given(data=st.data())
def test_a_term_has_its_value_whatever_is_known(data: st.DataObject) -> None:
    root = build_raw(data.draw(raw_terms(data.draw(st.sampled_from([BOOL, bv(3), bv(6)])))))
    variables = variables_of(root)
    if any(isinstance(v.sort, MemSort) for v in variables):
        return
    env = data.draw(environments({v.name: v.sort for v in variables}))
    unknown = frozenset(v.name for v in variables if data.draw(st.booleans()))
    assert values_of(root, unknown, env) == evaluate(root, env)


CHOICE = ite(C, A, B)
SHARED = {
    "a choice of variables that is used again": (CHOICE + 1) * CHOICE - (A + B),
    "choices inside of choices": ite(C, ite(A < B, A, B) + CHOICE, CHOICE) * CHOICE + (A * B),
    "a choice in a function": step(CHOICE, CHOICE + A) + CHOICE,
    "truth values compared": ite((A < B) == C, A, B),
    "a choice of truth values": ite(ite(C, A < B, B < A), A, B) + 1,
}


@pytest.mark.parametrize(
    "unknown", [frozenset[str](), frozenset("a"), frozenset("b"), frozenset("c"), frozenset("abc")]
)
@pytest.mark.parametrize("name", SHARED)
def test_what_is_used_twice_keeps_its_value(name: str, unknown: frozenset[str]) -> None:
    for env in (VALUES, {**VALUES, "c": False}, {**VALUES, "a": 251}):
        assert values_of(SHARED[name], unknown, env) == evaluate(SHARED[name], env)


def test_abstract_functions_stay_as_they_are() -> None:
    assert Terms([step(A, B)], frozenset({"step"}))({A: 1, B: 2}, {}) == (step(const(1, 8), const(2, 8)),)
    assert Terms([step(A, B)], frozenset())({A: 1, B: 2}, {}) == (0,)


class Words:
    """Memory in which each word is its address."""

    def read(self, address: int) -> int:
        return address

    def write(self, address: int, value: object) -> None:
        raise AssertionError


def test_an_address_must_be_known() -> None:
    memory = var("m", mem(8, 8))
    read = Terms([memory.load(A + 1)], frozenset(), "the address of a load")
    assert read({A: 4}, {memory: Words()}) == (5,)
    with pytest.raises(Unsupported, match="the address of a load depends on a value that is not known"):
        read({A: A}, {memory: Words()})
    with pytest.raises(Unsupported, match="a size depends on a value that is not known while unrolling: a"):
        known(A, "a size")
    assert known(const(3, 8), "a size") == 3
