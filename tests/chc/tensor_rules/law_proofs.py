"""Why the laws of the kernel hold: obligations for both solvers, exhaustive models, and axioms with their sources.

An obligation is written once, as an SMT-LIB term, and read twice: by the solvers under :data:`PRELUDE`, for all
numbers, and by :func:`value`, which shares no code with them or the product, on a grid.  As a module, this writes the
page.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from chc.tensor_rules.kernel.laws import LAWS

PAGE = Path(__file__).parents[3] / "docs/reference/tensor_laws.md"

PRELUDE = """(set-logic ALL)
(declare-datatypes ((V 0)) (((none) (minus) (plus) (num (real Real)))))
(declare-fun power (Real) Real)
(declare-fun f (Int) Int)
(define-fun finite ((a V)) Bool ((_ is num) a))
(define-fun sign ((a V)) Int (ite (= a plus) 1 (ite (= a minus) (- 1)
  (ite (> (real a) 0.0) 1 (ite (= (real a) 0.0) 0 (- 1))))))
(define-fun positive ((a V)) Bool (and (finite a) (> (real a) 0.0)))
(define-fun neg ((a V)) V (ite (finite a) (num (- (real a))) (ite (= a plus) minus (ite (= a minus) plus none))))
(define-fun add ((a V) (b V)) V (ite (or (= a none) (= b none)) none (ite (and (finite a) (finite b))
  (num (+ (real a) (real b))) (ite (finite a) b (ite (or (finite b) (= a b)) a none)))))
(define-fun mul ((a V) (b V)) V (ite (or (= a none) (= b none)) none (ite (and (finite a) (finite b))
  (num (* (real a) (real b))) (ite (= (* (sign a) (sign b)) 0) none (ite (= (sign a) (sign b)) plus minus)))))
(define-fun inverse ((a V)) V (ite (= a none) none
  (ite (finite a) (ite (= (real a) 0.0) none (num (/ 1.0 (real a)))) (num 0.0))))
