"""Data values: lemmas about data functions, proved bit by bit and used where the functions are only symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from ila_lang import Expr, postorder, substitute
from ila_lang.mapping import Lemma

from .bits import BitEncoding
from .claims import Obligation
from .discharge import Discharger
from .printer import script

__all__ = ["differ", "lemma_instances", "prove_lemmas"]


def prove_lemmas(discharger: Discharger, lemmas: Iterable[Lemma], *, background: bool = False) -> None:
    """Adds one obligation per lemma: both sides' closed forms are equal for all values of the variables.

    With ``background`` the second solver's answer is waited for by ``discharger.settle()``.
    """
    for lemma in lemmas:
        meaning = lemma.doc or lemma.name
        text = script([differ(BitEncoding(), lemma.left, lemma.right)], comment=f"lemmas: {lemma.name}\n{meaning}")
        obligation = Obligation(lemma.name, "lemmas", text, "unsat", meaning)
        if background:
            discharger.ask_in_background(obligation)
        else:
            discharger.ask_text(obligation)


def differ(encoding: BitEncoding, left: Expr, right: Expr) -> FNode:
    """The term that says two data terms are different."""
    return smt.Not(smt.EqualsOrIff(encoding.term(left), encoding.term(right)))


def lemma_instances(lemmas: Sequence[Lemma], terms: Iterable[Expr], encoding: BitEncoding) -> list[FNode]:
    """The lemmas at every application of their functions inside ``terms``."""
    instances = []
    for node in postorder(terms):
        for lemma in lemmas:
            if node.op == "apply" and node.func is lemma.left.func:
                at = dict(zip(lemma.left.args, node.args, strict=True))
                instances.append(smt.EqualsOrIff(encoding.term(node), encoding.term(substitute(lemma.right, at))))
    return instances
