"""Functions of MLIR as sides of rules on tensors.

A rule's file is a module, or has modules inside, with two functions ``@left`` and ``@right`` of one type, whose body is
one block of operators that tensor terms have.  Each ``?`` of an argument and each argument of type index is a size.
What makes the left function's behaviour defined is the rule's domain, as far as terms are not well formed without it.

The rule is a claim of its own, about the terms, and is proved as such: nothing is taken over from a proof about the
functions.  They say the same but for signs of zeros that are sums: MLIR's sums must start with +0.0 here, those of
terms start with their first element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chc.tensor_rules.rule import TensorRule
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import IntegerSet
from ir_semantics.mlir.semantics.arguments import block_of, require_known_attributes
from ir_semantics.mlir.semantics.values import NotCovered
from ir_semantics.tensors.conditions import TRUE, All, Condition, IsZero, both, equal, le, substitute_condition
from ir_semantics.tensors.index import Index, size
from ir_semantics.tensors.terms import Tensor, input_, well_formed
from smt_encodings.claims import Equality

from . import operators, tosa
from .operators import index_of
from .steps import Step, Value

DOMAIN, EQUALITY = "rule.domain", "rule.equality"
"""Attributes of the left function: a condition on sizes, and what equal means."""
_OPERATORS = {**operators.OPERATORS, **tosa.OPERATORS}
_FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass
class _Side:
    """A function that is read: what its sizes are, and what must hold of them besides that the term is well formed."""

    function: ir.Operation
    sizes: Sequence[Index]
    conditions: list[Condition] = field(default_factory=list)

    def term(self) -> Tensor:
        """The function's result."""
        require_known_attributes(self.function)
        block = block_of(self.function)
        values = dict(zip(block.arguments, self._arguments(block.arguments), strict=True))
        *operations, last = block.operations
        for operation in operations:
            values[_result_of(operation)] = self._value(operation, values)
        result = values[last.operands[0]] if len(last.operands) == 1 else None
        if not isinstance(result, Tensor):
            raise NotCovered(last.name, last.position, "a side of a rule must have one result, a tensor of floats")
        self._require_stated(last.operands[0].type, result)
        return result

    def _arguments(self, arguments: Sequence[ir.Value]) -> Iterator[Value]:
        left = list(self.sizes)
        for number, argument in enumerate(arguments):
            match argument.type:
                case ir.IndexType():
                    yield left.pop(0)
                case ir.TensorType(shape=shape, element=ir.FloatType()):
                    yield input_(f"x{number}", *(left.pop(0) if n is None else n for n in shape))
                case _:
                    yield input_(f"x{number}")

    def _value(self, operation: ir.Operation, values: Mapping[ir.Value, Value]) -> Value:
        step = Step(operation, values, self.conditions)
        if operation.name not in _OPERATORS:
            raise step.fail("the operator has no term")
        try:
            value = _OPERATORS[operation.name](step)
        except (IndexError, TypeError, ValueError) as error:
            raise step.fail(f"the operation has no term: {error}") from error
        step.call.require_all_taken()
        if isinstance(value, Tensor):
            self._require_stated(operation.results[0].type, value)
        return value

    def _require_stated(self, type_: ir.Type, value: Tensor) -> None:
        if isinstance(type_, ir.TensorType):
            stated = zip(value.shape, type_.shape, strict=True)
            self.conditions += [equal(n, known) for n, known in stated if known is not None]


def _result_of(operation: ir.Operation) -> ir.Value:
    if len(operation.results) != 1:
        raise NotCovered(operation.name, operation.position, "an operation of a rule must have one result")
    return operation.results[0]


def rule_of(name: str, left: ir.Operation, right: ir.Operation) -> TensorRule:
    """The rule that one function may take the place of another one; raises NotCovered where it has no terms."""
    _require_one_type(left, right)
    _require_plain(right)
    sizes: list[Index] = [size(f"n{k}") for k in range(_count_of_sizes(left))]
    equality, stated = _stated(left, sizes)
    while True:
        here = {f"n{k}": n for k, n in enumerate(sizes)}
        side = _Side(left, sizes)
        term = side.term()
        domain = both(*side.conditions, substitute_condition(stated, here))
        known = _solved(both(well_formed(term), domain))
        if known is None:
            break
        sizes = [n.substitute(known) for n in sizes]
    other = _Side(right, sizes)
    result = other.term()
    premise = TensorRule(name, term, result, domain, equality).premise
    for condition in _parts(both(*other.conditions)):
        if condition not in _parts(premise):
            why = f"sizes must satisfy {condition}, which does not follow from what the left function says"
            raise NotCovered(right.name, right.position, why)
    if term.operator == "input":
        raise NotCovered(left.name, left.position, "the left side of a rule must have an operator")
    return TensorRule(name, term, result, domain, equality, note="from MLIR")


