"""Data values: lemmas about data functions, proved bit by bit and used where the functions are only symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from ila_lang import BOOL, Expr, all_of, compile_terms, const, false, free_variables, postorder, substitute, true
from ila_lang.interpreter.compile import NoBodyError
from ila_lang.mapping import Lemma

from .claims import Obligation
from .discharge import Discharger, NotDischarged
from .expressions.bits import BitEncoding, variable_text
from .printer import script

_TRIES = 200


def prove_lemmas(discharger: Discharger, lemmas: Iterable[Lemma], *, background: bool = False) -> None:
    """Adds one obligation per lemma: both sides' closed forms are equal for all values of the variables.

    With ``background`` the second solver's answer is waited for by ``discharger.settle()``.
    """
    for lemma in lemmas:
        obligation = lemma_obligation(lemma)
        try:
            if background:
                discharger.ask_in_background(obligation)
            else:
                discharger.ask_text(obligation)
        except NotDischarged as error:
            raise NotDischarged(error.obligation, _where_false(lemma, error.obligation)) from None


def lemma_obligation(lemma: Lemma) -> Obligation:
    """That both sides are equal, bit by bit; not yet asked."""
    meaning = lemma.doc or lemma.name
    text = script([differ(BitEncoding(), lemma.left, lemma.right)], comment=f"lemmas: {lemma.name}\n{meaning}")
    return Obligation(lemma.name, "lemmas", text, "unsat", meaning)


def _where_false(lemma: Lemma, failed: Obligation) -> str:
    """Operands of a solver's model at which both sides of a lemma differ, in words; empty where there are none."""
    variables = list(free_variables(lemma.left, lemma.right).values())
    for model in (a.model for a in failed.answers if a.status == "sat"):
        values = [model.get(variable_text(v), 0) for v in variables]
        with suppress(NoBodyError):
            left, right = compile_terms(variables, [lemma.left, lemma.right])(*values)
            if left != right:
                operands = ", ".join(f"{v.name} = {value:#x}" for v, value in zip(variables, values, strict=True))
                return f", at {operands}, where the left side is {left:#x} and the right side {right:#x}"
    return ""


def differ(encoding: BitEncoding, left: Expr, right: Expr) -> FNode:
    """The term that says two data terms are different."""
    return smt.Not(smt.EqualsOrIff(encoding.term(left), encoding.term(right)))


def differing_values(left: Expr, right: Expr, tries: int = _TRIES) -> dict[Expr, int] | None:
    """Values of the variables at which two terms differ, or None if ``tries`` samples of each kind show none.

    Of functions without a body nothing can be tried: the values are then those of no variable.
    """
    variables = list(free_variables(left, right).values())
    random = Random(0)
    try:
        function = compile_terms(variables, [left, right])
    except NoBodyError:
        return {}
    widths = [1 if v.sort == BOOL else v.width for v in variables]
    for small in (False, True):  # what saturates differs for numbers of moderate size only
        for _ in range(tries):
            values = [_number(random, width) if small else random.getrandbits(width) for width in widths]
            if len(set(function(*values))) == 2:
                return dict(zip(variables, values, strict=True))
    return None


def _number(random: Random, width: int) -> int:
    """A signed number in two's complement, of any order of magnitude."""
    size = random.getrandbits(width) >> random.randrange(width)
    return (-size if random.getrandbits(1) else size) & ((1 << width) - 1)


def falsifying(left: Expr, right: Expr, values: dict[Expr, int] | None = None) -> list[FNode]:
    """The assertion that two terms differ, bit by bit, at values of the variables where they do.

    The question is whether they can differ at all, and long sums of products are hard to invert.  Where no values are
    found, all variables stay open.  ``values`` are such values, if they are known.
    """
    values = values or differing_values(left, right) or {}
    # literals in place of variables, not equations beside them: solvers evaluate such a term while they read it
    encoding = BitEncoding()
    fixed = {encoding.term(v): encoding.term(_literal(v, x)) for v, x in values.items()}
    return [differ(encoding, left, right).substitute(fixed)]


def _literal(like: Expr, value: int) -> Expr:
    return (true if value else false) if like.sort == BOOL else const(value, like.width)


def lemma_instances(lemmas: Sequence[Lemma], terms: Iterable[Expr], encoding: BitEncoding) -> list[FNode]:
    """The lemmas at every application of their functions inside ``terms``, where operands are the lemmas' literals."""
    instances = []
    for node in postorder(terms):
        for lemma in lemmas:
            if node.op == "apply" and node.func is lemma.left.func:
                pairs = list(zip(lemma.left.args, node.args, strict=True))
                right = substitute(lemma.right, {a: b for a, b in pairs if a.op == "var"})
                instance = smt.EqualsOrIff(encoding.term(node), encoding.term(right))
                literal = all_of([b == a for a, b in pairs if a.is_const])
                instances.append(instance if literal is true else smt.Implies(encoding.term(literal), instance))
    return instances