(define-fun quotient ((a V) (b V)) V (mul a (inverse b)))
(define-fun below ((a V) (b V)) Bool (or (= a minus) (= b plus) (and (finite a) (finite b) (<= (real a) (real b)))))
(define-fun maximum ((a V) (b V)) V (ite (or (= a none) (= b none)) none (ite (below a b) b a)))
(define-fun minimum ((a V) (b V)) V (ite (or (= a none) (= b none)) none (ite (below a b) a b)))
(define-fun e^ ((a V)) V (ite (finite a) (num (power (real a))) (ite (= a minus) (num 0.0) a)))
"""
"""Real numbers, infinities and no value; a quotient by 0 has no value, nor have inf - inf and 0 * inf."""

POWER = (
    "(and (> (power (real {0})) 0.0) (= (power (+ (real {0}) (real {1}))) (* (power (real {0})) (power (real {1})))))"
)
SIGN = "(= (sign (num (* (real {0}) (real {1})))) (* (sign (num (real {0}))) (sign (num (real {1})))))"
SPLIT = """(=> (not (or (= (real a) 0.0) (= (real b) 0.0)))
  (= (/ 1.0 (* (real a) (real b))) (* (/ 1.0 (real a)) (/ 1.0 (real b)))))"""
"""Instances of laws of ordered fields, which cvc5 does not find by itself in time."""
AXIOMS = (
    (
        "exp(x) > 0, exp(0) = 1, exp(x + y) = exp(x) * exp(y) and so exp(-x) = 1 / exp(x) for real x and y",
        "any text on analysis",
    ),
    ("fields and order of the real numbers", "what both solvers call Real"),
    (
        "addition and multiplication of two floats commute, all NaNs being one; maximum and minimum are those of"
        " a total order with NaN above all",
        "IEEE 754-2019, 5.4.1 and 9.6",
    ),
    (
        "a finite sum in a commutative monoid does not depend on the order of its terms",
        "Bourbaki, Algebra I, 1.5",
    ),
    ("the name of a bound variable has no meaning, where no other variable has it", "any text on logic"),
    ("the square root of a real number is real and at least 0, where it has a value", "its definition"),
)


@dataclass(frozen=True)
class Proof:
    """What must follow from conditions; the ``broken`` one is dropped in the twin.  Variables have their sorts."""

    law: str
    about: str
    variables: str
    goal: str
    given: tuple[str, ...] = ()
    broken: int | None = None
    axioms: tuple[str, ...] = ()

    @property
    def sorts(self) -> dict[str, str]:
        """Variables and their sorts: V values, I integers, B truth values."""
        return {name: sort for part in self.variables.split() for sort, names in [part.split(":")] for name in names}

    def script(self, given: tuple[str, ...], fixed: Mapping[str, Any] | None = None) -> str:
        """SMT-LIB that is satisfiable where the goal does not follow; ``fixed`` are values of variables."""
        sorts = {"V": "V", "I": "Int", "B": "Bool"}
        lines = [f"(declare-const {name} {sorts[sort]})" for name, sort in self.sorts.items()]
        lines += [f"(assert {c})" for c in (*given, *self.axioms)] + [f"(assert (not {self.goal}))"]
        for name, item in (fixed or {}).items():
            lines.append(f"(assert (= {name} {written(item)}))")
        return PRELUDE + "\n".join(lines) + "\n(check-sat)\n"

    @property
    def twin(self) -> tuple[str, ...]:
        """The conditions but for the one that is dropped."""
        return tuple(c for j, c in enumerate(self.given) if j != self.broken)


def _reals(law: str, about: str, names: str, left: str, right: str, *given: str, broken: int | None = None) -> Proof:
    return Proof(law, about, f"V:{names}", f"(= {left} {right})", given, broken)


PROOFS = (
    Proof("chain", "equality is transitive, under weaker hypotheses too", "I:abc B:hk", "(=> h (= a c))",
          ("(=> k (= a b))", "(=> h (= b c))", "(=> h k)"), 2),
    Proof("parts", "equal arguments", "I:ab", "(= (f a) (f b))", ("(= a b)",), 0),
    Proof("parts", "a choice", "I:abxy B:c", "(= (ite c a x) (ite c b y))",
          ("(=> c (= a b))", "(=> (not c) (= x y))"), 1),
    Proof("parts", "a reduction: from i terms to i + 1", "V:abxy I:in",
          "(and (= (add a x) (add b y)) (= (maximum a x) (maximum b y)) (= (minimum a x) (minimum b y)))",
          ("(= a b)", "(=> (and (<= 0 i) (< i n)) (= x y))", "(and (<= 0 i) (< i n))"), 2),
    Proof("cases", "cases that are all", "I:ab B:cd", "(= a b)", ("(=> c (= a b))", "(=> d (= a b))", "(or c d)"), 2),
    Proof("indices", "equal subscripts", "I:ij", "(= (f i) (f j))", ("(= i j)",), 0),
    Proof("indices", "a // b is the q with 0 <= a - q*b < b", "I:abpq", "(= p q)",
          ("(<= 0 (- a (* q b)))", "(< (- a (* q b)) b)", "(<= (* b p) a)", "(< a (+ (* b p) b))"), 1),
    Proof("indices", "p // c, for a // (b*c), is not too large", "I:abcpr", "(<= (* b (* c r)) a)",
          ("(<= 0 (- a (* p b)))", "(<= (* c r) p)", "(>= b 1)"), 0),
    Proof("indices", "nor too small", "I:abcpr", "(< a (* b (+ (* c r) c)))",
          ("(< (- a (* p b)) b)", "(<= (+ p 1) (+ (* c r) c))", "(>= b 1)"), 0),
    _reals("sums of products", "addition commutes", "ab", "(add a b)", "(add b a)"),
    _reals("sums of products", "addition is associative", "abc", "(add a (add b c))", "(add (add a b) c)"),
    _reals("sums of products", "0 is its unit", "a", "(add a (num 0.0))", "a"),
    _reals("sums of products", "multiplication commutes", "ab", "(mul a b)", "(mul b a)"),
    Proof("sums of products", "multiplication is associative", "V:abc", "(= (mul a (mul b c)) (mul (mul a b) c))",
          axioms=(SIGN.format("a", "b"), SIGN.format("b", "c"))),
    _reals("sums of products", "1 is its unit", "a", "(mul a (num 1.0))", "a"),
    _reals("sums of products", "negation", "a", "(neg a)", "(mul a (num (- 1.0)))"),
    _reals("sums of products", "a sum times c, and from i terms of a sum to i + 1", "abc",
           "(mul c (add a b))", "(add (mul c a) (mul c b))", "(finite c)", broken=0),
    _reals("sums of products", "what is dropped", "a", "(mul a (num 0.0))", "(num 0.0)", "(finite a)", broken=0),
    _reals("sums of products", "what cancels", "a", "(add a (neg a))", "(num 0.0)", "(finite a)", broken=0),
    _reals("sums of products", "what cancels in part", "a", "(add (mul a (num 2.0)) (neg a))", "a",
           "(finite a)", broken=0),
    _reals("sums of products", "equal products of one sign", "a", "(add a a)", "(mul a (num 2.0))"),
    _reals("sums of products", "a factor that cancels", "a", "(quotient a a)", "(num 1.0)",
           "(finite a)", "(not (= a (num 0.0)))", broken=1),
    _reals("sums of products", "an inverse of an inverse", "a", "(inverse (inverse a))", "a",
           "(finite a)", "(not (= a (num 0.0)))", broken=0),
    Proof("sums of products", "the inverse of a product", "V:ab",
          "(= (inverse (mul a b)) (mul (inverse a) (inverse b)))",
          axioms=(SIGN.format("a", "b"), SPLIT)),
    Proof("sums of products", "a choice as a sum under guards", "V:ab B:c",
          "(= (ite c a b) (add (ite c a (num 0.0)) (ite (not c) b (num 0.0))))"),
    _reals("sums of products", "a sum of sums, from i terms to i + 1", "abxy",
           "(add (add a b) (add x y))", "(add (add a x) (add b y))"),
    _reals("counted", "no terms", "a", "(mul (num 0.0) a)", "(num 0.0)", "(finite a)", broken=0),
    _reals("counted", "from n terms to n + 1", "anb", "(mul (add n (num 1.0)) a)", "(add b a)",
           "(finite n)", "(finite a)", "(= b (mul n a))", broken=1),
    Proof("sides of choices", "two choices", "I:xyz B:cd", "(= (ite c x y) (ite d x z))",
          ("(not (and c (not d)))", "(not (and (not c) d))", "(not (and (not c) (not d)))"), 1),
    Proof("exponential", "of a sum", "V:ab", "(= (e^ (add a b)) (mul (e^ a) (e^ b)))", axioms=(
        POWER.format("a", "b"), "(> (power (real b)) 0.0)")),
    Proof("exponential", "of a difference", "V:ab",
          "(= (e^ (add a (neg b))) (quotient (e^ a) (e^ b)))", ("(finite b)",), 0, (
        "(= (power (+ (real a) (- (real b)))) (* (power (real a)) (power (- (real b)))))",
        "(> (power (real b)) 0.0)", "(> (power (real a)) 0.0)", "(= (/ 1.0 (power (real b))) (power (- (real b))))")),
    Proof("exponential", "known ones", "V:a", "(= (e^ minus) (num 0.0))"),
    Proof("exponential", "tanh of 0, as (e^a - e^-a) / (e^a + e^-a)", "V:a",
          "(= (quotient (add (e^ a) (neg (e^ (neg a)))) (add (e^ a) (e^ (neg a)))) (num 0.0))",
          ("(= a (num 0.0))",), 0, ("(> (power 0.0) 0.0)",)),
    _reals("infinity", "plus a finite number", "ai", "(add a i)", "i",
           "(finite a)", "(or (= i plus) (= i minus))", broken=0),
    _reals("infinity", "times a positive number", "ai", "(mul a i)", "i",
           "(positive a)", "(or (= i plus) (= i minus))", broken=0),
    _reals("infinity", "its negation is the other one", "i",
           "(add i (neg i))", "none", "(or (= i plus) (= i minus))", broken=0),
    _reals("monotone", "times a positive number", "abc", "(mul (maximum a b) c)", "(maximum (mul a c) (mul b c))",
           "(positive c)", broken=0),
    _reals("monotone", "of nothing, times a positive number", "c", "(mul minus c)", "minus", "(positive c)", broken=0),
    _reals("monotone", "plus a finite number", "abc", "(add (maximum a b) c)", "(maximum (add a c) (add b c))",
           "(finite c)", broken=0),
    _reals("monotone", "of nothing, plus a finite number", "c", "(add minus c)", "minus", "(finite c)", broken=0),
    _reals("monotone", "the minimum with any value", "abc", "(minimum (maximum a b) c)",
           "(maximum (minimum a c) (minimum b c))"),
    _reals("monotone", "of nothing, the minimum with a finite number", "c", "(minimum minus c)", "minus",
           "(finite c)", broken=0),
    _reals("same candidates", "maximum commutes", "ab", "(maximum a b)", "(maximum b a)"),
    _reals("same candidates", "is associative", "abc", "(maximum a (maximum b c))", "(maximum (maximum a b) c)"),
    _reals("same candidates", "idempotent", "a", "(maximum a a)", "a"),
    _reals("same candidates", "and has the unit -inf", "a", "(maximum a minus)", "a"),
    _reals("same candidates", "a minimum is a maximum of negations", "ab",
           "(neg (minimum a b))", "(maximum (neg a) (neg b))"),
    Proof("divisor of the left side", "what divides is not 0", "V:ab", "(and (not (= b none)) (not (= b (num 0.0))))",
          ("(not (= (quotient a b) none))",), 0),
)  # fmt: skip


# -- an evaluator ------------------------------------------------------------------------------------

INF = float("inf")
GRID: dict[str, tuple[Any, ...]] = {
    "V": (None, -INF, INF, *map(Fraction, (-2, -1, 0, 1, 2))),
    "I": (-1, 0, 1, 2),
    "B": (False, True),
}


def parsed(text: str) -> Any:
    """An S-expression as nested lists."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def read() -> Any:
        token = tokens.pop(0)
        if token != "(":
            return token
        found = []
        while tokens[0] != ")":
            found.append(read())
        tokens.pop(0)
        return found

    return read()


