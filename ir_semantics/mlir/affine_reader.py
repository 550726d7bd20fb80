"""Affine maps and integer sets, read from text."""

from __future__ import annotations

from .affine import AffineMap, Binary, Constant, Dimension, Expression, IntegerSet, Operator, Symbol, negated
from .scanner import BARE_NAME, Scanner, token

MOST_OPERATORS = 100
"""Operators in one affine expression: more are refused."""

_TIGHT = token(r"\*|(?:floordiv|ceildiv|mod)\b")


class AffineReader(Scanner):
    """A scanner that passes affine maps and sets."""

    operators = 0

    def affine_map(self) -> AffineMap:
        """``<(d0, ..)[s0, ..] -> (expressions)>``."""
        self.expect("<")
        variables, dimensions = self._variables()
        self.expect("->")
        self.expect("(")
        results: list[Expression] = []
        while not self.take(")"):
            if results:
                self.expect(",")
            results.append(self._expression(variables))
        self.expect(">")
        return AffineMap(dimensions, len(variables) - dimensions, tuple(results))

    def integer_set(self) -> IntegerSet:
        """``<(d0, ..)[s0, ..] : (expression >= expression, expression == expression)>``."""
        self.expect("<")
        variables, dimensions = self._variables()
        self.expect(":")
        self.expect("(")
        constraints: list[tuple[Expression, bool]] = []
        while not self.take(")"):
            if constraints:
                self.expect(",")
            left = self._expression(variables)
            is_equality = self.take("==")
            is_less = not is_equality and self.take("<=")
            if not is_equality and not is_less:
                self.expect(">=")
            right = self._expression(variables)
            constraints.append((_difference(right, left) if is_less else _difference(left, right), is_equality))
        self.expect(">")
        return IntegerSet(dimensions, len(variables) - dimensions, tuple(constraints))

    def _variables(self) -> tuple[dict[str, Expression], int]:
        self.expect("(")
        variables: dict[str, Expression] = {}
        self._names(variables, Dimension, ")")
        dimensions = len(variables)
        if self.take("["):
            self._names(variables, Symbol, "]")
        return variables, dimensions

    def _names(self, variables: dict[str, Expression], kind: type[Dimension | Symbol], closing: str) -> None:
        before = len(variables)
        while not self.take(closing):
            if len(variables) > before:
                self.expect(",")
            at = self.at
            name = self.demand(BARE_NAME, "the name of a dimension or symbol")
            if name in variables:
                raise self.error(f"the name {name} must stand only once in a map's heading", at)
            variables[name] = kind(len(variables) - before)

    def _expression(self, variables: dict[str, Expression]) -> Expression:
        self.operators = 0
        return self._sum(variables)

    def _sum(self, variables: dict[str, Expression]) -> Expression:
        result = self._product(variables)
        while True:
            if self.take("+"):
                result = self._binary("+", result, self._product(variables))
            elif self.sees("-") and not self.sees("->"):
                self.take("-")
                result = self._binary("+", result, negated(self._product(variables)))
            else:
                return result

    def _product(self, variables: dict[str, Expression]) -> Expression:
        result = self._operand(variables)
        while word := self.match(_TIGHT):
            operator: Operator = word  # type: ignore[assignment]
            result = self._binary(operator, result, self._operand(variables))
        return result

    def _binary(self, operator: Operator, left: Expression, right: Expression) -> Binary:
        self.operators += 1
        if self.operators > MOST_OPERATORS:
            raise self.error(f"an affine expression must have at most {MOST_OPERATORS} operators")
        return Binary(operator, left, right)

    def _operand(self, variables: dict[str, Expression]) -> Expression:
        self.enter()
        if self.sees("-"):
            self.take("-")
            result = negated(self._operand(variables))
        elif self.take("("):
            result = self._sum(variables)
            self.expect(")")
        elif self.text[self.at : self.at + 1].isdigit():
            result = Constant(self.integer("a constant of an affine expression"))
        else:
            at = self.at
            name = self.demand(BARE_NAME, "an affine expression")
            if name not in variables:
                raise self.error(f"{name} must be a dimension or symbol of the map's heading", at)
            result = variables[name]
        self.depth -= 1
        return result


def _difference(left: Expression, right: Expression) -> Expression:
    return left if right == Constant(0) else Binary("+", left, negated(right))
