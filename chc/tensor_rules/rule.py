"""Rewrite rules between tensor terms, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from types import UnionType

from ir_semantics.tensors.conditions import TRUE, All, AtLeastZero, Condition, le, variables_of
from ir_semantics.tensors.elements import (
    Apply,
    Choice,
    Element,
    IndexValue,
    Number,
    Read,
    Reduce,
    indices_of_element,
    subelements,
    truths_of_element,
)
from ir_semantics.tensors.index import Index, size
from ir_semantics.tensors.terms import Shape, Tensor, any_element, operands_of, well_formed
from smt_encodings.claims import Claim, Equality, Interpretation

MOST_OPERATIONS = 5_000
"""Operators of a rule when it is written out, with parts that are shared as often as they are used."""
_QUOTIENT = re.compile(r"\(\(([^()]*)\) // \(([^()]*)\)\)")


class Kind(Enum):
    """What is known of a rule before anybody proves it."""

    WRONG = "wrong"
    """A rule that looks right and is not."""
    REPAIRED = "repaired"
    """A wrong rule with the side condition that makes it right."""
    VALID = "valid"
    """A rule that is right."""


@dataclass(frozen=True, eq=False)
class TensorRule:
    """The claim that two tensor terms are equal for all sizes of a domain and all data.

    ``domain`` is the side condition on sizes; besides, the left side must be well formed.  Inputs in ``positive`` hold
    positive numbers only; ``masks`` are Boolean inputs with their shapes.  Over the reals, inputs are finite, and where
    the left side has no value (1 / 0, inf - inf, 0 * inf) nothing is claimed; otherwise the right side has that value.

    Raises TypeError where an argument is of another type, and ValueError where ``positive`` names no input, and where
    it has more than MOST_OPERATIONS operators.
    """

    name: str
    left: Tensor
    right: Tensor
    domain: Condition = TRUE
    equality: Equality = Equality.BIT_EXACT
    kind: Kind = Kind.VALID
    positive: frozenset[str] = frozenset()
    masks: tuple[tuple[str, Shape], ...] = ()
    row: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        required: tuple[tuple[type | UnionType, str, tuple[str, ...]], ...] = (
            (str, "a text", ("name", "row", "note")),
            (Tensor, "a tensor term; a number is written fill(...)", ("left", "right")),
            (Kind, "a Kind, such as Kind.VALID", ("kind",)),
            (Equality, "an Equality, such as Equality.OVER_REALS", ("equality",)),
            (Condition, "a condition on sizes, such as le(1, n)", ("domain",)),
            (frozenset | set, 'a set of names of inputs, such as frozenset({"x"})', ("positive",)),
            (tuple, 'a tuple of names with shapes, such as (("mask", shape([n, m])),)', ("masks",)),
        )
        for of, description, names in required:
            for name in names:
                value = getattr(self, name)
                if not isinstance(value, of):
                    raise TypeError(f"{name} of the rule {self.name} must be {description}, not {value!r:.60}")
        for mask in self.masks:
            match mask:
                case (str(), tuple() as extents) if all(isinstance(e, Index) for e in extents):
                    continue
            raise TypeError(f"masks of the rule {self.name} must be pairs of a name and a shape, not {mask!r:.60}")
        written: dict[int, int] = {}
        for term in operands_of(self.left, self.right):
            written[id(term)] = 1 + sum(written[id(o)] for o in term.operands)
        count = written[id(self.left)] + written[id(self.right)]
        if count > MOST_OPERATIONS:
            raise ValueError(f"the rule {self.name} must have at most {MOST_OPERATIONS:,} operators, not {count:,}")
        inputs = {dict(t.attributes)["name"] for t in operands_of(self.left, self.right) if t.operator == "input"}
        stray = sorted(set(self.positive) - inputs, key=str)
        if stray:
            known = ", ".join(sorted(inputs)) or "none"
            raise ValueError(
                f"positive inputs of the rule {self.name} must be among its inputs ({known}), not {stray[0]}"
            )

    @cached_property
    def premise(self) -> Condition:
        """The domain, that the left side is well formed, and that sizes are natural numbers."""
        parts = [*_parts(self.domain), *_parts(well_formed(self.left))]
        natural = [le(0, size(name)) for name in self.sizes if le(1, size(name)) not in parts]
        return All(tuple(dict.fromkeys([*parts, *natural])))

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs by name, without masks; ValueError where a name has two shapes, or a mask is not declared."""
        inputs_by_name: dict[str, Tensor] = {}
        for tensor in operands_of(self.left, self.right):
            if tensor.operator == "input":
                name = dict(tensor.attributes)["name"]
                if inputs_by_name.setdefault(name, tensor).shape != tensor.shape:
                    raise ValueError(
                        f"the input {name} of the rule {self.name} must have one shape, not "
                        f"{_shape(inputs_by_name[name].shape)} and {_shape(tensor.shape)}; rename one of them"
                    )
        masks = dict(self.masks)
        for name in inputs_by_name.keys() & masks.keys():
            raise ValueError(f"the mask {name} of the rule {self.name} must not be an input, too; rename one of them")
        for name, rank in {(t.name, len(t.at)) for e in self.elements for t in truths_of_element(e)}:
            if name not in masks or len(masks[name]) != rank:
                known = ", ".join(f"{n}{_shape(s)}" for n, s in masks.items()) or "none"
                raise ValueError(
                    f"the Boolean tensor {name} of the rule {self.name}, read at {rank} subscripts, must be one of its "
                    f"masks: {known}"
                )
        return inputs_by_name

    @cached_property
    def statement(self) -> str:
        """Both sides, and their condition, but not that sizes are positive."""
        conditions = [f"{name} > 0" for name in sorted(self.positive)]
        conditions += [str(p) for p in _parts(self.domain) if not (_natural(p) or _positive(p))]
        return floors(" if ".join([f"{self.left} = {self.right}", *filter(None, [" and ".join(conditions)])]))

    @cached_property
    def elements(self) -> tuple[Element, Element]:
        """The element of each side at any subscripts: which sizes and operators occur."""
        left, right = map(any_element, (self.left, self.right))
        return left, right

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """The size variables, in alphabetical order."""
        names = set(variables_of(self.domain))
        for tensor in operands_of(self.left, self.right):
            names |= variables_of(tensor.requires).union(*(d.variables for d in tensor.shape))
        for element in self.elements:
            variables = (i.variables for i in indices_of_element(element))
            names |= {v for v in frozenset().union(*variables) if "." not in v}  # names of bound variables have a dot
        return tuple(sorted(names))

    @cached_property
    def converse(self) -> TensorRule:
        """The rule with its sides exchanged, which is a claim of its own."""
        return replace(self, name=f"{self.name}, converse", left=self.right, right=self.left, row="")

    @property
    def needs_converse(self) -> bool:
        """Whether it may hold from left to right only: the form of its left side does not show that it has a value."""
        return self.equality is Equality.OVER_REALS and not _has_value(self.elements[0], _parts(self.premise))

    @property
    def drops_input(self) -> bool:
        """Whether one side reads inputs that the other one does not: it has no value where these have none."""
        left, right = (_inputs_read(e) for e in self.elements)
        return self.equality is Equality.OVER_REALS and left != right

    @property
    def size_domain(self) -> str:
        """The sizes that the claim is about, as text."""
        shapes = ", ".join(f"{n}{_shape(t.shape)}" for n, t in sorted(self.inputs.items()))
        parts = dict.fromkeys([*_parts(self.domain), *_parts(well_formed(self.left))])
        well = All(tuple(p for p in parts if not _natural(p)))
        conditions = f"; {well}" if well.parts else ""
        return floors(f"all natural numbers {', '.join(self.sizes) or '(none)'}; {shapes}{conditions}")

    @cached_property
    def claim(self) -> Claim:
        """The claim in full."""
        assumptions = [f"{name} > 0 everywhere" for name in sorted(self.positive)]
        if self.equality is not Equality.OVER_REALS and any(map(_orders, self.elements)):
            assumptions.append("maximum and minimum are those of IEEE 754-2019, with one NaN")
        return Claim(
            subject=self.name,
            statement=floors(f"{self.left} = {self.right}"),
            size_domain=self.size_domain,
            equality=self.equality,
            interpretations=(Interpretation.UNINTERPRETED,),
            assumptions=tuple(assumptions),
        )


