"""Claims about numeric primitives, asked of both solvers: proofs, and smallest counterexamples.

A claim is a Boolean expression that should hold for all values of its variables.  Primitives are unfolded, so that
the solvers see their bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

from ila_lang import Expr, any_of, compile_terms, free_variables, inline, true
from smt_encodings.claims import Obligation
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script
from smt_encodings.solvers import z3 as solver_z3

from .finding import NotFound, require

TIMEOUT = 60.0
"""Seconds per solver and question; each question takes less than 3 s."""


def prove(name: str, claim: Expr) -> None:
    """Returns where z3 and cvc5 both prove the claim; raises NotFound otherwise."""
    _ask(name, ~claim, "unsat")


def smallest_counterexample(name: str, claim: Expr, measures: Sequence[Expr]) -> dict[str, int]:
    """Values of the variables for which the claim is false, by the names of the variables.

    Of all such values they have the smallest first measure (an unsigned expression over the variables), of these the
    smallest second one, and so on; that no smaller ones exist is proved.  z3 and cvc5 agree on that and on the
    existence, and the interpreter on the counterexample.  Raises NotFound where any of this fails.
    """
    violated = ~claim
    _ask(name, violated, "sat")
    fixed, smaller = true, []
    values = _model(name, violated)
    assert values is not None
    for measure in measures:
        low, high, step = 0, _evaluate(measure, values), 0
        while low < high:
            # smallest values are mostly small ones: steps double until one is large enough, then intervals are halved
            middle = min(low + step, (low + high) // 2)
            model = _model(name, violated & fixed & (measure <= middle))
            if model is None:
                low, step = middle + 1, 2 * step + 1
            else:
                values, high = model, _evaluate(measure, model)
        smaller.append(fixed & (measure < low))
        fixed = fixed & (measure == low)
    _ask(f"{name}, smaller", violated & any_of(smaller), "unsat")
    require(_evaluate(claim, values) == 0, f"{name}: the counterexample {values} does not replay on the interpreter")
    return values


def _text(name: str, condition: Expr) -> str:
    with fresh_symbols():
        return script([BitEncoding().term(inline(condition))], comment=name)


def _ask(name: str, condition: Expr, expected: str) -> None:
    obligation = Obligation(name, "findings", _text(name, condition), expected, name)
    try:
        Discharger(timeout=TIMEOUT).ask_text(obligation)
    except NotDischarged as error:
        raise NotFound(str(error)) from None


def _model(name: str, condition: Expr) -> dict[str, int] | None:
    """Values that satisfy a condition, or None if there are none."""
    answer = solver_z3.check(_text(name, condition), TIMEOUT)
    require(answer.status != "unknown", f"{name}: {answer.solver} does not know: {answer.reason}")
    if answer.status == "unsat":
        return None
    return {variable: answer.model.get(variable, 0) for variable in free_variables(condition)}


def _evaluate(term: Expr, values: dict[str, int]) -> int:
    """A term's value by the scalar interpreter."""
    variables = free_variables(term)
    (result,) = compile_terms(list(variables.values()), [term])(*(values[name] for name in variables))
    return int(result)
