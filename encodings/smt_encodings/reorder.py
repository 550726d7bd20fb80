"""Terms whose sums are equal up to the order of their summands: recognised in expressions, and hashed.

Which operators add is declared (:class:`ila_lang.mapping.Reduction`), and :func:`prove_laws` proves of each, bit by
bit, that it is commutative and associative and has its unit.  An operator whose body is one application of an operator
of the language to both parameters, such as ``a + b``, is recognised wherever this operator is applied to its sort;
another one only by its name.  A *sum* is a maximal chain of one operator; its *summands* are what the chain adds up.

:func:`hash_script` asks whether two terms can differ, where a sum that is used as a value is a constant of which only
this is known: sums with equal multisets of summands are equal.  The multisets are compared by hashes, and everything
around the sums by congruence.  docs/explanation/reductions.md says why "unsat" then means that the terms are equal bit
by bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ila_lang import Expr, Function, Sort, compile_terms, const, inline, postorder, var
from ila_lang.language.expr import rebuild, variables_of
from ila_lang.mapping import Lemma, Reduction

from .discharge import Discharger, NotDischarged
from .environment import fresh
from .expressions.bits import BitEncoding, variable_text
from .expressions.direct import CannotPrint, differences, sort_name, term_lines
from .values import differ

MOST_SUMMANDS = 100_000
"""Most summands of one sum that are written out."""

MOST_AXIOMS = 20_000
"""Most pairs of sums of one pair of terms that are compared."""


class LawFails(Exception):
    """A declared operator whose sums must not be reordered; the message says which law fails, and where."""


def prove_laws(discharger: Discharger, reductions: Sequence[Reduction]) -> None:
    """Adds obligations that each operator is commutative and associative and has its unit, for all operands.

    Raises LawFails where a law is false, or not proved, or the operator has no body.
    """
    for reduction in reductions:
        operator = reduction.operator
        missing = [operator.name] if operator.body is None else _without_body(operator.body)
        if missing:
            raise LawFails(
                f"Operator {operator.name} of a sum must have a body, of which its laws are proved, and {missing[0]} "
                "has none; give it one, or use --method bmc or chc, which keep the order of sums"
            )
        for law, left, right in _laws(reduction):
            meaning = f"the operator {operator.name} is {law}, for all operands: {left!r} = {right!r}"
            try:
                discharger.ask("sum laws", f"{operator.name} is {law}", [differ(BitEncoding(), left, right)], meaning)
            except NotDischarged as error:
                raise LawFails(_failure(operator, law, left, right, error)) from error


def _without_body(term: Expr) -> list[str]:
    return [n.func.name for n in postorder([inline(term)]) if n.func is not None and n.func.body is None]


def _laws(reduction: Reduction) -> Iterator[tuple[str, Expr, Expr]]:
    add, sort = reduction.operator, reduction.operator.result
    a, b, c = (var(name, sort) for name in "abc")
    yield "commutative", add(a, b), add(b, a)
    yield "associative", add(add(a, b), c), add(a, add(b, c))
    if reduction.unit is not None:
        unit = const(reduction.unit, a.width)
        yield f"unchanged by {unit.describe()}", add(a, unit), a


def _failure(operator: Function, law: str, left: Expr, right: Expr, error: NotDischarged) -> str:
    order = "its operands must stay in their order, so use --method bmc or chc, which keep it"
    advice = "give its unit, or None" if law.startswith("unchanged") else order
    answer = error.obligation.answers[0]
    variables = variables_of(left, right)
    values = {v.name: answer.model.get(variable_text(v), 0) for v in variables}
    run = compile_terms(variables, [left, right])
    both = run(*values.values())
    if answer.status != "sat" or both[0] == both[1]:
        return f"the sum {operator.name} is not proved to be {law} ({error}); {advice}"
    where = ", ".join(f"{n} = {v:#x}" for n, v in values.items())
    return (
        f"the sum {operator.name} is not {law}: for {where}, {left!r} is {both[0]:#x} and {right!r} is {both[1]:#x}; "
        f"{advice}"
    )


class Sums:
    """Recognises sums by declared reductions."""

    def __init__(self, reductions: Sequence[Reduction]) -> None:
        self.reductions = tuple(reductions)
        self._functions = {r.operator: r for r in reductions}
        self._operators: dict[tuple[str, Sort], Reduction] = {}
        named = []
        for reduction in reductions:
            operator = reduction.operator
            body = operator.body
            if body is not None and body.op != "apply" and not body.params and _same(body.args, operator.params):
                self._operators[body.op, body.sort] = reduction
            else:
                named.append(operator.name)
        self.keep = frozenset(named)
        """Names of the operators that are recognised by name only, so must not be unfolded."""

    def of(self, node: Expr) -> Reduction | None:
        """The reduction of which the node is a chain, if it is one."""
        if node.func is not None:
            return self._functions.get(node.func)
        return self._operators.get((node.op, node.sort))

    def values(self, roots: Sequence[Expr]) -> list[Expr]:
        """The sums of which more is used than their summands: roots, and operands of what is no such sum itself."""
        order = postorder(roots)
        used = {r for r in roots if self.of(r) is not None}
        for node in order:
            own = self.of(node)
            used.update(a for a in node.args if (reduction := self.of(a)) is not None and reduction is not own)
        return [node for node in order if node in used]

    def summands(self, total: Expr) -> list[Expr]:
        """The summands of a sum, each as often as it is added; raises CannotPrint where they are too many."""
        reduction, summands, stack = self.of(total), list[Expr](), [total]
        while stack:
            node = stack.pop()
            if self.of(node) is reduction:
                stack.extend(reversed(node.args))
            else:
                summands.append(node)
                if len(summands) > MOST_SUMMANDS:
                    raise CannotPrint(f"a sum must have at most {MOST_SUMMANDS} summands to be written out")
        return summands


def _same(left: Sequence[Expr], right: Sequence[Expr]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def hash_script(
    pairs: Sequence[tuple[Expr, Expr]],
    sums: Sums,
    *,
    keep: frozenset[str] = frozenset(),
    lemmas: Sequence[Lemma] = (),
    comment: str = "",
) -> str:
    """A script that is unsatisfiable only if the terms of every pair are equal, whatever order sums are added up in.

    The laws of the operators must be proved apart.  Functions are treated as in
    :func:`smt_encodings.expressions.direct.term_lines`, which also says what is raised; CannotPrint moreover where
    there are more than :data:`MOST_SUMMANDS` summands or :data:`MOST_AXIOMS` pairs of sums.
    """
    return _Writer(pairs, sums).write(keep, lemmas, comment)


@dataclass(frozen=True)
class _Collected:
    """A term as a sum: its value and its summands, rewritten; what is no sum is the sum of itself."""

    reduction: Reduction
    value: Expr
    summands: tuple[Expr, ...]


@dataclass
class _Side:
    """One term: sums by reduction, and where in the term they and others stand."""

    sums: dict[Reduction, dict[Expr, None]] = field(default_factory=dict)
    places: dict[tuple[object, ...], dict[Expr, None]] = field(default_factory=dict)


class _Writer:
    """The text of one question."""

    def __init__(self, pairs: Sequence[tuple[Expr, Expr]], sums: Sums) -> None:
        self.pairs = pairs
        self.sums = sums
        roots = [t for pair in pairs for t in pair]
        self.values = {s: fresh("sum", s.sort) for s in sums.values(roots)}
        self.rewritten: dict[Expr, Expr] = {}
        for node in postorder(roots):
            value = self.values.get(node)
            if value is None and sums.of(node) is None:
                value = rebuild(node, tuple(self.rewritten[a] for a in node.args)) if node.args else node
            if value is not None:
                self.rewritten[node] = value
        self.collected: dict[tuple[Reduction, Expr], _Collected] = {}
        self.axioms: dict[tuple[Expr, Expr, Reduction], tuple[_Collected, _Collected]] = {}
        for left, right in pairs:
            self.compare(left, right)

    def compare(self, left: Expr, right: Expr) -> None:
        """Enters an axiom for each sum of the left side and each of the right side, by the same operator."""
        if left is right:
            return
        left_side, right_side = self.side(left), self.side(right)
        for place in [*left_side.places, *right_side.places]:
            terms = [*left_side.places.get(place, ()), *right_side.places.get(place, ())]
            for reduction in {r: None for t in terms if (r := self.sums.of(t)) is not None}:
                # where one side has a sum, the other may have a single summand; some operators take any sort
                for side in (left_side, right_side):
                    there = (t for t in side.places.get(place, ()) if t.sort == reduction.operator.result)
                    single = {t: None for t in there if self.sums.of(t) is not reduction}
                    side.sums.setdefault(reduction, {}).update(single)
        count = 0
        for reduction, left_sums in left_side.sums.items():
            for a in left_sums:
                for b in right_side.sums.get(reduction, ()):
                    if a is not b:
                        count += 1
                        if count > MOST_AXIOMS:
                            raise CannotPrint(
                                f"an output element must depend on few sums: more than {MOST_AXIOMS} pairs would be "
                                "compared; choose a smaller shape, or use --method chc"
                            )
                        self.axioms[a, b, reduction] = self.collect(reduction, a), self.collect(reduction, b)

    def side(self, root: Expr) -> _Side:
        side = _Side()
        for node in postorder([root]):
            reduction = self.sums.of(node)
            if node in self.values and reduction is not None:
                side.sums.setdefault(reduction, {})[node] = None
            if reduction is None:
                for position, operand in enumerate(node.args):
                    side.places.setdefault((node.op, node.func, node.params, position), {})[operand] = None
        side.places["the result",] = {root: None}
        return side

    def collect(self, reduction: Reduction, term: Expr) -> _Collected:
        key = reduction, term
        if key not in self.collected:
            summands = self.sums.summands(term) if self.sums.of(term) is reduction else [term]
            self.collected[key] = _Collected(
                reduction, self.rewritten[term], tuple(self.rewritten[s] for s in summands)
            )
        return self.collected[key]

    def write(self, keep: frozenset[str], lemmas: Sequence[Lemma], comment: str) -> str:
        collected = list(self.collected.values())
        pairs = [(self.rewritten[a], self.rewritten[b]) for a, b in self.pairs]
        roots = [t for pair in pairs for t in pair] + [t for c in collected for t in (c.value, *c.summands)]
        lines, texts = term_lines(roots, keep=keep, lemmas=lemmas, comment=comment)
        width = hash_width(len(collected), max((len(c.summands) for c in collected), default=1))
        hashes = {r: f"!hash{i}" for i, r in enumerate({c.reduction: None for c in collected})}
        for reduction, name in hashes.items():
            sort = reduction.operator.result
            lines.append(f"(declare-fun {name} ({sort_name(sort)}) (_ BitVec {width}))")
            if reduction.unit is not None:
                unit = f"(_ bv{reduction.unit} {reduction.operator.params[0].width})"
                lines.append(f"(assert (= ({name} {unit}) (_ bv0 {width})))")
        names: dict[int, str] = {}
        for number, each in enumerate(collected):
            names[id(each)] = f"!hashed{number}"
            total = hash_sum([f"({hashes[each.reduction]} {texts[s]})" for s in each.summands], width)
            lines.append(f"(define-fun !hashed{number} () (_ BitVec {width}) {total})")
        for a, b in self.axioms.values():
            lines.append(
                f"(assert (=> (not (= {texts[a.value]} {texts[b.value]})) (not (= {names[id(a)]} {names[id(b)]}))))"
            )
        return "\n".join([*lines, f"(assert {differences(pairs, texts)})", "(check-sat)"]) + "\n"


def hash_width(sums: int, longest: int) -> int:
    """Bits of a hash that tells ``sums`` sums of up to ``longest`` elements apart: log2(sums^2 * longest), at least 1.

    ``longest`` counts elements after sums among them are opened: with the lengths as written, doubling a symbol k times
    over by ``Sum((s, s))`` would wrap to the hash of -0.0.
    """
    return max(1, (sums * sums * longest - 1).bit_length())


def hash_sum(hashes: Sequence[str], width: int) -> str:
    """The text of the sum, modulo 2^width, of at least one hash.

    What is added n times is multiplied by n, so that doubled sums stay small.
    """
    counts = Counter(hashes)
    parts = [h if n == 1 else f"(bvmul (_ bv{n % (1 << width)} {width}) {h})" for h, n in counts.items()]
    return parts[0] if len(parts) == 1 else f"(bvadd {' '.join(parts)})"