def _require_plain(*operations: ir.Operation) -> None:
    """Raises NotCovered where something else than a left function says what only that may say."""
    for operation in operations:
        for name in operation.attributes:
            if name.startswith("rule."):
                why = f"the attribute {name} must be of the function @left"
                raise NotCovered(operation.name, operation.position, why)


def _require_one_type(left: ir.Operation, right: ir.Operation) -> None:
    types = [[a.type for a in block_of(f).arguments] for f in (left, right)]
    if types[0] != types[1]:
        raise NotCovered(right.name, right.position, "both functions of a rule must have the same arguments")
    floats = {_element(left, t) for t in types[0]} - {None}
    if len(floats) > 1:
        raise NotCovered(left.name, left.position, "the arguments of a rule must have elements of one type")


def _element(function: ir.Operation, type_: ir.Type) -> str | None:
    """The float that an argument has elements of; None for an index."""
    element = type_.element if isinstance(type_, ir.TensorType) and type_.encoding is None else type_
    if isinstance(element, ir.FloatType) and element.name in _FLOATS:
        return element.name
    if isinstance(type_, ir.IndexType):
        return None
    why = f"an argument of a rule must be an index, or a float or a tensor of floats ({', '.join(_FLOATS)})"
    raise NotCovered(function.name, function.position, why)


def _count_of_sizes(function: ir.Operation) -> int:
    types = [a.type for a in block_of(function).arguments]
    return sum(t.shape.count(None) if isinstance(t, ir.TensorType) else isinstance(t, ir.IndexType) for t in types)


def _stated(function: ir.Operation, sizes: Sequence[Index]) -> tuple[Equality, Condition]:
    """What the attributes of the left function say."""
    equality: Equality = Equality.BIT_EXACT
    domain: Condition = TRUE
    for name, value in function.attributes.items():
        match name, value:
            case ("rule.equality", ir.StringAttribute(value=text)) if text in _NOTIONS:
                equality = _NOTIONS[text]
            case ("rule.domain", IntegerSet(symbols=0)) if value.dimensions == len(sizes):
                parts = [(index_of(e, sizes), is_equality) for e, is_equality in value.constraints]
                domain = both(*(equal(v, 0) if is_equality else le(0, v) for v, is_equality in parts))
            case _ if name.startswith("rule."):
                why = (
                    f"the attribute {name} is none of a rule, or has no such value; a rule may have {DOMAIN}, an "
                    f"affine set with {len(sizes)} dimensions (one for each ? and each index of the arguments), and "
                    f"{EQUALITY}, one of {', '.join(_NOTIONS)}"
                )
                raise NotCovered(function.name, function.position, why)
    return equality, domain


_NOTIONS = {e.value: e for e in (Equality.BIT_EXACT, Equality.UP_TO_REDUCTION_ORDER, Equality.OVER_REALS)}


def _solved(condition: Condition) -> dict[str, Index] | None:
    """What a size must be: another size, or a number; None where no part of the condition says so of one."""
    for part in _parts(condition):
        if isinstance(part, IsZero):
            for name in sorted(part.value.variables, reverse=True):
                for rest in (size(name) - part.value, size(name) + part.value):
                    if rest.variable not in (None, name) or (rest.constant is not None and rest.constant >= 0):
                        return {name: rest}
    return None


def _parts(condition: Condition) -> Sequence[Condition]:
    return condition.parts if isinstance(condition, All) else (condition,)


def rules_of(module: ir.Module, name: str) -> list[TensorRule]:
    """The rules of a file's module, by the names of modules inside of it; ``name`` is that of one without a name.

    Raises NotCovered with the place where one is none.
    """
    return list(_rules(module.operations, name))


def _rules(operations: Sequence[ir.Operation], name: str) -> Iterator[TensorRule]:
    functions = {o.symbol: o for o in operations if o.name == "func.func" and o.symbol in ("left", "right")}
    if len(functions) == 2:
        yield rule_of(name, functions["left"], functions["right"])
    elif functions:
        (only,) = functions.values()
        raise NotCovered(only.name, only.position, "a rule must have two functions, @left and @right")
    for operation in operations:
        if operation.name == "builtin.module":
            _require_plain(operation)
            for block in operation.regions[0].blocks:
                yield from _rules(block.operations, operation.symbol or name)
