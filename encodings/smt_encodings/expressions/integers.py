"""Index arithmetic over the integers: bit-vector expressions as integer terms, and the proof that this is exact.

Addresses and counters are bit-vectors in a model.  Solvers are far better at the same arithmetic over the integers,
and both agree exactly where no operation leaves its width.  So every operation is translated to its integer
counterpart together with the condition "the result fits"; each condition is proved when it is met, and collected,
so that the certificate carries it.  A conditional whose condition is decided by the size domain is its branch, under
the same rule.  A truncation that provably drops only zeros is the identity; any other one
becomes a remainder.  Quotients and remainders by constants enter as constrained variables (pySMT has no integer
``div``).  Quotients by a size do, too: a sum is divided term by term where terms are multiples of the size, only the
rest gets a quotient of its own, and a remainder is what the quotient leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from pysmt.fnode import FNode
from pysmt.shortcuts import LE, LT, And, Bool, Equals, Iff, Implies, Int, Ite, Minus, Not, Or, Plus, Symbol, Times
from pysmt.typing import BOOL as SMT_BOOL
from pysmt.typing import INT

from ila_lang import BOOL, BvSort, Expr, MemSort, all_of, postorder
from smt_encodings.caching import cached_with_symbols
from smt_encodings.claims import Unsupported
from smt_encodings.environment import plain, symbol_text

from .polynomials import Polynomial, expand, polynomial_term

Decide = Callable[[list[FNode], FNode], bool]


class NotLinearizable(Unsupported):
    """An expression without an integer counterpart, or an operation that may leave its width."""


class IntegerEncoding:
    """Translates expressions under growing hypotheses.

    ``decide(hypotheses, goal)`` answers whether the goal is proved to follow (False also where it is not known).
    :attr:`fits` collects the proved no-overflow conditions, each with the conditions assumed before it.  What is
    assumed later may rely on it, so it must not be proved from that; ranges of variables and definitions of quotients
    hold in any case (:attr:`definitions`).
    """

    def __init__(self, decide: Decide, namespace: str = "") -> None:
        self.decide = decide
        self.namespace = namespace
        self.assumed: tuple[FNode, ...] = ()
        self.definitions: list[FNode] = []
        self.fits: list[tuple[tuple[FNode, ...], FNode]] = []
        self._memo: dict[Expr, FNode] = {}
        self._bounds: dict[Expr, int] = {}
        self._divisions: dict[tuple[FNode, int | FNode], tuple[FNode, ...]] = {}

    # -- hypotheses -----------------------------------------------------------------------------

    @property
    def hypotheses(self) -> list[FNode]:
        """Everything that may be used: definitions and assumptions."""
        return [*self.definitions, *self.assumed]

    def assume(self, condition: Expr) -> None:
        """Adds a Boolean expression to the hypotheses; the parts of a conjunction one by one.

        So what a part says may justify the arithmetic of the parts after it.
        """
        if condition.op == "and":
            for part in condition.args:
                self.assume(part)
            return
        term = self.term(condition)  # first: translating it may add the ranges of new variables
        self.assumed = (*self.assumed, term)
        self._note_bound(condition)

    def _note_bound(self, condition: Expr) -> None:
        """Learns ``variable <= literal`` from a hypothesis of that form, and from conjunctions of such."""
        if condition.op == "and":
            for part in condition.args:
                self._note_bound(part)
        elif condition.op in ("bvule", "bvult") or (condition.op == "not" and condition.args[0].op == "bvule"):
            strict = condition.op != "bvule"
            left, right = condition.args if condition.op != "not" else condition.args[0].args[::-1]
            while left.op == "zext":
                left = left.args[0]
            if left.op == "var":
                limit = min(self.upper(right), (1 << right.width) - 1) - strict
                self._bounds[left] = min(self.upper(left), max(limit, 0))

    def symbol(self, variable: Expr) -> FNode:
        """The integer (or Boolean) symbol of a variable; its range joins the hypotheses at first use.

        Raises NotLinearizable for a memory, which a load brings in that nothing has resolved.
        """
        if isinstance(variable.sort, MemSort):
            raise NotLinearizable(f"an index must not depend on what {plain(variable.name)} holds")
        if variable not in self._memo:
            if variable.sort == BOOL:
                self._memo[variable] = Symbol(symbol_text((variable, "truth"), variable.name), SMT_BOOL)
            else:
                symbol = Symbol(symbol_text((variable, "integer"), variable.name), INT)
                self._memo[variable] = symbol
                self._range(symbol, variable.width)
        return self._memo[variable]

    def _range(self, symbol: FNode, width: int) -> None:
        self.definitions.append(And(LE(Int(0), symbol), LT(symbol, Int(1 << width))))

    # -- translation ----------------------------------------------------------------------------

    def term(self, root: Expr) -> FNode:
        """The integer term of ``root``, equal to its unsigned value wherever the hypotheses hold.

        Raises NotLinearizable where an operation has no integer counterpart or is not proved to fit, but in a branch
        of a choice that is not taken then, such as ``i - 2`` where ``i`` is at least 2, or in a condition beside others
        before it that decide already, such as ``2 <= i`` and ``i - 2 < n``.
        """
        failed: dict[Expr, NotLinearizable] = {}
        for node in postorder([root]):
            if node in self._memo:
                continue
            problem = next((failed[a] for a in node.args if a in failed), None)
            try:
                if problem is None:
                    args = [self._memo[a] for a in node.args]
                elif node.op == "ite" and node.args[0] not in failed:
                    condition, then, otherwise = node.args
                    branches = [self._branch(then, condition), self._branch(otherwise, ~condition)]
                    args = [self._memo[condition], *branches]
                elif node.op in ("and", "or") and node.args[0] not in failed:
                    args = [self._memo[node.args[0]], *self._decided_by_the_first(node)]
                else:
                    raise problem
                self._memo[node] = self._node(node, args)
            except NotLinearizable as error:
                failed[node] = error
        if root in failed:
            raise failed[root]
        return self._memo[root]

    def _branch(self, node: Expr, condition: Expr) -> FNode:
        """A term that is used only where ``condition`` holds."""
        if node in self._memo:
            return self._memo[node]
        inner = self.fork(self.namespace)
        inner.assume(condition)
        term = inner.term(node)
        # what it records has the condition among what was assumed; definitions hold in any case
        self.fits, self.definitions, self._divisions = inner.fits, inner.definitions, inner._divisions
        return term

    def _decided_by_the_first(self, node: Expr) -> list[FNode]:
        """The parts of a conjunction or a disjunction but the first, each as it is where those before do not decide."""
        parts = node.args if node.op == "and" else [~a for a in node.args]
        return [self._branch(a, all_of(parts[:k])) for k, a in enumerate(node.args) if k]

    def _node(self, node: Expr, args: list[FNode]) -> FNode:
        if node.op == "var":
            return self.symbol(node)
        if node.op == "const":
            return Bool(bool(node.value)) if node.sort == BOOL else Int(node.value)
        handler = _SIMPLE.get(node.op)
        if handler is not None:
            return handler(args, node)
        match node.op:
            case "bvadd":
                return self._fitting(node, Plus(args))
            case "bvmul":
                return self._fitting(node, Times(args))
            case "bvshl" if node.args[1].is_const:
                return self._fitting(node, Times(args[0], Int(1 << node.args[1].value)))
            case "bvsub":
                self._require(node, LE(args[1], args[0]))
                return Minus(args[0], args[1])
            case "ite":
                return self._choose(args)
            case "concat":
                return Plus(Times(args[0], Int(1 << node.args[1].width)), args[1])
            case "extract":
                return self._extract(node, args[0])
            case "bvudiv" | "bvurem" if node.args[1].is_const and node.args[1].value:
                quotient, remainder = self._divide(args[0], node.args[1].value)
                return quotient if node.op == "bvudiv" else remainder
            case "bvudiv" | "bvurem" if args[1].is_symbol():
                if not self.decide(self.hypotheses, LE(Int(1), args[1])):
                    raise NotLinearizable(f"this divides by what may be 0: {node!r}")
                self._record(LE(Int(1), args[1]))
                quotient, remainder = self._divide_by(args[0], args[1])
                if quotient.is_symbol():
                    self._learn(LE(Int(0), quotient))
                return quotient if node.op == "bvudiv" else remainder
        raise NotLinearizable(f"operator '{node.op}' in an index has no integer counterpart: {node!r}")

    def _extract(self, node: Expr, value: FNode) -> FNode:
        hi, lo = int(node.params[0]), int(node.params[1])
        source = node.args[0]
        if lo:
            # as for remainders below: a quotient that is always 0 must not stand beside a remainder that is the value
            small = LT(value, Int(1 << lo))
            bounded = self.upper(source) >> lo == 0
            if bounded or self.decide(self.hypotheses, small):
                if not bounded or is_linear(value):
                    self._record(small)
                return Int(0)
            value, _ = self._divide(value, 1 << lo)
        width = hi - lo + 1
        fits = LT(value, Int(1 << width))  # no term is negative: differences are required not to be
        bounded = min(self.upper(source), (1 << source.width) - 1) >> lo < 1 << width
        if bounded or self.decide(self.hypotheses, fits):
            if not bounded or is_linear(value):
                self._record(fits)
            return value
        return self._divide(value, 1 << width)[1]

    def _choose(self, args: list[FNode]) -> FNode:
        """A conditional, or the branch that the hypotheses decide."""
        condition, then, otherwise = args
        for outcome, branch in ((condition, then), (Not(condition), otherwise)):
            if self.decide(self.hypotheses, outcome):
                self._record(outcome)
                return branch
        return Ite(condition, then, otherwise)

    def _divide(self, value: FNode, divisor: int) -> tuple[FNode, FNode]:
        """Quotient and remainder of a non-negative term by a positive constant."""
        if value.is_constant():
            quotient, remainder = divmod(int(value.constant_value()), divisor)
            return Int(quotient), Int(remainder)
        key = (value, divisor)
        if key not in self._divisions:
            label = value.symbol_name() if value.is_symbol() else f"{self.namespace}!e{len(self._divisions)}"
            quotient, remainder = Symbol(f"{label}!div{divisor}", INT), Symbol(f"{label}!mod{divisor}", INT)
            # "!" is in no variable's name; the definition is total for every integer value, so it assumes nothing (in
            # particular not that the value is >= 0)
            self.definitions.append(
                And(
                    Equals(value, Plus(Times(quotient, Int(divisor)), remainder)),
                    LE(Int(0), remainder),
                    LT(remainder, Int(divisor)),
                )
            )
            self._divisions[key] = (quotient, remainder)
        quotient, remainder = self._divisions[key]
        return quotient, remainder

    def _divide_by(self, value: FNode, divisor: FNode) -> tuple[FNode, FNode]:
        """Quotient and remainder of a term by a symbol that the caller has shown to be positive.

        With ``value = divisor*high + low`` the quotient is ``high`` plus that of ``low``, and the remainder that of
        ``low``: an identity of integers, also where ``low`` is negative and its quotient rounded down.
        """
        high: Polynomial = {}
        low: Polynomial = {}
        for monomial, coefficient in expand(value).items():
            if divisor in monomial:
                rest = list(monomial)
                rest.remove(divisor)
                high[tuple(rest)] = coefficient
            else:
                low[monomial] = coefficient
        if not low:
            whole = polynomial_term(high)
            return (whole if len(high) <= 1 else self._named(whole, divisor)), Int(0)
        left = polynomial_term(low)
        key = (left, divisor)
        if key not in self._divisions:
            quotient = self._quotient_symbol(left, divisor)
            # total: where the divisor is not positive, nothing is said
            rest_of = Minus(left, Times(divisor, quotient))
            self.definitions.append(
                Implies(LE(Int(1), divisor), And(LE(Int(0), rest_of), LT(rest_of, divisor))),
            )
            self._divisions[key] = (quotient,)
        (quotient,) = self._divisions[key]
        return (Plus(polynomial_term(high), quotient) if high else quotient), Minus(left, Times(divisor, quotient))

    def _named(self, whole: FNode, divisor: FNode) -> FNode:
        """A symbol for a quotient that is a sum, so that bounds on it are bounds on a symbol."""
        key = (polynomial_term(expand(Times(whole, divisor))), divisor)
        if key not in self._divisions:
            self._divisions[key] = (self._quotient_symbol(key[0], divisor),)
            self.definitions.append(Equals(self._divisions[key][0], whole))
        return self._divisions[key][0]

    def _quotient_symbol(self, value: FNode, divisor: FNode) -> FNode:
        label = value.symbol_name() if value.is_symbol() else f"{self.namespace}!q{len(self._divisions)}"
        by = divisor.symbol_name()
        # a divisor that is a quotient itself must not read like a quotient of a quotient
        return Symbol(f"{label}!over!{by}" if "!" not in by else f"{label}!over{len(by)}!{by}", INT)

    def quotients(self) -> list[tuple[FNode, int | FNode, tuple[FNode, ...]]]:
        """What was divided, by what, and the symbols of quotient and remainder (by a size: of the quotient)."""
        return [(value, divisor, symbols) for (value, divisor), symbols in self._divisions.items()]

    def quotient(self, value: FNode, divisor: FNode) -> FNode:
        """The quotient of a term by a symbol that is known to be positive."""
        return self._divide_by(value, divisor)[0]

    def instance(self, generic: IntegerEncoding, term: FNode, point: dict[FNode, FNode]) -> FNode:
        """``term``, translated by ``generic`` for arbitrary values, at the values that ``point`` gives its symbols.

        Both must be forks of one encoding.  The result is exact wherever the point satisfies the hypotheses of
        ``generic``; proving that is the caller's business.  Equal quotients get equal symbols.
        """
        return term.substitute(self.renaming(generic, point))

    def renaming(self, generic: IntegerEncoding, point: dict[FNode, FNode]) -> dict[FNode, FNode]:
        """What every symbol of ``generic`` becomes at a point, its quotients and remainders included."""
        mapping = dict(point)
        for (value, divisor), symbols in generic._divisions.items():
            there = value.substitute(mapping)
            moved: tuple[FNode, ...]
            if isinstance(divisor, int):
                moved = self._divide(there, divisor)
            elif divisor in mapping:
                raise NotLinearizable(f"a divisor, {divisor}, is no size")
            else:
                moved = self._divide_by(there, divisor)[:1]
            mapping |= {s: m for s, m in zip(symbols, moved, strict=True) if s is not m}
        return mapping

    def meaning(self, term: FNode) -> frozenset[tuple[FNode, FNode, int | FNode]]:
        """What the quotients and remainders inside ``term`` are of; their names alone do not tell forks apart."""
        defined = {s: (v, d) for (v, d), symbols in self._divisions.items() for s in symbols}
        definitions: set[tuple[FNode, FNode, int | FNode]] = set()
        open_terms = [term]
        while open_terms:
            for symbol in open_terms.pop().get_free_variables():
                entry = (symbol, *defined[symbol]) if symbol in defined else None
                if entry is not None and entry not in definitions:
                    definitions.add(entry)
                    open_terms.append(entry[1])
        return frozenset(definitions)

    def _fitting(self, node: Expr, value: FNode) -> FNode:
        if self.upper(node) < 1 << node.width:
            if is_linear(value):
                self._record(LE(value, Int(self._upper(node))))
            else:
                self._record_bound(node)
        else:
            self._require(node, LT(value, Int(1 << node.width)))
        return value

    def _require(self, node: Expr, condition: FNode) -> None:
        if not self.decide(self.hypotheses, condition):
            raise NotLinearizable(f"this operation may leave its {node.width} bits: {node!r}")
        self._record(condition)

    def _learn(self, condition: FNode) -> None:
        """Makes a theorem a hypothesis of what follows, if it is found to be one."""
        if self.decide(self.hypotheses, condition):
            self._record(condition)
            self.assumed = (*self.assumed, condition)

    def _record_bound(self, node: Expr) -> None:
        """Records that literal bounds of the operands bound the result, for any operands.

        Asked about the operands themselves, which may be long sums of products, solvers multiply these out.  The bounds
        of operands are recorded in the same way where they are results, and follow from hypotheses of the form
        ``variable <= literal`` where they are variables.
        """
        names = ("first", "second")
        operands, ranges = [], []
        for name, argument in zip(names, node.args, strict=True):
            if argument.is_const:
                operands.append(Int(argument.value))
            else:
                symbol = Symbol(f"!{name}", INT)
                operands.append(symbol)
                most = min(self.upper(argument), (1 << argument.width) - 1)
                ranges.append(And(LE(Int(0), symbol), LE(symbol, Int(most))))
        result = {
            "bvadd": lambda: Plus(operands),
            "bvmul": lambda: Times(operands),
            "bvshl": lambda: Times(operands[0], Int(1 << node.args[1].value)),
        }[node.op]()
        self._record(Implies(And(ranges), LE(result, Int(self._upper(node)))))

    def _record(self, condition: FNode) -> None:
        entry = (self.assumed, condition)
        if entry not in self.fits:
            self.fits.append(entry)

    def fork(self, namespace: str = "") -> IntegerEncoding:
        """A copy that can take more hypotheses without changing this one.

        Forks whose hypotheses are to be combined need different ``namespace`` for the symbols they introduce.
        """
        other = IntegerEncoding(self.decide, namespace)
        other.assumed, other.definitions = self.assumed, list(self.definitions)
        other.fits = list(self.fits)
        other._memo = dict(self._memo)
        other._bounds = dict(self._bounds)
        other._divisions = dict(self._divisions)
        return other

    def upper(self, node: Expr) -> int:
        """An upper bound on the exact (unwrapped) value that follows from widths and literals alone."""
        if node not in self._bounds:
            self._bounds[node] = self._upper(node)
        return self._bounds[node]

    def _upper(self, node: Expr) -> int:
        # a bound noted later may be tighter; what is cached here stays valid
        if not isinstance(node.sort, BvSort):
            return 1
        limit = (1 << node.width) - 1
        if node.op == "const":
            return node.value
        inner = [min(self.upper(a), (1 << a.width) - 1) for a in node.args if isinstance(a.sort, BvSort)]
        match node.op:
            case "bvadd":
                return inner[0] + inner[1]
            case "bvmul":
                return inner[0] * inner[1]
            case "bvshl" if node.args[1].is_const:
                return inner[0] << node.args[1].value
            case "zext":
                return inner[0]
            case "extract":
                return min(limit, inner[0] >> int(node.params[1]))
            case "ite":
                return max(inner)
        return limit


@cached_with_symbols(100_000)
def is_linear(term: FNode) -> bool:
    """Whether no product of two non-constants occurs."""
    if term.is_times() and sum(not a.is_constant() for a in term.args()) > 1:
        return False
    return all(is_linear(a) for a in term.args())


_SIMPLE: dict[str, Callable[[list[FNode], Expr], FNode]] = {
    "not": lambda a, _: Not(a[0]),
    "and": lambda a, _: And(a),
    "or": lambda a, _: Or(a),
    "xor": lambda a, _: Not(Iff(a[0], a[1])),
    "eq": lambda a, n: Iff(a[0], a[1]) if n.args[0].sort == BOOL else Equals(a[0], a[1]),
    "bvult": lambda a, _: LT(a[0], a[1]),
    "bvule": lambda a, _: LE(a[0], a[1]),
    "zext": lambda a, _: a[0],
    "bvnot": lambda a, n: Minus(Int((1 << n.width) - 1), a[0]),
}
