"""The steps of the argument that hold for every program: proved once, by both solvers.

The argument (docs/explanation/vta_tokens.md) is an induction over a schedule.
What its step needs beyond substituting equals is
stated here over integers and truth values.
"""

from __future__ import annotations

import pysmt.shortcuts as smt
from pysmt.typing import BOOL, INT

from smt_encodings.discharge import Discharger

ASSUMPTIONS = (
    "an instruction executes at once: schedules interleave whole instructions",
    "induction over the length of a schedule (docs/explanation/vta_tokens.md); what its step needs are obligations",
    "there are no tokens when the program starts, the machine has not finished, and has no fault",
    "what a kernel reads and writes is what its text says (chc.token_order.accesses)",
)


def prove_lemmas(discharger: Discharger) -> None:
    """Asks the lemmas; raises NotDischarged where one does not hold."""
    k, pushes, pops = (smt.Symbol(n, INT) for n in ("k", "pushes", "pops"))
    one = smt.Int(1)
    counted = [smt.GE(k, one), smt.Equals(pops, smt.Minus(k, one))]
    there = smt.GE(smt.Minus(pushes, pops), one)
    discharger.ask(
        "argument",
        "a pop finds a token if and only if its push has happened",
        [*counted, smt.Not(smt.Iff(there, smt.GE(pushes, k)))],
        "the instruction that makes the k-th pop finds k - 1 pops made; a token is there if and only if k pushes are",
    )
    # i writes a cell that j reads or writes (or the other way round); j is the next to execute
    i, j = smt.Symbol("i", INT), smt.Symbol("j", INT)
    executed_i, executed_j = smt.Symbol("executed_i", BOOL), smt.Symbol("executed_j", BOOL)
    i_first, j_first = smt.Symbol("i_before_j", BOOL), smt.Symbol("j_before_i", BOOL)
    ordered = [smt.Implies(smt.LT(i, j), i_first), smt.Implies(smt.LT(j, i), j_first)]
    respected = [smt.Implies(i_first, executed_i), smt.Implies(smt.And(j_first, executed_i), executed_j)]
    discharger.ask(
        "argument",
        "of the instructions that meet the next one, those before it in the program have executed, and no others",
        [
            *ordered,
            *respected,
            smt.Not(smt.Equals(i, j)),
            smt.Not(executed_j),
            smt.Not(smt.Iff(executed_i, smt.LT(i, j))),
        ],
        "so each cell that it reads was last written by the same instruction as in the sequential order, and what it "
        "writes comes after the same writes",
    )
    # of the writers of a cell that j reads or writes, p is the last that has executed, q the last that precedes j
    p, q = smt.Symbol("p", INT), smt.Symbol("q", INT)
    executed_p, executed_q = smt.Symbol("executed_p", BOOL), smt.Symbol("executed_q", BOOL)
    as_in_the_program = [smt.Iff(executed_p, smt.LT(p, j)), smt.Iff(executed_q, smt.LT(q, j))]
    last = [executed_p, smt.Implies(executed_q, smt.LE(q, p)), smt.LT(q, j), smt.Implies(smt.LT(p, j), smt.LE(p, q))]
    discharger.ask(
        "argument",
        "the last instruction that wrote a cell is the one that the sequential order has",
        [*as_in_the_program, *last, smt.Not(smt.Equals(p, q))],
        "the last writer that has executed and the last one before the next instruction in the program are the same",
    )
