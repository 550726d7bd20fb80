"""Operators by which values are combined, and that their order is free: proved on all bits, each once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ila_lang import Expr, Function, Sort, const
from ila_lang.mapping import Reduction
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import Discharger
from smt_encodings.reorder import LawFails, Sums, prove_laws

_UNITS = {"bvadd": 0, "bvor": 0, "bvxor": 0, "bvand": -1}
"""Operators of the language whose order may be free, with what changes nothing; whether it is, is asked."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator by which values are combined, with the operations of the language that apply it."""

    reduction: Reduction
    sums: Sums

    @property
    def sort(self) -> Sort:
        """What it combines."""
        return self.reduction.operator.result

    @property
    def adds(self) -> bool:
        """Whether it is the addition of integers modulo a power of two."""
        return self.reduction.operator.body is not None and self.reduction.operator.body.op == "bvadd"

    @property
    def unit(self) -> Expr | None:
        """The constant that changes nothing."""
        unit, operator = self.reduction.unit, self.reduction.operator
        return None if unit is None else const(unit, operator.params[0].width)

    def is_unit(self, term: Expr) -> bool:
        """Whether a term is the constant that changes nothing."""
        return term is self.unit

    def operands(self, term: Expr) -> Iterator[Expr]:
        """What the operator combines in a term, as it stands."""
        if self.sums.of(term) is None:
            yield term
            return
        for argument in term.args:
            yield from self.operands(argument)


@dataclass
class Operators:
    """The operators of a mapping's programs; ``declared`` are those that it says are sums."""

    discharger: Discharger
    declared: tuple[Reduction, ...]
    _known: dict[object, Operator] = field(default_factory=dict)
    _free: set[Operator] = field(default_factory=set)

    def applied(self, node: Expr) -> Operator | None:
        """The operator that a term applies."""
        for reduction in self.declared:
            if node.func is reduction.operator:
                key: object = reduction.operator
                return self._known.setdefault(key, Operator(reduction, Sums([reduction])))
        op = "bvadd" if node.op == "bvsub" else node.op
        return self._plain(op, node.sort) if op in _UNITS else None

    def addition(self, sort: Sort) -> Operator:
        """The addition of words."""
        return self._plain("bvadd", sort)

    def _plain(self, op: str, sort: Sort) -> Operator:
        if (op, sort) not in self._known:
            function = Function(f"{op}_{sort}", {"a": sort, "b": sort}, sort, None)
            a, b = function.params
            function.body = {"bvadd": a + b, "bvor": a | b, "bvxor": a ^ b, "bvand": a & b}[op]
            reduction = Reduction(function, _UNITS[op] % (1 << a.width))
            self._known[op, sort] = Operator(reduction, Sums([reduction]))
        return self._known[op, sort]

    def require_free(self, operator: Operator) -> None:
        """Proves that an operator is associative and commutative, and has its unit; raises Unsupported where not."""
        if operator not in self._free:
            try:
                prove_laws(self.discharger, [operator.reduction])
            except LawFails as error:
                raise Unsupported(str(error)) from error
            self._free.add(operator)
