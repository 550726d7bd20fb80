"""Symbols that solvers have of their own: no name of users is printed as one of them."""

from __future__ import annotations

import pytest

from smt_encodings.environment import declarable, fresh_symbols, symbol_text
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

WORDS = """
_ as let par match exists forall lambda choice assert check_sat declare define exit pop push
Bool Int Real Array BitVec String RegLan Set Bag Seq Tuple FloatingPoint RoundingMode Float32
true false not and or xor implies ite distinct iff div mod rem abs to_real to_int is_int divisible pow pow2 iand exp sin
cos tan asin acos atan pi e sqrt csc sec cot arcsin arccos arctan arccsc arcsec arccot real.pi int.pow2 piand
select store map default eqrange concat extract repeat bvnot bvneg bvand bvor bvxor bvnand bvnor bvxnor bvadd bvsub
bvmul bvudiv bvurem bvsdiv bvsrem bvsmod bvshl bvlshr bvashr bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge bvcomp
bvredor bvredand bvnego bvuaddo bvsaddo bvumulo bvsmulo bvusubo bvssubo bvsdivo bvite bv2nat nat2bv int2bv int_to_bv
ubv_to_int sbv_to_int zero_extend sign_extend rotate_left rotate_right
fp fp.abs fp.add fp.isNaN fp.to_real to_fp NaN RNE RNA RTP RTN RTZ roundNearestTiesToEven roundNearestTiesToAway
roundTowardPositive roundTowardNegative roundTowardZero
str.len str.at re.all seq.unit seq.len set.empty set.union bag.count ff.add tuple.select table.product rel.join sep.nil
nullable.some sep pto wand tuple bag cons head tail is witness Inv named pattern
sinh cosh tanh asinh acosh atanh ext_rotate_left ext_rotate_right bvsmod_i bvudiv_i bvurem_i bvsdiv_i bvsrem_i
bvumul_noovfl bvsmul_noovfl bvsmul_noudfl mkbv bv2int div0 mod0 bvudiv0 bvurem0 bvsdiv0 bvsrem0 bvsmod0
"""
"""The reserved words of SMT-LIB 2.7, the symbols of its theories, and those of further theories of cvc5 and z3."""


def require_names(logic: str, declaration: str, assertion: str) -> None:
    """Both solvers take all words, a dozen at a time, where a question for each would take ten times as long."""
    words = WORDS.split()
    for first in range(0, len(words), 12):
        some = words[first : first + 12]
        lines = [t.replace("NAME", declarable(w)) for t in (declaration, assertion) for w in some]
        text = "\n".join([f"(set-logic {logic})", *lines, "(check-sat)\n"])
        for solver in (solver_z3, solver_cvc5):
            assert solver.check(text, 5.0).status == "sat", (some, solver.__name__)


@pytest.mark.parametrize("logic, sort, one", [("ALL", "Int", "1"), ("QF_BV", "(_ BitVec 8)", "#x01")])
def test_every_word_can_be_the_name_of_a_size(logic: str, sort: str, one: str) -> None:
    require_names(logic, f"(declare-fun NAME () {sort})", f"(assert (= NAME {one}))")
    for word in WORDS.split():
        with fresh_symbols():
            assert symbol_text("a size", word) == declarable(word)


@pytest.mark.parametrize(
    "logic, sort, values",
    [
        ("ALL", "Int", ("0", "17")),
        pytest.param("ALL", "Real", ("0.0", "17.0"), marks=pytest.mark.slow),
        ("QF_UFBV", "(_ BitVec 8)", ("#x00", "#x11")),
    ],
)
def test_every_word_can_be_the_name_of_a_function(logic: str, sort: str, values: tuple[str, str]) -> None:
    """Of any function: that it is 17 at 0 contradicts nothing."""
    require_names(logic, f"(declare-fun NAME ({sort}) {sort})", f"(assert (= (NAME {values[0]}) {values[1]}))")


def test_other_names_stay_as_they_are() -> None:
    assert [declarable(name) for name in ("rows", "row.bvsdivo", "truE", "Int")] == [
        "rows",
        "row.bvsdivo",
        "truE",
        "Int",
    ]