def plus(a: Any, b: Any) -> Any:
    """The sum of two values; None is no value."""
    return None if None in (a, b) or (abs(a) == abs(b) == INF and a != b) else a + b


def times(a: Any, b: Any) -> Any:
    """The product of two values."""
    if None in (a, b) or (INF in (abs(a), abs(b)) and 0 in (a, b)):
        return None
    return (INF if (a > 0) is (b > 0) else -INF) if INF in (abs(a), abs(b)) else a * b


def inverted(a: Any) -> Any:
    """1 over a value."""
    return None if a is None or a == 0 else Fraction(0) if abs(a) == INF else 1 / Fraction(a)


def powered(a: Any) -> Any:
    """2^a: what is used of exp holds of every such function."""
    return a if a in (None, INF) else Fraction(0) if a == -INF else Fraction(2) ** int(a)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b, "*": lambda a, b: a * b, "-": lambda a, b=None: -a if b is None else a - b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "=": lambda a, b: a == b,
    "and": lambda *a: all(a), "or": lambda *a: any(a), "not": lambda a: not a, "=>": lambda a, b: b or not a,
    "ite": lambda c, a, b: a if c else b, "f": lambda i: i * i + 3 * i,
    "num": Fraction, "add": plus, "mul": times, "inverse": inverted, "e^": powered,
    "quotient": lambda a, b: times(a, inverted(b)), "neg": lambda a: None if a is None else -a,
    "maximum": lambda a, b: None if None in (a, b) else max(a, b),
    "minimum": lambda a, b: None if None in (a, b) else min(a, b),
    "finite": lambda a: a is not None and abs(a) != INF,
    "positive": lambda a: a is not None and 0 < a < INF,
}  # fmt: skip


