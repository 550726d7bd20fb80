"""Rules on scalars, applied to scalars, and element by element to tensors of one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ir_semantics.elements.binders import every
from ir_semantics.elements.operators import both
from ir_semantics.elements.terms import Term, fresh
from ir_semantics.scalars.formats import INTEGERS

from .program import Call, MeaningOfValue, Operator
from .values import Element, Tensor, combined


@dataclass(frozen=True)
class Result:
    """What an operator gives for defined operands, the condition under which that is defined, and what it requires.

    ``required`` says what is required from which operands are defined: a value that is not is no reason by itself.
    """

    value: Term
    defined: Term | None = None
    required: Callable[[Sequence[Term]], Term] | None = None
    reason: str = ""


ScalarRule = Callable[[Call, Sequence[Term]], Result]


def elementwise(rule: ScalarRule) -> Operator:
    """A rule on scalars, applied to scalars, or to tensors of one shape element by element."""

    def meaning(call: Call) -> Sequence[MeaningOfValue]:
        if all(isinstance(o, Element) for o in call.operands):
            elements = [call.element(i) for i in range(len(call.operands))]
            return [applied(call, rule, elements, True)]
        return [mapped(call, rule, call.tensors())]

    return meaning


def mapped(call: Call, rule: ScalarRule, tensors: Sequence[Tensor]) -> Tensor:
    """A rule on scalars, element by element; shapes must be one."""
    for other in tensors[1:]:
        call.require_equal(tensors[0].shape, other.shape, "operands must have one shape")
    shape = tensors[0].shape

    def element(at: tuple[Term, ...]) -> Element:
        return applied(call, rule, [x.at(at) for x in tensors], False)

    require_everywhere(call, shape, lambda at: applied_requirement(call, rule, [x.at(at) for x in tensors]))
    return Tensor(call.result_format(), shape, element)


def applied(call: Call, rule: ScalarRule, operands: Sequence[Element], requiring: bool) -> Element:
    """A rule on one tuple of scalars."""
    result = rule(call, [o.value for o in operands])
    if requiring and result.required is not None:
        call.require(result.required([o.defined for o in operands]), result.reason)
    element = combined(result.value, *operands)
    return element if result.defined is None else Element(element.value, both(element.defined, result.defined))


def applied_requirement(call: Call, rule: ScalarRule, operands: Sequence[Element]) -> tuple[Term, str] | None:
    """What a rule requires of one tuple of scalars."""
    result = rule(call, [o.value for o in operands])
    if result.required is None:
        return None
    return result.required([o.defined for o in operands]), result.reason


def require_everywhere(
    call: Call, shape: Sequence[Term], required: Callable[[tuple[Term, ...]], tuple[Term, str] | None]
) -> None:
    """Requires a condition at all subscripts of a shape."""
    at = tuple(fresh(f"i{k}", INTEGERS) for k in range(len(shape)))
    condition = required(at)
    if condition is not None:
        call.require(every(at, shape, condition[0]), condition[1])
