"""Rules on tensors as pairs of MLIR functions, in the generic form, which needs no ``mlir-opt`` to be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chc.tensor_rules.rule import TensorRule
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import Binary, Constant, Dimension, Expression, IntegerSet
from ir_semantics.mlir.printer import text_of
from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, IsZero
from ir_semantics.tensors.index import Index, Quotient, index, size
from ir_semantics.tensors.terms import Tensor, operands_of
from smt_encodings.claims import Equality

from .builder import INDEX, NOWHERE, Builder, NoFunction, tensor_type
from .reading import DOMAIN, EQUALITY
from .terms import OPERATORS


def text_of_rule(rule: TensorRule) -> str:
    """A module with the functions ``@left`` and ``@right``; raises NoFunction where MLIR's operators cannot say it."""
    if rule.masks or rule.positive:
        raise NoFunction(f"{rule.name} holds for some data only, which a pair of functions cannot say")
    sizes = _Sizes(rule)
    left, right = (_function(n, side, rule, sizes) for n, side in (("left", rule.left), ("right", rule.right)))
    attributes = dict(left.attributes)
    constraints = sizes.constraints(rule.domain)
    if constraints:
        attributes[DOMAIN] = IntegerSet(len(sizes.all), 0, tuple(constraints))
    if rule.equality is not Equality.BIT_EXACT:
        attributes[EQUALITY] = ir.StringAttribute(rule.equality.value)
    inside = ir.Region([ir.Block([], [replace(left, attributes=attributes), right])])
    named: dict[str, ir.Attribute] = {"sym_name": ir.StringAttribute(rule.name)}
    module = ir.Operation("builtin.module", (), (), named, (inside,), (), NOWHERE, frozenset(named))
    return text_of(ir.Module((module,)))


class _Sizes:
    """Where the sizes of a rule come from: the dimensions of its inputs, and arguments of type index for the others."""

    def __init__(self, rule: TensorRule) -> None:
        self.inputs = list(rule.inputs.items())
        every = [(k, d, n) for k, (_, x) in enumerate(self.inputs) for d, n in enumerate(x.shape)]
        dynamic = [(k, d, n) for k, d, n in every if n.constant is None]
        self.of_arguments = [n for _, _, n in dynamic]
        self.dimensions = {n.variable: (k, d) for k, d, n in reversed(dynamic) if n.variable is not None}
        self.others = [name for name in rule.sizes if name not in self.dimensions]
        self.all = [*self.of_arguments, *map(size, self.others)]

    def affine(self, value: Index) -> Expression:
        """A number as an affine expression of all sizes; raises NoFunction where it is none."""
        total: Expression = Constant(0)
        for factors, coefficient in value.terms:
            part: Expression = Constant(coefficient)
            if len(factors) > 1:
                raise NoFunction(f"the condition on {value} must be affine, as MLIR's conditions on sizes are")
            if factors:
                inner = self._atom(factors[0])
                part = inner if coefficient == 1 else Binary("*", inner, part)
            total = part if total == Constant(0) else Binary("+", total, part)
        return total

    def _atom(self, atom: str | Quotient) -> Expression:
        if isinstance(atom, str):
            return Dimension(self.all.index(size(atom)))
        if atom.divisor.constant is None:
            raise NoFunction(f"the condition on {atom} must divide by constants, as MLIR's conditions on sizes do")
        return Binary("floordiv", self.affine(atom.dividend), Constant(atom.divisor.constant))

    def constraints(self, domain: Condition) -> list[tuple[Expression, bool]]:
        """What sizes must satisfy: expressions that are 0 (with True), or at least 0."""
        found: list[tuple[Expression, bool]] = []
        for k, value in enumerate(self.of_arguments):
            if value in self.all[:k] or value.variable is None:  # else this is where the size comes from
                found.append((Binary("+", Dimension(k), self.affine(-value)), True))
        for part in domain.parts if isinstance(domain, All) else (domain,):
            match part:
                case AtLeastZero(value):
                    found.append((self.affine(value), False))
                case IsZero(value):
                    found.append((self.affine(value), True))
                case _:
                    raise NoFunction(f"the condition {part} must be a conjunction, as MLIR's conditions on sizes are")
        return found


def _function(name: str, side: Tensor, rule: TensorRule, sizes: _Sizes) -> ir.Operation:
    """One side as a function."""
    tensors = [ir.Value(tensor_type(x.shape), "") for _, x in sizes.inputs]
    indices = {other: ir.Value(INDEX, "") for other in sizes.others}

    def dimension(at: tuple[int, int]) -> Callable[[Builder], ir.Value]:
        return lambda b: b.add("tensor.dim", [tensors[at[0]], b.size(index(at[1]))], INDEX)

    known: dict[str, Callable[[Builder], ir.Value]] = {n: dimension(at) for n, at in sizes.dimensions.items()}
    builder = Builder(known | {n: partial(_itself, value) for n, value in indices.items()})
    written: dict[int, ir.Value] = {}
    inputs = dict(zip((n for n, _ in sizes.inputs), tensors, strict=True))
    for term in operands_of(side):
        values = dict(term.values)
        if term.operator == "input":
            written[id(term)] = inputs[str(values["name"])]
        elif term.operator in OPERATORS:
            operands = [written[id(o)] for o in term.operands]
            written[id(term)] = OPERATORS[term.operator](builder, term, operands, values)
        else:
            raise NoFunction(f"MLIR has no operator for {term.operator} of the rule {rule.name}")
    result = written[id(side)]
    builder.add("func.return", [result], None)
    arguments = [*tensors, *indices.values()]
    type_ = ir.FunctionType(tuple(a.type for a in arguments), (result.type,))
    named: dict[str, ir.Attribute] = {"sym_name": ir.StringAttribute(name), "function_type": ir.TypeAttribute(type_)}
    body = ir.Region([ir.Block(arguments, builder.operations)])
    return ir.Operation("func.func", (), (), named, (body,), (), NOWHERE, frozenset(named))


def _itself(value: ir.Value, _: Builder) -> ir.Value:
    return value
