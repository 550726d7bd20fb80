"""Terms on many samples at once: the same operator, with samples as a first axis of every operand and of the result."""

from __future__ import annotations

from collections.abc import Sequence

from .comprehension import steps, written
from .elements import Apply, Element, Reader, Reduce, Rule, subelements
from .index import Index, Names, index
from .terms import Tensor, input_, operands_of

LIBRARY = frozenset(
    (
        "exp",
        "log",
        "pow",
        "tanh",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
    )
)
"""Functions whose last places may depend on where in an array NumPy finds a number."""


def same_on_samples(term: Tensor, inputs: int) -> bool:
    """Whether arrays of samples give the bits of each sample alone: nothing is added up, in whichever order."""

    def is_same(element: Element) -> bool:
        match element:
            case Reduce(op):
                return op != "sum"
            case Apply(op):
                return op not in LIBRARY
        return True

    return all(is_same(e) for part, _ in steps(term, inputs) for e in subelements(written(part)[0]))


def on_samples(term: Tensor, counts: Sequence[int]) -> Tensor:
    """A term over inputs ``x0``, ``x1``, ... that have so many samples; one stands for any number of equal ones."""
    found: dict[int, Tensor] = {}
    for part in operands_of(term):
        if part.operator == "input":
            name = dict(part.attributes)["name"]
            found[id(part)] = input_(name, counts[int(name[1:])], *part.shape)
        else:
            operands = [found[id(operand)] for operand in part.operands]
            count = max((operand.shape[0].constant or 0 for operand in operands), default=1)
            found[id(part)] = Tensor(
                part.operator, tuple(operands), part.attributes, (index(count), *part.shape), part.requires,
                _rule(part, operands), part.values,
            )  # fmt: skip
    return found[id(term)]


def _rule(part: Tensor, operands: Sequence[Tensor]) -> Rule:
    def within(read: Reader, operand: Tensor, sample: Index) -> Reader:
        own = index(0) if operand.shape[0] == index(1) else sample
        return lambda at: read([own, *at])

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return part.rule(at[1:], [within(r, o, at[0]) for r, o in zip(of, operands, strict=True)], names)

    return rule
