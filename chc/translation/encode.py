"""Terms of several formats as one question: integers as SMT integers, data in an interpretation of the ladder.

Both worlds share Boolean symbols and nothing else.  What neither has a meaning for (elements of tensors, folds,
functions that are not known, conversions between words and integers) becomes a variable, and equal operands make two
of them equal.  Forgetting what a thing is makes a question harder to prove and never easier, so what is proved holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Protocol

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT

from ir_semantics.elements.binders import Loop, loop_of, operands, outside_binders
from ir_semantics.elements.operators import atom, conjuncts, equal
from ir_semantics.elements.terms import Term, is_false
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Literal
from ir_semantics.scalars.machine import MachineExpressions
from ir_semantics.scalars.terms import NotInterpreted
from ir_semantics.tensors.index import Index, Quotient
from smt_encodings.claims import Interpretation
from smt_encodings.environment import fresh_symbols
from smt_encodings.interpretations import AbstractFloats, CannotInterpret, IeeeFloats, MachineBits, Symbols


class Data(Protocol):
    """An interpretation of data."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed of its symbols."""

    def variable(self, name: str, kind: Format) -> Any:
        """An unknown value."""

    def constant(self, value: Literal, kind: Format) -> Any:
        """A literal."""

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Any]) -> Any:
        """An operator."""

    def script(self, assertions: Sequence[Any], comment: str = "", beside: Sequence[FNode] = ()) -> str:
        """The question."""


@dataclass(frozen=True)
class Question:
    """A script that is unsatisfiable where a goal follows; ``variables`` are the terms that its variables stand for.

    ``has_floats`` says that variables of floats are their bits.
    """

    script: str
    assumptions: tuple[str, ...]
    has_floats: bool
    variables: Mapping[str, Term]


def question(
    hypotheses: Sequence[Term],
    goal: Term,
    interpretation: Interpretation,
    classes: Mapping[Loop, Loop],
    comment: str,
    converts: bool = False,
) -> Question:
    """Asks whether a goal follows; ``classes`` gives one fold for all folds that are equal from equal starts.

    With ``converts``, which is of machine numbers, z3 is told what conversions between integers and words give.
    Raises CannotInterpret where a format has no such interpretation.
    """
    with fresh_symbols():
        data: Data
        if interpretation is Interpretation.ABSTRACT_FLOAT:
            first = AbstractFloats(MachineExpressions())
            _Encoding(first, classes).build(hypotheses, goal)
            data = AbstractFloats(MachineExpressions(), first.bits_needed)
        else:
            data = _DATA[interpretation]()
        encoding = _Encoding(data, classes, converts)
        encoding.build(hypotheses, goal)
        script = data.script(encoding.of_data, comment, encoding.of_integers)
        script = script.replace("(check-sat)", "\n".join([*encoding.conversions, "(check-sat)"]))
        return Question(script, data.assumptions, isinstance(data, IeeeFloats), encoding.names)


_DATA: Mapping[Interpretation, Any] = {
    Interpretation.UNINTERPRETED: Symbols,
    Interpretation.BITS: lambda: MachineBits(MachineExpressions()),
    Interpretation.IEEE: lambda: IeeeFloats(MachineExpressions()),
}


