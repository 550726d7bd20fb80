"""Variables of terms, replacements in them, and terms as functions, which are interpreted first and compiled later."""

from __future__ import annotations

import numpy as np
import pytest

from ila_lang import Expr, bv, compile_terms, const, ite, mem, var
from ila_lang.interpreter import compile as compiling
from ila_lang.interpreter.compile import Memory
from ila_lang.language.expr import MOST_VARIABLES, free_variables, postorder, substitute

X, Y, Z = (var(name, bv(8)) for name in "xyz")


def by_search(*roots: Expr) -> dict[str, Expr]:
    return {n.name: n for n in postorder(roots) if n.op == "var"}


def ordered(variables: dict[str, Expr]) -> list[tuple[str, int]]:
    return [(name, id(v)) for name, v in variables.items()]


def test_variables_come_in_the_order_of_first_occurrence() -> None:
    terms = [Y + (X * Z) + Y, ite(Z < X, Y, X), const(3, 8), X, (X + Y) * (Z + X)]
    for term in terms:
        assert ordered(free_variables(term)) == ordered(by_search(term))
    assert ordered(free_variables(*terms)) == ordered(by_search(*terms))


def test_terms_of_many_variables_are_searched() -> None:
    many = [var(f"v{i}", bv(8)) for i in range(2 * MOST_VARIABLES)]
    total = many[0]
    for other in many[1:]:
        total = total + other
    assert ordered(free_variables(total * X, Y)) == ordered(by_search(total * X, Y))
    changed = substitute(total * X, {many[-1]: Y, X: Z})
    assert set(free_variables(changed)) == {*(v.name for v in many[:-1]), "y", "z"}
    assert changed is substitute(substitute(total * X, {many[-1]: Y}), {X: Z})


def test_what_is_replaced_may_be_any_term() -> None:
    term = (X + Y) * (const(3, 8) - Z) + (Z ^ const(5, 8))
    assert substitute(term, {X + Y: Z}) is Z * (const(3, 8) - Z) + (Z ^ const(5, 8))
    assert substitute(term, {const(5, 8): const(7, 8)}) is (X + Y) * (const(3, 8) - Z) + (Z ^ const(7, 8))
    assert substitute(term, {term: X}) is X
    assert substitute(term, {var("w", bv(8)): X}) is term
    assert substitute(term, {X: Y, Y: X}) is (Y + X) * (const(3, 8) - Z) + (Z ^ const(5, 8))


@pytest.mark.parametrize("vector", [False, True])
def test_compiled_terms_are_what_interpreted_ones_are(vector: bool) -> None:
    terms = [(X + Y) * Z, ite(X < Y, X, Z ^ const(255, 8)), const(9, 8), Y, (X.sext(16) // Y.zext(16))[7:0]]
    run = compile_terms([X, Y, Z], terms, vector=vector)
    draw = np.random.default_rng(3).integers(0, 256, (3, 50))
    arguments = [draw] if vector else [[int(n) for n in column] for column in draw.T]
    found = [[run(*given) for _ in range(compiling.INTERPRETED + 2)] for given in arguments]
    for given, results in zip(arguments, found, strict=True):
        first = results[0]
        assert all(np.array_equal(a, b) for other in results[1:] for a, b in zip(first, other, strict=True))
        x, y, z = given
        assert np.array_equal(first[0], (x + y) * z & 255) and np.array_equal(first[3], y)


def test_loads_are_interpreted_and_compiled() -> None:
    memory = var("m", mem(8, 8))
    run = compile_terms([memory, X], [memory.store(X, 7).load(X + 1)])
    contents = Memory(5, {3: 11})
    assert [run(contents, 2) for _ in range(compiling.INTERPRETED + 2)] == [(11,)] * (compiling.INTERPRETED + 2)
    assert run(contents, 9) == (5,)


def test_a_variable_that_is_no_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Variable y must be a parameter of the compiled terms$"):
        compile_terms([X], [X + Y])
