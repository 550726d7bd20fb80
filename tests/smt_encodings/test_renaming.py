from __future__ import annotations

import pytest

from smt_encodings.renaming import numbered


def script(*assertions: str, declare: str = "a:Int b:Int", logic: str = "ALL") -> str:
    lines = [f"; some comment\n(set-logic {logic})"]
    lines += [f"(declare-fun {n} () {s})" for n, s in (d.split(":") for d in declare.split())]
    return "\n".join([*lines, *(f"(assert {a})" for a in assertions), "(check-sat)"]) + "\n"


def test_scripts_that_differ_in_names_only_are_one_text() -> None:
    one = numbered(script("(< a b)", "(< b 3)"))
    assert one == (
        "(set-logic ALL)\n(declare-fun v0 () Int)\n(declare-fun v1 () Int)\n"
        "(assert (< v0 v1))\n(assert (< v1 3))\n(check-sat)\n"
    )
    assert one == numbered(script("(< z y)", "(< y 3)", declare="y:Int z:Int"))


@pytest.mark.parametrize(
    "other",
    [
        script("(< a b)", "(< a 3)"),
        script("(< a a)", "(< a 3)"),
        script("(< b a)", "(< b 4)"),
        script("(< a b)"),
        script("(< a b)", "(< b 3)", declare="a:Int b:Real"),
        script("(< a b)", "(< b 3)", declare="a:Int b:Int c:Int"),
        script("(< a b)", "(< b 3)", logic="QF_BV"),
    ],
)
def test_scripts_that_differ_in_more_are_two(other: str) -> None:
    assert numbered(other) != numbered(script("(< a b)", "(< b 3)"))


@pytest.mark.parametrize(
    "text",
    [
        script("(< a v0)", declare="a:Int"),
        script("(let ((v3 a)) (< v3 b))"),
        script("(< |a| b)"),
        script("(< a b)", declare="a:Int a:Int b:Int"),
        script("(forall ((x Int)) (< x a))", declare="a:Int Int:Int"),
        script("(< (abs a) b)", declare="a:Int b:Int abs:Int"),
        script("(< (+ a) b)", declare="a:Int b:Int +:Int"),
        script("(= (_ bv5 8) a)", declare="a:Bool bv5:Int"),
        script("(< a b)\x0b"),
        script("(< a b) ; (< b a)"),
        script("(< a b)") + "(get-model)\n",
        "(push 1)\n" + script("(< a b)"),
        script("(< a b)) (assert (< b a)"),
        script("(< a b)", declare="a:Int b:Int").replace("a () Int)", "a () Int) (assert (< b 3))"),
        script("(and (< a b)").replace("(check-sat)", "(assert true))\n(check-sat)"),
        script("(! (< a b) :named c)", declare="a:Int b:Int n:Bool").replace("fun n", "fun :named"),
        "",
    ],
)
def test_what_could_be_read_otherwise_is_left_as_it_is(text: str) -> None:
    assert numbered(text) == text