_ALWAYS = frozenset({"neg", "abs", "add", "sub", "mul", "maximum", "minimum"})
"""Scalar operators that have a value at all real operands."""


def _has_value(element: Element, premise: Iterable[Condition]) -> bool:
    """Whether an element has a value at all sizes and real data, as its form shows."""

    def has_value(element: Element) -> bool:
        return _has_value(element, premise)

    match element:
        case Number():
            return element.key not in ("inf", "-inf", "nan")
        case Apply("div", (dividend, Number() as divisor)):
            return has_value(dividend) and has_value(divisor) and divisor.key != "0"
        case Apply("div", (dividend, IndexValue(count))):
            return has_value(dividend) and _at_least_one(count, premise)
        case Apply(op, args):
            return op in _ALWAYS and all(map(has_value, args))
        case Choice(_, yes, no):
            return has_value(yes) and has_value(no)
        case Reduce(op, _, _, body):
            return op == "sum" and has_value(body)  # the maximum of nothing is infinite
    return True


def _at_least_one(count: Index, premise: Iterable[Condition]) -> bool:
    """Whether a number is a sum of products of sizes, one of which has factors that the premise says to be positive."""
    positive = {p.value + 1 for p in premise if isinstance(p, AtLeastZero)}
    products = [all(isinstance(f, str) and size(f) in positive for f in factors) for factors, _ in count.terms]
    return any(products) and _is_natural(count) and not any("." in v for v in count.variables)


