"""The checker of explanations. It is what the e-graph's results are trusted for, and knows nothing of the e-graph.

It needs the two terms, the explanation, and a function that says what a rule's two sides are under a substitution. That
function must refuse (raise ``EGraphError``) rules that it does not know or whose certificate is another, and
substitutions outside of a rule's side condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from .explanation import Chain, Congruence, Explanation, Line, Rule, RuleApplication, Step, Substitution
from .terms import EGraphError, Term

Sides: TypeAlias = Callable[[Rule, Substitution[Term]], tuple[Term, Term]]
"""The left and the right side of a rule under a substitution."""


def check_explanation(explanation: Explanation, start: Term, end: Term, sides: Sides) -> None:
    """Returns if the explanation shows that the two terms are equal; raises EGraphError, naming the line, otherwise."""
    if explanation.start is not start or explanation.end is not end:
        raise EGraphError("an explanation must be of the two terms in question; it is of others")
    for number, line in enumerate(explanation.lines):
        name = f"line {number}"
        if line.before.symbol.type != line.after.symbol.type:
            raise EGraphError(f"{name}: equal terms must have one type")
        if isinstance(line.reason, RuleApplication):
            _check_rule(name, line.reason.rule, line.reason.substitution, (line.before, line.after), sides)
        else:
            _check_congruence(name, number, line, line.reason, explanation.lines)
    _check_chain("the whole", explanation.chain, start, end, explanation.lines, len(explanation.lines))


def _check_rule(name: str, rule: Rule, match: Substitution[Term], terms: tuple[Term, Term], sides: Sides) -> None:
    try:
        left, right = sides(rule, match)
    except EGraphError as error:
        raise EGraphError(f"{name}: the rule {rule.name} must apply; {error}") from error
    if left is not terms[0] or right is not terms[1]:
        raise EGraphError(f"{name}: the terms must be the sides of the rule {rule.name} under its substitution")


def _check_congruence(name: str, number: int, line: Line, reason: Congruence, lines: tuple[Line, ...]) -> None:
    before, after = line.before, line.after
    if before.symbol != after.symbol:
        raise EGraphError(f"{name}: congruent terms must have one symbol, not {before.symbol} and {after.symbol}")
    if not len(before.operands) == len(after.operands) == len(reason.operands):
        raise EGraphError(f"{name}: congruent terms must have a chain for each of their operands")
    for place, chain in enumerate(reason.operands):
        _check_chain(f"{name}, operand {place}", chain, before.operands[place], after.operands[place], lines, number)


def _check_chain(name: str, chain: Chain, start: Term, end: Term, lines: tuple[Line, ...], below: int) -> None:
    """A chain of lines with numbers below a bound, which leads from one term to the other."""
    now = start
    for number, forwards in chain:
        if not 0 <= number < below:
            raise EGraphError(f"{name}: a chain must have earlier lines only, not line {number}")
        line = lines[number]
        first, last = (line.before, line.after) if forwards else (line.after, line.before)
        if first is not now:
            raise EGraphError(f"{name}: line {number} must start with the term that the one before it ended with")
        now = last
    if now is not end:
        raise EGraphError(f"{name}: a chain must end with the term that it explains")


def check_steps(steps: Iterable[Step], start: Term, end: Term, sides: Sides) -> int:
    """The number of steps, if they lead from one term to the other; raises EGraphError, naming the step, otherwise.

    Each step must start with the term that the one before ended with; at its position the rule's one side must stand,
    and after it the other; everything beside the position must be the same.
    """
    now = start
    count = 0
    for count, step in enumerate(steps, 1):
        name = f"step {count - 1}"
        if step.before is not now:
            raise EGraphError(f"{name}: a step must start with the term that the one before it ended with")
        old, new = step.before, step.after
        for place in step.position:
            if old.symbol != new.symbol or len(old.operands) != len(new.operands):
                raise EGraphError(f"{name}: above its position, a step must not change symbols")
            if not 0 <= place < len(old.operands):
                raise EGraphError(f"{name}: its position must be in the term; there is no operand {place}")
            if any(a is not b for i, (a, b) in enumerate(zip(old.operands, new.operands, strict=True)) if i != place):
                raise EGraphError(f"{name}: a step must not change anything beside its position")
            old, new = old.operands[place], new.operands[place]
        if old.symbol.type != new.symbol.type:
            raise EGraphError(f"{name}: equal terms must have one type")
        _check_rule(name, step.rule, step.substitution, (old, new) if step.forwards else (new, old), sides)
        now = step.after
    if now is not end:
        raise EGraphError("the steps must end with the term that they explain")
    return count