@dataclass
class _Encoding:
    """Assertions of both worlds."""

    data: Data
    classes: Mapping[Loop, Loop]
    converts: bool = False
    conversions: list[str] = field(default_factory=list)
    of_data: list[Any] = field(default_factory=list)
    of_integers: list[FNode] = field(default_factory=list)
    names: dict[str, Term] = field(default_factory=dict)
    _values: dict[Term, Any] = field(default_factory=dict)
    _truths: dict[Term, FNode] = field(default_factory=dict)
    _integers: dict[Term, FNode] = field(default_factory=dict)
    _quotients: dict[tuple[FNode, FNode], FNode] = field(default_factory=dict)
    _linked: dict[Term, Any] = field(default_factory=dict)
    _atoms: dict[object, list[Term]] = field(default_factory=dict)
    _count: int = 0

    def build(self, hypotheses: Sequence[Term], goal: Term) -> None:
        """Asserts hypotheses and the negation of the goal."""
        for condition in conjuncts(hypotheses):
            self._assert(condition, True)
        self._assert(goal, False)
        self._congruences()

    def _assert(self, condition: Term, positive: bool) -> None:
        self._visit(condition)
        if condition in self._truths:
            truth = self._truths[condition]
            self.of_integers.append(truth if positive else smt.Not(truth))
        else:
            value = self._values[condition]
            self.of_data.append(value if positive else self._logic("not", value))

    def _logic(self, op: str, *args: Any) -> Any:
        return self.data.apply(op, BOOLEAN, [BOOLEAN] * len(args), args)

    def _new(self, term: Term | None = None) -> str:
        self._count += 1
        name = f"x.{self._count}"
        if term is not None:
            self.names[name] = term
        return name

    # -- terms ---------------------------------------------------------------------------------------------

    def _visit(self, root: Term) -> None:
        done = (self._values, self._truths, self._integers)
        for term in outside_binders(root, lambda t: not any(t in d for d in done)):
            if any(term in d for d in done) or term.op == "array":
                continue
            if term.kind == INTEGERS:
                self._integers[term] = self._integer(term)
            elif term.kind == BOOLEAN:
                self._boolean(term)
            else:
                self._values[term] = self._datum(term)

    def _integer(self, term: Term) -> FNode:
        match term.op:
            case "constant":
                return smt.Int(int(term.payload))  # type: ignore[arg-type]
            case "polynomial":
                assert isinstance(term.payload, Index)
                return self._polynomial(term.payload)
            case "select":
                condition, yes, no = term.args
                return smt.Ite(self._truth(condition), self._integers[yes], self._integers[no])
        name = self._atom(term)
        symbol = smt.Symbol(name, INT)
        if term.op == "cast" and term.args[0].kind.family == "integer":
            width, sign, _ = term.args[0].kind.parameters
            low, high = (-(1 << (int(width) - 1)), 1 << (int(width) - 1)) if sign == "signed" else (0, 1 << int(width))
            self.of_integers += [smt.LE(smt.Int(low), symbol), smt.LT(symbol, smt.Int(high))]
            if self.converts:
                word = self._new()
                own, kind = term.args[0], term.args[0].kind
                pair = [self.data.variable(word, kind), self._value(own)]
                self.of_data.append(self.data.apply("same", BOOLEAN, [kind] * 2, pair))
                less = f"(ite (bvslt {word} (_ bv0 {width})) {1 << int(width)} 0)" if sign == "signed" else "0"
                self.conversions.append(f"(assert (= {name} (- (bv2nat {word}) {less})))")
        return symbol

    def _polynomial(self, value: Index) -> FNode:
        terms = []
        for monomial, coefficient in value.terms:
            factors = [self._quotient(a) if isinstance(a, Quotient) else self._integers[atom(a)] for a in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, smt.Int(coefficient))
            terms.append(smt.Times(factors) if len(factors) > 1 else factors[0])
        return smt.Plus(terms) if len(terms) != 1 else terms[0]

    def _quotient(self, quotient: Quotient) -> FNode:
        """A variable that is the quotient where the divisor is positive."""
        a, b = self._polynomial(quotient.dividend), self._polynomial(quotient.divisor)
        if (a, b) not in self._quotients:
            symbol = smt.Symbol(self._new(), INT)
            product = smt.Times(b, symbol)
            bounds = smt.And(smt.LE(product, a), smt.LT(a, smt.Plus(product, b)))
            self.of_integers.append(bounds if b.is_constant() else smt.Implies(smt.LT(smt.Int(0), b), bounds))
            self._quotients[a, b] = symbol
        return self._quotients[a, b]

    def _boolean(self, term: Term) -> None:
        """In the world of integers where all that it is made of is there, else in that of data."""
        match term.op:
            case "constant":
                self._truths[term] = smt.Bool(bool(term.payload))
            case "le" | "eq" if term.args[0].kind == INTEGERS:
                a, b = (self._integers[x] for x in term.args)
                self._truths[term] = smt.LE(a, b) if term.op == "le" else smt.Equals(a, b)
            case "and" | "not" | "select" | "same" if all(a.kind == BOOLEAN for a in term.args):
                if all(a in self._truths for a in term.args):
                    parts = [self._truths[a] for a in term.args]
                    self._truths[term] = _LOGIC[term.op](*parts)
                else:
                    self._values[term] = self._logic(term.op, *(self._value(a) for a in term.args))
            case "symbol" | "read" | "fold" | "every" | "function" | "call" | "cast":
                self._values[term] = self.data.variable(self._atom(term), BOOLEAN)
            case _:
                self._values[term] = self._applied(term)

    def _datum(self, term: Term) -> Any:
        match term.op:
            case "constant":
                return self.data.constant(term.payload, term.kind)  # type: ignore[arg-type]
            case "symbol" | "read" | "fold" | "function" | "call":
                return self.data.variable(self._atom(term), term.kind)
            case "cast" if term.args[0].kind == INTEGERS:
                name = self._atom(term)
                value = self.data.variable(name, term.kind)
                if self.converts and term.kind.family == "integer":
                    number = self._new()
                    self.of_integers.append(smt.Equals(smt.Symbol(number, INT), self._integers[term.args[0]]))
                    self.conversions.append(f"(assert (= {name} ((_ int2bv {term.kind.parameters[0]}) {number})))")
                return value
        return self._applied(term)

    def _applied(self, term: Term) -> Any:
        args = [self._value(a) for a in term.args]
        try:
            return self.data.apply(term.op, term.kind, [a.kind for a in term.args], args)
        except (CannotInterpret, NotInterpreted):
            return self.data.variable(self._atom(term), term.kind)

    # -- from one world to the other -------------------------------------------------------------------------

    def _value(self, term: Term) -> Any:
        """A term in the world of data."""
        if term in self._values:
            return self._values[term]
        if term not in self._linked:
            if term.op == "constant":
                self._linked[term] = self.data.constant(term.payload, BOOLEAN)  # type: ignore[arg-type]
            else:
                name = self._new()
                self.of_integers.append(smt.Iff(smt.Symbol(name, BOOL), self._truths[term]))
                self._linked[term] = self.data.variable(name, BOOLEAN)
        return self._linked[term]

    def _truth(self, term: Term) -> FNode:
        """A condition in the world of integers."""
        if term not in self._truths:
            self._truths[term] = self._link(self._values[term])
        return self._truths[term]

    def _link(self, value: Any) -> FNode:
        name = self._new()
        self.of_data.append(self._logic("same", self.data.variable(name, BOOLEAN), value))
        return smt.Symbol(name, BOOL)

    # -- variables -------------------------------------------------------------------------------------------

    def _atom(self, term: Term) -> str:
        if term.op != "symbol":
            self._atoms.setdefault(self._head(term), []).append(term)
        return self._new(term)

    def _head(self, term: Term) -> object:
        """What two applications must have in common so that equal operands make them equal."""
        match term.op:
            case "fold":
                loop = loop_of(term)
                return "fold", self.classes.get(loop, loop)
            case "every":
                return "every", term
            case "read" | "function" | "call":
                return term.op, term.payload, term.kind, tuple(a.kind for a in term.args)
        return term.op, term.kind, tuple(a.kind for a in term.args)

    def _congruences(self) -> None:
        for atoms in list(self._atoms.values()):
            # reads at different literal places are apart; folds of one class may be equal
            known = [a for a in atoms if a.op == "read" and a.args and all(x.op == "constant" for x in a.args)]
            apart = set(known)
            others = [a for a in atoms if a not in apart]
            for a, b in (*combinations(others, 2), *product(others, known)):
                self._congruence(a, b)

    def _congruence(self, a: Term, b: Term) -> None:
        premises = []
        for x, y in zip(operands(a), operands(b), strict=True):
            if x is y:
                continue
            if x.op == "array":
                loops = [self.classes.get(loop_of(t), loop_of(t)) for t in (x, y)]
                if loops[0] != loops[1]:
                    return
            elif x.kind == INTEGERS:
                if is_false(equal(x, y)):
                    return
                premises.append(smt.Equals(self._integers[x], self._integers[y]))
            else:
                if x.op == y.op == "constant":
                    return
                both = [self._value(x), self._value(y)]
                premises.append(self._link(self.data.apply("same", BOOLEAN, [x.kind] * 2, both)))
        if a.kind == INTEGERS:
            self.of_integers.append(smt.Implies(smt.And(premises), smt.Equals(self._integers[a], self._integers[b])))
            return
        same = self.data.apply("same", BOOLEAN, [a.kind] * 2, [self._values[a], self._values[b]])
        if not premises:
            self.of_data.append(same)
            return
        name = self._new()
        self.of_integers.append(smt.Implies(smt.And(premises), smt.Symbol(name, BOOL)))
        unless = self._logic("not", self.data.variable(name, BOOLEAN))
        self.of_data.append(self._logic("or", unless, same))


_LOGIC: Mapping[str, Any] = {"and": smt.And, "not": smt.Not, "select": smt.Ite, "same": smt.Iff}