def _inputs_read(element: Element) -> set[str]:
    return {e.name for e in subelements(element) if isinstance(e, Read)}


def floors(text: str) -> str:
    """A text with quotients as people write them.

    >>> floors("1 <= ((h - 1) // (s)) + 1 and ((((n) // (2)) + 1) // (2*k)) <= m")
    '1 <= floor((h - 1)/s) + 1 and floor((floor(n/2) + 1)/(2*k)) <= m'
    """

    def quotient(match: re.Match[str]) -> str:
        above, below = match.groups()
        above = f"{{{above}}}" if " " in above else above
        below = f"{{{below}}}" if " " in below or "*" in below else below
        return f"floor{{{above}/{below}}}"

    count = 1
    while count:  # the innermost quotients have no parentheses inside
        text, count = _QUOTIENT.subn(quotient, text)
    return text.replace("{", "(").replace("}", ")")


def _natural(condition: Condition) -> bool:
    """Whether a condition says no more than that natural numbers are at least 0."""
    return isinstance(condition, AtLeastZero) and _is_natural(condition.value)


def _positive(condition: Condition) -> bool:
    """Whether a condition says no more than that a size is at least 1."""
    return (
        isinstance(condition, AtLeastZero) and _is_natural(condition.value + 1) and len(condition.value.variables) == 1
    )


def _is_natural(value: Index) -> bool:
    quotients = all(_is_natural(q.dividend) and q.divisor.constant is not None for q in value.quotients)
    return quotients and all(coefficient >= 0 for _, coefficient in value.terms)


def _orders(element: Element) -> bool:
    """Whether a maximum or minimum occurs."""
    return any(
        (isinstance(e, Apply) and e.op in ("maximum", "minimum")) or (isinstance(e, Reduce) and e.op != "sum")
        for e in subelements(element)
    )


def _parts(condition: Condition) -> Iterable[Condition]:
    return condition.parts if isinstance(condition, All) else (condition,)


def _shape(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"