def value(term: Any, at: Mapping[str, Any]) -> Any:
    """The value of a term."""
    if isinstance(term, list):
        return FUNCTIONS[term[0]](*(value(part, at) for part in term[1:]))
    known = {"none": None, "minus": -INF, "plus": INF}
    return at[term] if term in at else known[term] if term in known else Fraction(term)


def written(item: Any) -> str:
    """A value as SMT-LIB."""
    if isinstance(item, Fraction):
        return f"(num {item.numerator}.0)" if item >= 0 else f"(num (- {-item.numerator}.0))"
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, int):
        return str(item) if item >= 0 else f"(- {-item})"
    return {None: "none", INF: "plus", -INF: "minus"}[item]


def counterexamples(proof: Proof, given: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Points of the grid where the conditions hold and the goal does not."""
    conditions, goal = [parsed(c) for c in given], parsed(proof.goal)
    for point in itertools.product(*(GRID[sort] for sort in proof.sorts.values())):
        at = dict(zip(proof.sorts, point, strict=True))
        if all(value(c, at) for c in conditions) and not value(goal, at):
            yield at


# -- models -------------------------------------------------------------------------------------------


def bijections(*, back: bool = True) -> Iterator[str]:
    """Counterexamples to the law of bijections: all sets of at most two points a side, two pieces, all maps.

    Summands are symbols, so sums are bags: the free commutative monoid has no other equations.  Without ``back`` the
    maps back are not asked to lead to where one came from.
    """
    for n, m in itertools.product(range(3), repeat=2):
        forwards, backwards = ([*itertools.product(range(-1, size), repeat=count)] for count, size in ((n, m), (m, n)))
        for fs, gs in itertools.product(itertools.product(forwards, repeat=2), itertools.product(backwards, repeat=2)):
            sides = [], []  # type: ignore[var-annotated]
            for f, g in zip(fs, gs, strict=True):
                sides[0].append({x for x in range(n) if f[x] >= 0 and (not back or g[f[x]] == x)})
                sides[1].append({y for y in range(m) if g[y] >= 0 and (not back or f[g[y]] == y)})
            if all(
                Counter(p for s in side for p in s) == Counter(range(k)) for side, k in zip(sides, (n, m), strict=True)
            ):
                images = Counter(f[x] for f, points in zip(fs, sides[0], strict=True) for x in points)
                if images != Counter(range(m)):
                    yield f"n = {n}, m = {m}, f = {fs}, g = {gs}"


def coverings(*, both: bool = True) -> Iterator[str]:
    """Counterexamples to the law of coverings: all candidates of at most three points a side among three symbols."""
    for n, m in itertools.product(range(4), repeat=2):
        for a, b in itertools.product(itertools.product("xyz", repeat=n), itertools.product("xyz", repeat=m)):
            covered = all(x in b for x in a) and (not both or all(y in a for y in b))
            if covered and set(a) != set(b):
                yield f"a = {a}, b = {b}"


MODELS: dict[str, tuple[Callable[..., Iterator[str]], str, str]] = {
    "bijection": (
        bijections,
        "back",
        "all sets of at most two points a side, two pieces and all maps, of symbols",
    ),
    "covering": (coverings, "both", "all candidates of at most three points a side among three symbols"),
}
"""The exhaustive model of a law, the condition that the twin drops, and what is run through."""
GIVEN = {"renamed": 4, "exchanged": 2}
"""Laws that are axioms, by their number."""


def page() -> str:
    """The document."""
    lines = [
        "# The laws of the kernel of tensor rules",
        "",
        "Generated by `python -m tests.chc.tensor_rules.law_proofs`; a test keeps it up to date and runs the proofs.",
        "The statements are those of `chc/tensor_rules/kernel/laws.py`. *Solvers*: z3 and cvc5 both prove it, for all",
        "numbers, infinities and no value (`none`). *Broken*: without this condition there is a counterexample, which",
        "an evaluator of its own finds and the solvers confirm. *Model*: run through exhaustively. Laws of reductions",
        "are proved by induction. Up to reduction order, addition has the first three laws of `sums of products` only.",
        "",
        "## Axioms",
        "",
    ]
    lines += [f"{j}. {text} ({source})." for j, (text, source) in enumerate(AXIOMS, start=1)]
    for name in (*LAWS, "divisor of the left side"):
        doc = (LAWS[name].__doc__ if name in LAWS else "What the left side divides by has a value other than 0.") or ""
        lines += ["", f"## {name}", "", *(line.strip() for line in doc.strip().splitlines()), ""]
        for p in (p for p in PROOFS if p.law == name):
            given = f"given {' and '.join(f'`{c}`' for c in p.given)}, " if p.given else ""
            broken = f" *Broken*: `{p.given[p.broken]}`." if p.broken is not None else ""
            lines.append(f"* {p.about}: {given}`{p.goal}`. *Solvers*.{broken}")
        if name in MODELS:
            lines.append(f"* *Model*: {MODELS[name][2]}; *broken* without `{MODELS[name][1]}`. Besides, axiom 4.")
        if name in GIVEN:
            lines.append(f"* Axiom {GIVEN[name] + 1}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
